//! A fake libfabric: the functions of `libfabric.so.1` that the provider `ofi` uses, on top of a network that
//! is simulated inside one process.
//!
//! Tests use it in place of libfabric. Its providers `like-verbs`, `like-cxi` and `like-efa`
//! (`offer/profile.rs`) have the requirements of networks that no test machine has. `plain` has no
//! requirements. `null` moves no data; it is used for counting instructions. The providers check that callers
//! meet these requirements: where real hardware delivers wrong data or crashes, the fake library reports an
//! error with a message. With `FI_LOG_LEVEL=warn` it prints each error on standard error.
//!
//! There are two ways to use it:
//! * [`install`] registers the library inside the calling program under its [`NAME`], which `Choice::library`
//!   and `PELAGO_OFI_LIBRARY` then accept in place of a path. No file is needed. A process that a test starts
//!   has to call it too.
//! * `cargo build -p pelago-fabric-testkit --example fake_libfabric` builds it as a shared library, for
//!   programs that do not use this crate.
//!
//! Invariant: the library gives the guarantees of the manual pages of libfabric 1.17 and no others. Where
//! they leave the order or the time open, the library chooses the latest possible one: writes overtake each
//! other, local buffers are read when the data move. One mutex protects all state (`world.rs`), so that any
//! thread may call. Objects are never freed: if one is used after it was closed, the process ends with an
//! error message.

mod address;
mod atomic;
mod buffer;
mod completion;
mod context;
mod counter;
mod domain;
mod endpoint;
mod engine;
mod fabric;
mod fault;
mod message;
mod null;
mod object;
mod offer;
mod operation;
mod queue;
mod receive;
mod refusal;
mod region;
mod rma;
mod wait;
mod world;

use libc::c_int;
use offer::{info, profile, text};
use pelago_fabric::ofi::sys::FI_VERSION;
use pelago_fabric::ofi::{Functions, Library};

/// The name of the library inside a program that has [installed](install) it.
pub const NAME: &str = "fake_libfabric";

/// The functions that libfabric exports.
pub const FUNCTIONS: Functions = Functions {
    fi_version,
    fi_getinfo: offer::matching::fi_getinfo,
    fi_freeinfo: info::fi_freeinfo,
    fi_dupinfo: info::fi_dupinfo,
    fi_fabric: fabric::fi_fabric,
    fi_strerror: text::fi_strerror,
    fi_tostr_r: text::fi_tostr_r,
};

/// Registers the library inside this program under its [`NAME`], and opens it.
///
/// ```
/// use pelago_fabric::ofi::{Choice, Ofi};
/// use pelago_fabric::{Provider, Secret};
/// use pelago_fabric_testkit::fake_libfabric;
///
/// let library = fake_libfabric::install();
/// let library = Some(library.path().to_owned());
/// let choice = Choice { library, providers: vec!["like-verbs".to_owned()], ..Choice::default() };
/// let endpoint = Ofi::open(0, 1, &choice, Secret::draw()?)?;
/// assert!(endpoint.description().contains("like-verbs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn install() -> &'static Library {
    // SAFETY: the functions are those of this library, which behave as the manual pages specify.
    unsafe { Library::built_in(NAME, FUNCTIONS) }
}

/// A network card, which is a domain of every provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkCard {
    /// The type of its network: `InfiniBand` or `Ethernet` for instance.
    pub network: &'static str,
    /// Its speed in bits per second.
    pub speed: usize,
    /// The number of the device in its PCI address.
    pub device: u8,
    /// The protocol of its endpoints.
    pub protocol: u32,
}

/// Gives the machine these network cards from now on. At first it has one, which no offer describes.
pub fn set_cards(cards: &[NetworkCard]) {
    world::world().cards = cards.to_vec();
}

/// From now on `fi_getinfo`, `fi_fabric` and `fi_endpoint` let the process ignore one of these signals each,
/// in this order, as some providers replace handlers.
pub fn set_ignored(signals: [c_int; 3]) {
    world::world().ignored = Some(signals);
}

/// The access (`FI_READ` and so on) for which a place in memory is registered, in any domain.
pub fn access_to(place: *const u8) -> u64 {
    region::access_to(&world::world(), place.addr())
}

/// The version of libfabric whose interface this library has.
const VERSION: u32 = FI_VERSION(1, 17);

extern "C" fn fi_version() -> u32 {
    VERSION
}
