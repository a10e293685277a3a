//! `fi_getinfo(3)`: the providers that match the hints, and their offers.
//!
//! Invariant: a provider makes an offer only if it supports everything that the hints request, and if the
//! hints accept all its requirements. Zero in a hint leaves the choice to the provider, except in `mr_mode`,
//! which must contain all requirements of the provider.

use super::info;
use super::profile::{
    ACCESS, DIRECTIONS, INJECT_BYTES, PROFILES, Profile, QUEUE_COUNT, RECEIVES_COUNT, RX_FLAGS,
    TRANSFER_BYTES, TX_FLAGS,
};
use crate::fake_libfabric::NetworkCard;
use crate::fake_libfabric::address::FORMAT;
use crate::fake_libfabric::world::world;
use libc::{c_char, c_int};
use pelago_fabric::ofi::sys::*;
use std::ffi::{CStr, CString};

const FABRIC_NAME: &str = "fake";

/// Capabilities that are offered even if they are not requested.
const SECONDARY: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
const CAPS: u64 = FI_MSG | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | ACCESS | DIRECTIONS | SECONDARY;
/// Returns the list of offers, or `-FI_ENODATA` if there is none.
pub(crate) unsafe extern "C" fn fi_getinfo(
    version: u32,
    node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    hints: *const fi_info,
    place: *mut *mut fi_info,
) -> c_int {
    if version > crate::fake_libfabric::VERSION {
        return -FI_ENOSYS;
    }
    // SAFETY: the caller passes hints that this library has made, or none.
    let hints = unsafe { hints.as_ref() };
    // A named node or service matches no offer.
    let fitting = PROFILES.iter().filter(|profile| {
        // SAFETY: the caller guarantees that the hints are valid.
        node.is_null() && hints.is_none_or(|hints| unsafe { fits(profile, hints) })
    });
    let mut first = std::ptr::null_mut();
    let mut end: *mut *mut fi_info = &mut first;
    let cards = {
        let world = world();
        world.ignore(0);
        world.cards.clone()
    };
    let is_named = |card: &usize| {
        // SAFETY: the caller guarantees that the hints are valid, and so all attributes and strings.
        let name = hints.and_then(|hints| unsafe { info::text((*info::attributes(hints).3).name) });
        name.is_none_or(|name| name.to_bytes() == domain_name(*card).as_bytes())
    };
    let count = cards.len().max(1);
    for (profile, card) in fitting.flat_map(|fit| (0..count).filter(is_named).map(move |card| (fit, card))) {
        // SAFETY: `end` points to the local variable, or into an entry that was just made; the caller
        // guarantees that the hints are valid.
        unsafe {
            *end = offer(profile, hints, version);
            (*(**end).domain_attr).name = string(&domain_name(card));
            if let Some(card) = cards.get(card) {
                ((**end).nic, (*(**end).ep_attr).protocol) = (nic(card), card.protocol);
            }
            end = &raw mut (**end).next;
        }
    }
    if first.is_null() {
        return -FI_ENODATA;
    }
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { place.write(first) };
    0
}

/// The name of the domain of a network card.
fn domain_name(card: usize) -> String {
    format!("fake-{card}")
}

/// The description of a network card. It is never freed.
fn nic(card: &NetworkCard) -> *mut fid_nic {
    let attr = fi_pci_attr { domain_id: 0xffff, bus_id: 0xff, device_id: card.device, function_id: 0 };
    let mut nic = Padded::<fid_nic>::zeroed().known;
    nic.bus_attr = Box::leak(Box::new(fi_bus_attr { bus_type: FI_BUS_PCI, attr }));
    let mut link = Padded::<fi_link_attr>::zeroed().known;
    (link.speed, link.state, link.network_type) = (card.speed, FI_LINK_UP, string(card.network));
    nic.link_attr = Box::leak(Box::new(link));
    Box::leak(Box::new(nic))
}

/// Whether `all` has every bit of `asked`.
fn has(all: u64, asked: u64) -> bool {
    asked & !all == 0
}

