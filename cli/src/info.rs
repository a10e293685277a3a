//! `pelago info`: reports the resources of this machine and those that the runtime would use, every variable,
//! the algorithms of collective operations, and the fabrics between nodes.

mod collectives;
mod fabrics;
mod scale;
pub mod settings;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pelago::coll::select::preferences;
use pelago_boot::{LauncherSeen, Settings, print};
use pelago_fabric::Provider;
use pelago_fabric::shm::{Layout, Shm};
use pelago_fabric::sim::Sim;
use serde::Serialize;

/// Show the resources of this machine, and list every setting
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Info {
    /// List every environment variable that is read, with its default and its effect: the settings of
    /// Pelago, then those of OpenSHMEM, of commands, of launchers and of the system
    #[arg(long)]
    settings: bool,
    /// List the algorithms of collective operations, and the present choices
    #[arg(long, conflicts_with = "settings")]
    collectives: bool,
    /// Show the network that a job of several nodes would use, and why: TCP or libfabric; then what libfabric
    /// offers on this machine, which offers Pelago can use, and why it cannot use the others
    #[arg(long, conflicts_with_all = ["settings", "collectives"])]
    fabrics: bool,
    /// Compute how much memory each PE of a job of N PEs needs, and how many messages its start takes, from
    /// the sizes of the runtime's structures; no job is started
    #[arg(long, value_name = "N", conflicts_with_all = ["settings", "collectives", "fabrics"],
        value_parser = clap::value_parser!(u32).range(2..=1 << 24))]
    scale: Option<u32>,
    /// Number of PEs on each node, for --scale
    #[arg(long, value_name = "N", requires = "scale", default_value = "128",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    ppn: u32,
    /// Number of PEs for the choices; default: the number of cores, at least 2
    #[arg(short, value_name = "N", requires = "collectives", value_parser = number_of_pes)]
    n: Option<usize>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago info                   the node, its cores and memory, the providers
  pelago info --settings        the environment variables
  pelago info --settings --json the same, for a program to read
  pelago info --collectives     the algorithms, and those chosen for as many PEs as there are cores
  pelago info --collectives -n 16
  pelago info --fabrics         the network between nodes: TCP or a provider of libfabric, and why
  PELAGO_OFI_INTERFACE=eth1 pelago info --fabrics   the same, if jobs are to use another NIC
  PELAGO_COLL_TUNING=pelago-tuning.toml pelago info --collectives -n 4
  pelago info --scale 1000000 --ppn 128         what a job of this size needs
  pelago run -n 2 --tag-output pelago info   what each PE of a job sees";

#[derive(Serialize)]
struct Report {
    version: &'static str,
    node: String,
    cores: usize,
    /// The processors whose time a control group grants, if that are fewer.
    cpu_limit: Option<usize>,
    memory_total_bytes: Option<usize>,
    memory_available_bytes: Option<usize>,
    launcher: String,
    /// The fabric of a job of several nodes, and the reason.
    between_nodes: String,
    active_messages: Room,
    providers: Vec<ProviderReport>,
}

/// The maximum memory of active messages.
#[derive(Serialize)]
struct Room {
    /// Both rings of a PE.
    rings_bytes: usize,
    /// The longest payload of a medium message on a node.
    medium_bytes: usize,
    /// The maximum number of outstanding requests to each PE over the network.
    net_window: u64,
}

#[derive(Serialize)]
struct ProviderReport {
    name: &'static str,
    usable: bool,
    /// The use of the provider, or the reason why it cannot be used.
    about: String,
}

impl Info {
    /// The options of `pelago help settings`.
    pub fn settings() -> Self {
        Self {
            settings: true,
            collectives: false,
            fabrics: false,
            scale: None,
            ppn: 128,
            n: None,
            json: false,
        }
    }

