//! The lines that the microbenchmarks write: one JSON object each. Invariant: a line says by itself what was
//! measured, how many PEs there were, and in what unit its numbers are.

use serde::{Deserialize, Serialize};

use super::stats::Summary;

/// What a measurement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// One operation at a time, from PE 0 on PE 1's memory.
    Latency,
    /// PE 0 puts and raises a flag on PE 1; PE 1 reads what came and acknowledges by a flag on PE 0.
    PingAck,
    /// Blocking transfers, one after the other, from PE 0 on PE 1's memory.
    Bandwidth,
    /// Windows of puts in a scope, each completed before the next.
    Flood,
    /// All PEs meet, again and again.
    Barrier,
    /// An atomic of PE 0 alone; one that answers gives the operand of the next, one that does not is followed
    /// by a quiet.
    AtomicLatency,
    /// Atomics of PE 0 alone, none of which needs the answer of another.
    AtomicRate,
    /// An atomic of several PEs at the same time, as each of them sees it; as a rate, that of all together.
    Contention,
    /// PEs 0 and 1 send each other the same bytes in turn, and read what has come.
    Signal,
    /// PEs 0 and 1 post each other's semaphore in turn.
    SemaphoreRoundTrip,
    /// PE 0 posts a semaphore of PE 1 again and again, which takes one after the other.
    SemaphoreRate,
    /// As `signal`, where the data are followed by a post, or by what stands beside it.
    MemputSignal,
    /// Windows of non-blocking puts from PE 0 to PE 1, each completed before the next.
    Rate,
    /// Threads of PE 0 at the same time on PE 1's memory; the rate of all together.
    Threads,
    /// Scattered blocks between PE 0 and PE 1's memory, each operation with a quiet.
    Scattered,
    /// PE 0 sends PE 1 a request, whose handler answers with as much; each when the answer before has come.
    MessageRoundTrip,
    /// PE 0 sends PE 1 requests, one after the other, and counts them when PE 1 has executed the last.
    MessageFlood,
    /// The same, and each request is answered with a short message.
    MessageFloodAnswered,
    /// Several PEs send PE 0 requests at the same time: the rate of all together, and the fairness.
    MessageSenders,
    /// PE 0 looks for messages, and there are none.
    MessagePoll,
    /// A collective operation of all PEs, again and again; each is the root in turn, where there is one.
    Collective,
    /// The same with PE 0 as the root always, which may run ahead of the others.
    CollectiveFixedRoot,
    /// What a collective operation must write at a PE, copied from where it lies by that PE, all at the same
    /// time.
    CollectiveCopies,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `p` of one element, without waiting for completion.
    PutIssue,
    /// `put`; as a latency, with `quiet`.
    Put,
    /// `get`; as a latency, each index from the value before, so that no two overlap.
    Get,
    /// The C library's memcpy between the buffers of the puts.
    PutMemcpy,
    /// The C library's memcpy between the buffers of the gets.
    GetMemcpy,
    /// There and back again.
    RoundTrip,
    /// Half a round trip.
    OneWay,
    /// The barrier of all PEs.
    Barrier,
    /// `fetch_add`.
    FetchAdd,
    /// `add`.
    Add,
    /// `fetch_inc`.
    FetchInc,
    /// `compare_swap`.
    CompareSwap,
    /// `swap`.
    Swap,
    /// `atomic_fetch`.
    AtomicFetch,
    /// `put_signal`, or `signal` where there are no bytes; half a round trip.
    PutSignal,
    /// `put`, `fence`, and `p` of a flag, or the latter alone where there are no bytes; half a round trip.
    PutFlag,
    /// `memput_signal` and `wait`; half a round trip.
    MemputSignal,
    /// A short active message; its bytes are those of its arguments.
    MessageShort,
    /// A medium active message without arguments; its bytes are those of its payload, as with a long one.
    MessageMedium,
    /// A long active message without arguments.
    MessageLong,
    /// A poll for active messages.
    Poll,
    /// `post` and `wait` of an integer semaphore for one producer and one consumer.
    PostOneToOne,
    /// The same, for many producers and one consumer.
    PostManyToOne,
    /// The same, for many of both.
    PostManyToMany,
    /// `post` and `wait` of a boolean semaphore for many of both.
    PostFlag,
    /// `put_strided`.
    PutStrided,
    /// `put_indexed`, the indices in no order.
    PutIndexed,
    /// `put_vector`.
    PutVector,
    /// `put` of each block.
    PutBlocks,
    /// `get_strided`.
    GetStrided,
    /// `get_indexed`, the indices in no order.
    GetIndexed,
    /// `get_vector`.
    GetVector,
    /// `get` of each block.
    GetBlocks,
    /// `broadcast`.
    Broadcast,
    /// `scatter`.
    Scatter,
    /// `gather`.
    Gather,
    /// `all_gather`.
    AllGather,
    /// `all_to_all`.
    AllToAll,
    /// `reduce`, a sum, as the next four.
    Reduce,
    /// `all_reduce`.
    AllReduce,
    /// `reduce_scatter`.
    ReduceScatter,
    /// `inclusive_scan`.
    InclusiveScan,
    /// `exclusive_scan`.
    ExclusiveScan,
}

