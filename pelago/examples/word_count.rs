//! Word count: every word is sent to the PE that owns it, by a remote procedure, and counted there in a hash
//! map; the owners then send their counts to PE 0.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/word_count
//! Prints:
//!      9 a
//!      7 the
//!      6 of
//!      5 memory
//!      3 pe

use pelago::am::{HandlerLock, Handlers};
use pelago::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

const TEXT: &str = "\
    A PE is a process or a thread that has a number\n\
    The PEs of a job share the memory of the job\n\
    Any PE writes to the memory of any other\n\
    A put writes to memory and a get reads from memory\n\
    A barrier lets all of the PEs meet\n\
    The owner of the memory of a PE does nothing\n";

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());

    // This PE's share of the words, and the PE that owns a word: the same on all PEs.
    let text = TEXT.to_lowercase();
    let mine = text.lines().skip(me).step_by(n).flat_map(str::split_whitespace);
    let owner = |word: &str| BuildHasherDefault::<DefaultHasher>::default().hash_one(word) as usize % n;

    let counts = HandlerLock::new(HashMap::<String, u64>::new());
    let mut handlers = Handlers::new();
    let count = handlers.add_procedure("count", |_from, word: String| {
        *counts.lock().entry(word).or_default() += 1;
    });
    world.team().serve(handlers, |am| {
        mine.map(str::to_owned).try_for_each(|word| am.cast(owner(&word), count, &word))
    })??;

    let all = HandlerLock::new(Vec::new());
    let mut handlers = Handlers::new();
    let collect = handlers.add_procedure("collect", |_from, entry: (u64, String)| all.lock().push(entry));
    world.team().serve(handlers, |am| {
        counts.into_inner().into_iter().try_for_each(|(word, count)| am.cast(0, collect, &(count, word)))
    })??;

    if me == 0 {
        let mut all = all.into_inner();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        all.iter().take(5).for_each(|(count, word)| println!("{count:4} {word}"));
    }
    Ok(())
}
