//! The parameters that a process passes to a provider when it opens the endpoints of its PEs.
//!
//! Invariant: all providers are told the same, an [`Opening`].

use crate::secret::Secret;
use crate::types::Pe;
use std::ops::{Range, RangeInclusive};

/// The parameters with which a provider opens the endpoints of its PEs.
#[derive(Clone)]
pub struct Opening {
    /// The number of the process in its job.
    pub process: usize,
    /// PEs of each process. They are numbered from process to process.
    pub pes_per_process: usize,
    /// PEs of the job.
    pub n_pes: usize,
    /// Processes of the same node with lower numbers.
    pub lower_on_node: usize,
    /// Whether all processes of the job are on this machine, in one network namespace.
    pub is_local: bool,
    /// The secret that the members of the job share.
    pub secret: Secret,
    /// Options of the provider `ofi`; `is_local` is taken from above, and so is `turn` if it is not `None`.
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

/// Which of libfabric's offers to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Path of the library; none for the system's.
    pub library: Option<String>,
    /// Providers by name, the preferred one first; empty for libfabric's own order.
    pub providers: Vec<String>,
    /// The domain or the address to send from; none for the first that fits.
    pub interface: Option<String>,
    /// Whether a thread of the user's calls the endpoint while nobody else does, so that what moves only in
    /// calls moves.
    pub is_served: bool,
    /// Whether all PEs of the job are on this machine: then the endpoint is at an address that no other
    /// machine reaches, if there is one and `interface` names none.
    pub is_local: bool,
    /// The number of the PE on its node: PEs take equal network cards by turns, those near to their
    /// processors if there are such. `None`: each PE takes the first card.
    pub turn: Option<usize>,
}

/// Options of the endpoints.
#[derive(Clone, Debug, Default)]
pub struct TcpChoice {
    /// The interface at which the process listens, by its name or its address; `None` for all of them.
    pub interface: Option<String>,
    /// Whether all processes of the job are on this machine, in one network namespace. Then the process
    /// listens at the loopback interface.
    pub is_local: bool,
    /// The congestion control of connections by its name, or `system` for the system's; `None` for the
    /// system's unless it paces.
    pub congestion: Option<String>,
    /// The ports at which the process listens; `None` for those that the system chooses.
    pub ports: Option<RangeInclusive<u16>>,
    /// Whether short frames travel in datagrams (UDP) beside the connections, where the network carries them.
    pub datagrams: bool,
    /// Whether a goodbye that cannot be sent is a panic, as in tests. Otherwise it is given up.
    pub insists_on_goodbye: bool,
    /// Whether connections are encrypted: the same for all processes of the job.
    pub encrypts: bool,
}

impl TcpChoice {
    /// Whether frames may travel in datagrams: encrypted ones do not.
    pub fn uses_datagrams(&self) -> bool {
        self.datagrams && !self.encrypts
    }
}
