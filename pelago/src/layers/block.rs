//! Blocks that other PEs announce.

use crate::Spmd;

#[test]
fn a_block_outside_its_pool_ends_the_job_in_words() {
    for (offset, bytes) in [(0, 4096), (1 << 40, 1), (usize::MAX & !4095, 1 << 20), (1, 1)] {
        let outcome = Spmd::new(2).run(|world| {
            if world.my_pe() == 0 {
                let start = world.core().memory.heap_bytes();
                assert_eq!(world.core().checked_block(1, start, 4096), start);
                let offset = if offset == 1 { start + 1 } else { offset };
                world.core().checked_block(1, offset, bytes);
            }
            world.barrier();
        });
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains("PE 0: PE 1 has announced a block of"), "{said}");
    }
}
