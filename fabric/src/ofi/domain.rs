//! A domain: a network card of this machine as a provider of libfabric opens it, and the state that its
//! endpoints share: the address vector and the registered memory.
//!
//! Invariant: the choice of a provider depends on its capabilities, never on its name. Objects are closed in
//! the order that libfabric requires: endpoints first, each of which holds a reference to its domain.

use super::card;
use super::handlers::keeping_handlers;
use super::library::{Library, OfiError};
use super::query::{Hints, Offer, offers};
use super::region::DUTIES;
use super::sys::*;
pub use crate::opening::Choice;
use crate::secret::{Purpose, Secret};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::types::{FabricError, FabricResult, Key, Pe};
use libc::c_void;
use std::net::IpAddr;
use std::ptr::{NonNull, null_mut};

/// Capabilities that a provider must have; atomics may be missing.
const CAPS: u64 = FI_MSG
    | FI_RMA
    | FI_READ
    | FI_WRITE
    | FI_SEND
    | FI_RECV
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_MULTI_RECV;

const REMEDY_OFFERS: &str =
    "`pelago info --fabrics` lists what is usable here, and the reasons of what is not";

/// The hints for a provider of this name, or for any provider, in one form.
pub(super) fn hints(provider: Option<&str>, form: Form) -> Hints {
    Hints {
        provider: provider.map(str::to_owned),
        endpoint: FI_EP_RDM,
        caps: CAPS | form.atomics,
        mr_mode: DUTIES,
        mode: FI_CONTEXT | FI_CONTEXT2,
        op_flags: FI_DELIVERY_COMPLETE,
        msg_order: FI_ORDER_SAS,
        data_progress: form.data,
        control_progress: form.control,
        threading: FI_THREAD_SAFE,
        resource_mgmt: FI_RM_ENABLED,
        av_type: FI_AV_TABLE,
        ..Hints::default()
    }
}

