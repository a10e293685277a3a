//! Messages of the runtime that make no sense.

use crate::Spmd;
use crate::sim::SimParams;

#[test]
fn messages_that_make_no_sense_are_refused() {
    let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
        let region_bytes = world.core().memory.region_bytes() as u64;
        let receive = |purpose: u8, code: u16, words: &[u64], tail: &[u8]| {
            let header = u64::from(purpose) << 56 | u64::from(code) << 32 | 77;
            let payload: Vec<u8> =
                tail.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
            world.core().receiver()(1 - world.my_pe(), header, &payload)
        };
        let entry = |offset: u64, bytes: u64| offset | bytes << 48;
        let (data, outside) = ([0; 8], entry(region_bytes - 7, 8));
        let twice = [entry(4096, 8) | 1 << 63, 8 | 2 << 48];
        let never = [entry(4096, 8) | 1 << 63, 8];
        let far = [entry(4096, 8) | 1 << 63, region_bytes | 2 << 48];
        let longest = [entry(4096, 32767) | 1 << 63, 1 | 0xFFFF << 48];
        let refused = [
            receive(0, 0, &[], &[]),
            receive(8, 0, &[], &[]),
            receive(10, 4, &[], &[]),
            receive(13, 0, &[], &[]),
            receive(3, 1, &[], &data),
            receive(3, 1, &[entry(4096, 8)], &data[..7]),
            receive(3, 1, &[entry(4096, 4)], &data),
            receive(3, 2, &[entry(4096, 8)], &data),
            receive(3, 1, &[entry(4096, 0)], &[]),
            receive(3, 1, &[outside], &data),
            receive(3, 2, &twice, &data),
            receive(3, 1, &twice[..1], &data),
            receive(3, 2, &never, &[]),
            receive(3, 2, &far, &[0; 16]),
            receive(4, 1, &[outside], &[]),
            receive(4, 0, &[entry(4096, 8)], &[]),
            receive(4, 1, &[entry(4096, 8)], &data),
            receive(4, 2, &longest, &[]),
            receive(4, 1, &[], &data[..7]),
            receive(5, 0, &[], &[]),
            receive(2, 0, &[0], &[]),
        ];
        // Three arguments that are missing, and flags that no PE sends.
        assert!(world.core().note_active(0, 3 << 48, &[]).is_none());
        assert!(world.core().note_active(0, 31 << 48, &[]).is_none());
        let nothing_noted = world.core().outbox.is_empty();
        (refused.iter().position(Option::is_some), nothing_noted)
    });
    assert_eq!(outcome.unwrap(), [(None, true); 2]);
}
