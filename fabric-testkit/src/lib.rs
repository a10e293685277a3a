//! Tests for fabric providers: for those of Pelago, and for yours.
//!
//! * [`mod@conformance`] is the contract of [`Provider`](pelago_fabric::Provider) as tests. Describe how your
//!   provider opens a group of endpoints, and the macro [`conformance!`] makes a test of every rule.
//! * [`template`] is the smallest provider that keeps the contract. Start from it.
//! * [`fake_libfabric`] is a library that looks like libfabric, with the demands of networks that no test
//!   machine has.
//!
//! `docs/adding.md` lists the steps that add a provider.

pub mod conformance;
pub mod fake_libfabric;
pub mod template;
