//! NAS FT in a 2-D decomposition: messages from the plan, and times on simulated networks.

use anyhow::{Context, Result, anyhow};
use pelago_apps::{FtMessages, FtSplit, ft_class, ft_process_grid};
use pelago_report::chart::{Axis, Scale};
use serde_json::Value as Json;

use super::LINK;
use crate::base::across::size;
use crate::paper::claim::{Evidence, Value, value, verdict};
use crate::paper::ft_runs::{FtRun, of};
use crate::paper::lab::Lab;
use crate::paper::shapes::{Across, chart, mean, percent, solid, span};

/// The process grids of the deck, TY and TZ.
const GRIDS: [[usize; 2]; 7] = [[16, 16], [16, 32], [32, 32], [64, 32], [64, 64], [64, 128], [128, 128]];
/// Bytes of a complex double.
const ELEMENT_BYTES: usize = 16;
/// The sides of the figures: variant, transport, name.
pub const SIDES: [(&str, &str, &str); 3] = [
    ("slabs", "one-sided", "one-sided slabs (UPC)"),
    ("packed-slabs", "two-sided", "two-sided packed slabs (MPI)"),
    ("slabs", "two-sided", "two-sided slabs (MPI)"),
];
pub const SPEED: Axis = Axis { label: "Gflop/s of all PEs", scale: Scale::Decades };

fn class(name: &str) -> Result<[usize; 3]> {
    ft_class(name).with_context(|| format!("there is no class {name}"))
}

fn messages_of(size: [usize; 3], [ty, tz]: [usize; 2], variant: &str, me: usize) -> Result<FtMessages> {
    FtMessages::new(size, FtSplit::Grid(ty, tz), variant, me).map_err(|error| anyhow!(error))
}

/// The deck's formulas: messages and elements of both rounds.
fn formula([nx, ny, nz]: [usize; 3], [ty, tz]: [usize; 2], variant: &str) -> [(usize, usize); 2] {
    let planes = nz / tz;
    let [first, second] = [(ny / ty) * (nx / ty), (nx / ty) * (ny / tz)];
    match variant {
        "slabs" => [(planes * ty, first), (planes * tz, second)],
        _ => [(ty, planes * first), (tz, planes * second)],
    }
}

pub fn messages(_: &Lab) -> Result<Evidence> {
    let size = class("E")?;
    let (mut equal, mut all, mut values) = (0, 0, Vec::new());
    for grid in GRIDS {
        for variant in ["packed-slabs", "slabs"] {
            let plan = messages_of(size, grid, variant, grid[0] * grid[1] - 1)?;
            let here: Vec<_> = plan.rounds.iter().map(|round| (round.targets.len(), round.bytes)).collect();
            let there = formula(size, grid, variant).map(|(count, len)| (count, len * ELEMENT_BYTES));
            all += 1;
            equal += usize::from(here == there);
            let words = |rounds: &[(usize, usize)]| {
                let words = rounds.iter().map(|(count, bytes)| format!("{count} x {}", self::size(*bytes)));
                words.collect::<Vec<_>>().join(", then ")
            };
            values.push(value(format!("{variant}, {}x{}", grid[0], grid[1]), words(&here), words(&there)));
        }
    }
    Ok(Evidence {
        place: "the plan of class E (4096 x 2048 x 2048), last thread of each grid".to_owned(),
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[equal == all],
            format!(
                "{equal} of {all} plans have the messages of the formulas; tests compare plans with runs"
            ),
        ),
    })
}

pub fn message_sizes(_: &Lab) -> Result<Evidence> {
    let of = |variant| -> Result<usize> {
        Ok(messages_of(class("E")?, [128, 128], variant, 5000)?.rounds[0].bytes)
    };
    let (packed, slabs) = (of("packed-slabs")?, of("slabs")?);
    Ok(Evidence {
        place: "the plan of class E on 128x128".to_owned(),
        charts: Vec::new(),
        values: vec![
            value("a message of packed slabs", size(packed), "128 KiB"),
            value("a message of slabs", size(slabs), "8 KiB"),
        ],
        verdict: verdict(&[packed == 128 << 10, slabs == 8 << 10], "both sizes are those of the deck"),
    })
}

pub fn grids(_: &Lab) -> Result<Evidence> {
    let mut equal = 0;
    let mut row = |[ty, tz]: [usize; 2]| -> Result<Value> {
        let pes = ty * tz;
        let found = ft_process_grid(class("D")?, pes).context("no grid divides class D")?;
        equal += usize::from(found == [ty, tz]);
        Ok(value(format!("{pes} PEs"), format!("{}x{}", found[0], found[1]), format!("{ty}x{tz}")))
    };
    let values = GRIDS.into_iter().map(&mut row).collect::<Result<Vec<_>>>()?;
    Ok(Evidence {
        place: "the grids of class D, TY x TZ".to_owned(),
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[equal == GRIDS.len(), equal > 0],
            format!(
                "{equal} of {} are equal; of two equally square grids Pelago takes the one with TY below \
                 TZ, and --grid gives the other",
                GRIDS.len()
            ),
        ),
    })
}

