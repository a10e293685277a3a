//! Fuzzing without an instrumenting compiler: inputs that are mutated from examples by a seed are passed to a
//! function that must accept any input.
//!
//! The tests run a few thousand inputs in the quick tier, and `PELAGO_FUZZ_INPUTS` inputs in the deep tier
//! (`cargo xtask test --deep`). A failure prints the seed of the input; `PELAGO_FUZZ_SEED` repeats that input
//! alone. The mutations are those of M. Zalewski's afl-fuzz: flipped bits, bytes, boundary values, and blocks
//! that are deleted, duplicated or spliced from another example.

use std::ops::Range;

/// The number of inputs of a test in the quick tier.
const INPUTS: u64 = 20_000;
/// The maximum number of mutations of one example.
const CHANGES_MAX: usize = 8;
/// The maximum length of an input, in bytes.
const BYTES_MAX: usize = 4096;

/// Passes mutated examples to a function; if it panics, the seed of the input is printed.
#[allow(dead_code, reason = "one crate has only inputs that take long")]
pub fn fuzz<E: AsRef<[u8]>>(examples: &[E], take: impl FnMut(&[u8])) {
    fuzz_with(1, examples, take);
}

/// The same, for inputs that take `cost` times as long as others; the number of inputs is divided by `cost`.
pub fn fuzz_with<E: AsRef<[u8]>>(cost: u64, examples: &[E], mut take: impl FnMut(&[u8])) {
    let seeds = seeds();
    let last = if seeds.end - seeds.start == 1 { seeds.end } else { (seeds.end / cost).max(INPUTS / cost) };
    for seed in seeds.start..last {
        let input = Dice(seed).input(examples);
        let said = Said { seed, input: &input };
        take(&input);
        std::mem::forget(said);
    }
}

/// The seeds of the inputs.
fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("PELAGO_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PELAGO_FUZZ_INPUTS").unwrap_or(INPUTS),
    }
}

/// Prints the input when it is dropped by a panic.
struct Said<'a> {
    seed: u64,
    input: &'a [u8],
}

impl Drop for Said<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(self.input);
        eprintln!("the input of PELAGO_FUZZ_SEED={}: {:02x?}, as text {text:?}", self.seed, self.input);
    }
}

/// Pseudo-random numbers: splitmix64 (Steele, Lea, Flood 2014).
pub struct Dice(pub u64);

impl Dice {
    /// A number of 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A random element of a slice.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    fn input<E: AsRef<[u8]>>(&mut self, examples: &[E]) -> Vec<u8> {
        let mut input = self.pick(examples).as_ref().to_vec();
        for _ in 0..self.below(CHANGES_MAX + 1) {
            self.change(&mut input, examples);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change<E: AsRef<[u8]>>(&mut self, input: &mut Vec<u8>, examples: &[E]) {
        let (at, length) = (self.below(input.len()), self.below(16));
        let block = at..(at + length).min(input.len());
        match self.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            1 if !input.is_empty() => input[at] = self.next() as u8,
            2 => input.insert(at, self.next() as u8),
            3 => drop(input.drain(block)),
            4 => {
                let copy = input[block].to_vec();
                input.splice(at..at, copy);
            }
            5 => input.truncate(at),
            6 => {
                let other = self.pick(examples).as_ref();
                let from = self.below(other.len());
                input.splice(block, other[from..].iter().copied().take(length));
            }
            7 => {
                // A boundary value, in binary.
                let limits =
                    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 1 << 31, 1 << 48, u64::MAX >> 1, u64::MAX];
                let bytes = self.pick(&limits).to_le_bytes();
                let width = 1 << self.below(4);
                let end = (at + width).min(input.len());
                input.splice(at..end, bytes[..width].iter().copied());
            }
            _ => {
                // A boundary value, in digits.
                let words = [
                    "0",
                    "-1",
                    "1e999",
                    "18446744073709551615",
                    "18446744073709551616",
                    "-9223372036854775809",
                ];
                input.splice(block, self.pick(&words).bytes());
            }
        }
    }
}
