//! The Cholesky factorisation of a symmetric positive definite matrix over a grid of PEs. Invariant: a run is
//! reported as verified only if L L^T, applied to a random vector, agrees with the matrix within the bound on
//! rounding errors. Source: Choi et al., "The design and implementation of the ScaLAPACK LU, QR, and Cholesky
//! factorization routines", 1996.

use std::process::ExitCode;

use clap::{Parser, value_parser};
use pelago::prelude::*;
use thiserror::Error;

use self::factorisation::Factorisation;
use self::panel::Panels;
use self::transport::Transport;
use crate::choice::{Choice, Named};
use crate::entry;
use crate::linear::KernelName;
use crate::linear::elements::ORDER_MAX;
use crate::linear::grid::Grid;
use crate::linear::kernel::Kernel;
use crate::linear::layout::Layout;
use crate::linear::processor::Processor;
use crate::linear::report::{Fingerprint, Outcome, Report, Subject, Way};
use crate::rate::timed;
use crate::report::tell;
use crate::room::{self, Need};

mod collectives;
mod factorisation;
mod one_sided;
mod panel;
mod transport;
mod verify;

const NAME: &str = "cholesky";
const SUBJECT: Subject = Subject { app: NAME, algorithm: "Cholesky", bound: "4 (n + 1) u |L| |L^T| |x|" };

/// Factor a random symmetric positive definite matrix into L L^T over a grid of PEs, and verify the factor.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N cholesky",
    after_help = "\
        Each PE computes with one thread. The exit status is 0 only if the factor is verified. OpenBLAS is\n\
        opened at run time; the kernel rust needs no library.\n\n\
        Examples:\n  \
        pelago run -n 2 cholesky                              order 512 on two PEs, by signals and gets\n  \
        pelago run -n 2 --bind cholesky --n 2048 --transport all    both transports, one after the other\n  \
        pelago run -n 6 cholesky --grid 3x2 --block 64        another grid and shorter blocks\n  \
        pelago run -n 2 cholesky --diagonal 5                 a matrix that is not definite: an error\n  \
        pelago run -n 2 cholesky --kernel openblas --json     one JSON object, for programs"
)]
struct Args {
    /// The order of the matrix
    #[arg(long, default_value = "512", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=ORDER_MAX as u64))]
    n: u64,
    /// The order of the blocks that are distributed; the width of a panel
    #[arg(long, default_value = "128", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=ORDER_MAX as u64))]
    block: u64,
    /// Rows and columns of PEs; nearly square if not given
    #[arg(long, value_name = "PRxPC", value_parser = Grid::from_name)]
    grid: Option<Grid>,
    /// How panels come: one-sided, by signals and gets; collectives, by broadcasts and all-gathers; all runs
    /// each of them
    #[arg(long, default_value = "one-sided", value_parser = Choice::<Transport>::from_name)]
    transport: Choice<Transport>,
    /// The library that computes on a PE: rust, the crate matrixmultiply; openblas; all runs each of them
    #[arg(long, default_value = "rust", value_parser = Choice::<KernelName>::from_name)]
    kernel: Choice<KernelName>,
    /// The elements of the diagonal; the order if not given, which makes the matrix positive definite
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true, value_parser = finite)]
    diagonal: Option<f64>,
    /// How often the factorisation is timed, after one that is not
    #[arg(long, value_name = "TIMES", default_value = "3", allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Speed of a PE in a simulation, where time is virtual
    #[arg(long, value_name = "GFLOPS", default_value_t = 50.0, value_parser = entry::positive)]
    simulated_gflops: f64,
    /// Print one JSON object a run and nothing else
    #[arg(long)]
    json: bool,
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "this is not a number".to_owned())
}

