//! `pelago run`: starts a job on one or several machines, and supervises it.

mod foreign;
mod programs;
mod tools;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory};
use pelago::coll::select::forced;
use pelago::coll::tuning;
use pelago_apps::nearest;
use pelago_boot::{
    Cause, Failure, InputTo, JobSpec, LaunchError, Program, Settings, end_by_signal, resolve, tell,
};
use rustix::process::Signal;

use self::programs::{parts, start_of};
use self::tools::Tools;
use crate::app;
use crate::hosts::{self, Hosts};
use crate::record::{Recording, Records};

/// The setting that names algorithms, which only the PEs can check.
const COLL: &str = "PELAGO_COLL";

/// The signal of Ctrl-C.
const SIGINT: i32 = Signal::INT.as_raw();

/// The setting for the number of PEs per process.
const PES_PER_PROCESS: &str = "PELAGO_PES_PER_PROCESS";

/// Start N PEs of a program, or of a built-in application, on this machine or on several
///
/// The first PE that fails ends the job, and the reason is reported. Ctrl-C ends
/// the job. SIGUSR2 to this command prints what each PE does: what it waits for,
/// or that it computes, is stopped or in a debugger.
///
/// Exit status:
///   0      all PEs have ended without an error
///   N      the first PE that failed has ended with the status N
///   128+N  the signal N has killed that PE, or has ended this command
///   124    the time of --timeout was over
///   1      a host was lost, or a PE exited without leaving the job
///   2      nothing was started, because the arguments are wrong; or the job has
///          ended well, but the file of --trace or --stats was not made
///
/// Other hosts are reached over ssh, or by another command. On each host, this
/// command runs as an agent, which communicates with the launcher only over
/// standard input and output. PEs there get the environment, the settings and
/// the working directory of this command. Inside an allocation of Slurm, the
/// default is the hosts of the allocation.
#[derive(Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub struct Run {
    /// Number of PEs. Each PE is a process of its own, unless --pes-per-process is given. -np N and -n4 mean
    /// the same
    #[arg(short, value_name = "N", value_parser = number_of_pes, allow_negative_numbers = true)]
    n: Option<usize>,
    /// PEs of each process, as threads; must divide the number of PEs (PELAGO_PES_PER_PROCESS)
    #[arg(long, value_name = "P", value_parser = pes_of_a_process, allow_negative_numbers = true)]
    pes_per_process: Option<usize>,
    #[command(flatten)]
    hosts: Hosts,
    /// Start more PEs than the hosts have slots: each host gets the same multiple of its slots
    #[arg(long)]
    oversubscribe: bool,
    /// Bind each PE to a hardware thread that this command may use; each core gets a PE before any gets two
    #[arg(long)]
    bind: bool,
    /// Put the number of the PE, or the numbers of all PEs of a process, before every line of output
    #[arg(long)]
    tag_output: bool,
    /// Write the output of PE N to rank.N.out and rank.N.err in this folder, and nothing to the terminal
    #[arg(long, value_name = "DIR", conflicts_with = "tag_output")]
    output_dir: Option<PathBuf>,
    /// The PEs that read standard input: `all` (each reads all of it), `none`, or the number of one
    /// [default: 0]
    #[arg(long, value_name = "WHICH", value_parser = input)]
    stdin: Option<InputTo>,
    #[command(flatten)]
    tools: Tools,
    /// End the job after this many seconds [default: MPIEXEC_TIMEOUT, if it is set]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Set a variable in every PE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variables())]
    env: Vec<Variable>,
    #[command(flatten)]
    records: Records,
    /// Separator of the programs of a job; with another separator, `:` is an ordinary argument
    #[arg(long, value_name = "WORD", default_value = ":")]
    separator: OsString,
    /// Program and its arguments. The program is a path, a name in PATH, or a built-in application (see
    /// `pelago app`). `app:NAME` always selects the built-in one. Further programs of the job follow, each as
    /// `: -n N PROGRAM ARGS`
    #[arg(value_name = "PROGRAM ARGS", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  pelago run -n 4 hello                         a built-in application
  pelago run -n 2 ft --class W                  arguments after the name are the application's
  pelago run -n 4 --bind --tag-output ./mine x  a program, bound to cores, every line with its PE
  pelago run -n 4 --env PELAGO_HEAP_SIZE=2g ./mine
  pelago run -n 4 --stats ./mine                what it called, and where it waited
  pelago run -n 4 --trace mine.pftrace ./mine   a timeline for Perfetto's user interface
  pelago run -n 2 app:perf barrier              the built-in application, though PATH has a perf
  pelago run -n 4 --output-dir out ./mine       rank.0.out, rank.0.err and so on in the folder out
  pelago run -n 4 --stdin all ./mine < data     every PE reads the file data as its standard input
  pelago run -n 4 --gdb ./mine                  the call stacks of a PE that crashes
  pelago run -n 4 --gdb=2 ./mine                PE 2 in gdb, at this terminal
  pelago run -n 2 --valgrind --output-dir out ./mine
  pelago run -n 2 --perf=-g ./mine              then: perf report -i rank.0.perf.data
  pelago run -n 2 --env PELAGO_LOG=info ./mine  which fabric, nodes and memory it got
  pelago run -n 8 --timeout 60 ./mine           ended after a minute at the latest
  pelago run -n 8 --pes-per-process 4 ft        two processes with four PEs each, as threads; a program of
                                                yours does it by pelago::run in place of World::init
  pelago run -n 1 ./master x : -n 3 ./worker y  two programs in one job: PE 0, and PEs 1 to 3
  pelago run -n 1 --separator / ./mine :        here the colon is an argument
  pelago run --hosts a:2,b:2 ./mine             PEs 0 and 1 on host a, 2 and 3 on b, over ssh
  pelago run -n 6 --hostfile hosts ./mine       six PEs on the hosts of a file, filled in its order
  pelago run -n 6 --hosts a,b --oversubscribe ./mine    three PEs on each host
  pelago run --hosts a:2,b:2 --launch-agent \"ssh -p 2222\" --agent-path /opt/bin/pelago ./mine
  salloc -N 2 -n 8 pelago run -n 8 ./mine       on the hosts of the allocation, by srun";

