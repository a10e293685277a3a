//! The text of a machine file. Invariant: each value has a comment that says where it comes from.

use std::fmt::Write;

use pelago_model::Machine;

/// A key, its value, and where that comes from.
type Row = (&'static str, String, &'static str);

/// The text of a machine whose network is `fabric`, with a sentence about the fit.
pub fn text(machine: &Machine, fabric: &str, deviation: &str) -> String {
    let mut text = format!(
        "# Written by pelago tune measure {} over {fabric}; medians of two PEs.\n# Deviation of the fit: \
         {deviation}.\n",
        env!("CARGO_PKG_VERSION"),
    );
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string has room");
    line(format_args!("name = {:?}\nabout = {:?}", machine.name, machine.about));
    line(format_args!("pes_per_node = {}\ncards_per_node = 1", machine.pes_per_node));
    line(format_args!("contention = \"none\""));
    let tables = [
        ("network", network(machine)),
        ("node", node(machine)),
        ("compute", compute(machine)),
        ("protocol", protocol(machine)),
    ];
    for (name, rows) in tables {
        line(format_args!("\n[{name}]"));
        for (key, value, source) in rows {
            line(format_args!("{:<46}# {source}", format!("{key} = {value}")));
        }
    }
    line(format_args!("\n[topology]\nkind = \"switch\""));
    text
}

/// Nanoseconds with one place after the point.
fn ns(time: u64) -> String {
    format!("{:?}", (time as f64 / 100.0).round() / 10.0)
}

fn rate(rate: f64) -> String {
    format!("{:.4e}", rate.clamp(1e3, 1e16))
}

fn network(machine: &Machine) -> Vec<Row> {
    let network = &machine.network;
    vec![
        ("latency_ns", ns(network.latency), "fitted"),
        ("hop_latency_ns", "0".to_owned(), "part of the latency"),
        ("send_overhead_ns", ns(network.send_overhead), "fitted"),
        ("send_rest_ns", ns(network.send_rest), "fitted"),
        ("receive_overhead_ns", ns(network.receive_overhead), "fitted"),
        (
            "wait_overhead_ns",
            ns(network.wait_overhead),
            "measured: perf coll, a broadcast of 8 B less one way",
        ),
        ("gap_ns", ns(network.gap), "fitted; 0 where the processor moves data"),
        ("bytes_per_second", rate(network.bytes_per_second), "fitted"),
    ]
}

fn node(machine: &Machine) -> Vec<Row> {
    let node = &machine.node;
    vec![
        ("latency_ns", ns(node.latency), "fitted"),
        ("overhead_ns", ns(node.overhead), "measured: perf fabric --rows put, in a node"),
        ("bytes_per_second", rate(node.bytes_per_second), "fitted"),
        ("memory_bytes_per_second", rate(node.memory_bytes_per_second), "measured: perf coll --copies"),
    ]
}

fn compute(machine: &Machine) -> Vec<Row> {
    let compute = &machine.compute;
    vec![
        ("copy_bytes_per_second", rate(compute.copy_bytes_per_second), "measured: perf pairs put, memcpy"),
        ("reduce_bytes_per_second", rate(compute.reduce_bytes_per_second), "measured: perf pairs all-reduce"),
    ]
}

fn protocol(machine: &Machine) -> Vec<Row> {
    let (network, protocol) = (&machine.network, &machine.protocol);
    let (puts, moved, source) = match protocol.processor_moves_data {
        true => ("\"software\"", "\"processor\"", "fitted: the card fits worse"),
        false => ("\"hardware\"", "\"card\"", "fitted: the processor fits worse"),
    };
    vec![
        ("eager_bytes", protocol.eager_bytes.to_string(), "assumed; no schedule has such messages"),
        ("message_send_overhead_ns", ns(network.send_overhead), "taken as that of a put"),
        ("message_receive_overhead_ns", ns(network.receive_overhead), "taken as that of a put"),
        ("handshake_overhead_ns", "0".to_owned(), "assumed"),
        ("progress", "\"in calls\"".to_owned(), "the runtime makes progress in its calls"),
        ("puts", puts.to_owned(), source),
        ("signals", "\"with data\"".to_owned(), "a put and its signal are one message"),
        ("data_moved_by", moved.to_owned(), source),
        ("overhead_of", "\"processor\"".to_owned(), "assumed"),
        ("outstanding", protocol.outstanding.to_string(), "assumed"),
        ("packet_bytes", protocol.packet_bytes.to_string(), "assumed; without effect at a switch"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_machine() {
        for by_processor in [false, true] {
            let mut machine = Machine::log_gp(700_100, 900_000, 40_000, 3e9);
            (machine.protocol.processor_moves_data, machine.protocol.has_hardware_puts) =
                (by_processor, !by_processor);
            machine.protocol.progresses_alone = false;
            machine.protocol.outstanding = 64;
            (machine.name, machine.pes_per_node) = ("a \"b\"".to_owned(), 8);
            machine.network.send_rest = 1_500;
            (machine.node.bytes_per_second, machine.node.memory_bytes_per_second) = (5e9, 12.5e9);
            (machine.compute.copy_bytes_per_second, machine.compute.reduce_bytes_per_second) = (6e9, 7e9);
            let text = text(&machine, "tcp", "median 1 %");
            assert_eq!(Machine::parse("m.toml", &text), Ok(machine), "{text}");
            let rows = text.lines().filter(|line| line.contains("_ns = ") || line.contains("_second = "));
            assert!(rows.clone().count() == 17 && rows.clone().all(|row| row.contains("# ")), "{text}");
        }
    }
}
