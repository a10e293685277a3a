//! The target of a non-blocking strided get is in use until its scope ends.

use pelago::Strided;

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let mut target = [0; 4];
        world.scope(|scope| {
            scope.get_strided(&array, 0, 0, &mut target, &Strided::elements(4)).unwrap();
            assert_eq!(target[0], 0);
        });
    })
    .unwrap();
}