impl Run {
    /// Starts the job; returns its exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let (spec, mut recording) = self.spec()?;
        let report = recording.signals.launch(&spec).map_err(explain)?;
        // Prints nothing about a PE that had left the job, because its own message explains its status; nor
        // about a reader of the output that has closed its end.
        let says_nothing =
            |failure: &&Failure| matches!(failure.cause, Cause::ExitAfterLeaving(_) | Cause::OutputClosed);
        for failure in report.failures.iter().filter(|failure| !says_nothing(failure)) {
            tell(&format!("pelago run: {}\n", failure.text));
        }
        let joined = recording.finish();
        match (joined, report.status) {
            (Err(error), 0) if !recording.signals.has_come() => return Err(error),
            // The job's own status says more, and so does the signal.
            (Err(error), _) => tell(&format!("pelago run: {error:#}\n")),
            (Ok(()), _) => {}
        }
        // No destructor runs at the end by a signal.
        drop(recording);
        // If a PE has failed before, its status says more.
        if report.failures.first().is_some_and(|failure| failure.cause == Cause::Interrupted(SIGINT)) {
            end_by_signal(SIGINT);
        }
        Ok(ExitCode::from(u8::try_from(report.status).unwrap_or(1)))
    }

    fn spec(self) -> anyhow::Result<(JobSpec, Recording)> {
        let mut machines = self.hosts.machines()?;
        let mut parts = parts(self.n, self.words, &self.separator)?.into_iter();
        let first = parts.next().context("no program was named")?;
        self.tools.check_input(self.stdin.is_some())?;
        let input = self.stdin.or(self.tools.debugged()?.map(InputTo::Pe)).unwrap_or_default();
        let tool = self.tools.tool(self.output_dir.as_deref())?;
        let (program, args) = start_of(&first.words)?;
        let then = parts.map(|part| {
            let (program, args) = start_of(&part.words)?;
            Ok(Program { n: part.n.unwrap_or(1), program: program.into(), args, env: part.env })
        });
        let then = then.collect::<anyhow::Result<Vec<_>>>()?;
        let others = then.iter().map(|program| program.n).sum();
        let n = match (first.n, &machines) {
            (Some(n), _) => n,
            // The slots that other programs leave; if none is left, the launch reports too few slots.
            (None, Some(machines)) => hosts::slots(machines).saturating_sub(others).max(1),
            (None, None) => match hosts::tasks_of_this_host() {
                Some(tasks) => tasks.saturating_sub(others).max(1),
                None => refuse_without_a_number(),
            },
        };
        if let Some(machines) = machines.as_mut().filter(|_| self.oversubscribe) {
            hosts::oversubscribe(machines, n + others);
        }
        let of_pes = |variable: &str| {
            let given = self.env.iter().rev().find(|(key, _)| key == variable);
            let given = given.map(|(_, value)| value.to_string_lossy().into_owned());
            given.or_else(|| std::env::var(variable).ok())
        };
        forced(&of_pes(COLL).unwrap_or_default())?;
        tuning::load(of_pes(tuning::VARIABLE).filter(|path| !path.is_empty()).as_deref())?;
        let each = self.pes_per_process.map(|each| (PES_PER_PROCESS.to_owned(), each.to_string()));
        let slow = self.tools.variables();
        let recording = self.records.begin(machines.is_some())?;
        let own = |(key, value): (String, String)| -> Variable { (key.into(), value.into()) };
        let env = slow.into_iter().map(own).chain(self.env).chain(each.map(own));
        let env = env.chain(recording.settings()).collect();
        let (bind, tag_output) = (self.bind, self.tag_output);
        let timeout = self.timeout.map_or_else(time_limit, |limit| Ok(Some(limit)))?;
        let output_folder = self.output_dir;
        let spec = JobSpec {
            args,
            env,
            without: Recording::without(),
            then,
            machines,
            bind,
            tag_output,
            output_folder,
            input,
            tool,
            timeout,
            ..JobSpec::new(n, program)
        };
        Ok((spec, recording))
    }
}

