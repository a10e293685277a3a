//! PMI-1 server, the launcher's side: a state machine whose input and output are lines, and which performs no
//! I/O itself. Here, a PE is a process.
//!
//! Invariant: every request has exactly one response, except `abort`, `note`, `hears` and `waits`, which have
//! none, and `barrier_in`, to which all PEs receive the response when the last of them has sent it. A PE
//! between `init` and `finalize` is in the job; `init` is the first request.

use std::collections::HashMap;
use std::time::Duration;

use super::value::unhex;
use super::wire::Message;
use super::{MAPPING_KEY, MISSED, OURS, REPORTS, WAITED, mapping};

/// The name of the one key-value space of a job.
const KVS_NAME: &str = "pelago";
/// The limits that the server announces and enforces, in characters.
const KEY_MAX: usize = 64;
const VALUE_MAX: usize = 1024;

/// The meaning of a line for the supervisor of the processes, besides the responses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing besides its responses.
    Served,
    /// The PE joined the job.
    Joined,
    /// The process aborts the job with this status and, optionally, the number of the PE that requests it and
    /// a message.
    Abort { status: i32, pe: Option<usize>, message: Option<String> },
    /// The PE reports why it is about to die.
    Note(String),
    /// The process replies when it is asked what its PEs wait for.
    Hears,
    /// The waits of the PEs of the process, one line for each PE.
    Waits(Waits),
    /// A second program of the process joins.
    JoinedTwice,
    /// A PE may not send this line.
    Broken,
}

/// The report of a process about the waits of its PEs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// One line for each group of PEs that do the same.
    pub(crate) text: String,
    /// For how long each PE has waited.
    pub(crate) waited: Vec<Option<Duration>>,
}

impl Waits {
    fn of(request: &Message) -> Self {
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        let waited = request.get(WAITED).unwrap_or_default().split(',').map(millis).collect();
        Self { text: text_of(request, "text").unwrap_or_default(), waited }
    }
}

/// The state of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not joined.
    Outside,
    /// It has joined.
    Inside,
    /// It waits in the barrier.
    InBarrier,
    /// It has joined and may exit or continue: the process is between two worlds.
    Resting,
    /// It has left the job (finalized).
    Finalized,
}

/// The server of one job.
pub(crate) struct Server {
    stages: Vec<Stage>,
    /// For each PE, whether it has left, or rests, while others waited for it in vain.
    missed: Vec<bool>,
    /// The number of barriers that all PEs have passed, and of the PEs that wait in the next one.
    barriers: u64,
    waiting: usize,
    values: HashMap<String, String>,
    /// The program of each PE, by its number.
    program_of: Vec<usize>,
}

impl Server {
    /// A server for PEs with these programs, with this number of PEs on each node.
    pub(crate) fn new(program_of: Vec<usize>, of_nodes: &[usize]) -> Self {
        let values = HashMap::from([(MAPPING_KEY.to_owned(), mapping::of_nodes(of_nodes))]);
        let size = program_of.len();
        let (stages, missed) = (vec![Stage::Outside; size], vec![false; size]);
        Self { stages, missed, barriers: 0, waiting: 0, values, program_of }
    }

    /// A server for `size` PEs of one program on one node.
    #[cfg(test)]
    pub(crate) fn of_one_node(size: usize) -> Self {
        Self::new(vec![0; size], &[size])
    }

    pub(crate) fn stage(&self, pe: usize) -> Stage {
        self.stages[pe]
    }

    /// Whether a PE has left, or rests, while others waited for it in vain.
    pub(crate) fn is_missed(&self, pe: usize) -> bool {
        self.missed[pe]
    }

    /// The number of the barrier in which some PEs wait for others; `None` if no PE waits.
    pub(crate) fn meeting(&self) -> Option<u64> {
        (self.waiting > 0).then_some(self.barriers)
    }

