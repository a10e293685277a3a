//! Processes that are created or found by others: what a job of a fixed size answers.
