//! Timelines as a file in Perfetto's format: a sequence of packets, in Protocol Buffers.
//!
//! The packets are in the order of time, merged from the timelines of all PEs, so that neither reading nor
//! writing needs memory that grows with them. The numbers of the fields are those of Perfetto's
//! `trace_packet.proto` and `track_event.proto`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use pelago_boot::HeldSignals;
use pelago_core::base::trace::Category;
use pelago_core::base::trace::reader::{Operation, Record, TimelineReader, What};
use prost::encoding::{WireType, encode_key, encode_varint, fixed64, string, uint64};

/// After this number of records the signals are looked at.
pub const LOOK_AFTER: u64 = 1024;
/// The flags of the first packet (it depends on none before it) and of the others.
const FIRST: u64 = 1;
const FURTHER: u64 = 2;
/// The types of track events.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
/// The numbers of the names of annotations.
const PEER: u64 = 1;
const BYTES: u64 = 2;
const FOR: u64 = 3;

/// Writes the timelines to a file: the number of events.
///
/// # Errors
/// If a timeline cannot be read, or the file not be written, or if one of the `signals` has come.
pub fn write(mut readers: Vec<TimelineReader>, file: &File, signals: &HeldSignals) -> io::Result<u64> {
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 16, file));
    let start = readers.iter().map(|reader| reader.start_nanos).min().unwrap_or(0);
    let time = |reader: &TimelineReader, record: &Record| reader.start_nanos - start + record.nanos;
    let mut next: Vec<Option<Record>> = Vec::new();
    let mut heads = BinaryHeap::new();
    for (i, reader) in readers.iter_mut().enumerate() {
        let record = reader.next_record()?;
        heads.extend(record.map(|record| Reverse((time(reader, &record), i))));
        next.push(record);
    }
    let (mut events, mut records) = (0, 0_u64);
    while let Some(Reverse((at, i))) = heads.pop() {
        if records.is_multiple_of(LOOK_AFTER) {
            signals.check()?;
        }
        records += 1;
        if let Some(record) = next[i].take() {
            writer.record(&readers[i], at, &record)?;
            events += u64::from(!matches!(record.what, What::End));
        }
        next[i] = readers[i].next_record()?;
        heads.extend(next[i].map(|record| Reverse((time(&readers[i], &record), i))));
    }
    writer.output.flush()?;
    Ok(events)
}

struct Writer<W> {
    output: W,
    /// The numbers of names and categories that were written.
    names: HashMap<String, u64>,
    categories: HashSet<u64>,
    /// The tracks of PEs and threads that were written.
    tracks: HashSet<u64>,
    has_begun: bool,
    packet: Vec<u8>,
}

impl<W: Write> Writer<W> {
    fn new(output: W) -> Writer<W> {
        Writer {
            output,
            names: HashMap::new(),
            categories: HashSet::new(),
            tracks: HashSet::new(),
            has_begun: false,
            packet: Vec::new(),
        }
    }

    fn record(&mut self, of: &TimelineReader, at: u64, record: &Record) -> io::Result<()> {
        let track = self.track(of, record.thread)?;
        let (kind, operation, flow) = match record.what {
            What::End => return self.event(at, &|event| slice(event, SLICE_END, track), &[]),
            What::Begin(operation) => (SLICE_BEGIN, operation, None),
            What::Instant(operation) => (INSTANT, operation, None),
            What::Departure(operation, message) => (INSTANT, operation, Some((47, message))),
            What::Arrival(operation, message) => (INSTANT, operation, Some((48, message))),
        };
        let (name, mut interned) = self.name(&title(of, &operation));
        interned.extend(self.category(operation.category));
        let detail = of.text(operation.detail);
        let fill = |event: &mut Vec<u8>| {
            slice(event, kind, track);
            uint64::encode(3, &(operation.category as u64), event);
            uint64::encode(10, &name, event);
            if let Some(peer) = operation.peer {
                annotation(event, PEER, |value| uint64::encode(3, &(peer as u64), value));
            }
            if operation.bytes > 0 {
                annotation(event, BYTES, |value| uint64::encode(3, &operation.bytes, value));
            }
            if !detail.is_empty() {
                annotation(event, FOR, |value| string::encode(6, &detail.to_owned(), value));
            }
            if let Some((field, message)) = flow {
                fixed64::encode(field, &message, event);
            }
        };
        self.event(at, &fill, &interned)
    }

