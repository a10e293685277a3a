//! The first barrier of the PEs of a node.

use super::engine::Engine;
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use pelago_boot::{cpu_quota, cpus};
use pelago_fabric::sync::Ordering;

impl Engine {
    /// Waits for the other PEs of this node, and returns the number of cores on which they may run together,
    /// or the CPU limit of their control groups if that is lower.
    pub fn meet_and_count_cores(&self) -> usize {
        let header = self.memory.header();
        for cpu in cpus() {
            if let Some(word) = header.cpus.get(cpu / 64) {
                word.fetch_or(1 << (cpu % 64), Ordering::Relaxed);
            }
        }
        if let Some(quota) = cpu_quota() {
            header.quota.fetch_max(u32::MAX - quota as u32, Ordering::Relaxed);
        }
        if !self.routes.are_all_mapped() {
            header.over_net.fetch_add(1, Ordering::Relaxed);
        }
        self.tell_process();
        self.memory.near_block(self.me).attached.store(2, Ordering::Relaxed);
        // SYNC POINT joined: releases this PE's CPUs.
        header.joined.fetch_add(1, Ordering::AcqRel);
        self.ring_sleepers_after_change();
        // SYNC POINT joined: acquires the CPUs of all PEs.
        let n_here = self.memory.blocks().len();
        self.wait(Awaited::Join, || header.joined.load(Ordering::Acquire) as usize >= n_here);
        let cores: u32 = header.cpus.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        let quota = u32::MAX - header.quota.load(Ordering::Relaxed);
        (cores.min(quota) as usize).max(1)
    }

    /// Checks that all PEs of this node use the same route, because they could not synchronize otherwise.
    pub fn check_routes(&self) -> Result<()> {
        let over_net = self.memory.header().over_net.load(Ordering::Relaxed) as usize;
        let n_pes = self.memory.blocks().len();
        if over_net != 0 && over_net != n_pes {
            return Err(ErrorKind::RoutesDiffer { me: self.me, over_net, n_pes }.into());
        }
        Ok(())
    }
}