pub fn order(_: &Lab) -> Result<Evidence> {
    let (mut equal, mut all) = (0, 0);
    for [ty, tz] in GRIDS {
        for me in [0, ty * tz / 3, ty * tz - 1] {
            let (plane, row) = (me / ty, me % ty);
            let first = (1..=ty).map(|t| plane * ty + (t + row) % ty);
            let second = (1..=tz).map(|t| (t + plane) % tz * ty + row);
            let plan = messages_of(class("E")?, [ty, tz], "slabs", me)?;
            let is_order = |round: usize, order: Vec<usize>| {
                plan.rounds[round].targets.chunks(order.len()).all(|step| step == order)
            };
            all += 1;
            equal += usize::from(is_order(0, first.collect()) && is_order(1, second.collect()));
        }
    }
    Ok(Evidence {
        place: "the plan of class E, three threads of each grid of the deck".to_owned(),
        charts: Vec::new(),
        values: vec![value("threads with the receivers of algorithm 2", format!("{equal} of {all}"), "all")],
        verdict: verdict(&[equal == all], "a PE's message to itself comes last, where t is TY or TZ"),
    })
}

/// The numbers of PEs of the simulated runs.
fn numbers(lab: &Lab) -> &'static [usize] {
    if lab.is_quick { &[4, 8, 16] } else { &[4, 8, 16, 32] }
}

/// All variants and transports of class S on a 2-D grid.
fn runs(lab: &Lab, pes: usize) -> Result<Vec<FtRun>> {
    let words = ["ft", "--class", "S", "--grid", "auto", "--variant", "all", "--transport", "all"];
    FtRun::read(&lab.simulated_app(LINK, pes, &words)?)
}

/// One forward transform, in seconds, of a variant over a transport.
fn seconds(lines: &[Json], variant: &str, transport: &str) -> Result<f64> {
    let is_it = |line: &&Json| line["variant"] == variant && line["transport"] == transport;
    let found = lines.iter().find(is_it).and_then(|line| line["seconds"][0].as_f64());
    found.with_context(|| format!("FT did not run {variant} over {transport}"))
}

/// Speeds by side and number of PEs, in Gflop/s.
type Speeds = Vec<(usize, [f64; 3])>;

fn scaling(speeds: &Speeds, title: &str, place: String, paper: [&str; 2]) -> Evidence {
    let curve =
        |side: usize| solid(SIDES[side].2, speeds.iter().map(move |(pes, speed)| (*pes as f64, speed[side])));
    let lead = |side: usize| -> Vec<f64> { speeds.iter().map(|(_, speed)| speed[0] / speed[side]).collect() };
    let (over_packed, over_slabs) = (lead(1), lead(2));
    let [packed_gain, slabs_gain] = [&over_packed, &over_slabs].map(|lead| mean(lead) - 1.0);
    let is_packed_best = speeds.iter().all(|(_, speed)| speed[1] >= speed[2]);
    Evidence {
        place,
        charts: vec![chart(title, Across::Pes, SPEED, (0..SIDES.len()).map(curve).collect())],
        values: vec![
            value(
                "one-sided slabs / packed slabs, speed, mean",
                format!("{:.2}", mean(&over_packed)),
                paper[0],
            ),
            value(
                "one-sided slabs / two-sided slabs, speed, mean",
                format!("{:.2}", mean(&over_slabs)),
                paper[1],
            ),
        ],
        verdict: verdict(
            &[packed_gain > 0.1, slabs_gain > 0.02, is_packed_best],
            format!(
                "one-sided slabs are {} faster than packed slabs ({}) and {} faster than two-sided slabs \
                 ({}); packed slabs are {}the faster two-sided variant: the network has no bisection that \
                 fills up, and copies of messages take no virtual time",
                percent(packed_gain),
                span(&over_packed),
                percent(slabs_gain),
                span(&over_slabs),
                if is_packed_best { "" } else { "not " }
            ),
        ),
    }
}

