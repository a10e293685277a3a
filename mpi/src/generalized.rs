//! Generalised requests.
