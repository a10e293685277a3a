//! Messages after a PE has failed: buffers that are gone are neither read nor written.

use pelago::sync::{AtomicBool, Ordering};
use pelago::{Spmd, SpmdError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Bytes of a block that the allocator gives back to the system.
const LONG: usize = 64 << 20;

fn await_flag(flag: &AtomicBool, what: &str) {
    let since = Instant::now();
    while !flag.load(Ordering::Acquire) {
        assert!(since.elapsed() < Duration::from_secs(60), "waited for {what}");
        yield_now();
    }
}

/// Sets a flag when it is dropped.
struct Gone<'a>(&'a AtomicBool);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// PE 0 unwinds out of a send because PE 2 has failed. PE 1, which has computed so far, receives then.
#[test]
fn the_data_of_a_sender_that_has_given_up_are_not_read() {
    let (is_gone, was_received) = (AtomicBool::new(false), AtomicBool::new(false));
    let have_begun = [AtomicBool::new(false), AtomicBool::new(false)];
    let outcome = pelago::spmd(3, |world| match world.my_pe() {
        0 => {
            have_begun[0].store(true, Ordering::Release);
            // Dropped after the data.
            let _gone = Gone(&is_gone);
            let data = vec![7_u8; LONG];
            world.team().send(1, 0, &data).unwrap();
        }
        1 => {
            have_begun[1].store(true, Ordering::Release);
            let mut room = vec![0_u8; LONG];
            await_flag(&is_gone, "PE 0 to unwind");
            was_received.store(world.team().receive(0, 0, &mut room).is_ok(), Ordering::Release);
        }
        _ => {
            have_begun.iter().for_each(|flag| await_flag(flag, "the others to begin"));
            panic!("on purpose")
        }
    });
    assert!(is_gone.load(Ordering::Acquire), "PE 0 has given up its send");
    assert!(matches!(outcome, Err(SpmdError::Panicked { pe: 2, .. })), "{outcome:?}");
    assert!(!was_received.load(Ordering::Acquire), "the message is gone");
}

/// A receive has failed, but its buffer is still there, so that a write to it can be seen.
#[test]
fn nothing_is_written_to_the_buffer_of_a_receive_that_has_failed() {
    let (has_failed, has_sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let found = Mutex::new(Vec::new());
    let outcome = Spmd::new(2).wait_limit(Duration::from_millis(200)).run(|world| {
        let team = world.team();
        if world.my_pe() == 1 {
            await_flag(&has_failed, "the receive to fail");
            team.send(0, 1, &[7_u8; 8]).unwrap();
            team.send(0, 2, &[8_u8; 8]).unwrap();
            has_sent.store(true, Ordering::Release);
            return;
        }
        let mut room = [0xee_u8; 8];
        let failed = |outcome: std::thread::Result<_>| assert!(outcome.is_err(), "the receive must fail");
        failed(catch_unwind(AssertUnwindSafe(|| team.receive(1, 1, &mut room).map(drop))));
        has_failed.store(true, Ordering::Release);
        await_flag(&has_sent, "the messages");
        failed(catch_unwind(AssertUnwindSafe(|| team.receive(1, 2, &mut [0_u8; 8]).map(drop))));
        // To oneself: the receive above is still posted.
        let _ = catch_unwind(AssertUnwindSafe(|| team.send(0, 2, &[9_u8; 8])));
        found.lock().unwrap().extend(room);
    });
    assert!(outcome.is_err(), "a PE has failed");
    assert_eq!(found.into_inner().unwrap(), [0xee; 8]);
}
