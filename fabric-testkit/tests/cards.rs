//! Several network cards: the PEs of a node take them by turns, and reach each other from all of them.

use pelago_fabric::ofi::{Choice, Library, Ofi, Standing, Survey};
use pelago_fabric::{Event, Opening, Provider, Secret, Status};
use pelago_fabric_testkit::conformance::Group;
use pelago_fabric_testkit::fake_libfabric;

#[test]
fn pes_take_equal_cards_by_turns() {
    let library = fake_libfabric::install();
    fake_libfabric::set_cards(3);
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
