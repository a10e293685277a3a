//! How commands show results: tables as text, line charts as SVG, pages that need no other file, numbers and
//! sizes for people.
//!
//! Invariant: nothing here depends on the origin of a result, nor on another crate.

mod bytes;
pub mod chart;
pub mod check;
pub mod page;
mod table;

pub use bytes::Bytes;
pub use chart::escape;
pub use page::{document, figure_of};
pub use table::{Cells, Table, figure, joined};
