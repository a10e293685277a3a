//! Offers of a provider and hints of an application: `fi_info` and its attributes. Source: `fi_getinfo(3)`.
//!
//! Invariant: the library allocates and frees an `fi_info` and the attributes that it points to. It may have
//! more fields than are declared here.

use super::layout::{opaque, structs};
use super::{fid, fid_domain, fid_fabric};
use libc::{c_char, c_int, c_uint, c_void};

/// `enum fi_ep_type`: `FI_EP_*`.
pub type fi_ep_type = c_uint;
/// `enum fi_threading`: `FI_THREAD_*`.
pub type fi_threading = c_uint;
/// `enum fi_progress`: `FI_PROGRESS_*`.
pub type fi_progress = c_uint;
/// `enum fi_resource_mgmt`: `FI_RM_*`.
pub type fi_resource_mgmt = c_uint;
/// `enum fi_av_type`: `FI_AV_*`.
pub type fi_av_type = c_uint;

/// `enum fi_bus_type`: `FI_BUS_*`.
pub type fi_bus_type = c_uint;
/// `enum fi_link_state`: `FI_LINK_*`.
pub type fi_link_state = c_uint;

opaque! {
    /// The make of a network card; its contents are not used here.
    fi_device_attr;
}

structs! {
    /// The place of a device on the PCI bus.
    fi_pci_attr {
        domain_id: u16,
        bus_id: u8,
        device_id: u8,
        function_id: u8,
    }
    /// The place of a device on a bus.
    fi_bus_attr {
        bus_type: fi_bus_type,
        attr: fi_pci_attr,
    }
    /// The link of a network card.
    fi_link_attr {
        address: *mut c_char,
        mtu: usize,
        speed: usize,
        state: fi_link_state,
        network_type: *mut c_char,
    }
    /// A network card.
    fid_nic {
        fid: fid,
        device_attr: *mut fi_device_attr,
        bus_attr: *mut fi_bus_attr,
        link_attr: *mut fi_link_attr,
        prov_attr: *mut c_void,
    }
    /// The sending side of an endpoint.
    fi_tx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        tclass: u32,
    }
    /// The receiving side of an endpoint.
    fi_rx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
        iov_limit: usize,
    }
    /// An endpoint.
    fi_ep_attr {
        r#type: fi_ep_type,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
        mem_tag_format: u64,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        auth_key_size: usize,
        auth_key: *mut u8,
    }
    /// A domain: usually a port of a network card.
    fi_domain_attr {
        domain: *mut fid_domain,
        name: *mut c_char,
        threading: fi_threading,
        control_progress: fi_progress,
        data_progress: fi_progress,
        resource_mgmt: fi_resource_mgmt,
        av_type: fi_av_type,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
        mode: u64,
        auth_key: *mut u8,
        auth_key_size: usize,
        max_err_data: usize,
        mr_cnt: usize,
        tclass: u32,
    }
    /// A fabric: usually a network.
    fi_fabric_attr {
        fabric: *mut fid_fabric,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }
    /// An offer of a provider, or the hints of an application.
    fi_info {
        next: *mut fi_info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut fid,
        tx_attr: *mut fi_tx_attr,
        rx_attr: *mut fi_rx_attr,
        ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr,
        fabric_attr: *mut fi_fabric_attr,
        nic: *mut fid_nic,
    }
}
