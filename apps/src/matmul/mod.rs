//! Matrix multiplication over a grid of PEs by SUMMA. Invariant: a run is reported as verified only if the
//! product, applied to a random vector, agrees with its operands within the bound on rounding errors. Source:
//! van de Geijn, Watts, "SUMMA: Scalable Universal Matrix Multiplication Algorithm", 1997.

use std::process::ExitCode;

use clap::{Parser, value_parser};
use pelago::prelude::*;

use self::summa::Multiplication;
use self::variant::Variant;
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

mod panels;
mod summa;
mod variant;
mod verify;

const NAME: &str = "matmul";
const SUBJECT: Subject = Subject { app: NAME, algorithm: "SUMMA", bound: "4 (n + 1) u |A| |B| |x|" };

/// SUMMA: multiply random matrices over a grid of PEs, and verify the product.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N matmul",
    after_help = "\
        Each PE computes with one thread. The exit status is 0 only if the product is verified. OpenBLAS is\n\
        opened at run time; the kernel rust needs no library.\n\n\
        Examples:\n  \
        pelago run -n 2 matmul                               order 512 on two PEs, by gets\n  \
        pelago run -n 2 --bind matmul --n 2048 --variant all    all variants, one after the other\n  \
        pelago run -n 6 matmul --grid 3x2 --block 64         another grid and shorter blocks\n  \
        pelago run -n 2 matmul --kernel openblas --json      one JSON object a variant, for programs"
)]
struct Args {
    /// The order of the matrices
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
    /// How panels come: blocking broadcasts; prefetch, non-blocking ones a step ahead; one-sided, gets a step
    /// ahead; all runs each of them
    #[arg(long, default_value = "one-sided", value_parser = Choice::<Variant>::from_name)]
    variant: Choice<Variant>,
    /// The library that multiplies on a PE: rust, the crate matrixmultiply; openblas; all runs each of them
    #[arg(long, default_value = "rust", value_parser = Choice::<KernelName>::from_name)]
    kernel: Choice<KernelName>,
    /// How often the multiplication is timed, after one that is not
    #[arg(long, value_name = "TIMES", default_value = "3", allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Speed of a PE in a simulation, where time is virtual
    #[arg(long, value_name = "GFLOPS", default_value_t = 50.0, value_parser = entry::positive)]
    simulated_gflops: f64,
    /// Print one JSON object a variant and nothing else
    #[arg(long)]
    json: bool,
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
            for variant in args.variant.all() {
                let report = measure(world, &args, layout, (variant, kernel))?;
                tell(world, &report, args.json)?;
                is_verified &= report.verified;
            }
        }
        Ok(if is_verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The memory of a PE: A, B and the slots in the symmetric heap; C, copies of panels and, for the check,
/// copies of A and B outside of it.
fn need(layout: &Layout) -> Need {
    let bytes = |elements: usize| elements as u64 * size_of::<f64>() as u64;
    let (part, slots) = (bytes(layout.longest_part()), bytes(summa::slot_lens(layout).iter().sum()));
    Need {
        what: format!("matrices of order {}", layout.n),
        heap_bytes: 2 * part + slots + bytes(2 * layout.n),
        private_bytes: 3 * part + slots + bytes(8 * layout.n),
    }
}

/// Collective: one run and its verification.
fn measure(
    world: &World,
    args: &Args,
    layout: Layout,
    (variant, kernel): (Variant, Kernel),
) -> anyhow::Result<Report> {
    let processor = Processor::new(world, kernel, args.simulated_gflops);
    let mut multiplication = Multiplication::new(world, layout)?;
    let mut times = Vec::new();
    for _ in 0..=args.repeat {
        times.push(timed(world, || multiplication.run(&processor, variant))?);
    }
    let check = verify::check(world, &layout, &multiplication)?;
    let (way, n) = (Way::Variant(variant.name()), layout.n as f64);
    let (operations, times) = (2.0 * n * n * n, &times[1..]);
    let (residual, fingerprint) = (check.residual, Fingerprint::Checksum(check.checksum));
    let outcome = Outcome { way, kernel, operations, times, residual, fingerprint };
    Ok(Report::new(&SUBJECT, &layout, outcome))
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
        assert_eq!(default.variant, Choice::One(Variant::OneSided));
        assert_eq!(default.kernel, Choice::One(KernelName::Rust));
        let line = "--n 7 --block 3 --grid 2x3 --variant all --kernel openblas --repeat 1 --json";
        let given = parse(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.n, given.block, given.grid), (7, 3, Some(Grid { rows: 2, columns: 3 })));
        assert_eq!((given.variant, given.kernel), (Choice::All, Choice::One(KernelName::OpenBlas)));
        assert_eq!((given.repeat, given.json), (1, true));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (
                ["--variant", "prefech"],
                "the variants are blocking, prefetch, one-sided, all; did you mean prefetch?",
            ),
            (["--kernel", "blas"], "the kernels are rust, openblas, all"),
            (["--n", "0"], "1..=268435456"),
            (["--n", "-5"], "--n"),
            (["--block", "0"], "1..=268435456"),
            (["--grid", "2by3"], "as 2x3"),
            (["--grid", "0x2"], "as 2x3"),
            (["--repeat", "0"], "1..=10000"),
            (["--simulated-gflops", "0"], "this is not a number from 1e-6 to 1e12"),
        ] {
            let message = parse(&args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn the_need_grows_with_the_square_of_the_order() {
        let need = |n| need(&Layout::new(n, 100, Grid { rows: 1, columns: 2 }, 0));
        let (small, large) = (need(1000), need(10_000));
        // A and B of 1000 x 500, and three panels of 1000 x 100 and 100 x 500.
        assert_eq!(small.heap_bytes, 8 * (2 * 500_000 + 3 * 150_000 + 2000));
        assert!(large.heap_bytes > 70 * small.heap_bytes && large.private_bytes > 70 * small.private_bytes);
        assert!(need(ORDER_MAX).heap_bytes > 1 << 50);
    }
}
