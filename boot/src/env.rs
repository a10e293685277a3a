//! Environment variables: every setting of the runtime, in one table.
//!
//! Invariant: a setting exists exactly if it has a row in `settings!` below. The `Settings` struct, the
//! parsing of the environment, the error messages and the printed help all come from that row, so they cannot
//! disagree. To add a setting, add a row. A `PELAGO_` variable without a row is refused, with the nearest
//! valid name.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::logging::LogFilter;

mod other;
mod parse;
mod secure;

pub use other::{OtherVariable, SetBy, other_variables};
pub use secure::is_secure;

/// The prefix of every variable of the runtime.
const PREFIX: &str = "PELAGO_";

/// Variables that module files of an installation set (Lmod, Spack). They are not settings.
const OF_MODULES: [&str; 5] = ["PELAGO_ROOT", "PELAGO_HOME", "PELAGO_DIR", "PELAGO_PREFIX", "PELAGO_VERSION"];

/// The algorithm of the barrier of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// The runtime chooses by the number of PEs and their nodes.
    Auto,
    /// Every PE sets its own flag, and one PE reads them all; for PEs of one node.
    Flags,
    /// Every PE increments one counter; for PEs of one node.
    Counter,
    /// Rounds of pairwise signals, logarithmic in the number of PEs.
    Dissemination,
}

/// The size of the symmetric heap, or of the pool, of each PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySize {
    /// A usual default size, unless the node has less memory.
    Auto,
    /// The PE's share of the node's memory.
    Share,
    /// This number of bytes.
    Bytes(usize),
}

/// How PEs reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// By mapped memory on a node, over the network otherwise.
    Auto,
    /// Over the network, also within a node.
    Net,
}

/// The provider for PEs that are not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricKind {
    /// Between nodes, libfabric on a fast network, else TCP; shared memory within a node.
    Auto,
    /// Shared memory.
    Shm,
    /// The provider of this name.
    Provider(&'static str),
}

/// Which of several equal NICs libfabric uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfiCards {
    /// Those that are nearest to the processors of a process, by turns.
    Near,
    /// The card that libfabric lists first.
    First,
}

/// How the synchronisation memory of collective operations is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMemoryKind {
    /// Arrays that are reused after an additional synchronisation, for which no PE waits.
    Additional,
    /// Arrays that are reused after the next barrier.
    Barrier,
    /// Words of each pair of PEs; algorithms by recursive doubling.
    PairwiseDoubling,
    /// Words of each pair of PEs; balanced trees below the root.
    PairwiseStructure,
    /// Words of each pair of PEs; one tree whose edges never change.
    PairwiseEdges,
}

/// The form of collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollFormKind {
    /// Direct forms if all PEs of the team map each other, else schedules.
    Auto,
    /// Schedules everywhere.
    Schedule,
}

/// Whether a job tunes its collective operations itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollOnlineKind {
    /// It does not.
    Off,
    /// Among algorithms with the same result, bit for bit.
    On,
    /// Also among algorithms that combine elements in other orders.
    AnyOrder,
}

/// The folder in which a job keeps what it has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepFolder {
    /// The user's folder for such data.
    Auto,
    /// Nothing is kept.
    Off,
    /// This one.
    Path(String),
}

/// The subject of a setting. The lists of settings have a part for each, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The symmetric heap and other memory of a PE.
    Memory,
    /// The PEs of a node: threads and processors.
    Processors,
    /// How a job starts and is recorded.
    Start,
    /// How a PE waits, and when it gives up.
    Waiting,
    /// The network between nodes.
    Network,
    /// Barriers and collective operations.
    Collectives,
    /// Messages, active and two-sided.
    Messages,
    /// Mistakes, logs, counters, timelines.
    Diagnosis,
    /// The simulation of networks and nodes.
    Simulation,
    /// Pelago itself sets the variable, for the processes that it starts.
    Internal,
}

