//! Settings that libfabric and its libraries read from the environment when they are loaded, unless the user
//! has set them.
//!
//! Invariant: the environment is changed only while this process has one thread, because other threads might
//! read it at the same time.

use crate::threads;
use std::env::{set_var, var_os};

/// Buffers of 16 KiB that each endpoint of the layer `ofi_rxm` fills in when it opens: 4096 by default, which
/// take 70 MB and 20 ms for every PE and every context. Here messages are moved at once from them to the PE's
/// own buffers; puts and gets need none.
const RECEIVES: (&str, &str) = ("FI_OFI_RXM_MSG_RX_SIZE", "256");

/// With this setting those buffers belong to one queue that all peers share, for which 256 are too few.
const SHARES_RECEIVES: &str = "FI_OFI_RXM_USE_SRX";

/// Settings that make `fork` safe over verbs and over `efa`. An older kernel copies a pinned page when this
/// process first writes to it after a fork, and the card then goes on with the child's page.
const FORK_SAFE: [(&str, &str); 2] = [("RDMAV_FORK_SAFE", "1"), ("FI_EFA_FORK_SAFE", "1")];

/// With this setting `efa` uses huge pages, and ends a process whose forks are to be safe.
const USES_HUGE_PAGES: &str = "FI_EFA_USE_HUGE_PAGE";

/// The first kernel that copies pinned pages for the child at the fork (`ibv_fork_init(3)`).
const COPIES_ON_FORK: (u32, u32) = (5, 13);

/// Makes endpoints of this process smaller, and its forks safe. It is for a process that may load libfabric
/// later and has no other threads yet. If there are other threads it does nothing: endpoints have libfabric's
/// default size, and forks are as safe as the user has made them.
pub fn lighten_endpoints() {
    if !matches!(threads::count(), Ok(1)) {
        return;
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    for (name, value) in settings(&release, |name| var_os(name).is_some()) {
        // SAFETY: this process has no other thread that could read the environment at the same time.
        unsafe { set_var(name, value) };
    }
}

/// The settings to make under a kernel of this release, where `is_set` says what the user has set.
fn settings(release: &str, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    let receives = (!is_set(SHARES_RECEIVES)).then_some(RECEIVES);
    let is_old = version(release).is_some_and(|version| version < COPIES_ON_FORK);
    let forks = FORK_SAFE.into_iter().filter(|_| is_old && !is_set(USES_HUGE_PAGES));
    receives.into_iter().chain(forks).filter(|(name, _)| !is_set(name)).collect()
}

/// The first two numbers of a kernel's release: `5.4.0-42-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(release: &str, set: &[&str]) -> Vec<&'static str> {
        settings(release, |name| set.contains(&name)).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn what_the_user_has_set_stays() {
        assert_eq!(names("6.1.0-13-amd64", &[]), ["FI_OFI_RXM_MSG_RX_SIZE"]);
        assert_eq!(names("6.1.0-13-amd64", &["FI_OFI_RXM_MSG_RX_SIZE"]), [""; 0]);
        assert_eq!(names("4.18.0", &["RDMAV_FORK_SAFE"]), ["FI_OFI_RXM_MSG_RX_SIZE", "FI_EFA_FORK_SAFE"]);
    }

    #[test]
    fn forks_are_made_safe_where_the_kernel_does_not() {
        let both = ["RDMAV_FORK_SAFE", "FI_EFA_FORK_SAFE"];
        for old in ["4.18.0-553.el8_10.x86_64", "5.12.19", "3.10", "5.4.0-42-generic"] {
            assert_eq!(names(old, &["FI_OFI_RXM_MSG_RX_SIZE"]), both, "{old}");
        }
        assert_eq!(names("5.4.0", &["FI_EFA_USE_HUGE_PAGE"]), ["FI_OFI_RXM_MSG_RX_SIZE"], "it excludes both");
        for other in ["5.13.0", "5.14.0-427.el9.x86_64", "6.12", "10.0-rc1", "", "unknown"] {
            assert_eq!(names(other, &["FI_OFI_RXM_MSG_RX_SIZE"]), [""; 0], "{other}");
        }
    }

    #[test]
    fn a_queue_that_all_peers_share_keeps_its_size() {
        assert_eq!(names("6.1", &["FI_OFI_RXM_USE_SRX"]), [""; 0]);
    }
}
