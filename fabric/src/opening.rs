//! How a process opens the endpoints of its PEs on a provider that it knows by name.
//!
//! Invariant: all providers are told the same, an [`Opening`]. The list of providers is [`Net::PROVIDERS`],
//! which the table `providers!` in `contract.rs` writes.

use crate::contract::Net;
use crate::ofi::Choice;
use crate::secret::Secret;
use crate::tcp::TcpChoice;
use crate::types::{FabricResult, Pe};
use std::ops::Range;

/// Opens an endpoint for each PE of a process.
pub type Open = fn(&Opening) -> FabricResult<Vec<Net>>;

/// A provider in this build.
pub struct ProviderInfo {
    /// Its name, as settings and reports write it.
    pub name: &'static str,
    /// How processes open it; none if the provider needs more than an [`Opening`] tells.
    pub open: Option<Open>,
}

impl ProviderInfo {
    /// The provider of this name.
    pub fn named(name: &str) -> Option<&'static ProviderInfo> {
        Net::PROVIDERS.iter().find(|provider| provider.name == name)
    }
}

/// What a process tells a provider to open the endpoints of its PEs.
#[derive(Clone)]
pub struct Opening {
    /// The number of the process in its job.
    pub process: usize,
    /// PEs of each process. They are numbered from process to process.
    pub pes_per_process: usize,
    /// PEs of the job.
    pub n_pes: usize,
    /// Whether all processes of the job are on this machine, in one network namespace.
    pub is_local: bool,
    /// What the members of the job have in common, and nobody else knows.
    pub secret: Secret,
    /// Options of the provider `ofi`; `is_local` is taken from above.
    pub ofi: Choice,
    /// Options of the provider `tcp`; `is_local` is taken from above.
    pub tcp: TcpChoice,
}

impl Opening {
    /// The PEs of the process.
    pub fn pes(&self) -> Range<Pe> {
        let first = self.process * self.pes_per_process;
        first..first + self.pes_per_process
    }
}
