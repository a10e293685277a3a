//! A reader of Perfetto's files, by descriptions of their messages that are independent of the writer's.

use prost::Message;
use std::collections::BTreeMap;

#[derive(Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Message)]
struct Packet {
    #[prost(uint64, tag = "8")]
    timestamp: u64,
    #[prost(uint32, tag = "10")]
    sequence: u32,
    #[prost(message, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, tag = "13")]
    sequence_flags: u32,
    #[prost(message, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Message)]
struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    categories: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(int32, tag = "9")]
    kind: i32,
    #[prost(uint64, tag = "10")]
    name: u64,
    #[prost(uint64, tag = "11")]
    track: u64,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flows: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flows: Vec<u64>,
}

#[derive(Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    name: u64,
    #[prost(uint64, tag = "3")]
    value: u64,
}

#[derive(Message)]
struct InternedData {
    #[prost(message, repeated, tag = "1")]
    categories: Vec<Named>,
    #[prost(message, repeated, tag = "2")]
    names: Vec<Named>,
    #[prost(message, repeated, tag = "3")]
    annotation_names: Vec<Named>,
}

#[derive(Message)]
struct Named {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Message)]
struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, tag = "3")]
    process: Option<Process>,
    #[prost(uint64, tag = "5")]
    parent: u64,
}

#[derive(Message)]
struct Process {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(string, tag = "6")]
    name: String,
}

/// The types of events.
pub const SLICE_BEGIN: i32 = 1;
pub const SLICE_END: i32 = 2;
pub const INSTANT: i32 = 3;

/// The contents of a file.
#[derive(Debug, Default)]
pub struct File {
    pub events: Vec<Event>,
    /// The names of tracks and of processes, by their numbers.
    pub tracks: BTreeMap<u64, String>,
    pub processes: BTreeMap<u64, String>,
}

#[derive(Debug)]
pub struct Event {
    pub time: u64,
    pub track: u64,
    pub kind: i32,
    pub name: String,
    pub category: String,
    pub peer: Option<u64>,
    pub bytes: u64,
    /// The arrow that begins or ends here.
    pub leaves: Option<u64>,
    pub arrives: Option<u64>,
}

impl File {
    pub fn read(path: &str) -> File {
        let trace = Trace::decode(&*std::fs::read(path).unwrap()).unwrap();
        let (mut file, mut names) = (File::default(), [const { BTreeMap::new() }; 3]);
        let mut is_first = true;
        for packet in trace.packet {
            assert_eq!(packet.sequence, 1);
            if let Some(data) = packet.interned_data {
                let lists = [data.categories, data.names, data.annotation_names];
                for (known, list) in names.iter_mut().zip(lists) {
                    for Named { number, name } in list {
                        assert_eq!(known.insert(number, name), None, "a number has one name");
                    }
                }
            }
            if let Some(track) = packet.track_descriptor {
                match track.process {
                    Some(process) => file.processes.insert(track.uuid, process.name),
                    None => {
                        assert!(file.processes.contains_key(&track.parent));
                        file.tracks.insert(track.uuid, track.name)
                    }
                };
            }
            let Some(event) = packet.track_event else { continue };
            // Only the first event is understood without the ones before it.
            assert_eq!(packet.sequence_flags, if std::mem::take(&mut is_first) { 1 } else { 2 });
            file.events.push(Event::of(&event, packet.timestamp, &names));
        }
        file
    }
}

impl Event {
    fn of(
        event: &TrackEvent,
        time: u64,
        [categories, names, annotations]: &[BTreeMap<u64, String>; 3],
    ) -> Event {
        let name = match event.kind {
            SLICE_END => String::new(),
            _ => names[&event.name].clone(),
        };
        let value = |name: &str| {
            let of = event.annotations.iter().find(|of| annotations[&of.name] == name);
            of.map(|annotation| annotation.value)
        };
        Event {
            time,
            track: event.track,
            kind: event.kind,
            name,
            category: event.categories.first().map_or(String::new(), |number| categories[number].clone()),
            peer: value("PE"),
            bytes: value("bytes").unwrap_or(0),
            leaves: event.flows.first().copied(),
            arrives: event.terminating_flows.first().copied(),
        }
    }
}
