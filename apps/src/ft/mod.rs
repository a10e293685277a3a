//! NAS FT, the Fourier transform benchmark of the NAS Parallel Benchmarks: the heat equation on a periodic
//! box, solved by 3D FFTs whose transpositions are one-sided puts. Invariant: a run is reported as verified
//! only if every checksum agrees with NASA's to 1e-12. Sources: NAS-95-020; NPB 3.4, `FT/ft.f90`; Bell et
//! al., "Optimizing Bandwidth Limited Problems Using One-Sided Communication and Overlap".

use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;
use pelago_boot::out;

use self::classes::{Class, Problem};
use self::layout::Layout;
use self::report::{Comparison, Report};
use self::single::Single;
use self::solver::Run;
use self::variant::Variant;
use crate::bar::bar;
use crate::choice::{Choice, Named};
use crate::entry;
use crate::report::tell;
use crate::room;

mod checksum;
mod classes;
mod columns;
mod evolve;
mod exchange;
mod layout;
mod memory;
#[cfg(test)]
mod naive;
mod phases;
mod prefetch;
mod random;
mod reference;
mod report;
mod single;
mod solver;
mod transform;
mod transposition;
mod variant;

const NAME: &str = "ft";

/// NAS FT: solve the heat equation on a periodic box by 3D FFTs over all PEs, by one-sided puts, and verify
/// the result against NASA's checksums.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N ft",
    after_help = "\
        The number of PEs is a power of two up to the number of z-planes: 64 for class S, 32 for W,\n\
        128 for A, 256 for B, 512 for C. The exit status is 0 only if the run is verified.\n\n\
        Examples:\n  \
        pelago run -n 2 ft                       the smallest class on two PEs\n  \
        pelago run -n 4 ft --class A             a class that leaves the caches\n  \
        pelago run -n 2 ft --class W --variant all    all variants, and a table that compares them\n  \
        pelago run -n 2 ft --class B --json      one JSON object a variant, for programs\n  \
        pelago run -n 2 --bind ft --transform 256x256x128    one 3D FFT, timed alone"
)]
struct Args {
    /// Problem size: S, W, A, B, C, D, E or F, each larger than the one before
    #[arg(long, default_value = "S", value_parser = Class::from_name)]
    class: Class,
    /// How the field crosses the PEs: exchange, all at the end; slabs, plane by plane; pencils, row by row;
    /// all runs and compares them
    #[arg(long, default_value = "slabs", value_parser = Choice::<Variant>::from_name)]
    variant: Choice<Variant>,
    /// Instead of solving, time one forward 3D FFT of this grid, and check it against the definition
    #[arg(long, value_name = "NXxNYxNZ", value_parser = single::grid_from_name, conflicts_with = "class")]
    transform: Option<Problem>,
    /// How often --transform repeats it
    #[arg(long, value_name = "TIMES", default_value = "5", requires = "transform",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Speed of a PE in a simulation, where time is virtual: its Gflop/s in 1D FFTs
    #[arg(long, value_name = "GFLOPS", default_value_t = 1.0, value_parser = entry::positive)]
    simulated_gflops: f64,
    /// Print one JSON object a variant and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let (problem, what) = match args.transform {
            Some(grid) => (grid, format!("the grid {grid}")),
            None => (args.class.problem, format!("class {}", args.class.name)),
        };
        let layout = match Layout::new(problem, world.n_pes(), world.my_pe()) {
            Ok(layout) => layout,
            Err(uneven) => return Ok(entry::refuse(world, NAME, &uneven)),
        };
        let need = memory::need(what, &layout);
        if let Err(too_large) = room::check(world, need, |supply| memory::smaller(&layout, supply))? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let verified = match args.transform {
            Some(_) => transform_alone(world, &args, layout)?,
            None => solve(world, &args, layout)?,
        };
        Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Collective: solves in the requested variants. Returns whether all are verified.
fn solve(world: &World, args: &Args, layout: Layout) -> anyhow::Result<bool> {
    let mut reports = Vec::new();
    for variant in args.variant.all() {
        let report = run_variant(world, args, layout, variant)?;
        tell(world, &report, args.json)?;
        reports.push(report);
    }
    if world.my_pe() == 0 && args.variant == Choice::All && !args.json {
        out!("\n{}", Comparison(&reports))?;
    }
    Ok(reports.iter().all(Report::verified))
}

/// Collective: times one transform in the requested variants. Returns whether all are verified.
fn transform_alone(world: &World, args: &Args, layout: Layout) -> anyhow::Result<bool> {
    let mut verified = true;
    for variant in args.variant.all() {
        let run = Run { variant, simulated_gflops: args.simulated_gflops };
        let single = Single::measure(world, layout, run, args.repeat as usize)?;
        tell(world, &single, args.json)?;
        verified &= single.verified();
    }
    Ok(verified)
}

/// Collective: one run, with a progress bar where PE 0 has a terminal for it.
fn run_variant(world: &World, args: &Args, layout: Layout, variant: Variant) -> anyhow::Result<Report> {
    let bar = bar(world, variant.name(), layout.problem.iterations as u64)?;
    let run = Run { variant, simulated_gflops: args.simulated_gflops };
    let outcome = solver::solve(world, layout, run, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    Ok(Report::new(args.class, variant, layout.pes, outcome))
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
        assert_eq!((default.class.name, default.variant), ("S", Choice::One(Variant::Slabs)));
        let given =
            parse(&["--class", "c", "--variant", "all", "--json"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.class.name, given.variant, given.json), ("C", Choice::All, true));
        let alone = ["--transform", "8x4x2", "--repeat", "3", "--simulated-gflops", "2.5"];
        let alone = parse(&alone).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(alone.transform, Some(Problem { nx: 8, ny: 4, nz: 2, iterations: 0 }));
        assert_eq!((alone.repeat, alone.simulated_gflops), (3, 2.5));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (&["--class", "Q"][..], "the classes are S, W, A, B, C, D, E, F"),
            (&["--variant", "slabbs"], "the variants are exchange, slabs, pencils, all"),
            (&["--transform", "8x4"], "as 256x256x128"),
            (&["--transform", "8x4x2", "--class", "S"], "cannot be used with"),
            (&["--repeat", "2"], "--transform"),
            (&["--simulated-gflops", "0"], "this is not a number above 0"),
        ] {
            let message = parse(args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
