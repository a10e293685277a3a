//! The fabrics that a process opens for PEs that it does not map, and the fabric that all PEs of the job use.
//!
//! With `PELAGO_FABRIC=auto` a process opens libfabric if this machine has a fast network, and TCP in any
//! case. It lists both on its business card. The job uses the first fabric of process 0 that all processes
//! have.

use crate::Pe;
use crate::base::error::{Error, ErrorKind, Result};
use crate::job::business_card::{BusinessCard, Offer};
use crate::job::exchange::Cards;
use crate::job::summary::Digest;
use pelago_boot::{FabricKind, Job, OfiCards, Settings, print_stderr};
use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::tcp::{Tcp, TcpChoice};
use pelago_fabric::{FabricError, FabricResult, Net, Opening, Provider, ProviderInfo, Secret};
use std::fs::read_dir;

/// The directories where the kernel lists the adapters of fast networks: InfiniBand, RoCE, Omni-Path, EFA;
/// Slingshot.
const FAST_NETWORKS: [&str; 2] = ["/sys/class/infiniband", "/sys/class/cxi"];
/// Prefixes of the names of libfabric's providers for networks that the provider `tcp` serves as well.
const SLOW_PROVIDERS: [&str; 4] = ["tcp", "udp", "sockets", "net"];

/// The endpoints of the PEs of this process on one fabric, or the reason why there are none.
pub struct Fabric {
    pub offer: Offer,
    endpoints: FabricResult<Vec<Net>>,
}

impl Fabric {
    fn of(endpoints: FabricResult<Vec<Net>>) -> Fabric {
        let told = endpoints.as_ref().map_err(ToString::to_string).and_then(|nets| {
            let addresses: FabricResult<_> = nets.iter().map(Net::address).collect();
            addresses.map_err(|error| error.to_string())
        });
        let terms = endpoints.as_ref().map_or_else(|_| String::new(), |nets| nets[0].terms());
        let offer = match told {
            Ok(addresses) => Offer { terms, addresses, obstacle: String::new() },
            Err(obstacle) => Offer { terms, addresses: Vec::new(), obstacle },
        };
        Fabric { offer, endpoints }
    }

    /// Whether the fabric requires registered memory to be resident all the time.
    pub fn pins(&self) -> bool {
        self.endpoints.iter().flatten().any(Net::pins)
    }
}

/// Opens the fabrics that the settings ask for, in order of preference: an endpoint for each PE of this
/// process.
pub fn open(job: &Job, digest: &Digest, secret: Secret, settings: &Settings) -> Vec<Fabric> {
    let pes_per_process = job.pes_per_process();
    let (interface, congestion) = (settings.tcp_interface.clone(), settings.tcp_congestion.clone());
    let own_node = digest.nodes[job.rank()];
    let opening = Opening {
        process: job.rank(),
        pes_per_process,
        n_pes: job.size() * pes_per_process,
        lower_on_node: digest.nodes[..job.rank()].iter().filter(|node| **node == own_node).count(),
        is_local: digest.is_one_machine,
        secret,
        ofi: choice(settings),
        tcp: TcpChoice {
            interface,
            congestion,
            ports: settings.tcp_ports.clone(),
            encrypts: settings.tcp_encrypt,
            // Without the service thread, the datagrams of a PE that computes would be repeated late.
            datagrams: settings.tcp_datagrams && settings.service,
            insists_on_goodbye: settings.test_sleeps,
            ..TcpChoice::default()
        },
    };
    let by_name = |name, opening: &Opening| {
        let open = ProviderInfo::named(name).and_then(|provider| provider.open);
        Fabric::of(open.expect("the setting accepts providers that processes open")(opening))
    };
    match settings.fabric {
        FabricKind::Provider(name) => vec![by_name(name, &opening)],
        FabricKind::Auto | FabricKind::Shm => {
            let open_fast = |ofi| by_name(Ofi::NAME, &Opening { ofi, ..opening.clone() });
            let mut fast = fast_choice(settings).map(open_fast);
            if let Some(unused) = fast.take_if(|fabric| !fabric.offer.is_open()) {
                tell_unused(job, &unused.offer.obstacle);
            }
            fast.into_iter().chain([by_name(Tcp::NAME, &opening)]).collect()
        }
    }
}

/// Tells the user, once for a job, that the fast network of this machine is not used.
fn tell_unused(job: &Job, obstacle: &str) {
    if job.rank() == 0 {
        print_stderr(&format!(
            "PE 0: this machine has a fast network, but libfabric cannot use it, so the job uses TCP. \
             PELAGO_FABRIC=tcp selects TCP without this message. The reason: {obstacle}\n"
        ));
    }
    log::info!(target: "fabric", "libfabric is not used: {obstacle}");
}

/// The libfabric provider that the settings select.
pub fn choice(settings: &Settings) -> Choice {
    let providers = settings.ofi_providers.iter().flat_map(|list| list.split(','));
    Choice {
        library: settings.ofi_library.clone(),
        providers: providers.map(str::to_owned).collect(),
        interface: settings.ofi_interface.clone(),
        is_served: settings.service,
        is_local: false,
        turn: (settings.ofi_cards == OfiCards::Near).then_some(0),
    }
}

