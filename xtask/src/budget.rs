//! `cargo xtask budget`: counts the instructions of the hot operations, and compares the counts with their
//! budgets.
//!
//! Invariant: a count is exact and the same on every run and machine with the same compiler, however busy the
//! machine is; a budget without a probe fails like an exceeded one. `tracer.rs` describes the protocol of a
//! probe program.
//!
//! The functions of the OpenSHMEM library are counted as they are installed (`budget/shmem_probe.c`). The
//! other probes are in `budget/src/bin/probe.rs`, those over a network in `probe_net.rs`
//! beside it. To add a probe, add a function there, which is then counted, and a row here, which limits it.

mod record;
mod tracer;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::install::Install;
use crate::workspace::{cargo, metadata, root};

/// The maximum number of instructions of a probe, from the first instruction of its function to its `ret`.
struct Budget {
    probe: &'static str,
    instructions: u64,
    what: &'static str,
}

const BUDGETS: [Budget; 13] = [
    Budget { probe: "put_checked", instructions: 11, what: "put of one element, PE and index checked" },
    Budget { probe: "put_bound", instructions: 6, what: "put of one element through a handle bound to a PE" },
    Budget {
        probe: "fetch_add_checked",
        instructions: 14,
        what: "atomic, PE and index checked, sleepers looked for",
    },
    Budget {
        probe: "fetch_add_bound",
        instructions: 8,
        what: "atomic through a handle bound to a PE, sleepers looked for",
    },
    Budget { probe: "fetch_add_domain", instructions: 16, what: "atomic of a domain, PE and index checked" },
    Budget { probe: "put_strided_16", instructions: 200, what: "strided put of 16 words of 8 bytes" },
    Budget { probe: "quiet", instructions: 8, what: "quiet with nothing outstanding" },
    Budget { probe: "barrier_alone", instructions: 60, what: "barrier of one PE, which waits for nobody" },
    Budget { probe: "team_barrier_alone", instructions: 60, what: "the same of a team" },
    Budget { probe: "broadcast_alone", instructions: 90, what: "broadcast of 8 bytes, at the root" },
    Budget { probe: "am_poll", instructions: 15, what: "look for active messages that finds none" },
    Budget { probe: "am_short", instructions: 100, what: "active message, and a look for others" },
    Budget { probe: "am_short_8", instructions: 120, what: "the same with 8 arguments" },
];

/// The same for the functions of the OpenSHMEM library, as programs call them; the probes are in
/// `budget/shmem_probe.c`.
const SHMEM_BUDGETS: [Budget; 11] = [
    Budget { probe: "shmem_int_p", instructions: 13, what: "put of one element, default checks" },
    Budget { probe: "shmem_int_g", instructions: 13, what: "get of one element" },
    Budget { probe: "shmem_long_atomic_fetch_add", instructions: 19, what: "atomic, alignment checked" },
    Budget { probe: "shmem_putmem", instructions: 25, what: "put of 8 bytes" },
    Budget { probe: "shmem_getmem", instructions: 25, what: "get of 8 bytes" },
    Budget { probe: "shmem_quiet", instructions: 8, what: "quiet with nothing outstanding" },
    Budget { probe: "shmem_fence", instructions: 8, what: "fence with nothing outstanding" },
    Budget { probe: "shmem_my_pe", instructions: 8, what: "the number of this PE" },
    Budget { probe: "shmem_barrier_all", instructions: 60, what: "barrier of one PE" },
    Budget { probe: "shmem_long_broadcast", instructions: 90, what: "broadcast of 8 bytes, at the root" },
    Budget { probe: "pshmem_long_broadcast", instructions: 180, what: "the same on another team" },
];