impl Subject {
    /// The title of this part of the list.
    pub fn title(self) -> &'static str {
        match self {
            Subject::Memory => "Memory",
            Subject::Processors => "PEs and processors",
            Subject::Start => "The start of a job",
            Subject::Waiting => "Waiting, and its limits",
            Subject::Network => "The network",
            Subject::Collectives => "Collective operations",
            Subject::Messages => "Messages",
            Subject::Diagnosis => "Finding errors, and measuring",
            Subject::Simulation => "Simulated nodes and networks, for tests",
            Subject::Internal => "Internal",
        }
    }
}

/// One row of the table of settings, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingInfo {
    /// The environment variable.
    pub name: &'static str,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// The description of valid values.
    pub accepts: &'static str,
    /// The effect of the setting.
    pub help: &'static str,
    /// The part of the list that has this row.
    pub subject: Subject,
}

/// Why the environment was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// The value of a known variable is not valid.
    #[error("{variable}={value:?} is not valid: {variable} accepts {accepts}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The description of valid values.
        accepts: &'static str,
    },
    /// The file that a variable names cannot be used.
    #[error("{variable}={path:?} is not valid: {reason}")]
    File {
        /// The variable.
        variable: &'static str,
        /// The path that it was set to.
        path: String,
        /// The reason, with the line if there is one, and the valid contents.
        reason: String,
    },
    /// A variable names a file, and the program has more rights than its caller.
    #[error(
        "{variable} is set, but this program runs with other rights than its caller has (set-user-id, \
         set-group-id or file capabilities), where no variable may name a file. Unset {variable}"
    )]
    Secure {
        /// The variable.
        variable: String,
    },
    /// No setting has this name.
    #[error("{variable} is not a setting of Pelago; {}", advice(*nearest))]
    Unknown {
        /// The variable.
        variable: String,
        /// The valid name that resembles it most, if any does.
        nearest: Option<&'static str>,
    },
}

fn advice(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean {name}? (`pelago info --settings` lists them all)"),
        None => "unset it (`pelago info --settings` lists the valid ones)".to_owned(),
    }
}

/// Generates the struct, its parsing and its table from one row per setting: `field: Type = parser,
/// "VARIABLE", "default" (empty: None), subject, accepts "...", help "..."`.
macro_rules! settings {
    ($($field:ident: $type:ty = $parser:path, $name:literal, $default:literal, $subject:ident,
       accepts $accepts:literal, help $help:literal;)*) => {
        /// The settings of this process, one field for each row of the table.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(#[doc = concat!($help, " (`", $name, "`, accepts ", $accepts, ")")] pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $parser($default).expect(concat!("the default of ", $name, " is valid")),)* }
            }
        }

        impl Settings {
            /// Sets the one field that `variable` names.
            ///
            /// # Errors
            /// Those of [`Settings::from_pairs`].
            pub fn set(&mut self, variable: &str, value: &str) -> Result<(), SettingError> {
                match variable {
                    $($name => match (value.is_empty(), $parser(value)) {
                        (false, Some(parsed)) => self.$field = parsed,
                        _ => return Err(SettingError::Value {
                            variable: $name, value: value.to_owned(), accepts: $accepts,
                        }),
                    },)*
                    _ => return Err(unknown(variable)),
                }
                Ok(())
            }
        }

        static TABLE: &[SettingInfo] = &[$(SettingInfo {
            name: $name, default: $default, accepts: $accepts, help: $help, subject: Subject::$subject,
        }),*];
    };
}

