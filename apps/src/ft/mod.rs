//! NAS FT, the Fourier transform benchmark of the NAS Parallel Benchmarks: the heat equation on a periodic
//! box, solved by 3D FFTs whose transpositions are one-sided puts. Invariant: a run is only called verified
//! when every checksum agrees with NASA's to 1e-12. Sources: NAS-95-020; NPB 3.4, `FT/ft.f90`; Bell et al.,
//! "Optimizing Bandwidth Limited Problems Using One-Sided Communication and Overlap".

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use pelago::prelude::*;

use self::classes::Class;
use self::layout::Layout;
use self::report::{Comparison, Report};
use self::variant::{Selection, Variant};
use crate::entry;

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
mod random;
mod reference;
mod report;
mod solver;
mod transform;
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
        pelago run -n 2 ft --class B --json      one JSON object a variant, for programs"
)]
struct Args {
    /// Problem size: S, W, A, B, C, D, E or F, each larger than the one before
    #[arg(long, default_value = "S", value_parser = Class::from_name)]
    class: Class,
    /// How the field is transposed between the PEs: exchange; all runs and compares all there are
    #[arg(long, default_value = "exchange", value_parser = Selection::from_name)]
    variant: Selection,
    /// Print one JSON object a variant and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(args, |world, args: Args| {
        let layout = match Layout::new(args.class.problem, world.n_pes(), world.my_pe()) {
            Ok(layout) => layout,
            Err(uneven) => return Ok(entry::refuse(world, NAME, &uneven)),
        };
        if let Err(too_large) = memory::check(world, &args.class, &layout)? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let mut reports = Vec::new();
        for variant in args.variant.variants() {
            let report = run_variant(world, &args, layout, variant)?;
            if world.my_pe() == 0 {
                print(&report, args.json)?;
            }
            reports.push(report);
        }
        if world.my_pe() == 0 && args.variant == Selection::All && !args.json {
            print!("\n{}", Comparison(&reports));
        }
        let verified = reports.iter().all(Report::verified);
        Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Collective: one run, with a progress bar where PE 0 has a terminal for it.
fn run_variant(world: &World, args: &Args, layout: Layout, variant: Variant) -> anyhow::Result<Report> {
    let bar = if world.my_pe() == 0 && std::io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} iterations, {eta} left")?;
        ProgressBar::new(layout.problem.iterations as u64).with_style(style).with_message(variant.name())
    } else {
        ProgressBar::hidden()
    };
    let outcome = solver::solve(world, layout, variant, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    Ok(Report::new(args.class, variant, layout.pes, outcome))
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", report.to_json()?);
    } else {
        print!("{report}");
    }
    Ok(())
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
        assert_eq!((default.class.name, default.variant), ("S", Selection::One(Variant::Exchange)));
        let given =
            parse(&["--class", "c", "--variant", "all", "--json"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.class.name, given.variant, given.json), ("C", Selection::All, true));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (["--class", "Q"], "the classes are S, W, A, B, C, D, E, F"),
            (["--variant", "slabbs"], "the variants are exchange, all"),
        ] {
            let message = parse(&args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
