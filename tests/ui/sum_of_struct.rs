//! Operations by name are those of numbers; a struct is combined by a function.

#[derive(Clone, Copy, pelago::Element)]
#[repr(C)]
struct Pair(f64, f64);

fn main() {
    pelago::spmd(1, |world| {
        world.team().sum(Pair(1.0, 2.0)).unwrap();
    })
    .unwrap();
}
