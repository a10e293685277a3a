//! The command `pelago`: starts jobs, contains the built-in applications, and reports about the machine.
//!
//! Invariant: a subcommand is one file, with its arguments and its help. Invalid input is refused before a
//! process starts, with one message on standard error and exit status 2.

mod agent;
mod app;
mod attach;
mod coll;
mod completions;
#[cfg(test)]
#[path = "../../boot/tests/common/fuzzing.rs"]
mod fuzzing;
mod hosts;
mod info;
mod man;
mod measure;
mod model;
mod mpiexec;
mod ps;
mod record;
mod run;
mod sim;
mod size;
mod tune;
mod whole_file;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use measure::{Bench, PaperCommand};
use pelago_apps::print_help;
use pelago_boot::{end_by_signal, tell};
use rustix::process::Signal;

/// The exit status for invalid arguments.
const USAGE_EXIT_CODE: u8 = 2;

/// One-sided communication between the processes of a job
#[derive(Parser)]
#[command(name = "pelago", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pelago run -n 4 hello              four PEs of a built-in application
  pelago run -n 2 ft --class W       the NAS FT benchmark on two PEs
  pelago run -n 4 ./my-program       four PEs of a program of yours
  pelago run --hosts a:2,b:2 hello   two PEs on each of two hosts, started over ssh
  pelago ps                          the running jobs; pelago ps JOB: what each PE waits for
  pelago attach 2                    gdb on PE 2 of the running job
  mpiexec.hydra -n 4 pelago app ft   the same application under another launcher, or mpirun
  pelago sim -n 8 ft --variant all   the same over a simulated network, in virtual time
  pelago bench rma                   how fast put, get and barrier are here
  pelago paper gasnet-bgp latency    a figure of a paper, repeated beside its values
  pelago coll show broadcast         who sends what to whom, in a picture
  pelago model machines              collectives on modelled machines of 100,000 PEs
  pelago tune -n 4                   which collective algorithms are best here
  pelago help settings               every setting, with its default (pelago info --settings)";

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Run>),
    #[command(hide = true)]
    Agent(agent::Agent),
    Ps(ps::Ps),
    Attach(attach::Attach),
    App(app::App),
    Sim(sim::Sim),
    Bench(Bench),
    Paper(PaperCommand),
    Coll(coll::Coll),
    Model(model::Model),
    Trace(record::Trace),
    Stats(record::Stats),
    Tune(tune::Tune),
    Info(info::Info),
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(man::Man),
}

fn main() -> ExitCode {
    let words = match mpiexec::translated(std::env::args_os().collect()) {
        Ok(Some(words)) => words,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("{error:#}\n"));
            return ExitCode::from(USAGE_EXIT_CODE);
        }
    };
    let cli = parse(words).unwrap_or_else(|error| refuse(&error));
    let (name, outcome) = match cli.command {
        Command::Run(run) => ("run", run.execute()),
        Command::Agent(agent) => ("agent", agent.execute()),
        Command::Ps(ps) => ("ps", ps.execute()),
        Command::Attach(attach) => ("attach", attach.execute()),
        Command::App(app) => ("app", app.execute()),
        Command::Sim(sim) => ("sim", sim.execute()),
        Command::Bench(bench) => ("bench", bench.execute()),
        Command::Paper(paper) => ("paper", paper.execute()),
        Command::Coll(coll) => ("coll", coll.execute()),
        Command::Model(model) => ("model", model.execute()),
        Command::Tune(tune) => ("tune", tune.execute()),
        Command::Trace(trace) => ("trace", trace.execute()),
        Command::Stats(stats) => ("stats", stats.execute()),
        Command::Info(info) => ("info", info.execute()),
        Command::Completions(completions) => ("completions", completions.execute(Cli::command())),
        Command::Man(man) => ("man", man.execute(Cli::command())),
    };
    outcome.unwrap_or_else(|error| {
        tell(&format!("pelago {name}: {error:#}\n"));
        match measure::interrupted(&error) {
            Some(signal) if signal == Signal::INT.as_raw() => end_by_signal(signal),
            Some(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
            None => ExitCode::from(USAGE_EXIT_CODE),
        }
    })
}

/// Parses the command line. Every PE of a built-in application starts here, so `app` avoids the cost of the
/// definitions of all other subcommands.
fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let words = if words.get(1).is_some_and(|word| word == "run") { run::spelled(words) } else { words };
    if words.get(1..).is_some_and(|words| words == ["help", "settings"]) {
        return Ok(Cli { command: Command::Info(info::Info::settings()) });
    }
    if words.get(1).is_none_or(|word| word != "app") {
        return Cli::try_parse_from(words);
    }
    let command = app::App::augment_args(clap::Command::new("app").bin_name("pelago app"));
    let matches = command.max_term_width(100).try_get_matches_from(&words[1..])?;
    Ok(Cli { command: Command::App(app::App::from_arg_matches(&matches)?) })
}

/// Prints the error in the command line. The most likely one is the name of an application in place of a
/// subcommand.
fn refuse(error: &clap::Error) -> ! {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && app::find(name).is_some()
    {
        tell(&format!("error: {name} is a built-in application; start it with `pelago run -n 2 {name}`\n"));
        std::process::exit(USAGE_EXIT_CODE.into());
    }
    if let Err(failed) = print_help(error) {
        tell(&format!("pelago: {failed}\n"));
        std::process::exit(USAGE_EXIT_CODE.into());
    }
    std::process::exit(error.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines are accepted or refused; no process is started.
    #[test]
    fn fuzz_command_lines() {
        let lines = [
            "run -n 4 --bind --tag-output --timeout 1.5 ./program a b",
            "run -n 8 --pes-per-process 4 ft --class W --json",
            "run --hosts a:2,b:2 --launch-agent x --agent-path y ./a : -n 2 --env A=b ./b",
            "run -n 4 --hostfile f --separator / ./a / -n 1 ./b :",
            "app ft --class A --variant all",
            "app qtc --help",
            "app gups --updates 1000",
            "sim -n 8 --bandwidth 267M --latency 3us ft --variant slabs",
            "bench rma --html out.html",
            "bench --fabric ofi coll",
            "paper gasnet-bgp latency --quick --json -n 4",
            "coll show broadcast -n 16 --algorithm chain",
            "model run --machine bluegene-p --op all-reduce --pes 64 --bytes 8",
            "model compare --machine hdr-fat-tree --op barrier --pes 4096 --json",
            "run -np 4 --output-dir d --stdin all --gdb=2 app:ft",
            "run -n2 --valgrind=-q --stdin 1 ./a",
            "tune -n 4 --quick",
            "tune measure --hosts a,b --output mine.toml",
            "tune explain broadcast --bytes 64K -n 16 --json",
            "tune simulate --machine tcp-veth -n 8,64 --check --json",
            "run -n 4 --trace out.pftrace --stats=out.html ./program",
            "trace folder -o out.pftrace",
            "stats folder --html out.html --json",
            "ps 4711 --stacks --json",
            "attach 4711 2 --ex backtrace",
            "info --settings",
            "completions bash",
            "info --fabrics --json",
            "--help",
            "--version",
        ];
        // Constructing the parser takes 100 us.
        fuzzing::fuzz_with(50, &lines, |input| {
            let text = String::from_utf8_lossy(input);
            let words = std::iter::once("pelago").chain(text.split(' ')).map(OsString::from).collect();
            if let Err(error) = parse(words) {
                let _ = error.to_string();
            }
        });
    }
}
