//! Faults: refusals, the loss of a PE, endpoints that are dropped, errors.
//!
//! Invariant: an operation that cannot complete leaves the network and gives its credit back, so that no PE
//! waits for it here.

use super::engine::{Action, OpId, PortId, Standing, State};
use crate::types::{FabricError, Pe};

impl State {
    /// Whether a call that needs a credit, of which `in_use` are in use, returns `Again`.
    pub(super) fn refuses(&mut self, pe: Pe, in_use: usize) -> bool {
        let refused = in_use >= self.params.credits || self.random.chance(self.params.again);
        if refused {
            self.spend(pe, self.times.poll);
        }
        refused
    }

    /// Counts an accepted operation or message; some PE may be lost now.
    pub(super) fn count_operation(&mut self, pe: Pe) {
        self.stir(pe);
        self.operations += 1;
        if let Some(loss) = self.params.lose.filter(|loss| loss.after_operations <= self.operations) {
            self.params.lose = None;
            self.lose(loss.pe);
        }
    }

    fn lose(&mut self, peer: Pe) {
        self.lost = Some(peer);
        for port in self.ports.values_mut().filter(|port| port.pe != peer) {
            port.errors.push_back(loss_of(peer, port.pe));
        }
        for pe in 0..self.members.len() {
            let now = self.members[pe].clock;
            self.touch(pe, now);
        }
    }

    /// Whether a lost PE is at one end of the operation.
    pub(super) fn is_cut_off(&self, id: OpId) -> bool {
        let Some(lost) = self.lost else {
            return false;
        };
        self.ops.get(&id).is_some_and(|op| op.from == lost || op.to == lost)
    }

    /// Removes an operation and gives its credit back.
    pub(super) fn vanish(&mut self, id: OpId) {
        if let Some(op) = self.ops.remove(&id)
            && let Some(port) = self.ports.get_mut(&op.port)
        {
            port.outstanding -= 1;
        }
    }

    /// Reports to the endpoint why its operation cannot be executed.
    pub(super) fn fail(&mut self, id: OpId, error: FabricError, time: u64) {
        if let Some(op) = self.ops.get(&id) {
            let (port, from) = (op.port, op.from);
            if let Some(port) = self.ports.get_mut(&port) {
                port.errors.push_back(error);
                self.touch(from, time);
            }
        }
        self.vanish(id);
    }

    /// A port is dropped. Data that the network holds itself still arrive. Operations whose data lie in
    /// memory of the caller are removed, because that memory may be freed now.
    pub(super) fn close_port(&mut self, id: PortId) {
        self.ports.remove(&id);
        self.ops.retain(|_, op| {
            let is_held = match op.action {
                Action::Put => op.kept.is_some(),
                Action::Get => false,
                Action::Atomic(_) => op.local.0.is_null(),
            };
            op.port != id || is_held
        });
    }

    /// A PE leaves: its memory may be freed.
    pub(super) fn depart(&mut self, pe: Pe) {
        self.stir(pe);
        let member = &mut self.members[pe];
        member.standing = Standing::Gone;
        member.regions.clear();
        for letter in std::mem::take(&mut member.inbox) {
            let channel = self.channels.get_mut(&(letter.from, pe));
            channel.expect("a message received has a channel").load -= 1;
        }
    }
}

/// The loss of `peer` as the endpoints of `pe` report it.
pub(super) fn loss_of(peer: Pe, pe: Pe) -> FabricError {
    FabricError::PeerLost { pe, peer, operation: "the simulated loss of that PE" }
}
