//! Records of jobs: `pelago run --trace` and `--stats`, `pelago trace` and `pelago stats`.

mod packets;

use super::process::{Folder, Started, pelago, run, run_with, wait_until};
use super::several_hosts::NEARBY;
use packets::{File, INSTANT, SLICE_BEGIN, SLICE_END};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionbio;
use rustix::process::{Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Runs a job with a timeline.
fn traced(name: &str, words: &[&str], variables: &[(&str, &str)]) -> File {
    let folder = Folder::new(name);
    let path = folder.file("out.pftrace");
    let all = [&["run", "--trace", &path], words].concat();
    let ended = run_with(&all, variables);
    assert_eq!(ended.status, 0, "{ended:?}");
    let told = "events; open it in Perfetto's user interface, https://ui.perfetto.dev\n";
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert_eq!(folder.names(), ["out.pftrace"], "the files of the PEs are gone");
    File::read(&path)
}

/// Every operation that begins ends on its track, times never go back, and all names are defined.
fn check_structure(file: &File, n_pes: usize) {
    let mut depths = BTreeMap::<u64, usize>::new();
    let mut last = BTreeMap::<u64, u64>::new();
    for event in &file.events {
        let depth = depths.entry(event.track).or_default();
        match event.kind {
            SLICE_BEGIN => *depth += 1,
            SLICE_END => *depth = depth.checked_sub(1).expect("an operation ends that has not begun"),
            kind => assert_eq!(kind, INSTANT),
        }
        assert!(file.tracks.contains_key(&event.track), "{event:?}");
        assert!(event.kind == SLICE_END || !event.name.is_empty(), "{event:?}");
        let before = last.insert(event.track, event.time).unwrap_or(0);
        assert!(before <= event.time, "{event:?} after {before}");
    }
    assert!(depths.values().all(|&depth| depth == 0), "{depths:?}");
    let processes: BTreeSet<_> =
        file.processes.values().map(|name| name.split(' ').nth(1).unwrap()).collect();
    assert_eq!(processes.len(), n_pes, "{:?}", file.processes);
}

#[test]
fn a_timeline_has_the_operations_of_all_pes() {
    let file = traced("stencil", &["-n", "3", "stencil", "--n", "12", "--iterations", "4"], &[]);
    check_structure(&file, 3);
    let names: BTreeSet<_> = file.events.iter().map(|event| event.name.as_str()).collect();
    for name in ["barrier of all PEs", "put_signal"] {
        assert!(names.contains(name), "{names:?}");
    }
    let puts = file.events.iter().filter(|event| event.name == "put_signal" && event.category == "rma");
    assert!(puts.clone().count() > 0 && puts.clone().all(|put| put.peer < Some(3) && put.bytes > 0));
}

/// Each message that leaves has an arrow to its arrival, on a node and over a network, eager and announced.
#[test]
fn messages_are_arrows() {
    for variables in
        [&[][..], &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")], &[("PELAGO_EAGER_LIMIT", "16")]]
    {
        let words = ["-n", "2", "ft", "--class", "S", "--transport", "two-sided"];
        let file = traced("messages", &words, variables);
        check_structure(&file, 2);
        let of = |leaving: bool| {
            let flows =
                file.events.iter().filter_map(|event| if leaving { event.leaves } else { event.arrives });
            flows.collect::<Vec<_>>()
        };
        let (left, arrived): (Vec<_>, Vec<_>) = (of(true), of(false));
        let distinct: BTreeSet<_> = left.iter().copied().collect();
        assert!(distinct.len() == left.len() && left.len() > 10, "{} messages", left.len());
        assert_eq!(distinct, arrived.iter().copied().collect(), "{variables:?}");
        assert_eq!(left.len(), arrived.len(), "{variables:?}");
    }
}

#[test]
fn active_messages_and_collectives_are_recorded() {
    let file = traced("gups", &["-n", "2", "gups", "--updates", "3000"], &[("PELAGO_COLL_FORM", "schedule")]);
    check_structure(&file, 2);
    let has = |start: &str| file.events.iter().any(|event| event.name.starts_with(start));
    assert!(has("request") && has("handler (gups"), "active messages");
    let file = traced("coll", &["-n", "2", "qtc", "--points", "60"], &[("PELAGO_COLL_FORM", "schedule")]);
    check_structure(&file, 2);
    let names: BTreeSet<_> = file.events.iter().map(|event| event.name.as_str()).collect();
    assert!(names.iter().any(|name| name.contains('(') && name.contains('_')), "an algorithm: {names:?}");
    let words = ["-n", "2", "ft", "--class", "S", "--transport", "collectives"];
    let file = traced("steps", &words, &[]);
    check_structure(&file, 2);
    let steps = |name: &str| file.events.iter().filter(|event| event.name == name).count();
    assert!(steps("step: put") > 10 && steps("step: put") == steps("step: awaited"), "{file:?}");
}

/// The page has a bar for each operation, and a line for each message.
#[test]
fn a_timeline_as_a_page() {
    let folder = Folder::new("page");
    let path = folder.file("out.html");
    let words = ["run", "-n", "2", "--trace", &path, "ft", "--class", "S", "--transport", "two-sided"];
    let ended = run(&words);
    assert!(ended.status == 0 && ended.stderr.contains("events, as a page\n"), "{ended:?}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.matches("<rect class=\"collective\"").count() > 10, "{page}");
    assert!(page.matches("<path class=\"line\"").count() > 10, "{page}");
    assert!(page.contains("<title>wait for message, PE ") && page.contains(">PE 1</text>"), "{page}");
    assert!(page.contains("<text class=\"column\" x=\"70.0\" y=\"18\">0 "), "{page}");
}

/// The PEs that were killed have left what they had recorded.
#[test]
fn the_record_of_a_killed_pe_is_kept() {
    let folder = Folder::new("killed");
    let path = folder.file("out.pftrace");
    let words = ["run", "-n", "2", "--trace", &path, "--stats", "ft", "--class", "B"];
    let started = Started::new(pelago(&words));
    let pes = started.pes_at_work(2);
    kill_process(pes[1], Signal::KILL).unwrap();
    let ended = started.end();
    assert_eq!(ended.status, 128 + 9, "{ended:?}");
    assert!(
        ended.stderr.contains("there is no record of PE 1\n")
            || ended.stderr.contains("no PE has left statistics"),
        "{ended:?}"
    );
    assert_eq!(folder.names(), ["out.pftrace"]);
    let file = File::read(&path);
    let of = |pe: &str| file.tracks.iter().find(|(_, name)| *name == pe).map(|(track, _)| *track);
    let track = of("PE 1").expect("a track of the PE that was killed");
    assert!(file.events.iter().any(|event| event.track == track && event.kind == SLICE_END), "{file:?}");
}

/// When the signal comes, the launcher waits for the timeline of a PE, which is a pipe in this job.
#[test]
fn a_signal_while_records_are_joined_leaves_the_files_as_they_were() {
    let folder = Folder::new("signal");
    let (pes, path) = (folder.file("pes"), folder.file("out.pftrace"));
    std::fs::create_dir(&pes).unwrap();
    assert_eq!(run_with(&["app", "ft", "--class", "S"], &[("PELAGO_TRACE", &pes)]).status, 0);
    let timeline = std::fs::read_dir(&pes).unwrap().next().expect("a PE has left its timeline").unwrap();
    let timeline = std::fs::read(timeline.path()).unwrap();
    std::fs::remove_dir_all(&pes).unwrap();
    std::fs::write(&path, "old").unwrap();
    let words = ["run", "-n", "1", "--trace", &path, "sh", "-c", "mkfifo $PELAGO_TRACE/0.trace"];
    let job = Started::new(pelago(&words));
    let mut pipe = None;
    wait_until("the launcher to read the timeline", || {
        let paths = folder.names().into_iter().map(|name| folder.0.join(name).join("0.trace"));
        // Without a reader this fails.
        let mut pipes = paths.map(|path| open(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()));
        pipe = pipes.find_map(Result::ok);
        pipe.is_some()
    });
    job.signal(Signal::INT);
    let pipe = pipe.unwrap();
    ioctl_fionbio(&pipe, false).unwrap();
    // The launcher does not read all of it.
    let _ = std::fs::File::from(pipe).write_all(&timeline);
    let ended = job.end();
    assert_eq!((ended.signal, folder.names()), (Some(2), vec!["out.pftrace".to_owned()]), "{ended:?}");
    assert_eq!(folder.read("out.pftrace"), "old");
    assert!(ended.stderr.contains("a signal ends this command"), "{ended:?}");
}

#[test]
fn statistics_are_printed_and_written() {
    let folder = Folder::new("stats");
    let ended = run(&["run", "-n", "2", "--stats", "ft", "--class", "S"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let lines: Vec<Vec<&str>> = ended.stderr.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(ended.stderr.contains("\nOperations of 2 PEs in "), "{ended:?}");
    assert!(lines.iter().any(|line| line.starts_with(&["rma", "put"])), "{ended:?}");
    assert!(ended.stderr.contains("Waits by cause") && ended.stderr.contains("imbalance "), "{ended:?}");
    let file = folder.file("x.json");
    let ended = run(&["run", "-n", "2", &format!("--stats={file}"), "ft", "--class", "S"]);
    assert_eq!((ended.status, folder.names()), (0, vec!["x.json".to_owned()]), "{ended:?}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let puts = json["operations"].as_array().unwrap().iter().filter(|row| row["name"] == "put");
    let bytes: u64 = puts.map(|row| row["bytes"].as_u64().unwrap()).sum();
    let of_pes: u64 = json["pes"].as_array().unwrap().iter().map(|pe| pe["bytes"].as_u64().unwrap()).sum();
    assert!(bytes > 1 << 20 && of_pes >= bytes, "{json}");
    let file = folder.file("x.html");
    let ended = run(&["run", "-n", "2", &format!("--stats={file}"), "ft", "--class", "S"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let page = std::fs::read_to_string(&file).unwrap();
    assert_eq!(page.matches("<rect class=\"cell\"").count(), 4, "{page}");
}

/// PEs of other hosts leave their files where the launcher finds them, in the working directory.
#[test]
fn records_of_several_hosts() {
    let words = ["run", "--hosts", "a,b:2", "--launch-agent", NEARBY, "--stats", "ring"];
    let ended = run_with(&words, &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let nodes: Vec<_> = ended.stderr.lines().skip_while(|line| !line.starts_with("PEs; imbalance")).collect();
    let nodes: Vec<_> = nodes[2..5].iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert!(nodes.contains(&"0") && nodes.contains(&"1"), "{ended:?}");
    assert!(ended.stderr.lines().any(|line| line.starts_with("  network ")), "{ended:?}");
    let left = std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("pelago-records")).count(), 0);
}

/// Under another launcher PEs leave files in a folder, which the commands read.
#[test]
fn folders_of_another_launcher_are_read() {
    let folder = Folder::new("folder");
    let path = folder.file("");
    let variables = [("PELAGO_TRACE", path.as_str()), ("PELAGO_STATS", path.as_str())];
    let ended = run_with(&["run", "-n", "3", "hello"], &variables);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_eq!(folder.names().len(), 6, "{:?}", folder.names());
    let output = folder.file("all.pftrace");
    let ended = run(&["trace", &path, "-o", &output]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    check_structure(&File::read(&output), 3);
    std::fs::remove_file(folder.file("pe-000001-0.stats")).unwrap();
    let ended = run(&["stats", &path]);
    assert!(ended.stdout.ends_with("\nthere is no record of PE 1\n"), "{ended:?}");
    let ended = run(&["stats", &path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["n_pes"], json["pes"].as_array().unwrap().len()), (&3.into(), 2), "{json}");
}

/// More timelines than the process may have open files.
#[test]
fn many_timelines_are_joined() {
    let folder = Folder::new("many");
    let path = folder.file("");
    let ended = run_with(&["run", "-n", "1", "hello"], &[("PELAGO_TRACE", &path)]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    for pe in 1..100 {
        std::fs::copy(folder.file("pe-000000-0.trace"), folder.file(&format!("pe-{pe:06}-0.trace"))).unwrap();
    }
    // A PE that was killed before its record had begun.
    std::fs::write(folder.file("pe-000100-0.trace"), [0; 4096]).unwrap();
    let mut command = std::process::Command::new("sh");
    let line = "ulimit -S -n 40; exec \"$@\"";
    let output = folder.file("all.pftrace");
    command.args(["-c", line, "sh", env!("CARGO_BIN_EXE_pelago"), "trace", &path, "-o", &output]);
    let ended = Started::new(command).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    check_structure(&File::read(&output), 1);
}

#[test]
fn records_of_two_jobs_are_told_apart() {
    let folder = Folder::new("two-jobs");
    let path = folder.file("");
    let variables = [("PELAGO_TRACE", path.as_str()), ("PELAGO_STATS", path.as_str())];
    for n in ["3", "2"] {
        assert_eq!(run_with(&["run", "-n", n, "hello"], &variables).status, 0);
    }
    for command in ["trace", "stats"] {
        let ended = run(&[command, &path]);
        let told = "has records of a job of 2 PEs and of one of 3. Give each job an empty folder";
        assert!(ended.status == 2 && ended.stderr.contains(told), "{ended:?}");
    }
}

/// The device is always full.
#[test]
fn records_stay_if_their_file_cannot_be_written() {
    let folder = Folder::new("full");
    let full = folder.file("out");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let ended = run(&["run", "-n", "2", "--trace", &full, "hello"]);
    assert!(ended.status == 2 && ended.stderr.contains("No space left on device"), "{ended:?}");
    let told = "pelago run: the records of the PEs stay in ";
    let line = ended.stderr.lines().find_map(|line| line.strip_prefix(told)).expect("the folder is named");
    let (left, _) = line.split_once(": pelago trace ").expect("the command is named");
    let output = folder.file("again.pftrace");
    let again = run(&["trace", left, "-o", &output]);
    assert_eq!((again.status, again.stderr.as_str()), (0, ""));
    check_structure(&File::read(&output), 2);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let folder = Folder::new("refused");
    for (words, part) in [
        (
            vec!["run", "-n", "2", "--trace", "/nonexistent/x", "hello"],
            "writing /nonexistent/x: No such file",
        ),
        (vec!["run", "-n", "2", "--stats=x.txt", "hello"], "ends with .html or .json"),
        (vec!["trace", "/nonexistent"], "reading /nonexistent: No such file"),
        (vec!["stats", "/nonexistent"], "reading /nonexistent: No such file"),
        (vec!["trace", &folder.file("")], "no PE has left a timeline in "),
        (vec!["stats", &folder.file("")], "no PE has left statistics in "),
    ] {
        let ended = run(&words);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{words:?}: {ended:?}");
    }
    assert!(folder.names().is_empty());
    std::fs::write(folder.file("pe-000000-0.trace"), [7; 100]).unwrap();
    std::fs::write(folder.file("pe-000000-0.stats"), "text").unwrap();
    for command in ["trace", "stats"] {
        let ended = run(&[command, &folder.file("")]);
        assert!(ended.status == 2 && ended.stderr.contains("is not the "), "{ended:?}");
    }
    let ended = run_with(&["run", "-n", "2", "hello"], &[("PELAGO_TRACE", "/nonexistent/folder")]);
    assert_ne!(ended.status, 0, "{ended:?}");
    assert!(ended.stderr.contains("its timeline /nonexistent/folder/pe-00000"), "{ended:?}");
}

#[test]
fn files_of_the_user_stay_if_the_job_does_not_start() {
    let folder = Folder::new("kept");
    for name in ["old.pftrace", "old.json"] {
        std::fs::write(folder.file(name), "kept").unwrap();
    }
    for name in ["old", "new"] {
        let trace = folder.file(&format!("{name}.pftrace"));
        let stats = format!("--stats={}", folder.file(&format!("{name}.json")));
        let records = ["run", "-n", "2", "--trace", &trace, &stats];
        for words in [&["no-such-program"][..], &["--hosts", "localhost", "hello"]] {
            let ended = run(&[&records[..], words].concat());
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            assert_eq!((folder.read("old.pftrace"), folder.read("old.json")), ("kept".into(), "kept".into()));
            assert_eq!(folder.names(), ["old.json", "old.pftrace"], "{words:?}");
        }
    }
}

#[test]
fn a_job_that_a_pe_starts_does_not_add_to_the_records_around_it() {
    let folder = Folder::new("nested");
    let command = format!("'{}' run", env!("CARGO_BIN_EXE_pelago"));
    let print = "sh -c 'echo inner:$PELAGO_STATS:$PELAGO_TRACE:$PELAGO_SPINS'";
    for (options, inner) in [
        ("-n 1".to_owned(), "inner:::7"),
        (format!("--hosts a --launch-agent '{NEARBY}'"), "inner:::7"),
        ("-n 1 --env PELAGO_STATS=/x".to_owned(), "inner:/x::7"),
    ] {
        let line = format!("echo outer:$PELAGO_STATS:$PELAGO_TRACE; {command} {options} {print}");
        let path = folder.file("");
        let variables = [("PELAGO_STATS", path.as_str()), ("PELAGO_TRACE", &path), ("PELAGO_SPINS", "7")];
        let ended = run_with(&["run", "-n", "1", "sh", "-c", &line], &variables);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout, format!("outer:{path}:{path}\n{inner}\n"), "{options}");
    }
}
