//! Tests of several processes, as easy as unit tests.