    /// Handles a line of `pe`; appends (PE, message) for each response that is due.
    pub(crate) fn handle(&mut self, pe: usize, line: &str, answers: &mut Vec<(usize, Message)>) -> Event {
        let Some(request) = Message::parse(line) else { return Event::Broken };
        let early = ["init", "abort", "note", "hears", "waits"];
        let stage = self.stages[pe];
        let inside =
            matches!(stage, Stage::Inside | Stage::Resting) || early.contains(&request.command.as_str());
        if !inside {
            return Event::Broken;
        }
        if request.command == "init" && stage != Stage::Outside {
            return Event::JoinedTwice;
        }
        if stage == Stage::Resting && !early.contains(&request.command.as_str()) {
            self.stages[pe] = Stage::Inside;
        }
        let answer = match request.command.as_str() {
            "init" => {
                self.stages[pe] = Stage::Inside;
                let answer = Message::new("response_to_init").with("pmi_version", 1);
                let answer = answer.with("pmi_subversion", 1).with("rc", 0).with(OURS, 1).with(REPORTS, 1);
                answers.push((pe, with_limits(answer).with("kvsname", KVS_NAME)));
                return Event::Joined;
            }
            "rest" => {
                self.stages[pe] = Stage::Resting;
                self.missed[pe] = request.get(MISSED).is_some();
                return Event::Served;
            }
            "note" => return Event::Note(text_of(&request, "text").unwrap_or_default()),
            "hears" => return Event::Hears,
            "waits" => return Event::Waits(Waits::of(&request)),
            "abort" => {
                let status =
                    request.number("exitcode").and_then(|code| i32::try_from(code).ok()).unwrap_or(1);
                let pe = request.number("pe").and_then(|pe| usize::try_from(pe).ok());
                return Event::Abort { status, pe, message: text_of(&request, "message") };
            }
            "barrier_in" => {
                self.enter_barrier(pe, answers);
                return Event::Served;
            }
            "finalize" => {
                self.stages[pe] = Stage::Finalized;
                self.missed[pe] = request.get(MISSED).is_some();
                Message::new("finalize_ack").with("rc", 0)
            }
            "get_maxes" => with_limits(Message::new("maxes").with("rc", 0)),
            "get_appnum" => Message::new("appnum").with("rc", 0).with("appnum", self.program_of[pe]),
            "get_universe_size" => {
                Message::new("universe_size").with("rc", 0).with("size", self.stages.len())
            }
            "get_my_kvsname" => Message::new("my_kvsname").with("rc", 0).with("kvsname", KVS_NAME),
            "put" => self.put(&request),
            "get" => self.get(&request),
            other => refusal(&format!("{other}_result"), "unknown_command"),
        };
        answers.push((pe, answer));
        Event::Served
    }

    fn enter_barrier(&mut self, pe: usize, answers: &mut Vec<(usize, Message)>) {
        self.stages[pe] = Stage::InBarrier;
        self.waiting += 1;
        if self.waiting == self.stages.len() {
            (self.barriers, self.waiting) = (self.barriers + 1, 0);
            self.stages.fill(Stage::Inside);
            let all = (0..self.stages.len()).map(|pe| (pe, Message::new("barrier_out").with("rc", 0)));
            answers.extend(all);
        }
    }

    fn put(&mut self, request: &Message) -> Message {
        match (request.get("kvsname"), request.get("key"), request.get("value")) {
            (Some(KVS_NAME), Some(key), Some(value)) if key.len() <= KEY_MAX && value.len() <= VALUE_MAX => {
                self.values.insert(key.to_owned(), value.to_owned());
                Message::new("put_result").with("rc", 0)
            }
            (Some(KVS_NAME), Some(_), Some(_)) => refusal("put_result", "too_long"),
            _ => refusal("put_result", "bad_request"),
        }
    }

    fn get(&self, request: &Message) -> Message {
        match (request.get("kvsname"), request.get("key")) {
            (Some(KVS_NAME), Some(key)) => match self.values.get(key) {
                Some(value) => Message::new("get_result").with("rc", 0).with("value", value),
                None => refusal("get_result", "no_such_key"),
            },
            _ => refusal("get_result", "bad_request"),
        }
    }
}

fn with_limits(answer: Message) -> Message {
    answer.with("kvsname_max", 256).with("keylen_max", KEY_MAX).with("vallen_max", VALUE_MAX)
}

fn refusal(command: &str, why: &str) -> Message {
    Message::new(command).with("rc", -1).with("msg", why)
}

