//! How a process becomes a PE: it learns from its launcher who it is, finds the PEs on its node, and maps the
//! memory they share. One put and one barrier through the launcher; the rest over memory.

use crate::Pe;
use crate::card::{Card, Wishes};
use crate::channel::HEAP_KEY;
use crate::coll::select::Preferences;
use crate::error::{ErrorKind, Result};
use crate::nodes::Placement;
use crate::route::Reach;
use crate::segment::Memory;
use crate::world::World;
use pelago_boot::{FabricKind, Job, Notifier, RouteKind, Settings, node_id};
use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::shm::{Layout, Shm};
use pelago_fabric::sim::SimParams;
use pelago_fabric::{FabricError, FabricResult, Net, Provider};
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
    let key = |pe: Pe| format!("pelago-{worlds}-{pe}");
    let (me, n_pes) = (job.rank(), job.size());
    let hint = Hint::of(&job, settings)?;
    let mut shm = Shm::prepare(me, n_pes > 1 && hint.may_lead(me), settings.init_timeout)?;
    if hint == Hint::OneNode && me == 0 {
        // Before anybody waits for it.
        shm.place(0, layout(settings, n_pes))?;
    }
    let open = || Ofi::open(me, n_pes, &choice(settings));
    let mut ofi = wants_ofi(hint, settings).then(open);
    let card = own_card(me, n_pes, &shm, ofi.as_ref(), settings);
    let is_first_enough = hint == Hint::OneNode && ofi.is_none();
    let mut cards = exchange(&job, card, is_first_enough, &key)?;
    let is_far = |card: &Card| card.node != cards[0].node;
    if ofi.is_none() && settings.fabric != FabricKind::Shm && cards.iter().any(is_far) {
        // What the launcher has not said the cards have, so there is another exchange.
        ofi = Some(open());
        let card = own_card(me, n_pes, &shm, ofi.as_ref(), settings);
        cards = exchange(&job, card, false, &|pe| format!("{}-far", key(pe)))?;
    }
    let nodes = nodes_of(me, n_pes, &cards, settings)?;
    let here: Vec<Pe> = (0..n_pes).filter(|&pe| nodes[pe] == nodes[me]).collect();
    let slot = here.iter().position(|&pe| pe == me).expect("a PE is on its node");
    if hint != Hint::OneNode {
        shm.place(slot, shared_layout(&cards, &nodes, here.len()))?;
    } else if me != 0 {
        shm.place(slot, Layout::new(n_pes, 0, settings.ring_bytes))?;
    }
    shm.connect(&mut |_| Ok(cards[here[0]].memory.clone())).map_err(|error| by_pe(error, &here))?;
    let segment = shm.segment().clone();
    let placement = place(me, shm, ofi, (&cards, nodes), settings)?;
    let membership = Membership { job, worlds: worlds + 1 };
    World::assemble((me, n_pes), segment, placement, Some(membership), settings)
}

/// Tells all PEs this one's card, and reads theirs, or only that of PE 0 if that is enough.
fn exchange(job: &Job, card: Card, is_first_enough: bool, key: &dyn Fn(Pe) -> String) -> Result<Vec<Card>> {
    if job.size() == 1 {
        return Ok(vec![card]);
    }
    job.put(&key(job.rank()), &card.to_bytes())?;
    job.barrier()?;
    (0..if is_first_enough { 1 } else { job.size() }).map(|pe| Card::read(job, pe, &key(pe))).collect()
}

/// What is known of the nodes before the PEs have told each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// All PEs are on this node, the launcher says.
    OneNode,
    /// They are on several; this PE is the lowest of its node, or not.
    Several { is_lowest: bool },
    /// Nothing is.
    None,
}

impl Hint {
    fn of(job: &Job, settings: &Settings) -> Result<Hint> {
        if settings.node_id.is_some() || settings.sim_nodes.is_some() {
            return Ok(Hint::None);
        }
        Ok(match job.local_ranks()? {
            None => Hint::None,
            Some(ranks) if ranks.len() == job.size() => Hint::OneNode,
            Some(ranks) => Hint::Several { is_lowest: ranks.first() == Some(&job.rank()) },
        })
    }

    /// Whether it may fall to this PE to make the node's memory.
    fn may_lead(self, me: Pe) -> bool {
        match self {
            Hint::OneNode => me == 0,
            Hint::Several { is_lowest } => is_lowest,
            Hint::None => true,
        }
    }
}

/// Whether libfabric is needed for what is known so far. Where it is not, it is not opened: it takes time,
/// and its providers take signals.
fn wants_ofi(hint: Hint, settings: &Settings) -> bool {
    let is_for_all = settings.fabric == FabricKind::Ofi && settings.route == RouteKind::Net;
    is_for_all || settings.fabric != FabricKind::Shm && matches!(hint, Hint::Several { .. })
}

/// Which of libfabric's offers the settings ask for.
pub fn choice(settings: &Settings) -> Choice {
    let providers = settings.ofi_providers.iter().flat_map(|list| list.split(','));
    Choice {
        library: settings.ofi_library.clone(),
        providers: providers.map(str::to_owned).collect(),
        interface: settings.ofi_interface.clone(),
    }
}

fn own_card(me: Pe, n_pes: usize, shm: &Shm, ofi: Option<&FabricResult<Ofi>>, settings: &Settings) -> Card {
    let mut node = node_id(settings);
    if let Some(nodes) = settings.sim_nodes {
        node += &format!("-{}", SimParams::default().on_nodes(n_pes, nodes as usize).nodes[me]);
    }
    let (fabric, obstacle) = match ofi {
        None => (Vec::new(), "it was not asked to open one (PELAGO_FABRIC)".to_owned()),
        Some(Ok(ofi)) => (ofi.address(), String::new()),
        Some(Err(error)) => (Vec::new(), error.to_string()),
    };
    Card { node, memory: shm.address(), fabric, obstacle, wishes: Wishes::of(settings) }
}

