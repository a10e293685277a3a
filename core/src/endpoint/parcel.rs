//! Parcels: scattered data, packed into one message with the list of their addresses. A message to scatter
//! has the data of all ranges, one after the other, and then the list. A message to gather has only the list,
//! and its reply has the data.
//!
//! Invariant: a parcel and its reply fit in one message each, and a range is never split between parcels. The
//! receiver of a list reads it twice: first to validate all of it, then to execute it.
//!
//! The list has one word for each range of bytes: the offset in the heap in its lower 48 bits, and the length
//! in the next 15. If the highest bit is set, the entry has a second word and describes equal ranges at a
//! constant stride: the second word has the stride in its lower 48 bits and the number of ranges in the upper
//! 16.

/// The maximum length of a range, in bytes.
const BYTES_MAX: usize = (1 << 15) - 1;
/// The maximum number of equal ranges in one entry.
const COUNT_MAX: usize = (1 << 16) - 1;
const OFFSET_BITS: u32 = 48;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const IS_REPEATED: u64 = 1 << 63;
/// The maximum size of an entry of the list, in bytes.
const ENTRY_BYTES_MAX: usize = 16;
/// The maximum number of words that the code of a message can count.
const WORDS_MAX: usize = u16::MAX as usize;

/// Equal ranges of bytes at a constant stride in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    offset_bytes: usize,
    bytes: usize,
    /// Distance from the start of one range to the start of the next.
    stride_bytes: usize,
    count: usize,
}

impl Span {
    fn one(offset_bytes: usize, bytes: usize) -> Span {
        Span { offset_bytes, bytes, stride_bytes: 0, count: 1 }
    }

    /// Adds one more range, if it continues the pattern of the others.
    fn take_in(&mut self, offset_bytes: usize, bytes: usize) -> bool {
        let Some(distance) = offset_bytes.checked_sub(self.offset_bytes) else { return false };
        if self.count == 1 && distance == self.bytes && self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            return true;
        }
        let is_next = match self.count {
            1 => distance > self.bytes,
            count => distance == self.stride_bytes * count && count < COUNT_MAX,
        };
        if !is_next || bytes != self.bytes {
            return false;
        }
        self.stride_bytes = distance / self.count;
        self.count += 1;
        true
    }

    fn write(self, words: &mut Vec<u64>) {
        let repeats = self.count > 1;
        let word = self.offset_bytes as u64 | (self.bytes as u64) << OFFSET_BITS;
        words.push(word | if repeats { IS_REPEATED } else { 0 });
        if repeats {
            words.push(self.stride_bytes as u64 | (self.count as u64) << OFFSET_BITS);
        }
    }

    /// Reads the first entry of a list; returns it and the rest of the list, or `None` if the entry is
    /// invalid.
    fn read(list: &[u8]) -> Option<(Span, &[u8])> {
        let (first, rest) = list.split_first_chunk()?;
        let first = u64::from_le_bytes(*first);
        let (offset_bytes, length) = ((first & OFFSET_MASK) as usize, (first & !IS_REPEATED) >> OFFSET_BITS);
        let mut span = Span::one(offset_bytes, length as usize);
        let rest = match first & IS_REPEATED {
            0 => rest,
            _ => {
                let (second, rest) = rest.split_first_chunk()?;
                let second = u64::from_le_bytes(*second);
                span.stride_bytes = (second & OFFSET_MASK) as usize;
                span.count = (second >> OFFSET_BITS) as usize;
                rest
            }
        };
        (span.bytes > 0 && span.count > 0).then_some((span, rest))
    }

    /// The end of the last range, in bytes.
    fn end(&self) -> Option<usize> {
        let last = self.stride_bytes.checked_mul(self.count - 1)?;
        self.offset_bytes.checked_add(last)?.checked_add(self.bytes)
    }
}

/// The entries of a list, up to the first that is invalid.
fn spans(list: &[u8]) -> impl Iterator<Item = Span> + '_ {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (span, behind) = Span::read(rest)?;
        rest = behind;
        Some(span)
    })
}

/// The total length of all ranges in a list, in bytes; `None` if the list is invalid, or if a range lies
/// outside a region of `region_bytes` bytes.
pub fn total_bytes(list: &[u8], region_bytes: usize) -> Option<usize> {
    let (mut rest, mut total) = (list, 0usize);
    while !rest.is_empty() {
        let (span, behind) = Span::read(rest)?;
        span.end().filter(|end| *end <= region_bytes)?;
        total = total.checked_add(span.bytes.checked_mul(span.count)?)?;
        rest = behind;
    }
    Some(total)
}

