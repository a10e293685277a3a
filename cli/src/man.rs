//! `pelago man`: writes the manual pages of the command and of each subcommand, for those who install it. The
//! help does not list it.
//!
//! Invariant: a page is made of the same definition as the help, and that of the settings of their table, so
//! they cannot disagree.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::info::settings;

/// Write the manual pages of the command to a folder
#[derive(Args)]
pub struct Man {
    /// The folder, which is made if there is none
    folder: PathBuf,
}

impl Man {
    /// Writes a page for the command and for each subcommand that the help lists, and one of the settings.
    pub fn execute(self, mut command: clap::Command) -> anyhow::Result<ExitCode> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        command.build();
        write_pages(&self.folder, &command)?;
        let path = self.folder.join("pelago-settings.7");
        let text = settings::manual_page(&settings::rows());
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(folder: &Path, command: &clap::Command) -> anyhow::Result<()> {
    // `pelago-run` of `pelago run`.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command.clone())?).with_context(|| path.display().to_string())?;
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
            write_pages(folder, subcommand)?;
        }
    }
    Ok(())
}

/// The page of a command. Its examples keep their lines.
fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let has_subcommands = command.get_subcommands().any(|subcommand| !subcommand.is_hide_set());
    let examples = command.get_after_help().map(ToString::to_string);
    let title = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man = clap_mangen::Man::new(command.after_help("").after_long_help(""));
    let man = man.title(title).source(concat!("Pelago ", env!("CARGO_PKG_VERSION"))).manual("Pelago");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    writeln!(page, ".SH ENVIRONMENT\n.BR pelago\\-settings (7)\nlists all variables.")?;
    if let Some(examples) = examples {
        writeln!(page, ".SH EXAMPLES\n.nf")?;
        for line in examples.lines().filter(|line| line.trim() != "Examples:") {
            writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    Ok(page)
}