settings! {
    heap: MemorySize = parse::memory, "PELAGO_HEAP_SIZE", "auto", Memory,
        accepts "auto, share, or bytes such as 4096, 64m or 1.5g",
        help "size of the symmetric heap of each PE; its pages are allocated at first use; auto: 512m, or \
              `share` if that is less; share: three quarters of the node's memory, divided by its PEs; a \
              quarter of that over networks that register it (verbs, efa, cxi)";
    pool: MemorySize = parse::memory, "PELAGO_POOL_SIZE", "auto", Memory,
        accepts "auto, share, or bytes such as 4096, 64m or 1.5g",
        help "memory of each PE for teams, spaces and windows; its pages are allocated at first use; auto: \
              as the heap, at least 64m, in MPI programs a share; share: three quarters of the node's \
              memory, divided by its PEs; a quarter of that over networks that register it (verbs, efa, cxi)";
    pes_per_process: usize = parse::pes, "PELAGO_PES_PER_PROCESS", "1", Processors,
        accepts "a number from 1 to 4096",
        help "PEs of each process, as threads (`pelago::run`); `pelago run -n` counts PEs, others processes";
    bind: bool = parse::switch, "PELAGO_BIND", "off", Processors,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "where a process has several PEs: keep each on one of the process's processors, in turn";
    spread: bool = parse::switch, "PELAGO_SPREAD", "on", Processors,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "where a node has a core for each of its PEs: keep two PEs from sharing one; affinity masks \
              are obeyed and stay as they are";
    init_timeout: Duration = parse::seconds, "PELAGO_INIT_TIMEOUT", "300", Start,
        accepts "seconds above 0 and up to 1000000, such as 60 or 0.5",
        help "how long a PE and the launcher wait for the others while the job forms";
    counters: bool = parse::switch, "PELAGO_COUNTERS", "off", Diagnosis,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "count operations and bytes; takes operations off the fast path";
    trace: Option<String> = parse::text, "PELAGO_TRACE", "", Diagnosis,
        accepts "the name of a folder",
        help "each PE leaves a timeline of its operations in this folder (`pelago run --trace` reads them)";
    stats: Option<String> = parse::text, "PELAGO_STATS", "", Diagnosis,
        accepts "the name of a folder",
        help "each PE leaves statistics of its operations in this folder (`pelago run --stats` reads them)";
    barrier: BarrierKind = parse::barrier, "PELAGO_BARRIER", "auto", Collectives,
        accepts "auto, flags, counter or dissemination",
        help "algorithm of the barrier";
    route: RouteKind = parse::route, "PELAGO_ROUTE", "auto", Network,
        accepts "auto or net",
        help "how PEs reach each other; net: over a provider even if memory could be mapped, for tests";
    fabric: FabricKind = parse::fabric, "PELAGO_FABRIC", "auto", Network,
        accepts "auto, shm, tcp or ofi",
        help "provider for PEs on other nodes; auto: ofi if all machines have a fast network, else tcp";
    tcp_interface: Option<String> = parse::auto_text, "PELAGO_TCP_INTERFACE", "auto", Network,
        accepts "auto, or the name or the address of an interface",
        help "the interface at which the provider tcp listens; auto: all that others can reach";
    tcp_congestion: Option<String> = parse::auto_text, "PELAGO_TCP_CONGESTION", "auto", Network,
        accepts "auto, system, or the name of an algorithm, such as cubic",
        help "congestion control of the provider tcp; auto: the system's, but cubic or reno in place of bbr, \
              whose timers are slow between near machines";
    tcp_ports: Option<RangeInclusive<u16>> = parse::auto_ports, "PELAGO_TCP_PORTS", "auto", Network,
        accepts "auto, or ports from 1 to 65535 such as 20000-20999",
        help "the ports at which processes listen with the provider tcp, one for each process of a machine \
              and each of its addresses; auto: the system chooses them";
    tcp_encrypt: bool = parse::switch, "PELAGO_TCP_ENCRYPT", "off", Network,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "encrypt what the provider tcp sends; with PELAGO_FABRIC=auto no other provider is taken then; \
              a Rust program needs the feature encrypt of the crate";
    tcp_datagrams: bool = parse::switch, "PELAGO_TCP_DATAGRAMS", "on", Network,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "let the provider tcp send short frames in UDP datagrams, where the network carries them; \
              encrypted ones travel over TCP alone";
    ofi_providers: Option<String> = parse::text, "PELAGO_OFI_PROVIDER",
        "cxi,efa,verbs;ofi_rxm,psm3,opx,tcp;ofi_rxm", Network,
        accepts "names of libfabric's providers, with commas between them",
        help "providers of libfabric to use, the preferred one first (`pelago info --fabrics`)";
    ofi_interface: Option<String> = parse::auto_text, "PELAGO_OFI_INTERFACE", "auto", Network,
        accepts "auto, or the name of a domain or the address of an interface",
        help "which of this machine's interfaces libfabric uses; auto: the first that others can reach";
    ofi_cards: OfiCards = parse::ofi_cards, "PELAGO_OFI_CARDS", "near", Network,
        accepts "near or first",
        help "which of several equal NICs libfabric uses if PELAGO_OFI_INTERFACE names none; near: \
              those nearest to the processors of each process, by turns; first: the first of them";
    ofi_library: Option<String> = parse::auto_text, "PELAGO_OFI_LIBRARY", "auto", Network,
        accepts "auto, or the path of a libfabric.so.1",
        help "libfabric; auto: the one that the system finds";
    sync_memory: SyncMemoryKind = parse::sync_memory, "PELAGO_SYNC_MEMORY", "pairwise-doubling", Collectives,
        accepts "additional, barrier, pairwise-doubling, pairwise-structure or pairwise-edges",
        help "how the synchronisation memory of scheduled collectives is reused";
    coll_form: CollFormKind = parse::coll_form, "PELAGO_COLL_FORM", "auto", Collectives,
        accepts "auto or schedule",
        help "form of blocking collectives; schedule: as between nodes, also within a node";
    coll_algorithms: Option<String> = parse::text, "PELAGO_COLL", "", Collectives,
        accepts "operation=algorithm, several with commas, such as broadcast=binomial,all_reduce=ring",
        help "algorithms of scheduled collectives, in place of those chosen (`pelago coll list`)";
    coll_tuning: Option<String> = parse::text, "PELAGO_COLL_TUNING", "", Collectives,
        accepts "the path of a file that `pelago tune` has written",
        help "tuning file: the best algorithms by operation, bytes and PEs";
    coll_online: CollOnlineKind = parse::coll_online, "PELAGO_COLL_ONLINE", "off", Collectives,
        accepts "off, on or any-order",
        help "the first blocking collectives of a team try algorithms, and the fastest is kept; any-order: \
              also those that combine floats in other orders, so that calls may differ in the last bits";
    coll_online_folder: KeepFolder = parse::keep_folder, "PELAGO_COLL_ONLINE_FOLDER", "auto", Collectives,
        accepts "auto, off, or the path of a folder",
        help "where PELAGO_COLL_ONLINE keeps what it has found for the next job; auto: pelago in \
              XDG_CACHE_HOME, or in ~/.cache; off: nowhere";
    deterministic: bool = parse::switch, "PELAGO_DETERMINISTIC", "off", Collectives,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "combine elements in the order of PEs, so that results depend on no algorithm";
    check: bool = parse::switch, "PELAGO_CHECK", "off", Diagnosis,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "find mistakes: collective calls that differ; in OpenSHMEM programs, freed memory and more";
    spins: Option<u32> = parse::auto_count, "PELAGO_SPINS", "auto", Waiting,
        accepts "auto, or a count from 0 to 4294967295",
        help "number of polls before a waiting PE yields its core; auto: by PEs and cores";
    yields: Option<u32> = parse::auto_count, "PELAGO_YIELDS", "auto", Waiting,
        accepts "auto, or a count from 0 to 4294967295",
        help "on a node: number of yields before a waiting PE sleeps; auto: by PEs and cores";
    wait_limit: Option<Duration> = parse::limit, "PELAGO_WAIT_LIMIT", "none", Waiting,
        accepts "none, or seconds above 0 and up to 1000000, such as 300",
        help "how long a PE waits for others before it fails and says what it waits for";
    stall_report: Option<Duration> = parse::stall, "PELAGO_STALL_REPORT", "30", Waiting,
        accepts "off, 0, or seconds above 0 and up to 1000000, such as 30",
        help "how long a PE waits before a stall report; the job ends if no PE can continue";
    peer_timeout: Option<Duration> = parse::limit, "PELAGO_PEER_TIMEOUT", "30", Waiting,
        accepts "none, or seconds above 0 and up to 1000000, such as 30",
        help "how long the host of another PE may be silent before the job ends; checked by waiting PEs";
    service: bool = parse::switch, "PELAGO_SERVICE_THREAD", "on", Waiting,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "between nodes: each PE has a service thread (asynchronous progress thread), which serves \
              other PEs while this one computes";
    sim_seed: Option<u64> = parse::seed, "PELAGO_SIM_SEED", "none", Simulation,
        accepts "none, or a number from 0 to 18446744073709551615",
        help "seed of the faults of the simulated network between threads; none: no faults";
    sim_nodes: Option<u32> = parse::nodes, "PELAGO_SIM_NODES", "none", Simulation,
        accepts "none, or a number from 1 to 4294967295",
        help "on how many nodes the PEs are taken to be, in blocks of processes; for tests: processes of one \
              machine, and threads over the simulated network";
    ring_bytes: usize = parse::ring_bytes, "PELAGO_RING_SIZE", "64k", Messages,
        accepts "bytes, a power of two from 4k to 64m",
        help "size of the ring of incoming messages of each PE";
    eager_limit: Option<usize> = parse::eager_limit, "PELAGO_EAGER_LIMIT", "auto", Messages,
        accepts "auto, or bytes from 0 to 1g",
        help "longest two-sided message that is sent before a receive asks for it; auto: \
              16k on a node, 32k where process_vm_readv is slow, 64k over a network";
    single_copy: Option<bool> = parse::auto_switch, "PELAGO_SINGLE_COPY", "auto", Messages,
        accepts "auto, on or off (also 1 or 0, true or false, yes or no)",
        help "on a node, read long messages from the sender (process_vm_readv), not through shared memory; \
              auto: both are tried, again from time to time";
    unexpected_memory: usize = parse::unexpected_memory, "PELAGO_UNEXPECTED_MEMORY", "60m", Messages,
        accepts "bytes from 64k to 64g",
        help "memory of a PE for messages that no receive has asked for; in MPI programs 1g by default";
    node_id: Option<String> = parse::text, "PELAGO_NODE_ID", "", Start,
        accepts "any text that is not empty",
        help "name of the node, in place of the one found: PEs with equal names share memory";
    pmix_library: Option<String> = parse::auto_text, "PELAGO_PMIX_LIBRARY", "auto", Start,
        accepts "auto, or the path of a libpmix.so.2",
        help "library that speaks to mpirun and srun --mpi=pmix; auto: the one that the system finds";
    launch_agent: Option<String> = parse::text, "PELAGO_LAUNCH_AGENT", "", Start,
        accepts "a command and its options with spaces between, such as ssh -p 2222",
        help "remote shell of `pelago run` in place of ssh; the host and a command follow it";
    log: LogFilter = LogFilter::parse, "PELAGO_LOG", "off", Diagnosis,
        accepts "off, error, warn, info, debug or trace, and target=level with commas between",
        help "decisions of the start on standard error; targets: job, nodes, memory, fabric, coll, launcher";
    jobs_folder: Option<String> = parse::auto_text, "PELAGO_JOBS_FOLDER", "auto", Start,
        accepts "auto, or the path of a folder that only you can open",
        help "where `pelago run` records its jobs for `pelago ps`; auto: /tmp/pelago-UID";
    heap_extra: usize = parse::bytes, "PELAGO_HEAP_EXTRA", "0", Internal,
        accepts "bytes such as 4096, 64m or 1.5g",
        help "set by the OpenSHMEM library: how much larger than the default the heap is for its own needs";
    test_body: Option<String> = parse::text, "PELAGO_TEST_BODY", "", Internal,
        accepts "the name of a test",
        help "set by tests of several processes: which body this process runs";
    test_sleeps: bool = parse::switch, "PELAGO_TEST_SLEEPS", "off", Internal,
        accepts "on or off (also 1 or 0, true or false, yes or no)",
        help "set by tests: sleeps end by their events alone, so that a lost wake-up is a failure";
}

