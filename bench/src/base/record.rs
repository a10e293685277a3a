//! The lines that the microbenchmarks write: one JSON object each. Invariant: a line alone names the
//! measurement, the number of PEs, and the unit of its numbers.

use pelago_report::Cells;
use serde::{Deserialize, Serialize};

use super::stats::Summary;

/// The kind of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// One operation at a time, from PE 0 on PE 1's memory.
    Latency,
    /// PE 0 puts data and sets a flag on PE 1; PE 1 reads the data and acknowledges by a flag on PE 0.
    PingAck,
    /// Blocking transfers, one after the other, from PE 0 on PE 1's memory.
    Bandwidth,
    /// Windows of puts in a scope, each completed before the next.
    Flood,
    /// Repeated barriers of all PEs.
    Barrier,
    /// Atomics of PE 0 alone; the result of a fetching atomic is the operand of the next one, a non-fetching
    /// one is followed by a quiet.
    AtomicLatency,
    /// Independent atomics of PE 0 alone.
    AtomicRate,
    /// Atomics of several PEs at the same time: the latency at each PE, and the rate of all PEs.
    Contention,
    /// PEs 0 and 1 send each other the same bytes in turn, and read the received data.
    Signal,
    /// PEs 0 and 1 post each other's semaphore in turn.
    SemaphoreRoundTrip,
    /// PE 0 posts a semaphore of PE 1 repeatedly, and PE 1 waits for each post.
    SemaphoreRate,
    /// PEs 0 and 1 send each other a two-sided message in turn.
    TwoSided,
    /// PE 0 sends PE 1 windows of two-sided messages, each of which PE 1 answers by one.
    TwoSidedWindow,
    /// PE 0 puts, gets or sends data to PE 1, one after the other, each until it is complete there: a put
    /// with a quiet, a message with an empty message back.
    Completed,
    /// As `signal`, but the data are followed by a post or by one of the alternatives.
    MemputSignal,
    /// Windows of non-blocking puts from PE 0 to PE 1, each completed before the next.
    Rate,
    /// Threads of PE 0 at the same time on PE 1's memory: the rate of all threads.
    Threads,
    /// Scattered blocks between PE 0 and PE 1's memory, each operation with a quiet.
    Scattered,
    /// PE 0 sends PE 1 a request, whose handler replies with the same size; each request follows the previous
    /// reply.
    MessageRoundTrip,
    /// PE 0 sends PE 1 requests, one after the other; the block ends when PE 1 has executed the last.
    MessageFlood,
    /// The same, with a short reply to each request.
    MessageFloodAnswered,
    /// Several PEs send PE 0 requests at the same time: the rate of all PEs, and the fairness.
    MessageSenders,
    /// PE 0 polls for messages without any.
    MessagePoll,
    /// Repeated collective operations of all PEs; each PE is the root in turn, if there is a root.
    Collective,
    /// The same with PE 0 as the root always; it may run ahead of the others.
    CollectiveFixedRoot,
    /// Copies of the data of a collective operation from the sources, by each PE, all at the same time.
    CollectiveCopies,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `p` of one element, without waiting for completion.
    PutIssue,
    /// `put`; as a latency, with `quiet`.
    Put,
    /// `get`; as a latency, each index depends on the previous value, so that gets do not overlap.
    Get,
    /// The C library's memcpy between the buffers of the puts.
    PutMemcpy,
    /// The C library's memcpy between the buffers of the gets.
    GetMemcpy,
    /// A two-sided message.
    Send,
    /// A round trip.
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
    /// `put_signal`, or `signal` without data; half a round trip.
    PutSignal,
    /// `put`, `fence`, and `p` of a flag, or only `p` without data; half a round trip.
    PutFlag,
    /// `memput_signal` and `wait`; half a round trip.
    MemputSignal,
    /// A short active message; its size is that of its arguments.
    MessageShort,
    /// A medium active message without arguments; its size is that of its payload, as for a long message.
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
    /// `put_indexed`, with unordered indices.
    PutIndexed,
    /// `put_vector`.
    PutVector,
    /// `put` of each block.
    PutBlocks,
    /// `get_strided`.
    GetStrided,
    /// `get_indexed`, with unordered indices.
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
    /// `reduce` with a sum, like the next four operations.
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

/// The location of the memory of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The same two buffers repeatedly: in the caches, as far as they fit.
    Cache,
    /// Buffers that advance through regions, which together have at least twice the size of the last-level
    /// cache.
    Memory,
    /// A word in PE 0's own memory.
    Own,
    /// A word in PE 1's memory.
    Other,
    /// One word for all PEs or threads.
    OneWord,
    /// One word for each PE or thread, on separate cache lines.
    WordEach,
}

