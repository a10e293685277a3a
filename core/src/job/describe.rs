//! Descriptions of the conditions that a PE waits for, for messages.

use super::Job;
use crate::Pe;
use crate::base::awaited::{ALL_PES, Awaited, within};
use crate::base::call::awaited;
use crate::base::label::compared;
use pelago_fabric::sync::Ordering;

impl Job {
    /// Describes the condition that is waited for.
    pub fn describe(&self, awaited: Awaited) -> String {
        let name = self.plain_name(awaited);
        match awaited {
            Awaited::Barrier { .. } => name + &self.agreement(),
            Awaited::Collective { .. } => name + &self.agreement() + &compared(),
            _ => name,
        }
    }

    fn plain_name(&self, awaited: Awaited) -> String {
        match awaited {
            Awaited::Barrier { pe: Some(pe), round } => format!("PE {pe} in barrier {round}"),
            Awaited::Barrier { pe: None, round } => format!("all PEs in barrier {round}"),
            Awaited::Collective { operation, pe: Some(pe) } => format!("PE {pe} in {operation} of a team"),
            Awaited::Collective { operation: ALL_PES, .. } => format!("all PEs in barrier {}", within()),
            Awaited::Collective { operation, pe: None } => format!("other PEs in {operation} of a team"),
            Awaited::Element { index } => format!("a change of element {index} of a symmetric array"),
            Awaited::Join => {
                let is_missing = |pe: &Pe| self.memory.near_block(*pe).attached.load(Ordering::Relaxed) < 2;
                let missing: Vec<Pe> = self.memory.near_pes().filter(is_missing).collect();
                match missing[..] {
                    [] => "PEs of other nodes to join the job".to_owned(),
                    _ => format!("PEs {missing:?} to join the job"),
                }
            }
            Awaited::Leave => "all PEs to leave the job".to_owned(),
            Awaited::Completion { operation, pe } => format!("the completion of {operation} on PE {pe}"),
            Awaited::Quiet => "the completion of its operations".to_owned(),
            Awaited::Message { is_send: false, pe: Some(pe) } => format!("a message from PE {pe}"),
            Awaited::Message { is_send: false, pe: None } => "a message from any PE".to_owned(),
            Awaited::Message { is_send: true, pe: Some(pe) } => format!("PE {pe} to receive a message"),
            Awaited::Message { is_send: true, pe: None } => "other PEs to receive messages".to_owned(),
            Awaited::Events { count: 1 } => "an event".to_owned(),
            Awaited::Events { count } => format!("{count} events, all or some of them"),
            Awaited::Future => "a future that can go on".to_owned(),
            Awaited::EndOfWork => "the end of the work that it accompanies".to_owned(),
            Awaited::Handlers => "the end of handlers that run on this PE, to begin serve".to_owned(),
            Awaited::Room { operation, pe } => format!("the fabric to accept {operation} for PE {pe}"),
        }
    }

    /// The agreement that a barrier belongs to, in brackets, and the PEs that have not arrived, as far as
    /// this PE knows them.
    fn agreement(&self) -> String {
        let Some((call, sequence)) = awaited() else { return String::new() };
        if sequence == 0 || !self.routes.are_all_mapped() {
            return format!(" ({call})");
        }
        let has_come = |pe| self.memory.agreement_record(pe, sequence)[0].load(Ordering::Relaxed) == sequence;
        let missing: Vec<Pe> = (0..self.n_pes()).filter(|&pe| !has_come(pe)).collect();
        format!(" ({call}; PEs {missing:?} have not come)")
    }
}
