//! The exchange of business cards through the launcher.
//!
//! Each process publishes its card. In a small job each reads all of them, and sums them up. In a larger one
//! process 0 does so, and publishes the digest, which the others read. In a large job the first process of
//! each group reads the cards of its group, so that no process reads more than about 2 sqrt(n) of them. A
//! process reads the card of a single other one at the first contact.

use super::business_card::BusinessCard;
use super::summary::{Digest, Summary};
use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use pelago_boot::Job;
use pelago_fabric::{FabricError, FabricResult, Lookup};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Processes of a job that all read all cards, and of one whose cards process 0 reads: another barrier of the
/// launcher would take longer. In builds for tests, jobs of few processes have groups.
const ALL_READ: usize = if cfg!(debug_assertions) { 8 } else { 64 };
const ONE_GROUP: usize = if cfg!(debug_assertions) { 10 } else { 512 };

/// The processes of a group in a job of `n` processes.
const fn group_size(n: usize) -> usize {
    if n <= ONE_GROUP { n } else { n.isqrt() + 1 }
}

/// The work of an exchange among the processes of a job.
pub struct Readings {
    /// Barriers of the launcher.
    pub barriers: usize,
    /// Cards, sums of groups and digests that process 0 reads, the process that reads the most.
    pub most: usize,
    /// The same of all processes together.
    pub all: usize,
}

/// The work of an exchange among `n` processes.
pub const fn readings(n: usize) -> Readings {
    if n <= ALL_READ {
        return Readings { barriers: 1, most: n, all: n * n };
    }
    let group = group_size(n);
    let sums = n.div_ceil(group) - 1;
    Readings { barriers: if sums == 0 { 2 } else { 3 }, most: group + sums, all: 2 * n + sums }
}

/// The cards that the processes of a job have published in an exchange.
#[derive(Clone)]
pub struct Cards {
    /// The job, until this process leaves it.
    job: Weak<Job>,
    /// The lowest PE of this process.
    me: Pe,
    processes: usize,
    /// The number of this process, and its card once it is published.
    rank: usize,
    own: Option<BusinessCard>,
    prefix: String,
    suffix: &'static str,
}

impl Cards {
    /// The cards of the world with the number `worlds`, in the exchange that `suffix` tells from others.
    pub fn new(job: &Arc<Job>, worlds: usize, suffix: &'static str) -> Cards {
        let (me, processes) = (job.first_pe(), job.size());
        let (rank, prefix) = (job.rank(), format!("pelago-{worlds}"));
        Cards { job: Arc::downgrade(job), me, processes, rank, own: None, prefix, suffix }
    }

    fn key(&self, process: usize) -> String {
        format!("{}-{process}{}", self.prefix, self.suffix)
    }

    fn job(&self) -> FabricResult<Arc<Job>> {
        self.job.upgrade().ok_or_else(|| self.foreign("this process has left the job".to_owned()))
    }

    fn foreign(&self, what: String) -> FabricError {
        FabricError::Foreign { pe: self.me, what }
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        Ok(self.job()?.put(key, bytes)?)
    }