/// The ranges in a list: offsets in the heap, and lengths in bytes. The list is valid, as checked by
/// [`total_bytes`].
pub fn places(list: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    spans(list).flat_map(|span| {
        (0..span.count).map(move |i| (span.offset_bytes + i * span.stride_bytes, span.bytes))
    })
}

/// The local range that receives a part of the gathered data.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    pub start: *mut u8,
    pub bytes: usize,
}

/// A message that is being built.
pub struct Parcel {
    message_bytes: usize,
    words: Vec<u64>,
    last: Option<Span>,
    cargo: Cargo,
}

enum Cargo {
    /// Data to scatter.
    Data(Vec<u8>),
    /// The local ranges for gathered data, and their total bytes.
    Homes(Vec<Home>, usize),
}

impl Parcel {
    /// A new parcel whose data the target scatters.
    pub fn to_scatter(message_bytes: usize) -> Parcel {
        Parcel { message_bytes, words: Vec::new(), last: None, cargo: Cargo::Data(Vec::new()) }
    }

    /// A new parcel that asks the target to gather data.
    pub fn to_gather(message_bytes: usize) -> Parcel {
        Parcel { message_bytes, words: Vec::new(), last: None, cargo: Cargo::Homes(Vec::new(), 0) }
    }

    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether one more range fits: the list and the data in messages, and the local ranges in twice the
    /// memory of a message.
    pub fn has_room(&self, bytes: usize) -> bool {
        let list_bytes = 8 * self.words.len() + 2 * ENTRY_BYTES_MAX;
        let fits = match &self.cargo {
            Cargo::Data(data) => data.len() + bytes + list_bytes <= self.message_bytes,
            Cargo::Homes(homes, total) => {
                let has_homes = homes.len() < self.message_bytes / 8;
                has_homes && total + bytes <= self.message_bytes && list_bytes <= self.message_bytes
            }
        };
        self.is_empty() || fits && list_bytes <= 8 * WORDS_MAX
    }

    /// Adds data for a range in the target's heap.
    ///
    /// # Safety
    /// `source` is valid for reads of `bytes` bytes. The parcel has space for them.
    pub unsafe fn add_source(&mut self, offset_bytes: usize, source: *const u8, bytes: usize) {
        self.add_place(offset_bytes, bytes);
        if let Cargo::Data(data) = &mut self.cargo {
            // SAFETY: the caller guarantees that the source is valid for reads of these bytes.
            data.extend_from_slice(unsafe { std::slice::from_raw_parts(source, bytes) });
        }
    }

    /// Adds a range in the target's heap, and the local range that receives its data.
    pub fn add_home(&mut self, offset_bytes: usize, start: *mut u8, bytes: usize) {
        self.add_place(offset_bytes, bytes);
        if let Cargo::Homes(homes, total) = &mut self.cargo {
            homes.push(Home { start, bytes });
            *total += bytes;
        }
    }

    fn add_place(&mut self, offset_bytes: usize, bytes: usize) {
        if let Some(last) = &mut self.last {
            if last.take_in(offset_bytes, bytes) {
                return;
            }
            last.write(&mut self.words);
        }
        self.last = Some(Span::one(offset_bytes, bytes));
    }

    /// Takes this parcel and leaves an empty one of the same kind.
    pub fn take(&mut self) -> Parcel {
        let empty = match self.cargo {
            Cargo::Data(_) => Parcel::to_scatter(self.message_bytes),
            Cargo::Homes(..) => Parcel::to_gather(self.message_bytes),
        };
        std::mem::replace(self, empty)
    }

