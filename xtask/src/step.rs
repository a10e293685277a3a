//! Steps: checks that run one after the other, or in two concurrent lists, up to the first failure. Each step
//! has a heading and reports its time.
//!
//! Invariant: all output of a step is printed, that of a concurrent step in one piece; a step of tests passes
//! only if at least one test ran and none was skipped; the final summary lists every step, including those
//! that did not run.

use std::io::{BufRead, BufReader, Write, pipe};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, ensure};

/// One check, and its name in headings and in the summary.
pub struct Step {
    pub name: &'static str,
    pub work: Work,
}

/// The kind of work of a step.
pub enum Work {
    /// A program that exits with 0.
    Command(Command),
    /// A call of `cargo test` that runs tests and skips none.
    Tests(Command),
    /// A function of this program, and the equivalent command.
    Call(&'static str, fn() -> Result<()>),
}

/// The number of tests of one call of `cargo test`, from the last lines of the test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed_count: usize,
    ignored_count: usize,
}

/// The outcomes of the steps so far.
#[derive(Default)]
pub struct Rows {
    start: Option<Instant>,
    rows: Vec<(&'static str, String, String)>,
    failure: Option<Error>,
    /// The last lines of steps that failed beside others, whose output lies far above the summary.
    last_lines: String,
}

/// How many of them a step has.
const LAST_LINES: usize = 40;

/// Runs two lists of steps concurrently, each in its order; after a failure no further step begins. The
/// output of the first list is printed at once, that of a step of the second list when the step has ended.
pub fn run_beside(steps: Vec<Step>, beside: Vec<Step>) -> Result<Rows> {
    let start = Instant::now();
    let (mut rows, has_failed) = (Rows::default(), OnceLock::new());
    let theirs = thread::scope(|scope| {
        let theirs = scope.spawn(|| {
            let mut rows = Rows::default();
            for step in beside {
                rows.run_one(step, Output::Kept, &has_failed);
            }
            rows
        });
        for step in steps {
            rows.run_one(step, Output::Passed, &has_failed);
        }
        theirs.join()
    });
    let mut theirs = theirs.map_err(|_| anyhow!("a step panicked"))?;
    rows.rows.append(&mut theirs.rows);
    rows.failure = rows.failure.or(theirs.failure);
    rows.last_lines += &theirs.last_lines;
    rows.start = Some(start);
    Ok(rows)
}

/// The treatment of the output of a step.
#[derive(Clone, Copy, PartialEq)]
enum Output {
    /// It is printed at once.
    Passed,
    /// It is printed when the step has ended.
    Kept,
}

impl Rows {
    /// Runs further steps, up to the first failure.
    pub fn run(&mut self, steps: Vec<Step>) {
        let has_failed = OnceLock::new();
        if self.failure.is_some() {
            let _ = has_failed.set(());
        }
        for step in steps {
            self.run_one(step, Output::Passed, &has_failed);
        }
    }

    fn run_one(&mut self, Step { name, mut work }: Step, output: Output, has_failed: &OnceLock<()>) {
        if has_failed.get().is_some() {
            self.rows.push((name, String::new(), "not run".to_string()));
            return;
        }
        let heading = format!("\n== {name}: {}", description(&work));
        let mut text = Vec::new();
        if output == Output::Passed {
            println!("{heading}");
        } else {
            writeln!(text, "{heading}").expect("a vector takes all that is written");
        }
        let start = Instant::now();
        let outcome = run(&mut work, (output == Output::Kept).then_some(&mut text));
        let elapsed = seconds(start.elapsed());
        let verdict = if outcome.is_ok() { "passed" } else { "FAILED" };
        writeln!(text, "== {name}: {verdict} after {elapsed}").expect("a vector takes all that is written");
        // In one piece, so that the lines of two steps do not mix.
        print!("{}", String::from_utf8_lossy(&text));
        match outcome {
            Ok(remark) => self.rows.push((name, elapsed, format!("passed{remark}"))),
            Err(error) => {
                let _ = has_failed.set(());
                self.rows.push((name, elapsed, "FAILED".to_string()));
                if output == Output::Kept {
                    self.last_lines += &last_lines(&String::from_utf8_lossy(&text));
                }
                let repeat = format!("step `{name}` failed; to repeat it: {}", description(&work));
                self.failure.get_or_insert(error.context(repeat));
            }
        }
    }

