//! A reference is meaningless to a peer, and not all bytes are a valid reference.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Borrowing {
    name: &'static u8,
    id: u64,
}

fn main() {}
