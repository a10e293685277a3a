//! The costs that estimates go by: of messages on this network, and the number of PEs that share a core.
//!
//! Invariant: all PEs have the same costs, because they agree on them when the job begins.

use super::Speaker;
use super::agreement::ByEngine;
use super::trial::{NO_WORDS, Words};
use crate::coll::estimate::Costs;
use crate::coll::teams::Teams;

/// From one machine to another over Ethernet, in nanoseconds, without the work of the processors. Assumed.
const ETHERNET_NS: f64 = 8000.0;

/// The words of a PE about its machine, of which the largest are agreed on: the PEs that share a core, and
/// whether there are PEs on other machines.
fn words(pes_per_core: usize, has_others: bool) -> Words {
    let mut words = NO_WORDS;
    [words[0], words[1]] = [pes_per_core as u64, has_others.into()];
    words
}

/// The costs of a job over the provider of this name, by the agreed words.
fn costs(provider: &str, words: &Words) -> Costs {
    let costs = match (provider, words[1]) {
        ("tcp", 0) => Costs::tcp_of_one_machine(),
        ("tcp", _) => Costs { latency: ETHERNET_NS, ..Costs::tcp_of_one_machine() },
        _ => Costs::default(),
    };
    Costs { ranks_per_core: (words[0] as usize).max(1), ..costs }
}

impl Teams {
    /// Agrees with all PEs on the costs by which the online tuner estimates, if there is something to tune.
    /// All PEs call it when they have joined.
    pub fn agree_on_costs(&self) {
        let (Some(online), Some(net)) = (self.collectives.online(), &self.net) else { return };
        let speaker = ByEngine { world: self, team: &self.team };
        let has_others = (0..self.n_pes()).any(|pe| self.pid_of(pe).is_none());
        let agreed = speaker.take(speaker.ask(&words(self.affinity.pes_per_core(), has_others)));
        online.costs.get_or_init(|| costs(net.provider(), &agreed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_from_the_network_and_from_cores_that_are_shared() {
        let tcp = costs("tcp", &words(1, false));
        assert_eq!(tcp, Costs::tcp_of_one_machine());
        assert!(costs("tcp", &words(1, true)).latency > 10.0 * tcp.latency);
        assert_eq!(costs("ofi", &words(0, true)), Costs::default());
        assert_eq!(costs("tcp", &words(3, false)).ranks_per_core, 3);
    }
}
