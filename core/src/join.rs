//! How a process becomes a PE, or several: it learns its number from its launcher, finds the PEs on its node,
//! and maps the memory they share. One put and one barrier through the launcher for all PEs of the process;
//! the rest over memory.
//!
//! Invariant: the PEs of a process follow one another in number, and all processes have the same number of
//! PEs. The setup that a process does once for all its PEs ends with a [`PendingPe`] for each, which any
//! thread may take.

use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use crate::base::panic_message::tell_panics;
use crate::coll::select::{Preferences, preferences};
use crate::endpoint::HEAP_KEY;
use crate::job::business_card::{BEYOND_DEFAULT, BusinessCard, SHARE, Wishes};
use crate::job::decisions;
use crate::job::exchange::Cards;
use crate::job::fabrics::{self, Fabric};
use crate::job::membership::Membership;
use crate::job::nodes::Placement;
use crate::job::summary::Digest;
use crate::memory::route::Reach;
use crate::runtime::Core;
use pelago_boot::{FabricKind, Job, RouteKind, Settings, machine_id, node_id, pid_space};
use pelago_fabric::ofi::lighten_endpoints;
use pelago_fabric::secret::Purpose;
use pelago_fabric::shm::{Layout, Segment, Shm};
use pelago_fabric::sim::SimParams;
use pelago_fabric::{FabricError, FabricResult, Net, Provider, Secret};
use std::sync::Arc;

/// The share of the node's memory that its PEs' heaps take together by default. Pages come into being when
/// they are touched, so this costs nothing until it is used.
const HEAP_SHARE: (usize, usize) = (3, 4);
/// Where a provider needs registered memory to be resident all the time, heaps and pools are smaller by this.
const PINNED_SHARE: u64 = 4;
/// The heap of a PE unless a size is asked for, or its share of the node's memory is less: between the
/// defaults of Sandia OpenSHMEM (512 MiB), Open MPI (256 MiB) and Cray (64 MiB), the largest. Pages are taken
/// when they are touched.
const HEAP_BYTES_DEFAULT: usize = 512 << 20;
/// Size of a PE's heap where the system does not report its memory.
const HEAP_BYTES_FALLBACK: usize = 1 << 30;
/// The smallest pool that a PE gets by default.
const POOL_BYTES_MIN: usize = 64 << 20;

/// The environment's settings, with these in their place.
pub fn own_settings(settings: &[(&str, &str)]) -> Result<Settings> {
    let mut own = Settings::from_env()?;
    for (variable, value) in settings {
        own.set(variable, value)?;
    }
    Ok(own)
}

/// A PE's place in the job, as its process has prepared it.
pub struct PendingPe {
    pe: (Pe, usize),
    segment: Arc<Segment>,
    placement: Placement,
    membership: Membership,
}

impl PendingPe {
    /// The number of the PE.
    pub fn pe(&self) -> Pe {
        self.pe.0
    }

    /// Makes this thread the PE, and waits for all others.
    pub fn take(self, settings: &Settings) -> Result<Core> {
        Core::assemble(self.pe, self.segment, self.placement, Some(self.membership), settings)
    }
}

/// Makes this process a member of the job that it was started in.
pub fn process(settings: &Settings) -> Result<Membership> {
    // Before any other process waits for its PEs.
    let preferences = preferences(settings)?;
    if matches!(settings.fabric, FabricKind::Auto | FabricKind::Provider("ofi")) {
        // Before a launcher's library starts threads.
        lighten_endpoints();
    }
    let job = Job::join(settings)?;
    decisions::joined(&job, settings);
    log::debug!(target: "coll", "algorithms by {}", describe(&preferences, settings));
    tell_panics(job.notifier());
    Ok(Membership { job: Arc::new(job), worlds: 0 })
}

/// How algorithms of collective operations are chosen, for the log.
fn describe(preferences: &Preferences, settings: &Settings) -> String {
    let forced =
        preferences.forced.iter().map(|(operation, by)| format!(", {}={}", operation.name(), by.name));
    let table = settings.coll_tuning.as_deref().map_or("the built-in rules", |path| path);
    let order = if preferences.is_deterministic { ", in the order of PEs" } else { "" };
    table.to_owned() + order + &forced.collect::<String>()
}

/// Joins the job that this process was started in, with one PE.
pub fn one_pe(settings: &Settings) -> Result<Core> {
    match settings.pes_per_process {
        1 => of_job(process(settings)?, settings),
        pes_per_process => Err(ErrorKind::OnePeAProcess { pes_per_process }.into()),
    }
}

/// The next world of a job, where this process has one PE.
pub fn of_job(membership: Membership, settings: &Settings) -> Result<Core> {
    pending_pes(membership, settings)?.pop().expect("a process has a PE").take(settings)
}

