//! `stencil`: Jacobi iterations on a square grid, whose rows are distributed over the PEs in strips. In each
//! iteration a PE puts its first and its last row to its neighbours, each with a signal, or sends them as
//! messages, and relaxes the rows in between while the neighbours' rows arrive. Invariant: every point is
//! computed by the same expression as in a serial run, so both end with the same bits.

use std::process::ExitCode;

use clap::{Parser, value_parser};
use pelago::prelude::*;
use pelago::{Comparison, Result, SignalOp};

use crate::choice::Choice;
use crate::collect;
use crate::entry;
use crate::partition::Partition;
use crate::rate::timed;
use crate::report::tell;
use crate::room::{self, Need};
use crate::tutorial::{Report, Variant};

const NAME: &str = "stencil";

/// Jacobi: relax a square grid, exchange the rows between neighbours, and compare with a serial run.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N stencil",
    after_help = "\
        A tutorial: its source, apps/src/stencil.rs, is meant to be read. Each PE needs a row. The exit\n\
        status is 0 only if the grid equals that of a serial run, bit by bit.\n\n\
        Examples:\n  \
        pelago run -n 2 stencil                           100 iterations on 256 x 256 points\n  \
        pelago run -n 4 stencil --n 1000 --iterations 10  a larger grid\n  \
        pelago run -n 2 stencil --variant all             puts, and then messages\n  \
        pelago run -n 2 stencil --json                    one JSON object a variant, for programs"
)]
struct Args {
    /// The grid has N x N points inside its boundary
    #[arg(long, default_value = "256", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=1 << 20))]
    n: u64,
    /// Number of iterations
    #[arg(long, default_value = "100", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    iterations: u64,
    /// How rows cross the PEs: one-sided, by puts with signals; two-sided, by messages; all runs each variant
    #[arg(long, default_value = "one-sided", value_parser = Choice::<Variant>::from_name)]
    variant: Choice<Variant>,
    /// Print one JSON object a variant and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let (n, pes) = (args.n as usize, world.n_pes());
        if n < pes {
            return Ok(entry::refuse(world, NAME, &format!("{pes} PEs need {pes} rows; the grid has {n}")));
        }
        // Each PE has two grids of its own for the serial run beside its strip.
        let (what, width) = (format!("a grid of {n} x {n}"), n as u64 + 2);
        let need = Need { what, heap_bytes: 8 * (4 * width + 4), private_bytes: 32 * width * width };
        if let Err(too_large) = room::check(world, need, |_| "take a smaller --n".to_owned())? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let mut is_verified = true;
        for variant in args.variant.all() {
            let mut strip = Strip::new(world, n)?;
            let mut steps = 0..args.iterations;
            let time = timed(world, || steps.try_for_each(|step| strip.iterate(step, variant)))?;
            let wrong = collect::sum(world, strip.wrong_points(args.iterations))?;
            let problem = format!("{n} x {n} points, {} iterations", args.iterations);
            let points = ((n * n) as u64 * args.iterations, "points");
            let report = Report::new(world, (NAME, variant), problem, points, (time, wrong));
            tell(world, &report, args.json)?;
            is_verified &= report.verified;
        }
        Ok(if is_verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The temperature of the boundary above the first row; the rest begins with 0.
const HEAT: f64 = 1.0;
/// The neighbours of a strip.
const ABOVE: usize = 0;
const BELOW: usize = 1;

/// The rows of one PE, with a row of the neighbour or the boundary above and below them.
struct Strip<'w> {
    world: &'w World,
    partition: Partition,
    /// Points of a row, with the boundary.
    width: usize,
    rows: usize,
    field: Vec<f64>,
    next: Vec<f64>,
    /// The rows that the neighbours put: two from above and two from below, for even and odd iterations. A
    /// neighbour is at most one iteration ahead, because it needs a row of this PE in each.
    inbox: Symmetric<'w, f64>,
    /// The number of the last row that has come into each slot of the inbox. One word for all rows of a side
    /// would not do: signals of two iterations may overtake each other.
    arrived: Symmetric<'w, u64>,
    /// The rows that the neighbours send as messages: from above, and from below.
    received: [Vec<f64>; 2],
}

/// The slot for the row of a side in an iteration.
fn slot(side: usize, step: u64) -> usize {
    2 * side + (step % 2) as usize
}

impl<'w> Strip<'w> {
    /// Collective: the strip before the first iteration.
    fn new(world: &'w World, n: usize) -> Result<Self> {
        let (partition, width) = (Partition::new(n as u64, world.n_pes()), n + 2);
        let rows = partition.range(world.my_pe()).count();
        let mut field = vec![0.0; (rows + 2) * width];
        if world.my_pe() == 0 {
            field[..width].fill(HEAT);
        }
        let (inbox, arrived) = (world.alloc(4 * width)?, world.alloc_zeroed(4)?);
        let (next, received) = (field.clone(), [(); 2].map(|()| vec![0.0; width]));
        Ok(Strip { world, partition, width, rows, field, next, inbox, arrived, received })
    }

