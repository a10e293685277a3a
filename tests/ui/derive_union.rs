//! It is not known which field of a union a peer wrote last.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
union Either {
    whole: u64,
    part: u32,
}

fn main() {}