    /// Finishes the parcel: returns the number of words in the list, the payload, and, for a gather, the
    /// local ranges for the reply.
    pub fn sealed(mut self) -> (u16, Vec<u8>, Option<Vec<Home>>) {
        if let Some(last) = self.last {
            last.write(&mut self.words);
        }
        let (mut payload, homes) = match self.cargo {
            Cargo::Data(data) => (data, None),
            Cargo::Homes(homes, _) => (Vec::new(), Some(homes)),
        };
        payload.reserve_exact(8 * self.words.len());
        self.words.iter().for_each(|word| payload.extend_from_slice(&word.to_le_bytes()));
        (self.words.len() as u16, payload, homes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;
    use proptest::prelude::*;

    const REGION: usize = 1 << 20;
    /// The number of ranges that the test follows one by one: a list may name many more.
    const PLACES: usize = 1000;

    #[test]
    fn fuzz_parcels() {
        let lists = [list(&[(0, 8)]), list(&[(0, 8), (16, 8), (32, 8), (100, 1)]), list(&[(REGION - 8, 8)])];
        fuzzing::fuzz(&lists, |input| {
            let Some(total) = total_bytes(input, REGION) else { return };
            let mut sum = 0;
            for (offset, bytes) in places(input).take(PLACES) {
                assert!(bytes > 0 && offset + bytes <= REGION, "{offset} {bytes}");
                sum += bytes;
            }
            assert!(sum <= total);
        });
    }

    fn list(stretches: &[(usize, usize)]) -> Vec<u8> {
        let mut parcel = Parcel::to_gather(1 << 20);
        stretches.iter().for_each(|&(offset, bytes)| parcel.add_home(offset, std::ptr::null_mut(), bytes));
        parcel.sealed().1
    }

    #[test]
    fn equal_distances_make_one_entry() {
        let column: Vec<_> = (0..1000).map(|i| (100 + 64 * i, 8)).collect();
        assert_eq!(list(&column).len(), 16);
        assert!(places(&list(&column)).eq(column));
        let row: Vec<_> = (0..1000).map(|i| (100 + 8 * i, 8)).collect();
        assert_eq!(list(&row).len(), 8);
        assert_eq!(places(&list(&row)).collect::<Vec<_>>(), [(100, 8000)]);
        assert_eq!(list(&[(100, 8), (50, 8), (0, 8)]).len(), 24, "backwards they stand one by one");
        assert_eq!(list(&[(0, 8), (100, 8), (200, 4), (300, 4)]).len(), 32);
    }

    /// The bytes that ranges cover, in order.
    fn covered(places: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
        places.flat_map(|(offset, bytes)| offset..offset + bytes).collect()
    }

    proptest! {
        #[test]
        fn a_list_names_what_was_added(
            stretches in prop::collection::vec((0usize..4, 0usize..300, 1usize..40), 0..60),
        ) {
            let mut at = 0;
            let stretches: Vec<_> = stretches
                .into_iter()
                .map(|(step, offset, bytes)| {
                    at = match step {
                        0 => offset,
                        1 => at + 16,
                        2 => at + 8,
                        _ => at + bytes,
                    };
                    (at, if step < 3 { 8 } else { bytes })
                })
                .collect();
            let list = list(&stretches);
            let expected = covered(stretches.iter().copied());
            prop_assert_eq!(total_bytes(&list, REGION), Some(expected.len()));
            prop_assert_eq!(covered(places(&list)), expected);
            let end = stretches.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
            prop_assert_eq!(total_bytes(&list, end).is_some(), true);
            prop_assert_eq!(total_bytes(&list, end.saturating_sub(1)).is_some(), stretches.is_empty());
        }

        #[test]
        fn what_makes_no_sense_is_never_followed(
            words in prop::collection::vec(any::<u64>(), 0..6),
            masks in prop::collection::vec(prop::sample::select(vec![
                u64::MAX, 0x8000_0000_000F_FFFF, 0x8007_0000_000F_FFFF, 0x0003_0000_0000_FFFF,
            ]), 6),
            cut in 0usize..8,
        ) {
            let mut list: Vec<u8> =
                words.iter().zip(&masks).flat_map(|(word, mask)| (word & mask).to_le_bytes()).collect();
            list.truncate(list.len().saturating_sub(cut));
            if let Some(total) = total_bytes(&list, REGION) {
                prop_assert!(list.len().is_multiple_of(8));
                let places: Vec<_> = places(&list).collect();
                prop_assert!(places.iter().all(|(offset, bytes)| *bytes > 0 && offset + bytes <= REGION));
                prop_assert_eq!(places.iter().map(|(_, bytes)| bytes).sum::<usize>(), total);
            }
        }
    }

    #[test]
    fn a_full_parcel_fits_a_message() {
        for message_bytes in [64, 256, 4096] {
            let source = [7u8; 256];
            for bytes in (1..=message_bytes.min(1024) / 4).step_by(7) {
                let (mut put, mut get) =
                    (Parcel::to_scatter(message_bytes), Parcel::to_gather(message_bytes));
                let mut count = 0;
                while put.has_room(bytes) {
                    count += 1;
                    // SAFETY: the source is as long as the largest of these ranges.
                    unsafe { put.add_source(count * count * 8192, source.as_ptr(), bytes) };
                }
                assert!(count >= 1 && put.sealed().1.len() <= message_bytes, "{message_bytes}, {bytes}");
                count = 0;
                while get.has_room(bytes) {
                    count += 1;
                    get.add_home(count * count * 8192, std::ptr::null_mut(), bytes);
                }
                let (words, payload, homes) = get.sealed();
                let answer_bytes: usize = homes.iter().flatten().map(|home| home.bytes).sum();
                assert!(payload.len() <= message_bytes && answer_bytes <= message_bytes);
                assert_eq!(payload.len(), 8 * usize::from(words));
                assert_eq!(homes.map(|homes| homes.len()), Some(count));
            }
        }
    }
}