    /// One iteration, counted from 0.
    fn iterate(&mut self, step: u64, variant: Variant) -> Result<()> {
        let (width, last) = (self.width, self.rows);
        match variant {
            Variant::OneSided => {
                self.put_edges(step)?;
                relax(&self.field, &mut self.next, width, 2..last);
                self.take_edges(step);
            }
            Variant::TwoSided => self.exchange_edges()?,
        }
        relax(&self.field, &mut self.next, width, 1..2);
        relax(&self.field, &mut self.next, width, last.max(2)..last + 1);
        std::mem::swap(&mut self.field, &mut self.next);
        Ok(())
    }

    /// Puts the first row to the PE above, and the last row to the PE below.
    fn put_edges(&self, step: u64) -> Result<()> {
        let (me, count) = (self.world.my_pe(), SignalOp::Set(step + 1));
        let put = |pe, row: usize, side: usize| {
            let row = &self.field[row * self.width..][..self.width];
            let slot = slot(side, step);
            self.inbox.put_signal(pe, slot * self.width, row, &self.arrived, slot, count)
        };
        if me > 0 {
            put(me - 1, 1, BELOW)?;
        }
        if me + 1 < self.world.n_pes() {
            put(me + 1, self.rows, ABOVE)?;
        }
        Ok(())
    }

    /// Waits for the rows of the neighbours.
    fn take_edges(&mut self, step: u64) {
        let (me, last, width) = (self.world.my_pe(), self.world.n_pes() - 1, self.width);
        for (side, exists, row) in [(ABOVE, me > 0, 0), (BELOW, me < last, self.rows + 1)] {
            if exists {
                let slot = slot(side, step);
                self.arrived.local().wait(slot, Comparison::Ge, step + 1);
                self.inbox.local().read(slot * width, &mut self.field[row * width..][..width]);
            }
        }
    }

    /// Exchanges rows with the neighbours by messages, and relaxes the rows in between meanwhile.
    fn exchange_edges(&mut self) -> Result<()> {
        let (team, me, last) = (self.world.team(), self.world.my_pe(), self.rows);
        let Strip { world, width, field, next, received, .. } = self;
        let row = |row: usize| &field[row * *width..][..*width];
        let [from_above, from_below] = received;
        // At its end the scope waits for all that was started in it.
        world.scope(|scope| -> Result<()> {
            if me > 0 {
                scope.receive(&team, me - 1, 0, from_above)?;
                scope.send(&team, me - 1, 0, row(1))?;
            }
            if me + 1 < world.n_pes() {
                scope.receive(&team, me + 1, 0, from_below)?;
                scope.send(&team, me + 1, 0, row(last))?;
            }
            relax(field, next, *width, 2..last);
            Ok(())
        })?;
        for (exists, row, received) in
            [(me > 0, 0, from_above), (me + 1 < world.n_pes(), last + 1, from_below)]
        {
            if exists {
                field[row * *width..][..*width].copy_from_slice(received);
            }
        }
        Ok(())
    }