/// The node of each PE, numbered from 0. One card alone is that of PE 0 in a job of one node.
fn nodes_of(me: Pe, n_pes: usize, cards: &[Card], settings: &Settings) -> Result<Vec<u32>> {
    if cards.len() == n_pes {
        let lowest = |card: &Card| cards.iter().position(|other| other.node == card.node);
        return Ok(cards.iter().map(|card| lowest(card).unwrap_or_default() as u32).collect());
    }
    let (mine, theirs) = (node_id(settings), cards[0].node.clone());
    match mine == theirs {
        true => Ok(vec![0; n_pes]),
        false => Err(ErrorKind::NoRoute { me, pe: 0, mine, theirs }.into()),
    }
}

/// What is between the PEs.
fn place(
    me: Pe,
    shm: Shm,
    ofi: Option<FabricResult<Ofi>>,
    (cards, nodes): (&[Card], Vec<u32>),
    settings: &Settings,
) -> Result<Placement> {
    let reach = match settings.route {
        RouteKind::Net => Reach::None,
        RouteKind::Auto if nodes.iter().all(|node| *node == nodes[0]) => Reach::All,
        RouteKind::Auto => Reach::Nodes,
    };
    let far = nodes.iter().position(|node| *node != nodes[me]);
    let net = match (reach, settings.fabric, far) {
        (Reach::All, ..) => None,
        (_, FabricKind::Auto | FabricKind::Shm, None) => Some(Net::Shm(shm)),
        (_, FabricKind::Shm, Some(pe)) => {
            let (mine, theirs) = (cards[me].node.clone(), cards[pe].node.clone());
            return Err(ErrorKind::NoRoute { me, pe, mine, theirs }.into());
        }
        _ => {
            let mut ofi = ofi.expect("libfabric is opened where it may be needed")?;
            ofi.connect(&mut |pe| match &cards[pe].fabric[..] {
                [] => {
                    let why = &cards[pe].obstacle;
                    Err(FabricError::Foreign { pe: me, what: format!("PE {pe} has no fabric: {why}") })
                }
                address => Ok(address.to_vec()),
            })?;
            Some(Net::Ofi(ofi))
        }
    };
    Ok(Placement { net, reach, nodes })
}

/// A node's memory for `n_pes` PEs.
pub(crate) fn layout(settings: &Settings, n_pes: usize) -> Layout {
    sized(Wishes::of(settings), |memory| memory, n_pes)
}

/// The memory of a node with `n_here` PEs in a job of several nodes: as PE 0 was set, or what all nodes have
/// room for, so that all heaps are alike.
fn shared_layout(cards: &[Card], nodes: &[u32], n_here: usize) -> Layout {
    let share = |pe: Pe| {
        let n_there = nodes.iter().filter(|node| **node == nodes[pe]).count();
        cards[pe].wishes.node_memory / n_there as u64
    };
    let least = (0..cards.len()).map(share).min().unwrap_or_default();
    sized(cards[0].wishes, |_| least * n_here as u64, n_here)
}

fn sized(wishes: Wishes, node_memory: impl Fn(u64) -> u64, n_pes: usize) -> Layout {
    let heap_bytes = match (wishes.heap as usize, node_memory(wishes.node_memory) as usize) {
        (0, 0) => HEAP_BYTES_FALLBACK,
        (0, total) => total / HEAP_SHARE.1 * HEAP_SHARE.0 / n_pes,
        (heap_bytes, _) => heap_bytes,
    };
    let pool_bytes = match wishes.pool as usize {
        0 => heap_bytes.max(POOL_BYTES_MIN),
        pool_bytes => pool_bytes,
    };
    Layout::new(n_pes, heap_bytes, wishes.ring as usize).with_pool(pool_bytes)
}

/// Names PEs of the job where an error names PEs of the node.
fn by_pe(error: FabricError, here: &[Pe]) -> FabricError {
    match error {
        FabricError::Missing { pe, seconds, missing, remedy } => {
            let missing = missing.into_iter().map(|slot| here[slot]).collect();
            FabricError::Missing { pe, seconds, missing, remedy }
        }
        other => other,
    }
}

/// Lets the peers reach this PE's heap and pool over the net. Where the provider chooses the keys, all tell
/// each other, by another exchange through the launcher.
pub(crate) fn register_heap(
    mut net: Net,
    (me, n_pes): (Pe, usize),
    memory: &Memory,
    membership: Option<&Membership>,
) -> Result<Net> {
    let start = NonNull::new(memory.heap(me)).expect("nothing is mapped at address 0");
    net.register(HEAP_KEY, start, memory.region_bytes())?;
    let exposed = net.exposed();
    let Some(Membership { job, worlds }) = membership.filter(|_| !exposed.is_empty()) else { return Ok(net) };
    let key = |pe: Pe| format!("pelago-{worlds}-{pe}-heap");
    if n_pes > 1 {
        job.put(&key(me), &exposed)?;
        job.barrier()?;
    }
    let mut all = Vec::with_capacity(n_pes);
    for pe in 0..n_pes {
        // What is missing makes no sense to the provider, which says so.
        all.push(if pe == me { exposed.clone() } else { job.get(pe, &key(pe))?.unwrap_or_default() });
    }
    net.reach(&mut |pe| Ok(all[pe].clone()))?;
    Ok(net)
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
