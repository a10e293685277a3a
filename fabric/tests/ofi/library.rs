//! Opening libfabric at run time: what is wrong with a library is said; what is offered is listed (full
//! tier).

use pelago_fabric::ofi::Library;

fn message(path: &str) -> String {
    Library::open(Some(path)).map(Library::path).expect_err("this is no libfabric").to_string()
}

#[test]
fn a_path_that_leads_nowhere_is_named() {
    let message = message("/nowhere/libfabric.so.1");
    for word in ["`/nowhere/libfabric.so.1`", "No such file", "PELAGO_OFI_LIBRARY"] {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

#[test]
fn another_library_is_refused() {
    let message = message("libc.so.6");
    for word in ["`libc.so.6`", "fi_version", "PELAGO_OFI_LIBRARY"] {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

/// Holds on machines with libfabric and on those without.
#[test]
fn without_a_path_the_system_is_asked() {
    match Library::open(None) {
        Ok(library) => assert!(library.path() == "libfabric.so.1" && library.version() >= (1, 17)),
        Err(error) => {
            let message = error.to_string();
            let says = message.contains("libfabric1") || message.contains("1.17 or newer");
            assert!(says && message.contains("PELAGO_OFI_LIBRARY"), "{message}");
        }
    }
}

#[test]
fn a_path_with_a_zero_is_refused() {
    assert!(message("libfabric\0.so").contains("zero"));
}

#[test]
fn the_error_of_a_pe_names_it() {
    let error = Library::open(Some("/nowhere/libfabric.so.1")).map(Library::path).unwrap_err();
    assert_eq!(error.clone().at(3).to_string(), format!("PE 3: {error}"));
}

#[cfg(feature = "full")]
mod installed {
    use pelago_fabric::ofi::query::{Hints, Offer, offers};
    use pelago_fabric::ofi::sys::*;
    use pelago_fabric::ofi::{API_VERSION, Choice, Library, Standing, Survey, usable};

    /// The library that the tests of the full tier use: the system's, or that of the setting.
    fn library() -> &'static Library {
        let path = std::env::var("PELAGO_OFI_LIBRARY").ok();
        Library::open(path.as_deref()).unwrap()
    }

    fn remote_memory() -> Hints {
        let caps = FI_MSG | FI_RMA | FI_ATOMIC;
        Hints { endpoint: FI_EP_RDM, caps, mode: FI_CONTEXT, ..Hints::default() }
    }

    fn list(hints: &Hints) -> Vec<Offer> {
        offers(library(), hints).unwrap()
    }

    #[test]
    fn the_same_library_comes_again() {
        assert!(std::ptr::eq(library(), library()));
        assert!(library().version() >= (1, 17));
    }

    #[test]
    fn errors_have_words() {
        assert_eq!(library().strerror((-FI_EAVAIL).into()), library().strerror(FI_EAVAIL.into()));
        assert!(!library().strerror(FI_EAVAIL.into()).is_empty());
        assert!(!library().strerror(i64::MIN).is_empty());
    }

    #[test]
    fn tcp_is_offered_with_messages_and_remote_memory() {
        let offers = list(&remote_memory());
        let tcp = offers.iter().find(|offer| offer.provider == "tcp;ofi_rxm" || offer.provider == "tcp");
        let tcp =
            tcp.unwrap_or_else(|| panic!("{:?}", offers.iter().map(|o| &o.provider).collect::<Vec<_>>()));
        let asked = remote_memory().caps;
        assert_eq!((tcp.caps & asked, tcp.endpoint), (asked, FI_EP_RDM));
        assert!(
            tcp.inject_bytes >= 8 && tcp.transfer_bytes >= 1 << 20 && tcp.cq_data_bytes >= 4,
            "{}",
            tcp.text()
        );
        assert!(!tcp.fabric.is_empty() && !tcp.domain.is_empty() && tcp.source.is_some(), "{}", tcp.text());
        assert!(tcp.info.entry().next.is_null());
        assert!(tcp.text().contains(&tcp.domain) && tcp.caps_text().contains("FI_RMA"));
        assert!(tcp.address_format_text().contains("FI_SOCKADDR"));
    }

    #[test]
    fn hints_narrow_what_is_offered() {
        let all = list(&remote_memory());
        let one = all.iter().find(|offer| offer.provider.starts_with("tcp")).unwrap();
        let names = |offer: &Offer| (offer.provider.clone(), offer.fabric.clone(), offer.domain.clone());
        let hints = Hints {
            provider: Some(one.provider.clone()),
            fabric: Some(one.fabric.clone()),
            domain: Some(one.domain.clone()),
            data_progress: FI_PROGRESS_AUTO,
            ..remote_memory()
        };
        let narrowed = list(&hints);
        assert!(!narrowed.is_empty());
        for offer in &narrowed {
            assert_eq!(names(offer), names(one));
            assert_eq!(offer.data_progress, FI_PROGRESS_AUTO);
        }
        let local = Hints { source: Some("127.0.0.1".into()), ..hints };
        for offer in list(&local) {
            assert!(offer.source.is_some_and(|source| source.ip().is_loopback()), "{}", offer.text());
        }
    }

    #[test]
    fn what_nobody_offers_is_an_empty_list() {
        assert!(list(&Hints { provider: Some("no-such-provider".into()), ..remote_memory() }).is_empty());
        let error = offers(library(), &Hints { domain: Some("a\0b".into()), ..remote_memory() }).err();
        assert!(error.is_some_and(|error| error.to_string().contains("zero")));
    }

    /// An offer outlives the list, and its copy the offer: a fabric and a domain open from it.
    #[test]
    fn a_domain_opens_from_a_copy_of_an_offer() {
        let copy = list(&remote_memory()).into_iter().find(|offer| offer.provider.starts_with("tcp"));
        let copy = copy.map(|offer| offer.info.dup().unwrap()).unwrap();
        assert_eq!(API_VERSION, copy.fabric().api_version);
        let (mut fabric, mut domain) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the copy is an offer of this library; what is opened from it is closed in the opposite
        // order.
        unsafe {
            let attributes = copy.entry().fabric_attr;
            assert_eq!((library().functions.fi_fabric)(attributes, &mut fabric, std::ptr::null_mut()), 0);
            assert_eq!(fi_domain(fabric, copy.as_ptr(), &mut domain, std::ptr::null_mut()), 0);
            let mut attributes = Padded::<fi_atomic_attr>::zeroed();
            let asked = fi_query_atomic(domain, FI_UINT64, FI_SUM, attributes.as_mut_ptr(), FI_FETCH_ATOMIC);
            assert!(asked == -FI_ENOSYS || (asked == 0 && attributes.known.size == 8), "{asked}");
            assert_eq!(fi_close(domain.cast()), 0);
            assert_eq!(fi_close(fabric.cast()), 0);
        }
    }

    /// Each reason is held against an own question to libfabric, which asks for that one thing only.
    #[test]
    fn a_survey_says_what_serves_and_why_the_rest_does_not() {
        let choice = Choice { providers: vec!["tcp;ofi_rxm".into()], ..Choice::default() };
        let survey = Survey::of(library(), &choice).unwrap();
        let chosen = survey.chosen().expect("tcp serves");
        assert!(
            chosen.offer.provider == "tcp;ofi_rxm" && chosen.offer.source.is_some() && !chosen.is_loopback()
        );
        assert!(survey.file.as_ref().is_some_and(|file| file.is_absolute() && file.exists()));
        let mut reasons = Vec::new();
        for find in &survey.finds {
            let provider = find.offer.provider.clone();
            let duties = Hints { mode: !0, mr_mode: !(FI_MR_BASIC | FI_MR_SCALABLE), ..Hints::default() };
            let any =
                Hints { provider: Some(provider.clone()), domain: Some(find.offer.domain.clone()), ..duties };
            match &find.standing {
                Standing::Chosen | Standing::ByTurns | Standing::Usable => {
                    assert_eq!(provider, "tcp;ofi_rxm")
                }
                Standing::RuledOut(why) => {
                    assert!(
                        provider != "tcp;ofi_rxm" && why.contains("PELAGO_OFI_PROVIDER"),
                        "{provider} {why}"
                    );
                }
                Standing::Lacking(lacks) => {
                    reasons.extend(lacks.iter().map(|lack| (any.clone(), lack.clone())))
                }
            }
        }
        assert!(reasons.iter().any(|(hints, _)| hints.provider.as_deref() == Some("udp")), "{reasons:?}");
        // Asked for a provider, libfabric also names those that are layered upon it.
        let exists =
            |hints: &Hints| list(hints).iter().any(|offer| Some(&offer.provider) == hints.provider.as_ref());
        for (hints, lack) in reasons {
            assert!(exists(&hints), "{hints:?}");
            let asked = if lack.contains("not FI_EP_RDM") {
                Hints { endpoint: FI_EP_RDM, ..hints }
            } else if lack.contains("duty of memory") {
                Hints { mr_mode: 0, ..hints }
            } else {
                continue;
            };
            assert!(!exists(&asked), "{lack}: {asked:?}");
        }
    }

    /// The layer over connections gets no thread of its own where another one serves, and does all in calls.
    #[test]
    fn who_is_served_has_no_thread_of_the_library() {
        for is_served in [false, true] {
            let providers = vec!["tcp;ofi_rxm".to_owned()];
            let found = usable(library(), &Choice { providers, is_served, ..Choice::default() }).unwrap();
            assert!(!found.is_empty());
            for offer in found {
                assert_eq!(offer.provider, "tcp;ofi_rxm");
                assert_eq!(offer.data_progress == FI_PROGRESS_MANUAL, is_served, "{}", offer.text());
                assert_eq!(offer.caps & FI_ATOMIC == 0, is_served, "{}", offer.text());
                // The orders that allow a signal to be sent directly behind its data: an offer with atomics
                // guarantees no order.
                let orders = FI_ORDER_SAW | FI_ORDER_WAW;
                let kept = if is_served { (orders, offer.transfer_bytes) } else { (FI_ORDER_NONE, 0) };
                assert_eq!((offer.msg_order & orders, offer.ordered_put_bytes), kept, "{}", offer.text());
            }
        }
    }

    #[test]
    fn a_domain_that_is_asked_for_rules_the_others_out() {
        let choice = Choice { interface: Some("127.0.0.1".into()), ..Choice::default() };
        let survey = Survey::of(library(), &choice).unwrap();
        assert!(survey.chosen().is_some_and(|chosen| chosen.is_loopback()));
        let elsewhere =
            survey.finds.iter().find(|find| find.offer.provider == "tcp;ofi_rxm" && !find.is_loopback());
        let reason = Standing::RuledOut("PELAGO_OFI_INTERFACE names another one");
        assert_eq!(elsewhere.map(|find| &find.standing), Some(&reason));
    }

    #[test]
    fn a_program_keeps_its_handlers_of_signals() {
        offers(library(), &Hints::default()).unwrap();
        for signal in [libc::SIGTERM, libc::SIGINT] {
            let mut now = std::mem::MaybeUninit::uninit();
            // SAFETY: nothing is set, and the place of the answer is ours.
            let now = unsafe {
                assert_eq!(libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()), 0);
                now.assume_init()
            };
            assert_eq!(now.sa_sigaction, libc::SIG_DFL, "signal {signal} has a new handler");
        }
    }
}