/// The object through which an operation is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The world, in a scope in which operations are non-blocking.
    World,
    /// Handles that own their buffers (`put_nb`).
    Handles,
    /// One context.
    Context,
    /// Several contexts in turn; with threads, one for each thread.
    Contexts,
}

/// The unit of a measurement's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds per operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10^9 bytes per second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// 10^6 operations per second.
    #[serde(rename = "M/s")]
    MillionsPerSecond,
    /// The ratio of the rates of the slowest and the fastest PE.
    #[serde(rename = "slowest/fastest")]
    Fairness,
}

/// The label of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The kind of the measurement.
    pub bench: Bench,
    /// The operation.
    pub operation: Operation,
    /// The bytes of one operation, or of a block for a collective or scattered operation; 0 for a flag or a
    /// barrier.
    pub bytes: usize,
    /// The number of PEs of the job.
    pub pes: usize,
    /// The number of PEs that run the operation at the same time, if it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contenders: Option<usize>,
    /// The number of threads of PE 0 that run the operation at the same time, if it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The number of targets of PE 0's operations, if it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<usize>,
    /// The number of operations between two completions, if several are outstanding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The number of blocks of one operation, if it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// The location of the memory, if it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The object through which the operation is started, if it varies.
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

    /// The same, by this number of PEs at the same time.
    pub const fn with_contenders(self, contenders: usize) -> Self {
        Label { contenders: Some(contenders), ..self }
    }

    /// The same, by this number of threads at the same time.
    pub const fn with_threads(self, threads: usize) -> Self {
        Label { threads: Some(threads), ..self }
    }

    /// The same, to this number of PEs in turn.
    pub const fn with_links(self, links: usize) -> Self {
        Label { links: Some(links), ..self }
    }

    /// The same, with this number of operations between two completions.
    pub const fn with_window(self, window: usize) -> Self {
        Label { window: Some(window), ..self }
    }

    /// The same, with this number of blocks.
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
    /// The label of the measurement.
    #[serde(flatten)]
    pub label: Label,
    /// The fabric over which PEs that are not mapped were reached, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<String>,
    /// The unit of the following numbers.
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

/// The median.
impl Cells for &Record {
    fn add_to(self, row: &mut Vec<String>) {
        self.summary.median.add_to(row);
    }
}

/// The records of one kind.
pub fn of(records: &[Record], bench: Bench, operation: Operation) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| (record.label.bench, record.label.operation) == (bench, operation))
}

/// The first record whose label satisfies `has`, if there is one.
pub fn find(records: &[Record], has: impl Fn(&Label) -> bool) -> Option<&Record> {
    records.iter().find(|record| has(&record.label))
}

/// The ratio of the medians of two records as a cell, empty if there is none.
pub fn ratio(of: Option<&Record>, to: Option<&Record>) -> String {
    let ratio = of.zip(to).map(|(of, to)| of.summary.median / to.summary.median);
    ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"))
}

/// The different values of a quantity in the labels of records, ascending.
pub fn values(records: &[Record], of: impl Fn(&Label) -> Option<usize>) -> Vec<usize> {
    let mut values: Vec<_> = records.iter().filter_map(|record| of(&record.label)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// One comparison of an operation with its yardstick, measured alternately.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The time of the operation in nanoseconds, the median of its blocks.
    pub ours_ns: f64,
    /// The time of the yardstick in nanoseconds, the median of its blocks.
    pub yardstick_ns: f64,
}

/// The work of PE 0 while the other PEs waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computation {
    /// The number of equal pieces of work.
    pub pieces: u64,
    /// The wall time in nanoseconds.
    pub wall_ns: f64,
    /// The time on a core in nanoseconds.
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

    #[test]
    fn cells_of_what_is_not_there_are_empty() {
        let label = Label::new(2, Bench::Barrier, Operation::Barrier, 0);
        let (slow, fast) = (record(label, Unit::Nanoseconds, 300.0), record(label, Unit::Nanoseconds, 200.0));
        let mut cells = Vec::new();
        (Some(&slow), None::<&Record>, slow.summary, None::<Summary>).add_to(&mut cells);
        assert_eq!(cells, ["300", "", "150", "300", "3000", "", "", ""]);
        let ratios = [ratio(Some(&slow), Some(&fast)), ratio(Some(&slow), None)];
        assert_eq!(ratios, ["1.500", ""]);
    }
}
