//! Statistics of a PE's operations, and the text that a PE leaves.
//!
//! ```text
//! pelago statistics 2
//! pe<TAB>number<TAB>PEs of the job<TAB>node<TAB>nanoseconds recorded<TAB>waited
//! row<TAB>category<TAB>name<TAB>detail<TAB>calls<TAB>bytes<TAB>nanoseconds<TAB>longest<TAB>waited
//! peer<TAB>PE<TAB>operations<TAB>bytes
//! ```

use super::event::Event;
use crate::Pe;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// The sums over the operations with one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    calls: u64,
    bytes: u64,
    time: Duration,
    longest: Duration,
    /// The part of the time in which the PE waited.
    waited: Duration,
}

/// Statistics that grow with the number of names and of peers, not with that of operations.
#[derive(Default)]
pub(super) struct Statistics {
    rows: BTreeMap<(&'static str, &'static str, &'static str), Row>,
    /// Operations with each PE, and their bytes.
    peers: BTreeMap<Pe, (u64, u64)>,
    /// The time that each thread has waited.
    waited: BTreeMap<u8, Duration>,
}

impl Statistics {
    /// Adds an operation that took `time`, of which the PE waited for `waited`.
    pub fn add(&mut self, event: &Event, time: Duration, waited: Duration) {
        let key = (event.category.name(), event.name, event.detail);
        let row = self.rows.entry(key).or_default();
        row.calls += 1;
        row.bytes += event.bytes as u64;
        row.time += time;
        row.longest = row.longest.max(time);
        row.waited += waited;
        if let Some(pe) = event.peer.filter(|_| event.is_traffic) {
            let (operations, bytes) = self.peers.entry(pe).or_default();
            *operations += 1;
            *bytes += event.bytes as u64;
        }
    }

    /// Adds a wait of a thread that is not a part of another one.
    pub fn add_wait(&mut self, thread: u8, time: Duration) {
        *self.waited.entry(thread).or_default() += time;
    }

    /// The text for the files of a job. Of several threads that have waited, the one that waited longest
    /// counts.
    pub fn text(&self, (me, n_pes, node): (Pe, usize, u32), elapsed: Duration) -> String {
        let nanos = elapsed.as_nanos();
        // Threads after the 255th share a number.
        let waited = self.waited.values().max().map_or(0, Duration::as_nanos).min(nanos);
        let mut text = format!("pelago statistics 2\npe\t{me}\t{n_pes}\t{node}\t{nanos}\t{waited}\n");
        for ((category, name, detail), row) in &self.rows {
            let times = [row.time, row.longest, row.waited].map(|time| time.as_nanos().to_string());
            let _ = writeln!(
                text,
                "row\t{category}\t{name}\t{detail}\t{}\t{}\t{}",
                row.calls,
                row.bytes,
                times.join("\t")
            );
        }
        for (pe, (operations, bytes)) in &self.peers {
            let _ = writeln!(text, "peer\t{pe}\t{operations}\t{bytes}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Category;
    use super::*;

    #[test]
    fn operations_are_added_by_name_and_by_peer() {
        let mut statistics = Statistics::default();
        let put = Event::new(Category::Rma, "put").with(2, 100);
        let [one, three] = [1, 3].map(Duration::from_nanos);
        statistics.add(&put, three, one);
        statistics.add(&put, one, Duration::ZERO);
        statistics.add(&Event::arrival("arrival", (1, 0), 5, 64), Duration::ZERO, Duration::ZERO);
        for (thread, nanos) in [(1, 5), (2, 4), (2, 3), (3, 6)] {
            statistics.add_wait(thread, Duration::from_nanos(nanos));
        }
        let text = statistics.text((0, 4, 1), Duration::from_nanos(50));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "pelago statistics 2",
                "pe\t0\t4\t1\t50\t7",
                "row\tmessage\tarrival\t\t1\t64\t0\t0\t0",
                "row\trma\tput\t\t2\t200\t4\t3\t1",
                "peer\t2\t2\t200",
            ]
        );
    }
}