pub fn strong_scaling(lab: &Lab) -> Result<Evidence> {
    let class = class("S")?;
    let transforms = 7.0;
    let mut speeds = Speeds::new();
    for &pes in numbers(lab) {
        let runs = runs(lab, pes)?;
        let mut speed = [0.0; 3];
        for (speed, (variant, transport, _)) in speed.iter_mut().zip(SIDES) {
            *speed = transforms * gigaflops(class) / of(&runs, variant, transport)?.seconds;
        }
        speeds.push((pes, speed));
    }
    let place = format!("class S (64 x 64 x 64), a PE a node, {}; 1 Gflop/s a PE", LINK.name());
    Ok(scaling(&speeds, "Strong scaling", place, ["1.37", "1.63"]))
}

/// The customary number of operations of a 3-D FFT, in 10^9.
pub fn gigaflops([nx, ny, nz]: [usize; 3]) -> f64 {
    let points = (nx * ny * nz) as f64;
    5e-9 * points * points.log2()
}

pub fn weak_scaling(lab: &Lab) -> Result<Evidence> {
    let boxes = [[64, 64, 16], [64, 64, 32], [64, 64, 64], [128, 64, 64]];
    let mut speeds = Speeds::new();
    for (&pes, size) in numbers(lab).iter().zip(boxes) {
        let name = size.map(|len: usize| len.to_string()).join("x");
        let words = ["ft", "--transform", &name, "--repeat", "1", "--grid", "auto"];
        let words = [&words[..], &["--variant", "all", "--transport", "all"]].concat();
        let lines = lab.simulated_app(LINK, pes, &words)?;
        let mut speed = [0.0; 3];
        for (speed, (variant, transport, _)) in speed.iter_mut().zip(SIDES) {
            *speed = gigaflops(size) / seconds(&lines, variant, transport)?;
        }
        speeds.push((pes, speed));
    }
    let place =
        format!("16384 points a PE, one forward transform, a PE a node, {}; 1 Gflop/s a PE", LINK.name());
    Ok(scaling(&speeds, "Weak scaling", place, ["1.40 (of the best MPI)", ""]))
}

pub fn breakdown(lab: &Lab) -> Result<Evidence> {
    let runs = runs(lab, 16)?;
    let (packed, slabs) = (of(&runs, "packed-slabs", "two-sided")?, of(&runs, "slabs", "one-sided")?);
    let phases = |run: &FtRun| {
        let phases = &run.phases;
        let others = [phases.local_fft, phases.in_memory_transfer, phases.barrier, phases.other];
        [run.communication()].into_iter().chain(others.map(|spent| spent.mean)).collect::<Vec<_>>()
    };
    let names = ["communication (start and wait)", "local FFT", "in-memory transfer", "barrier", "other"];
    let both: Vec<_> = phases(packed).into_iter().zip(phases(slabs)).collect();
    let values = names.into_iter().zip(&both).map(|(name, (packed, slabs))| {
        let here = format!("{:.3} packed two-sided, {:.3} one-sided slabs", 1e3 * packed, 1e3 * slabs);
        value(format!("{name}, ms"), here, "")
    });
    let differences: Vec<f64> = both.iter().map(|(packed, slabs)| packed - slabs).collect();
    let total: f64 = differences.iter().sum();
    let share = differences[0] / total;
    Ok(Evidence {
        place: format!("class S on 16 PEs, a PE a node, {}; 1 Gflop/s a PE; means of the PEs", LINK.name()),
        charts: Vec::new(),
        values: values.collect(),
        verdict: verdict(
            &[total > 0.0 && share > 0.5],
            format!("communication makes {} of the difference of {:.3} ms", percent(share), 1e3 * total),
        ),
    })
}

pub fn collectives(lab: &Lab) -> Result<Evidence> {
    let mut values = Vec::new();
    let mut gains = [const { Vec::new() }; 2];
    for &pes in numbers(lab) {
        let runs = runs(lab, pes)?;
        let packed = of(&runs, "packed-slabs", "two-sided")?.seconds;
        for (gains, variant) in gains.iter_mut().zip(["packed-slabs", "slabs"]) {
            let gain = packed / of(&runs, variant, "collectives")?.seconds;
            let what = format!("{variant} over all-to-alls / packed two-sided, speed, {pes} PEs");
            values.push(value(what, format!("{gain:.2}"), "1.20 (strong scaling)"));
            gains.push(gain);
        }
    }
    let [packed, slabs] = gains;
    Ok(Evidence {
        place: format!("class S, a PE a node, {}; 1 Gflop/s a PE", LINK.name()),
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[mean(&packed) > 1.02, mean(&slabs) > 1.02],
            format!(
                "packed slabs over non-blocking all-to-alls have {} of the speed of packed two-sided \
                 messages, slabs {}: the simulated network executes no collective operation, and \
                 all-to-alls of schedules hide little",
                span(&packed),
                span(&slabs)
            ),
        ),
    })
}
