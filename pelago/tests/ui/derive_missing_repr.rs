//! Without a `repr` the compiler may order the fields as it likes.

#[derive(Clone, Copy, pelago::Element)]
struct Loose {
    x: f64,
    y: f64,
}

fn main() {}
