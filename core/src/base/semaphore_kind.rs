//! Kinds of semaphores, as flags, and the operations that implement each. Invariant: the kind is the same at
//! all PEs, which compare it when they create the semaphores.

/// The kind of a semaphore: whether it counts its posts, and how many PEs post and wait. Fewer PEs make it
/// cheaper. Start with [`integer`](SemaphoreKind::integer) or [`boolean`](SemaphoreKind::boolean), and add
/// [`single_producer`](SemaphoreKind::single_producer) and
/// [`single_consumer`](SemaphoreKind::single_consumer).
///
/// | counts | producer | consumer | a post is | a successful wait is |
/// |---|---|---|---|---|
/// | integer, boolean | single | single | a put of the number of posts so far | a load only |
/// | integer, boolean | multiple | single | an atomic add | a load only |
/// | integer | any | multiple | an atomic add | an atomic fetch and a compare-and-swap |
/// | boolean | any | multiple | an atomic set to 1 | an atomic fetch and a swap with 0 |
///
/// A single consumer is the PE that the semaphore has affinity to: it keeps its count of successful waits in
/// private memory, so that it writes nothing back. `memput_signal` is an atomic of the same kind after the
/// data, and an atomic add where a post is a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SemaphoreKind {
    pub is_boolean: bool,
    pub has_one_producer: bool,
    pub has_one_consumer: bool,
}

impl SemaphoreKind {
    /// A semaphore that counts its posts; any number of PEs post and wait (UPC's `UPC_SEM_INTEGER`).
    pub const fn integer() -> SemaphoreKind {
        SemaphoreKind { is_boolean: false, has_one_producer: false, has_one_consumer: false }
    }

    /// A semaphore that has been posted or not; posts before the next wait count as one. Any number of PEs
    /// post and wait (UPC's `UPC_SEM_BOOLEAN`).
    pub const fn boolean() -> SemaphoreKind {
        SemaphoreKind { is_boolean: true, ..SemaphoreKind::integer() }
    }

    /// The same kind, with one producer: one PE, which may be any, makes all posts to a semaphore during its
    /// lifetime (UPC's `UPC_SEM_SPRODUCER`).
    pub const fn single_producer(self) -> SemaphoreKind {
        SemaphoreKind { has_one_producer: true, ..self }
    }

    /// The same kind, with one consumer: only the PE that the semaphore has affinity to waits for it (UPC's
    /// `UPC_SEM_SCONSUMER`).
    pub const fn single_consumer(self) -> SemaphoreKind {
        SemaphoreKind { has_one_consumer: true, ..self }
    }

    /// Whether a post is a put.
    pub fn posts_by_put(self) -> bool {
        self.has_one_producer && self.has_one_consumer
    }

    pub fn code(self) -> u64 {
        let flags = [self.is_boolean, self.has_one_producer, self.has_one_consumer];
        flags.iter().fold(0, |code, &flag| code << 1 | u64::from(flag))
    }

    /// Describes the kind with a code, for messages.
    pub fn describe(code: u64) -> String {
        let of = |bit: u64, yes: &'static str, no: &'static str| if code & bit != 0 { yes } else { no };
        let producers = of(2, "one producer", "many producers");
        format!("{}, {producers}, {}", of(4, "boolean", "integer"), of(1, "one consumer", "many consumers"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_kinds_apart() {
        let mut codes = Vec::new();
        for kind in [SemaphoreKind::integer(), SemaphoreKind::boolean()] {
            codes.extend([kind, kind.single_producer(), kind.single_consumer()].map(SemaphoreKind::code));
            codes.push(kind.single_producer().single_consumer().code());
        }
        codes.sort_unstable();
        assert_eq!(codes, (0..8).collect::<Vec<_>>());
        let words = SemaphoreKind::describe(SemaphoreKind::boolean().single_consumer().code());
        assert_eq!(words, "boolean, many producers, one consumer");
    }
}
