//! The messages of a 3-D FFT, for those who compare them with a paper: from the plan alone, without a run.
//! Invariant: these are the messages that a run of the variant sends.

use num_complex::Complex64;
use pelago::Pe;

use super::classes::{Class, Problem};
use super::grid::Grid;
use super::layout::Layout;
use super::transposition::Transposition;
use super::variant::Variant;
use crate::choice::Named;

/// A round of communication of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtRound {
    /// The receiver of each message, in order.
    pub targets: Vec<Pe>,
    /// Bytes of each message.
    pub bytes: usize,
}

/// The messages of one PE in a forward 3-D FFT.
#[derive(Clone, Debug, PartialEq)]
pub struct FtMessages {
    /// One round in a 1-D decomposition, two in a 2-D one.
    pub rounds: Vec<FtRound>,
    /// The part of the communication that can be hidden, by table 1 of Bell et al.
    pub overlap_efficiency: f64,
}

/// How the box is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtSplit {
    /// Whole planes to this number of PEs.
    Planes(usize),
    /// TY PEs share a plane, TZ PEs share the planes.
    Grid(usize, usize),
}

impl FtSplit {
    /// The number of PEs.
    pub fn pes(self) -> usize {
        match self {
            FtSplit::Planes(pes) => pes,
            FtSplit::Grid(ty, tz) => ty * tz,
        }
    }
}

/// The layout of PE `me`.
pub(super) fn layout_of(problem: Problem, split: FtSplit, me: Pe) -> Result<Layout, String> {
    let layout = match split {
        FtSplit::Planes(pes) => Layout::new(problem, pes, me),
        FtSplit::Grid(ty, tz) => Layout::on_grid(problem, Grid { ty, tz }, me),
    };
    layout.map_err(|error| error.to_string())
}

impl FtMessages {
    /// The messages of PE `me` for a box and a variant, by its name.
    ///
    /// # Errors
    /// If there is no such variant, or the box cannot be distributed like that.
    pub fn new([nx, ny, nz]: [usize; 3], split: FtSplit, variant: &str, me: Pe) -> Result<Self, String> {
        let found = Variant::ALL.iter().find(|known| known.name() == variant);
        let variant = *found.ok_or_else(|| format!("there is no variant {variant:?}"))?;
        let plan = layout_of(Problem { nx, ny, nz, iterations: 1 }, split, me)?.forward(variant);
        let round = |round: &Transposition| FtRound {
            targets: round.messages().map(|message| message.pe).collect(),
            bytes: round.piece_len() * size_of::<Complex64>(),
        };
        Ok(FtMessages {
            rounds: plan.transpositions.iter().map(round).collect(),
            overlap_efficiency: plan.overlap_efficiency(),
        })
    }
}

/// The box of a NAS class.
pub fn ft_class(name: &str) -> Option<[usize; 3]> {
    let Problem { nx, ny, nz, .. } = Class::from_name(name).ok()?.problem;
    Some([nx, ny, nz])
}

/// The process grid, TY and TZ, that `--grid auto` takes for a box.
pub fn ft_process_grid([nx, ny, nz]: [usize; 3], pes: usize) -> Option<[usize; 2]> {
    let grid = Grid::auto(&Problem { nx, ny, nz, iterations: 1 }, pes)?;
    Some([grid.ty, grid.tz])
}

/// The lines of code of FT, tests, comments and empty lines left out: those of each transport alone, those
/// that name a piece of slabs or pencils, and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FtLines {
    /// Of one-sided messages alone.
    pub one_sided: usize,
    /// Of two-sided messages alone.
    pub two_sided: usize,
    /// Of all-to-all operations alone.
    pub collectives: usize,
    /// That name slabs or pencils, where the two variants differ.
    pub of_pieces: usize,
    /// Of all files.
    pub all: usize,
}

/// Counts the lines of the source that this program was built from.
pub fn ft_lines() -> FtLines {
    let one = |text| code(text).count();
    let [one_sided, two_sided, collectives] = TRANSPORTS.map(one);
    let shared: usize = SHARED.into_iter().map(one).sum();
    let names_a_piece = |line: &&str| line.contains("Pieces::Slabs") || line.contains("Pieces::Pencils");
    let of_pieces = SHARED.into_iter().flat_map(code).filter(names_a_piece).count();
    FtLines {
        one_sided,
        two_sided,
        collectives,
        of_pieces,
        all: shared + one_sided + two_sided + collectives,
    }
}

/// The lines of code of a source text up to its tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let production = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    production.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}

const TRANSPORTS: [&str; 3] = [
    include_str!("transport/one_sided.rs"),
    include_str!("transport/two_sided.rs"),
    include_str!("transport/collectives.rs"),
];

const SHARED: [&str; 21] = [
    include_str!("checksum.rs"),
    include_str!("classes.rs"),
    include_str!("columns.rs"),
    include_str!("evolve.rs"),
    include_str!("exchange.rs"),
    include_str!("grid.rs"),
    include_str!("layout.rs"),
    include_str!("memory.rs"),
    include_str!("mod.rs"),
    include_str!("overlap.rs"),
    include_str!("phases.rs"),
    include_str!("plan.rs"),
    include_str!("prefetch.rs"),
    include_str!("random.rs"),
    include_str!("report.rs"),
    include_str!("single.rs"),
    include_str!("solver.rs"),
    include_str!("transform.rs"),
    include_str!("transport/mod.rs"),
    include_str!("transposition.rs"),
    include_str!("variant.rs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_plan() {
        let class_d = ft_class("D").unwrap();
        let pencils = FtMessages::new(class_d, FtSplit::Planes(256), "pencils", 3).unwrap();
        assert_eq!((pencils.rounds[0].targets.len(), pencils.rounds[0].bytes), (8192, 16 << 10));
        let slabs = FtMessages::new(class_d, FtSplit::Grid(16, 16), "slabs", 3).unwrap();
        assert_eq!(slabs.rounds.len(), 2);
        assert_eq!(ft_process_grid(class_d, 256), Some([16, 16]));
        let refused = |variant, split| FtMessages::new([8, 8, 8], split, variant, 0).is_err();
        assert!(refused("slab", FtSplit::Planes(2)) && refused("slabs", FtSplit::Grid(3, 1)));
        assert_eq!((ft_class("Q"), ft_process_grid([8, 8, 8], 7)), (None, None));
    }

    #[test]
    fn all_files_are_counted_and_most_lines_are_shared() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ft");
        let names = |folder: &std::path::Path| {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.extension().is_some_and(|end| end == "rs")).count()
        };
        // Neither this file, nor the skeleton, nor the reference checksums, which are data, nor the naive
        // transform of the tests.
        let others = 4;
        let files = names(&folder) + names(&folder.join("transport")) - others;
        assert_eq!(files, SHARED.len() + TRANSPORTS.len());
        let lines = ft_lines();
        assert!(lines.one_sided > 10 && lines.two_sided > 10 && lines.of_pieces > 0, "{lines:?}");
        assert!(lines.all > 10 * (lines.one_sided + lines.two_sided), "{lines:?}");
    }
}
