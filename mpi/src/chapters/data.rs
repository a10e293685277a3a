//! Memory for data that are packed, or received to be unpacked.
//!
//! Long pieces are used again: the C library gives the memory of long blocks back to the system when they are
//! freed, and each page that is touched afterwards costs a fault.
//!
//! Invariant: all bytes are initialised; a piece that is used again has the bytes of an earlier use.

use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Shorter pieces are not kept.
const KEPT_BYTES_MIN: usize = 16 << 10;
/// Longer ones are not kept, nor more than this number of pieces.
const KEPT_BYTES_MAX: usize = 4 << 20;
const KEPT: usize = 4;

static SPARE: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

/// A piece of memory.
#[derive(Debug)]
pub struct Data {
    memory: Box<[u8]>,
    bytes: usize,
}

impl Data {
    /// A piece of this length, with any contents.
    pub fn new(bytes: usize) -> Data {
        let spare = if bytes < KEPT_BYTES_MIN { None } else { take_spare(bytes) };
        Data { memory: spare.unwrap_or_else(|| vec![0; bytes].into_boxed_slice()), bytes }
    }
}

/// The shortest spare piece that is long enough.
fn take_spare(bytes: usize) -> Option<Box<[u8]>> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let fitting = spare.iter().enumerate().filter(|(_, memory)| memory.len() >= bytes);
    let (at, _) = fitting.min_by_key(|(_, memory)| memory.len())?;
    Some(spare.swap_remove(at))
}

impl Drop for Data {
    fn drop(&mut self) {
        if (KEPT_BYTES_MIN..=KEPT_BYTES_MAX).contains(&self.memory.len()) {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            spare.push(take(&mut self.memory));
            if spare.len() > KEPT {
                spare.remove(0);
            }
        }
    }
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.bytes]
    }
}

impl DerefMut for Data {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pieces_are_used_again_and_few_are_kept() {
        let mut first = Data::new(40_000);
        first.fill(7);
        let place = first.as_ptr();
        drop(first);
        let second = Data::new(30_000);
        assert_eq!((second.as_ptr(), second.len()), (place, 30_000));
        drop(second);
        drop((0..2 * KEPT).map(|_| Data::new(KEPT_BYTES_MIN)).collect::<Vec<_>>());
        drop(Data::new(KEPT_BYTES_MAX + 1));
        let spare = SPARE.lock().unwrap();
        assert!(spare.len() <= KEPT && spare.iter().all(|memory| memory.len() <= KEPT_BYTES_MAX));
    }

    #[test]
    fn short_pieces_are_zero() {
        assert!(Data::new(100).iter().all(|&byte| byte == 0) && Data::new(0).is_empty());
    }
}
