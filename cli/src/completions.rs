//! `pelago completions`: prints what a shell needs to complete the words of the command. Invariant: it is
//! made of the same definition as the help, so they cannot disagree.

use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};
use pelago_boot::print;

/// Print the completions of this command for a shell
///
/// `cargo xtask install` and the packages install them for bash, zsh and fish.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  pelago completions bash > ~/.local/share/bash-completion/completions/pelago
  pelago completions zsh > ~/.zfunc/_pelago
  pelago completions fish > ~/.config/fish/completions/pelago.fish";

impl Completions {
    /// Prints the completions.
    pub fn execute(self, mut command: clap::Command) -> anyhow::Result<ExitCode> {
        let mut text = Vec::new();
        generate(self.shell, &mut command, "pelago", &mut text);
        print(&String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
