//! Whether a generic struct has padding depends on its parameters.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Pair<T> {
    first: T,
    second: T,
}

fn main() {}
