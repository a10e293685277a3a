//! `pelago info --scale`: the memory of a PE and the messages of the start, in a job of any size. Invariant:
//! all numbers come from the runtime, which computes them from its structures.

use std::fmt::Write;

use pelago::footprint::{Growth, Held, Scale};
use pelago_boot::Settings;
use pelago_report::Bytes;
use serde::Serialize;

/// The memory that a PE may have in a job of 10^6 PEs, besides heap and pool: a goal of the project.
const GOAL_BYTES: u64 = 64 << 20;

/// The report.
#[derive(Serialize)]
pub struct Report {
    pes: usize,
    pes_per_node: usize,
    pes_per_process: usize,
    memory: Vec<Memory>,
    /// The number of other PEs that a PE has contact with, besides those of its node.
    contacts: usize,
    /// Memory in use of a PE with one team that has sent nothing, and of one that has used everything.
    least_bytes: u64,
    most_bytes: u64,
    /// Memory in use while the job starts, and while another team of all PEs is made.
    starting_bytes: u64,
    making_team_bytes: u64,
    goal_bytes: u64,
    /// The parts that grow with the number of PEs and are in use, largest first.
    linear: Vec<&'static str>,
    start_messages: Vec<Message>,
}

#[derive(Serialize)]
struct Memory {
    part: &'static str,
    held: &'static str,
    grows: &'static str,
    bytes: u64,
}

#[derive(Serialize)]
struct Message {
    of: &'static str,
    per_process: u64,
    all: u64,
    grows: &'static str,
}

fn held(held: Held) -> &'static str {
    match held {
        Held::Always => "always",
        Held::OnFirstUse => "from the first message on",
        Held::EachTeam => "each team",
        Held::WhileMade => "while a team is made",
        Held::AtStart => "at the start",
        Held::Reserved => "address space",
    }
}

fn grows(growth: Growth) -> &'static str {
    match growth {
        Growth::Linear => "n",
        Growth::SquareRoot => "sqrt n",
        Growth::Logarithmic => "log n",
        Growth::OfNode => "PEs of a node",
        Growth::Constant => "nothing",
    }
}

impl Report {
    /// The report for a job of `pes` PEs.
    pub fn new(pes: usize, pes_per_node: usize, settings: &Settings) -> Report {
        let pes_per_process = settings.pes_per_process;
        let scale = Scale { n_pes: pes, pes_per_node, pes_per_process, ring_bytes: settings.ring_bytes };
        let parts = scale.parts();
        let sum = |kinds: &[Held]| {
            parts.iter().filter(|part| kinds.contains(&part.held)).map(|part| part.bytes).sum()
        };
        let mut linear: Vec<_> = parts
            .iter()
            .filter(|part| part.growth == Growth::Linear && part.held != Held::Reserved)
            .collect();
        linear.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        Report {
            pes,
            pes_per_node,
            pes_per_process,
            least_bytes: sum(&[Held::Always, Held::EachTeam]),
            most_bytes: sum(&[Held::Always, Held::EachTeam, Held::OnFirstUse]),
            starting_bytes: sum(&[Held::Always, Held::AtStart]),
            making_team_bytes: sum(&[Held::Always, Held::EachTeam, Held::WhileMade]),
            contacts: scale.partners(),
            goal_bytes: GOAL_BYTES,
            linear: linear.iter().map(|part| part.name).collect(),
            memory: parts
                .iter()
                .map(|part| Memory {
                    part: part.name,
                    held: held(part.held),
                    grows: grows(part.growth),
                    bytes: part.bytes,
                })
                .collect(),
            start_messages: scale
                .start_messages()
                .iter()
                .map(|row| Message {
                    of: row.name,
                    per_process: row.of_process,
                    all: row.of_all,
                    grows: grows(row.growth),
                })
                .collect(),
        }
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let Report { pes, pes_per_node, pes_per_process, .. } = self;
        let title = format!("{pes} PEs, {pes_per_node} a node, {pes_per_process} a process");
        let mut text = format!("{title}: memory of a PE besides heap and pool, over TCP,\n");
        let _ = writeln!(text, "in contact with {} other PEs and those of its node", self.contacts);
        for Memory { part, held, grows, bytes } in &self.memory {
            let _ = writeln!(text, "  {part:44}  {:>12}  {held:25}  grows with {grows}", short(*bytes));
        }
        for (what, bytes) in [
            ("while the job starts", self.starting_bytes),
            ("in use with one team", self.least_bytes),
            ("after messages of both kinds", self.most_bytes),
            ("while another team of all PEs is made", self.making_team_bytes),
        ] {
            let goal = if bytes <= GOAL_BYTES { "within" } else { "above" };
            let _ = writeln!(text, "  {what:44}  {:>12}  {goal} {}", short(bytes), Bytes(GOAL_BYTES));
        }
        text += "messages of the start\n";
        for Message { of, per_process, all, grows } in &self.start_messages {
            let _ = writeln!(
                text,
                "  {of:58}  {per_process:>10} a process  {all:>15} in all  grows with {grows}"
            );
        }
        text
    }
}

/// Bytes with one decimal.
fn short(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
