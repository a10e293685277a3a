//! The offers of libfabric's providers on this machine: takes hints, and returns offers. Source:
//! `fi_getinfo(3)`.
//!
//! Invariant: offers are in the order of the library, which puts recommended offers first. The fields of an
//! offer are copies from its entry. The offer keeps the entry, by which it is opened.

use super::card::Card;
use super::handlers::keeping_handlers;
use super::info::{Info, on_c_heap};
use super::library::{API_VERSION, Library, OfiError, text_at};
use super::sys::*;
use libc::c_int;
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;

/// The hints. With zero or `None` the provider chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The provider, `tcp;ofi_rxm` for instance; a leading `^` excludes it.
    pub provider: Option<String>,
    /// The fabric.
    pub fabric: Option<String>,
    /// The domain.
    pub domain: Option<String>,
    /// The address, or host name, of the network card to send from.
    pub source: Option<String>,
    /// The type of endpoint: `FI_EP_*`.
    pub endpoint: fi_ep_type,
    /// Capabilities: `FI_MSG`, `FI_RMA` and so on.
    pub caps: u64,
    /// Mode bits, the duties that the caller accepts: `FI_CONTEXT` and so on.
    pub mode: u64,
    /// Duties that concern memory regions: `FI_MR_*`.
    pub mr_mode: c_int,
    /// Flags that transfers are to have: `FI_DELIVERY_COMPLETE` for instance. A provider that lacks them has
    /// no offer; each call passes its own flags.
    pub op_flags: u64,
    /// Order of messages: `FI_ORDER_*`.
    pub msg_order: u64,
    /// Bytes that can be injected, at least.
    pub inject_bytes: usize,
    /// The data progress model: `FI_PROGRESS_*`.
    pub data_progress: fi_progress,
    /// The control progress model.
    pub control_progress: fi_progress,
    /// The threading level: `FI_THREAD_*`.
    pub threading: fi_threading,
    /// Whether queues are kept from overrunning: `FI_RM_*`.
    pub resource_mgmt: fi_resource_mgmt,
    /// The type of address vector: `FI_AV_*`.
    pub av_type: fi_av_type,
}

impl Hints {
    /// The entry that `fi_getinfo` takes.
    fn entry(&self, library: &'static Library) -> Result<Info, OfiError> {
        let info = Info::empty(library)?;
        // SAFETY: the entry and its attributes are there, as `Info` promises, and no other code has them yet.
        // The names are empty so far, and `Info` frees the names that are set with the rest of the entry.
        unsafe {
            let entry = &mut *info.as_ptr();
            (entry.caps, entry.mode) = (self.caps, self.mode);
            let (sends, receives) = (&mut *entry.tx_attr, &mut *entry.rx_attr);
            (sends.op_flags, sends.inject_size) = (self.op_flags, self.inject_bytes);
            (sends.msg_order, receives.msg_order) = (self.msg_order, self.msg_order);
            (*entry.ep_attr).r#type = self.endpoint;
            let domain = &mut *entry.domain_attr;
            (domain.mr_mode, domain.av_type) = (self.mr_mode, self.av_type);
            (domain.data_progress, domain.control_progress) = (self.data_progress, self.control_progress);
            (domain.threading, domain.resource_mgmt) = (self.threading, self.resource_mgmt);
            let fabric = &mut *entry.fabric_attr;
            for (name, field) in [
                (&self.provider, &mut fabric.prov_name),
                (&self.fabric, &mut fabric.name),
                (&self.domain, &mut domain.name),
            ] {
                if let Some(name) = name {
                    *field = on_c_heap(name)?;
                }
            }
        }
        Ok(info)
    }
}

