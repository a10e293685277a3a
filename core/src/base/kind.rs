//! Kinds of the objects that PEs make together in symmetric memory.
//!
//! Invariant: the memory at one offset of a symmetric region belongs to objects of one kind on all members,
//! because the members compare the kind whenever they allocate (docs/decisions/0031). So a type that lends
//! slices of its own part, or that runs a protocol in its words, has no counterpart of another type on
//! another PE.

/// The kind of an object, given by the call that creates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectKind {
    /// A symmetric array, created by `alloc` or one of its variants.
    Array,
    /// A shared array, with relaxed accesses by any PE.
    SharedArray,
    /// A distributed array, whose discipline decides which PEs may access it and how.
    DistributedArray,
    /// The locks of the parts of a distributed array.
    PartLocks,
    Semaphores,
    SplitBarrier,
    Lock,
    Foundry,
}

impl ObjectKind {
    const ALL: [ObjectKind; 8] = [
        ObjectKind::Array,
        ObjectKind::SharedArray,
        ObjectKind::DistributedArray,
        ObjectKind::PartLocks,
        ObjectKind::Semaphores,
        ObjectKind::SplitBarrier,
        ObjectKind::Lock,
        ObjectKind::Foundry,
    ];

    /// The kind with a code, which is its index in the list.
    pub fn from_code(code: u64) -> Option<ObjectKind> {
        ObjectKind::ALL.get(usize::try_from(code).ok()?).copied()
    }

    pub fn code(self) -> u64 {
        self as u64
    }

    /// The name of the call that creates such an object, for messages; `plain` is the name for symmetric
    /// arrays.
    pub fn call(self, plain: &'static str) -> &'static str {
        match self {
            ObjectKind::Array => plain,
            ObjectKind::SharedArray => "shared_array",
            ObjectKind::DistributedArray => "distributed_array",
            ObjectKind::PartLocks => "the locks of into_locked",
            ObjectKind::Semaphores => "semaphores",
            ObjectKind::SplitBarrier => "split_barrier",
            ObjectKind::Lock => "lock",
            ObjectKind::Foundry => "foundry",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list() {
        for (place, kind) in ObjectKind::ALL.into_iter().enumerate() {
            assert_eq!((kind.code(), ObjectKind::from_code(place as u64)), (place as u64, Some(kind)));
        }
        assert_eq!(ObjectKind::from_code(ObjectKind::ALL.len() as u64), None);
    }
}
