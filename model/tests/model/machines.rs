//! Machine files: those that come with the crate are right, and errors name file, key, value and remedy.

use pelago_model::Machine;
use pelago_model::machine::BUILT_IN;

fn text(name: &str) -> &'static str {
    BUILT_IN.iter().find(|machine| machine.name == name).unwrap().text
}

#[test]
fn built_in_machines_are_right() {
    for built_in in BUILT_IN {
        let machine = built_in.machine().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, built_in.name);
        assert_eq!(Machine::load(built_in.name), Ok(machine.clone()));
        machine.topology(100_000).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A change of a file, and what the error must name.
type Mistake = (&'static str, &'static str, &'static str, &'static [&'static str]);

const MISTAKES: [Mistake; 23] = [
    ("bluegene-p", "name = \"bluegene-p\"", "name = \"\"", &["name = \"\"", "not empty"]),
    ("bluegene-p", "pes_per_node = 4", "pes_per_node = 0", &["pes_per_node = 0", "from 1 to 4096"]),
    ("bluegene-p", "pes_per_node = 4", "pes_per_node = \"4\"", &["pes_per_node = \"4\"", "whole number"]),
    ("bluegene-p", "pes_per_node = 4", "pes_per_nod = 4", &["pes_per_node is missing", "from 1 to 4096"]),
    ("bluegene-p", "cards_per_node = 1", "cards_per_node = 5", &["cards_per_node = 5", "lower it"]),
    ("bluegene-p", "\"queue\"", "\"queues\"", &["contention = \"queues\"", "\"queue\" or \"fluid\""]),
    ("bluegene-p", "latency_ns = 800", "latency_ns = -1", &["network.latency_ns = -1", "0 to 1e9"]),
    ("bluegene-p", "gap_ns = 0 ", "gap_ns = nan ", &["network.gap_ns = nan", "0 to 1e9"]),
    ("bluegene-p", "2.244e9", "2.244", &["network.bytes_per_second = 2.244", "1e3 to 1e16"]),
    ("bluegene-p", "2.244e9", "inf", &["network.bytes_per_second = inf", "1e3 to 1e16"]),
    ("bluegene-p", "gap_ns = 0 ", "gap_ns = 0\ngap_us = 0 ", &["network.gap_us = 0", "it has bytes_per"]),
    ("bluegene-p", "[compute]", "[computing]", &["[compute] is missing", "add it"]),
    ("bluegene-p", "[compute]", "[[compute]]", &["compute = ", "write [compute]"]),
    ("bluegene-p", "\"in calls\"", "true", &["protocol.progress = true", "\"alone\" or \"in calls\""]),
    ("bluegene-p", "outstanding = 64", "outstanding = 0", &["protocol.outstanding = 0", "from 1 to"]),
    ("bluegene-p", "kind = \"torus\"", "kind = \"ring\"", &["topology.kind = \"ring\"", "\"fat tree\""]),
    (
        "bluegene-p",
        "dimensions = 3",
        "shape = [8, 0]\nwraps = \"yes\"",
        &["topology.shape = [8, 0]", "1 to 4096"],
    ),
    ("bluegene-p", "dimensions = 3", "dimensions = 7", &["topology.dimensions = 7", "from 1 to 6"]),
    ("bluegene-p", "contention = \"queue\"", "contention = \"queue", &["not TOML"]),
    ("hdr-fat-tree", "uplinks = 7", "uplinks = 0", &["topology.levels[0].uplinks = 0", "from 1 to"]),
    (
        "hdr-fat-tree",
        "{ children = 66, uplinks = 7 },",
        "{ children = 1, uplinks = 65536 }, { children = 66, uplinks = 65536 },",
        &["more than 2^24 links", "lower their uplinks"],
    ),
    ("hdr-fat-tree", "uplinks = 1 }", "up = 1 }", &["topology.levels[1].uplinks is missing", "whole number"]),
    ("slingshot-dragonfly", "groups = 64", "groups = 5000", &["topology.groups = 5000", "from 1 to 1024"]),
];

#[test]
fn mistakes_are_named_with_their_remedy() {
    for (name, right, wrong, expected) in MISTAKES {
        let text = text(name);
        assert!(text.contains(right), "{name} has no {right}");
        let error = Machine::parse("my.toml", &text.replacen(right, wrong, 1)).unwrap_err().to_string();
        assert!(error.starts_with("my.toml: "), "{error}");
        for part in expected {
            assert!(error.contains(part), "{wrong}: {part:?} is not in: {error}");
        }
    }
}

#[test]
fn a_name_that_is_neither_a_machine_nor_a_file_is_refused() {
    let error = Machine::load("no-such-machine").unwrap_err().to_string();
    assert!(error.contains("no-such-machine") && error.contains("bluegene-p, hdr-fat-tree"), "{error}");
}
