//! Departures: the protocol between a PE that has left the job and the PEs that still wait for it.
//!
//! Invariant: a PE that leaves first publishes its last error, and a PE that finds that its wait cannot end
//! reports this error. Under a launcher such a PE does not end the job at once: it lets the PEs go that have
//! left, so that the `main` of each returns its error, and gives them a bounded time for it. The launcher
//! ends the job if one of them then ends with a status other than 0. Otherwise the waiting PE ends it, with
//! its own message.
//!
//! ```text
//! leaver:  last error, left --------- missed --> returns from its drop, tells its launcher, ends
//! waiter:    cannot end --> missed ------------ (bounded time) --------> panics, unless the job has ended
//! ```
//!
//! Between PEs of one node the errors lie in the PEs' blocks. A PE of another node is asked by a message,
//! which it receives because it still waits for the others to leave.

use super::engine::Engine;
use crate::Pe;
use crate::base::locked::locked;
use crate::base::panic_message;
use crate::progress::purpose::Purpose;
use pelago_fabric::sync::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The time that a PE whose wait cannot end gives the PEs that have left to end.
const TIME_TO_END: Duration = Duration::from_secs(5);
/// The time that a launcher has to end the job after the last of them has ended.
const TIME_TO_NOTICE: Duration = Duration::from_secs(2);
/// The time that a launcher has to end the job after a PE was lost: longer than the wait of a PE that knows
/// the reason.
const TIME_AFTER_LOSS: Duration = Duration::from_secs(3);
/// The time that this PE leaves its launcher, if that has exited, to end this PE.
const TIME_AFTER_LAUNCHER: Duration = Duration::from_secs(2);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest error that is sent, in bytes.
const WORDS_MAX_BYTES: usize = 512;

impl Engine {
    /// Publishes that this PE has begun to leave, with its last error.
    pub fn say_left(&self) {
        let block = self.memory.near_block(self.my_pe());
        let last_error =
            self.departures.last_error.get_or_init(|| panic_message::last_error(self.is_alone_in_process()));
        if let Some(words) = last_error {
            block.last_error.record(self.my_pe(), words);
        }
        let place = self.memory.header().leaving.fetch_add(1, Ordering::AcqRel) + 1;
        // SYNC POINT left: releases this PE's last operations to a PE that sees that it has left.
        block.departure.left.store(place, Ordering::Release);
        self.ring_sleepers_after_change();
    }

    /// The PE that waits for this one, although this one has left, if there is such a PE.
    pub fn missed_by(&self) -> Option<Pe> {
        let near = self.memory.near_block(self.my_pe()).departure.missed.load(Ordering::Relaxed);
        near.checked_sub(1).map(|pe| pe as Pe).or_else(|| self.departures.missed_by.get().copied())
    }

    /// The message to the launcher of a PE that has left while another PE waits for it.
    pub fn missed_words(&self, by: Pe) -> String {
        let last_error = self.departures.last_error.get().cloned().flatten();
        last_error.unwrap_or_else(|| format!("PE {by} still waited for PE {}", self.my_pe()))
    }

    /// Records that another PE waits for this one, which has left, and sends it this PE's last error.
    pub fn note_missed(&self, from: Pe) {
        let _ = self.departures.missed_by.set(from);
        let words = self.departures.last_error.get().and_then(Option::as_deref).unwrap_or_default();
        let bytes = words.len().min(self.net_endpoint().message_bytes()).min(WORDS_MAX_BYTES);
        self.send_later(from, Purpose::LastError, 0, words.as_bytes()[..bytes].to_vec());
    }

    /// Records the last error of a PE of another node.
    pub fn note_last_error(&self, from: Pe, words: &[u8]) {
        let words = (!words.is_empty()).then(|| String::from_utf8_lossy(words).into_owned());
        self.told().push((from, words));
    }

    /// The PE that has left first, if any has; PEs of other nodes, whose order is not known, come last.
    pub fn first_to_leave(&self) -> Option<Pe> {
        (0..self.n_pes()).filter(|&pe| self.has_left(pe)).min_by_key(|&pe| self.place_of(pe))
    }

    fn place_of(&self, pe: Pe) -> u32 {
        self.memory.block(pe).map_or(u32::MAX, |block| block.departure.left.load(Ordering::Relaxed))
    }

    /// Ends this PE, whose wait for `what` cannot end: because `pe` has left, or because all others have.
    #[cold]
    #[track_caller]
    pub fn wait_in_vain(&self, what: &str, pe: Option<Pe>) -> ! {
        let me = self.my_pe();
        if self.is_launched() {
            self.let_go();
        }
        let mut leavers: Vec<Pe> = (0..self.n_pes()).filter(|&pe| pe != me && self.has_left(pe)).collect();
        leavers.sort_by_key(|&pe| self.place_of(pe));
        let left = match pe {
            Some(pe) => format!("PE {pe} has left the job"),
            None => "no other PE is left in the job".to_owned(),
        };
        // The error of the PE that is waited for, or else the first one found.
        let with_error = pe.into_iter().chain(leavers).find_map(|pe| Some((pe, self.last_error_of(pe)?)));
        let why = match with_error {
            None => String::new(),
            Some((other, words)) if Some(other) == pe => format!(" after an error: {words}"),
            Some((other, words)) => format!("; PE {other} has left it after an error: {words}"),
        };
        self.fail(&format!("PE {me}: waits for {what}, but {left}{why}"));
    }