/// The command line with `-n 4` in the place of `-np 4`, which other launchers have, and of `-n4`: as an
/// option alone, not among the arguments of the program.
pub fn spelled(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut at = 2;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        if let Some(spelled) = number_spelled(word) {
            at += 2;
            words.splice(at - 2..at - 1, spelled);
        } else {
            at += if takes_value(word) { 2 } else { 1 };
        }
    }
    words
}

/// Whether an option of this command has its value in the next word.
pub fn takes_value(word: &str) -> bool {
    let command = Run::augment_args(clap::Command::new("run"));
    let is_it = |arg: &&clap::Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long) && !arg.is_require_equals_set(),
        None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
    };
    command.get_opts().find(is_it).is_some_and(|arg| arg.get_action().takes_values())
}

/// The words for `-np` (the number follows), and for `-np4` and `-n4`.
pub fn number_spelled(word: &str) -> Option<Vec<OsString>> {
    let rest = word.strip_prefix("-n")?;
    let digits = rest.strip_prefix('p').unwrap_or(rest);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number && !rest.is_empty(), digits) {
        (false, _) => None,
        (true, "") => Some(vec!["-n".into()]),
        (true, digits) => Some(vec!["-n".into(), digits.into()]),
    }
}

/// Prints that the number of PEs is missing, like the parser for an argument that is always required.
fn refuse_without_a_number() -> ! {
    let mut command = crate::Cli::command();
    command.build();
    let command = command.find_subcommand_mut("run").expect("this is that subcommand");
    let kind = clap::error::ErrorKind::MissingRequiredArgument;
    let text = "the following required arguments were not provided:\n  -n <N>  (or --hosts, or --hostfile)";
    crate::refuse(&command.error(kind, text))
}

/// The hint for an option that does not exist, which the parser takes for the program.
fn option_suggestion(word: &str) -> String {
    let command = Run::augment_args(clap::Command::new("run"));
    let options: Vec<_> = command.get_opts().filter_map(clap::Arg::get_long).collect();
    match nearest(word.trim_start_matches('-'), options.iter().copied()) {
        Some(nearest) => format!("did you mean --{nearest}? (see pelago run --help)"),
        None => "see pelago run --help".to_owned(),
    }
}

/// Adds the list of applications to the error that a name is neither a program nor an application.
fn explain(error: LaunchError) -> anyhow::Error {
    match error {
        LaunchError::NotFound { searched: true, program } if is_program(&program) => {
            let name = program.display();
            anyhow!("{name:?} is not a program in PATH. Write ./{name} for the one in this folder")
        }
        LaunchError::NotFound { searched: true, program } => {
            let name = program.display();
            let suggestion = app::suggestion(&name.to_string());
            anyhow!("{name:?} is neither a built-in application nor a program in PATH; {suggestion}")
        }
        error => anyhow!(error),
    }
}

