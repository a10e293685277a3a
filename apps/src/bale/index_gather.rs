//! Index-gather: each PE has a list of random indices, and gets the words with these indices from a table
//! over all PEs. Invariant: a run is reported as verified only if each word has the value that follows from
//! its index. Source: bale, the application ig.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use pelago::Result;
use pelago::am::Handlers;
use pelago::prelude::*;
use pelago::sync::{AtomicU64, Ordering};

use super::drive;
use super::problem::{Place, Problem, Size};
use super::way::{WINDOW, Way};
use crate::collect;
use crate::entry;
use crate::rate::timed;
use crate::splitmix::mix;

const NAME: &str = "index-gather";

/// Index-gather: get random words of a table over all PEs, one after the other, many in a scope, and by
/// aggregated active messages with replies.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N index-gather",
    after_help = "\
        The exit status is 0 only if all words are right, each way.\n\n\
        Examples:\n  \
        pelago run -n 2 index-gather                        the table of bale, a million indices a PE\n  \
        pelago run -n 4 index-gather --table 10000000       a table that leaves the caches\n  \
        pelago run -n 2 index-gather --indices 1000 --json  one JSON object, for programs"
)]
struct Args {
    #[command(flatten)]
    size: Size,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// A request for a word, as it is sent.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Question {
    /// The index in the part of the target PE.
    index: u32,
    /// The position of the index in the list of the PE that sends the request.
    number: u32,
}

/// The reply with the word, as it is sent.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Answer {
    word: u64,
    number: u64,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let problem = Problem { size: args.size, pes: world.n_pes() };
        drive(world, (NAME, problem, args.json), |places, progress| {
            let table = world.alloc::<u64>(args.size.table as usize)?;
            fill(world, &table);
            Way::ALL.iter().try_fold(Vec::new(), |mut outcomes, &way| {
                let (words, time) = gather(world, &table, (way, places), progress)?;
                outcomes.push((way, time, wrong_words(world, places, &words)?));
                Ok(outcomes)
            })
        })
    })
}

/// The word of the table at a place.
fn word_at(place: Place) -> u64 {
    mix(u64::from(place.pe) << 32 | u64::from(place.index))
}

/// Collective: sets each word of the table to the value that follows from its place.
fn fill(world: &World, table: &Symmetric<'_, u64>) {
    let (part, pe) = (table.local(), world.my_pe() as u32);
    (0..part.len()).for_each(|index| part.set(index, word_at(Place { pe, index: index as u32 })));
    world.barrier();
}

/// Collective: gets the words of the list in one way. Returns the words and the time that it took.
fn gather(
    world: &World,
    table: &Symmetric<'_, u64>,
    (way, places): (Way, &[Place]),
    progress: &mut dyn FnMut(Way, u64),
) -> Result<(Vec<u64>, Duration)> {
    if way == Way::Messages {
        return by_messages(world, table, places, &mut |done| progress(way, done));
    }
    let mut words = vec![0; places.len()];
    let time = timed(world, || {
        let windows = words.chunks_mut(WINDOW).zip(places.chunks(WINDOW));
        for ((words, window), done) in windows.zip((0..).step_by(WINDOW)) {
            let mut each = words.iter_mut().zip(window);
            match way {
                Way::OneSided => each.try_for_each(|(word, place)| {
                    *word = table.g(place.pe as Pe, place.index as usize)?;
                    Ok::<_, pelago::Error>(())
                })?,
                _ => world.scope(|scope| {
                    each.try_for_each(|(word, place)| {
                        let word = std::slice::from_mut(word);
                        scope.get(table, place.pe as Pe, place.index as usize, word)
                    })
                })?,
            }
            progress(way, done);
        }
        Ok(())
    })?;
    Ok((words, time))
}

fn by_messages(
    world: &World,
    table: &Symmetric<'_, u64>,
    places: &[Place],
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<u64>, Duration)> {
    let (me, own) = (world.my_pe(), table.local());
    // Written by the handler of replies.
    let words: Vec<AtomicU64> = places.iter().map(|_| AtomicU64::new(0)).collect();
    let set = |number: usize, word| words[number].store(word, Ordering::Relaxed);
    let mut handlers = Handlers::new();
    let batch = handlers.add_query(
        "index-gather: get",
        |_, Question { index, number }| Answer { word: own.get(index as usize), number: number.into() },
        |_, answers: &[Answer]| answers.iter().for_each(|answer| set(answer.number as usize, answer.word)),
    );
    let time = world.team().serve(handlers, |am| {
        let mut others = am.aggregator(batch);
        timed(world, || {
            for (number, &Place { pe, index }) in places.iter().enumerate() {
                match pe as Pe == me {
                    true => set(number, own.get(index as usize)),
                    false => others.push(pe as Pe, Question { index, number: number as u32 })?,
                }
                if number % WINDOW == 0 {
                    progress(number as u64);
                }
            }
            others.flush()?;
            am.barrier()
        })
    })??;
    Ok((words.iter().map(|word| word.load(Ordering::Relaxed)).collect(), time))
}

/// Collective: the number of words of all PEs that differ from the values that follow from their places.
fn wrong_words(world: &World, places: &[Place], words: &[u64]) -> Result<u64> {
    let wrong = places.iter().zip(words).filter(|&(&place, &word)| word != word_at(place)).count();
    collect::sum(world, wrong as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_get_the_same_words_on_any_number_of_pes() {
        for (pes, table, indices) in [(1, 10, 5000), (2, 1, 3000), (3, 100, 5000), (8, 7, 1500)] {
            let problem = Problem { size: Size { table, indices }, pes };
            let wrong = spmd(pes, |world| {
                let (table, places) =
                    (world.alloc::<u64>(table as usize).unwrap(), problem.places(world.my_pe()));
                fill(world, &table);
                Way::ALL.map(|way| {
                    let (words, _) = gather(world, &table, (way, &places), &mut |_, _| ()).unwrap();
                    assert_eq!(words.len(), indices as usize);
                    wrong_words(world, &places, &words).unwrap()
                })
            });
            assert_eq!(wrong.unwrap(), vec![[0; 3]; pes], "{problem}");
        }
    }

    #[test]
    fn wrong_words_of_all_pes_count() {
        let wrong = spmd(2, |world| {
            let places = [0, 1].map(|index| Place { pe: 1, index });
            let words = places.map(word_at);
            let right = wrong_words(world, &places, &words).unwrap();
            (right, wrong_words(world, &places, &[words[0], words[0]]).unwrap())
        });
        assert_eq!(wrong.unwrap(), [(0, 2); 2]);
    }
}
