//! A reference means nothing to a peer, and its bytes may not be any bytes.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Borrowing {
    name: &'static u8,
    id: u64,
}

fn main() {}