    /// Ends this PE because it has lost another one, unless the launcher, which knows the reason, ends the
    /// job first. If all PEs have come to the end of the job, the other one has left as it should.
    #[cold]
    #[track_caller]
    pub fn fail_after_loss(&self, reason: &str) {
        if self.is_launched() && !self.departures.has_given_time.swap(true, Ordering::Relaxed) {
            self.pause_until(Instant::now() + TIME_AFTER_LOSS, || self.all_leave());
        }
        if !self.all_leave() {
            self.fail(reason);
        }
    }

    /// The failure of another PE, if this PE knows of one, and how long it has known of it.
    pub fn known_failure(&self) -> Option<(Duration, Pe, String)> {
        let (pe, reason) = self.memory.header().failure.read()?;
        Some((self.departures.failure_seen.get_or_init(Instant::now).elapsed(), pe, reason))
    }

    /// Lets PEs go that have left, or that leave meanwhile, and gives them time to end.
    fn let_go(&self) {
        self.departures.has_given_time.store(true, Ordering::Relaxed);
        let (mut told, mut near, mut is_any_unseen, mut is_any_other) =
            (Vec::new(), Vec::new(), false, false);
        let mut look = |near: &mut Vec<OwnedFd>| {
            for leaver in (0..self.n_pes()).filter(|&pe| pe != self.my_pe() && self.has_left(pe)) {
                for pe in self.not_seen_to_leave(leaver) {
                    if !told.contains(&pe) {
                        told.push(pe);
                        let end = self.tell_missed(pe);
                        is_any_other |= end != End::WithThis;
                        is_any_unseen |= end == End::Unseen;
                        if let End::OfProcess(process) = end {
                            match handle(process) {
                                Ok(process) => near.push(process),
                                Err(Errno::SRCH) => {}
                                Err(_) => is_any_unseen = true,
                            }
                        }
                    }
                }
            }
            (is_any_other, is_any_unseen)
        };
        if !look(&mut near).0 {
            // This process does not end before this PE does.
            return;
        }
        let deadline = Instant::now() + TIME_TO_END;
        self.pause_until(deadline, || {
            let (_, is_any_unseen) = look(&mut near);
            near.retain(|process| !has_ended(process));
            near.is_empty() && !is_any_unseen
        });
        self.pause_until(deadline.min(Instant::now() + TIME_TO_NOTICE), || false);
    }

    /// A PE that has left, and others that may have left: a PE of another node reports it only to PEs that
    /// wait for it, and its process does not end before all its PEs have been let go.
    fn not_seen_to_leave(&self, leaver: Pe) -> Range<Pe> {
        let each = self.pes_per_process();
        match self.memory.block(leaver) {
            Some(_) => leaver..leaver + 1,
            None => leaver / each * each..(leaver / each + 1) * each,
        }
    }

    /// Tells a PE that has left that this one waits for it.
    fn tell_missed(&self, pe: Pe) -> End {
        let Some(block) = self.memory.block(pe) else {
            self.send_later(pe, Purpose::Missed, 0, Vec::new());
            return End::Unseen;
        };
        block.departure.missed.store(self.my_pe() as u32 + 1, Ordering::Relaxed);
        self.ring_sleepers_after_change();
        match self.pid_of(pe) {
            None => End::Unseen,
            Some(process) if process == std::process::id() => End::WithThis,
            Some(process) => End::OfProcess(process),
        }
    }

    /// Pauses until `is_over` or until the deadline. This PE serves the requests of others meanwhile. A
    /// launcher that ends a job may exit before this PE has ended, so the pause allows some time for that.
    fn pause_until(&self, deadline: Instant, mut is_over: impl FnMut() -> bool) {
        let mut gone_since = None;
        while Instant::now() < deadline && !is_over() {
            if self.is_launcher_gone()
                && gone_since.get_or_insert_with(Instant::now).elapsed() > TIME_AFTER_LAUNCHER
            {
                return;
            }
            self.serve_if_possible();
            std::thread::sleep(PAUSE);
        }
    }

    fn last_error_of(&self, pe: Pe) -> Option<String> {
        match self.memory.block(pe) {
            Some(block) => block.last_error.read().map(|(_, words)| words),
            None => self.told().iter().find(|(from, _)| *from == pe).and_then(|(_, words)| words.clone()),
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Vec<(Pe, Option<String>)>> {
        locked(&self.departures.told)
    }
}

/// How this PE observes the end of a PE that has left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The PE shares the process of this PE.
    WithThis,
    /// By the end of the process with this number.
    OfProcess(u32),
    /// Not at all.
    Unseen,
}

/// A handle of a process.
///
/// # Errors
/// `SRCH` if it has ended; others if the system has no such handles, or has none left.
fn handle(process: u32) -> Result<OwnedFd, Errno> {
    let pid = Pid::from_raw(process.cast_signed()).ok_or(Errno::SRCH)?;
    pidfd_open(pid, PidfdFlags::empty())
}

/// Whether a process has ended, even if its status was not collected yet.
fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0) | Err(Errno::INTR))
}
