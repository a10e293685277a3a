//! Constants of libfabric: capability bits, flags of operations, modes, orders, formats, errors.
//!
//! Invariant: one group a kind, of the C type of the field or argument that takes them. Source:
//! `rdma/fabric.h`, `fi_domain.h`, `fi_eq.h`, `fi_endpoint.h`, `fi_atomic.h` and `fi_errno.h` of libfabric
//! 1.17. Formats of addresses, and what newer headers add, are named by the library itself (`Library::text`).

use super::layout::constants;
use super::{
    fi_addr_t, fi_av_type, fi_bus_type, fi_cntr_events, fi_cq_format, fi_cq_wait_cond, fi_datatype,
    fi_ep_type, fi_hmem_iface, fi_link_state, fi_op, fi_progress, fi_resource_mgmt, fi_threading,
    fi_wait_obj,
};
use libc::c_int;

/// A version number, as `fi_getinfo` takes and `fi_version` returns it.
#[expect(non_snake_case, reason = "the name is that of the C macro")]
pub const fn FI_VERSION(major: u32, minor: u32) -> u32 {
    (major << 16) | minor
}

/// The type of the argument of `fi_tostr`: `enum fi_type`.
pub type fi_type = libc::c_uint;

constants! {
    /// A capability of an endpoint or a domain (`fi_info.caps`); some are flags of operations too.
    u64 {
        FI_MSG = 1 << 1;
        FI_RMA = 1 << 2;
        FI_TAGGED = 1 << 3;
        FI_ATOMIC = 1 << 4;
        FI_MULTICAST = 1 << 5;
        FI_COLLECTIVE = 1 << 6;
        FI_READ = 1 << 8;
        FI_WRITE = 1 << 9;
        FI_RECV = 1 << 10;
        FI_SEND = 1 << 11;
        FI_TRANSMIT = FI_SEND;
        FI_REMOTE_READ = 1 << 12;
        FI_REMOTE_WRITE = 1 << 13;
        FI_MULTI_RECV = 1 << 16;
        FI_TRIGGER = 1 << 20;
        FI_FENCE = 1 << 21;
        FI_HMEM = 1 << 47;
        FI_RMA_PMEM = 1 << 49;
        FI_SOURCE_ERR = 1 << 50;
        FI_LOCAL_COMM = 1 << 51;
        FI_REMOTE_COMM = 1 << 52;
        FI_SHARED_AV = 1 << 53;
        FI_RMA_EVENT = 1 << 56;
        FI_SOURCE = 1 << 57;
        FI_NAMED_RX_CTX = 1 << 58;
        FI_DIRECTED_RECV = 1 << 59;
    }
    /// A flag of an operation, of its completion, or of a binding.
    u64 {
        FI_REMOTE_CQ_DATA = 1 << 17;
        FI_MORE = 1 << 18;
        FI_PEEK = 1 << 19;
        FI_COMPLETION = 1 << 24;
        FI_EVENT = FI_COMPLETION;
        FI_INJECT = 1 << 25;
        FI_INJECT_COMPLETE = 1 << 26;
        FI_TRANSMIT_COMPLETE = 1 << 27;
        FI_DELIVERY_COMPLETE = 1 << 28;
        FI_AFFINITY = 1 << 29;
        FI_COMMIT_COMPLETE = 1 << 30;
        FI_MATCH_COMPLETE = 1 << 31;
        FI_SELECTIVE_COMPLETION = 1 << 59;
        FI_CLAIM = 1 << 59;
        FI_DISCARD = 1 << 58;
        FI_FETCH_ATOMIC = 1 << 58;
        FI_COMPARE_ATOMIC = 1 << 59;
    }
    /// A flag of `fi_getinfo`, of an address vector or of a memory region.
    u64 {
        FI_PROV_ATTR_ONLY = 1 << 54;
        FI_NUMERICHOST = 1 << 55;
        FI_SYMMETRIC = 1 << 59;
        FI_SYNC_ERR = 1 << 58;
        FI_HMEM_HOST_ALLOC = 1 << 45;
        FI_HMEM_DEVICE_ONLY = 1 << 46;
    }
    /// A mode bit: a duty of the application (`fi_info.mode`).
    u64 {
        FI_CONTEXT = 1 << 59;
        FI_MSG_PREFIX = 1 << 58;
        FI_ASYNC_IOV = 1 << 57;
        FI_RX_CQ_DATA = 1 << 56;
        FI_LOCAL_MR = 1 << 55;
        FI_CONTEXT2 = 1 << 52;
    }
    /// An order of messages, of remote memory accesses or of completions (`msg_order`, `comp_order`).
    u64 {
        FI_ORDER_NONE = 0;
        FI_ORDER_RAR = 1 << 0;
        FI_ORDER_RAW = 1 << 1;
        FI_ORDER_RAS = 1 << 2;
        FI_ORDER_WAR = 1 << 3;
        FI_ORDER_WAW = 1 << 4;
        FI_ORDER_WAS = 1 << 5;
        FI_ORDER_SAR = 1 << 6;
        FI_ORDER_SAW = 1 << 7;
        FI_ORDER_SAS = 1 << 8;
        FI_ORDER_STRICT = 0x1ff;
        FI_ORDER_DATA = 1 << 16;
        FI_ORDER_RMA_RAR = 1 << 32;
        FI_ORDER_RMA_RAW = 1 << 33;
        FI_ORDER_RMA_WAR = 1 << 34;
        FI_ORDER_RMA_WAW = 1 << 35;
        FI_ORDER_ATOMIC_RAR = 1 << 36;
        FI_ORDER_ATOMIC_RAW = 1 << 37;
        FI_ORDER_ATOMIC_WAR = 1 << 38;
        FI_ORDER_ATOMIC_WAW = 1 << 39;
    }
    /// No memory key.
    u64 { FI_KEY_NOTAVAIL = u64::MAX; }
    /// Any peer, or none.
    fi_addr_t {
        FI_ADDR_UNSPEC = u64::MAX;
        FI_ADDR_NOTAVAIL = u64::MAX;
    }
    /// A count of contexts that stands for a shared one.
    usize { FI_SHARED_CONTEXT = usize::MAX; }
    /// A duty of the application that concerns memory regions (`fi_domain_attr.mr_mode`).
    c_int {
        FI_MR_UNSPEC = 0;
        FI_MR_BASIC = 1;
        FI_MR_SCALABLE = 2;
        FI_MR_LOCAL = 1 << 2;
        FI_MR_RAW = 1 << 3;
        FI_MR_VIRT_ADDR = 1 << 4;
        FI_MR_ALLOCATED = 1 << 5;
        FI_MR_PROV_KEY = 1 << 6;
        FI_MR_MMU_NOTIFY = 1 << 7;
        FI_MR_RMA_EVENT = 1 << 8;
        FI_MR_ENDPOINT = 1 << 9;
        FI_MR_HMEM = 1 << 10;
        FI_MR_COLLECTIVE = 1 << 11;
    }
    /// A format of addresses (`fi_info.addr_format`).
    u32 {
        FI_FORMAT_UNSPEC = 0;
        FI_SOCKADDR = 1;
        FI_SOCKADDR_IN = 2;
        FI_SOCKADDR_IN6 = 3;
        FI_SOCKADDR_IB = 4;
        FI_ADDR_STR = 9;
    }
    /// A type of endpoint.
    fi_ep_type {
        FI_EP_UNSPEC = 0;
        FI_EP_MSG = 1;
        FI_EP_DGRAM = 2;
        FI_EP_RDM = 3;
    }
    /// A type of bus.
    fi_bus_type {
        FI_BUS_UNSPEC = 0;
        FI_BUS_PCI = 1;
    }
    /// The state of a link.
    fi_link_state {
        FI_LINK_UNKNOWN = 0;
        FI_LINK_DOWN = 1;
        FI_LINK_UP = 2;
    }
    /// A type of address vector.
    fi_av_type {
        FI_AV_UNSPEC = 0;
        FI_AV_MAP = 1;
        FI_AV_TABLE = 2;
    }
    /// A progress model.
    fi_progress {
        FI_PROGRESS_UNSPEC = 0;
        FI_PROGRESS_AUTO = 1;
        FI_PROGRESS_MANUAL = 2;
    }
    /// A threading level.
    fi_threading {
        FI_THREAD_UNSPEC = 0;
        FI_THREAD_SAFE = 1;
        FI_THREAD_FID = 2;
        FI_THREAD_DOMAIN = 3;
        FI_THREAD_COMPLETION = 4;
        FI_THREAD_ENDPOINT = 5;
    }
    /// Whether the provider keeps queues from overrunning.
    fi_resource_mgmt {
        FI_RM_UNSPEC = 0;
        FI_RM_DISABLED = 1;
        FI_RM_ENABLED = 2;
    }
    /// A format of the entries of a completion queue.
    fi_cq_format {
        FI_CQ_FORMAT_UNSPEC = 0;
        FI_CQ_FORMAT_CONTEXT = 1;
        FI_CQ_FORMAT_MSG = 2;
        FI_CQ_FORMAT_DATA = 3;
        FI_CQ_FORMAT_TAGGED = 4;
    }
    /// A type of wait object.
    fi_wait_obj {
        FI_WAIT_NONE = 0;
        FI_WAIT_UNSPEC = 1;
        FI_WAIT_SET = 2;
        FI_WAIT_FD = 3;
        FI_WAIT_MUTEX_COND = 4;
        FI_WAIT_YIELD = 5;
        FI_WAIT_POLLFD = 6;
    }
    /// A condition that ends a wait for a completion queue.
    fi_cq_wait_cond {
        FI_CQ_COND_NONE = 0;
        FI_CQ_COND_THRESHOLD = 1;
    }
    /// The events that a counter counts.
    fi_cntr_events { FI_CNTR_EVENTS_COMP = 0; }
    /// The interface of a region's memory.
    fi_hmem_iface {
        FI_HMEM_SYSTEM = 0;
        FI_HMEM_CUDA = 1;
        FI_HMEM_ROCR = 2;
        FI_HMEM_ZE = 3;
        FI_HMEM_NEURON = 4;
        FI_HMEM_SYNAPSEAI = 5;
    }
    /// A type of data of an atomic.
    fi_datatype {
        FI_INT8 = 0;
        FI_UINT8 = 1;
        FI_INT16 = 2;
        FI_UINT16 = 3;
        FI_INT32 = 4;
        FI_UINT32 = 5;
        FI_INT64 = 6;
        FI_UINT64 = 7;
        FI_FLOAT = 8;
        FI_DOUBLE = 9;
        FI_FLOAT_COMPLEX = 10;
        FI_DOUBLE_COMPLEX = 11;
        FI_LONG_DOUBLE = 12;
        FI_LONG_DOUBLE_COMPLEX = 13;
        FI_INT128 = 14;
        FI_UINT128 = 15;
        FI_VOID = 256;
    }
    /// An operation of an atomic.
    fi_op {
        FI_MIN = 0;
        FI_MAX = 1;
        FI_SUM = 2;
        FI_PROD = 3;
        FI_LOR = 4;
        FI_LAND = 5;
        FI_BOR = 6;
        FI_BAND = 7;
        FI_LXOR = 8;
        FI_BXOR = 9;
        FI_ATOMIC_READ = 10;
        FI_ATOMIC_WRITE = 11;
        FI_CSWAP = 12;
        FI_CSWAP_NE = 13;
        FI_CSWAP_LE = 14;
        FI_CSWAP_LT = 15;
        FI_CSWAP_GE = 16;
        FI_CSWAP_GT = 17;
        FI_MSWAP = 18;
        FI_NOOP = 256;
    }
    /// A command of `fi_control`.
    c_int {
        FI_GETFIDFLAG = 0;
        FI_SETFIDFLAG = 1;
        FI_GETOPSFLAG = 2;
        FI_SETOPSFLAG = 3;
        FI_ALIAS = 4;
        FI_GETWAIT = 5;
        FI_ENABLE = 6;
        FI_REFRESH = 14;
        FI_GETWAITOBJ = 16;
    }
    /// A level of options, or an option of an endpoint.
    c_int {
        FI_OPT_ENDPOINT = 0;
        FI_OPT_MIN_MULTI_RECV = 0;
        FI_OPT_CM_DATA_SIZE = 1;
        FI_OPT_BUFFERED_MIN = 2;
        FI_OPT_BUFFERED_LIMIT = 3;
        FI_OPT_SEND_BUF_SIZE = 4;
        FI_OPT_RECV_BUF_SIZE = 5;
        FI_OPT_TX_SIZE = 6;
        FI_OPT_RX_SIZE = 7;
        FI_OPT_FI_HMEM_P2P = 8;
    }
    /// A type of the argument of `fi_tostr`.
    fi_type {
        FI_TYPE_INFO = 0;
        FI_TYPE_EP_TYPE = 1;
        FI_TYPE_CAPS = 2;
        FI_TYPE_OP_FLAGS = 3;
        FI_TYPE_ADDR_FORMAT = 4;
        FI_TYPE_TX_ATTR = 5;
        FI_TYPE_RX_ATTR = 6;
        FI_TYPE_EP_ATTR = 7;
        FI_TYPE_DOMAIN_ATTR = 8;
        FI_TYPE_FABRIC_ATTR = 9;
        FI_TYPE_THREADING = 10;
        FI_TYPE_PROGRESS = 11;
        FI_TYPE_PROTOCOL = 12;
        FI_TYPE_MSG_ORDER = 13;
        FI_TYPE_MODE = 14;
        FI_TYPE_AV_TYPE = 15;
        FI_TYPE_ATOMIC_TYPE = 16;
        FI_TYPE_ATOMIC_OP = 17;
        FI_TYPE_VERSION = 18;
        FI_TYPE_MR_MODE = 21;
    }
    /// An error; functions return it negated.
    c_int {
        FI_SUCCESS = 0;
        FI_EPERM = libc::EPERM;
        FI_ENOENT = libc::ENOENT;
        FI_EINTR = libc::EINTR;
        FI_EIO = libc::EIO;
        FI_EAGAIN = libc::EAGAIN;
        FI_ENOMEM = libc::ENOMEM;
        FI_EACCES = libc::EACCES;
        FI_EBUSY = libc::EBUSY;
        FI_ENODEV = libc::ENODEV;
        FI_EINVAL = libc::EINVAL;
        FI_EMFILE = libc::EMFILE;
        FI_ENOSPC = libc::ENOSPC;
        FI_ENOSYS = libc::ENOSYS;
        FI_ENOMSG = libc::ENOMSG;
        FI_ENODATA = libc::ENODATA;
        FI_EMSGSIZE = libc::EMSGSIZE;
        FI_ENOPROTOOPT = libc::ENOPROTOOPT;
        FI_EOPNOTSUPP = libc::EOPNOTSUPP;
        FI_EADDRINUSE = libc::EADDRINUSE;
        FI_EADDRNOTAVAIL = libc::EADDRNOTAVAIL;
        FI_ENETDOWN = libc::ENETDOWN;
        FI_ENETUNREACH = libc::ENETUNREACH;
        FI_ECONNABORTED = libc::ECONNABORTED;
        FI_ECONNRESET = libc::ECONNRESET;
        FI_ENOTCONN = libc::ENOTCONN;
        FI_ESHUTDOWN = libc::ESHUTDOWN;
        FI_ETIMEDOUT = libc::ETIMEDOUT;
        FI_ECONNREFUSED = libc::ECONNREFUSED;
        FI_EHOSTDOWN = libc::EHOSTDOWN;
        FI_EHOSTUNREACH = libc::EHOSTUNREACH;
        FI_EREMOTEIO = libc::EREMOTEIO;
        FI_ECANCELED = libc::ECANCELED;
        FI_EKEYREJECTED = libc::EKEYREJECTED;
        FI_EOTHER = 256;
        FI_ETOOSMALL = 257;
        FI_EOPBADSTATE = 258;
        FI_EAVAIL = 259;
        FI_EBADFLAGS = 260;
        FI_ENOEQ = 261;
        FI_EDOMAIN = 262;
        FI_ENOCQ = 263;
        FI_ECRC = 264;
        FI_ETRUNC = 265;
        FI_ENOKEY = 266;
        FI_ENOAV = 267;
        FI_EOVERRUN = 268;
        FI_ENORX = 269;
    }
}
