//! A pointer to shared numbers of one type does not point to numbers of another type, unless it is cast.

use pelago::upc::BlockSize;

fn main() {
    pelago::spmd(1, |world| {
        let words = world.shared_array::<u32>(4, BlockSize::Cyclic).unwrap();
        let bytes = world.shared_array::<u8>(4, BlockSize::Cyclic).unwrap();
        bytes.index_of(words.pointer(0).unwrap()).unwrap();
    })
    .unwrap();
}
