//! Three bytes of padding after `flag` would be read uninitialised by a peer.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Gap {
    flag: u8,
    count: u32,
}

fn main() {}
