//! All-gather by recursive doubling: in round k each rank exchanges all its blocks with the rank whose number
//! differs in bit k. For n a power of two.
//!
//! Cost: log2 n rounds, log2 n messages from each rank; each rank receives n - 1 blocks.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use crate::algorithm::{Algorithm, Fold, Graph};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "recursive_doubling",
    summary: "in round k an exchange with the rank that differs in bit k",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::None,
    graph: Graph::Doubling,
    restriction,
    build,
};

fn restriction(shape: &Shape) -> Option<&'static str> {
    (!shape.n.is_power_of_two()).then_some("the number of PEs must be a power of two")
}

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, me) = (Layout::of(shape), shape.rank);
    if shape.n > 1 {
        layout.put_own(b, me, me ^ 1, 0);
    }
    layout.copy_own(b, me);
    for round in 0..shape.n.ilog2() as usize {
        let size = 1 << round;
        let partner = me ^ size;
        if round > 0 {
            let first = me & !(size - 1);
            layout.pass_on(b, first..first + size, partner, round);
        }
        b.wait(partner, round);
    }
}
