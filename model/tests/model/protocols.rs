//! Two-sided messages, progress, one-sided operations, and errors.

use pelago_model::action::{Action, Collective, Members, Skeleton};
use pelago_model::time::Time;
use pelago_model::{Error, Machine, Outcome, run};
use pelago_schedule::shape::Operation;
use pelago_schedule::table::find;
use std::sync::Arc;

const L: Time = 1_000_000;
const O: Time = 100_000;
const BYTES: u64 = 100_000;
/// The time of the bytes at 10 GB/s.
const MOVING: Time = 10_000_000;

fn machine() -> Machine {
    let mut machine = Machine::log_gp(L, O, 0, 10e9);
    machine.protocol.eager_bytes = 1000;
    machine.compute.copy_bytes_per_second = 1e9;
    machine
}

fn pair(machine: &Machine, first: Vec<Action>, second: Vec<Action>) -> Outcome {
    let programs = [first, second];
    run(machine, &Skeleton::new(2, move |rank| programs[rank].clone())).unwrap()
}

fn send(bytes: u64) -> Vec<Action> {
    vec![Action::Send { to: 1, bytes, tag: 5 }, Action::Finish]
}

fn receive() -> Vec<Action> {
    vec![Action::Receive { of: 0, tag: 5 }, Action::Finish]
}

fn after(time: Time, mut actions: Vec<Action>) -> Vec<Action> {
    actions.insert(0, Action::Compute(time));
    actions
}

#[test]
fn an_eager_message_takes_both_overheads_and_is_copied_if_it_is_early() {
    assert_eq!(pair(&machine(), send(1000), receive()).ends[1], O + L + 100_000 + O);
    let late = 5_000_000;
    // The receiver finds the message, copies 1000 bytes at 1 GB/s, and has its overhead.
    assert_eq!(pair(&machine(), send(1000), after(late, receive())).ends[1], late + 1_000_000 + O);
}

#[test]
fn a_rendezvous_takes_three_messages() {
    let outcome = pair(&machine(), send(BYTES), receive());
    assert_eq!((outcome.messages, outcome.bytes), (3, BYTES));
    assert_eq!(outcome.ends[1], O + 3 * L + MOVING + O);
    // A late receiver delays the sender until it posts.
    let outcome = pair(&machine(), send(BYTES), after(20_000_000, receive()));
    assert_eq!(outcome.ends, [20_000_000 + L + MOVING, 20_000_000 + 2 * L + MOVING + O]);
}

/// The sender computes while the receiver clears it to send. Without progress of its own the data leave
/// only when the sender is in a call again.
#[test]
fn overlap_is_lost_where_progress_needs_the_processor() {
    let compute = 30_000_000;
    let mut sender = send(BYTES);
    sender.insert(1, Action::Compute(compute));
    let alone = pair(&machine(), sender.clone(), receive());
    assert_eq!(alone.ends, [O + compute, O + 3 * L + MOVING + O]);
    let mut machine = machine();
    machine.protocol.progresses_alone = false;
    let in_calls = pair(&machine, sender, receive());
    assert_eq!(in_calls.ends, [O + compute + O + MOVING, O + compute + O + L + MOVING + O]);
}

#[test]
fn puts_of_software_wait_for_a_call_of_the_target() {
    let put = || vec![Action::Put { to: 1, bytes: 0, signal: None }, Action::Complete];
    let busy = || vec![Action::Compute(9_000_000), Action::Complete];
    assert_eq!(pair(&machine(), put(), busy()).ends[0], O + 2 * L);
    let mut machine = machine();
    machine.protocol.has_hardware_puts = false;
    assert_eq!(pair(&machine, put(), busy()).ends[0], 9_000_000 + O + L);
}

#[test]
fn a_signal_may_follow_its_data() {
    let put = || vec![Action::Put { to: 1, bytes: BYTES, signal: Some(0) }, Action::Complete];
    let wait = || vec![Action::Wait { slot: 0 }];
    assert_eq!(pair(&machine(), put(), wait()).ends[1], O + L + MOVING);
    let mut machine = machine();
    machine.protocol.signals_follow = true;
    let outcome = pair(&machine, put(), wait());
    // The data, their acknowledgement, and the signal.
    assert_eq!(outcome.ends, [O + MOVING + 2 * L + O, O + MOVING + 2 * L + O + L]);
    // A processor that computes sends it later.
    let mut busy = put();
    busy.insert(1, Action::Compute(50_000_000));
    assert_eq!(pair(&machine, busy, wait()).ends[1], O + 50_000_000 + O + L);
}

#[test]
fn a_get_goes_there_and_back() {
    let get = vec![Action::Get { of: 1, bytes: BYTES }, Action::Complete];
    let outcome = pair(&machine(), get, Vec::new());
    assert_eq!((outcome.ends[0], outcome.messages), (O + 2 * L + MOVING, 2));
}

#[test]
fn overhead_of_the_card_leaves_the_processor_free() {
    let puts = || vec![Action::Put { to: 1, bytes: 0, signal: Some(0) }, Action::Compute(3 * L)];
    let mut machine = machine();
    assert_eq!(pair(&machine, puts(), vec![Action::Wait { slot: 0 }]).ends, [O + 3 * L, O + L]);
    machine.protocol.card_has_overhead = true;
    assert_eq!(pair(&machine, puts(), vec![Action::Wait { slot: 0 }]).ends, [3 * L, O + L]);
}

