//! Steps: checks run one after the other, each under a heading with its time, up to the first that fails.
//!
//! Invariant: all output of a step goes through as it comes; a step of tests passes only if at least one
//! test ran and none was skipped; the closing summary lists every step, also those that did not run.

use std::io::{BufRead, BufReader, pipe};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// One check and the name that it has in headings and in the summary.
pub struct Step {
    pub name: &'static str,
    pub work: Work,
}

/// What a step does.
pub enum Work {
    /// A program that exits with 0.
    Command(Command),
    /// A call of `cargo test` that runs tests and skips none.
    Tests(Command),
    /// A function of this program, and the command that does the same.
    Call(&'static str, fn() -> Result<()>),
}

/// How many tests the programs of one call of `cargo test` ran, as their closing lines say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed_count: usize,
    ignored_count: usize,
}

/// Runs the steps in order and prints a summary; the error is that of the first step that fails.
pub fn run_all(steps: Vec<Step>) -> Result<()> {
    let start = Instant::now();
    let mut rows = Vec::new();
    let mut failure = None;
    for Step { name, mut work } in steps {
        if failure.is_some() {
            rows.push((name, String::new(), "not run".to_string()));
            continue;
        }
        println!("\n== {name}: {}", description(&work));
        let step_start = Instant::now();
        let outcome = run(&mut work);
        let elapsed = seconds(step_start.elapsed());
        let verdict = if outcome.is_ok() { "passed" } else { "FAILED" };
        println!("== {name}: {verdict} after {elapsed}");
        match outcome {
            Ok(remark) => rows.push((name, elapsed, format!("passed{remark}"))),
            Err(error) => {
                rows.push((name, elapsed, "FAILED".to_string()));
                failure = Some(
                    error.context(format!("step `{name}` failed; to repeat it: {}", description(&work))),
                );
            }
        }
    }
    println!("\n== summary after {}", seconds(start.elapsed()));
    for (name, elapsed, verdict) in rows {
        println!("{name:<10} {elapsed:>8}  {verdict}");
    }
    failure.map_or(Ok(()), Err)
}

/// Does the work; what comes back is a remark for the summary.
fn run(work: &mut Work) -> Result<String> {
    match work {
        Work::Command(command) => {
            let status = command.status().with_context(|| format!("cannot start {}", line_of(command)))?;
            ensure!(status.success(), "{status}");
            Ok(String::new())
        }
        Work::Tests(command) => {
            let tally = run_tests(command)?;
            ensure!(tally.passed_count > 0, "not one test ran");
            ensure!(tally.ignored_count == 0, "{} tests were skipped, none may be", tally.ignored_count);
            Ok(format!(", tests: {}", tally.passed_count))
        }
        Work::Call(_, function) => function().map(|()| String::new()),
    }
}

/// Runs `cargo test`, letting its output through, and adds up the closing lines of the test programs.
///
/// Both of its streams come through one pipe, which keeps each heading of cargo above its tests.
fn run_tests(command: &mut Command) -> Result<Tally> {
    let (output, input) = pipe().context("cannot make a pipe")?;
    command.stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", line_of(command)))?;
    // The command holds the writing ends until it is given others; without this the pipe would not end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut tally = Tally::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the output of the tests")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.add(&line);
    }
    let status = child.wait()?;
    ensure!(status.success(), "{status}");
    Ok(tally)
}

impl Tally {
    /// Adds one line of output: `test result: ok. 8 passed; 0 failed; 1 ignored; ...` counts.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            match count.split_once(' ') {
                Some((number, "passed")) => self.passed_count += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored_count += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

fn description(work: &Work) -> String {
    match work {
        Work::Command(command) | Work::Tests(command) => line_of(command),
        Work::Call(line, _) => line.to_string(),
    }
}

/// The command as one would type it, with the variables that it sets.
fn line_of(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={:?}", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn error(work: Work) -> String {
        format!("{:#}", run_all(vec![Step { name: "one", work }]).unwrap_err())
    }

    #[test]
    fn closing_lines_are_added_up_and_others_are_not() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 8 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        tally.add("test result: FAILED. 2 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out");
        tally.add("test result_of_a_test ... ok. 9 passed;");
        tally.add("running 8 tests");
        assert_eq!(tally, Tally { passed_count: 10, ignored_count: 4 });
    }

    #[test]
    fn a_failing_command_names_the_step_and_how_to_repeat_it() {
        let mut command = shell("exit 3");
        command.env("COLOUR", "a b");
        let message = error(Work::Command(command));
        assert!(message.contains("`one` failed; to repeat it: COLOUR=\"a b\" sh -c exit 3"), "{message}");
        assert!(message.contains("exit status: 3"), "{message}");
    }

    #[test]
    fn nothing_runs_after_a_failure() {
        let mark = std::env::temp_dir().join(format!("pelago-step-{}", std::process::id()));
        let touch = shell(&format!("touch {}", mark.display()));
        let steps = vec![
            Step { name: "fails", work: Work::Call("false", || bail!("no")) },
            Step { name: "touches", work: Work::Command(touch) },
        ];
        assert!(run_all(steps).is_err());
        assert!(!mark.exists());
    }

    #[test]
    fn tests_must_run_and_may_not_be_skipped() {
        assert!(error(Work::Tests(shell("echo running 0 tests"))).contains("not one test ran"));
        let skipped = "echo 'test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured'";
        assert!(error(Work::Tests(shell(skipped))).contains("2 tests were skipped"));
        let failed = "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101";
        assert!(error(Work::Tests(shell(failed))).contains("exit status: 101"));
        let passed = shell("echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'");
        assert!(run_all(vec![Step { name: "one", work: Work::Tests(passed) }]).is_ok());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let message = error(Work::Command(Command::new("/nowhere/program")));
        assert!(message.contains("cannot start program"), "{message}");
    }
}
