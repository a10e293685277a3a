//! A `bool` has two bit patterns; a peer may write any of 256.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Flags {
    ready: bool,
}

fn main() {}