impl Settings {
    /// The settings in the environment of this process.
    ///
    /// # Errors
    /// Those of [`Settings::from_pairs`]; a value that is not Unicode is refused like any other bad value. In
    /// secure execution (a set-user-id program), a variable that names a file.
    pub fn from_env() -> Result<Self, SettingError> {
        let names: Vec<_> =
            std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        secure::refuse_files(is_secure(), names.iter().map(String::as_str))?;
        Self::from_os_pairs(std::env::vars_os())
    }

    /// The settings in these variables. The last of two equal names counts, and variables that do not begin
    /// with `PELAGO_` are ignored, as are those that module files set.
    ///
    /// # Errors
    /// If a variable begins with `PELAGO_` but is not a setting, or if a value is not valid for its setting.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        for (variable, value) in pairs {
            if variable.starts_with(PREFIX) && !OF_MODULES.contains(&variable.as_str()) {
                settings.set(&variable, &value)?;
            }
        }
        Ok(settings)
    }

    /// As [`Settings::from_pairs`], from variables of the operating system's string type.
    pub(crate) fn from_os_pairs(
        pairs: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingError> {
        let text = |(k, v): (OsString, OsString)| {
            (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())
        };
        Self::from_pairs(pairs.into_iter().map(text))
    }
}

/// All settings, also internal ones.
pub fn settings_table() -> &'static [SettingInfo] {
    TABLE
}

