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
    /// The world's barrier.
    Barrier,
}

/// Where the bytes of a transfer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The same two buffers again and again: in the caches, as far as they fit.
    Cache,
    /// Buffers that move on through regions which together are twice the last-level cache or more.
    Memory,
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
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it is about.
    pub bench: Bench,
    /// What was done.
    pub operation: Operation,
    /// Bytes that one operation carries; for a flag or a barrier 0.
    pub bytes: usize,
    /// PEs of the job.
    pub pes: usize,
    /// Operations between two completions, where several are outstanding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Where the bytes are, for bandwidths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Unit of the numbers that follow.
    pub unit: Unit,
    /// The numbers, over many short blocks of operations.
    #[serde(flatten)]
    pub summary: Summary,
}

/// One comparison of an operation with its yardstick, measured in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Nanoseconds of the operation, the median of its blocks.
    pub ours_ns: f64,
    /// Nanoseconds of the yardstick, the median of its blocks.
    pub yardstick_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        let summary = Summary { min: 1.0, median: 2.0, max: 3.0, samples: 11 };
        let record = Record {
            bench: Bench::Flood,
            operation: Operation::Put,
            bytes: 64,
            pes: 2,
            window: Some(8),
            place: None,
            unit: Unit::GigabytesPerSecond,
            summary,
        };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(
            line,
            [
                r#"{"bench":"flood","operation":"put","bytes":64,"pes":2,"#,
                r#""window":8,"unit":"GB/s","min":1.0,"median":2.0,"max":3.0,"samples":11}"#,
            ]
            .concat()
        );
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