/// The processors of both sides move the bytes, at the rate of the card: together if each has one message,
/// one after the other if each sends and receives.
#[test]
fn a_processor_that_moves_data_does_nothing_else() {
    let put = |to| Action::Put { to, bytes: BYTES, signal: Some(0) };
    let wait = || Action::Wait { slot: 0 };
    let mut machine = machine();
    (machine.protocol.processor_moves_data, machine.protocol.has_hardware_puts) = (true, false);
    machine.network.send_rest = 300_000;
    assert_eq!(pair(&machine, vec![put(1)], vec![wait()]).ends, [O + MOVING + 300_000, O + L + MOVING + O]);
    let exchange = [0, 1].map(|peer| vec![put(1 - peer), wait()]);
    let [first, second] = exchange;
    // The bytes have come when the send returns; then the processor moves them.
    let sent = O + MOVING + 300_000;
    assert_eq!(pair(&machine, first.clone(), second.clone()).ends, [sent.max(O + L) + O + MOVING; 2]);
    machine.contention = pelago_model::machine::Contention::Packets;
    assert_eq!(pair(&machine, first, second).ends, [sent + O + MOVING; 2]);
    let get = vec![Action::Get { of: 1, bytes: BYTES }, Action::Complete];
    assert_eq!(pair(&machine, get, vec![]).ends[0], 3 * O + 2 * L + MOVING);
    machine.protocol.processor_moves_data = false;
    assert_eq!(pair(&machine, vec![put(1)], vec![wait()]).ends, [O + 300_000, O + L + MOVING + O]);
}

#[test]
fn a_full_card_stops_the_processor() {
    let mut machine = machine();
    machine.protocol.outstanding = 2;
    let put = Action::Put { to: 1, bytes: BYTES, signal: Some(0) };
    let mut sender = vec![put; 4];
    sender.push(Action::Compute(0));
    let waits = vec![Action::Wait { slot: 0 }; 4];
    let outcome = pair(&machine, sender, waits);
    // The third put begins when the first has arrived, the fourth when the second has.
    assert_eq!(outcome.ends, [O + L + 2 * MOVING, O + L + 4 * MOVING]);
}

#[test]
fn messages_of_one_tag_keep_their_order_and_tags_do_not_mix() {
    let send = |tag| Action::Send { to: 1, bytes: 8, tag };
    let receive = |tag| Action::Receive { of: 0, tag };
    let sender = vec![send(1), send(2), send(1), Action::Finish];
    let receiver = vec![receive(2), Action::Finish, receive(1), receive(1), Action::Finish];
    assert_eq!(pair(&machine(), sender, receiver).messages, 3);
}

/// Two teams, and operations that overlap: signals of one are not taken for those of another.
#[test]
fn operations_of_teams_do_not_mix() {
    let dissemination = find(Operation::Barrier, "dissemination").unwrap();
    let binomial = find(Operation::Broadcast, "binomial").unwrap();
    let team = |team, algorithm, first| {
        let collective = Collective::world(algorithm, 4, 64, 1);
        Arc::new(Collective { team, members: Members { first, stride: 2, count: 4 }, ..collective })
    };
    let teams: Vec<_> = [0, 1]
        .map(|first| [team(first, binomial, first as usize), team(first, dissemination, first as usize)])
        .into();
    let world = Arc::new(Collective { team: 2, ..Collective::world(dissemination, 8, 0, 1) });
    let program = move |rank: usize| {
        let mut actions = vec![Action::Compute(rank as Time * 3 * L)];
        for round in 0..6 {
            actions.push(Action::Collective(teams[rank % 2][round % 2].clone()));
            actions.push(Action::Collective(world.clone()));
        }
        actions
    };
    let outcome = run(&machine(), &Skeleton::new(8, program)).unwrap();
    assert_eq!(outcome.messages, 6 * 8 * 3 + 2 * 3 * 3 + 2 * 3 * 4 * 2);
}

#[test]
fn a_deadlock_names_the_rank_and_its_event() {
    let run = |programs: [Vec<Action>; 2]| {
        let program = move |rank: usize| programs[rank].clone();
        run(&machine(), &Skeleton::new(2, program)).unwrap_err().to_string()
    };
    let text = run([vec![], vec![Action::Wait { slot: 3 }]]);
    assert!(text.contains("1 ranks never end: rank 1 waits for a signal in its slot 3"), "{text}");
    let text = run([vec![], receive()]);
    assert!(text.contains("a message of rank 0 with tag 5"), "{text}");
    let text = run([send(BYTES), vec![]]);
    assert!(text.contains("receives of the messages that it sends"), "{text}");
}

#[test]
fn invalid_actions_are_refused() {
    let run = |action: Action| run(&machine(), &Skeleton::new(2, move |_| vec![action.clone()])).unwrap_err();
    let far = run(Action::Put { to: 2, bytes: 1, signal: None });
    assert!(far.to_string().contains("names rank 2; the ranks are 0 to 1"), "{far}");
    let dissemination = find(Operation::Barrier, "dissemination").unwrap();
    let members = Members { first: 1, stride: 1, count: 1 };
    let collective = Collective { members, ..Collective::world(dissemination, 1, 0, 1) };
    let error = run(Action::Collective(Arc::new(collective)));
    assert!(matches!(error, Error::Invalid { rank: 0, .. }), "{error}");
    assert!(error.to_string().contains("no member of team 0"), "{error}");
}
