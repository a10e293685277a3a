//! Progress bars. Invariant: only PE 0 draws a bar, and only if it has a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use pelago::prelude::*;

/// A bar for `len` steps, which `what` names; it shows the number of finished steps.
pub(crate) fn bar(world: &World, what: &'static str, len: u64) -> anyhow::Result<ProgressBar> {
    if world.my_pe() != 0 || !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {human_pos}/{human_len}, {eta} left")?;
    Ok(ProgressBar::new(len).with_style(style).with_message(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let hidden = spmd(2, |world| {
            let bar = bar(world, "updates", 10).unwrap();
            bar.set_position(10);
            bar.finish_and_clear();
            bar.is_hidden() || std::io::stderr().is_terminal()
        });
        assert_eq!(hidden.unwrap(), [true, true]);
    }
}