/// # Safety
/// The hints are of this library, and so have all attributes.
unsafe fn fits(profile: &Profile, hints: &fi_info) -> bool {
    // SAFETY: the caller guarantees that the attributes and the strings in them are valid.
    let (tx, rx, ep, domain, fabric) = unsafe {
        let (tx, rx, ep, domain, fabric) = info::attributes(hints);
        (&*tx, &*rx, &*ep, &*domain, &*fabric)
    };
    // SAFETY: the caller guarantees that the strings are valid.
    let text = |name: *mut c_char| unsafe { info::text(name).map(CStr::to_bytes) };
    let [provider, fabric_name] = [fabric.prov_name, fabric.name].map(text);
    names(profile, provider)
        && fabric_name.is_none_or(|name| name == FABRIC_NAME.as_bytes())
        && has(CAPS, hints.caps)
        && has(hints.mode, profile.mode)
        && matches!(hints.addr_format, FI_FORMAT_UNSPEC | FORMAT)
        && fits_transfers(profile, tx, rx)
        && fits_endpoint(profile, ep)
        && fits_domain(profile, domain)
}

/// Whether the hints name this provider, or none; a leading `^` excludes the rest of the name.
fn names(profile: &Profile, asked: Option<&[u8]>) -> bool {
    match asked {
        None => true,
        Some([b'^', excluded @ ..]) => excluded != profile.name.as_bytes(),
        Some(asked) => asked == profile.name.as_bytes(),
    }
}

fn fits_transfers(profile: &Profile, tx: &fi_tx_attr, rx: &fi_rx_attr) -> bool {
    has(CAPS, tx.caps)
        && has(CAPS, rx.caps)
        && has(TX_FLAGS, tx.op_flags)
        && has(RX_FLAGS, rx.op_flags)
        && has(profile.order, tx.msg_order)
        && has(profile.order, rx.msg_order)
        && tx.comp_order == FI_ORDER_NONE
        && rx.comp_order == FI_ORDER_NONE
        && tx.inject_size <= INJECT_BYTES
        && tx.size <= QUEUE_COUNT
        && rx.size <= RECEIVES_COUNT
        && tx.iov_limit <= 1
        && rx.iov_limit <= 1
        && tx.rma_iov_limit <= 1
}

