//! The applications that the `pelago` binary carries, each a module: a name, a line of what it shows, and a
//! function that runs one PE of it. Invariant: names are unique, and `apps` is the only list of them.

use std::process::ExitCode;

use pelago::prelude::*;

mod bytes;
mod entry;
mod ft;
mod hello;
mod noop;
pub mod perf;
mod qtc;
mod ring;

pub use bytes::Bytes;
pub use entry::nearest;

/// One built-in application.
pub struct App {
    /// What the user types after `pelago run`.
    pub name: &'static str,
    /// One line for the list of applications.
    pub about: &'static str,
    /// Runs this PE's part with the arguments after the name. An error is one that this PE met alone; what is
    /// wrong alike on all PEs is printed once, by PE 0, and told by the exit code.
    pub run: fn(&World, &[String]) -> anyhow::Result<ExitCode>,
}

/// All built-in applications, by name.
pub fn apps() -> &'static [App] {
    &[
        App {
            name: "ft",
            about: "NAS FT: a 3D FFT over all PEs, verified against NASA's checksums",
            run: ft::run,
        },
        App { name: "hello", about: "One line from every PE: who it is and where it runs", run: hello::run },
        App { name: "noop", about: "Nothing but a start, a barrier and an end", run: noop::run },
        App {
            name: "perf",
            about: "Microbenchmarks as lines of JSON; `pelago bench` makes tables of them",
            run: perf::run,
        },
        App {
            name: "qtc",
            about: "QTC: quality threshold clustering by a group of PEs that shrinks, verified by a replay",
            run: qtc::run,
        },
        App { name: "ring", about: "A token goes round the ring of PEs by one-sided puts", run: ring::run },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(apps().windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
