//! The tools interface.
