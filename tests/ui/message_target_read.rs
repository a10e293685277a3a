//! The target of a receive may be written until the scope ends.

fn main() {
    pelago::spmd(2, |world| {
        let (team, mut target) = (world.team(), [0u8; 4]);
        world.scope(|scope| {
            scope.receive(&team, 1 - world.my_pe(), 0, &mut target).unwrap();
            assert_eq!(target, [0; 4]);
        });
    })
    .unwrap();
}
