//! What a run needs of memory, against what there is. Asked before the run allocates, so that a grid too
//! large is a message and not an exhausted machine. Invariant: all PEs judge by the same figures, those of PE
//! 0.

use num_complex::Complex64;
use pelago::prelude::*;
use pelago::{Result, node};
use thiserror::Error;

use super::classes::{CLASSES, Class};
use super::layout::Layout;
use super::solver::collect;
use crate::bytes::Bytes;

/// Symmetric heap for the small arrays beside the inbox, with room for their alignment.
const SMALL_ARRAYS_BYTES: u64 = 64 << 10;

/// What one PE needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    heap_bytes: u64,
    private_bytes: u64,
}

impl Need {
    fn of(layout: &Layout) -> Self {
        let field_bytes = layout.len() as u64 * size_of::<Complex64>() as u64;
        Need { heap_bytes: field_bytes + SMALL_ARRAYS_BYTES, private_bytes: 2 * field_bytes }
    }

    fn bytes(self) -> u64 {
        self.heap_bytes + self.private_bytes
    }
}

/// What there is, in bytes.
#[derive(Clone, Copy, Debug)]
struct Supply {
    /// The largest block free in the symmetric heap of each PE.
    heap_free_bytes: u64,
    /// Available to the processes of the node; the most there can be if that is unknown.
    node_bytes: u64,
}

impl Supply {
    fn meets(&self, need: Need, pes: usize) -> bool {
        need.heap_bytes <= self.heap_free_bytes && need.bytes() * pes as u64 <= self.node_bytes
    }
}

/// The grid does not fit.
#[derive(Debug, Error)]
#[error(
    "{what} needs {per_pe} a PE ({heap} of symmetric heap, {private} of private memory), times {pes} \
     PEs is {total}; the node has {node} available, and {heap_free} of a PE's symmetric heap are free; \
     {remedy}"
)]
pub(super) struct TooLarge {
    what: String,
    pes: usize,
    per_pe: Bytes,
    heap: Bytes,
    private: Bytes,
    total: Bytes,
    node: Bytes,
    heap_free: Bytes,
    remedy: String,
}

/// Collective: whether a grid fits, as `layout` shares it out; all PEs come to the same answer. `what` names
/// the grid.
pub(super) fn check(world: &World, what: &str, layout: &Layout) -> Result<Result<(), TooLarge>> {
    let node_bytes = node::memory_available_bytes().map_or(u64::MAX, |bytes| bytes as u64);
    let own = [world.heap_largest_free_bytes() as u64, node_bytes];
    let of_first = &collect(world, &own)?[0];
    Ok(judge(what, layout, &Supply { heap_free_bytes: of_first[0], node_bytes: of_first[1] }))
}

fn judge(what: &str, layout: &Layout, supply: &Supply) -> Result<(), TooLarge> {
    let (need, pes) = (Need::of(layout), layout.pes);
    if supply.meets(need, pes) {
        return Ok(());
    }
    Err(TooLarge {
        what: what.to_owned(),
        pes,
        per_pe: Bytes(need.bytes()),
        heap: Bytes(need.heap_bytes),
        private: Bytes(need.private_bytes),
        total: Bytes(need.bytes() * pes as u64),
        node: Bytes(supply.node_bytes),
        heap_free: Bytes(supply.heap_free_bytes),
        remedy: remedy(need, layout, supply),
    })
}

/// What the user can do about it.
fn remedy(need: Need, layout: &Layout, supply: &Supply) -> String {
    let heap_mib = need.heap_bytes.div_ceil(1 << 20) + 1;
    if need.bytes() * layout.pes as u64 <= supply.node_bytes {
        return format!("set PELAGO_HEAP_SIZE={heap_mib}m");
    }
    let fits = |class: &&Class| {
        Layout::new(class.problem, layout.pes, layout.me)
            .is_ok_and(|layout| supply.meets(Need::of(&layout), layout.pes))
    };
    match CLASSES.iter().rev().find(fits) {
        Some(class) => format!("the largest class that fits is {}", class.name),
        None => "no class fits".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn judge_named(name: &str, pes: usize, supply: &Supply) -> Result<(), TooLarge> {
        let class = Class::from_name(name).unwrap();
        judge(&format!("class {name}"), &Layout::new(class.problem, pes, 0).unwrap(), supply)
    }

    #[test]
    fn a_class_that_fits_is_let_through() {
        judge_named("C", 2, &Supply { heap_free_bytes: 2 * GIB, node_bytes: 7 * GIB }).unwrap();
    }

    #[test]
    fn a_class_too_large_for_the_node_names_need_supply_and_what_fits() {
        let supply = Supply { heap_free_bytes: 64 * GIB, node_bytes: 16 * GIB };
        let message = judge_named("D", 2, &supply).unwrap_err().to_string();
        for part in
            ["class D needs 48.0 GiB a PE", "times 2 PEs is 96.0 GiB", "16 GiB available", "fits is C"]
        {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn a_heap_too_small_names_the_setting() {
        let supply = Supply { heap_free_bytes: GIB, node_bytes: 16 * GIB };
        let message = judge_named("C", 1, &supply).unwrap_err().to_string();
        assert!(message.contains("1 GiB of a PE's symmetric heap are free"), "{message}");
        assert!(message.ends_with("set PELAGO_HEAP_SIZE=2050m"), "{message}");
    }

    #[test]
    fn all_pes_come_to_the_same_answer() {
        let answers = pelago::Spmd::new(2).heap_bytes(16 << 20).run(|world| {
            ["S", "C"].map(|name| {
                let class = Class::from_name(name).unwrap();
                let layout = Layout::new(class.problem, 2, world.my_pe()).unwrap();
                check(world, &format!("class {name}"), &layout)
                    .unwrap()
                    .map_err(|too_large| too_large.to_string())
            })
        });
        let [first, second] = answers.unwrap().try_into().unwrap();
        assert_eq!(first[0], Ok(()));
        assert!(first[1].as_ref().is_err_and(|message| message.starts_with("class C needs 3.0 GiB a PE")));
        assert_eq!(first, second);
    }
}