/// Whether the working directory has a program of this name.
fn is_program(name: &Path) -> bool {
    resolve(&Path::new(".").join(name)).is_ok()
}

fn number_of_pes(text: &str) -> Result<usize, String> {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(0) => Err("a job has 1 PE or more".to_owned()),
        Ok(number) => Ok(number),
        Err(_) if is_number(text) => Err(format!("{text} PEs are too many")),
        Err(_) if text.strip_prefix('-').is_some_and(is_number) => Err("a job has 1 PE or more".to_owned()),
        Err(_) => Err("this is not a number of PEs".to_owned()),
    }
}

fn pes_of_a_process(text: &str) -> Result<usize, String> {
    let accepted = Settings::from_pairs([(PES_PER_PROCESS.to_owned(), text.to_owned())]);
    let accepted = accepted.map(|settings| settings.pes_per_process);
    accepted.map_err(|_| "a process has from 1 to 4096 PEs".to_owned())
}

/// The time of a job by the variable that the launchers of MPI have for it.
fn time_limit() -> anyhow::Result<Option<Duration>> {
    const VARIABLE: &str = "MPIEXEC_TIMEOUT";
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let limit = (!text.is_empty()).then(|| seconds(&text)).transpose();
    limit.map_err(|error| anyhow::anyhow!("{VARIABLE} is `{text}`: {error}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 1e9);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "this is not a number of seconds above 0".to_owned())
}

fn input(text: &str) -> Result<InputTo, String> {
    match text {
        "all" => Ok(InputTo::All),
        "none" => Ok(InputTo::None),
        pe => pe.parse().map(InputTo::Pe).map_err(|_| "it is all, none, or the number of a PE".to_owned()),
    }
}

/// A variable of PEs and its value, which need not be UTF-8.
type Variable = (OsString, OsString);

/// The parser of variables.
fn variables() -> impl TypedValueParser<Value = Variable> {
    OsStringValueParser::new().try_map(|text| variable(&text))
}

fn variable(text: &OsStr) -> Result<Variable, String> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if at > 0 => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
        }
        _ => Err("a variable is given as KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pes() {
        assert_eq!(number_of_pes("4"), Ok(4));
        for text in ["0", "-1", "", "four", "1.5", "99999999999999999999", "1e3"] {
            assert!(number_of_pes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "inf", "1m", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_number_of_pes_may_be_spelled_as_elsewhere() {
        let of = |line: &str| {
            let words = spelled(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        for (line, spelled) in [
            ("p run -np 4 ./a -np 2", "p run -n 4 ./a -np 2"),
            ("p run --bind --timeout 3 -np 4 ./a", "p run --bind --timeout 3 -n 4 ./a"),
            ("p run --env -np --gdb -np 4 ./a", "p run --env -np --gdb -n 4 ./a"),
            ("p run -n 4 ./a -np", "p run -n 4 ./a -np"),
            ("p run -np", "p run -n"),
            ("p run -n4 ./a -n5", "p run -n 4 ./a -n5"),
            ("p run --bind -np4 ./a", "p run --bind -n 4 ./a"),
            ("p run -n4x ./a", "p run -n4x ./a"),
        ] {
            assert_eq!(of(line), spelled);
        }
    }

    #[test]
    fn readers_of_standard_input() {
        assert_eq!((input("all"), input("none")), (Ok(InputTo::All), Ok(InputTo::None)));
        assert_eq!(input("3"), Ok(InputTo::Pe(3)));
        assert!(input("-1").is_err() && input("some").is_err());
    }

    #[test]
    fn variables_of_pes() {
        let of = |text: &[u8]| variable(OsStr::from_bytes(text));
        let pair = |key: &str, value: &[u8]| {
            Ok::<Variable, String>((key.into(), OsString::from_vec(value.to_vec())))
        };
        assert_eq!(of(b"A=b=c"), pair("A", b"b=c"));
        assert_eq!(of(b"A="), pair("A", b""));
        assert_eq!(of(b"A=b\xff"), pair("A", b"b\xff"));
        assert!(of(b"A").is_err() && of(b"=b").is_err());
    }
}
