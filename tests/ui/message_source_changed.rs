//! The source of a send may be read until the scope ends.

fn main() {
    pelago::spmd(2, |world| {
        let (team, mut source) = (world.team(), [0u8; 4]);
        world.scope(|scope| {
            scope.send(&team, 1 - world.my_pe(), 0, &source).unwrap();
            source[0] = 1;
        });
    })
    .unwrap();
}