/// The libfabric provider that `PELAGO_FABRIC=auto` prefers to TCP. `None` if this machine has no fast
/// network, if the settings select a provider that is not for one, or if they ask for encryption, which
/// libfabric does not offer.
pub fn fast_choice(settings: &Settings) -> Option<Choice> {
    if settings.tcp_encrypt {
        return None;
    }
    let has_adapter = |class: &str| read_dir(class).is_ok_and(|mut adapters| adapters.next().is_some());
    FAST_NETWORKS.into_iter().find(|class| has_adapter(class))?;
    let mut choice = choice(settings);
    choice.providers.retain(|name| !SLOW_PROVIDERS.iter().any(|slow| name.starts_with(slow)));
    (!choice.providers.is_empty()).then_some(choice)
}

/// Connects the endpoints of this process on the fabric that all processes use.
///
/// # Errors
/// If the processes have no fabric in common, or a peer cannot be reached.
pub fn connect(me: Pe, fabrics: Vec<Fabric>, terms: &str, cards: &Cards) -> Result<Vec<Net>> {
    if terms.is_empty() {
        return Err(nothing_in_common(me, &cards.all()?));
    }
    let mut fabrics = fabrics.into_iter();
    let own = fabrics.find(|fabric| fabric.offer.terms == terms).expect("this process has offered it");
    let mut endpoints = own.endpoints?;
    let terms = terms.to_owned();
    let each = endpoints.len();
    let cards = cards.lookup(each, move |card, pe, slot| address_of((me, pe, slot), card, &terms));
    endpoints.iter_mut().try_for_each(|net| net.connect_later(&cards.lookup))?;
    cards.forget();
    Ok(endpoints)
}

/// Why the processes with these cards have no fabric in common.
fn nothing_in_common(me: Pe, cards: &[BusinessCard]) -> Error {
    let has = |card: &BusinessCard, terms: &str| {
        card.fabrics.iter().any(|offer| offer.is_open() && offer.terms == terms)
    };
    let each = cards[0].pes;
    let open = |card: &BusinessCard| {
        card.fabrics.iter().find(|offer| offer.is_open()).map(|offer| offer.terms.clone())
    };
    if let Some(process) = cards.iter().position(|card| open(card).is_none()) {
        let why = cards[process].fabrics.first().map_or(NOT_ASKED, |offer| &offer.obstacle);
        return no_fabric(me, process * each, why).into();
    }
    let mine = open(&cards[me / each]).expect("all have one");
    let process = cards.iter().position(|card| !has(card, &mine)).unwrap_or_default();
    let theirs = open(&cards[process]).expect("all have one");
    ErrorKind::FabricsDiffer { me, mine, pe: process * each, theirs }.into()
}

/// The reason of a process whose settings do not ask for a fabric.
const NOT_ASKED: &str = "it was not asked to open one (PELAGO_FABRIC)";

fn no_fabric(me: Pe, pe: Pe, why: &str) -> FabricError {
    FabricError::Foreign { pe: me, what: format!("PE {pe} has no fabric: {why}") }
}

/// The address of a PE, which has the number `slot` on the card of its process, on the fabric of these terms.
fn address_of((me, pe, slot): (Pe, Pe, usize), card: &BusinessCard, terms: &str) -> FabricResult<Vec<u8>> {
    let offer = card.fabrics.iter().find(|offer| offer.terms == terms);
    let address = offer.and_then(|offer| offer.addresses.get(slot)).filter(|address| !address.is_empty());
    address.cloned().ok_or_else(|| no_fabric(me, pe, "its address is not on its card"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(offers: &[(&str, bool)]) -> BusinessCard {
        let offer = |&(terms, is_open): &(&str, bool)| Offer {
            terms: terms.to_owned(),
            addresses: if is_open { vec![vec![1]] } else { Vec::new() },
            obstacle: if is_open { String::new() } else { "no adapter".to_owned() },
        };
        BusinessCard { pes: 1, fabrics: offers.iter().map(offer).collect(), ..BusinessCard::default() }
    }

    /// The names in the row of PELAGO_FABRIC are those of the providers that a process opens.
    #[test]
    fn the_setting_accepts_the_providers_that_a_process_opens() {
        let rows = pelago_boot::settings_table();
        let accepts = rows.iter().find(|row| row.name == "PELAGO_FABRIC").unwrap().accepts;
        let words = accepts.split([' ', ',']).filter(|word| !["", "or", "auto", "shm"].contains(word));
        let opened = Net::PROVIDERS.iter().filter(|provider| provider.open.is_some());
        let (mut words, mut opened): (Vec<_>, Vec<_>) =
            (words.collect(), opened.map(|provider| provider.name).collect());
        words.sort_unstable();
        opened.sort_unstable();
        assert_eq!(words, opened);
        for name in opened {
            let pair = ("PELAGO_FABRIC".to_owned(), name.to_owned());
            assert_eq!(Settings::from_pairs([pair]).unwrap().fabric, FabricKind::Provider(name));
        }
    }

    #[test]
    fn a_process_without_a_common_fabric_is_named() {
        let (fast, tcp) = (("verbs", true), ("tcp", true));
        let reason = |cards: &[BusinessCard]| nothing_in_common(0, cards).to_string();
        let differ = reason(&[card(&[fast]), card(&[tcp])]);
        assert!(differ.contains("verbs") && differ.contains("tcp") && differ.contains("PE 1"), "{differ}");
        let closed = reason(&[card(&[tcp]), card(&[("", false)])]);
        assert!(closed.contains("PE 1 has no fabric: no adapter"), "{closed}");
        let none = reason(&[card(&[tcp]), card(&[])]);
        assert!(none.contains("PE 1 has no fabric: it was not asked"), "{none}");
    }
}