fn text_of(request: &Message, field: &str) -> Option<String> {
    let bytes = unhex(request.get(field)?)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &mut Server, pe: usize, line: &str) -> Vec<(usize, String)> {
        let mut answers = Vec::new();
        assert_ne!(server.handle(pe, line, &mut answers), Event::Broken, "{line}");
        answers.into_iter().map(|(pe, answer)| (pe, answer.to_string())).collect()
    }

    fn event(server: &mut Server, pe: usize, line: &str) -> Event {
        server.handle(pe, line, &mut Vec::new())
    }

    fn joined(size: usize) -> Server {
        let mut server = Server::of_one_node(size);
        for pe in 0..size {
            assert_eq!(event(&mut server, pe, "cmd=init pmi_version=1 pmi_subversion=1"), Event::Joined);
        }
        server
    }

    #[test]
    fn questions_about_the_job() {
        let mut server = joined(3);
        let mut answer = |line: &str| ask(&mut server, 1, line).remove(0).1;
        assert_eq!(answer("cmd=get_maxes"), "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024");
        assert_eq!(answer("cmd=get_appnum"), "cmd=appnum rc=0 appnum=0");
        assert_eq!(answer("cmd=get_universe_size"), "cmd=universe_size rc=0 size=3");
        assert_eq!(answer("cmd=get_my_kvsname"), "cmd=my_kvsname rc=0 kvsname=pelago");
        assert_eq!(
            answer("cmd=get kvsname=pelago key=PMI_process_mapping"),
            "cmd=get_result rc=0 value=(vector,(0,1,3))"
        );
        assert_eq!(answer("cmd=get_ranks2hosts"), "cmd=get_ranks2hosts_result rc=-1 msg=unknown_command");
    }

    #[test]
    fn programs_and_nodes_are_told() {
        let mut server = Server::new(vec![0, 0, 1], &[1, 2]);
        assert_eq!(event(&mut server, 2, "cmd=init pmi_version=1 pmi_subversion=1"), Event::Joined);
        assert_eq!(ask(&mut server, 2, "cmd=get_appnum")[0].1, "cmd=appnum rc=0 appnum=1");
        let mapping = ask(&mut server, 2, "cmd=get kvsname=pelago key=PMI_process_mapping").remove(0).1;
        assert_eq!(mapping, "cmd=get_result rc=0 value=(vector,(0,1,1),(1,1,2))");
    }

    #[test]
    fn values_are_kept_and_limits_are_held() {
        let mut server = joined(2);
        let (long_key, long_value) = ("k".repeat(KEY_MAX + 1), "v".repeat(VALUE_MAX + 1));
        let mut rc = |pe, line: &str| Message::parse(&ask(&mut server, pe, line).remove(0).1).unwrap();
        assert!(rc(0, "cmd=put kvsname=pelago key=a value=1").succeeded());
        assert_eq!(rc(1, "cmd=get kvsname=pelago key=a").get("value"), Some("1"));
        assert!(!rc(1, "cmd=get kvsname=pelago key=b").succeeded());
        assert!(!rc(1, "cmd=get kvsname=other key=a").succeeded());
        assert!(!rc(1, "cmd=get key=a").succeeded());
        assert!(!rc(1, "cmd=put kvsname=other key=a value=2").succeeded());
        assert!(!rc(1, "cmd=put kvsname=pelago key=a").succeeded());
        assert!(!rc(1, &format!("cmd=put kvsname=pelago key={long_key} value=1")).succeeded());
        assert!(!rc(1, &format!("cmd=put kvsname=pelago key=a value={long_value}")).succeeded());
        assert_eq!(rc(0, "cmd=get kvsname=pelago key=a").get("value"), Some("1"));
    }

    #[test]
    fn the_barrier_opens_for_all_when_the_last_arrives() {
        let mut server = joined(3);
        for round in 0..2 {
            assert_eq!(server.meeting(), None);
            assert_eq!(ask(&mut server, 2, "cmd=barrier_in"), []);
            assert_eq!(ask(&mut server, 0, "cmd=barrier_in"), []);
            assert_eq!(server.meeting(), Some(round));
            let out = ask(&mut server, 1, "cmd=barrier_in");
            assert_eq!(out.iter().map(|(pe, _)| *pe).collect::<Vec<_>>(), [0, 1, 2]);
            assert!(out.iter().all(|(_, line)| line == "cmd=barrier_out rc=0"));
        }
    }

    #[test]
    fn the_barrier_waits_for_those_who_have_not_joined() {
        let mut server = Server::of_one_node(2);
        assert_eq!(event(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1"), Event::Joined);
        assert_eq!(ask(&mut server, 0, "cmd=barrier_in"), []);
        assert_eq!(server.stage(0), Stage::InBarrier);
        assert_eq!(server.stage(1), Stage::Outside);
    }

    #[test]
    fn the_last_words_of_a_pe() {
        let mut server = joined(1);
        assert_eq!(event(&mut server, 0, "cmd=note text=6e6f20c3a9"), Event::Note("no é".to_owned()));
        assert_eq!(event(&mut server, 0, "cmd=hears"), Event::Hears);
        let waits = |waited| Event::Waits(Waits { text: "a".to_owned(), waited });
        assert_eq!(event(&mut server, 0, "cmd=waits text=61"), waits(vec![None]));
        let waited = vec![Some(Duration::from_millis(1500)), None, Some(Duration::ZERO)];
        assert_eq!(event(&mut server, 0, "cmd=waits text=61 waited=1500,,0"), waits(waited));
        let mut abort = |line: &str, status, pe, message: Option<&str>| {
            let message = message.map(str::to_owned);
            assert_eq!(event(&mut server, 0, line), Event::Abort { status, pe, message }, "{line}");
        };
        abort("cmd=abort exitcode=7", 7, None, None);
        abort("cmd=abort exitcode=0 message=6869", 0, None, Some("hi"));
        abort("cmd=abort exitcode=1 pe=3 message=6869", 1, Some(3), Some("hi"));
        abort("cmd=abort pe=-1", 1, None, None);
        assert_eq!(ask(&mut server, 0, "cmd=finalize"), [(0, "cmd=finalize_ack rc=0".to_owned())]);
        assert_eq!(server.stage(0), Stage::Finalized);
    }

    #[test]
    fn who_leaves_while_others_wait_says_so() {
        let mut server = joined(3);
        for (pe, line, is_missed) in
            [(0, "cmd=rest missed=1", true), (1, "cmd=finalize missed=1", true), (2, "cmd=finalize", false)]
        {
            assert_eq!(event(&mut server, pe, line), Event::Served);
            assert_eq!(server.is_missed(pe), is_missed, "{line}");
        }
        assert_eq!(
            [0, 1, 2].map(|pe| server.stage(pe)),
            [Stage::Resting, Stage::Finalized, Stage::Finalized]
        );
    }

    #[test]
    fn a_process_joins_once() {
        let mut server = joined(3);
        let init = "cmd=init pmi_version=1 pmi_subversion=1";
        assert_eq!(event(&mut server, 0, init), Event::JoinedTwice, "inside");
        assert_eq!(event(&mut server, 1, "cmd=rest"), Event::Served);
        assert_eq!(event(&mut server, 1, init), Event::JoinedTwice, "between two worlds");
        assert_eq!(event(&mut server, 2, "cmd=finalize"), Event::Served);
        assert_eq!(event(&mut server, 2, init), Event::JoinedTwice, "after leaving");
    }

    #[test]
    fn lines_out_of_place_are_broken() {
        let mut server = Server::of_one_node(2);
        for line in ["cmd=barrier_in", "cmd=put kvsname=pelago key=a value=1", "hello", "", "mcmd=spawn"] {
            assert_eq!(event(&mut server, 0, line), Event::Broken, "{line} before init");
        }
        let mut server = joined(2);
        assert_eq!(event(&mut server, 0, "cmd=barrier_in"), Event::Served);
        assert_eq!(event(&mut server, 0, "cmd=barrier_in"), Event::Broken);
        assert_eq!(event(&mut server, 1, "cmd=finalize"), Event::Served);
        assert_eq!(event(&mut server, 1, "cmd=get_maxes"), Event::Broken);
    }
}
