//! The contract of a provider as tests: one rule for each promise of [`Provider`].
//!
//! A rule is a function that is generic over a [`Harness`]. A harness opens a group of connected endpoints of
//! a provider, and lists the guarantees that the provider does not give. One thread drives all endpoints of a
//! group, so the rules also hold for a provider that moves data only in `progress`.
//!
//! To test a provider, write a harness for it and call [`conformance!`](crate::conformance!), which generates
//! a module with a `#[test]` for every rule in [`rules`]. Put this into a file in `tests/` of your crate,
//! with your provider in place of `Template`:
//!
//! ```
//! use pelago_fabric_testkit::conformance::{Group, Harness};
//! use pelago_fabric_testkit::template::Template;
//!
//! struct Mine;
//!
//! impl Harness for Mine {
//!     type Endpoint = Template;
//!
//!     fn open(n_pes: usize) -> Group<Template> {
//!         Group::connect(Template::open(n_pes))
//!     }
//! }
//!
//! pelago_fabric_testkit::conformance! {
//!     mine: Mine,
//! }
//!
//! # fn main() {
//! # use pelago_fabric_testkit::conformance::rules;
//! # Mine::run(rules::a_pe_reaches_itself::<Mine>);
//! # Mine::run(rules::messages_arrive_once_in_order_and_whole::<Mine>);
//! # }
//! ```
//!
//! `cargo test` then runs `mine::puts_of_all_sizes_arrive_and_touch_nothing_else` and all others. A rule can
//! also be called alone: `rules::a_pe_reaches_itself::<Mine>()`.
//!
//! Some features are optional. A provider reports whether it executes atomics ([`Provider::executes`]),
//! supports signals ([`Provider::signal_bytes`]), and keeps messages behind puts
//! ([`Provider::keeps_messages_behind_puts`]); the rules of features that it does not have pass. The harness
//! declares whether the provider injects, signals and has a wait descriptor, so that a provider cannot lose
//! these features unnoticed.

mod atomics;
mod events;
mod group;
mod messages;
mod signals;
mod transfers;

pub use group::Group;
use pelago_fabric::{Key, Provider};

/// The key of the region of every PE.
pub const KEY: Key = 7;
/// The length of the region of every PE.
pub const REGION_BYTES: usize = 3 << 20;

/// The description of a provider for its tests.
pub trait Harness {
    /// The provider.
    type Endpoint: Provider;

    /// The number of random cases in a run of [`rules::random_transfers_equal_the_model`].
    const CASES: u32 = 24;
    /// Whether a transfer makes progress only while its target calls `progress` too.
    const TARGET_MUST_CALL: bool = false;
    /// Whether the provider injects ([`Provider::inject`]). The rules fail if this is not true.
    const INJECTS: bool = false;
    /// Whether [`Inject::refused`](pelago_fabric::Inject::refused) also returns the last put that was
    /// accepted.
    const REMEMBERS_PUTS: bool = true;
    /// Whether puts may signal ([`Provider::signal_bytes`]). The rules fail if this is not true.
    const SIGNALS: bool = false;
    /// Whether the provider has a wait descriptor ([`Provider::wait_descriptor`]). The rules fail if it does
    /// otherwise.
    const HAS_WAIT_DESCRIPTOR: bool = false;

    /// Opens and connects the endpoints of PE 0 to `n_pes - 1`, each with a zeroed region of
    /// [`REGION_BYTES`] bytes that is registered under [`KEY`]. Rules open up to 3 PEs, often several times.
    fn open(n_pes: usize) -> Group<Self::Endpoint>;

    /// Runs a rule as often as this provider needs: once, or once for each seed of a random network.
    fn run(rule: fn()) {
        rule();
    }
}

/// Generates `rules`, and the macro that generates a test of each, from one list. `$d` is a dollar sign.
macro_rules! rules {
    ($d:tt $($file:ident: $($rule:ident)+;)+) => {
        /// The rules. Each panics if the provider violates it.
        pub mod rules {
            $($(pub use super::$file::$rule;)+)+
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! conformance_tests {
            ($d harness:ty) => {
                $($(#[test]
                fn $rule() {
                    <$d harness as $d crate::conformance::Harness>::run(
                        $d crate::conformance::rules::$rule::<$d harness>,
                    );
                })+)+
            };
        }
    };
}

rules! { $
    transfers:
        puts_of_all_sizes_arrive_and_touch_nothing_else
        gets_bring_what_is_there
        a_pe_reaches_itself
        injected_sources_are_free_at_return
        every_operation_completes_exactly_once
        what_was_answered_again_has_not_happened
        a_key_names_one_region
        exposed_memory_takes_puts_until_it_is_concealed
        nothing_happens_without_traffic
        random_transfers_equal_the_model;
    messages:
        messages_arrive_once_in_order_and_whole
        long_messages_arrive_without_end
        a_flood_of_messages_is_refused_but_not_lost;
    atomics:
        every_atomic_does_what_the_model_says
        no_update_of_several_pes_is_lost;
    events:
        each_token_comes_back_as_promised
        what_is_sent_may_change
        an_injected_put_is_a_put
        an_injected_get_is_a_get
        messages_stay_behind_puts
        the_bell_rings
        contexts_complete_apart
        a_context_is_drained_behind_its_endpoint
        a_rest_returns;
    signals:
        a_signal_comes_after_its_data
        signals_come_in_order
        an_injected_put_signals
        an_unreported_put_arrives
        a_flush_tells_of_unreported_puts;
}

/// Generates a module for each harness, with a `#[test]` for every rule of the
/// [suite](mod@crate::conformance): `conformance! { module: Harness, ... }`. Attributes of a module, such as
/// `#[cfg(...)]`, are kept.
#[macro_export]
macro_rules! conformance {
    ($($(#[$attribute:meta])* $module:ident: $harness:ty),+ $(,)?) => {
        $($(#[$attribute])*
        mod $module {
            #[allow(unused_imports, reason = "a harness may be written with its whole path")]
            use super::*;

            $crate::conformance_tests!($harness);
        })+
    };
}
