//! Frames of the send queue that travel in datagrams.

use super::super::datagram::DatagramSender;
use super::super::frame::{Header, Kind};
use super::{Piece, SendQueue};

impl SendQueue {
    /// Begins to use a sender of datagrams, and asks the peer whether they arrive.
    pub(in super::super) fn begin_datagrams(&mut self, mut sender: DatagramSender) {
        sender.report(self.sent_bytes);
        self.datagrams = Some(Box::new(sender));
    }

    /// Sends the batch in a datagram if that is possible now. Otherwise the run of datagrams ends. Returns
    /// whether nothing is unsent.
    #[inline]
    pub(super) fn flush_datagram(&mut self) -> bool {
        if !self.has_unsent() {
            return true;
        }
        let Some(datagrams) = &mut self.datagrams else { return false };
        let is_whole = self.pieces.is_empty() && self.sent == 0 && !self.is_cut;
        let is_settled = self.acknowledged.wrapping_sub(self.streamed).cast_signed() >= 0;
        if is_whole && datagrams.send(&mut self.batch, self.sent_bytes, is_settled) {
            self.sent_bytes += self.batch.len() as u64;
            self.clear_batch();
            return true;
        }
        self.repeat_run();
        false
    }

    /// Ends the run of datagrams, and lets the connection carry what is not acknowledged of it.
    fn repeat_run(&mut self) {
        let Some((first, run)) = self.datagrams.as_mut().and_then(|datagrams| datagrams.end_run()) else {
            return;
        };
        let header = Header { word: first, offset: self.sent_bytes, ..Header::control(Kind::Repeat, 0) };
        let bytes = [&header.to_bytes()[..], run].concat();
        self.pieces.push_front(Piece::Repeated { bytes, sent: 0 });
    }

    /// Ends the run of datagrams before large data, which the connection carries.
    #[cold]
    pub(super) fn end_run(&mut self) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.note_long();
            self.repeat_run();
        }
    }

    /// A tick: reports to the peer, or ends a run that was not acknowledged in time. Returns whether there
    /// are bytes to be sent.
    pub(in super::super) fn tick(&mut self) -> bool {
        let Some(datagrams) = &mut self.datagrams else { return false };
        let is_late = datagrams.tick();
        if datagrams.owes_report() {
            datagrams.report(self.sent_bytes);
        }
        if is_late {
            self.repeat_run();
        }
        is_late
    }

    /// Whether datagrams are not acknowledged.
    pub(in super::super) fn has_open_run(&self) -> bool {
        self.datagrams.as_ref().is_some_and(|datagrams| datagrams.has_open_run())
    }

    /// Lets the connection carry all frames from now on.
    pub(in super::super) fn close_datagrams(&mut self) {
        self.repeat_run();
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close();
        }
    }

    /// The same after a reset of the connection: the peer tells what it lacks of the last run.
    pub(in super::super) fn give_datagrams_up(&mut self) {
        self.pieces.retain(|piece| !matches!(piece, Piece::Repeated { .. }));
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close();
        }
    }

    /// Lets the connection carry what a peer lacks that has received this number of bytes, if these are the
    /// last bytes and have travelled in datagrams. Returns whether they are.
    pub(in super::super) fn repeat_missing(&mut self, received: u64) -> bool {
        let missing =
            self.datagrams.as_ref().and_then(|datagrams| datagrams.missing(received, self.sent_bytes));
        let Some(bytes) = missing.map(<[u8]>::to_vec) else { return false };
        self.sent_bytes = received;
        self.copied_bytes += bytes.len();
        self.pieces.push_front(Piece::Copied { bytes, sent: 0 });
        true
    }
}
