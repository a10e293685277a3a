//! The use of synchronisation memory of a PE in all its groups. Invariant: memory that several groups use,
//! one after the other, is counted once: that of a group which continues with the memory of the group
//! before, which its counts show, and that of pairs of PEs, which all groups share.

use pelago::coll::sync_memory::SyncCounts;

/// The counts of the memories that were used one after the other.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The counts of pairs before the first group.
    before: Option<SyncCounts>,
    /// The counts of the memories that are not used any more.
    former: SyncCounts,
    /// The counts of the memory in use.
    current: SyncCounts,
}

impl Usage {
    /// Records the counts of the present group; must be called when a group begins and before it ends.
    pub(super) fn take(&mut self, told: SyncCounts) {
        let before = *self.before.get_or_insert(if told.is_of_pairs { told } else { SyncCounts::default() });
        if !told.is_of_pairs && told.signals < self.current.signals {
            self.former = self.total();
            self.current = SyncCounts::default();
        }
        let (signals, chores) = (told.signals - before.signals, told.chores - before.chores);
        self.current = SyncCounts { signals, chores, ..told };
    }

    /// The counts of all memories together.
    pub(super) fn total(&self) -> SyncCounts {
        let Usage { former, current, .. } = self;
        SyncCounts {
            signals: former.signals + current.signals,
            chores: former.chores + current.chores,
            slots: former.slots + current.slots,
            words: former.words + current.words,
            bytes: former.bytes + current.bytes,
            is_of_pairs: current.is_of_pairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_are_kept_count_once_and_new_arrays_anew() {
        let mut usage = Usage::default();
        let told = [[0, 0, 0], [90, 8, 40], [0, 0, 0], [50, 4, 24], [50, 4, 24], [70, 5, 24]];
        for [signals, chores, slots] in told {
            let (words, bytes) = (slots, 256 * slots);
            usage.take(SyncCounts { signals, chores, slots, words, bytes, is_of_pairs: false });
        }
        let [signals, chores, slots, words, bytes] = [160, 13, 64, 64, 64 * 256];
        assert_eq!(usage.total(), SyncCounts { signals, chores, slots, words, bytes, is_of_pairs: false });
    }

    #[test]
    fn slots_of_pairs_count_once_for_all_groups() {
        let mut usage = Usage::default();
        for [signals, chores, slots] in [[10, 1, 2], [90, 8, 4], [90, 8, 4], [95, 9, 6]] {
            let (words, bytes) = (slots + 1, 16 * slots + 8);
            usage.take(SyncCounts { signals, chores, slots, words, bytes, is_of_pairs: true });
        }
        let [signals, chores, slots, words, bytes] = [85, 8, 6, 7, 104];
        assert_eq!(usage.total(), SyncCounts { signals, chores, slots, words, bytes, is_of_pairs: true });
    }
}