/// An offer of a provider.
pub struct Offer {
    /// The provider: `tcp;ofi_rxm`, `verbs;ofi_rxm`, `cxi`.
    pub provider: String,
    /// The provider's version: major and minor number.
    pub provider_version: (u32, u32),
    /// The fabric: a network.
    pub fabric: String,
    /// The domain: a network card of this machine.
    pub domain: String,
    /// The network card, if libfabric describes it.
    pub card: Option<Card>,
    /// The type of endpoint: `FI_EP_*`.
    pub endpoint: fi_ep_type,
    /// The protocol of the endpoint: `FI_PROTO_*`.
    pub protocol: u32,
    /// The format of addresses: `FI_SOCKADDR_IN` and so on.
    pub address_format: u32,
    /// The address that it sends from, if the offer has one and it is an Internet address.
    pub source: Option<SocketAddr>,
    /// Capabilities.
    pub caps: u64,
    /// Duties of the application.
    pub mode: u64,
    /// Duties that concern memory regions.
    pub mr_mode: c_int,
    /// Bytes of a memory key.
    pub mr_key_bytes: usize,
    /// Bytes of data that a completion can bring from the peer.
    pub cq_data_bytes: usize,
    /// Bytes whose buffer is free at return.
    pub inject_bytes: usize,
    /// Largest transfer, in bytes.
    pub transfer_bytes: usize,
    /// The largest put that is ordered after earlier puts, in bytes, if `msg_order` orders puts.
    pub ordered_put_bytes: usize,
    /// Order of messages.
    pub msg_order: u64,
    /// Operations that can be under way.
    pub tx_count: usize,
    /// Buffers for messages that can be posted.
    pub rx_count: usize,
    /// Sending contexts that an endpoint can have.
    pub tx_contexts_max: usize,
    /// Endpoints that a domain can have.
    pub endpoints_max: usize,
    /// Completion counters that a domain can have.
    pub counters_max: usize,
    /// The data progress model.
    pub data_progress: fi_progress,
    /// The control progress model.
    pub control_progress: fi_progress,
    /// The threading level.
    pub threading: fi_threading,
    /// Whether queues are kept from overrunning.
    pub resource_mgmt: fi_resource_mgmt,
    /// The type of address vector.
    pub av_type: fi_av_type,
    /// The entry, by which the offer is opened.
    pub info: Info,
}

impl Offer {
    fn of(info: Info) -> Offer {
        // Each call passes its own flags. Some providers (`efa`) add those of the endpoint to them, so that
        // messages too would wait for their delivery.
        // SAFETY: the entry has its attributes, as `Info` promises, and no other code has it yet.
        unsafe { (*info.entry().tx_attr).op_flags = 0 };
        let (entry, domain, endpoint, fabric) = (info.entry(), info.domain(), info.endpoint(), info.fabric());
        let names = [fabric.prov_name, fabric.name, domain.name];
        // SAFETY: the names of an entry are null or strings that the library has ended with a zero.
        let [provider, fabric_name, domain_name] = names.map(|name| unsafe { text_at(name) });
        Offer {
            provider,
            provider_version: (fabric.prov_version >> 16, fabric.prov_version & 0xffff),
            fabric: fabric_name,
            domain: domain_name,
            card: Card::of(entry),
            endpoint: endpoint.r#type,
            protocol: endpoint.protocol,
            address_format: entry.addr_format,
            source: source_of(entry),
            caps: entry.caps,
            mode: entry.mode,
            mr_mode: domain.mr_mode,
            mr_key_bytes: domain.mr_key_size,
            cq_data_bytes: domain.cq_data_size,
            inject_bytes: info.tx().inject_size,
            transfer_bytes: endpoint.max_msg_size,
            ordered_put_bytes: endpoint.max_order_waw_size,
            msg_order: info.tx().msg_order,
            tx_count: info.tx().size,
            rx_count: info.rx().size,
            tx_contexts_max: domain.max_ep_tx_ctx,
            endpoints_max: domain.ep_cnt,
            counters_max: domain.cntr_cnt,
            data_progress: domain.data_progress,
            control_progress: domain.control_progress,
            threading: domain.threading,
            resource_mgmt: domain.resource_mgmt,
            av_type: domain.av_type,
            info,
        }
    }

    /// libfabric's text for the whole offer, of many lines.
    pub fn text(&self) -> String {
        // SAFETY: the entry is valid, as `Info` promises, and has the type that is passed.
        unsafe { self.info.library().text(self.info.as_ptr().cast(), FI_TYPE_INFO) }
    }

