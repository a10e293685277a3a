//! Requests to the process of a part: their form, and how an origin sends them.
//!
//! ```text
//! action | operation | element | tag of reply | number of blocks | offset and length of each block | data
//! ```
//! All but the data are words. An action that returns data has its reply under a tag of its own, and so may
//! an accumulate; a reply of another length says that the target has refused the request. The data of a put
//! or an accumulate are for the first bytes of the blocks.
//!
//! Invariant: requests of an origin to a target arrive in the order in which they were sent.

use super::Window;
use super::arguments::Blocks;
use super::transfer::Transfer;
use super::way;
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;
use pelago_core::msg::envelope::{Context, Envelope};
use pelago_core::msg::operation::{Address, Mode, Started};
use std::sync::Arc;

/// Tags in the context of a window.
pub const REQUEST: u32 = 0;
pub const POST: u32 = 1;
pub const COMPLETE: u32 = 2;
/// The first tag of replies.
pub const FIRST_REPLY: u32 = 16;
/// The reply to an accumulate that returns no data.
pub const DONE: u8 = 1;

/// The task of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Action {
    Put,
    Get,
    Accumulate,
    /// Accumulate, and return the old values.
    Fetch,
    /// Compare and swap: the data are the new value and the one to compare with.
    Swap,
    /// Say when all requests before are done.
    Flush,
}

impl Action {
    fn of(code: u64) -> Option<Action> {
        use Action::*;
        [Put, Get, Accumulate, Fetch, Swap, Flush].into_iter().find(|&action| action as u64 == code)
    }
}

/// A request without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub action: Action,
    pub op: MPI_Op,
    /// The predefined type of the elements.
    pub element: MPI_Datatype,
    pub reply: u32,
    pub blocks: Blocks,
}

const FIXED_WORDS: usize = 5;

impl Head {
    pub fn new(action: Action, blocks: &Blocks) -> Head {
        Head { action, op: MPI_OP_NULL, element: MPI_DATATYPE_NULL, reply: 0, blocks: blocks.clone() }
    }

    /// The words of the request and its data.
    ///
    /// # Safety
    /// Each piece is valid for reads of its length.
    unsafe fn with(&self, data: &[(*const u8, usize)]) -> (Box<[u64]>, usize) {
        let blocks = self.blocks.iter().flat_map(|(offset, bytes)| [offset as u64, bytes as u64]);
        let fixed = [
            self.action as u64,
            self.op.0 as u64,
            self.element.0 as u64,
            self.reply.into(),
            self.blocks.len() as u64,
        ];
        let mut words: Vec<u64> = fixed.into_iter().chain(blocks).collect();
        let head_bytes = 8 * words.len();
        let bytes = head_bytes + data.iter().map(|&(_, bytes)| bytes).sum::<usize>();
        words.resize(bytes.div_ceil(8), 0);
        let mut at = words.as_mut_ptr().cast::<u8>().wrapping_add(head_bytes);
        for &(start, bytes) in data.iter().filter(|&&(_, bytes)| bytes > 0) {
            // SAFETY: the caller guarantees the piece, and there is room for all of them.
            unsafe { pelago_fabric::copy::copy(at, start, bytes) };
            at = at.wrapping_add(bytes);
        }
        (words.into_boxed_slice(), bytes)
    }

    /// The head of a message, and where its data begin in bytes; `None` if it is no request.
    pub fn read(words: &[u64]) -> Option<(Head, usize)> {
        let &[action, op, element, reply, n, ref rest @ ..] = words else { return None };
        let n = usize::try_from(n).ok().filter(|&n| n <= rest.len() / 2)?;
        let pair = |i: usize| (rest[2 * i] as usize, rest[2 * i + 1] as usize);
        let blocks = match n {
            1 => Blocks::One(pair(0).0, pair(0).1),
            _ => Blocks::Many((0..n).map(pair).collect()),
        };
        let head = Head {
            action: Action::of(action)?,
            op: MPI_Op(op as usize),
            element: MPI_Datatype(element as usize),
            reply: reply as u32,
            blocks,
        };
        Some((head, 8 * (FIXED_WORDS + 2 * n)))
    }
}

impl Window {
    /// The pattern of a message of the process with a rank.
    pub fn pattern(&self, rank: usize, tag: u32) -> Envelope {
        Envelope { context: Context(self.comm.context), source: self.parts[rank].pe as u32, tag }
    }

    /// The address of a message to it.
    pub fn address(&self, rank: usize, tag: u32) -> Address {
        Address { context: Context(self.comm.context), pe: self.parts[rank].pe, tag }
    }
}

/// Sends a message without data.
pub fn tell(mpi: &Mpi, window: &Window, rank: usize, tag: u32) {
    let (to, nothing) = (window.address(rank, tag), (std::ptr::dangling(), 0));
    // SAFETY: a message without data reads nothing.
    let sent = unsafe { mpi.core.start_send(to, nothing, Mode::Standard) };
    window.outstanding.keep(sent.expect("the tag is not the wildcard"), Box::default());
}

