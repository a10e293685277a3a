//! The decisions of the start as records of the crate `log`, for `PELAGO_LOG`.
//!
//! Invariant: called while a job forms only, once for each process and world.

use crate::base::label::ranges;
use crate::job::business_card::BusinessCard;
use crate::job::fabrics::Fabric;
use crate::job::nodes::Placement;
use crate::memory::route::Reach;
use pelago_boot::{Job, Settings, node_id, settings_table, start_log};
use pelago_fabric::Net;
use pelago_fabric::shm::Layout;

/// Starts the log of this process, and records how it has joined.
pub fn joined(job: &Job, settings: &Settings) {
    let host = rustix::system::uname();
    let (first, each) = (job.first_pe(), job.pes_per_process());
    let name = if each == 1 { format!("PE {first}") } else { format!("PEs {first}-{}", first + each - 1) };
    start_log(&settings.log, format!("{name} on {}", host.nodename().to_string_lossy()));
    let launcher = job.launcher();
    log::info!(target: "job", "joined {} processes of {each} PEs each, launcher {launcher:?}", job.size());
    if log::log_enabled!(target: "job", log::Level::Debug) {
        let given = |name: &str| std::env::var(name).ok().map(|value| format!("{name}={value}"));
        let given: Vec<_> = settings_table().iter().filter_map(|row| given(row.name)).collect();
        log::debug!(target: "job", "settings of the environment: {}", given.join(" "));
    }
}

/// Records the nodes, and the memory of this one.
pub fn nodes(nodes: &[u32], here: &[usize], layout: Layout, settings: &Settings) {
    let count = nodes.iter().max().map_or(1, |last| last + 1);
    let (here, name) = (ranges(here), node_id(settings));
    log::info!(target: "nodes", "{count} nodes; PEs {here} are on this one ({name})");
    let Layout { heap_bytes, pool_bytes, ring_bytes, .. } = layout;
    log::info!(
        target: "memory",
        "each PE has a heap of {heap_bytes} bytes, a pool of {pool_bytes}, rings of {ring_bytes}"
    );
}

/// Records which fabrics this process has opened.
pub fn opened(fabrics: &[Fabric]) {
    for fabric in fabrics {
        match fabric.offer.is_open() {
            true => log::debug!(target: "fabric", "opened {}", fabric.offer.terms),
            false => log::debug!(target: "fabric", "not opened: {}", fabric.offer.obstacle),
        }
    }
}

/// Records how the PEs reach each other.
pub fn reach(placement: &Placement, first: &BusinessCard) {
    let offers = first.fabrics.len();
    let net = placement.net.as_ref().map_or("no network", Net::name);
    match placement.reach {
        Reach::All => log::info!(target: "fabric", "all PEs map each other's memory; no network is opened"),
        Reach::Nodes => {
            log::info!(target: "fabric", "mapped memory on a node, {net} between nodes, of {offers} offers");
        }
        Reach::None => log::info!(target: "fabric", "{net} between all PEs (PELAGO_ROUTE=net)"),
    }
}
