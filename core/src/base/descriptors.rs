//! Waiting for file descriptors.

use rustix::event::{PollFd, Timespec, poll};
use std::time::Duration;

/// Blocks until one of the descriptors has an event, but no longer than `bound`. It may return early, so the
/// caller checks its condition again.
pub fn poll_for(descriptors: &mut [PollFd<'_>], bound: Duration) {
    let bound = Timespec { tv_sec: bound.as_secs() as i64, tv_nsec: bound.subsec_nanos().into() };
    let _ = poll(descriptors, Some(&bound));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, PollFlags, eventfd};

    #[test]
    fn an_event_ends_the_wait_and_its_absence_does_not() {
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut descriptors = [PollFd::new(&event, PollFlags::IN)];
        poll_for(&mut descriptors, Duration::ZERO);
        assert!(descriptors[0].revents().is_empty());
        rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
        poll_for(&mut descriptors, Duration::from_secs(3600));
        assert_eq!(descriptors[0].revents(), PollFlags::IN);
    }
}