/// The settings that are for users, by subject.
pub fn user_settings() -> Vec<&'static SettingInfo> {
    let mut rows: Vec<_> = TABLE.iter().filter(|row| row.subject != Subject::Internal).collect();
    rows.sort_by_key(|row| row.subject);
    rows
}

fn unknown(variable: &str) -> SettingError {
    let nearest = TABLE
        .iter()
        .map(|row| (strsim::jaro_winkler(&variable[PREFIX.len()..], &row.name[PREFIX.len()..]), row.name))
        .filter(|(likeness, _)| *likeness >= 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    SettingError::Unknown { variable: variable.to_owned(), nearest: nearest.map(|(_, name)| name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    /// Mutates valid values of every variable, and of names that do not exist.
    #[test]
    fn fuzz_settings() {
        let values = [
            "auto",
            "64m",
            "1.5g",
            "4096",
            "on",
            "off",
            "60",
            "0.5",
            "16",
            "all",
            "none",
            "tcp;ofi_rxm,verbs",
            "broadcast=chain,all-reduce=ring:8",
            "0-3,7",
            "a-node",
            "2",
            "dissemination",
            "\u{1f40b}",
        ];
        let mut dice = fuzzing::Dice(1);
        fuzzing::fuzz(&values, |input| {
            let row = dice.pick(TABLE);
            let value = String::from_utf8_lossy(input);
            let mut settings = Settings::default();
            if let Err(error) = settings.set(row.name, &value) {
                assert!(error.to_string().contains(row.name), "{error}");
            }
            let name = format!("{PREFIX}{value}");
            let _ = Settings::from_pairs([(name, value.into_owned())]).map_err(|error| error.to_string());
        });
    }

    fn of(variable: &str, value: &str) -> Result<Settings, SettingError> {
        Settings::from_pairs([(variable.to_owned(), value.to_owned())])
    }

    #[test]
    fn variables_of_module_files_are_no_settings() {
        for variable in OF_MODULES {
            assert_eq!(of(variable, "/opt/pelago").unwrap(), Settings::default(), "{variable}");
            assert!(!TABLE.iter().any(|row| row.name == variable), "{variable}");
        }
        assert!(of("PELAGO_ROOTS", "x").is_err());
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let settings = Settings::from_pairs([]).unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.heap, MemorySize::Auto);
        assert_eq!(settings.init_timeout, Duration::from_secs(300));
        assert!(!settings.counters && !settings.bind);
        assert_eq!(settings.pes_per_process, 1);
        assert_eq!((settings.barrier, settings.route), (BarrierKind::Auto, RouteKind::Auto));
        assert_eq!((settings.spins, settings.yields, settings.wait_limit), (None, None, None));
        assert_eq!(settings.ring_bytes, 65536);
        assert_eq!((settings.node_id, settings.test_body, settings.sim_seed), (None, None, None));
        assert_eq!(settings.pmix_library, None);
    }

    #[test]
    fn every_row_is_complete_and_its_default_is_accepted() {
        for row in settings_table() {
            assert!(row.name.starts_with(PREFIX), "{row:?}");
            assert!(!row.help.is_empty() && !row.accepts.is_empty(), "{row:?}");
            if !row.default.is_empty() {
                assert_eq!(of(row.name, row.default), Ok(Settings::default()), "{row:?}");
            }
        }
    }

    #[test]
    fn each_variable_sets_its_own_field() {
        assert_eq!(of("PELAGO_HEAP_SIZE", "1.5g").unwrap().heap, MemorySize::Bytes(3 << 29));
        assert_eq!(of("PELAGO_HEAP_SIZE", "share").unwrap().heap, MemorySize::Share);
        assert_eq!(of("PELAGO_INIT_TIMEOUT", "0.5").unwrap().init_timeout, Duration::from_millis(500));
        assert!(of("PELAGO_COUNTERS", "on").unwrap().counters);
        assert_eq!(of("PELAGO_BARRIER", "dissemination").unwrap().barrier, BarrierKind::Dissemination);
        assert_eq!(of("PELAGO_ROUTE", "net").unwrap().route, RouteKind::Net);
        assert_eq!(of("PELAGO_SIM_SEED", "42").unwrap().sim_seed, Some(42));
        assert_eq!(of("PELAGO_SIM_NODES", "3").unwrap().sim_nodes, Some(3));
        assert_eq!(of("PELAGO_PES_PER_PROCESS", "4").unwrap().pes_per_process, 4);
        assert!(of("PELAGO_BIND", "on").unwrap().bind);
        assert_eq!(of("PELAGO_SPINS", "0").unwrap().spins, Some(0));
        assert_eq!(of("PELAGO_YIELDS", "7").unwrap().yields, Some(7));
        assert_eq!(of("PELAGO_RING_SIZE", "4k").unwrap().ring_bytes, 4096);
        assert_eq!(of("PELAGO_NODE_ID", "a b").unwrap().node_id.as_deref(), Some("a b"));
        assert_eq!(of("PELAGO_PMIX_LIBRARY", "/a/b").unwrap().pmix_library.as_deref(), Some("/a/b"));
        assert_eq!(of("PELAGO_TEST_BODY", "x").unwrap().test_body.as_deref(), Some("x"));
        assert!(of("PELAGO_TEST_SLEEPS", "on").unwrap().test_sleeps);
    }

    #[test]
    fn a_bad_value_is_refused_with_its_variable_and_what_is_accepted() {
        for row in settings_table() {
            let Err(SettingError::Value { variable, .. }) = of(row.name, "") else {
                panic!("an empty {} was accepted", row.name)
            };
            assert_eq!(variable, row.name);
        }
        let text = of("PELAGO_HEAP_SIZE", "lots").unwrap_err().to_string();
        for part in ["PELAGO_HEAP_SIZE", "\"lots\"", "64m"] {
            assert!(text.contains(part), "{text} does not say {part}");
        }
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_nearest_name() {
        let nearest = |variable: &str| match of(variable, "1") {
            Err(SettingError::Unknown { nearest, .. }) => nearest,
            other => panic!("{variable} gave {other:?}"),
        };
        assert_eq!(nearest("PELAGO_HEAPSIZE"), Some("PELAGO_HEAP_SIZE"));
        assert_eq!(nearest("PELAGO_HEAP"), Some("PELAGO_HEAP_SIZE"));
        assert_eq!(nearest("PELAGO_SPIN"), Some("PELAGO_SPINS"));
        assert_eq!(nearest("PELAGO_TIMEOUT_INIT"), Some("PELAGO_INIT_TIMEOUT"));
        assert_eq!(nearest("PELAGO_ZZZZZZ"), None);
        assert_eq!(nearest("PELAGO_"), None);
        assert_eq!(nearest("PELAGO_heap_size"), None);
        let text = of("PELAGO_HEAPSIZE", "1").unwrap_err().to_string();
        assert!(text.contains("did you mean PELAGO_HEAP_SIZE?"), "{text}");
    }

    #[test]
    fn other_variables_are_passed_over_and_the_last_of_two_holds() {
        assert_eq!(of("PELAGIC", "x"), Ok(Settings::default()));
        assert_eq!(of("PATH", ""), Ok(Settings::default()));
        let pairs = [("PELAGO_SPINS", "1"), ("PELAGO_SPINS", "2")];
        let settings = Settings::from_pairs(pairs.map(|(k, v)| (k.to_owned(), v.to_owned()))).unwrap();
        assert_eq!(settings.spins, Some(2));
    }
}
