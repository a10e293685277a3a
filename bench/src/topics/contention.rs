//! Contention: PEs that add to one word, compared with one word per PE. Invariant: both kinds alternate, and
//! all words are in PE 0's memory, so that they differ only in the sharing of cache lines. The curve is that
//! of figure 6 of Pritchard, Gilmore, ten Bruggencate, Knaak and Pagel, "Message Passing Toolkit (MPT)
//! Software on XT3": the latency of `shmem_fadd` as a function of the PEs that update one variable.

use std::time::Duration;

use crate::base::crowd::{Meetings, rate_of_all};
use crate::base::ensemble::Leader;
use crate::base::prelude::*;

/// The PE whose memory contains the words.
const TARGET: Pe = 0;
/// The distance of two words, so that they share no cache line and no prefetch.
const STRIDE: usize = 16;

fn of_unit(records: &[Record], place: Place, unit: Unit) -> impl Iterator<Item = &Record> {
    let fetch_adds = of(records, Bench::Contention, Operation::FetchAdd);
    fetch_adds.filter(move |record| (record.label.place, record.unit) == (Some(place), unit))
}

pub fn table(records: &[Record]) -> Table {
    let mut table = Table::new(
        "fetch_add by several PEs at once in PE 0's memory: latency that each PE sees, rate of all together",
        0,
        "PEs|one word, ns: min|median|max|a word each, ns: median|one / each|one word, M/s|a word each, M/s",
    );
    for contenders in values(records, |label| label.contenders) {
        let found = |place, unit| {
            of_unit(records, place, unit).find(|record| record.label.contenders == Some(contenders))
        };
        let each = found(Place::WordEach, Unit::Nanoseconds);
        if let Some(one) = found(Place::OneWord, Unit::Nanoseconds) {
            let rates = [Place::OneWord, Place::WordEach].map(|place| found(place, Unit::MillionsPerSecond));
            table.row((contenders, one.summary, each, ratio(Some(one), each), rates));
        }
    }
    table
}

fn curve(
    records: &[Record],
    unit: Unit,
    y: Axis,
    colour: &'static str,
    title: &str,
    caption: &'static str,
) -> Figure {
    let line = |name, colour, line, place| {
        Across::Contenders.series(name, colour, line, of_unit(records, place, unit))
    };
    let lines = [
        line("a word each", GREY, Line::Broad, Place::WordEach),
        line("one word", colour, Line::Solid, Place::OneWord),
    ];
    Figure::new(title, [Across::Contenders.axis("PEs that add at the same time"), y], caption, lines)
}

pub fn latency_curve(records: &[Record]) -> Figure {
    let caption = "As each PE sees it, while all of them add; where PEs share cores, the time without a core \
                   included. One word for all, and beside it, block by block, a word each on cache lines of \
                   their own. Medians.";
    let title = "Latency of fetch_add as a function of PEs";
    curve(records, Unit::Nanoseconds, TIME_FROM_ZERO, BLUE, title, caption)
}

pub fn rate_curve(records: &[Record]) -> Figure {
    let y = Axis { label: "M/s (10^6 a second)", scale: Scale::FromZero };
    let title = "Rate of fetch_add of all PEs together";
    let caption = "The sum of the rates of all PEs. Medians.";
    curve(records, Unit::MillionsPerSecond, y, ORANGE, title, caption)
}

/// Collective, for two PEs or more: measures PEs that all add.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for a few words.
pub fn all(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let contest = Contest::pair(world, world.n_pes())?;
    let mut suite = Suite::new(world, effort);
    contest.add_to(&mut suite, effort);
    suite.run(sink)
}

/// A number of PEs, on one word, and on one word per PE.
pub struct Contest<'w> {
    sides: [Side<'w>; 2],
}

impl<'w> Contest<'w> {
    /// Collective, for a job of `contenders` PEs at least.
    ///
    /// # Errors
    /// If the symmetric heap has no room for a few words.
    pub fn pair(world: &'w World, contenders: usize) -> pelago::Result<Self> {
        let side = |place| Side::new(world, contenders, place);
        Ok(Contest { sides: [side(Place::OneWord)?, side(Place::WordEach)?] })
    }

