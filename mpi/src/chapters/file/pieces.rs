//! The pieces of a file that an access goes over, in the order of its data.
//!
//! Reads sieve data (Thakur, Gropp and Lusk 1999): one system call reads small pieces that are near to each
//! other, with what lies between them. Writes have a call for each piece, because bytes between them, which
//! another process may write at the same time, must not be written.
//!
//! Invariant: no call moves bytes that lie outside the file or the access's first and last byte.

use super::system;
use std::fs::File;
use std::io;

/// If there is a gap of at most this number of bytes between two pieces, one call reads both. To copy the gap
/// takes about as long as a second call would.
pub const GAP_BYTES: usize = 4096;
/// One call reads at most this number of bytes, the gaps included. A longer piece has a call of its own.
const SIEVE_BYTES: usize = 64 << 10;

/// A piece: its position in the file, and its bytes.
pub type Piece = (i64, usize);

/// The pieces of an access that are still to be moved.
pub struct Pieces<I> {
    pieces: I,
    /// The rest of a piece.
    rest: Piece,
}

impl<I: Iterator<Item = Piece>> Pieces<I> {
    pub fn new(pieces: I) -> Pieces<I> {
        Pieces { pieces, rest: (0, 0) }
    }

    /// The next piece, which stays; no bytes at the end.
    fn peek(&mut self) -> Piece {
        if self.rest.1 == 0 {
            self.rest = self.pieces.next().unwrap_or((0, 0));
        }
        self.rest
    }

    /// The next piece, or its first bytes if it has more than this number; no bytes at the end.
    fn next(&mut self, bytes: usize) -> Piece {
        let (position, length) = self.peek();
        let taken = length.min(bytes);
        self.rest = (position + taken as i64, length - taken);
        (position, taken)
    }

    /// The next piece, up to a position in the file; `None` if none begins before that.
    pub fn next_before(&mut self, end: i64) -> Option<Piece> {
        let (position, length) = self.peek();
        (length > 0 && position < end).then(|| self.next(usize::try_from(end - position).unwrap_or(length)))
    }

    /// Takes the next pieces that are near enough to each other for one call, up to this number of bytes:
    /// their bytes.
    fn take_near(&mut self, bytes: usize, near: &mut Vec<Piece>) -> usize {
        near.clear();
        let first = self.next(bytes);
        let (mut taken, mut end) = (first.1, first.0 + first.1 as i64);
        near.push(first);
        while taken < bytes {
            let (position, length) = self.peek();
            let is_near = length > 0 && (0..=GAP_BYTES as i64).contains(&(position - end));
            if !is_near || (position - first.0) as usize + length > SIEVE_BYTES {
                break;
            }
            let next = self.next(bytes - taken);
            (taken, end) = (taken + next.1, next.0 + next.1 as i64);
            near.push(next);
        }
        taken
    }

    /// Reads the next bytes: until the end of the file.
    ///
    /// # Safety
    /// There is room for all bytes.
    pub unsafe fn read(&mut self, file: &File, into: *mut u8, bytes: usize) -> io::Result<usize> {
        let (mut near, mut sieve) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < bytes {
            let asked = self.take_near(bytes - done, &mut near);
            let target = into.wrapping_add(done);
            let read = match near[..] {
                // SAFETY: the caller promises room for all bytes.
                [(position, n)] => unsafe { system::read_at(file, position, target, n)? },
                _ => {
                    let (start, (last, n)) = (near[0].0, near[near.len() - 1]);
                    sieve.resize((last - start) as usize + n, 0);
                    // SAFETY: the vector has this length.
                    let n = unsafe { system::read_at(file, start, sieve.as_mut_ptr(), sieve.len())? };
                    // SAFETY: the caller promises room for all bytes, of which these are the next ones.
                    let target = unsafe { std::slice::from_raw_parts_mut(target, asked) };
                    sift(&sieve[..n], &near, target)
                }
            };
            done += read;
            if read < asked || asked == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// Writes the next bytes.
    ///
    /// # Safety
    /// There are as many.
    pub unsafe fn write(&mut self, file: &File, from: *const u8, bytes: usize) -> io::Result<()> {
        let mut done = 0;
        while done < bytes {
            let (position, n) = self.next(bytes - done);
            debug_assert!(n > 0, "the pieces have all bytes of the access");
            // SAFETY: the caller promises all bytes.
            unsafe { system::write_at(file, position, from.wrapping_add(done), n)? };
            done += n;
        }
        Ok(())
    }
}

/// Copies pieces out of what was read from the first one on, and returns their bytes. The end of the file may
/// lie within them.
fn sift(read: &[u8], pieces: &[Piece], into: &mut [u8]) -> usize {
    let mut done = 0;
    for &(position, n) in pieces {
        let there = read.get((position - pieces[0].0) as usize..).unwrap_or_default();
        let there = &there[..n.min(there.len())];
        into[done..done + there.len()].copy_from_slice(there);
        done += there.len();
        if there.len() < n {
            break;
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of<const N: usize>(list: [Piece; N]) -> Pieces<std::array::IntoIter<Piece, N>> {
        Pieces::new(list.into_iter())
    }

    #[test]
    fn pieces_are_cut_at_a_position() {
        let mut pieces = pieces_of([(10, 4), (20, 8)]);
        assert_eq!(pieces.next_before(10), None);
        assert_eq!(pieces.next_before(12), Some((10, 2)));
        assert_eq!(pieces.next_before(12), None);
        assert_eq!(pieces.next_before(24), Some((12, 2)));
        assert_eq!(pieces.next_before(24), Some((20, 4)));
        assert_eq!(pieces.next_before(i64::MAX), Some((24, 4)));
        assert_eq!(pieces.next_before(i64::MAX), None);
    }

    #[test]
    fn near_pieces_are_read_together() {
        let far = 100 + GAP_BYTES as i64 + 9;
        let mut pieces = pieces_of([(0, 8), (92, 8), (far, 8), (far + 8, SIEVE_BYTES), (9 << 20, 5)]);
        let mut near = Vec::new();
        assert_eq!(pieces.take_near(usize::MAX, &mut near), 16);
        assert_eq!(near, [(0, 8), (92, 8)]);
        assert_eq!(pieces.take_near(4, &mut near), 4);
        assert_eq!(pieces.take_near(usize::MAX, &mut near), 4, "the next one is long");
        assert_eq!(pieces.take_near(usize::MAX, &mut near), SIEVE_BYTES);
        assert_eq!(pieces.take_near(usize::MAX, &mut near), 5);
        assert_eq!(pieces.take_near(usize::MAX, &mut near), 0);
    }

    #[test]
    fn the_end_of_the_file_may_lie_within_pieces() {
        let pieces = [(100, 2), (105, 3), (110, 2)];
        let mut into = [0; 7];
        let read = b"abcdefghijkl";
        assert_eq!((sift(read, &pieces, &mut into), &into), (7, b"abfghkl"));
        for (there, moved) in [(0, 0), (1, 1), (4, 2), (7, 4), (9, 5), (11, 6)] {
            assert_eq!(sift(&read[..there], &pieces, &mut into), moved, "of {there} bytes");
        }
    }
}
