//! The applications that the `pelago` binary carries, each a module: a name, a line of what it shows, and a
//! function that runs one PE of it. Invariant: names are unique. The benchmarks have one more, `perf`.

use std::process::ExitCode;

use pelago::prelude::*;

mod bale;
mod bar;
mod buffer;
mod choice;
mod cholesky;
mod collect;
pub mod entry;
mod ft;
mod gups;
mod hash_table;
mod hello;
mod integer_sort;
mod linear;
mod matmul;
mod noop;
mod partition;
mod qtc;
mod rate;
mod report;
mod ring;
mod room;
mod splitmix;
mod stencil;
mod tutorial;

pub use entry::{nearest, print_help};
pub use ft::messages::{FtLines, FtMessages, FtRound, FtSplit, ft_class, ft_lines, ft_process_grid};
pub use ft::skeleton::FtSkeleton;

/// One built-in application.
pub struct App {
    /// The name that the user types after `pelago run`.
    pub name: &'static str,
    /// One line for the list of applications.
    pub about: &'static str,
    /// Runs this PE's part with the arguments after the name. An error is one that occurred on this PE only;
    /// PE 0 prints an error that all PEs have in common once, and the exit code reports it.
    pub run: fn(&World, &[String]) -> anyhow::Result<ExitCode>,
}

/// All built-in applications, by name.
pub fn apps() -> &'static [App] {
    &[
        App {
            name: "cholesky",
            about: "Cholesky factorisation over a grid of PEs, by gets or by collectives, verified",
            run: cholesky::run,
        },
        App {
            name: "ft",
            about: "NAS FT: a 3D FFT over all PEs, verified against NASA's checksums",
            run: ft::run,
        },
        App {
            name: "gups",
            about: "GUPS: random words of a table change, by puts and gets, atomics or messages, verified",
            run: gups::run,
        },
        App {
            name: "hash-table",
            about: "A distributed hash table by aggregated active messages, every answer verified",
            run: hash_table::run,
        },
        App { name: "hello", about: "One line from every PE: who it is and where it runs", run: hello::run },
        App {
            name: "histogram",
            about: "Histogram of random indices in a table over all PEs, three ways, verified",
            run: bale::histogram::run,
        },
        App {
            name: "index-gather",
            about: "Random words of a table over all PEs are got, three ways, verified",
            run: bale::index_gather::run,
        },
        App {
            name: "integer-sort",
            about: "A tutorial: bucket sort of keys over all PEs, by all-to-all and puts, verified",
            run: integer_sort::run,
        },
        App {
            name: "matmul",
            about: "SUMMA: a matrix product over a grid of PEs, by broadcasts or gets, verified",
            run: matmul::run,
        },
        App { name: "noop", about: "Nothing but a start, a barrier and an end", run: noop::run },
        App {
            name: "qtc",
            about: "QTC: quality threshold clustering by a group of PEs that shrinks, verified by a replay",
            run: qtc::run,
        },
        App { name: "ring", about: "A token goes round the ring of PEs by one-sided puts", run: ring::run },
        App {
            name: "stencil",
            about: "A tutorial: Jacobi on a grid in strips, whose edges are put with signals, verified",
            run: stencil::run,
        },
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
