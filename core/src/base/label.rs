//! The call that a wait belongs to, for messages: the collective call that the members of a team compare, and
//! the name of the function of another interface. A thread whose local storage was destroyed, as in an exit
//! handler, has no labels.

use crate::Pe;
use std::cell::RefCell;
use std::fmt::Write;
use std::sync::OnceLock;

/// Returns the text of the call that this thread compares with other members of a team.
type Words = Box<dyn Fn() -> String>;

thread_local! {
    /// The call that this thread compares with other members of a team.
    static COMPARED: RefCell<Option<Words>> = const { RefCell::new(None) };
}

/// Returns the name of the function of another interface that the calling thread executes.
type CallName = fn() -> Option<&'static str>;

/// One for each interface.
static NAMES: [OnceLock<CallName>; N_INTERFACES] = [const { OnceLock::new() }; N_INTERFACES];

/// The number of interfaces that a process may have.
const N_INTERFACES: usize = 2;

/// Adds a function that returns the name of the function of another interface that a thread executes. A
/// second world of the process may set it again.
pub fn name_calls_by(names: CallName) {
    for place in &NAMES {
        let is_there = |there: &CallName| std::ptr::fn_addr_eq(*there, names);
        if place.set(names).is_ok() || place.get().is_some_and(is_there) {
            return;
        }
    }
}

/// The function that this thread executes, to be appended to the description of a wait.
pub fn name() -> String {
    let name = NAMES.iter().filter_map(OnceLock::get).find_map(|name| name());
    name.map_or_else(String::new, |name| format!(", in {name}"))
}

/// Whether this thread compares a collective call with other members of a team.
pub fn is_compared() -> bool {
    COMPARED.try_with(|compared| compared.borrow().is_some()).unwrap_or(false)
}

/// Labels the waits of this thread with the collective call that they belong to, while this value lives.
pub struct Labelled(Option<Words>);

impl Labelled {
    pub fn new(words: impl Fn() -> String + 'static) -> Labelled {
        let words: Words = Box::new(words);
        Labelled(COMPARED.try_with(|compared| compared.replace(Some(words))).ok().flatten())
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        let before = self.0.take();
        let _ = COMPARED.try_with(|compared| compared.replace(before));
    }
}

/// The call that this thread compares, in brackets; empty if it compares none.
pub fn compared() -> String {
    COMPARED
        .try_with(|compared| compared.borrow().as_ref().map(|words| words()))
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// Ascending numbers: `0-2, 5`.
pub fn ranges(pes: &[Pe]) -> String {
    let mut text = String::new();
    for run in pes.chunk_by(|a, b| a + 1 == *b) {
        let (comma, first, last) = (if text.is_empty() { "" } else { ", " }, run[0], run[run.len() - 1]);
        // Writing to a string does not fail.
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    text
}