    /// Reads what a process has published under a key.
    fn get<T>(&self, process: usize, key: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Result<T> {
        let bytes = self.job()?.get(process, key)?;
        let what = format!("process {process} of the job has published no valid card");
        Ok(bytes.and_then(|bytes| read(&bytes)).ok_or_else(|| self.foreign(what))?)
    }

    /// The card of a process.
    ///
    /// # Errors
    /// If the launcher does not respond, if there is no card, or if this process has left the job.
    pub fn of(&self, process: usize) -> Result<BusinessCard> {
        match &self.own {
            Some(own) if process == self.rank => Ok(own.clone()),
            _ => self.get(process, &self.key(process), BusinessCard::from_bytes),
        }
    }

    /// Publishes the card of this process, and returns the digest of all cards. With `is_first_enough` that
    /// is the digest of a job of one node, for which the card of process 0 is enough.
    ///
    /// # Errors
    /// If the launcher does not respond, if a process has published no valid card, or if the numbers of PEs
    /// of the processes differ.
    pub fn exchange(&mut self, card: BusinessCard, is_first_enough: bool) -> Result<Digest> {
        let (rank, mine) = (self.rank, card.pes);
        let card = self.own.insert(card).clone();
        if self.processes == 1 {
            return Ok(Summary::of(card).digest());
        }
        self.put(&self.key(rank), &card.to_bytes())?;
        self.job()?.barrier()?;
        let digest =
            if is_first_enough { Digest::of_one_node(self.of(0)?, self.processes) } else { self.sum_up()? };
        let odd = match digest.first.pes == mine {
            true => digest.odd,
            false => Some((0, digest.first.pes)),
        };
        match odd {
            None => Ok(digest),
            Some((process, theirs)) => {
                Err(ErrorKind::PesPerProcessDiffer { me: self.me, mine, process, theirs }.into())
            }
        }
    }

    /// The digest of the cards that all processes have published.
    fn sum_up(&self) -> Result<Digest> {
        let (n, rank) = (self.processes, self.rank);
        if n <= ALL_READ {
            return Ok(self.sum_of(0..n)?.digest());
        }
        let group = group_size(n);
        let in_group = |first: usize| (first + group).min(n) - first;
        let key_of_group = |first: usize| format!("{}-group", self.key(first));
        let key_of_all = format!("{}-all", self.key(0));
        let mut sum = None;
        if rank.is_multiple_of(group) {
            sum = Some(self.sum_of(rank..rank + in_group(rank))?);
        }
        if group < n {
            if let Some(sum) = &sum {
                self.put(&key_of_group(rank), &sum.to_bytes())?;
            }
            self.job()?.barrier()?;
        }
        let mut digest = None;
        if let Some(mut sum) = sum.filter(|_| rank == 0) {
            for first in (group..n).step_by(group) {
                let read = |bytes: &[u8]| Summary::from_bytes(bytes, in_group(first));
                sum.add(self.get(first, &key_of_group(first), read)?);
            }
            let all = digest.insert(sum.digest());
            self.put(&key_of_all, &all.to_bytes())?;
        }
        self.job()?.barrier()?;
        match digest {
            Some(digest) => Ok(digest),
            None => self.get(0, &key_of_all, |bytes| Digest::from_bytes(bytes, n)),
        }
    }

    fn sum_of(&self, mut processes: std::ops::Range<usize>) -> Result<Summary> {
        let first = processes.next().expect("a group has a process");
        let mut sum = Summary::of(self.of(first)?);
        processes.try_for_each(|process| self.of(process).map(|card| sum.add(Summary::of(card))))?;
        Ok(sum)
    }

    /// All cards, for an error that names a process.
    pub fn all(&self) -> Result<Vec<BusinessCard>> {
        (0..self.processes).map(|process| self.of(process)).collect()
    }

    /// The way to find out something about a PE from the card of its process: `find` gets the card and the
    /// number of the PE within the process. Cards are kept until [`CardLookup::forget`].
    pub fn lookup<F>(&self, each: usize, find: F) -> CardLookup
    where
        F: Fn(&BusinessCard, Pe, usize) -> FabricResult<Vec<u8>> + Send + Sync + 'static,
    {
        let kept = Arc::new(Mutex::new(Some(HashMap::new())));
        let (cards, shared) = (self.clone(), Arc::clone(&kept));
        let lookup = move |pe: Pe| {
            let process = pe / each;
            let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(kept) = guard.as_mut() else {
                drop(guard);
                return find(&cards.read(process)?, pe, pe % each);
            };
            let card = match kept.entry(process) {
                Entry::Occupied(card) => card.into_mut(),
                Entry::Vacant(place) => place.insert(cards.read(process)?),
            };
            find(card, pe, pe % each)
        };
        CardLookup { lookup: Arc::new(lookup), kept }
    }

    /// The card of a process, with an error of the fabric.
    pub fn read(&self, process: usize) -> FabricResult<BusinessCard> {
        let failed = |error| self.foreign(format!("the card of process {process} was not read: {error}"));
        self.of(process).map_err(failed)
    }
}

/// A lookup of addresses that keeps the cards that it has read, for providers that ask for all addresses
/// while they connect, once for each PE of the process.
pub struct CardLookup {
    pub lookup: Lookup,
    kept: Arc<Mutex<Option<HashMap<usize, BusinessCard>>>>,
}

impl CardLookup {
    /// Drops the cards. From now on a lookup reads a card, and keeps none.
    pub fn forget(self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
