//! How a process becomes a PE: it learns from its launcher who it is, finds the PEs on its node, and maps the
//! memory they share. One put and one barrier through the launcher; the rest over memory.

use crate::Pe;
use crate::channel::HEAP_KEY;
use crate::coll::select::Preferences;
use crate::error::{ErrorKind, Result};
use crate::nodes::Placement;
use crate::route::Reach;
use crate::segment::Memory;
use crate::world::World;
use pelago_boot::{Job, Notifier, RouteKind, Settings, memory_total_bytes, node_id};
use pelago_fabric::shm::{Layout, Shm};
use pelago_fabric::{FabricError, Net, Provider};
use std::any::Any;
use std::ptr::NonNull;

/// The share of the node's memory that its PEs' heaps take together by default. Pages come into being when
/// they are touched, so this costs nothing until it is used.
const HEAP_SHARE: (usize, usize) = (3, 4);
/// Size of a PE's heap where the system does not tell its memory.
const HEAP_BYTES_FALLBACK: usize = 1 << 30;
/// The smallest pool that a PE gets by default.
const POOL_BYTES_MIN: usize = 64 << 20;

/// A job that this process is in, and how many worlds it has had: a launcher is joined once, but one world
/// may follow another.
#[derive(Debug)]
pub struct Membership {
    pub(crate) job: Job,
    pub(crate) worlds: usize,
}

impl Membership {
    /// Leaves the job.
    ///
    /// # Errors
    /// If the launcher is gone or does not answer.
    pub fn finalize(self) -> Result<()> {
        Ok(self.job.finalize()?)
    }
}

/// Joins the job that this process was started in.
pub(crate) fn process(settings: &Settings) -> Result<World> {
    // Before anybody else waits for this PE.
    Preferences::new(settings)?;
    let job = Job::join(settings)?;
    tell_panics(job.notifier());
    of_job(Membership { job, worlds: 0 }, settings)
}

/// The next world of a job.
pub(crate) fn of_job(membership: Membership, settings: &Settings) -> Result<World> {
    let Membership { job, worlds } = membership;
    let card_key = |pe: Pe| format!("pelago-{worlds}-{pe}");
    let card_of = |job: &Job, pe: Pe| card_of(job, pe, &card_key(pe));
    let (me, n_pes) = (job.rank(), job.size());
    // PE 0 decides for all; the others do not even ask the system for its memory.
    let layout = if me == 0 { layout(settings, n_pes) } else { Layout::new(n_pes, 0, settings.ring_bytes) };
    let mut shm = Shm::open(me, layout, settings.init_timeout)?;
    let node = node_id(settings);
    if n_pes > 1 {
        job.put(&card_key(me), &Card { node: &node, address: &shm.address() }.to_bytes())?;
        job.barrier()?;
        check_nodes(&job, &node, &card_of)?;
    }
    shm.connect(&mut |pe| {
        let card =
            card_of(&job, pe).map_err(|error| FabricError::Foreign { pe: me, what: error.to_string() })?;
        Ok(card.1)
    })?;
    let segment = shm.segment().clone();
    let placement = match settings.route {
        RouteKind::Auto => Placement { net: None, reach: Reach::All, nodes: Vec::new() },
        RouteKind::Net => Placement { net: Some(Net::Shm(shm)), reach: Reach::None, nodes: Vec::new() },
    };
    let membership = Membership { job, worlds: worlds + 1 };
    World::assemble((me, n_pes), segment, placement, Some(membership), settings)
}

/// The node's memory for `n_pes` PEs.
pub(crate) fn layout(settings: &Settings, n_pes: usize) -> Layout {
    let heap_bytes = heap_bytes(settings, n_pes);
    let pool_bytes = settings.pool_bytes.unwrap_or(heap_bytes.max(POOL_BYTES_MIN));
    Layout::new(n_pes, heap_bytes, settings.ring_bytes).with_pool(pool_bytes)
}

/// Lets the peers reach this PE's heap and pool over the net.
pub(crate) fn register_heap(mut net: Net, me: Pe, memory: &Memory) -> Result<Net> {
    let start = NonNull::new(memory.heap(me)).expect("nothing is mapped at address 0");
    net.register(HEAP_KEY, start, memory.region_bytes())?;
    Ok(net)
}

/// Size of a PE's symmetric heap in bytes, for `n_pes` PEs on the node.
fn heap_bytes(settings: &Settings, n_pes: usize) -> usize {
    let share = |total: usize| total / HEAP_SHARE.1 * HEAP_SHARE.0 / n_pes;
    settings.heap_bytes.or_else(|| memory_total_bytes().map(share)).unwrap_or(HEAP_BYTES_FALLBACK)
}

/// What a PE tells the others through the launcher.
struct Card<'a> {
    node: &'a str,
    address: &'a [u8],
}

impl Card<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        let length = (self.node.len() as u32).to_le_bytes();
        [&length[..], self.node.as_bytes(), self.address].concat()
    }
}

/// A PE's node and fabric address.
type FoundCard = (String, Vec<u8>);

/// Reads a PE's card.
fn card_of(job: &Job, pe: Pe, key: &str) -> Result<FoundCard> {
    let foreign =
        || FabricError::Foreign { pe: job.rank(), what: format!("PE {pe} has published no valid card") };
    let bytes = job.get(pe, key)?.ok_or_else(foreign)?;
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(foreign)?;
    let (node, address) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(foreign)?;
    Ok((String::from_utf8_lossy(node).into_owned(), address.to_vec()))
}

/// Makes sure that all PEs are on this node. Where the launcher says so, one card is proof enough; else all
/// are looked at.
fn check_nodes(job: &Job, mine: &str, card_of: &dyn Fn(&Job, Pe) -> Result<FoundCard>) -> Result<()> {
    let n_pes = job.size();
    let is_one_node = job.local_ranks()?.is_some_and(|ranks| ranks.len() == n_pes);
    for pe in 0..if is_one_node { 1 } else { n_pes } {
        let (theirs, _) = card_of(job, pe)?;
        if theirs != mine {
            return Err(ErrorKind::NoRoute { me: job.rank(), pe, mine: mine.to_owned(), theirs }.into());
        }
    }
    Ok(())
}

/// The words of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    let text = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(a panic without a message)")
}

/// Lets the launcher know the words of a panic, so that it can say why a PE died.
fn tell_panics(notifier: Notifier) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = panic_text(info.payload());
        let place = info.location().map_or_else(String::new, |at| format!(", {at}"));
        notifier.note(&format!("panicked: {text}{place}"));
        before(info);
    }));
}
