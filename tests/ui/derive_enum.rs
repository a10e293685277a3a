//! A peer could write a number that is no variant.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
enum State {
    Idle,
    Busy,
}

fn main() {}