    /// Adds a trial of both.
    pub fn add_to<'a>(&'a self, suite: &mut Suite<'a>, effort: Effort) {
        let sides = &self.sides;
        let parts = sides.each_ref().map(|side| suite.add_part(side.part()));
        let label = suite.label(Bench::Contention, Operation::FetchAdd, size_of::<u64>());
        let label = label.with_contenders(sides[0].contenders);
        suite.add_trial(move |leader| {
            let mut samples = [const { (Vec::new(), Vec::new()) }; 2];
            effort.repeat(2, || {
                for ((side, part), samples) in sides.iter().zip(parts).zip(&mut samples) {
                    side.sample(leader, part, effort, samples)?;
                }
                anyhow::Ok(())
            })?;
            let records = sides.iter().zip(&samples).flat_map(|(side, (latencies_ns, rates))| {
                let label = label.in_place(side.place);
                [
                    Record::of(label, Unit::Nanoseconds, latencies_ns),
                    Record::of(label, Unit::MillionsPerSecond, rates),
                ]
            });
            Ok(records.collect())
        });
    }
}

/// One of the two kinds: one word, or one word per PE.
struct Side<'w> {
    contenders: usize,
    place: Place,
    meetings: Meetings<'w>,
    words: Symmetric<'w, u64>,
}

impl<'w> Side<'w> {
    fn new(world: &'w World, contenders: usize, place: Place) -> pelago::Result<Self> {
        Ok(Side {
            contenders,
            place,
            meetings: Meetings::new(world, contenders)?,
            words: world.alloc_zeroed(contenders * STRIDE)?,
        })
    }

    /// Adds for the given number of microseconds.
    fn part<'a>(&'a self) -> Part<'a> {
        let me = self.words.world().my_pe();
        if me >= self.contenders {
            return rest();
        }
        let index = if self.place == Place::OneWord { 0 } else { me * STRIDE };
        let batch =
            move |count| (0..count).try_for_each(|_| self.words.fetch_add(TARGET, index, 1).map(|_| ()));
        Box::new(move |microseconds| self.meetings.work(me, Duration::from_micros(microseconds), batch))
    }

    /// Measures one block: the nanoseconds per operation of each PE, and the rate of all PEs in 10^6
    /// operations per second.
    fn sample(
        &self,
        leader: &mut Leader<'_, '_, '_>,
        part: usize,
        effort: Effort,
        (latencies_ns, rates): &mut (Vec<f64>, Vec<f64>),
    ) -> Result<()> {
        let cores = self.words.world().cores();
        let window = effort.crowd_window(self.contenders, cores);
        let shares = self.meetings.sample(leader, part, window)?;
        latencies_ns.extend(shares.iter().map(|share| share.latency_ns()));
        rates.push(rate_of_all(&shares) / 1e6);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::suite::tests::{EFFORT, reported};

    #[test]
    fn latencies_of_all_pes_and_the_rate_of_all_are_reported() {
        for pes in [2, 5] {
            let (records, progress) = reported(pes, |world, sink| all(world, EFFORT, sink));
            assert_eq!((records.len(), progress), (4, (1, 1)));
            for pair in records.chunks(2) {
                let [latency, rate] = pair else { panic!("a pair") };
                assert_eq!((latency.unit, rate.unit), (Unit::Nanoseconds, Unit::MillionsPerSecond));
                assert_eq!(latency.label, rate.label);
                assert_eq!(latency.label.contenders, Some(pes));
                assert_eq!(latency.summary.samples, rate.summary.samples * pes, "one of each PE");
            }
            assert_eq!(records[0].label.place, Some(Place::OneWord));
            assert_eq!(records[2].label.place, Some(Place::WordEach));
        }
    }

    #[test]
    fn contenders_meet_at_one_word_or_keep_to_their_own_and_the_others_rest() {
        let sums = spmd(4, |world| {
            let contest = Contest::pair(world, 3).unwrap();
            let mut parts = contest.sides.each_ref().map(Side::part);
            conduct(world, &mut parts, |leader| {
                (0..2).try_for_each(|part| leader.play(part, 10).map(|_| ()))
            })
            .unwrap();
            contest.sides.each_ref().map(|side| {
                let words = side.words.local().to_vec();
                words.iter().step_by(STRIDE).map(|word| *word > 0).collect::<Vec<_>>()
            })
        });
        let sums = sums.unwrap();
        assert_eq!(sums[0], [vec![true, false, false], vec![true; 3]]);
        assert!(sums[1..].iter().flatten().flatten().all(|is_used| !is_used), "all words are PE 0's");
    }
}
