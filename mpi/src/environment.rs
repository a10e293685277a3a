//! Error classes and codes, and what else is asked of the environment.
