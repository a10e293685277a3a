//! The memory that a run needs, and the classes that fit in the memory of a node. Invariant: a class that is
//! reported to fit does fit.

use num_complex::Complex64;

use super::classes::{CLASSES, Class};
use super::grid::GridChoice;
use super::layout::Layout;
use crate::room::{Need, Supply};

/// The memory for a grid with the distribution of `layout`: in the symmetric heap one inbox a round and the
/// outbox of a transport that has one, outside of it field and spectrum. `what` names the grid.
pub(super) fn need(what: String, layout: &Layout, outboxes: u64) -> Need {
    let field_bytes = layout.len() as u64 * size_of::<Complex64>() as u64;
    let heap_bytes = (layout.rounds() as u64 + outboxes) * field_bytes;
    Need { what, heap_bytes, private_bytes: 2 * field_bytes }
}

/// The advice to the user if the memory of the node is not sufficient.
pub(super) fn smaller(layout: &Layout, outboxes: u64, supply: &Supply) -> String {
    let fits = |class: &&Class| {
        let choice = layout.grid.map(GridChoice::Given);
        Layout::chosen(class.problem, layout.pes, layout.me, choice)
            .is_ok_and(|layout| need(String::new(), &layout, outboxes).is_on_node(supply))
    };
    match CLASSES.iter().rev().find(fits) {
        Some(class) => format!("the largest class that fits is {}", class.name),
        None => "no class fits".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;
    use crate::room::{self, TooLarge};

    const GIB: u64 = 1 << 30;

    /// Of PEs on one node, with a free block of the heap and with memory.
    fn judge_layout(name: &str, layout: Layout, outboxes: u64, supply: [u64; 2]) -> Result<(), TooLarge> {
        let [heap_free_bytes, node_bytes] = supply;
        let supply = Supply { heap_free_bytes, node_bytes, node_pes: layout.pes };
        let need = need(format!("class {name}"), &layout, outboxes);
        room::judge(need, &supply, |supply| smaller(&layout, outboxes, supply))
    }

    fn judge(name: &str, pes: usize, supply: [u64; 2]) -> Result<(), TooLarge> {
        let class = Class::from_name(name).unwrap();
        let layout = Layout::new(class.problem, pes, 0).unwrap();
        judge_layout(name, layout, 0, supply)
    }

    #[test]
    fn a_class_that_fits_is_let_through() {
        judge("C", 2, [2 * GIB, 7 * GIB]).unwrap();
    }

    #[test]
    fn a_class_too_large_for_the_node_names_need_supply_and_what_fits() {
        let message = |node_bytes| judge("D", 2, [64 * GIB, node_bytes]).unwrap_err().to_string();
        let some = message(16 * GIB);
        for part in
            ["class D needs 16 GiB of each", "32 GiB beside", "2 PEs of a node is 96 GiB", "16 GiB available"]
        {
            assert!(some.contains(part), "`{part}` is not in: {some}");
        }
        assert!(some.ends_with("; the largest class that fits is C"), "{some}");
        assert!(message(1 << 20).ends_with("; no class fits"));
    }

    #[test]
    fn a_heap_too_small_names_the_setting() {
        let message = judge("C", 1, [GIB, 16 * GIB]).unwrap_err().to_string();
        assert!(message.ends_with("set PELAGO_HEAP_SIZE=2050m"), "{message}");
    }

    #[test]
    fn two_rounds_and_an_outbox_need_more_of_the_heap() {
        let class = Class::from_name("C").unwrap();
        let supply = [GIB, 24 * GIB];
        for (outboxes, heap) in [(0, "2 GiB"), (1, "3 GiB")] {
            let layout = Layout::on_grid(class.problem, Grid { ty: 1, tz: 2 }, 0).unwrap();
            let message = judge_layout("C", layout, outboxes, supply).unwrap_err().to_string();
            assert!(message.contains(&format!("needs {heap} of each PE's symmetric heap")), "{message}");
        }
        let layout = Layout::on_grid(class.problem, Grid { ty: 64, tz: 1 }, 0).unwrap();
        let small = [GIB, 64 << 20];
        let message = judge_layout("C", layout, 0, small).unwrap_err().to_string();
        assert!(message.ends_with("; the largest class that fits is W"), "{message}");
    }
}