    /// The points that differ from those of a serial run.
    fn wrong_points(&self, iterations: u64) -> u64 {
        let width = self.width;
        let mut field = vec![0.0; width * width];
        field[..width].fill(HEAT);
        let mut next = field.clone();
        for _ in 0..iterations {
            relax(&field, &mut next, width, 1..width - 1);
            std::mem::swap(&mut field, &mut next);
        }
        let first = self.partition.range(self.world.my_pe()).start as usize + 1;
        let (own, serial) = (&self.field[width..][..self.rows * width], &field[first * width..]);
        own.iter().zip(serial).filter(|(own, serial)| own.to_bits() != serial.to_bits()).count() as u64
    }
}

/// Makes each point of some rows the mean of its four neighbours.
fn relax(field: &[f64], next: &mut [f64], width: usize, rows: std::ops::Range<usize>) {
    for row in rows {
        let [above, own, below] = [row - 1, row, row + 1].map(|row| &field[row * width..][..width]);
        let next = &mut next[row * width..][..width];
        for at in 1..width - 1 {
            next[at] = (above[at] + below[at] + own[at - 1] + own[at + 1]) / 4.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use pelago::Spmd;
    use pelago::sim::SimParams;

    use super::*;
    use crate::choice::Named;

    /// The wrong points of all PEs, in each variant.
    fn wrong(spmd: &Spmd, n: usize, iterations: u64, spoil: bool) -> Vec<u64> {
        let of = |variant: &Variant| -> u64 {
            let wrong = spmd.run(|world| {
                let mut strip = Strip::new(world, n).unwrap();
                (0..iterations).for_each(|step| strip.iterate(step, *variant).unwrap());
                if spoil && world.my_pe() == 0 {
                    strip.field[strip.width + 1] += 1e-16;
                }
                strip.wrong_points(iterations)
            });
            wrong.unwrap().iter().sum()
        };
        Variant::ALL.iter().map(of).collect()
    }

    #[test]
    fn strips_end_as_the_whole_grid() {
        for (pes, n) in [(1, 1), (1, 7), (2, 2), (2, 9), (3, 3), (3, 10), (4, 4), (4, 15), (6, 13)] {
            assert_eq!(wrong(&Spmd::new(pes), n, 12, false), [0, 0], "{n} rows on {pes} PEs");
        }
        assert_eq!(wrong(&Spmd::new(2), 6, 3, true), [1, 1]);
    }

    #[test]
    fn a_network_that_reorders_changes_nothing() {
        for seed in 0..6 {
            assert_eq!(wrong(&Spmd::new(4).sim(SimParams::chaos(seed)), 6, 9, false), [0, 0], "seed {seed}");
        }
        // The signals of the last two iterations overtake each other for some of these.
        for seed in 0..60 {
            assert_eq!(wrong(&Spmd::new(2).sim(SimParams::chaos(seed)), 4, 2, false), [0, 0], "seed {seed}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (["--variant", "onesided"], "the variants are one-sided, two-sided, all"),
            (["--n", "0"], "1..=1048576"),
            (["--iterations", "-1"], "--iterations"),
            (["--iterations", "0"], "1..=1000000000"),
        ] {
            let parsed = Args::try_parse_from([NAME].iter().chain(&args));
            let message = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn more_pes_than_rows_are_refused() {
        let codes = spmd(3, |world| {
            let args = ["--n", "2", "--json"].map(str::to_owned);
            format!("{:?}", run(world, &args).unwrap())
        });
        assert_eq!(codes.unwrap(), vec![format!("{:?}", ExitCode::from(entry::USAGE_EXIT_CODE)); 3]);
    }
}