/// Sends a request. The data may be reused at return. Returns the number of the request, unless it is a
/// flush.
///
/// # Safety
/// Each piece of the data is valid for reads of its length.
pub unsafe fn send(
    mpi: &Mpi,
    window: &Window,
    rank: usize,
    head: &Head,
    data: &[(*const u8, usize)],
) -> Result<Option<u64>> {
    // Where requests may not be sent at any time, one is sent by choice, or is a flush.
    let is_possible = match head.action {
        _ if window.is_asked => true,
        Action::Flush => true,
        Action::Get => way::is_for_get_request(window, &head.blocks),
        _ => window.outstanding.has_asked(rank) || window.may_ask() && way::are_small(&head.blocks),
    };
    ensure!(
        is_possible,
        MPI_ERR_RMA_RANGE,
        "the system refuses access to the memory of rank {rank} (PE {}). Give memory that it has",
        window.parts[rank].pe
    );
    // SAFETY: the caller guarantees the memory, as this function demands.
    let (words, bytes) = unsafe { head.with(data) };
    let (to, start) = (window.address(rank, REQUEST), words.as_ptr().cast());
    // SAFETY: the words live until the send is complete.
    let sent = unsafe { mpi.core.start_send(to, (start, bytes), Mode::Standard) };
    window.outstanding.keep(sent.expect("the tag is not the wildcard"), words);
    // A flush that comes between leaves the mark for the next one, which it would take away if it came first.
    let has_reply = head.reply >= FIRST_REPLY;
    Ok((head.action != Action::Flush).then(|| window.outstanding.note_asked(rank, has_reply)))
}

/// Sends a request whose reply is data of a length that is known.
///
/// # Safety
/// As [`send`]; there is room for the reply until the transfer is over.
pub unsafe fn ask(
    mpi: &Mpi,
    window: &Window,
    rank: usize,
    mut head: Head,
    data: &[(*const u8, usize)],
    (into, bytes): (*mut u8, usize),
    finish: Box<dyn FnOnce() + Send>,
) -> Result<Arc<Transfer>> {
    head.reply = window.outstanding.tag();
    // SAFETY: the caller guarantees the memory, as this function demands.
    let started = unsafe { mpi.core.start_receive(window.pattern(rank, head.reply), (into, bytes)) };
    let Started::Pending(id) = started else { unreachable!("no reply comes before its request") };
    // SAFETY: the caller guarantees the memory, as this function demands.
    let sent = unsafe { send(mpi, window, rank, &head, data) };
    let number = sent.inspect_err(|_| {
        mpi.core.cancel_receive(id);
        mpi.core.look(id);
    })?;
    let brings_data = head.action != Action::Accumulate;
    Ok(Transfer::of_reply((rank, number), (id, bytes), brings_data, finish))
}

/// Accumulates by a request. The first one after a flush has a reply, so that a flush which follows it only
/// waits for that.
///
/// # Safety
/// As [`send`].
pub unsafe fn accumulate(
    mpi: &Mpi,
    window: &Window,
    rank: usize,
    head: Head,
    data: (*const u8, usize),
) -> Result {
    if window.outstanding.has_asked(rank) {
        // SAFETY: the caller guarantees the data.
        return unsafe { send(mpi, window, rank, &head, &[data]).map(drop) };
    }
    let mut done = Box::new(0);
    let room = (&raw mut *done, size_of_val(&DONE));
    // SAFETY: the caller guarantees the data; the end of the transfer frees the place of the reply.
    let transfer = unsafe { ask(mpi, window, rank, head, &[data], room, Box::new(move || drop(done)))? };
    window.outstanding.add(&transfer);
    Ok(())
}

/// Waits until all requests to a target are done: the class of the error of one, or `MPI_SUCCESS`.
pub fn flush(mpi: &Mpi, window: &Window, rank: usize) -> Result<c_int> {
    let mut head = Head::new(Action::Flush, &Blocks::Many(Vec::new()));
    head.reply = window.outstanding.tag();
    let mut error = [0u64];
    let place = (error.as_mut_ptr().cast(), size_of_val(&error));
    // SAFETY: the place is valid until the message is received, which is when the call returns.
    unsafe {
        send(mpi, window, rank, &head, &[])?;
        mpi.core.receive_message(window.pattern(rank, head.reply), place);
    }
    Ok(error[0] as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        for blocks in
            [Blocks::One(7, 3), Blocks::Many(vec![]), Blocks::Many(vec![(1, 2), (usize::MAX, 4), (0, 0)])]
        {
            for action in [Action::Put, Action::Get, Action::Swap, Action::Flush] {
                let head = Head { op: MPI_SUM, element: MPI_INT, reply: 99, ..Head::new(action, &blocks) };
                let data = *b"eleven byte";
                // SAFETY: the pieces are those of the array.
                let (words, bytes) = unsafe {
                    head.with(&[(data.as_ptr(), 4), (data.as_ptr().wrapping_add(4), 7), (data.as_ptr(), 0)])
                };
                let (read, at) = Head::read(&words).unwrap();
                assert_eq!((&read, bytes - at), (&head, data.len()));
                let all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert_eq!(all[at..bytes], data);
            }
        }
    }

    #[test]
    fn other_messages_are_refused() {
        assert!(Head::read(&[0; 4]).is_none());
        assert!(Head::read(&[6, 0, 0, 0, 0]).is_none(), "there is no such action");
        assert!(Head::read(&[0, 0, 0, 0, 2, 1, 1, 1]).is_none(), "a block is missing");
        assert!(Head::read(&[0, 0, 0, 0, u64::MAX]).is_none());
    }
}
