//! Errors: each names the PE, the operation, the range and the remedy.

use crate::Pe;
use crate::base::panic_message;
use crate::base::{atomic_ops::AtomicOps, atomic_type::AtomicType};
use pelago_boot::{BootError, SettingError};
use pelago_fabric::{AtomicKind, AtomicOp, FabricError};
use std::sync::Arc;
use thiserror::Error as ThisError;

/// An error of the runtime. It is one pointer wide, so that success costs nothing on the fast path.
#[derive(Clone)]
pub struct Error(Arc<ErrorKind>);

/// Result of the runtime's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A PE number that does not exist.
    #[error("PE {me}: {operation} names PE {pe}, but the job has {n_pes} PEs, numbered 0 to {}", n_pes - 1)]
    PeOutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The PE that the call named.
        pe: Pe,
        /// PEs in the job.
        n_pes: usize,
    },
    /// A rank that a team or space does not have.
    #[error("PE {me}: {operation} names rank {rank}, but the team has the ranks 0 to {}", n_ranks - 1)]
    RankOutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The rank that the call named.
        rank: usize,
        /// The number of members.
        n_ranks: usize,
    },
    /// A record of operations that cannot be written.
    #[error("{text}")]
    Record {
        /// The file, the reason and the remedy.
        text: String,
    },
    /// Elements outside an array.
    #[error(
        "PE {me}: {operation} of {count} elements at index {index} on PE {pe} lies outside the array, which \
         has {len} elements a PE"
    )]
    OutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The PE whose part the call named.
        pe: Pe,
        /// First element, counted from 0.
        index: usize,
        /// Number of elements.
        count: usize,
        /// Elements of the array on each PE.
        len: usize,
    },
    /// An atomic on a word that is not aligned to its size.
    #[error(
        "PE {me}: {operation} at offset {offset_bytes} of a word of {bytes} bytes, which is not aligned \
         there. Give a multiple of its size"
    )]
    Misaligned {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The offset in the memory.
        offset_bytes: usize,
        /// Size of the word.
        bytes: usize,
    },
    /// Blocks of a strided transfer that have no elements or overlap.
    #[error(
        "PE {me}: {operation} with blocks of {block} elements, every {array_stride} in the array and every \
         {slice_stride} in the slice: a block has at least 1 element, and a stride at least those of a block"
    )]
    BadStride {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Elements of a block.
        block: usize,
        /// Elements from block to block in the array.
        array_stride: usize,
        /// Elements from block to block in the slice.
        slice_stride: usize,
    },
    /// Blocks of a strided transfer outside an array.
    #[error(
        "PE {me}: {operation} of {count} blocks of {block} elements, every {stride} from index {index} on, \
         on PE {pe} reaches outside the array, which has {len} elements a PE"
    )]
    StridedOutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The PE whose part the call named.
        pe: Pe,
        /// First element of the first block, counted from 0.
        index: usize,
        /// Number of blocks.
        count: usize,
        /// Elements of a block.
        block: usize,
        /// Elements from block to block.
        stride: usize,
        /// Elements of the array on each PE.
        len: usize,
    },
    /// A slice that has no room for the blocks of a strided transfer.
    #[error(
        "PE {me}: {operation} of {count} blocks of {block} elements, every {stride} in the slice, which has \
         only {len} elements. Give a longer slice, or fewer blocks"
    )]
    SliceTooShort {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Number of blocks.
        count: usize,
        /// Elements of a block.
        block: usize,
        /// Elements from block to block.
        stride: usize,
        /// Elements of the slice.
        len: usize,
    },
    /// A tag that is reserved.
    #[error("PE {me}: {operation} with the tag 2^32 - 1, which stands for any tag. Use a smaller one")]
    BadTag {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
    },
    /// A message of a PE that is no member of the team any more.
    #[error(
        "PE {me}: the message with tag {tag} that was found is of PE {source_pe}, which has left the team \
         by a shrink. Receive all messages before a team is shrunk"
    )]
    FormerMember {
        /// The calling PE.
        me: Pe,
        /// The PE that has sent the message.
        source_pe: Pe,
        /// Its tag.
        tag: u32,
    },
    /// A message that is longer than the slice of its receive.
    #[error(
        "PE {me}: a message of {bytes} bytes from PE {source_pe} with tag {tag} was received into a slice of \
         {room} bytes, and the rest of it is lost. Give a longer slice, or probe for the length first"
    )]
    MessageTruncated {
        /// The calling PE.
        me: Pe,
        /// The PE that has sent it.
        source_pe: Pe,
        /// Its tag.
        tag: u32,
        /// Its length in bytes.
        bytes: usize,
        /// The length of the slice in bytes.
        room: usize,
    },
    /// A transfer of scattered elements with invalid arguments.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadPattern {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// The symmetric heap has no block of this size.
    #[error(
        "PE {me}: {operation} of {asked_bytes} bytes a PE failed: the symmetric heap has {free_bytes} of \
         {total_bytes} bytes free, the largest block {largest_bytes}. Raise PELAGO_HEAP_SIZE (now \
         {total_bytes})"
    )]
    HeapExhausted {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Bytes asked for on each PE.
        asked_bytes: usize,
        /// Bytes free on each PE.
        free_bytes: usize,
        /// The largest free block in bytes.
        largest_bytes: usize,
        /// Size of the heap of each PE in bytes.
        total_bytes: usize,
    },
    /// A size that exceeds the address space.
    #[error("PE {me}: {operation} of {count} elements of {element_bytes} bytes exceeds the address space")]
    TooLarge {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Elements asked for.
        count: usize,
        /// Size of an element in bytes.
        element_bytes: usize,
    },
    /// An alignment that is not a power of two, or that is too large.
    #[error("PE {me}: alignment {align_bytes} is not a power of two of at most {max_bytes} bytes")]
    BadAlignment {
        /// The calling PE.
        me: Pe,
        /// The alignment asked for, in bytes.
        align_bytes: usize,
        /// The largest possible alignment, in bytes.
        max_bytes: usize,
    },
    /// A space has no block of this size.
    #[error(
        "PE {me}: {operation} of {asked_bytes} bytes a PE failed: the space has {free_bytes} of \
         {total_bytes} bytes free, the largest block {largest_bytes}. Create it with more bytes"
    )]
    SpaceExhausted {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Bytes asked for on each PE.
        asked_bytes: usize,
        /// Bytes free on each PE.
        free_bytes: usize,
        /// The largest free block in bytes.
        largest_bytes: usize,
        /// Size of the space on each PE in bytes.
        total_bytes: usize,
    },
    /// The pool of a PE has no free block for a team or a space.
    #[error(
        "PE {me}: {operation} failed: the pool of PE {pe} has no block of {asked_bytes} bytes. Raise \
         PELAGO_POOL_SIZE, or drop teams and spaces that are no longer needed"
    )]
    PoolExhausted {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The first PE whose pool has no such block.
        pe: Pe,
        /// Bytes asked for on each PE.
        asked_bytes: usize,
    },
    /// More teams and spaces made from one team than the runtime can track.
    #[error(
        "PE {me}: {operation} failed: {count} teams and spaces made from this team are alive on some PE. \
         Drop those that are no longer needed"
    )]
    TooManyTeams {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The number that exist.
        count: usize,
    },
    /// A team that cannot be created.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadTeam {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// A collective operation with invalid arguments.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadCollective {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// Members of a team made different collective calls.
    #[error(
        "PE {me}: the PEs of a team disagree on their collective call {sequence}: PE {pe} calls {theirs}, PE \
         {me} calls {mine}. Every PE must make the same calls with the same arguments in the same order"
    )]
    Mismatch {
        /// The calling PE.
        me: Pe,
        /// Number of the call on this team, counted from 1.
        sequence: u64,
        /// The first PE that differs.
        pe: Pe,
        /// The call of this PE.
        mine: String,
        /// The call of the other PE.
        theirs: String,
    },
    /// Members whose handlers of active messages differ.
    #[error(
        "PE {me}: serve with other handlers than PE {pe}: all members add handlers of the same names in the \
         same order"
    )]
    HandlersDiffer {
        /// The calling PE.
        me: Pe,
        /// The first PE that differs.
        pe: Pe,
    },
    /// An active message to a handler that does not exist.
    #[error("PE {me}: {operation} names handler {handler}, but its endpoint has {handlers}, numbered from 0")]
    NoSuchHandler {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The handler's number.
        handler: u16,
        /// The number that exist.
        handlers: usize,
    },
    /// An active message with too many arguments.
    #[error("PE {me}: {operation} has {args} arguments, but it can have {max}. Put more into the payload")]
    TooManyArguments {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The number of arguments of the message.
        args: usize,
        /// The largest possible number.
        max: usize,
    },
    /// An active message with too long a payload.
    #[error(
        "PE {me}: {operation} has a payload of {bytes} bytes, but it can have {max_bytes}. Send a long \
         message, or several; or raise PELAGO_RING_SIZE"
    )]
    MessageTooLong {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Bytes of the payload.
        bytes: usize,
        /// The largest possible number.
        max_bytes: usize,
    },
    /// An aggregator with room for no records.
    #[error("PE {me}: an aggregator of 0 records for a destination; 1 sends every record alone")]
    EmptyBatch {
        /// The calling PE.
        me: Pe,
    },
    /// A reply to an active message that cannot be replied to.
    #[error(
        "PE {me}: {operation} by the handler {name:?}: {why}. A request is answered once, an answer never"
    )]
    AnswerOutOfPlace {
        /// The PE that runs the handler.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The handler's name.
        name: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// More arrays than the runtime can track.
    #[error("PE {me}: there are {count} symmetric arrays already. Allocate fewer, larger ones, or free some")]
    TooManyArrays {
        /// The calling PE.
        me: Pe,
        /// Arrays alive.
        count: usize,
    },
    /// PEs made different collective calls.
    #[error(
        "PE {me}: the PEs disagree at barrier {sequence}: PE {pe} calls {theirs}, PE {me} calls \
         {mine}. Every PE must make the same collective calls with the same arguments in the same order"
    )]
    Disagreement {
        /// The calling PE.
        me: Pe,
        /// Number of the barrier that is part of the call, counted from 1.
        sequence: u64,
        /// The first PE that differs.
        pe: Pe,
        /// The call of this PE.
        mine: String,
        /// The call of the other PE.
        theirs: String,
    },
    /// An atomic operation that the type or the call does not have.
    #[error(
        "PE {me}: {operation} cannot execute {op:?} on {kind:?}: {}",
        match AtomicType::of(*kind).answer(*op) {
            Ok(()) if *compares => "it takes no value to compare with; use amo or fetch_amo".to_owned(),
            Ok(()) => "it takes a value to compare with; use compare_amo".to_owned(),
            Err(why) => why.to_string(),
        }
    )]
    UndefinedAtomic {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The operation asked for.
        op: AtomicOp,
        /// The type of the element.
        kind: AtomicKind,
        /// Whether the call has a value to compare with.
        compares: bool,
    },
    /// An atomic domain that cannot be made.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadDomain {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// An atomic operation that a domain was not made for.
    #[error(
        "PE {me}: {operation} needs {op:?}, but the atomic domain was made for {kind:?} with {ops} only. \
         Make it with {op:?} as well, at all members of its team"
    )]
    NotInDomain {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The operation that it needs.
        op: AtomicOp,
        /// The type of the domain's words.
        kind: AtomicKind,
        /// The operations of the domain.
        ops: AtomicOps,
    },
    /// An array whose exclusive phase this PE has left before the end.
    #[error(
        "PE {me}: {operation} refused: an exclusive phase of the array has not ended here, and other PEs may \
         still be in it"
    )]
    ArrayClosed {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
    },
    /// Arrays, or an array and a scope or atomic domain, that are not of one world.
    #[error(
        "PE {me}: {operation} refused: all arrays of a call must belong to one world, that of its scope or \
         atomic domain"
    )]
    OtherWorld {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
    },
    /// A lock that the caller holds or waits for already.
    #[error(
        "PE {me}: {operation} refused: the caller holds the lock (its home is PE {home}) or waits for it \
         already, and would wait for itself. Release it first"
    )]
    LockHeld {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The home of the lock: the PE that holds the tail of its queue.
        home: Pe,
    },
    /// A lock that the caller does not hold.
    #[error(
        "PE {me}: {operation} refused: the caller does not hold the lock (its home is PE {home}). Acquire it \
         first, and release it once"
    )]
    LockNotHeld {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The home of the lock: the PE that holds the tail of its queue.
        home: Pe,
    },
    /// Elements outside a shared array.
    #[error(
        "PE {me}: {operation} of {count} elements at index {index} lies outside the shared array, which has \
         {len} elements"
    )]
    SharedOutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// First element, counted from 0 over all PEs.
        index: usize,
        /// Number of elements.
        count: usize,
        /// Elements of the array on all PEs together.
        len: usize,
    },
    /// A shared array that is created or used with invalid arguments.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadShared {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// Elements outside a distributed array.
    #[error(
        "PE {me}: {operation} of {count} elements at index {index}{} lies outside the distributed array, \
         which has {len} elements",
        number.map_or_else(String::new, |number| format!(" (place {number} of the list)"))
    )]
    DistributedOutOfRange {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// First element, counted from 0 over all PEs.
        index: usize,
        /// Number of elements.
        count: usize,
        /// The position of the index in a list, counted from 0.
        number: Option<usize>,
        /// Elements of the array on all PEs together.
        len: usize,
    },
    /// A list of indices and a list of values that differ in length.
    #[error("PE {me}: {operation} has {indices} indices and {values} values. Give as many of both")]
    LengthsDiffer {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Number of indices.
        indices: usize,
        /// Number of values, or of elements to store them in.
        values: usize,
    },
    /// A distributed array that is created or used with invalid arguments.
    #[error("PE {me}: {operation} refused: {reason}")]
    BadDistributed {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// A semaphore that is used in a way that its kind or its state forbids.
    #[error("PE {me}: {operation} of semaphore {index} of PE {pe} refused: {reason}")]
    BadSemaphore {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// The PE that the semaphore has affinity to.
        pe: Pe,
        /// The number of the semaphore on that PE.
        index: usize,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// A split-phase barrier whose calls do not follow each other.
    #[error("PE {me}: {operation} refused in phase {phase} of a split-phase barrier: {reason}")]
    BadPhase {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Number of the phase, counted from 1.
        phase: u64,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// PEs that entered a split-phase barrier with different values.
    #[error(
        "PE {me}: the PEs disagree in phase {phase} of a split-phase barrier: PE {pe} says {value}, PE \
         {other_pe} says {other_value}. All PEs that give a value must give the same"
    )]
    PhaseMismatch {
        /// The calling PE.
        me: Pe,
        /// Number of the phase, counted from 1.
        phase: u64,
        /// A PE with the least value.
        pe: Pe,
        /// Its value.
        value: u64,
        /// A PE with the greatest value.
        other_pe: Pe,
        /// Its value.
        other_value: u64,
    },
    /// The job is failing; operations are refused.
    #[error("PE {me}: {operation} refused: the job has failed ({reason})")]
    JobFailed {
        /// The calling PE.
        me: Pe,
        /// The call.
        operation: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// PEs that cannot reach each other.
    #[error(
        "PE {me} is on node {mine} and PE {pe} on node {theirs}, but the launcher, or PELAGO_FABRIC=shm, \
         says that they are on one. If they are, set PELAGO_NODE_ID alike for all; if not, differently, and \
         PELAGO_FABRIC=auto"
    )]
    NoRoute {
        /// The calling PE.
        me: Pe,
        /// A PE on another node.
        pe: Pe,
        /// This PE's node.
        mine: String,
        /// The other PE's node.
        theirs: String,
    },
    /// PEs that would use different routes to each other.
    #[error(
        "PE {me}: {over_net} of {n_pes} PEs go over the net and the others do not. Set PELAGO_ROUTE alike \
         for all"
    )]
    RoutesDiffer {
        /// The calling PE.
        me: Pe,
        /// PEs that use the network.
        over_net: usize,
        /// PEs in the job.
        n_pes: usize,
    },
    /// A process that is set up for several PEs and joins as one.
    #[error(
        "PELAGO_PES_PER_PROCESS is {pes_per_process}, but this program joins with one PE a process: in Rust \
         by World::init, in place of which pelago::run joins with several, or as an MPI or \
         OpenSHMEM program, whose PEs are always processes. Start it with one PE a process, and as many \
         processes as there are to be PEs"
    )]
    OnePeAProcess {
        /// The value of the setting.
        pes_per_process: usize,
    },
    /// A process that joins after a fork of a process that had joined.
    #[error("a child of fork is no PE: let it start a program that is one, in a job of its own")]
    ForkedChild,
    /// Processes that have chosen different providers of libfabric, or different modes of one provider.
    #[error(
        "PE {me}: the fabric of this PE is `{mine}`, and that of PE {pe} is `{theirs}`. Set \
         PELAGO_OFI_PROVIDER to one that all nodes have (pelago info --fabrics)"
    )]
    FabricsDiffer {
        /// The lowest PE of the calling process.
        me: Pe,
        /// The provider of this process, and the mode bits that it requires of its users.
        mine: String,
        /// A PE of another process.
        pe: Pe,
        /// The provider of the other process, and its mode bits.
        theirs: String,
    },
    /// Processes with different numbers of PEs.
    #[error(
        "PE {me}: this process has {mine} PEs, and process {process} of the job has {theirs}. Set \
         PELAGO_PES_PER_PROCESS alike for all"
    )]
    PesPerProcessDiffer {
        /// The lowest PE of the calling process, by this process's own count.
        me: Pe,
        /// PEs of this process.
        mine: usize,
        /// Another process.
        process: usize,
        /// PEs of the other process.
        theirs: usize,
    },
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Joining the job failed.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The fabric failed.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

impl Error {
    /// The kind of an error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Error {
        let kind: Arc<ErrorKind> = Arc::new(kind.into());
        panic_message::keep_error(&kind);
        Error(kind)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

// `fn main() -> pelago::Result<()>` prints errors by Debug: Debug prints the sentence, not the fields.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_says_the_same_and_a_result_is_one_pointer_wide() {
        let error = Error::from(ErrorKind::BadTag { me: 3, operation: "send" });
        let copy = error.clone();
        assert_eq!(copy.to_string(), error.to_string());
        assert!(matches!(copy.kind(), ErrorKind::BadTag { me: 3, .. }));
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