    /// libfabric's text for the offer's capabilities.
    pub fn caps_text(&self) -> String {
        // SAFETY: the capabilities are a word of 64 bits, as the type asks.
        unsafe { self.info.library().text(ptr::from_ref(&self.caps).cast(), FI_TYPE_CAPS) }
    }

    /// libfabric's text for the offer's duties that concern memory regions.
    pub fn mr_mode_text(&self) -> String {
        // SAFETY: the mode is an int, as the type asks.
        unsafe { self.info.library().text(ptr::from_ref(&self.mr_mode).cast(), FI_TYPE_MR_MODE) }
    }

    /// libfabric's text for the format of addresses.
    pub fn address_format_text(&self) -> String {
        // SAFETY: the format is a word of 32 bits, as the type asks.
        unsafe { self.info.library().text(ptr::from_ref(&self.address_format).cast(), FI_TYPE_ADDR_FORMAT) }
    }
}

/// The offers of the providers of `library` that fit `hints`. The list is empty if none fits.
///
/// # Errors
/// If a name in the hints cannot be passed on, or the library fails.
pub fn offers(library: &'static Library, hints: &Hints) -> Result<Vec<Offer>, OfiError> {
    let entry = hints.entry(library)?;
    let remedy = "Set FI_LOG_LEVEL=warn for what libfabric says about it, or choose another fabric";
    let source = hints.source.as_deref().map(CString::new).transpose();
    let source = source.map_err(|_| library.error("fi_getinfo", libc::EINVAL.into(), remedy))?;
    let (node, flags) = source.as_ref().map_or((ptr::null(), 0), |source| (source.as_ptr(), FI_SOURCE));
    let mut list = ptr::null_mut();
    let (wanted, getinfo) = (entry.as_ptr(), library.functions.fi_getinfo);
    let mut find = || {
        // SAFETY: the node is null or ends with a zero, the hints are an entry of this library, the list is
        // ours.
        unsafe { getinfo(API_VERSION, node, ptr::null(), flags, wanted, &mut list) }
    };
    let code = keeping_handlers(&mut find);
    if code == -FI_ENODATA {
        return Ok(Vec::new());
    }
    if code != 0 {
        return Err(library.error("fi_getinfo", code.into(), remedy));
    }
    let mut offers = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: `next` is an entry of the list, which is freed only after the loop.
        let offer = unsafe { Info::copy_of(library, next) };
        offers.push(offer.map(Offer::of));
        // SAFETY: the same entry of the same list as above.
        next = unsafe { (*next).next };
    }
    // SAFETY: the list is the library's and nobody holds on to its entries: the offers have copies.
    unsafe { (library.functions.fi_freeinfo)(list) };
    let mut offers: Vec<_> = offers.into_iter().collect::<Result<_, OfiError>>()?;
    // Layered providers return an offer for every network of a network card, whatever the hints are.
    offers.retain(|offer| {
        let is = |name: &str, asked: &Option<String>| asked.as_ref().is_none_or(|asked| asked == name);
        is(&offer.fabric, &hints.fabric) && is(&offer.domain, &hints.domain)
    });
    Ok(offers)
}

/// The Internet address that an entry sends from.
fn source_of(entry: &fi_info) -> Option<SocketAddr> {
    let (address, bytes) = (entry.src_addr, entry.src_addrlen);
    if address.is_null() {
        return None;
    }
    match entry.addr_format {
        FI_SOCKADDR | FI_SOCKADDR_IN | FI_SOCKADDR_IN6 => {}
        _ => return None,
    }
    // SAFETY: the entry says that there is a socket address of this length. Each read stays within it, and
    // needs no alignment.
    unsafe {
        let family =
            (bytes >= size_of::<libc::sockaddr>()).then(|| address.cast::<u16>().read_unaligned())?;
        match c_int::from(family) {
            libc::AF_INET if bytes >= size_of::<libc::sockaddr_in>() => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr));
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(address.sin_port)))
            }
            libc::AF_INET6 if bytes >= size_of::<libc::sockaddr_in6>() => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be(address.sin6_port)))
            }
            _ => None,
        }
    }
}