/// Prepares the next world of a job for the PEs of this process.
pub fn pending_pes(membership: Membership, settings: &Settings) -> Result<Vec<PendingPe>> {
    let Membership { job, worlds } = membership;
    let (first, each) = (job.first_pe(), job.pes_per_process());
    let n_pes = job.size() * each;
    let hint = Hint::of(&job, settings)?;
    let may_lead = job.size() > 1 && hint.may_lead(job.rank());
    let mut shm = Shm::prepare(first, may_lead, settings.init_timeout)?;
    if hint == Hint::OneNode && first == 0 {
        // Before any PE waits for it.
        shm.place(0..each, layout(settings, n_pes))?;
    }
    let is_asked_for = matches!(settings.fabric, FabricKind::Provider(_));
    let is_net_for_all = is_asked_for && settings.route == RouteKind::Net;
    let card = own_card(&job, &shm, settings)?;
    let is_first_enough = hint == Hint::OneNode && !is_net_for_all;
    let mut cards = Cards::new(&job, worlds, "");
    let mut digest = cards.exchange(card.clone(), is_first_enough)?;
    is_on_node_of_first(&job, &digest, is_first_enough, settings)?;
    let mut fabrics = Vec::new();
    if is_net_for_all || settings.fabric != FabricKind::Shm && digest.nodes.iter().any(|node| *node != 0) {
        // Only now is it known which interface an endpoint must be at, so there is another exchange. A fabric
        // that no PE needs is not opened: opening takes time, and its providers install signal handlers.
        fabrics = fabrics::open(&job, &digest, secret_of(&job, &digest)?, settings);
        decisions::opened(&fabrics);
        cards = Cards::new(&job, worlds, "-far");
        digest = cards.exchange(with_fabrics(card, &fabrics), false)?;
    }
    let nodes = of_pes(&digest.nodes, each);
    let here: Vec<Pe> = (0..n_pes).filter(|&pe| nodes[pe] == nodes[first]).collect();
    let slot = here.iter().position(|&pe| pe == first).expect("a process is on its node");
    if hint != Hint::OneNode {
        shm.place(slot..slot + each, shared_layout(&digest, here.len()))?;
    } else if first != 0 {
        shm.place(slot..slot + each, Layout::new(n_pes, 0, settings.ring_bytes))?;
    }
    connect_node(&mut shm, (&cards, &digest), here[0] / each).map_err(|error| by_pe(error, &here))?;
    let segment = shm.segment().clone();
    let pending_pe = |(place, placement): (usize, Placement)| PendingPe {
        pe: (first + place, n_pes),
        segment: Arc::clone(&segment),
        placement,
        membership: Membership { job: Arc::clone(&job), worlds: worlds + 1 },
    };
    let mut placements = place(&job, shm, fabrics, (&cards, &digest, &nodes), settings)?;
    for (i, placement) in placements.iter_mut().enumerate() {
        placement.net.iter_mut().try_for_each(|net| register_heap(net, &segment, slot + i))?;
    }
    tell_reach(&job, worlds, &mut placements)?;
    decisions::nodes(&nodes, &here, segment.layout(), settings);
    decisions::reach(&placements[0], &digest.first);
    Ok(placements.into_iter().enumerate().map(pending_pe).collect())
}

/// Maps the memory of this node, which process `lowest` has made.
fn connect_node(shm: &mut Shm, (cards, digest): (&Cards, &Digest), lowest: usize) -> FabricResult<()> {
    shm.connect(&mut |_| match lowest {
        0 => Ok(digest.first.memory.clone()),
        _ => Ok(cards.read(lowest)?.memory),
    })
}

/// The node of each PE, by those of the processes.
fn of_pes(nodes: &[u32], each: usize) -> Vec<u32> {
    nodes.iter().flat_map(|&node| std::iter::repeat_n(node, each)).collect()
}

/// The knowledge that a process has of the nodes before the processes exchange it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// All PEs are on this node, as the launcher has told.
    OneNode,
    /// They are on several; this process is the lowest of its node, or not.
    Several { is_lowest: bool },
    /// Nothing is known.
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

    /// Whether it may fall to this process to make the node's memory.
    fn may_lead(self, rank: usize) -> bool {
        match self {
            Hint::OneNode => rank == 0,
            Hint::Several { is_lowest } => is_lowest,
            Hint::None => true,
        }
    }
}

/// The secret of the job, which process 0 has drawn.
fn secret_of(job: &Job, digest: &Digest) -> Result<Secret> {
    let bytes = digest.first.secret.as_slice().try_into();
    Ok(bytes.map(Secret::from_bytes).map_err(|_| FabricError::Foreign {
        pe: job.first_pe(),
        what: "the card of process 0 has no secret of the job".to_owned(),
    })?)
}