/// The same for the MPI library: a put of a word and its flush take at most 80 together; the probes are in
/// `budget/mpi_probe.c`.
const MPI_BUDGETS: [Budget; 4] = [
    Budget { probe: "MPI_Put", instructions: 55, what: "put of a word in a window" },
    Budget { probe: "MPI_Get", instructions: 55, what: "get of a word" },
    Budget { probe: "MPI_Fetch_and_op", instructions: 210, what: "atomic addition" },
    Budget { probe: "MPI_Win_flush", instructions: 25, what: "flush with nothing outstanding" },
];

/// Between PEs of one node in a job of two nodes: the budgets are those of a job of one node; the probes are
/// in `budget/src/bin/probe_nodes.rs`.
const NODES_BUDGETS: [Budget; 7] = [
    Budget { probe: "put_checked", instructions: 11, what: "put of one element, PE and index checked" },
    Budget { probe: "put_bound", instructions: 6, what: "put of one element through a handle bound to a PE" },
    Budget { probe: "fetch_add_checked", instructions: 14, what: "atomic, PE and index checked" },
    Budget { probe: "fetch_add_bound", instructions: 8, what: "atomic through a handle bound to a PE" },
    Budget { probe: "quiet", instructions: 12, what: "quiet with nothing outstanding" },
    Budget { probe: "send", instructions: 120, what: "two-sided message of 8 bytes, eager" },
    Budget { probe: "receive", instructions: 210, what: "receive of one that has come" },
];

/// The same for the OpenSHMEM library.
const SHMEM_NODES_BUDGETS: [Budget; 7] = [
    Budget { probe: "shmem_int_p", instructions: 13, what: "put of one element, default checks" },
    Budget { probe: "shmem_int_g", instructions: 13, what: "get of one element" },
    Budget { probe: "shmem_long_atomic_fetch_add", instructions: 19, what: "atomic, alignment checked" },
    Budget { probe: "shmem_putmem", instructions: 25, what: "put of 8 bytes" },
    Budget { probe: "shmem_getmem", instructions: 25, what: "get of 8 bytes" },
    Budget { probe: "shmem_quiet", instructions: 12, what: "quiet with nothing outstanding" },
    Budget { probe: "shmem_fence", instructions: 12, what: "fence with nothing outstanding" },
];

/// Over a network, at one PE that accesses its own memory through the provider `null` of the fake libfabric
/// (`fabric-testkit/src/fake_libfabric/null.rs`); the probes are in `budget/src/bin/probe_net.rs`.
const NET_BUDGETS: [Budget; 6] = [
    Budget {
        probe: "put_net",
        instructions: 40 + NULL_WRITE_INSTRUCTIONS,
        what: "put of one element over libfabric, 6 in its fi_writemsg",
    },
    Budget {
        probe: "put_context_net",
        instructions: 40 + NULL_WRITE_INSTRUCTIONS,
        what: "the same through a context",
    },
    Budget {
        probe: "put_slice_net",
        instructions: 280,
        what: "put of three elements over libfabric, injected, all checked",
    },
    Budget { probe: "quiet_net", instructions: 12, what: "quiet with nothing outstanding, over libfabric" },
    Budget {
        probe: "get_net",
        instructions: 140,
        what: "get of one element over libfabric, complete at once",
    },
    Budget {
        probe: "third_get_net",
        instructions: 140,
        what: "the same without a quiet after a put, the third in a row",
    },
];

/// The same for the OpenSHMEM library.
const SHMEM_NET_BUDGETS: [Budget; 4] = [
    Budget {
        probe: "shmem_int_p",
        instructions: 60 + NULL_WRITE_INSTRUCTIONS,
        what: "put of one element over libfabric, 6 in its fi_writemsg",
    },
    Budget {
        probe: "shmem_int_g",
        instructions: 80 + NULL_READ_INSTRUCTIONS,
        what: "get of one element, 8 in fi_readmsg and fi_cntr_read",
    },
    Budget { probe: "shmem_quiet", instructions: 12, what: "quiet with nothing outstanding" },
    Budget { probe: "shmem_fence", instructions: 12, what: "fence with nothing outstanding" },
];

