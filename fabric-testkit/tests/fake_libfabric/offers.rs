//! Offers: which hints match which providers.

use super::PROVIDERS;
use super::side::{library, modest};
use libc::c_int;
use pelago_fabric::ofi::query::{Hints, offers};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::ofi::{Choice, usable};

fn offered(hints: &Hints) -> Vec<String> {
    offers(library(), hints).unwrap().into_iter().map(|offer| offer.provider).collect()
}

fn is_offered(hints: &Hints) -> bool {
    !offered(hints).is_empty()
}

#[test]
fn everything_is_offered_to_who_takes_every_duty() {
    let hints = Hints { provider: None, ..modest("") };
    assert_eq!(offered(&hints), PROVIDERS);
    let but_plain = Hints { provider: Some("^plain".into()), ..hints };
    assert_eq!(offered(&but_plain), PROVIDERS[1..]);
    assert!(!is_offered(&modest("tcp;ofi_rxm")));
}

/// For every set of `mr_mode` bits, a provider is offered if and only if it requires no other bit.
#[test]
fn a_duty_that_is_not_taken_rules_a_provider_out() {
    let duties = [FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_ENDPOINT];
    let demands: [c_int; 5] = [
        0,
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        FI_MR_ALLOCATED | FI_MR_ENDPOINT,
        0,
        FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
    ];
    for set in 0..1 << duties.len() {
        let taken = |index: &usize| set >> index & 1 != 0;
        let mr_mode = (0..duties.len()).filter(taken).fold(0, |mode, index| mode | duties[index]);
        for (provider, demand) in PROVIDERS.into_iter().zip(demands) {
            let found = offers(library(), &Hints { mr_mode, ..modest(provider) }).unwrap();
            assert_eq!(found.len(), usize::from(demand & !mr_mode == 0), "{provider} for {mr_mode:#x}");
            assert!(found.iter().all(|offer| offer.mr_mode == demand), "{provider} for {mr_mode:#x}");
        }
    }
}

/// A request, the hints for it, and the providers that offer it.
type Ask = (&'static str, fn(&mut Hints), [bool; 5]);

#[test]
fn what_is_asked_for_is_there_or_nothing_is_offered() {
    let asks: [Ask; 13] = [
        (
            "automatic progress",
            |hints| hints.data_progress = FI_PROGRESS_AUTO,
            [true, false, false, true, true],
        ),
        (
            "it of control",
            |hints| hints.control_progress = FI_PROGRESS_AUTO,
            [true, false, false, true, true],
        ),
        ("manual progress", |hints| hints.data_progress = FI_PROGRESS_MANUAL, [true; 5]),
        ("no context", |hints| hints.mode = 0, [true, false, false, true, true]),
        ("a short context", |hints| hints.mode = FI_CONTEXT, [true, false, true, true, true]),
        ("tagged messages", |hints| hints.caps |= FI_TAGGED, [false; 5]),
        ("delivery", |hints| hints.op_flags = FI_DELIVERY_COMPLETE, [true; 5]),
        ("commitment", |hints| hints.op_flags = FI_COMMIT_COMPLETE, [false; 5]),
        ("order of messages", |hints| hints.msg_order = FI_ORDER_SAS, [true; 5]),
        (
            "messages behind writes",
            |hints| hints.msg_order = FI_ORDER_SAW,
            [false, true, false, false, false],
        ),
        ("order of writes", |hints| hints.msg_order = FI_ORDER_WAW, [false, true, false, false, false]),
        ("64 bytes at once", |hints| hints.inject_bytes = 64, [true; 5]),
        ("65 bytes at once", |hints| hints.inject_bytes = 65, [false; 5]),
    ];
    for (what, ask, expected) in asks {
        for (provider, expected) in PROVIDERS.into_iter().zip(expected) {
            let mut hints = modest(provider);
            ask(&mut hints);
            assert_eq!(is_offered(&hints), expected, "{provider}, asked for {what}");
        }
    }
    for hints in [
        Hints { endpoint: FI_EP_MSG, ..modest("plain") },
        Hints { domain: Some("eth0".into()), ..modest("plain") },
        Hints { fabric: Some("10.0.0.0/8".into()), ..modest("plain") },
        Hints { source: Some("127.0.0.1".into()), ..modest("plain") },
    ] {
        assert!(!is_offered(&hints), "{hints:?}");
    }
}

#[test]
fn an_offer_says_what_it_is() {
    for (provider, mr_key_bytes) in PROVIDERS.into_iter().zip([8, 8, 4, 8, 8]) {
        let offer = offers(library(), &modest(provider)).unwrap().remove(0);
        assert_eq!((offer.inject_bytes, offer.mr_key_bytes, offer.tx_count), (64, mr_key_bytes, 64));
        assert_eq!(offer.caps & !(FI_LOCAL_COMM | FI_REMOTE_COMM), {
            let access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
            modest(provider).caps | access | FI_SEND | FI_RECV
        });
        assert!(offer.text().contains(provider) && offer.caps_text().contains("FI_ATOMIC"));
        assert_eq!(offer.mr_mode_text().contains("FI_MR_LOCAL"), provider == "like-verbs");
    }
}

/// Atomics of a provider that moves data in calls alone would wait for a call of their target.
#[test]
fn an_offer_of_manual_progress_is_none_of_automatic_progress() {
    let choice = Choice { providers: vec!["like-efa".to_owned()], ..Choice::default() };
    let found = usable(library(), &choice).unwrap();
    let forms: Vec<_> = found.iter().map(|offer| (offer.data_progress, offer.caps & FI_ATOMIC)).collect();
    assert_eq!(forms, [(FI_PROGRESS_MANUAL, 0)]);
}

/// A provider may give the flags of an endpoint to each of its calls.
#[test]
fn the_calls_alone_say_what_completes_a_transfer() {
    for provider in PROVIDERS {
        let found = offers(library(), &Hints { op_flags: FI_DELIVERY_COMPLETE, ..modest(provider) }).unwrap();
        assert_eq!(found[0].info.tx().op_flags, 0, "{provider}");
    }
}

/// The request of a job: the hints of the provider `ofi`.
#[test]
fn the_plain_one_serves_a_job_and_comes_first() {
    let found = usable(library(), &Choice::default()).unwrap();
    assert_eq!(found.first().map(|offer| &*offer.provider), Some("plain"));
}