/// The offers that can be used, in the order of the choice. Automatic progress is requested of a provider
/// that has it, because peers must not wait for a PE that computes.
///
/// # Errors
/// If the library fails.
pub fn usable(library: &'static Library, choice: &Choice) -> Result<Vec<Offer>, OfiError> {
    let names: Vec<Option<&str>> = match choice.providers[..] {
        [] => vec![None],
        _ => choice.providers.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut found = Vec::new();
    for name in names {
        // The best form that the provider offers.
        for form in FORMS {
            let mut offers = offers(library, &hints(name, form))?;
            offers.retain(|offer| form.is_kept_by(offer));
            let is_offered = !offers.is_empty();
            found.append(&mut offers);
            if is_offered {
                break;
            }
        }
    }
    if choice.is_served {
        found = relieved(library, found)?;
    }
    let is_wanted = |offer: &Offer| {
        let Some(interface) = &choice.interface else { return true };
        offer.domain == *interface || offer.source.is_some_and(|source| source.ip().to_string() == *interface)
    };
    found.retain(is_wanted);
    let is_loopback = |offer: &Offer| offer.source.is_some_and(|source| source.ip().is_loopback());
    if choice.is_local && choice.interface.is_none() && found.iter().any(is_loopback) {
        found.retain(is_loopback);
    }
    sort(&mut found);
    Ok(found)
}

/// Sorts offers, which are in the order of the choice of providers, or of the library if the choice names
/// none. Offers whose address other machines do not reach come last. Of the others those of the first
/// provider come first, its InfiniBand cards before its Ethernet cards, and fast cards before slow ones.
fn sort(found: &mut [Offer]) {
    let mut providers: Vec<String> = Vec::new();
    for Offer { provider, .. } in &*found {
        if !providers.contains(provider) {
            providers.push(provider.clone());
        }
    }
    found.sort_by_key(|offer| {
        let remoteness = offer.source.map_or(0, |source| remoteness(source.ip()));
        let unreached = if remoteness >= UNREACHED { remoteness } else { 0 };
        let provider = providers.iter().position(|provider| *provider == offer.provider);
        (unreached, provider, card::place_of(offer.card.as_ref()), remoteness)
    });
}

/// The layer of libfabric that makes connections look like datagrams, at the end of a provider's name.
const LAYER: &str = ";ofi_rxm";

/// Asks for manual progress of this layer. For automatic progress it has a thread, which wakes at every
/// transfer, even while the caller makes progress, and slows the caller down.
fn relieved(library: &'static Library, found: Vec<Offer>) -> Result<Vec<Offer>, OfiError> {
    let (mut relieved, mut asked) = (Vec::new(), Vec::new());
    for offer in found {
        let provider = offer.provider.clone();
        if !provider.ends_with(LAYER) {
            relieved.push(offer);
        } else if !asked.contains(&provider) {
            relieved.append(&mut offers(library, &hints(Some(&provider), LEAST))?);
            asked.push(provider);
        }
    }
    Ok(relieved)
}

/// The least remoteness of addresses that other machines do not reach.
const UNREACHED: u32 = 2;

/// How unlikely it is that other machines reach an address. They do not reach a loopback address. They reach
/// a link-local address only by the name of the link, which differs from machine to machine.
fn remoteness(address: IpAddr) -> u32 {
    match address {
        address if address.is_loopback() => 3,
        IpAddr::V6(address) if address.is_unicast_link_local() => 2,
        IpAddr::V6(_) => 1,
        IpAddr::V4(_) => 0,
    }
}

/// The forms in which a provider is requested, the best first: whether its data progress is automatic,
/// whether its control progress is automatic, and whether it executes atomics. A PE's service thread does
/// what the provider does not do. A provider with manual data progress would execute atomics on the target's
/// processor. Pelago then does so itself, as the contract requires.
const FORMS: [Form; 5] = [
    Form { data: FI_PROGRESS_AUTO, control: FI_PROGRESS_AUTO, atomics: FI_ATOMIC },
    Form { data: FI_PROGRESS_AUTO, control: FI_PROGRESS_AUTO, atomics: 0 },
    Form { data: FI_PROGRESS_AUTO, control: FI_PROGRESS_MANUAL, atomics: FI_ATOMIC },
    Form { data: FI_PROGRESS_AUTO, control: FI_PROGRESS_MANUAL, atomics: 0 },
    LEAST,
];

/// The capabilities that every usable provider has.
pub(super) const LEAST: Form = Form { data: FI_PROGRESS_MANUAL, control: FI_PROGRESS_MANUAL, atomics: 0 };

/// One form in which a provider is requested.
#[derive(Clone, Copy)]
pub(super) struct Form {
    data: fi_progress,
    control: fi_progress,
    /// `FI_ATOMIC` or nothing.
    atomics: u64,
}

impl Form {
    /// Whether an offer for this form moves data as was asked for. `efa` of libfabric 1.17 to 2.0 has an
    /// offer of manual progress for a request of automatic progress.
    fn is_kept_by(self, offer: &Offer) -> bool {
        self.data != FI_PROGRESS_AUTO || offer.data_progress == FI_PROGRESS_AUTO
    }
}

/// An open domain.
pub(super) struct Domain {
    pub(super) me: Pe,
    pub(super) offer: Offer,
    pub(super) fabric: NonNull<fid_fabric>,
    pub(super) domain: NonNull<fid_domain>,
    pub(super) av: NonNull<fid_av>,
    /// The last key that was chosen for memory that no peer reaches.
    keys: AtomicU64,
    /// Exclusive-or of a region's number and its key on the wire.
    mask: u64,
    /// The proof of membership that each message carries.
    pub(super) proof: u64,
    /// Atomic kinds that the provider executes, as bits; [`UNASKED`] before the first query.
    pub(super) kinds: AtomicU32,
}

/// The numbers of exposed regions are smaller.
pub(super) const REGIONS_MAX: u64 = 1 << 16;
/// The provider was not queried yet.
pub(super) const UNASKED: u32 = u32::MAX;

// SAFETY: the objects are used by any thread, as `FI_THREAD_SAFE` was asked for.
unsafe impl Send for Domain {}
// SAFETY: as for `Send`; fields that change are protected by a mutex.
unsafe impl Sync for Domain {}

/// The pointer that an opening call has filled in, or its error.
pub(super) fn opened<T>(
    library: &'static Library,
    operation: &str,
    code: i32,
    object: *mut T,
) -> Result<NonNull<T>, OfiError> {
    match NonNull::new(object) {
        Some(object) if code == 0 => Ok(object),
        _ => Err(library.error(operation, code.into(), REMEDY_OPEN)),
    }
}

const REMEDY_OPEN: &str = "Set FI_LOG_LEVEL=warn for what libfabric says about it, choose another fabric by \
                           PELAGO_OFI_PROVIDER, or raise the limit of locked memory (ulimit -l) or lower \
                           PELAGO_HEAP_SIZE and PELAGO_POOL_SIZE";

impl Domain {
    /// Opens the best offer, or one that is as good, for PE `me` of `n_pes`.
    ///
    /// # Errors
    /// If there is no offer, or it cannot be opened.
    pub(super) fn open(me: Pe, n_pes: usize, choice: &Choice, secret: Secret) -> FabricResult<Domain> {
        let at = |error: OfiError| error.at(me);
        let library = Library::open(choice.library.as_deref()).map_err(at)?;
        let mut found = usable(library, choice).map_err(at)?;
        if found.is_empty() {
            return Err(FabricError::System {
                pe: me,
                operation: format!(
                    "choosing among the providers {} of libfabric",
                    choice.providers.join(", ")
                ),
                reason: "none has remote memory access and messages between endpoints of reliable datagrams"
                    .into(),
                remedy: REMEDY_OFFERS,
            });
        }
        let chosen = choice.turn.map_or(0, |turn| card::choose(&found, turn));
        keeping_handlers(|| Domain::of(me, n_pes, found.swap_remove(chosen), secret)).map_err(at)
    }

    fn of(me: Pe, n_pes: usize, offer: Offer, secret: Secret) -> Result<Domain, OfiError> {
        let (library, info) = (offer.info.library(), offer.info.as_ptr());
        let (mut fabric, mut domain, mut av) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the attributes are those of the entry that the library has given; the place is ours.
        let code = unsafe { (library.functions.fi_fabric)((*info).fabric_attr, &mut fabric, null_mut()) };
        let fabric = opened(library, "opening a fabric", code, fabric)?;
        // SAFETY: the fabric is open, the entry is one of its provider's; the pointer is a local variable.
        let code = unsafe { fi_domain(fabric.as_ptr(), info, &mut domain, null_mut()) };
        let domain = opened(library, "opening a domain", code, domain).inspect_err(|_| close(fabric))?;
        let mut attributes = Padded::<fi_av_attr>::zeroed();
        (attributes.known.r#type, attributes.known.count) = (FI_AV_TABLE, n_pes);
        // SAFETY: the domain is open; attributes and pointer are local variables.
        let code = unsafe { fi_av_open(domain.as_ptr(), attributes.as_mut_ptr(), &mut av, null_mut()) };
        let av = opened(library, "opening an address vector", code, av).inspect_err(|_| {
            close(domain);
            close(fabric);
        })?;
        let mask = key_mask(offer.mr_key_bytes, secret);
        let (keys, kinds) = (AtomicU64::new(0), AtomicU32::new(UNASKED));
        let proof = secret.derive(Purpose::Messages);
        Ok(Domain { me, offer, fabric, domain, av, keys, mask, proof, kinds })
    }

    pub(super) fn library(&self) -> &'static Library {
        self.offer.info.library()
    }

    /// The addresses of the peers as libfabric numbers them.
    ///
    /// # Errors
    /// If an address is not one of this provider.
    pub(super) fn insert(&self, addresses: &[Vec<u8>]) -> FabricResult<Vec<fi_addr_t>> {
        let foreign = |pe: Pe, what: &str| {
            let (provider, domain) = (&self.offer.provider, &self.offer.domain);
            let what = format!("the address of PE {pe} {what} (fabric {provider} on {domain} here)");
            FabricError::Foreign { pe: self.me, what }
        };
        let insert = |(pe, address): (Pe, &Vec<u8>)| {
            let mut number = FI_ADDR_NOTAVAIL;
            let (count, null) = (1, null_mut::<c_void>());
            if address.is_empty() {
                return Err(foreign(pe, "is missing"));
            }
            // SAFETY: the address vector is open; the address was given by a peer's endpoint of this format.
            let inserted = unsafe {
                fi_av_insert(self.av.as_ptr(), address.as_ptr().cast(), count, &mut number, 0, null)
            };
            (inserted == 1).then_some(number).ok_or_else(|| foreign(pe, "is not one that this fabric takes"))
        };
        addresses.iter().enumerate().map(insert).collect()
    }

    /// A key for memory that no peer reaches. These keys count up from 0; those of exposed regions have
    /// another highest bit.
    pub(super) fn next_key(&self) -> u64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// The key on the wire of the region with a number: the same at every member of the job, and unknown to
    /// other processes. A provider executes remote accesses without asking this process, so the key protects
    /// the memory.
    pub(super) fn wire_key(&self, region: Key) -> u64 {
        region ^ self.mask
    }
}

/// A random number with the number of bits of a provider's keys. Its highest bit is set.
fn key_mask(key_bytes: usize, secret: Secret) -> u64 {
    let unused_bits = 64 - 8 * key_bytes.clamp(4, 8) as u32;
    (secret.derive(Purpose::RegionKeys) | 1 << 63) >> unused_bits
}

/// Closes an open object that no thread uses any more.
pub(super) fn close<T>(object: NonNull<T>) {
    // SAFETY: every object of libfabric begins with its fid; the caller has opened it and does not use it
    // again. The result is ignored: no thread uses the object any more.
    let _ = unsafe { fi_close(object.as_ptr().cast()) };
}

impl Drop for Domain {
    fn drop(&mut self) {
        close(self.av);
        close(self.domain);
        close(self.fabric);
    }
}

impl Domain {
    /// The atomic kinds that the provider executes. `ask` is called once.
    pub(super) fn kinds(&self, ask: impl FnOnce() -> u32) -> u32 {
        match self.kinds.load(Ordering::Relaxed) {
            UNASKED => {
                let kinds = ask();
                self.kinds.store(kinds, Ordering::Relaxed);
                kinds
            }
            known => known,
        }
    }
}