/// Where the memory is that an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The same two buffers again and again: in the caches, as far as they fit.
    Cache,
    /// Buffers that move on through regions which together are twice the last-level cache or more.
    Memory,
    /// A word in PE 0's own memory.
    Own,
    /// A word in PE 1's memory.
    Other,
    /// One word for all PEs or threads.
    OneWord,
    /// A word each, on cache lines of their own.
    WordEach,
}

/// What an operation is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The world, in a scope where operations do not wait.
    World,
    /// Handles that own their buffers (`put_nb`).
    Handles,
    /// One context.
    Context,
    /// Several contexts in turn; with threads, one for each.
    Contexts,
}

/// Unit of a measurement's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds an operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// 10^6 operations a second.
    #[serde(rename = "M/s")]
    MillionsPerSecond,
    /// The rate of the slowest PE, as a part of the fastest one's.
    #[serde(rename = "slowest/fastest")]
    Fairness,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// What it is about.
    pub bench: Bench,
    /// What was done.
    pub operation: Operation,
    /// Bytes that one operation carries, of a collective operation or a scattered one those of a block; for a
    /// flag or a barrier 0.
    pub bytes: usize,
    /// PEs of the job.
    pub pes: usize,
    /// Of these, how many do the operation at the same time, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contenders: Option<usize>,
    /// Threads of PE 0 that do the operation at the same time, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// PEs that PE 0's operations go to in turn, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<usize>,
    /// Operations between two completions, where several are outstanding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Blocks of one operation, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// Where the memory is, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What the operation is started with, if that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
}

impl Label {
    /// A measurement on a job of `pes` PEs.
    pub const fn new(pes: usize, bench: Bench, operation: Operation, bytes: usize) -> Self {
        let (contenders, threads, links, window) = (None, None, None, None);
        let (blocks, place, way) = (None, None, None);
        Label { bench, operation, bytes, pes, contenders, threads, links, window, blocks, place, way }
    }

    /// The same, by so many PEs at the same time.
    pub const fn with_contenders(self, contenders: usize) -> Self {
        Label { contenders: Some(contenders), ..self }
    }

    /// The same, by so many threads at the same time.
    pub const fn with_threads(self, threads: usize) -> Self {
        Label { threads: Some(threads), ..self }
    }

    /// The same, to so many PEs in turn.
    pub const fn with_links(self, links: usize) -> Self {
        Label { links: Some(links), ..self }
    }

    /// The same, with so many operations between two completions.
    pub const fn with_window(self, window: usize) -> Self {
        Label { window: Some(window), ..self }
    }

    /// The same, with so many blocks.
    pub const fn with_blocks(self, blocks: usize) -> Self {
        Label { blocks: Some(blocks), ..self }
    }

