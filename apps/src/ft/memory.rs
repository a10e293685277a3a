//! The memory that a run needs, and the classes that fit in the memory of a node. Invariant: a class that is
//! reported to fit does fit.

use num_complex::Complex64;

use super::classes::{CLASSES, Class};
use super::layout::Layout;
use crate::room::{Need, Supply};

/// The memory for a grid with the distribution of `layout`: the inbox in the symmetric heap, field and
/// spectrum outside of it. `what` names the grid.
pub(super) fn need(what: String, layout: &Layout) -> Need {
    let field_bytes = layout.len() as u64 * size_of::<Complex64>() as u64;
    Need { what, heap_bytes: field_bytes, private_bytes: 2 * field_bytes }
}

/// The advice to the user if the memory of the node is not sufficient.
pub(super) fn smaller(layout: &Layout, supply: &Supply) -> String {
    let fits = |class: &&Class| {
        Layout::new(class.problem, layout.pes, layout.me)
            .is_ok_and(|layout| need(String::new(), &layout).is_on_node(layout.pes, supply))
    };
    match CLASSES.iter().rev().find(fits) {
        Some(class) => format!("the largest class that fits is {}", class.name),
        None => "no class fits".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{self, TooLarge};

    const GIB: u64 = 1 << 30;

    fn judge(name: &str, pes: usize, supply: Supply) -> Result<(), TooLarge> {
        let class = Class::from_name(name).unwrap();
        let layout = Layout::new(class.problem, pes, 0).unwrap();
        room::judge(need(format!("class {name}"), &layout), pes, &supply, |supply| smaller(&layout, supply))
    }

    #[test]
    fn a_class_that_fits_is_let_through() {
        judge("C", 2, Supply { heap_free_bytes: 2 * GIB, node_bytes: 7 * GIB }).unwrap();
    }

    #[test]
    fn a_class_too_large_for_the_node_names_need_supply_and_what_fits() {
        let message = |node_bytes| {
            judge("D", 2, Supply { heap_free_bytes: 64 * GIB, node_bytes }).unwrap_err().to_string()
        };
        let some = message(16 * GIB);
        for part in ["class D needs 16 GiB of each", "32 GiB beside", "2 PEs is 96 GiB", "16 GiB available"] {
            assert!(some.contains(part), "`{part}` is not in: {some}");
        }
        assert!(some.ends_with("; the largest class that fits is C"), "{some}");
        assert!(message(1 << 20).ends_with("; no class fits"));
    }

    #[test]
    fn a_heap_too_small_names_the_setting() {
        let supply = Supply { heap_free_bytes: GIB, node_bytes: 16 * GIB };
        let message = judge("C", 1, supply).unwrap_err().to_string();
        assert!(message.ends_with("set PELAGO_HEAP_SIZE=2050m"), "{message}");
    }
}
