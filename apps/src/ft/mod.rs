//! NAS FT, the Fourier transform benchmark of the NAS Parallel Benchmarks: the heat equation on a periodic
//! box, solved by 3-D FFTs in a 1-D or a 2-D decomposition, whose transpositions overlap with computation or
//! not, over puts or collective operations. Invariant: a run is reported as verified only if every checksum
//! agrees with NASA's to 1e-12. Sources: NAS-95-020; NPB 3.4, `FT/ft.f90`; Bell et al., "Optimizing Bandwidth
//! Limited Problems Using One-Sided Communication and Overlap"; Nishtala et al., "Scaling
//! Communication-Intensive Applications on BlueGene/P Using One-Sided Communication and Overlap".

use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;
use pelago_boot::out;

use self::classes::{Class, Problem};
use self::grid::GridChoice;
use self::layout::Layout;
use self::report::{Comparison, Report};
use self::single::Single;
use self::solver::Run;
use self::transport::Transport;
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
mod grid;
mod layout;
mod memory;
pub mod messages;
#[cfg(test)]
mod naive;
mod overlap;
mod phases;
mod plan;
mod prefetch;
mod random;
mod reference;
mod report;
mod single;
pub mod skeleton;
mod solver;
mod transform;
mod transport;
mod transposition;
mod variant;

const NAME: &str = "ft";

/// NAS FT: solve the heat equation on a periodic box by 3D FFTs over all PEs, in one of several variants, and
/// verify the result against NASA's checksums.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N ft",
    after_help = "\
        Without --grid each PE owns whole planes (1-D), and the number of PEs is a power of two up to the\n\
        number of z-planes: 64 for class S, 32 for W, 128 for A, 256 for B, 512 for C. With --grid TY PEs\n\
        share a plane and TZ PEs share the planes (2-D): in two rounds rows and columns of the process\n\
        grid exchange data. The exit status is 0 only if the run is verified.\n\n\
        Examples:\n  \
        pelago run -n 2 ft                       the smallest class on two PEs\n  \
        pelago run -n 4 ft --class A             a class that leaves the caches\n  \
        pelago run -n 2 ft --class W --variant all    all variants, and a table that compares them\n  \
        pelago run -n 4 ft --grid 2x2 --variant all   the 2-D variants on two rows of two PEs\n  \
        pelago run -n 8 ft --variant packed-slabs     2-D, on the most nearly square process grid\n  \
        pelago run -n 4 ft --grid auto --transport all    puts, messages and all-to-all operations\n  \
        pelago run -n 2 ft --class B --json      one JSON object a run, for programs\n  \
        pelago run -n 2 --bind ft --transform 256x256x128    one 3D FFT, timed alone"
)]
struct Args {
    /// Problem size: S, W, A, B, C, D, E or F, each larger than the one before
    #[arg(long, default_value = "S", value_parser = Class::from_name)]
    class: Class,
    /// How the field crosses the PEs: exchange, all at the end; slabs, plane by plane; pencils, row by row;
    /// packed-slabs, all at the end of each round, on a process grid; all runs and compares those of the
    /// decomposition
    #[arg(long, default_value = "slabs", value_parser = Choice::<Variant>::from_name)]
    variant: Choice<Variant>,
    /// Process grid of a 2-D decomposition, for slabs and packed-slabs; auto takes the most nearly square
    /// one, as packed-slabs does by default
    #[arg(long, value_name = "TYxTZ|auto", value_parser = GridChoice::from_name)]
    grid: Option<GridChoice>,
    /// The operations that move the data: one-sided, non-blocking puts; two-sided, messages; collectives,
    /// non-blocking all-to-all operations of teams; all runs and compares them
    #[arg(long, default_value = "one-sided", value_parser = Choice::<Transport>::from_name)]
    transport: Choice<Transport>,
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
    /// Print one JSON object a run and nothing else
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The process grid that the user asked for, by name or by a variant that has no other decomposition.
    fn grid(&self) -> Option<GridChoice> {
        let implied = (self.variant == Choice::One(Variant::PackedSlabs)).then_some(GridChoice::Auto);
        self.grid.or(implied)
    }

