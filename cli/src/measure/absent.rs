//! The commands of measurements in a program that has none: they accept all arguments and say how to get a
//! program that measures.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

macro_rules! absent {
    ($($(#[$about:meta])* $name:ident)+) => {$(
        $(#[$about])*
        #[derive(Args)]
        #[command(after_help = REMEDY, disable_help_flag = true)]
        pub struct $name {
            #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
            words: Vec<OsString>,
        }

        impl $name {
            /// Returns the error.
            pub fn execute(self) -> anyhow::Result<ExitCode> {
                bail!(REMEDY);
            }
        }
    )+};
}

absent! {
    /// Measure the runtime on this machine (not in this build)
    Bench
    /// Repeat the tables and figures of the papers (not in this build)
    PaperCommand
    /// Fit a machine file to measured times (not in this build)
    Measure
}

/// The options of `pelago tune` without a subcommand: any.
#[derive(Args)]
pub struct Here {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Here {
    /// Returns the error.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        bail!(REMEDY);
    }
}

const REMEDY: &str = "this pelago was built without its measurements; build it with them: \
                      cargo run --release --features bench -- ..., or: \
                      cargo install --locked --path cli --profile dist --features bench";