    /// The same, on this memory.
    pub const fn in_place(self, place: Place) -> Self {
        Label { place: Some(place), ..self }
    }

    /// The same, started with this.
    pub const fn by_way(self, way: Way) -> Self {
        Label { way: Some(way), ..self }
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was measured.
    #[serde(flatten)]
    pub label: Label,
    /// What PEs that are not mapped were reached over, if there were such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<String>,
    /// Unit of the numbers that follow.
    pub unit: Unit,
    /// The numbers, over many short blocks of operations.
    #[serde(flatten)]
    pub summary: Summary,
}

impl Record {
    /// The record of these samples.
    ///
    /// # Panics
    /// If there are none, or one is not finite.
    pub fn of(label: Label, unit: Unit, samples: &[f64]) -> Self {
        Record { label, fabric: None, unit, summary: Summary::of(samples) }
    }

    /// The same, over this fabric.
    pub fn over(self, fabric: Option<&str>) -> Self {
        Record { fabric: fabric.map(str::to_owned), ..self }
    }
}

/// The records of one kind.
pub fn of(records: &[Record], bench: Bench, operation: Operation) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| (record.label.bench, record.label.operation) == (bench, operation))
}

/// The first record with such a label, if there is one.
pub fn find(records: &[Record], has: impl Fn(&Label) -> bool) -> Option<&Record> {
    records.iter().find(|record| has(&record.label))
}

/// What the labels of some records vary in, ascending.
pub fn values(records: &[Record], of: impl Fn(&Label) -> Option<usize>) -> Vec<usize> {
    let mut values: Vec<_> = records.iter().filter_map(|record| of(&record.label)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// One comparison of an operation with its yardstick, measured in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Nanoseconds of the operation, the median of its blocks.
    pub ours_ns: f64,
    /// Nanoseconds of the yardstick, the median of its blocks.
    pub yardstick_ns: f64,
}

/// What PE 0 has computed while the other PEs waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computation {
    /// Equal pieces of work done.
    pub pieces: u64,
    /// Time that it took, in nanoseconds.
    pub wall_ns: f64,
    /// Of this, time on a core.
    pub cpu_ns: f64,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A record with this median.
    pub fn record(label: Label, unit: Unit, median: f64) -> Record {
        Record::of(label, unit, &[median / 2.0, median, median * 10.0])
    }

    #[test]
    fn what_varies_is_listed_once_and_in_order() {
        let label = Label::new(2, Bench::Flood, Operation::Put, 8);
        let records = [64, 1, 64].map(|window| record(label.with_window(window), Unit::Nanoseconds, 1.0));
        assert_eq!(values(&records, |label| label.window), [1, 64]);
        assert_eq!(values(&records, |label| label.threads), [0; 0]);
    }

    #[test]
    fn a_line_is_one_flat_object() {
        let label = Label::new(2, Bench::Flood, Operation::Put, 64).with_window(8);
        let record = Record::of(label, Unit::GigabytesPerSecond, &[1.0, 2.0, 3.0]);
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(
            line,
            [
                r#"{"bench":"flood","operation":"put","bytes":64,"pes":2,"#,
                r#""window":8,"unit":"GB/s","min":1.0,"median":2.0,"max":3.0,"samples":3}"#,
            ]
            .concat()
        );
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }

    #[test]
    fn whatever_varies_is_in_the_line() {
        let label = Label::new(16, Bench::Threads, Operation::FetchAdd, 8);
        let label = label.with_contenders(4).with_threads(2).in_place(Place::WordEach).by_way(Way::Contexts);
        let record = Record::of(label, Unit::MillionsPerSecond, &[1.5]).over(Some("shm"));
        let line = serde_json::to_string(&record).unwrap();
        let varying = r#""contenders":4,"threads":2,"place":"word-each","way":"contexts","fabric":"shm","#;
        assert!(line.contains(varying), "{line}");
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
