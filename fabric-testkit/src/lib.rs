//! Tests for fabric providers: for those of Pelago, and for new ones.
//!
//! * [`mod@conformance`] contains the contract of [`Provider`](pelago_fabric::Provider) as tests. A provider
//!   describes how it opens a group of endpoints, and the macro [`conformance!`] generates a test for every
//!   rule.
//! * [`template`] is the smallest provider that fulfils the contract, to start a new one from.
//! * [`fake_libfabric`] is a library with the interface of libfabric, with the requirements of networks that
//!   no test machine has.
//!
//! `docs/adding.md` lists the steps that add a provider.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod fake_libfabric;
pub mod template;
