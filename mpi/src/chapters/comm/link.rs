//! Messages by which processes meet that have no communicator of their own yet.
//!
//! Invariant: a link is used by one call at a time. The messages of two calls after each other on the same
//! link are received in their order, because each receive names its source.

use super::agree::digest;
use crate::abi::*;
use crate::chapters::error::{Error, Result};
use crate::chapters::group::Group;
use crate::chapters::library::{Mpi, NO_PARENT};
use pelago_core::Pe;
use pelago_core::msg::envelope::{Context, Envelope, Tag};
use pelago_core::msg::operation::{Address, Mode};
use pelago_core::msg::request::RequestId;

/// A context and a tag for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    context: Context,
    tag: Tag,
}

/// The findings of the members of a group: a context, and other PEs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub context: u64,
    pub pes: Vec<Pe>,
}

/// The position of a member, counted from the root: its parent and its children in a binomial tree.
fn tree(position: usize, n: usize) -> (Option<usize>, impl Iterator<Item = usize>) {
    let parent = (position > 0).then(|| position & (position - 1));
    let end = if position == 0 { n } else { 1 << position.trailing_zeros() };
    let bits = std::iter::successors(Some(1usize), |bit| bit.checked_mul(2));
    let children =
        bits.take_while(move |&bit| bit < end && position + bit < n).map(move |bit| position + bit);
    (parent, children)
}

impl Link {
    /// The link with this context and tag.
    pub fn new(context: u64, tag: c_int) -> Link {
        Link { context: Context(context), tag: tag as u32 }
    }

    /// A link that follows from a string, and from PEs.
    pub fn named(name: &[u8], pes: &[Pe]) -> Link {
        let hash = |salt: u64| digest(&(salt, name, pes));
        Link { context: Context(NO_PARENT | hash(0)), tag: hash(1) as u32 >> 1 }
    }

    fn start_send(&self, mpi: &Mpi, pe: Pe, words: &[u64]) -> Result<Option<RequestId>> {
        let to = Address { context: self.context, pe, tag: self.tag };
        // SAFETY: the caller waits for the request before the words go.
        Ok(unsafe { mpi.core.start_send(to, (words.as_ptr().cast(), size_of_val(words)), Mode::Standard) }?)
    }

    fn send(&self, mpi: &Mpi, pe: Pe, words: &[u64]) -> Result {
        if let Some(id) = self.start_send(mpi, pe, words)? {
            mpi.core.wait_for_message(id);
        }
        Ok(())
    }

    fn receive(&self, mpi: &Mpi, pe: Pe) -> Result<Vec<u64>> {
        let matched = mpi.core.match_message(&self.pattern(pe));
        let mut words = vec![0u64; matched.status().bytes / size_of::<u64>()];
        let room = (words.as_mut_ptr().cast(), size_of_val(&words[..]));
        // SAFETY: the words live until the receive is complete.
        let id = unsafe { mpi.core.start_receive_matched(matched, room, None) };
        mpi.core.wait_for_message(id);
        Ok(words)
    }

    fn pattern(&self, pe: Pe) -> Envelope {
        Envelope::pattern(self.context, Some(pe), Some(self.tag))
    }

    /// The same link with another tag.
    pub fn tagged(self, tag: Tag) -> Link {
        Link { tag, ..self }
    }

    /// Sends a message without words to a PE.
    pub fn call(&self, mpi: &Mpi, pe: Pe) -> Result {
        self.send(mpi, pe, &[])
    }

    /// Takes a message without words that has come, with any tag: its sender, and its tag.
    pub fn take_call(&self, mpi: &Mpi) -> Option<(Pe, Tag)> {
        let matched = mpi.core.match_arrived(&Envelope::pattern(self.context, None, None))?;
        let status = matched.status();
        mpi.core.discard_matched(matched);
        Some((status.source, status.tag))
    }

    /// Begins to tell the other PE of a [`swap`](Link::swap) that it fails.
    pub fn refuse(&self, mpi: &Mpi, pe: Pe, code: c_int) -> Result<Refusal> {
        let words = write(&Err::<Found, _>(&Error::new(code, ""))).into_boxed_slice();
        Ok(Refusal {
            link: *self,
            pe,
            sending: self.start_send(mpi, pe, &words)?,
            awaits: true,
            _words: words,
        })
    }

