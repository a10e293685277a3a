//! Rules of atomics, for the types that a provider's fabric executes.

use super::group::Group;
use super::{Harness, KEY};
use pelago_fabric::{Amo, Atomic, AtomicKind, AtomicOp, Completion, Completions, Pe, Provider, Remote};

/// The offset of the word under test, between two neighbours.
const WORD_BYTES_FROM_START: usize = 72;

impl<P: Provider> Group<P> {
    /// A pointer to the 64 bits at this offset of a PE's region.
    fn word_at(&self, pe: Pe, offset_bytes: usize) -> *mut u64 {
        // SAFETY: the tests use the first bytes of a region of 3 MiB.
        unsafe { self.regions[pe].as_ptr().add(offset_bytes).cast() }
    }

    /// Executes an atomic and waits until it is complete; returns the fetched value, in the low bytes of a
    /// pattern.
    fn execute(&self, from: Pe, to: Pe, offset_bytes: usize, atomic: &Atomic, fetching: bool) -> u64 {
        let mut fetched = u64::MAX;
        let place = if fetching { (&raw mut fetched).cast() } else { std::ptr::null_mut() };
        let (endpoint, word) = (&self.endpoints[from], Remote { key: KEY, offset_bytes });
        let before = endpoint.completions();
        // SAFETY: the place outlives the wait below; the word lies in the region and is aligned.
        self.accepted(|| unsafe {
            endpoint.atomic(Amo {
                pe: to,
                word,
                atomic: *atomic,
                fetched: place,
                completion: Completion::Counted,
            })
        });
        let expected =
            Completions { puts: before.puts + u64::from(!fetching), gets: before.gets + u64::from(fetching) };
        self.until(|| endpoint.completions() == expected, "an atomic to complete, as a get if it fetches");
        fetched
    }
}

/// Test values for signs, carries and equality; small numbers for floats.
fn values(kind: AtomicKind) -> [u64; 4] {
    match kind {
        AtomicKind::F32 => [0.0f32, -1.5, 3.25, f32::INFINITY].map(|x| x.to_bits().into()),
        AtomicKind::F64 => [0.0f64, -1.5, 3.25, f64::INFINITY].map(f64::to_bits),
        AtomicKind::ComplexF32 => [[0.0f32, 0.0], [-1.5, 0.25], [0.0, 3.25], [1e30, -7.0]].map(|[re, im]| {
            let mut parts = [0; 8];
            parts[..4].copy_from_slice(&re.to_ne_bytes());
            parts[4..].copy_from_slice(&im.to_ne_bytes());
            u64::from_ne_bytes(parts)
        }),
        _ => [0, 0x5A5A_1234_8765_4321, 0xFFFF_FFFF_FFFF_FFFD, 0x8000_0000_8000_8080],
    }
}

/// Every atomic that the provider executes has the effect and the result of `Atomic::next`.
pub fn every_atomic_does_what_the_model_says<H: Harness>() {
    let group = H::open(2);
    let neighbour = 0x0123_4567_89AB_CDEF;
    let mut turn = 0;
    for kind in AtomicKind::ALL.into_iter().filter(|kind| group.endpoints[0].executes(*kind)) {
        for op in AtomicOp::ALL.into_iter().filter(|op| op.is_defined_for(kind)) {
            for fetching in [false, true] {
                turn += 1;
                let [old, operand, compare] = [turn, turn / 4 + 1, turn / 3].map(|i| values(kind)[i % 4]);
                let atomic = Atomic { kind, op, operand, compare };
                let bits = 8 * kind.bytes();
                let mask = u64::MAX >> (64 - bits);
                let at = WORD_BYTES_FROM_START + turn % (8 / kind.bytes()) * kind.bytes();
                let shift = 8 * (at - WORD_BYTES_FROM_START);
                let place = group.word_at(1, WORD_BYTES_FROM_START);
                let around = neighbour & !(mask << shift);
                // SAFETY: one thread drives all endpoints, and no operation is outstanding.
                unsafe {
                    place.sub(1).write(neighbour);
                    place.write(around | (old & mask) << shift);
                    place.add(1).write(neighbour);
                }
                let fetched = group.execute(0, 1, at, &atomic, fetching);
                let expected = if fetching { !mask | (old & mask) } else { u64::MAX };
                assert_eq!(fetched, expected, "what {atomic:?} on {old:#x} fetches");
                let next = atomic.next(old & mask).unwrap_or(old) & mask;
                // SAFETY: one thread drives all endpoints, and the atomic is complete.
                let after = unsafe { [place.sub(1).read(), place.read(), place.add(1).read()] };
                assert_eq!(after, [neighbour, around | next << shift, neighbour], "{atomic:?} on {old:#x}");
            }
        }
    }
}

/// All updates of one word by several PEs take effect, each on a different value.
pub fn no_update_of_several_pes_is_lost<H: Harness>() {
    const ROUNDS: usize = 40;
    let group = H::open(3);
    if !group.endpoints[0].executes(AtomicKind::U64) {
        return;
    }
    let add = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let word = Remote { key: KEY, offset_bytes: 64 };
    let mut old = vec![u64::MAX; 3 * ROUNDS];
    let places: Vec<*mut u8> = old.iter_mut().map(|place| (&raw mut *place).cast()).collect();
    for round in 0..ROUNDS {
        for (pe, endpoint) in group.endpoints.iter().enumerate() {
            let place = places[round * 3 + pe];
            // SAFETY: the places outlive the wait below; the word lies in the region and is aligned.
            group.accepted(|| unsafe {
                endpoint.atomic(Amo {
                    pe: 0,
                    word,
                    atomic: add,
                    fetched: place,
                    completion: Completion::Counted,
                })
            });
            // SAFETY: nothing is fetched; the word lies in the region and is aligned.
            group.accepted(|| unsafe {
                endpoint.atomic(Amo {
                    pe: 0,
                    word,
                    atomic: add,
                    fetched: std::ptr::null_mut(),
                    completion: Completion::Counted,
                })
            });
        }
    }
    let all = Completions { puts: ROUNDS as u64, gets: ROUNDS as u64 };
    group.until(|| group.endpoints.iter().all(|e| e.completions() == all), "all updates to complete");
    // SAFETY: one thread drives all endpoints, and all atomics are complete.
    assert_eq!(unsafe { group.word_at(0, 64).read() }, 6 * ROUNDS as u64);
    old.sort_unstable();
    assert!(old.windows(2).all(|pair| pair[0] < pair[1]), "two updates fetched the same value: {old:?}");
}