/// Over TCP between two processes, where the put is batched with earlier ones, so that it makes no system
/// call.
const TCP_BUDGETS: [Budget; 2] = [
    Budget { probe: "shmem_int_p", instructions: 150, what: "put of one element over TCP, besides its send" },
    Budget { probe: "shmem_fence", instructions: 12, what: "fence with nothing outstanding" },
];

/// Instructions of the function of the null provider that a put calls, `fi_writemsg`.
const NULL_WRITE_INSTRUCTIONS: u64 = 6;

/// The same for the functions that a get calls, `fi_readmsg` and `fi_cntr_read`.
const NULL_READ_INSTRUCTIONS: u64 = 8;

/// Seconds of real time that the probe program may take, preparation included.
const DEADLINE_SECONDS: u32 = 60;

/// The count of one probe.
#[derive(Debug, PartialEq, Eq)]
pub struct Count {
    pub probe: String,
    pub instructions: u64,
}

/// One line of the result.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Row {
    name: String,
    counted: Option<u64>,
    budget: Option<u64>,
    verdict: Verdict,
    what: &'static str,
}

/// How a count compares with its budget; all but `Within` and `NoBudget` are failures.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Within,
    Over,
    NoProbe,
    NoBudget,
}

/// Builds the probes in the profile of installations, counts them, and prints the result: a table, or with
/// `json` one array of objects `{name, counted, budget, verdict, what}`. Fails if a probe exceeds its budget
/// or is missing, or if the file of counts has others; with `record` the file is written.
pub fn run(json: bool, record: bool) -> Result<()> {
    let mut built = build(&PROBES)?;
    built.0.extend(build(&FAKE_LIBFABRIC)?.0);
    let (folder, in_rust) = (metadata()?.target_directory.join("budget"), built.program("probe")?);
    Install::dist_library(&folder.join("prefix")).run()?;
    let (in_c, of_mpi) = (probes(&folder, "oshcc", "shmem_probe")?, probes(&folder, "mpicc", "mpi_probe")?);
    let alone = |program: Command| tracer::count(program, DEADLINE_SECONDS);
    let mut rows = judge("", &BUDGETS, &alone(Command::new(in_rust))?);
    rows.extend(judge("", &SHMEM_BUDGETS, &alone(Command::new(&in_c))?));
    rows.extend(judge("", &MPI_BUDGETS, &alone(Command::new(of_mpi))?));
    rows.extend(judge("", &NET_BUDGETS, &alone(over_net(&built, &built.program("probe_net")?)?)?));
    let far = over_net(&built, &in_c)?;
    rows.extend(judge(" (far PE)", &SHMEM_NET_BUDGETS, &alone(far)?));
    let (near, rust) = (" (two nodes)", built.program("probe_nodes")?);
    rows.extend(judge(near, &NODES_BUDGETS, &in_job(&built, &rust, false)?));
    rows.extend(judge(near, &SHMEM_NODES_BUDGETS, &in_job(&built, &in_c, false)?));
    let mut over_tcp = in_job(&built, &in_c, true)?;
    // Probes that wait for a reply have no reproducible count.
    over_tcp.retain(|count| TCP_BUDGETS.iter().any(|budget| budget.probe == count.probe));
    rows.extend(judge(" (over TCP)", &TCP_BUDGETS, &over_tcp));
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    let is_breach = |row: &&Row| matches!(row.verdict, Verdict::Over | Verdict::NoProbe);
    let breaches: Vec<_> = rows.iter().filter(is_breach).map(|row| row.name.as_str()).collect();
    ensure!(breaches.is_empty(), "not within the budget of instructions: {}", breaches.join(", "));
    record::keep(&rows, record)
}

