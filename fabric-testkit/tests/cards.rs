//! Several network cards: the PEs of a node take them by turns, and reach each other from all of them.

use pelago_fabric::ofi::{Choice, Library, Ofi, Standing, Survey, usable};
use pelago_fabric::{Event, Opening, Provider, Secret, Status};
use pelago_fabric_testkit::conformance::Group;
use pelago_fabric_testkit::fake_libfabric::{self, NetworkCard};
use std::sync::{Mutex, MutexGuard, PoisonError};

const CARD: NetworkCard = NetworkCard { network: "fake", speed: 200_000_000_000, device: 0, protocol: 1 };
/// Equal cards.
const CARDS: [NetworkCard; 3] = [CARD, NetworkCard { device: 1, ..CARD }, NetworkCard { device: 2, ..CARD }];

/// The library on a machine with these cards, as long as the guard is held.
fn machine(cards: &[NetworkCard]) -> (&'static Library, MutexGuard<'static, ()>) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    fake_libfabric::set_cards(cards);
    (fake_libfabric::install(), one)
}

#[test]
fn pes_take_equal_cards_by_turns() {
    let (library, _machine) = machine(&CARDS);
    for provider in ["plain", "like-verbs", "like-cxi"] {
        let choice = |interface: Option<&str>, turn| {
            let (library, interface) = (Some(library.path().to_owned()), interface.map(str::to_owned));
            Choice { library, providers: vec![provider.to_owned()], interface, turn, ..Choice::default() }
        };
        let cards = |process: usize, ofi: Choice| {
            let (secret, tcp) = (Secret::draw().unwrap(), Default::default());
            let (n_pes, pes_per_process, lower_on_node) = (6, 2, process - 1);
            let opening =
                Opening { process, pes_per_process, n_pes, lower_on_node, is_local: false, secret, ofi, tcp };
            let opened = Ofi::of_process(&opening).unwrap();
            opened
                .iter()
                .map(|ofi| ofi.description().split(" on ").nth(1).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(cards(1, choice(None, Some(0))), ["fake-0)", "fake-1)"], "{provider}");
        assert_eq!(cards(2, choice(None, Some(0))), ["fake-2)", "fake-1)"], "{provider}");
        assert_eq!(cards(2, choice(None, None)), ["fake-0)"; 2], "{provider}");
        assert_eq!(cards(2, choice(Some("fake-2"), Some(0))), ["fake-2)"; 2], "{provider}");
        let standings = |choice: &Choice| {
            let survey = Survey::of(Library::open(choice.library.as_deref()).unwrap(), choice).unwrap();
            let finds = survey.finds.into_iter().filter(|find| find.offer.provider == provider);
            finds.map(|find| find.standing).collect::<Vec<_>>()
        };
        let [chosen, turns, usable] = [Standing::Chosen, Standing::ByTurns, Standing::Usable];
        assert_eq!(standings(&choice(None, Some(0))), [chosen.clone(), turns.clone(), turns], "{provider}");
        assert_eq!(standings(&choice(None, None)), [chosen, usable.clone(), usable], "{provider}");
        pass_messages(&choice);
    }
}

/// The cards that PEs of a machine take by turns.
fn taken_by_turns(cards: &[NetworkCard]) -> Vec<String> {
    let (library, _machine) = machine(cards);
    let choice = Choice { providers: vec!["plain".to_owned()], turn: Some(0), ..Choice::default() };
    let finds = Survey::of(library, &choice).unwrap().finds.into_iter();
    let taken = finds.filter(|find| matches!(find.standing, Standing::Chosen | Standing::ByTurns));
    taken.map(|find| find.offer.domain).collect()
}

#[test]
fn a_second_domain_of_a_card_is_no_second_card() {
    assert_eq!(taken_by_turns(&CARDS), ["fake-0", "fake-1", "fake-2"]);
    assert_eq!(taken_by_turns(&[CARD, CARD, CARDS[1]]), ["fake-0", "fake-2"]);
}

#[test]
fn cards_of_other_protocols_are_not_equal() {
    let other = NetworkCard { protocol: 2, ..CARDS[1] };
    assert_eq!(taken_by_turns(&[CARD, other, CARDS[2]]), ["fake-0", "fake-2"]);
}

#[test]
fn a_fast_card_comes_first_behind_the_choice_of_providers() {
    let card = |network, gigabits: usize, device| {
        let speed = gigabits * 1_000_000_000;
        NetworkCard { network, speed, device, ..CARD }
    };
    let cards = [card("Ethernet", 400, 0), card("InfiniBand", 100, 1), card("InfiniBand", 200, 2)];
    let (library, _machine) = machine(&cards);
    let providers = ["like-cxi", "plain"].map(str::to_owned).to_vec();
    let found = usable(library, &Choice { providers, ..Choice::default() }).unwrap();
    let found: Vec<_> = found.iter().map(|offer| (&*offer.provider, &*offer.domain)).collect();
    let domains = ["fake-2", "fake-1", "fake-0"];
    let expected = ["like-cxi", "plain"].map(|provider| domains.map(|domain| (provider, domain)));
    assert_eq!(found, expected.concat());
}

/// A message from each PE to the next one.
fn pass_messages(choice: &dyn Fn(Option<&str>, Option<usize>) -> Choice) {
    let secret = Secret::draw().unwrap();
    let open = |me| Ofi::open(me, 3, &choice(None, Some(me)), secret).unwrap();
    let group = Group::connect((0..3).map(open).collect());
    let pes = group.endpoints();
    let mut arrived = [false; 3];
    for (me, pe) in pes.iter().enumerate() {
        assert_eq!(pe.send((me + 1) % 3, 7, b"hello"), Status::Done);
    }
    for _ in 0..10_000 {
        for (pe, arrived) in pes.iter().zip(&mut arrived) {
            let mut handle = |event: Event<'_>| {
                *arrived |= matches!(event, Event::Message { header: 7, payload: b"hello", .. });
            };
            pe.progress(&mut handle).unwrap();
        }
    }
    assert_eq!(arrived, [true; 3]);
}
