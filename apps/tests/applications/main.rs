//! The applications as processes, over mapped memory and over the net, and on simulated networks: their
//! verdicts, what they print, what they refuse. Invariant: only the list of applications is used, as by the
//! command. A test runs all its processes before it looks at what came of them, as each of them runs the test
//! up to its own line.

use std::process::ExitCode;

use pelago::World;
use pelago::testing::{JobReport, expect_success};
use pelago_apps::apps;
use serde_json::Value;

mod irregular;
mod linear;
mod tutorials;

const NET: [(&str, &str); 1] = [("PELAGO_ROUTE", "net")];
const USAGE: u8 = 2;

/// Runs an application with its arguments, given in one line, and expects its exit code.
fn end(world: &World, line: &str, code: u8) {
    let mut words = line.split_whitespace().map(str::to_owned);
    let name = words.next().expect("the name of an application");
    let app = apps().iter().find(|app| app.name == name).expect("an application of this name");
    let ended = (app.run)(world, &words.collect::<Vec<_>>());
    let ended = ended.unwrap_or_else(|error| panic!("PE {}: {line}: {error:#}", world.my_pe()));
    // Exit codes can be shown, but not compared.
    assert_eq!(format!("{ended:?}"), format!("{:?}", ExitCode::from(code)), "{line}");
}

/// The objects that PE 0 has printed, and nothing of another PE.
fn objects(report: &JobReport) -> Vec<Value> {
    expect_success(report);
    // The test program has begun the line of the first object.
    let lines = |pe: usize| report.output[pe].stdout.lines().filter_map(from_brace);
    assert!((1..report.output.len()).all(|pe| lines(pe).next().is_none()), "another PE than 0 prints");
    lines(0).map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn from_brace(line: &str) -> Option<&str> {
    line.find('{').map(|at| &line[at..])
}

/// Checks that PE 0 alone has printed the reason for which an application does not start.
fn check_refused(report: &JobReport, speaker: &str, parts: &[&str]) {
    expect_success(report);
    let said: Vec<_> = report.output.iter().map(|output| output.stderr.as_str()).collect();
    assert!(said[0].starts_with(speaker) && said[1..].iter().all(|said| said.is_empty()), "{said:?}");
    for part in parts {
        assert_eq!(said[0].matches(part).count(), 1, "{part:?} in {said:?}");
    }
}