/// The business card of this process before it has opened a fabric.
fn own_card(job: &Job, shm: &Shm, settings: &Settings) -> Result<BusinessCard> {
    let mut node = node_id(settings);
    if let Some(nodes) = settings.sim_nodes {
        let places = SimParams::default().on_nodes(job.size(), nodes as usize).nodes;
        node += &format!("-{}", places[job.rank()]);
    }
    let secret = if job.rank() == 0 { drawn_secret(job.first_pe())? } else { Vec::new() };
    Ok(BusinessCard {
        node,
        machine: machine_id().unwrap_or_default(),
        pid_space: pid_space().unwrap_or_default(),
        pid: std::process::id(),
        secret,
        pes: job.pes_per_process(),
        memory: shm.address()?,
        wishes: Wishes::of(settings),
        ..BusinessCard::default()
    })
}

fn drawn_secret(pe: Pe) -> Result<Vec<u8>> {
    let secret = Secret::draw().map_err(|error| FabricError::System {
        pe,
        operation: "drawing the secret of the job".to_owned(),
        reason: error.to_string(),
        remedy: "getrandom(2) must be allowed",
    })?;
    Ok(secret.to_bytes().to_vec())
}

/// The card with the addresses of this process's endpoints.
fn with_fabrics(mut card: BusinessCard, fabrics: &[Fabric]) -> BusinessCard {
    card.fabrics = fabrics.iter().map(|fabric| fabric.offer.clone()).collect();
    if fabrics.iter().any(Fabric::pins) {
        card.wishes.node_memory /= PINNED_SHARE;
    }
    card
}

/// Checks that this process is on the node of process 0, as the launcher has told if one card was enough.
fn is_on_node_of_first(job: &Job, digest: &Digest, is_told: bool, settings: &Settings) -> Result<()> {
    let (me, mine, theirs) = (job.first_pe(), node_id(settings), digest.first.node.clone());
    if is_told && mine != theirs {
        return Err(ErrorKind::NoRoute { me, pe: 0, mine, theirs }.into());
    }
    Ok(())
}

/// The fabric between the PEs, for each PE of this process.
fn place(
    job: &Job,
    shm: Shm,
    fabrics: Vec<Fabric>,
    (cards, digest, nodes): (&Cards, &Digest, &[u32]),
    settings: &Settings,
) -> Result<Vec<Placement>> {
    let (me, each) = (job.first_pe(), job.pes_per_process());
    let reach = match settings.route {
        RouteKind::Net => Reach::None,
        RouteKind::Auto if nodes.iter().all(|node| *node == nodes[0]) => Reach::All,
        RouteKind::Auto => Reach::Nodes,
    };
    let far = nodes.iter().position(|node| *node != nodes[me]);
    let nets: Vec<Option<Net>> = match (reach, settings.fabric, far) {
        (Reach::All, ..) => (0..each).map(|_| None).collect(),
        (_, FabricKind::Auto | FabricKind::Shm, None) => {
            shm.split().into_iter().map(|shm| Some(Net::Shm(shm))).collect()
        }
        (_, FabricKind::Shm, Some(pe)) => {
            let (mine, theirs) = (cards.of(me / each)?.node, cards.of(pe / each)?.node);
            return Err(ErrorKind::NoRoute { me, pe, mine, theirs }.into());
        }
        _ => fabrics::connect(me, fabrics, &digest.terms, cards)?.into_iter().map(Some).collect(),
    };
    let number = secret_of(job, digest)?.derive(Purpose::JobNumber);
    let pids = of_pes(&digest.pids, each);
    let place = |net| Placement { net, reach, nodes: nodes.to_vec(), pids: pids.clone(), number };
    Ok(nets.into_iter().map(place).collect())
}

/// A node's memory for `n_pes` PEs.
pub fn layout(settings: &Settings, n_pes: usize) -> Layout {
    sized(Wishes::of(settings), |memory| memory, n_pes)
}

/// The memory of a node with `n_here` PEs in a job of several nodes: the size set at PE 0, or the size that
/// all nodes have room for, so that all heaps are alike.
fn shared_layout(digest: &Digest, n_here: usize) -> Layout {
    sized(digest.first.wishes, |_| digest.share * n_here as u64, n_here)
}

