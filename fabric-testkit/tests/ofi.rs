//! The conformance suite on the provider `ofi`: over the fake libfabric, and over libfabric (full tier).

use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::{Net, Provider, ProviderInfo, Secret};
use pelago_fabric_testkit::conformance::{Group, Harness};
use pelago_fabric_testkit::{conformance, fake_libfabric};

fn group(n_pes: usize, choice: &Choice) -> Group<Ofi> {
    let secret = Secret::draw().unwrap();
    Group::connect((0..n_pes).map(|me| Ofi::open(me, n_pes, choice, secret).unwrap()).collect())
}

/// Harnesses over the fake libfabric: one line per provider, and whether its targets must call `progress`.
/// Puts signal where they must: the providers with automatic progress execute atomics, and so signals.
macro_rules! over_fake_libfabric {
    ($($harness:ident($provider:literal, $target_must_call:literal);)+) => {
        $(struct $harness;

        impl Harness for $harness {
            type Endpoint = Ofi;

            const TARGET_MUST_CALL: bool = $target_must_call;
            const SIGNALS: bool = $target_must_call;
            const INJECTS: bool = true;
            const HAS_WAIT_DESCRIPTOR: bool = true;

            fn open(n_pes: usize) -> Group<Ofi> {
                let library = Some(fake_libfabric::install().path().to_owned());
                let providers = vec![$provider.to_owned()];
                let group = group(n_pes, &Choice { library, providers, ..Choice::default() });
                assert!(group.endpoints().iter().all(|endpoint| endpoint.description().contains($provider)));
                group
            }
        })+
    };
}

over_fake_libfabric! {
    Plain("plain", false);
    LikeVerbs("like-verbs", true);
    LikeCxi("like-cxi", true);
    LikeEfa("like-efa", true);
}

/// Through the enum that the layers above use.
struct Dispatched;

impl Harness for Dispatched {
    type Endpoint = Net;

    const INJECTS: bool = true;
    const HAS_WAIT_DESCRIPTOR: bool = true;

    fn open(n_pes: usize) -> Group<Net> {
        let group = Plain::open(n_pes).map(Net::Ofi);
        assert!(group.endpoints().iter().all(|net| net.name() == Ofi::NAME));
        assert!(ProviderInfo::named(Ofi::NAME).is_some_and(|provider| provider.open.is_some()));
        group
    }
}

/// Over a provider of libfabric: the system's library, or that of the setting; with automatic or with manual
/// progress.
#[cfg(feature = "full")]
struct OverLibfabric<const SERVED: bool>;

#[cfg(feature = "full")]
impl<const SERVED: bool> Harness for OverLibfabric<SERVED> {
    type Endpoint = Ofi;

    const CASES: u32 = 4;
    const TARGET_MUST_CALL: bool = SERVED;
    const SIGNALS: bool = SERVED;
    const INJECTS: bool = true;
    const HAS_WAIT_DESCRIPTOR: bool = true;

    fn open(n_pes: usize) -> Group<Ofi> {
        let set = |variable: &str| std::env::var(variable).ok();
        let choice = Choice {
            library: set("PELAGO_OFI_LIBRARY"),
            providers: vec![set("PELAGO_OFI_PROVIDER").unwrap_or_else(|| "tcp;ofi_rxm".to_owned())],
            interface: set("PELAGO_OFI_INTERFACE"),
            is_served: SERVED,
            is_local: false,
            turn: None,
        };
        // Packets need more rounds of progress.
        group(n_pes, &choice).with_rounds(20_000_000)
    }
}

conformance! {
    fake_libfabric_plain: Plain,
    fake_libfabric_verbs: LikeVerbs,
    fake_libfabric_cxi: LikeCxi,
    fake_libfabric_efa: LikeEfa,
    dispatched: Dispatched,
    #[cfg(feature = "full")]
    libfabric: OverLibfabric<false>,
    #[cfg(feature = "full")]
    libfabric_served: OverLibfabric<true>,
}
