//! Jobs of several hosts under `pelago run`. All hosts are this machine, reached by a fake ssh that runs the
//! command with another environment; `namespaces` tests hosts that differ in more respects.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::jobs::assert_hello;
use super::process::{Ended, Started, pelago, variable, wait_until, words};

/// The fake ssh.
pub const NEARBY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/nearby.sh");
/// The first bytes of an agent.
const GREETING: &str = concat!("\npelago agent ", env!("CARGO_PKG_VERSION"), "\n");

/// The command for a job on these hosts.
fn on(hosts: &str, words: &[&str]) -> Command {
    pelago(&[&["run", "--hosts", hosts, "--launch-agent", NEARBY], words].concat())
}

fn run(hosts: &str, words: &[&str]) -> Ended {
    Started::new(on(hosts, words)).end()
}

/// Runs a job of this line of shell code, which must succeed; returns its lines, sorted.
fn lines(hosts: &str, options: &[&str], line: &str) -> Vec<String> {
    let ended = run(hosts, &[options, &["sh", "-c", line]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let mut lines: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn assert_failed(ended: &Ended, status: i32, parts: &[&str]) {
    assert_eq!((ended.status, ended.stdout.as_str()), (status, ""), "{}", ended.stderr);
    let own = ended.stderr.lines().filter(|line| line.starts_with("pelago run: ")).collect::<Vec<_>>();
    assert!(own.len() == 1 && parts.iter().all(|part| own[0].contains(part)), "{parts:?}: {}", ended.stderr);
}

fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

/// A folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("several hosts {name} {}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn pes_are_numbered_host_by_host() {
    let line = "echo $PMI_RANK of $PMI_SIZE on $TEST_HOST: $MPI_LOCALRANKID of $MPI_LOCALNRANKS";
    assert_eq!(
        lines("b:2,a,b", &[], line),
        ["0 of 4 on b: 0 of 3", "1 of 4 on b: 1 of 3", "2 of 4 on b: 2 of 3", "3 of 4 on a: 0 of 1"]
    );
    let words = ["-n", "3", "--tag-output"];
    assert_eq!(lines("b:2,a:9", &words, "echo $TEST_HOST"), ["[0] b", "[1] b", "[2] a"]);
}

#[test]
fn hosts_get_more_pes_than_they_have_slots() {
    let hosts = |words: &[&str]| lines("a:2,b", &[&["--oversubscribe"], words].concat(), "echo $TEST_HOST");
    assert_eq!(hosts(&["-n", "7"]), ["a", "a", "a", "a", "a", "a", "b"]);
    assert_eq!(hosts(&["-n", "2"]), ["a", "a"]);
    assert_eq!(hosts(&[]), ["a", "a", "b"]);
}

#[test]
fn pes_of_several_hosts_meet() {
    let ended = run("a:2,b:2", &["hello"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_hello(&ended.stdout, 4);
    let ended = run("a:2,b:4", &["--pes-per-process", "2", "ring", "--rounds", "3"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("ring: 3 rounds of 6 PEs, 18 hops"), "{}", ended.stdout);
}

#[test]
fn hosts_come_from_a_file() {
    let folder = folder("file");
    let file = folder.join("hosts");
    fs::write(&file, "# two\na:2\nb slots=1 # the second\n").unwrap();
    let words = ["run", "--hostfile", file.to_str().unwrap(), "--launch-agent", NEARBY, "hello"];
    assert_hello(&Started::new(pelago(&words)).end().stdout, 3);
    fs::write(&file, "a:2\nb slots=x\n").unwrap();
    let ended = Started::new(pelago(&words)).end();
    fs::remove_dir_all(&folder).unwrap();
    assert_failed(&ended, 2, &["hosts, line 2: \"slots=x\": the slots of a host are a number"]);
}

#[test]
fn an_allocation_of_this_host_alone_has_a_pe_for_each_task() {
    let of = |words: &[&str]| {
        let mut command = pelago(&[&["run"], words].concat());
        command.env("SLURM_JOB_NODELIST", "n1").env("SLURM_TASKS_PER_NODE", "3");
        command.env("SLURMD_NODENAME", "n1");
        let ended = Started::new(command).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
        ended.stdout
    };
    let size = ["sh", "-c", "echo $PMI_SIZE"];
    assert_eq!(of(&size), "3\n".repeat(3));
    assert_eq!(of(&[&["-n", "2"], &size[..]].concat()), "2\n".repeat(2));
    let two = [&["sh", "-c", "echo a"][..], &[":", "-n", "1", "sh", "-c", "echo b"][..]].concat();
    assert_eq!(of(&two).matches('a').count(), 2);
}

#[test]
fn several_programs_run_on_several_hosts() {
    let words = ["-n", "1", "hello", ":", "-n", "3", env!("CARGO_BIN_EXE_pelago"), "app", "hello"];
    let ended = run("a:2,b:2", &words);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_hello(&ended.stdout, 4);
}

#[test]
fn arguments_and_variables_arrive_byte_for_byte() {
    let odd = [
        &b""[..],
        b"two words",
        b"'",
        b"\"",
        b"\n",
        b"$HOME",
        b"`id`",
        b"*",
        b"\\",
        b"-n",
        b"\xff\xfe",
        b"~",
    ];
    let line = "for it in \"$@\" \"$ODD\"; do printf %s \"$it\" | od -An -v -tx1 | tr -d ' \\n'; echo; done";
    let mut command = on("a,b", &["--tag-output", "sh", "-c", line, "-"]);
    command.args(odd.map(OsStr::from_bytes)).env("ODD", OsString::from_vec(odd.concat()));
    let ended = Started::new(command).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let hex =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}\n")).collect::<String>().replace('\n', "");
    let all = odd.concat();
    for tag in ["[0] ", "[1] "] {
        let found: Vec<_> = ended.stdout.lines().filter_map(|line| line.strip_prefix(tag)).collect();
        assert_eq!(found, odd.iter().chain([&&all[..]]).map(|bytes| hex(bytes)).collect::<Vec<_>>(), "{tag}");
    }
}

#[test]
fn pes_have_the_environment_and_the_settings_of_the_launcher() {
    let line = "echo $PELAGO_SPINS,$PELAGO_HEAPSIZE,$PELAGO_BIND,$SSH_TTY,$SLURMD_NODENAME,$COLOUR";
    let mut command = on("a,b", &["--env", "COLOUR=deep red", "--bind", "sh", "-c", line]);
    command.env("PELAGO_SPINS", "7").env("SSH_TTY", "mine").env("SLURMD_NODENAME", "mine");
    let ended = Started::new(command).end();
    // Variables that describe a host, such as SSH_TTY, are not sent to other hosts; settings are.
    assert_eq!(
        (ended.status, ended.stdout.as_str()),
        (0, "7,,on,none,,deep red\n".repeat(2).as_str()),
        "{ended:?}"
    );
}

#[test]
fn pes_have_the_signal_mask_of_the_launcher() {
    let program = ["grep", "SigBlk", "/proc/self/status"];
    let here = Started::new(pelago(&[&["run", "-n", "1"], &program[..]].concat())).end().stdout;
    assert!(here.starts_with("SigBlk:"), "{here}");
    let local = Started::new(pelago(&[&["run", "--hosts", "localhost", "-n", "1"], &program[..]].concat()));
    assert_eq!(local.end().stdout, here, "an agent without a remote shell");
    assert_eq!(run("a", &program).stdout, here, "an agent behind a remote shell");
}

#[test]
fn pes_have_the_working_directory_of_the_launcher() {
    let folder = folder("directory");
    fs::write(folder.join("mine.sh"), "#!/bin/sh\npwd -P\n").unwrap();
    let mut command = on("a,b", &["sh", "mine.sh"]);
    command.current_dir(&folder);
    let ended = Started::new(command).end();
    let expected = format!("{}\n", fs::canonicalize(&folder).unwrap().display()).repeat(2);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((ended.status, ended.stdout), (0, expected), "{}", ended.stderr);
}

#[test]
fn pes_are_bound_on_each_host() {
    let cpus = pelago_boot::cpus();
    let line = "echo $PMI_RANK $(sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status)";
    // The first PE of each host is on the first processor.
    let places = [(0, 0), (1, 0), (2, 1)];
    let expected: Vec<_> = places.iter().map(|(pe, i)| format!("{pe} {}", cpus[i % cpus.len()])).collect();
    assert_eq!(lines("a:1,b:2", &["--bind"], line), expected);
}

#[test]
fn output_arrives_whole_and_on_its_stream() {
    let line = "seq -f $PMI_RANK-%.0f 1 50000; echo err $PMI_RANK >&2; printf end$PMI_RANK";
    for options in [&[][..], &["--tag-output"]] {
        let ended = run("a:2,b:1", &[options, &["sh", "-c", line]].concat());
        assert_eq!((ended.status, ended.stderr.lines().count()), (0, 3), "{}", ended.stderr);
        for pe in 0..3 {
            let tag = if options.is_empty() { String::new() } else { format!("[{pe}] ") };
            assert!(ended.stderr.lines().any(|line| line == format!("{tag}err {pe}")), "{}", ended.stderr);
            assert!(ended.stdout.contains(&format!("{tag}end{pe}")), "the last line of PE {pe}");
            let start = format!("{tag}{pe}-");
            let numbers =
                ended.stdout.lines().filter_map(|line| line.strip_prefix(&start)?.parse::<u32>().ok());
            // Without tags, lines of different PEs may mix.
            let count = numbers.filter(|number| (1..=50000).contains(number)).count();
            assert!(count == 50000 || options.is_empty(), "{count} lines of PE {pe}");
        }
        let bytes: usize = (1..=50000).map(|number: u32| number.to_string().len() + 3).sum::<usize>() + 4;
        let tags = if options.is_empty() { 0 } else { 3 * (4 * 50001 + 1) };
        assert_eq!(ended.stdout.len(), 3 * bytes + tags, "{options:?}");
    }
}

#[test]
fn pe_0_reads_standard_input() {
    let folder = folder("input");
    let file = folder.join("input");
    let text: String = (0..60000).map(|number| format!("{number}\n")).collect();
    fs::write(&file, &text).unwrap();
    let words = ["sh", "-c", "cat; echo end of $PMI_RANK"];
    let expected = |text: &str| format!("{text}end of 0\n");
    let of = |input: Stdio| {
        let ended = Started::with_input(on("a", &words), input).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        ended.stdout
    };
    assert!(of(File::open(&file).unwrap().into()) == expected(&text), "from a file");
    assert_eq!(of(Stdio::null()), expected(""));
    let (reader, mut writer) = std::io::pipe().unwrap();
    let sent = text.clone();
    let writing = std::thread::spawn(move || writer.write_all(sent.as_bytes()));
    assert!(of(reader.into()) == expected(&text), "from a pipe");
    writing.join().unwrap().unwrap();
    // It is empty for the other PEs, and a PE that reads nothing does not delay the job.
    let input = File::open(&file).unwrap();
    let words = ["sh", "-c", "test $PMI_RANK = 0 || cat; echo end of $PMI_RANK"];
    let ended = Started::with_input(on("a:2,b", &words), input.into()).end();
    assert_eq!((ended.status, ended.stdout.len(), ended.stderr.as_str()), (0, 27, ""));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn statuses_and_reasons_reach_the_user() {
    let of = |line: &str| run("a:2,b:2", &["sh", "-c", line]);
    let ended = of("test $PMI_RANK = 2 && exit 9; exec sleep 1000");
    assert_failed(&ended, 9, &["PE 2 on host b exited with status 9"]);
    let ended = of("test $PMI_RANK = 3 && kill -SEGV $$; exec sleep 1000");
    assert_failed(&ended, 139, &["PE 3 on host b (pid ", ") was killed by signal 11 (SIGSEGV)"]);
    let ended = of("test $PMI_RANK = 3 && echo nonsense >&$PMI_FD; exec sleep 1000");
    assert_failed(&ended, 1, &["PE 3 on host b (pid ", "does not speak PMI-1"]);
    let mut command = on("a,b", &[std::env::current_exe().unwrap().to_str().unwrap()]);
    command.args(["--exact", "faults::pe_that_panics", "--nocapture", "--test-threads=1"]);
    command.env("PELAGO_TEST_BODY", "panic");
    let Ended { status, stderr, .. } = Started::new(command).end();
    let text = "PE 1 on host b exited with status 101: panicked";
    assert!(status == 101 && stderr.contains(text) && stderr.contains("the matrix is singular"), "{stderr}");
    let ended = run("a,b", &["./no-such-program"]);
    assert_failed(&ended, 1, &["PE ", " on host ", "could not be started: ./no-such-program was not found"]);
}

#[test]
fn a_killed_pe_ends_the_job() {
    let job = Started::new(on("a:2,b:2", &["ft", "--class", "B"]));
    let pid = job.pes_at_work(4)[2];
    signal(pid, Signal::KILL);
    let text = format!("PE 2 on host b (pid {}) was killed by signal 9 (SIGKILL)", pid.as_raw_nonzero());
    assert_failed(&job.end(), 128 + 9, &[&text]);
}

#[test]
fn what_pes_leave_in_the_background_ends_with_the_job() {
    for status in [0, 3] {
        let line = format!("sleep 1000 & exit {status}");
        assert_eq!(Started::new(on("a,b", &["sh", "-c", &line])).end().status, status);
    }
}

/// A job of four PEs, each with a child process.
fn with_children() -> Started {
    let job = Started::new(on("a:2,b:2", &["sh", "-c", "sleep 1000 & exec sleep 1001"]));
    wait_until("the PEs and their children", || {
        let of = |seconds: &str| {
            job.processes().into_iter().filter(|pid| words(*pid) == ["sleep", seconds]).count()
        };
        (of("1000"), of("1001")) == (4, 4)
    });
    job
}

#[test]
fn nothing_is_left_when_the_launcher_is_killed() {
    assert_eq!(with_children().kill().0, "");
}

/// Variables that ask srun to label or redirect output are for the steps of the user, not for those of
/// agents.
#[test]
fn the_steps_of_agents_do_not_follow_the_users_wishes() {
    let folder = folder("steps");
    let srun = folder.join("srun");
    let wishes = [
        "SLURM_LABELIO",
        "SLURM_STDOUTMODE",
        "SLURM_STDINMODE",
        "SLURM_GPUS_PER_TASK",
        "SLURM_TRES_PER_TASK",
        "SLURM_THREADS_PER_CORE",
    ];
    let all = wishes.map(|name| format!("${name}")).concat();
    let script = format!(
        "#!/bin/sh\nwhile [ $1 != -w ]; do shift; done\nshift 2\n\
         if [ -n \"{all}\" ]; then \"$@\" | sed 's/^/0: /'; else exec \"$@\"; fi\n"
    );
    fs::write(&srun, script).unwrap();
    fs::set_permissions(&srun, fs::Permissions::from_mode(0o755)).unwrap();
    for wish in wishes {
        let mut command = pelago(&["run", "--tag-output", "sh", "-c", "echo here"]);
        let path = [folder.as_os_str(), &std::env::var_os("PATH").unwrap()].join(OsStr::new(":"));
        command.env("PATH", path).env(wish, "1");
        command.envs([("SLURM_JOB_NODELIST", "n1"), ("SLURM_TASKS_PER_NODE", "2")]);
        let ended = Started::new(command).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{wish}");
        assert_eq!(ended.stdout.lines().count(), 2, "{wish}: {}", ended.stdout);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn signals_to_the_launcher_end_the_job() {
    for (number, status, name) in [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM")] {
        let job = with_children();
        job.signal(number);
        assert_failed(&job.end(), status, &["the job was ended by signal", name]);
    }
}

#[test]
fn a_killed_agent_ends_the_job() {
    let job = Started::new(on("a:2,b:2", &["sh", "-c", "exec sleep 1000"]));
    job.wait_for_pes(4);
    signal(job.agent("b"), Signal::KILL);
    assert_failed(
        &job.settle(),
        1,
        &["host b: the connection to its agent was lost", "ended with status 137"],
    );
}

#[test]
fn a_silent_host_ends_the_job() {
    let mut command = on("a:2,b:2", &["sh", "-c", "exec sleep 1000"]);
    command.env("PELAGO_PEER_TIMEOUT", "1");
    let job = Started::new(command);
    job.wait_for_pes(4);
    signal(job.agent("b"), Signal::STOP);
    assert_failed(&job.settle(), 1, &["host b: it has been silent for 1 s (PELAGO_PEER_TIMEOUT)"]);
}

#[test]
fn a_silent_launcher_ends_the_pes() {
    let mut command = on("a:2,b:2", &["sh", "-c", "exec sleep 1000"]);
    command.env("PELAGO_PEER_TIMEOUT", "1");
    let job = Started::new(command);
    job.wait_for_pes(4);
    job.signal(Signal::STOP);
    wait_until("the PEs of a silent launcher to end", || job.pes().is_empty());
    job.signal(Signal::CONT);
    assert_failed(&job.settle(), 1, &["host "]);
}

/// Ctrl-Z stops the launcher, but not the job.
#[test]
fn a_launcher_that_is_stopped_by_the_terminal_is_not_taken_for_gone() {
    let folder = folder("stopped");
    let (go, done) = (folder.join("go"), folder.join("done"));
    let line = "until test -e \"$GO\"; do sleep 0.05; done; sleep 3; : > \"$DONE-$PMI_RANK\"";
    let mut command = on("a,b", &["sh", "-c", line]);
    command.env("PELAGO_PEER_TIMEOUT", "1").env("GO", &go).env("DONE", &done);
    let job = Started::new(command);
    job.wait_for_pes(2);
    job.signal(Signal::TSTP);
    let is_stopped = |pid: &Pid| {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
        status.contains("State:\tT")
    };
    wait_until("the launcher to be stopped", || job.processes().iter().any(is_stopped));
    fs::write(&go, "").unwrap();
    let is_done = |pe: usize| folder.join(format!("done-{pe}")).exists();
    wait_until("the PEs to be done", || (0..2).all(is_done));
    job.signal(Signal::CONT);
    let ended = job.end();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
}

#[test]
fn sigusr2_asks_on_all_hosts() {
    let folder = folder("asked");
    let said = folder.join("said");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec \"$0\" \"$@\" 2> \"$SAID\"",
        env!("CARGO_BIN_EXE_pelago"),
        "run",
        "--hosts",
        "a,b",
    ]);
    command.args([
        "--launch-agent",
        NEARBY,
        "sh",
        "-c",
        "test $PMI_RANK = 0 || kill -STOP $$; exec sleep 1000",
    ]);
    let job = Started::new({
        command.env("SAID", &said);
        command
    });
    let pids = job.wait_for_pes(2);
    let state = format!("/proc/{}/status", pids[&1].as_raw_nonzero());
    wait_until("PE 1 to be stopped", || fs::read_to_string(&state).unwrap_or_default().contains("State:\tT"));
    job.signal(Signal::USR2);
    let read = || fs::read_to_string(&said).unwrap_or_default();
    wait_until("the report", || read().contains("PE 1 on host b"));
    let (first, second) = (pids[&0].as_raw_nonzero(), pids[&1].as_raw_nonzero());
    assert_eq!(
        read(),
        format!(
            "pelago run: SIGUSR2 asks. What each PE does:\n  \
             PE 0 on host a has not joined the job (pid {first})\n  \
             PE 1 on host b is stopped by a signal (`kill -CONT {second}` lets it go on)\n"
        )
    );
    job.signal(Signal::INT);
    assert_eq!(job.end().status, 130);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_of_the_job_is_on_a_command_line_and_no_port_is_open() {
    let words_of_pe = ["--env", "PASSWORD=open-sesame", "sh", "-c", "exec sleep 1000", "open-sesame"];
    let job = Started::new(on("a,b", &words_of_pe));
    job.wait_for_pes(2);
    let sockets = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let network: String =
        ["tcp", "tcp6", "udp", "udp6"].map(|kind| sockets(&format!("/proc/net/{kind}"))).concat();
    for host in ["a", "b"] {
        let agent = job.agent(host);
        assert_eq!(words(agent), [env!("CARGO_BIN_EXE_pelago"), "agent"]);
        assert_eq!(variable(agent, "PASSWORD"), None);
        for entry in fs::read_dir(format!("/proc/{}/fd", agent.as_raw_nonzero())).unwrap() {
            let link = fs::read_link(entry.unwrap().path()).unwrap_or_default().display().to_string();
            if let Some(inode) = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
                assert!(!network.contains(&format!(" {inode} ")), "{link} of the agent of {host}");
            }
        }
    }
    job.signal(Signal::INT);
    assert_eq!(job.end().status, 130);
}

#[test]
fn hosts_that_cannot_be_used_are_named_with_a_remedy() {
    let hello = ["sh", "-c", "echo hello"];
    // The remote shell of a host without an agent yet is ended by a signal.
    let run = |hosts: &str, words: &[&str]| Started::new(on(hosts, words)).settle();
    let ended = run("a,nowhere", &hello);
    assert_failed(
        &ended,
        1,
        &["host nowhere: `", "ended with status 255", "no route to nowhere", "without a question"],
    );
    let ended = run("a,bare", &hello);
    let path = env!("CARGO_BIN_EXE_pelago");
    assert_failed(&ended, 1, &["host bare: ", path, "does not run there", "not found", "--agent-path"]);
    let ended = run("a,b", &[&["--agent-path", "/no/pelago"], &hello[..]].concat());
    assert_failed(&ended, 1, &["host ", "/no/pelago does not run there", "--agent-path"]);
    let ended = run("a,b", &[&["--agent-path", "/bin/echo"], &hello[..]].concat());
    assert_failed(&ended, 1, &["host ", "ended with status 0", "after \"agent\""]);
    let mut mute = on("a,mute", &hello);
    mute.env("PELAGO_INIT_TIMEOUT", "0.4");
    let ended = Started::new(mute).settle();
    assert_failed(
        &ended,
        1,
        &["host mute: no agent of Pelago was there within 0.4 s", "PELAGO_INIT_TIMEOUT"],
    );
    let ended = Started::new(pelago(&["run", "--hosts", "b", "--launch-agent", "/no/ssh", "hello"])).end();
    assert_failed(&ended, 2, &["host b: `/no/ssh b` cannot be started", "--launch-agent"]);
}

#[test]
fn what_start_up_files_print_is_passed_over() {
    let ended = run("a,noisy", &["sh", "-c", "echo $PMI_RANK"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, "noisy: You have mail\n"));
    assert!(matches!(&*ended.stdout, "0\n1\n" | "1\n0\n"), "{}", ended.stdout);
}

#[test]
fn an_agent_that_talks_garbage_is_named() {
    let folder = folder("garbage");
    let script = folder.join("script");
    let frame = |kind: u8, process: u32, payload: &[u8]| {
        [&[kind], &process.to_le_bytes()[..], &(payload.len() as u32).to_le_bytes(), payload].concat()
    };
    let started = frame(2, 1, &77_i32.to_le_bytes());
    let (agent, lost) = ("is not what an agent of Pelago sends", "the connection to its agent was lost");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"hello, I am no agent\n".to_vec(), "after \"hello, I am no agent\""),
        (vec![b'x'; 100_000], "came in the place of the agent of Pelago"),
        (b"\npelago agent 99.0\n".to_vec(), "\"pelago agent 99.0\" came in the place of the agent"),
        (GREETING.as_bytes().to_vec(), lost),
        ([GREETING.as_bytes(), b"hello"].concat(), agent),
        ([GREETING.as_bytes(), &[255; 40]].concat(), agent),
        ([GREETING.as_bytes(), &frame(16, 0, b"x")].concat(), agent),
        // Frames about a process that does not exist, about one of another host, and about one that has not
        // been started.
        ([GREETING.as_bytes(), &frame(2, 2, &77_i32.to_le_bytes())].concat(), agent),
        ([GREETING.as_bytes(), &frame(2, 0, &77_i32.to_le_bytes())].concat(), agent),
        ([GREETING.as_bytes(), &frame(12, 1, &0_i32.to_le_bytes())].concat(), agent),
        ([GREETING.as_bytes(), &started, &started].concat(), agent),
        ([GREETING.as_bytes(), &started, &frame(8, 1, &[b'x'; 60_000]), &frame(8, 1, b"")].concat(), lost),
        ([GREETING.as_bytes(), &started, &frame(8, 1, b""), &frame(8, 1, b"x")].concat(), lost),
        ([GREETING.as_bytes(), &started, &frame(4, 1, b""), &frame(4, 1, b"x")].concat(), agent),
        ([GREETING.as_bytes(), &started, &frame(4, 1, b"nonsense\n")].concat(), "does not speak PMI-1"),
        ([GREETING.as_bytes(), &started, &frame(14, 1, &[9])].concat(), agent),
        ([GREETING.as_bytes(), &frame(1, 0, &[0; 50])].concat(), agent),
    ];
    for (bytes, part) in cases {
        fs::write(&script, &bytes).unwrap();
        let mut command = on("a,scripted", &["sh", "-c", "exec sleep 1000"]);
        command.env("TEST_SCRIPT", &script);
        let Ended { status, stderr, .. } = Started::new(command).settle();
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(
            status == 1 && stderr.contains(part) && stderr.contains("host scripted"),
            "{start:?}: {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_agent_that_hears_garbage_ends() {
    for bytes in [&b"hello"[..], &[0; 64], &[255; 64], &[1, 0, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9], b""] {
        let mut child =
            pelago(&["agent"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.as_mut().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let ended = super::process::has_ended(super::process::handle_of(child), Duration::from_secs(60));
        assert!(ended, "the agent waits for more than {bytes:?}");
        let mut text = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut text).unwrap();
        let status = child.wait().unwrap().code();
        let expected = if bytes.is_empty() { 0 } else { 2 };
        assert!(status == Some(expected) && !text.contains("panicked"), "{bytes:?}: {status:?}: {text}");
    }
}

#[test]
fn hosts_that_do_not_suffice_are_refused() {
    let refused = |words: &[&str], part: &str| {
        let ended = Started::new(pelago(&[&["run"], words].concat())).end();
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    };
    refused(
        &["--hosts", "a:1,b:2", "-n", "4", "hello"],
        "4 PEs do not fit into the 3 slots of the hosts (a:1,b:2)",
    );
    refused(&["--hosts", "a:3", "--pes-per-process", "2", "-n", "2", "hello"], "the 3 slots of host a");
    refused(&["--hosts", "a,b", "--hostfile", "f", "hello"], "cannot be used with");
    refused(&["--hosts", "a:x", "hello"], "\"a:x\" in the list of hosts is not valid");
    refused(&["--hosts", "-oProxyCommand=x", "hello"], "does not begin with a dash");
    refused(&["--hosts", "", "hello"], "a host has a name");
    refused(&["--hostfile", "/no/such/file", "hello"], "the host file /no/such/file cannot be read");
    refused(&["--hosts", "a", "--launch-agent", " ", "hello"], "the command of --launch-agent is empty");
    refused(&["-n", "1", "--launch-agent", "ssh", "hello"], "name some by --hosts or --hostfile");
}
