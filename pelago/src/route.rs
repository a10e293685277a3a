//! How this PE reaches another: through mapped memory or over the net; and who executes atomics. This is the
//! only place that decides either.
//!
//! Invariant: atomics on words of one kind have one executor in the whole job, as a processor and a network
//! card are not atomic with each other. If any PE maps another one's memory, processors execute: an atomic
//! for a PE that is not mapped is a message, which that PE's progress serves. Only where no PE maps another
//! may the fabric execute, and then also a PE's atomics on itself.

use crate::Pe;
use pelago_boot::RouteKind;
use pelago_fabric::AtomicKind;

/// How a PE is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Its memory is mapped here.
    Mapped,
    /// Over the net.
    Net,
}

/// Who executes an atomic on a PE's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    /// This processor.
    Here,
    /// The fabric.
    Fabric,
    /// The target's processor, asked by a message.
    Target,
}

/// The routes of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routes {
    me: Pe,
    all: Route,
}

impl Routes {
    /// The routes of PE `me` in a job whose PEs are all on one node.
    pub(crate) fn new(me: Pe, kind: RouteKind) -> Routes {
        let all = match kind {
            RouteKind::Auto => Route::Mapped,
            RouteKind::Net => Route::Net,
        };
        Routes { me, all }
    }

    /// How `pe` is reached.
    pub(crate) fn to(&self, _pe: Pe) -> Route {
        self.all
    }

    /// Whether every PE is mapped.
    pub(crate) fn are_all_mapped(&self) -> bool {
        self.all == Route::Mapped
    }

    /// Who executes an atomic of `kind` on `pe`'s memory; `executes` says which kinds the fabric does.
    pub(crate) fn executor(
        &self,
        pe: Pe,
        kind: AtomicKind,
        executes: impl FnOnce(AtomicKind) -> bool,
    ) -> Executor {
        match self.all {
            Route::Mapped => Executor::Here,
            Route::Net if executes(kind) => Executor::Fabric,
            Route::Net if pe == self.me => Executor::Here,
            Route::Net => Executor::Target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_executor_for_a_word() {
        let kind = AtomicKind::U64;
        for (routes, executes, expected) in [
            (RouteKind::Auto, true, [Executor::Here, Executor::Here]),
            (RouteKind::Net, true, [Executor::Fabric, Executor::Fabric]),
            (RouteKind::Net, false, [Executor::Here, Executor::Target]),
        ] {
            let executor = |pe| Routes::new(0, routes).executor(pe, kind, |_| executes);
            assert_eq!([executor(0), executor(1)], expected, "{routes:?}, {executes}");
        }
    }
}