    /// Writes a packet with an event, and the names that it is the first to use.
    fn event(&mut self, at: u64, fill: &dyn Fn(&mut Vec<u8>), interned: &[u8]) -> io::Result<()> {
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        uint64::encode(8, &at, &mut packet);
        nested(11, &mut packet, fill);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        uint64::encode(13, &if is_first { FIRST } else { FURTHER }, &mut packet);
        if !interned.is_empty() || is_first {
            nested(12, &mut packet, |data| {
                if is_first {
                    for (number, name) in [(PEER, "PE"), (BYTES, "bytes"), (FOR, "for")] {
                        named(3, number, name, data);
                    }
                }
                data.extend_from_slice(interned);
            });
        }
        let outcome = self.write(&packet);
        self.packet = packet;
        outcome
    }

    /// Writes a packet of the one sequence.
    fn write(&mut self, packet: &[u8]) -> io::Result<()> {
        let mut sequence = Vec::new();
        uint64::encode(10, &1, &mut sequence);
        let mut head = Vec::new();
        encode_key(1, WireType::LengthDelimited, &mut head);
        encode_varint((packet.len() + sequence.len()) as u64, &mut head);
        [&head, packet, &sequence].iter().try_for_each(|bytes| self.output.write_all(bytes))
    }

    /// The number of the track of a thread, which is described when it is first used.
    fn track(&mut self, of: &TimelineReader, thread: u8) -> io::Result<u64> {
        let process = (of.pe as u64 + 1) << 16;
        let track = process | (u64::from(thread) + 1);
        if self.tracks.contains(&track) {
            return Ok(track);
        }
        let pe = of.pe;
        let is_first = self.tracks.insert(process);
        self.tracks.insert(track);
        if is_first {
            let name = format!("PE {pe} (node {}, process {})", of.node, of.pid);
            self.describe(|track| {
                uint64::encode(1, &process, track);
                nested(3, track, |description| {
                    // Number 0 is the system's idle process there.
                    uint64::encode(1, &(pe as u64 + 1), description);
                    string::encode(6, &name, description);
                });
            })?;
        }
        let name = if is_first { format!("PE {pe}") } else { format!("PE {pe}, thread {thread}") };
        self.describe(|description| {
            uint64::encode(1, &track, description);
            uint64::encode(5, &process, description);
            string::encode(2, &name, description);
        })?;
        Ok(track)
    }

    fn describe(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut packet = Vec::new();
        nested(60, &mut packet, fill);
        self.write(&packet)
    }

    /// The number of a name, and its definition if it is new.
    fn name(&mut self, name: &str) -> (u64, Vec<u8>) {
        if let Some(&number) = self.names.get(name) {
            return (number, Vec::new());
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), number);
        let mut data = Vec::new();
        named(2, number, name, &mut data);
        (number, data)
    }

    /// The definition of a category, if it is new.
    fn category(&mut self, category: Category) -> Vec<u8> {
        let mut data = Vec::new();
        if self.categories.insert(category as u64) {
            named(1, category as u64, category.name(), &mut data);
        }
        data
    }
}

/// The name that an operation has in the picture.
pub fn title(of: &TimelineReader, operation: &Operation) -> String {
    let (name, detail) = (of.text(operation.name), of.text(operation.detail));
    match (operation.category, detail) {
        (Category::Wait, _) => format!("wait for {name}"),
        (Category::Network, _) => format!("network: {name}"),
        (Category::Step, _) => format!("step: {name}"),
        (Category::Collective | Category::Active, detail) if !detail.is_empty() => {
            format!("{name} ({detail})")
        }
        _ => name.to_owned(),
    }
}

/// The begin of an event: its type and its track.
fn slice(event: &mut Vec<u8>, kind: u64, track: u64) {
    uint64::encode(9, &kind, event);
    uint64::encode(11, &track, event);
}

fn annotation(event: &mut Vec<u8>, name: u64, value: impl FnOnce(&mut Vec<u8>)) {
    nested(4, event, |annotation| {
        uint64::encode(1, &name, annotation);
        value(annotation);
    });
}

/// A number and its name.
fn named(field: u32, number: u64, name: &str, data: &mut Vec<u8>) {
    nested(field, data, |entry| {
        uint64::encode(1, &number, entry);
        string::encode(2, &name.to_owned(), entry);
    });
}

/// A message inside a message.
fn nested(field: u32, output: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    encode_key(field, WireType::LengthDelimited, output);
    encode_varint(inner.len() as u64, output);
    output.extend_from_slice(&inner);
}
