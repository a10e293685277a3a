//! Without a `repr` the compiler may choose any order of the fields.

#[derive(Clone, Copy, pelago::Element)]
struct Loose {
    x: f64,
    y: f64,
}

fn main() {}