fn fits_endpoint(profile: &Profile, ep: &fi_ep_attr) -> bool {
    matches!(ep.r#type, FI_EP_UNSPEC | FI_EP_RDM)
        && ep.max_msg_size <= TRANSFER_BYTES
        && ep.max_order_raw_size == 0
        && ep.max_order_war_size == 0
        && ep.max_order_waw_size <= profile.ordered_write_bytes()
        && ep.tx_ctx_cnt <= 1
        && ep.rx_ctx_cnt <= 1
        && ep.auth_key_size == 0
}

fn fits_domain(profile: &Profile, domain: &fi_domain_attr) -> bool {
    // A request for manual progress also accepts automatic progress.
    let is_auto = profile.progress == FI_PROGRESS_AUTO || profile.answers_auto;
    let progresses = |asked| asked != FI_PROGRESS_AUTO || is_auto;
    let mr_mode_fits = match domain.mr_mode {
        FI_MR_BASIC => profile.mr_mode == FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        FI_MR_SCALABLE => profile.mr_mode == 0,
        taken => profile.mr_mode & !taken == 0,
    };
    progresses(domain.data_progress)
        && progresses(domain.control_progress)
        && mr_mode_fits
        && domain.threading <= FI_THREAD_ENDPOINT
        && domain.resource_mgmt <= FI_RM_ENABLED
        && domain.av_type <= FI_AV_TABLE
        && domain.mr_key_size <= profile.mr_key_bytes
        && domain.cq_data_size == 0
        && domain.caps & !SECONDARY == 0
}

/// The offer of a provider for these hints.
///
/// # Safety
/// The hints are of this library, and so have all attributes.
unsafe fn offer(profile: &Profile, hints: Option<&fi_info>, version: u32) -> *mut fi_info {
    let entry = info::empty();
    // SAFETY: the entry was just made; the caller guarantees that the hints are valid.
    unsafe {
        let asked = hints.map_or(0, |hints| hints.caps);
        let caps = if asked == 0 { CAPS } else { modified(asked) | SECONDARY };
        let mr_mode = hints.map_or(0, |hints| (*hints.domain_attr).mr_mode);
        let tx_flags = hints.map_or(0, |hints| (*hints.tx_attr).op_flags);
        let rx_flags = hints.map_or(0, |hints| (*hints.rx_attr).op_flags);
        ((*entry).caps, (*entry).mode, (*entry).addr_format) = (caps, profile.mode, FORMAT);
        let (tx, rx, ep, domain, fabric) = info::attributes(entry);
        let (tx, rx, ep) = (&mut *tx, &mut *rx, &mut *ep);
        (tx.caps, tx.mode, tx.op_flags, tx.msg_order) = (caps, profile.mode, tx_flags, profile.order);
        (tx.inject_size, tx.size, tx.iov_limit, tx.rma_iov_limit) = (INJECT_BYTES, QUEUE_COUNT, 1, 1);
        (rx.caps, rx.mode, rx.op_flags, rx.msg_order) = (caps, profile.mode, rx_flags, profile.order);
        (rx.size, rx.iov_limit) = (RECEIVES_COUNT, 1);
        (ep.r#type, ep.max_msg_size, ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (FI_EP_RDM, TRANSFER_BYTES, 1, 1);
        ep.max_order_waw_size = profile.ordered_write_bytes();
        *domain = domain_of(profile, hints.map(|hints| &*hints.domain_attr));
        if matches!(mr_mode, FI_MR_BASIC | FI_MR_SCALABLE) {
            (*domain).mr_mode = mr_mode;
        }
        (*fabric).name = string(FABRIC_NAME);
        (*fabric).prov_name = string(profile.name);
        ((*fabric).prov_version, (*fabric).api_version) = (FI_VERSION(1, 17), version);
    }
    entry
}

/// Adds the modifiers that a capability implies if no modifier is given.
fn modified(caps: u64) -> u64 {
    let mut all = caps;
    if caps & (FI_RMA | FI_ATOMIC) != 0 && caps & ACCESS == 0 {
        all |= ACCESS;
    }
    if caps & FI_MSG != 0 && caps & DIRECTIONS == 0 {
        all |= DIRECTIONS;
    }
    all
}

fn domain_of(profile: &Profile, hints: Option<&fi_domain_attr>) -> fi_domain_attr {
    let mut domain = Padded::<fi_domain_attr>::zeroed().known;
    let asked = |of: fn(&fi_domain_attr) -> u32, default: u32| match hints.map_or(0, of) {
        0 => default,
        asked => asked,
    };
    domain.threading = asked(|hints| hints.threading, FI_THREAD_SAFE);
    (domain.control_progress, domain.data_progress) = match profile.answers_auto {
        true => (profile.progress, profile.progress),
        false => (
            asked(|hints| hints.control_progress, profile.progress),
            asked(|hints| hints.data_progress, profile.progress),
        ),
    };
    domain.resource_mgmt = asked(|hints| hints.resource_mgmt, FI_RM_ENABLED);
    domain.av_type = asked(|hints| hints.av_type, FI_AV_TABLE);
    domain.mr_mode = profile.mr_mode;
    domain.mr_key_size = profile.mr_key_bytes;
    (domain.cq_cnt, domain.ep_cnt, domain.cntr_cnt, domain.mr_cnt) = (1 << 12, 1 << 12, 1 << 12, 1 << 16);
    (domain.tx_ctx_cnt, domain.rx_ctx_cnt) = (1 << 12, 1 << 12);
    (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx, domain.mr_iov_limit) = (1, 1, 1);
    domain.caps = SECONDARY;
    domain.mode = profile.mode;
    domain
}

fn string(text: &str) -> *mut c_char {
    info::string(&CString::new(text).expect("names have no zero in them"))
}