fn sized(wishes: Wishes, node_memory: impl Fn(u64) -> u64, n_pes: usize) -> Layout {
    let share = match node_memory(wishes.node_memory) as usize {
        0 => HEAP_BYTES_FALLBACK,
        total => total / HEAP_SHARE.1 * HEAP_SHARE.0 / n_pes,
    };
    // A library and static variables need extra bytes beside the default size.
    let (plain_bytes, extra_bytes) = match wishes.heap {
        SHARE => (share, 0),
        heap if heap & BEYOND_DEFAULT != 0 => {
            let extra_bytes = (heap ^ BEYOND_DEFAULT) as usize;
            (share.saturating_sub(extra_bytes).max(share / 2).min(HEAP_BYTES_DEFAULT), extra_bytes)
        }
        heap_bytes => (heap_bytes as usize, 0),
    };
    let heap_bytes = plain_bytes.saturating_add(extra_bytes);
    let pool_bytes = match wishes.pool {
        0 => plain_bytes.max(POOL_BYTES_MIN),
        SHARE => share.max(POOL_BYTES_MIN),
        pool_bytes => pool_bytes as usize,
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

/// Lets the peers reach the heap and the pool of the PE in this slot of the node's memory over the network.
pub fn register_heap(net: &mut Net, segment: &Segment, slot: usize) -> Result<()> {
    Ok(net.register(HEAP_KEY, segment.heap(slot), segment.layout().region_bytes())?)
}

/// Where the provider chooses keys and addresses, all processes exchange those of their PEs once more through
/// the launcher.
fn tell_reach(job: &Job, worlds: usize, placements: &mut [Placement]) -> Result<()> {
    let mut nets: Vec<_> = placements.iter_mut().filter_map(|placement| placement.net.as_mut()).collect();
    let exposed = nets.iter().flat_map(|net| net.exposed()).collect::<Vec<_>>();
    if exposed.is_empty() {
        return Ok(());
    }
    let key = |process: usize| format!("pelago-{worlds}-{process}-reach");
    if job.size() > 1 {
        job.put(&key(job.rank()), &exposed)?;
        job.barrier()?;
    }
    let mut all = Vec::with_capacity(job.size());
    for process in 0..job.size() {
        // A missing entry is not valid for the provider, which reports it.
        let is_own = process == job.rank();
        all.push(if is_own { exposed.clone() } else { job.get(process, &key(process))?.unwrap_or_default() });
    }
    let each = job.pes_per_process();
    let of = |pe: Pe| {
        let told = &all[pe / each];
        let bytes = told.len() / each;
        told[pe % each * bytes..][..bytes].to_vec()
    };
    Ok(nets.iter_mut().try_for_each(|net| net.reach(&mut |pe| Ok(of(pe))))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_have_the_size_that_programs_expect_within_what_there_is() {
        let sizes = |heap: u64, node_memory: u64, n_pes| {
            let wishes = Wishes { heap, pool: 0, ring: 4096, node_memory };
            sized(wishes, |memory| memory, n_pes).heap_bytes
        };
        const AUTO: u64 = BEYOND_DEFAULT;
        assert_eq!(sizes(AUTO, 64 << 30, 2), 512 << 20, "the default");
        assert_eq!(sizes(AUTO, 0, 2), 512 << 20, "the node does not say what it has");
        assert_eq!(sizes(AUTO, 1 << 30, 3), 256 << 20, "a share that is less");
        assert_eq!(sizes(AUTO | 32 << 20, 64 << 30, 2), 544 << 20, "what a library needs is added");
        assert_eq!(sizes(AUTO | 32 << 20, 1 << 30, 3), 256 << 20, "a share has room for it");
        assert_eq!(
            sizes(AUTO | 1 << 30, 4 << 30, 4),
            (384 << 20) + (1 << 30),
            "at least half a share remains"
        );
        assert_eq!(sizes(SHARE, 64 << 30, 2), 24 << 30, "a share that was asked for");
        assert_eq!(sizes(3 << 30, 1 << 30, 2), 3 << 30, "a size that was asked for");
        let pool = |pool: u64, node_memory: u64| {
            let wishes = Wishes { heap: BEYOND_DEFAULT, pool, ring: 4096, node_memory };
            sized(wishes, |memory| memory, 2).pool_bytes
        };
        assert_eq!(pool(0, 64 << 30), 512 << 20, "as the heap");
        assert_eq!(pool(SHARE, 64 << 30), 24 << 30, "a share");
        assert_eq!(pool(48 << 20, 64 << 30), 48 << 20, "a size that was asked for");
    }

    /// Half of an address space of 488 MiB is for heaps, the other half for pools.
    #[test]
    fn memory_of_a_library_fits_into_a_small_address_space() {
        const LIMIT: usize = 488 << 20;
        let wishes =
            Wishes { heap: BEYOND_DEFAULT | 32 << 20, pool: 0, ring: 4096, node_memory: LIMIT as u64 / 2 };
        let layout = sized(wishes, |memory| memory, 2);
        assert!(2 * (layout.heap_bytes + layout.pool_bytes) <= LIMIT * 3 / 4, "{layout:?}");
    }
}
