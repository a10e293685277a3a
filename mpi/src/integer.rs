//! Handles as integers.
