//! The options that launchers of MPI and OpenSHMEM have, and that `pelago run` has under another name or not
//! at all.

/// The meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The number of PEs.
    Number,
    /// A variable that the PEs get: `NAME=VALUE`, or `NAME`, which they have anyway.
    Export,
    /// A variable that the PEs get: `NAME VALUE`, or `NAME=VALUE`.
    Variable,
    /// A list of hosts; `fills_again` if they are filled again when all their slots are taken.
    Hosts {
        fills_again: bool,
    },
    /// A file of hosts; the same.
    HostFile {
        fills_again: bool,
    },
    /// The PEs of each host.
    PerHost,
    /// The working directory of the PEs.
    Folder,
    /// Folders in which programs are looked for first.
    Path,
    /// The place that PEs are bound to.
    Bind,
    /// How PEs are placed.
    Map,
    /// A file with the other options and the programs.
    Config,
    /// The word between programs.
    Separator,
    /// An option of `pelago run` that names a file.
    OwnFile,
    /// An option of `pelago run`, with a value or without, and under which name.
    Own(&'static str, Value),
    /// More PEs than slots.
    Oversubscribe,
    Help,
    Version,
    /// Nothing that a job needs, with a number of words behind it.
    Nothing(usize),
}

/// Whether an option has a value in the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Without,
    With,
}

/// The meaning of an option; `None` if the launchers have none of that name.
pub fn meaning(word: &str) -> Option<Meaning> {
    Some(match word {
        "-n" | "--n" | "-np" | "--np" | "-c" => Meaning::Number,
        "-x" => Meaning::Export,
        "-env" | "-genv" | "--genv" => Meaning::Variable,
        // Hydra, which has -hosts and -f, fills the hosts again.
        "-hosts" => Meaning::Hosts { fills_again: true },
        "-host" | "--host" | "--hosts" | "-H" => Meaning::Hosts { fills_again: false },
        "-f" => Meaning::HostFile { fills_again: true },
        "-hostfile" | "--hostfile" | "-machinefile" | "--machinefile" => {
            Meaning::HostFile { fills_again: false }
        }
        "-ppn" | "--ppn" | "-perhost" | "-npernode" | "--npernode" | "-N" => Meaning::PerHost,
        "-wdir" | "--wdir" | "-wd" | "--wd" => Meaning::Folder,
        "-path" | "--path" => Meaning::Path,
        "-bind-to" | "--bind-to" => Meaning::Bind,
        "-map-by" | "--map-by" => Meaning::Map,
        "-configfile" | "--configfile" => Meaning::Config,
        "--separator" => Meaning::Separator,
        "--output-dir" | "--trace" => Meaning::OwnFile,
        "-l" | "-prepend-rank" => Meaning::Own("--tag-output", Value::Without),
        "-s" | "-stdin" => Meaning::Own("--stdin", Value::With),
        "-oversubscribe" | "--oversubscribe" => Meaning::Oversubscribe,
        "-h" | "-help" | "--help" => Meaning::Help,
        "-V" | "-version" | "--version" => Meaning::Version,
        "-genvall"
        | "-envall"
        | "--allow-run-as-root"
        | "-v"
        | "-verbose"
        | "--verbose"
        | "-q"
        | "--quiet"
        | "-nooversubscribe"
        | "--nooversubscribe"
        | "-report-bindings"
        | "--report-bindings"
        | "-use-hwthread-cpus"
        | "--use-hwthread-cpus" => Meaning::Nothing(0),
        "-rank-by" | "--rank-by" => Meaning::Nothing(1),
        "-mca" | "--mca" | "-gmca" | "--gmca" | "--prtemca" | "--pmixmca" => Meaning::Nothing(2),
        _ => return None,
    })
}
