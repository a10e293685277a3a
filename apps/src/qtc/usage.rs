//! The use of synchronisation memory of a PE in all its groups. Invariant: a group that continues to use the
//! memory of the group before, which its counts show, is not counted twice.

use pelago::coll::sync_memory::SyncCounts;

/// The counts of the memories that were used one after the other.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The counts of the memories that are not used any more.
    former: SyncCounts,
    /// The counts of the memory in use, with the maximum number of slots that it has reported: it drops the
    /// slots of members that have left.
    current: SyncCounts,
}

impl Usage {
    /// Records the counts of the present group; must be called when a group begins and before it ends.
    pub(super) fn take(&mut self, told: SyncCounts) {
        if told.signals < self.current.signals {
            self.former = self.total();
            self.current = SyncCounts::default();
        }
        self.current = SyncCounts { slots: told.slots.max(self.current.slots), ..told };
    }

    /// The counts of all memories together.
    pub(super) fn total(&self) -> SyncCounts {
        let Usage { former, current } = self;
        SyncCounts {
            signals: former.signals + current.signals,
            chores: former.chores + current.chores,
            slots: former.slots + current.slots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_kept_counts_once_and_new_memory_anew() {
        let mut usage = Usage::default();
        let told = [[0, 0, 0], [90, 8, 40], [0, 0, 0], [50, 4, 24], [50, 4, 16], [70, 5, 16]];
        for [signals, chores, slots] in told {
            usage.take(SyncCounts { signals, chores, slots });
        }
        assert_eq!(usage.total(), SyncCounts { signals: 160, chores: 13, slots: 64 });
    }
}