    /// Prints the report.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        if self.collectives {
            let pes = self.n.unwrap_or(pelago_boot::cores().max(2));
            let report = collectives::Report::gather(pes, &Settings::from_env()?)?;
            let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.text() };
            print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(pes) = self.scale {
            let report = scale::Report::new(pes as usize, self.ppn as usize, &Settings::from_env()?);
            let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.text() };
            print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.fabrics {
            let report = fabrics::Report::gather(&Settings::from_env()?);
            let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.text() };
            print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = match (self.settings, self.json) {
            (true, false) => settings::text(&settings::rows()),
            (true, true) => serde_json::to_string(&settings::rows())? + "\n",
            (false, false) => Report::gather()?.text(),
            (false, true) => serde_json::to_string(&Report::gather()?)? + "\n",
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Room {
    fn of(settings: &Settings) -> Room {
        let pelago::am::Room { rings_bytes, medium_bytes, net_window } = pelago::am::Room::new(settings);
        Room { rings_bytes, medium_bytes, net_window }
    }
}

impl Report {
    fn gather() -> anyhow::Result<Self> {
        let settings = Settings::from_env()?;
        preferences(&settings)?;
        let launcher = match pelago_boot::launcher_seen() {
            Ok(seen) => launcher_text(seen, settings.pes_per_process),
            Err(error) => error.to_string(),
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            node: pelago_boot::node_id(&settings),
            cores: pelago_boot::cores(),
            cpu_limit: pelago_boot::cpu_quota(),
            memory_total_bytes: pelago_boot::memory_total_bytes(),
            memory_available_bytes: pelago_boot::memory_available_bytes(),
            launcher,
            between_nodes: fabrics::between_nodes(&settings),
            active_messages: Room::of(&settings),
            providers: vec![shared_memory(&settings), simulated_network()],
        })
    }

    fn text(&self) -> String {
        let memory = |bytes: Option<usize>| bytes.map_or_else(|| "unknown".to_owned(), gibibytes);
        let limited = |limit| format!(", but a control group grants the time of {limit}");
        let mut text = format!(
            "pelago    {}\nnode      {}\ncores     {}{}\nmemory    {}, of which {} free\nlauncher  {}\n\
             network   {} (`pelago info --fabrics`)\n",
            self.version,
            self.node,
            self.cores,
            self.cpu_limit.map_or_else(String::new, limited),
            memory(self.memory_total_bytes),
            memory(self.memory_available_bytes),
            self.launcher,
            self.between_nodes
        );
        let &Room { rings_bytes, medium_bytes, net_window } = &self.active_messages;
        text += &format!(
            "messages  {} KiB for each PE, payloads of up to {medium_bytes} bytes; over the net {net_window} \
             requests to each PE\n",
            rings_bytes / 1024
        );
        for provider in &self.providers {
            let verdict = if provider.usable { "usable" } else { "not usable" };
            text += &format!("provider  {}: {verdict}: {}\n", provider.name, provider.about);
        }
        text + "settings  see `pelago info --settings`\n"
    }
}

/// The launcher of this process, and the PEs that it would have.
fn launcher_text(seen: Option<LauncherSeen>, each: usize) -> String {
    let Some(LauncherSeen { protocol, rank, size }) = seen else {
        let pes = if each == 1 { "one PE".to_owned() } else { format!("{each} PEs") };
        return format!("none: a program started from here is a job of {pes}");
    };
    let first = rank * each;
    let pes = if each == 1 { format!("PE {first}") } else { format!("PEs {first}-{}", first + each - 1) };
    let all = size.map_or_else(String::new, |size| format!(" of {}", size * each));
    format!("{protocol}: this process is {pes}{all}")
}

/// Parses a number of PEs of a team; a larger one would take too long.
fn number_of_pes(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=1 << 20).contains(number));
    number.ok_or_else(|| "this is not a number of PEs from 1 to 1048576".to_owned())
}

/// Tries the provider for one node, with the smallest possible segment.
fn shared_memory(settings: &Settings) -> ProviderReport {
    let tried = Shm::open(0, Layout::new(1, 1 << 20, settings.ring_bytes), Duration::from_secs(1));
    let about = match &tried {
        Ok(_) => "PEs of one node".to_owned(),
        Err(error) => error.to_string(),
    };
    ProviderReport { name: "shm", usable: tried.is_ok(), about }
}

/// The simulated network is part of every build.
fn simulated_network() -> ProviderReport {
    let about = "PEs that are threads of one process, for tests (pelago sim)".to_owned();
    ProviderReport { name: Sim::NAME, usable: true, about }
}

fn gibibytes(bytes: usize) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_complete() {
        let report = Report::gather().unwrap();
        let text = report.text();
        assert!(text.contains("network   ") && text.contains(&report.between_nodes), "{text}");
        assert!(text.contains(&report.node) && text.contains("shm: usable"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["providers"][0]["name"], "shm");
    }
}
