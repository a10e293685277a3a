//! The limit of open descriptors: each process that this one exchanges data with takes one, and some take one
//! for datagrams.

use super::datagram::PEERS_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the program and of this library, besides the connections.
const OTHERS: u64 = 256;

/// Raises the soft limit, as far as the system permits it, so that there is room for a connection to each of
/// these processes, and for sockets for datagrams. Returns whether there is room for both.
pub(super) fn make_room(processes: usize) -> bool {
    let wanted = (processes + processes.min(PEERS_MAX)) as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if let Some(raised) = raised(&limit, wanted) {
        let is_raised = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok();
        log::debug!(target: "fabric", "tcp raises the limit of open files to {raised}: {is_raised}");
    }
    getrlimit(Resource::Nofile).current.is_none_or(|current| current >= wanted)
}

/// The soft limit to set for this number of descriptors; `None` if it need not be raised, or cannot be.
fn raised(limit: &Rlimit, wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum } = limit;
    let possible = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    current.is_some_and(|current| current < possible).then_some(possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_needed_and_permitted() {
        let of = |current, maximum| raised(&Rlimit { current, maximum }, 2000);
        assert_eq!(of(Some(1024), Some(4096)), Some(2000));
        assert_eq!(of(Some(1024), None), Some(2000));
        assert_eq!(of(Some(1024), Some(1500)), Some(1500), "as far as it goes");
        for (current, maximum) in
            [(Some(2000), Some(4096)), (Some(5000), None), (None, None), (Some(1024), Some(1024))]
        {
            assert_eq!(of(current, maximum), None, "{current:?} of {maximum:?}");
        }
    }
}