/// The matrix has no factor.
#[derive(Debug, Error)]
#[error(
    "the matrix is not positive definite: its leading block up to column {column} of {n} is not (columns \
     count from 0); --diagonal {n} makes it so"
)]
struct NotDefinite {
    column: usize,
    n: usize,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let grid = match Grid::choose(args.grid, world.n_pes()) {
            Ok(grid) => grid,
            Err(other) => return Ok(entry::refuse(world, NAME, &other)),
        };
        let layout = Layout::new(args.n as usize, args.block as usize, grid, world.my_pe());
        if let Err(too_large) = room::check(world, need(&layout), |_| "take a smaller --n".to_owned())? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let mut is_verified = true;
        for kernel in args.kernel.all() {
            let kernel = match kernel.open(world)? {
                Ok(kernel) => kernel,
                Err(reason) => return Ok(entry::refuse(world, NAME, &reason)),
            };
            for transport in args.transport.all() {
                let report = match measure(world, &args, layout, (transport, kernel))? {
                    Ok(report) => report,
                    Err(not_definite) => return Ok(entry::refuse(world, NAME, &not_definite)),
                };
                tell(world, &report, args.json)?;
                is_verified &= report.verified;
            }
        }
        Ok(if is_verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The memory of a PE, of the transport that needs more: stored panels or slots in the symmetric heap; the
/// matrix, its copy for the check, and copies of panels outside of it.
fn need(layout: &Layout) -> Need {
    let panels = Panels { layout: *layout };
    let bytes = |elements: usize| elements as u64 * size_of::<f64>() as u64;
    let stored =
        one_sided::store_lens(&panels).iter().sum::<usize>() + layout.blocks() * (1 + layout.grid.rows);
    let slots = collectives::slot_lens(&panels).iter().sum::<usize>();
    Need {
        what: format!("a matrix of order {}", layout.n),
        heap_bytes: bytes(stored.max(slots) + 2 * layout.n),
        private_bytes: bytes(2 * layout.longest_part() + slots + 8 * layout.n),
    }
}

/// Collective: one run and its verification.
fn measure(
    world: &World,
    args: &Args,
    layout: Layout,
    (transport, kernel): (Transport, Kernel),
) -> anyhow::Result<Result<Report, NotDefinite>> {
    let (n, processor) = (layout.n, Processor::new(world, kernel, args.simulated_gflops));
    let diagonal = args.diagonal.unwrap_or(n as f64);
    let mut factorisation = Factorisation::new(world, layout, transport)?;
    let mut times = Vec::new();
    for _ in 0..=args.repeat {
        factorisation.fill(diagonal);
        let mut factored = Ok(());
        times.push(timed(world, || {
            factored = factorisation.run(&processor)?;
            Ok(())
        })?);
        if let Err(column) = factored {
            return Ok(Err(NotDefinite { column, n }));
        }
    }
    let check = verify::check(world, &layout, &factorisation, diagonal)?;
    let (way, n) = (Way::Transport(transport.name()), layout.n as f64);
    let (operations, times) = (n * n * n / 3.0, &times[1..]);
    let (residual, fingerprint) = (check.residual, Fingerprint::LogDeterminant(check.log_determinant));
    let outcome = Outcome { way, kernel, operations, times, residual, fingerprint };
    Ok(Ok(Report::new(&SUBJECT, &layout, outcome)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([NAME].iter().chain(args))
    }

    #[test]
    fn arguments_have_defaults_and_are_read() {
        let default = parse(&[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((default.n, default.block, default.grid, default.repeat), (512, 128, None, 3));
        assert_eq!((default.transport, default.diagonal), (Choice::One(Transport::OneSided), None));
        let line = "--n 7 --block 3 --grid 2x3 --transport collectives --kernel all --diagonal -1.5 --json";
        let given = parse(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.n, given.block, given.grid), (7, 3, Some(Grid { rows: 2, columns: 3 })));
        assert_eq!((given.transport, given.kernel), (Choice::One(Transport::Collectives), Choice::All));
        assert_eq!((given.diagonal, given.json), (Some(-1.5), true));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (
                ["--transport", "onesided"],
                "the transports are one-sided, collectives, all; did you mean one-sided?",
            ),
            (["--kernel", "blas"], "the kernels are rust, openblas, all"),
            (["--n", "0"], "1..=268435456"),
            (["--block", "-1"], "--block"),
            (["--grid", "2x"], "as 2x3"),
            (["--diagonal", "inf"], "this is not a number"),
            (["--diagonal", "large"], "this is not a number"),
            (["--repeat", "0"], "1..=10000"),
        ] {
            let message = parse(&args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn a_matrix_that_is_not_definite_is_told_with_its_column() {
        let message = NotDefinite { column: 7, n: 30 }.to_string();
        for part in ["not positive definite", "up to column 7 of 30", "--diagonal 30"] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn the_need_grows_with_the_square_of_the_order() {
        let need = |n| need(&Layout::new(n, 100, Grid { rows: 2, columns: 2 }, 0));
        let (small, large) = (need(1000), need(10_000));
        assert!(large.heap_bytes > 30 * small.heap_bytes && large.private_bytes > 30 * small.private_bytes);
        assert!(need(ORDER_MAX).heap_bytes > 1 << 50);
    }
}
