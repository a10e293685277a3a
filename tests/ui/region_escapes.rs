//! A region does not leave its scope.

fn main() {
    pelago::spmd(1, |world| {
        let region = world.scope(|scope| scope.region());
        region.wait();
    })
    .unwrap();
}
