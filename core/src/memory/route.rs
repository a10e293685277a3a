//! The route from this PE to another PE, through mapped memory or over the network, and the executor of
//! atomics. Both are decided only here.
//!
//! Invariant: atomics on words of one kind have one executor in the whole job, as a processor and a network
//! card are not atomic with each other. If any PE maps another one's memory, processors execute: an atomic
//! for a PE that is not mapped is a message, which that PE's progress serves. Only where no PE maps another
//! may the fabric execute, and then also a PE's atomics on itself: there a PE reaches itself over the
//! network.

use crate::Pe;
use pelago_fabric::AtomicKind;

/// The route to a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Its memory is mapped here.
    Mapped,
    /// Over the network.
    Net,
}

/// The executor of an atomic on a PE's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The calling PE's processor.
    Here,
    /// The fabric.
    Fabric,
    /// The target's processor, which receives a request.
    Target,
}

/// Which PEs map each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All PEs: there is no network.
    All,
    /// The PEs of one node.
    Nodes,
    /// None: all PEs, including the PE itself, are reached over the network.
    None,
}

/// The routes of a world.
#[derive(Clone, Debug)]
pub struct Routes {
    me: Pe,
    reach: Reach,
    /// The node of each PE, from 0, in the order of their lowest PEs.
    nodes: Box<[u32]>,
}

impl Routes {
    /// The routes of PE `me` in a job whose PEs are on these nodes, numbered from 0. Where every PE is alone
    /// on its node, none maps another.
    pub fn new(me: Pe, reach: Reach, nodes: Box<[u32]>) -> Routes {
        let is_shared = nodes.iter().max().is_none_or(|&last| (last as usize) + 1 < nodes.len());
        let reach = if reach == Reach::Nodes && !is_shared { Reach::None } else { reach };
        Routes { me, reach, nodes }
    }

    /// Bytes of the nodes of a job's PEs.
    pub const fn table_bytes(n_pes: usize) -> usize {
        n_pes * size_of::<u32>()
    }

    /// The route to `pe`.
    #[inline]
    pub fn to(&self, pe: Pe) -> Route {
        match self.reach {
            Reach::All => Route::Mapped,
            Reach::Nodes if self.nodes[pe] == self.nodes[self.me] => Route::Mapped,
            Reach::Nodes | Reach::None => Route::Net,
        }
    }

    /// The node of a PE.
    pub fn node(&self, pe: Pe) -> u32 {
        self.nodes[pe]
    }

    /// Whether every PE is mapped.
    pub fn are_all_mapped(&self) -> bool {
        self.reach == Reach::All
    }

    /// A number that is the same at all PEs that map each other, and differs between other PEs.
    pub fn neighbourhood(&self) -> u64 {
        self.neighbourhood_of(self.me).into()
    }

    /// The same number of another PE.
    pub fn neighbourhood_of(&self, pe: Pe) -> u32 {
        match self.reach {
            Reach::All => 0,
            Reach::Nodes => self.nodes[pe],
            Reach::None => pe as u32,
        }
    }

    /// A number that encodes which PEs map each other, so that PEs can compare it.
    pub fn code(&self) -> usize {
        self.reach as usize
    }

    /// The executor of an atomic of `kind` on `pe`'s memory; `executes` returns whether the fabric executes a
    /// kind.
    pub fn executor(&self, pe: Pe, kind: AtomicKind, executes: impl FnOnce(AtomicKind) -> bool) -> Executor {
        match self.reach {
            Reach::None if executes(kind) => Executor::Fabric,
            Reach::None if pe == self.me => Executor::Here,
            _ => match self.to(pe) {
                Route::Mapped => Executor::Here,
                Route::Net => Executor::Target,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_executor_for_a_word() {
        let kind = AtomicKind::U64;
        use Executor::{Fabric, Here, Target};
        for (reach, executes, expected) in [
            (Reach::All, true, [Here, Here, Here]),
            (Reach::Nodes, true, [Here, Here, Target]),
            (Reach::Nodes, false, [Here, Here, Target]),
            (Reach::None, true, [Fabric, Fabric, Fabric]),
            (Reach::None, false, [Here, Target, Target]),
        ] {
            let routes = Routes::new(0, reach, [0, 0, 1].into());
            let executors = [0, 1, 2].map(|pe| routes.executor(pe, kind, |_| executes));
            assert_eq!(executors, expected, "{reach:?}, {executes}");
        }
    }

    #[test]
    fn pes_of_one_node_map_each_other() {
        let routes = |reach, nodes: &[u32]| {
            let routes = Routes::new(1, reach, nodes.into());
            let mapped: Vec<_> = (0..nodes.len()).filter(|&pe| routes.to(pe) == Route::Mapped).collect();
            (mapped, routes.neighbourhood(), routes.are_all_mapped())
        };
        assert_eq!(routes(Reach::Nodes, &[0, 1, 0, 1]), (vec![1, 3], 1, false));
        assert_eq!(routes(Reach::Nodes, &[0, 1, 2, 3]), (vec![], 1, false), "each is alone on its node");
        assert_eq!(routes(Reach::None, &[0, 0]), (vec![], 1, false));
        assert_eq!(routes(Reach::All, &[0, 0]), (vec![0, 1], 0, true));
    }
}