/// The packages that the probes need, built in one call with the library that is installed: the dependencies
/// then have the same features for all of them, and are compiled once.
const PROBES: [&str; 5] =
    ["--lib", "--bins", "--profile=dist", "--package=pelago-budget", "--package=pelago-library"];

/// The fake libfabric, without the tests that its package has.
const FAKE_LIBFABRIC: [&str; 5] = [
    "--profile=dist",
    "--package=pelago-fabric-testkit",
    "--example=fake_libfabric",
    "--no-default-features",
    "--features=encrypt",
];

/// The messages of a cargo build, which name its outputs.
struct Built(Vec<Value>);

/// Calls `cargo build` with these arguments.
fn build(arguments: &[&str]) -> Result<Built> {
    let mut command = cargo(&["build", "--message-format=json-render-diagnostics"]);
    command.args(arguments).stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo build")?;
    ensure!(output.status.success(), "cannot build {}, see above", arguments.join(" "));
    let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    let messages = messages.collect::<Result<_, _>>().context("cannot read the messages of cargo build")?;
    Ok(Built(messages))
}

impl Built {
    /// The path of a program, or of an example that is a library.
    fn program(&self, name: &str) -> Result<PathBuf> {
        let is_kind = |kind: &Value| kind == "example" || kind == "bin";
        let is_it =
            |message: &&Value| message["target"]["name"] == name && is_kind(&message["target"]["kind"][0]);
        let path = self.0.iter().find(is_it).and_then(|message| message["filenames"][0].as_str());
        Ok(path.with_context(|| format!("cargo build named no file for the program `{name}`"))?.into())
    }
}

/// A probe program over a network, which opens the fake libfabric in place of libfabric.
fn over_net(built: &Built, program: &Path) -> Result<Command> {
    let mut program = Command::new(program);
    program.env("PELAGO_ROUTE", "net").env("PELAGO_FABRIC", "ofi");
    program.env("PELAGO_OFI_LIBRARY", built.program("fake_libfabric")?).env("PELAGO_OFI_PROVIDER", "null");
    // Collectives would wait for data that never arrives.
    program.env("BUDGET_COLLECTIVES", "no");
    Ok(program)
}

/// Counts the probes of a program in a job with TCP between two simulated nodes on this machine, or, if
/// `is_far`, between all PEs.
fn in_job(built: &Built, program: &Path, is_far: bool) -> Result<Vec<Count>> {
    let folder = metadata()?.target_directory.join("budget");
    let probes = folder.join(format!("probes-{}", std::process::id()));
    let mut launcher = Command::new(built.program("launch")?);
    launcher.arg(JOB_PES).arg(program).env("PELAGO_FABRIC", "tcp");
    match is_far {
        // Without a progress thread, no thread sends the batch or receives an acknowledgement during a count.
        true => {
            launcher.envs([("PELAGO_ROUTE", "net"), ("BUDGET_FAR", "yes"), ("PELAGO_SERVICE_THREAD", "off")])
        }
        false => launcher.env("PELAGO_SIM_NODES", "2"),
    };
    launcher.env("BUDGET_COLLECTIVES", "no");
    let counts = tracer::count_in_job(launcher, &probes, DEADLINE_SECONDS);
    let _ = std::fs::remove_file(probes);
    counts
}

/// The number of PEs of such a job: two on one node, one on the other.
const JOB_PES: &str = "3";

/// Compiles the probes of a library by its installed compiler wrapper; returns the path of the program.
fn probes(folder: &Path, wrapper: &str, source: &str) -> Result<PathBuf> {
    let program = folder.join(source);
    let status = Command::new(folder.join("prefix/bin").join(wrapper))
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(root().join("xtask/src/budget").join(source).with_extension("c"))
        .status()
        .with_context(|| format!("cannot run the installed {wrapper}"))?;
    ensure!(status.success(), "cannot build {source}.c, see above");
    Ok(program)
}