    /// All members of a group meet: `found` is called at the root, with the error of a member if there is
    /// one, and all members get what it returns.
    pub fn meet(
        &self,
        mpi: &Mpi,
        (group, root): (&Group, usize),
        mine: Result,
        found: impl FnOnce(Result) -> Result<Found>,
    ) -> Result<Found> {
        let (n, me) = (group.len(), group.my_rank().unwrap_or(root));
        let pe = |position: usize| group.pe(((position + root) % n) as c_int).unwrap_or_default();
        let position = (me + n - root) % n;
        let mut outcome = mine;
        for child in tree(position, n).1 {
            let told = self.receive(mpi, pe(child))?;
            outcome = outcome.and(read(&told).map(drop));
        }
        let found = match tree(position, n).0 {
            None => found(outcome),
            Some(parent) => {
                self.send(mpi, pe(parent), &write(&outcome.as_ref().map(|()| Found::default())))?;
                let told = read(&self.receive(mpi, pe(parent))?);
                // The error of this member is the better text.
                outcome.and(told)
            }
        };
        let words = write(&found.as_ref());
        for child in tree(position, n).1 {
            self.send(mpi, pe(child), &words)?;
        }
        found
    }

    /// Two PEs tell each other what they have found, or that they fail: what the other has found.
    pub fn swap(&self, mpi: &Mpi, pe: Pe, mine: &Result<Found>) -> Result<Found> {
        let words = write(&mine.as_ref());
        let sending = self.start_send(mpi, pe, &words)?;
        let told = self.receive(mpi, pe);
        if let Some(id) = sending {
            mpi.core.wait_for_message(id);
        }
        read(&told?)
    }
}

/// The part of a [`swap`](Link::swap) of a PE that fails, without waiting.
pub struct Refusal {
    link: Link,
    pe: Pe,
    sending: Option<RequestId>,
    /// Whether the words of the other PE are still to come.
    awaits: bool,
    /// They are read until the message has left.
    _words: Box<[u64]>,
}

impl Refusal {
    /// Goes on as far as is possible now: whether it is over.
    pub fn advance(&mut self, mpi: &Mpi) -> bool {
        self.sending = self.sending.take_if(|id| mpi.core.look(*id).is_none());
        if self.awaits
            && let Some(matched) = mpi.core.match_arrived(&self.link.pattern(self.pe))
        {
            mpi.core.discard_matched(matched);
            self.awaits = false;
        }
        self.sending.is_none() && !self.awaits
    }
}

/// As words: the code of an error or 0, the context, the PEs.
fn write<F: std::borrow::Borrow<Found>>(found: &std::result::Result<F, &Error>) -> Vec<u64> {
    match found {
        Err(error) => vec![u64::from(error.code() as u32)],
        Ok(found) => {
            let Found { context, pes } = found.borrow();
            [0, *context].into_iter().chain(pes.iter().map(|&pe| pe as u64)).collect()
        }
    }
}

fn read(words: &[u64]) -> Result<Found> {
    match words {
        [0, context, pes @ ..] => {
            Ok(Found { context: *context, pes: pes.iter().map(|&pe| pe as Pe).collect() })
        }
        [code, ..] => {
            let text = "another process has failed in it, so that all fail";
            Err(Error::new(*code as u32 as c_int, text))
        }
        [] => Err(Error::new(MPI_ERR_INTERN, "a message of a process that makes a communicator is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_tree_is_the_child_of_its_parent() {
        for n in 1..70 {
            let mut parents = vec![None; n];
            for position in 0..n {
                for child in tree(position, n).1 {
                    assert_eq!(parents[child].replace(position), None);
                }
            }
            let expected: Vec<_> = (0..n).map(|position| tree(position, n).0).collect();
            assert_eq!(parents, expected, "{n}");
        }
    }

    #[test]
    fn what_is_found_survives_its_words() {
        let found = Found { context: 7 << 60, pes: vec![3, 0, 9] };
        assert_eq!(read(&write(&Ok::<_, &Error>(&found))).unwrap(), found);
        let error = Error::new(MPI_ERR_GROUP, "no");
        assert_eq!(read(&write(&Err::<Found, _>(&error))).unwrap_err().code(), MPI_ERR_GROUP);
        assert!(read(&[]).is_err());
    }

    #[test]
    fn links_differ_by_name_and_by_pes() {
        let links = [
            Link::named(b"a", &[0, 1]),
            Link::named(b"b", &[0, 1]),
            Link::named(b"a", &[1, 0]),
            Link::named(b"a", &[]),
        ];
        for (i, one) in links.iter().enumerate() {
            assert!(links.iter().skip(i + 1).all(|other| one != other));
            assert_eq!(one.context.0 & NO_PARENT, NO_PARENT);
        }
    }
}