    /// The runs, in order.
    fn runs(&self) -> Result<Vec<Run>, String> {
        let (transports, simulated_gflops) = (self.transport.all(), self.simulated_gflops);
        let variants = Variant::chosen(self.variant, self.grid().is_some())?;
        let runs = variants.into_iter().flat_map(|variant| {
            transports.iter().map(move |&transport| Run { variant, transport, simulated_gflops })
        });
        Ok(runs.collect())
    }
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let (problem, what) = match args.transform {
            Some(grid) => (grid, format!("the grid {grid}")),
            None => (args.class.problem, format!("class {}", args.class.name)),
        };
        let runs = match args.runs() {
            Ok(runs) => runs,
            Err(wrong) => return Ok(entry::refuse(world, NAME, &wrong)),
        };
        let layout = match Layout::chosen(problem, world.n_pes(), world.my_pe(), args.grid()) {
            Ok(layout) => layout,
            Err(uneven) => return Ok(entry::refuse(world, NAME, &uneven)),
        };
        let outboxes = runs.iter().map(|run| run.transport.outboxes()).max().unwrap_or(0);
        let need = memory::need(what, &layout, outboxes);
        let smaller = |supply: &_| memory::smaller(&layout, outboxes, supply);
        if let Err(too_large) = room::check(world, need, smaller)? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let verified = match args.transform {
            Some(_) => transform_alone(world, &args, &runs, layout)?,
            None => solve(world, &args, &runs, layout)?,
        };
        Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Collective: solves in the requested runs. Returns whether all are verified.
fn solve(world: &World, args: &Args, runs: &[Run], layout: Layout) -> anyhow::Result<bool> {
    let mut reports = Vec::new();
    for run in runs {
        let report = solve_once(world, args, *run, layout)?;
        tell(world, &report, args.json)?;
        reports.push(report);
    }
    if world.my_pe() == 0 && reports.len() > 1 && !args.json {
        out!("\n{}", Comparison(&reports))?;
    }
    Ok(reports.iter().all(Report::verified))
}

/// Collective: times one transform in the requested runs. Returns whether all are verified.
fn transform_alone(world: &World, args: &Args, runs: &[Run], layout: Layout) -> anyhow::Result<bool> {
    let mut verified = true;
    for run in runs {
        let single = Single::measure(world, layout, *run, args.repeat as usize)?;
        tell(world, &single, args.json)?;
        verified &= single.verified();
    }
    Ok(verified)
}

/// Collective: one run, with a progress bar where PE 0 has a terminal for it.
fn solve_once(world: &World, args: &Args, run: Run, layout: Layout) -> anyhow::Result<Report> {
    let bar = bar(world, run.variant.name(), layout.problem.iterations as u64)?;
    let (outcome, overlap) = solver::solve(world, layout, run, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    Ok(Report::new(args.class, run, layout, outcome, overlap))
}

#[cfg(test)]
mod tests {
    use super::grid::Grid;
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
    fn runs_are_those_of_the_decomposition_over_every_transport() {
        let runs = |args: &[&str]| {
            let args = parse(args).unwrap_or_else(|error| panic!("{error}"));
            let names = |run: Run| format!("{} {}", run.variant.name(), run.transport.name());
            args.runs().map(|runs| (args.grid(), runs.into_iter().map(names).collect::<Vec<_>>().join(", ")))
        };
        let grid = Some(GridChoice::Given(Grid { ty: 2, tz: 4 }));
        let all_of_grid = "packed-slabs one-sided, packed-slabs two-sided, packed-slabs collectives, \
                           slabs one-sided, slabs two-sided, slabs collectives";
        for (args, choice, names) in [
            (&[][..], None, "slabs one-sided"),
            (&["--variant", "all"], None, "exchange one-sided, slabs one-sided, pencils one-sided"),
            (&["--variant", "packed-slabs"], Some(GridChoice::Auto), "packed-slabs one-sided"),
            (&["--grid", "2x4"], grid, "slabs one-sided"),
            (&["--grid", "2x4", "--variant", "all", "--transport", "all"], grid, all_of_grid),
            (&["--variant", "pencils", "--transport", "collectives"], None, "pencils collectives"),
        ] {
            assert_eq!(runs(args), Ok((choice, names.to_owned())), "{args:?}");
        }
        let message = runs(&["--grid", "auto", "--variant", "pencils"]).unwrap_err();
        assert!(message.contains("no 2-D decomposition; leave --grid out"), "{message}");
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (&["--class", "Q"][..], "the classes are S, W, A, B, C, D, E, F"),
            (&["--variant", "slabbs"], "the variants are exchange, slabs, pencils, packed-slabs, all"),
            (
                &["--transport", "onesided"],
                "the transports are one-sided, two-sided, collectives, all; did you mean one-sided",
            ),
            (&["--grid", "2"], "two numbers of PEs from 1 to 65536 as 2x4, or auto"),
            (&["--grid", "0x2"], "two numbers of PEs from 1 to 65536 as 2x4, or auto"),
            (&["--transform", "8x4"], "as 256x256x128"),
            (&["--transform", "8x4x2", "--class", "S"], "cannot be used with"),
            (&["--repeat", "2"], "--transform"),
            (&["--simulated-gflops", "0"], "this is not a number from 1e-6 to 1e12"),
        ] {
            let message = parse(args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
