//! Libfabric (OpenFabrics Interfaces), opened at run time.
//!
//! [`Ofi`] is the provider. [`sys`] has the types, constants and inline functions of libfabric's C headers,
//! [`Library`] the functions that the shared library exports, [`query`] the offers of its providers on this
//! machine, [`Survey`] those of them that Pelago can use. Nothing is linked, so the program builds and runs
//! where libfabric is not installed, and uses the library that the cluster has.
//!
//! Invariant: all files use the interface of version 1.17, which newer versions keep: their structures and
//! tables only grow at the end.

mod atomic;
mod card;
mod deliveries;
mod domain;
mod endpoint;
mod environment;
mod handlers;
mod info;
mod library;
mod message;
mod prepared;
mod provider;
pub mod query;
mod region;
mod registration;
mod remote;
mod slots;
mod survey;
pub mod sys;
mod unmapping;

pub use card::Card;
pub use domain::{Choice, usable};
pub use environment::lighten_endpoints;
pub use info::Info;
pub use library::{API_VERSION, Functions, Library, OfiError};
pub use prepared::OfiInject;
pub use provider::Ofi;
pub use survey::{Find, Standing, Survey};