/// A row for each budget, then a row for each probe without a budget; `place` is added to their names.
fn judge(place: &str, budgets: &[Budget], counts: &[Count]) -> Vec<Row> {
    let with_budget = budgets.iter().map(|budget| {
        let count = counts.iter().find(|count| count.probe == budget.probe);
        let counted = count.map(|count| count.instructions);
        let verdict = match counted {
            None => Verdict::NoProbe,
            Some(counted) if counted > budget.instructions => Verdict::Over,
            Some(_) => Verdict::Within,
        };
        let (name, what) = (format!("{}{place}", budget.probe), budget.what);
        Row { name, counted, budget: Some(budget.instructions), verdict, what }
    });
    let without = counts.iter().filter(|count| budgets.iter().all(|budget| budget.probe != count.probe));
    let without = without.map(|count| Row {
        name: format!("{}{place}", count.probe),
        counted: Some(count.instructions),
        budget: None,
        verdict: Verdict::NoBudget,
        what: "",
    });
    with_budget.chain(without).collect()
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("probe".len());
    let number = |number: Option<u64>| number.map_or("-".to_string(), |number| number.to_string());
    let mut table = format!("{:<width$}  counted  budget  {:<9}  what\n", "probe", "verdict");
    for Row { name, counted, budget, verdict, what } in rows {
        let verdict = match verdict {
            Verdict::Within => "within",
            Verdict::Over => "OVER",
            Verdict::NoProbe => "NO PROBE",
            Verdict::NoBudget => "no budget",
        };
        let (counted, budget) = (number(*counted), number(*budget));
        let line = format!("{name:<width$}  {counted:>7}  {budget:>6}  {verdict:<9}  {what}");
        table += line.trim_end();
        table += "\n";
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [Budget; 2] = [
        Budget { probe: "a", instructions: 10, what: "first" },
        Budget { probe: "bound", instructions: 6, what: "second" },
    ];

    fn rows(counts: &[(&str, u64)]) -> Vec<Row> {
        let counts: Vec<_> = counts
            .iter()
            .map(|(probe, instructions)| Count { probe: probe.to_string(), instructions: *instructions })
            .collect();
        judge("", &TWO, &counts)
    }

    fn verdicts(counts: &[(&str, u64)]) -> Vec<Verdict> {
        rows(counts).iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn a_count_at_its_budget_is_within_and_one_more_is_over() {
        assert_eq!(verdicts(&[("a", 10), ("bound", 3)]), [Verdict::Within, Verdict::Within]);
        assert_eq!(verdicts(&[("a", 11), ("bound", 6)]), [Verdict::Over, Verdict::Within]);
    }

    #[test]
    fn a_missing_probe_and_one_without_budget_are_told_apart() {
        assert_eq!(verdicts(&[("bound", 6)]), [Verdict::NoProbe, Verdict::Within]);
        let extra = verdicts(&[("a", 1), ("bound", 1), ("new", 1)]);
        assert_eq!(extra, [Verdict::Within, Verdict::Within, Verdict::NoBudget]);
    }

    #[test]
    fn the_table_is_aligned() {
        let expected = "probe  counted  budget  verdict    what\n\
                        a           12      10  OVER       first\n\
                        bound        -       6  NO PROBE   second\n\
                        new          1       -  no budget\n";
        assert_eq!(table(&rows(&[("a", 12), ("new", 1)])), expected);
    }

    #[test]
    fn json_has_one_object_a_row() {
        let json = serde_json::to_value(rows(&[("a", 12)])).unwrap();
        assert_eq!(json[0]["verdict"], "over");
        assert_eq!((&json[1]["counted"], &json[1]["verdict"]), (&Value::Null, &"no_probe".into()));
    }

    #[test]
    fn budgets_have_distinct_names() {
        for (index, budget) in BUDGETS.iter().enumerate() {
            assert!(BUDGETS[..index].iter().all(|other| other.probe != budget.probe), "{}", budget.probe);
        }
    }
}
