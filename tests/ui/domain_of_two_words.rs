//! There is no atomic domain of numbers that are wider than a word.

fn main() {
    pelago::spmd(1, |world| {
        let team = world.team();
        let _ = team.atomic_domain::<num_complex::Complex<f64>>(pelago::AtomicOp::Add);
    })
    .unwrap();
}