    /// Prints the last lines of steps that failed beside others, and a line for each step; returns the error
    /// of the first step that failed.
    pub fn summary(self) -> Result<()> {
        println!(
            "{}\n== summary{}",
            self.last_lines,
            self.start.map_or_else(String::new, |s| format!(" after {}", seconds(s.elapsed())))
        );
        for (name, elapsed, verdict) in self.rows {
            println!("{name:<10} {elapsed:>8}  {verdict}");
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// The last lines of the output of a step.
fn last_lines(text: &str) -> String {
    let skipped = text.lines().count().saturating_sub(LAST_LINES);
    text.lines().skip(skipped).flat_map(|line| [line, "\n"]).collect()
}

/// Does the work, and returns a remark for the summary. Output goes to `kept`, if it is given.
fn run(work: &mut Work, kept: Option<&mut Vec<u8>>) -> Result<String> {
    match work {
        Work::Command(command) => {
            let status = match kept {
                None => command.status().with_context(|| format!("cannot start {}", line_of(command)))?,
                Some(kept) => run_lines(command, |line| keep(kept, line))?,
            };
            ensure!(status.success(), "{status}");
            Ok(String::new())
        }
        Work::Tests(command) => {
            let mut tally = Tally::default();
            let status = match kept {
                None => run_lines(command, |line| {
                    println!("{line}");
                    tally.add(line);
                })?,
                Some(kept) => run_lines(command, |line| {
                    keep(kept, line);
                    tally.add(line);
                })?,
            };
            ensure!(status.success(), "{status}");
            ensure!(tally.passed_count > 0, "not one test ran");
            ensure!(tally.ignored_count == 0, "{} tests were skipped, none may be", tally.ignored_count);
            Ok(format!(", tests: {}", tally.passed_count))
        }
        Work::Call(_, function) => function().map(|()| String::new()),
    }
}

fn keep(kept: &mut Vec<u8>, line: &str) {
    kept.extend_from_slice(line.as_bytes());
    kept.push(b'\n');
}

/// Runs a command, and passes on each line of its output at once.
///
/// Both of its streams share one pipe, so that each heading of cargo stays above its tests.
fn run_lines(command: &mut Command, mut take: impl FnMut(&str)) -> Result<ExitStatus> {
    let (output, input) = pipe().context("cannot make a pipe")?;
    command.stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", line_of(command)))?;
    // The command owns the writing ends until they are replaced; otherwise the pipe would not end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the output of a command")?;
        take(&String::from_utf8_lossy(&line));
    }
    Ok(child.wait()?)
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

/// The command as in a shell, with the variables that it sets.
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

    fn run_all(steps: Vec<Step>) -> Result<()> {
        let mut rows = Rows::default();
        rows.run(steps);
        rows.summary()
    }

    #[test]
    fn steps_run_beside_each_other_and_both_lists_are_in_the_summary() {
        // Each step waits for the other: if they ran one after the other, they would never end.
        let mark = std::env::temp_dir().join(format!("pelago-beside-{}", std::process::id()));
        let script = |mine: u32, theirs: u32| {
            let mark = mark.display();
            shell(&format!(
                "touch {mark}-{mine}; until test -e {mark}-{theirs}; do :; done; echo from {mine}"
            ))
        };
        let step = |name, command| vec![Step { name, work: Work::Command(command) }];
        let rows = run_beside(step("one", script(1, 2)), step("two", script(2, 1))).unwrap();
        let names: Vec<_> = rows.rows.iter().map(|(name, _, verdict)| (*name, verdict.as_str())).collect();
        assert_eq!(names, [("one", "passed"), ("two", "passed")]);
        rows.summary().unwrap();
        for number in [1, 2] {
            std::fs::remove_file(format!("{}-{number}", mark.display())).unwrap();
        }
    }

    #[test]
    fn a_failure_beside_is_a_failure() {
        let step = |name, script| vec![Step { name, work: Work::Command(shell(script)) }];
        let rows = run_beside(step("good", "echo all well"), step("bad", "seq 100; exit 3")).unwrap();
        let lines: Vec<_> = rows.last_lines.lines().collect();
        assert!(lines.len() == LAST_LINES && lines[0] == "62" && lines[38] == "100", "{lines:?}");
        assert!(lines[39].starts_with("== bad: FAILED after"), "{lines:?}");
        let message = format!("{:#}", rows.summary().unwrap_err());
        assert!(message.contains("`bad` failed"), "{message}");
        let skipped = "echo 'test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured'";
        let beside = vec![Step { name: "skips", work: Work::Tests(shell(skipped)) }];
        let message = format!("{:#}", run_beside(Vec::new(), beside).unwrap().summary().unwrap_err());
        assert!(message.contains("2 tests were skipped"), "{message}");
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
