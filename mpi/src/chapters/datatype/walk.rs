//! Goes over the blocks of elements, and copies them.
//!
//! Invariant: blocks come in the order of the type map, each byte of the range once. Only copies of many
//! small elements take a block of each of some elements, and then the next one: they know where each goes.

use super::layout::{Layout, Node, Piece};
use pelago_fabric::copy;

/// Gets the blocks of data, by their offset from the address of the buffer.
pub trait Visit {
    fn block(&mut self, offset: isize, bytes: usize);

    /// Blocks of one length at one distance.
    fn strided(&mut self, offset: isize, count: usize, stride: isize, bytes: usize) {
        self.grid(offset, Steps { count: 1, stride: 0 }, Steps { count, stride }, bytes);
    }

    /// Blocks of one length at one distance, and all of that again at another distance.
    fn grid(&mut self, offset: isize, outer: Steps, inner: Steps, bytes: usize) {
        for i in 0..outer.count as isize {
            let start = offset.wrapping_add(outer.stride.wrapping_mul(i));
            for j in 0..inner.count as isize {
                self.block(start.wrapping_add(inner.stride.wrapping_mul(j)), bytes);
            }
        }
    }

    /// The pieces of an element, and all of them again and again at a distance. They have `total` bytes.
    fn pieces(&mut self, at: isize, outer: Steps, pieces: &[Piece], _total: usize) {
        for i in 0..outer.count as isize {
            let start = at.wrapping_add(outer.stride.wrapping_mul(i));
            for piece in pieces {
                self.block(start.wrapping_add(piece.offset), piece.bytes);
            }
        }
    }

    /// Blocks of one length at offsets from a place.
    fn indexed(&mut self, base: isize, offsets: &[isize], bytes: usize) {
        for &offset in offsets {
            self.block(base.wrapping_add(offset), bytes);
        }
    }
}

/// Repetitions at one distance.
#[derive(Clone, Copy)]
pub struct Steps {
    pub count: usize,
    pub stride: isize,
}

impl Layout {
    /// Goes over `count` elements.
    pub fn visit(&self, count: usize, extent: isize, visitor: &mut impl Visit) {
        match &self.node {
            Node::Empty => {}
            Node::Block(bytes) if usize::try_from(extent) == Ok(*bytes) && count > 1 => {
                visitor.block(self.offset, count * bytes);
            }
            Node::Block(bytes) if count > 1 => visitor.strided(self.offset, count, extent, *bytes),
            Node::Strided { count: inner, stride, bytes }
                if count > 1 && stride.checked_mul(*inner as isize) == Some(extent) =>
            {
                visitor.strided(self.offset, count * inner, *stride, *bytes);
            }
            node => node.visit_repeated(self.offset, Steps { count, stride: extent }, visitor),
        }
    }

    /// Goes over these bytes of the data of elements.
    pub fn visit_range(&self, extent: isize, first: usize, bytes: usize, visitor: &mut impl Visit) {
        let size = self.node.bytes();
        if size == 0 {
            return;
        }
        let span = Span::of(first, bytes, size);
        let at = |index: usize| extent.wrapping_mul(index as isize);
        span.head(|index, first, bytes| {
            self.node.visit_range(self.offset.wrapping_add(at(index)), first, bytes, visitor);
        });
        let whole = Layout { offset: self.offset.wrapping_add(at(span.whole_from)), node: self.node.clone() };
        whole.visit(span.whole, extent, visitor);
        span.tail(|index, bytes| {
            self.node.visit_range(self.offset.wrapping_add(at(index)), 0, bytes, visitor);
        });
    }
}

/// A range of bytes of equal units.
struct Span {
    /// The unit that it begins within, where in it, and its bytes there.
    head: Option<(usize, usize, usize)>,
    /// The first whole unit, and the number of them.
    whole_from: usize,
    whole: usize,
    /// Bytes of the unit that it ends within.
    tail_bytes: usize,
}

impl Span {
    fn of(first: usize, bytes: usize, unit: usize) -> Span {
        let (index, within) = (first / unit, first % unit);
        let head_bytes = if within == 0 { 0 } else { bytes.min(unit - within) };
        let rest = bytes - head_bytes;
        let head = (head_bytes > 0).then_some((index, within, head_bytes));
        let whole_from = index + usize::from(within > 0);
        Span { head, whole_from, whole: rest / unit, tail_bytes: rest % unit }
    }

    fn head(&self, visit: impl FnOnce(usize, usize, usize)) {
        if let Some((index, first, bytes)) = self.head {
            visit(index, first, bytes);
        }
    }

    fn tail(&self, visit: impl FnOnce(usize, usize)) {
        if self.tail_bytes > 0 {
            visit(self.whole_from + self.whole, self.tail_bytes);
        }
    }
}

impl Node {
    /// Goes over all data.
    pub fn visit(&self, at: isize, visitor: &mut impl Visit) {
        match self {
            Node::Empty => {}
            Node::Block(bytes) => visitor.block(at, *bytes),
            Node::Strided { count, stride, bytes } => visitor.strided(at, *count, *stride, *bytes),
            Node::Indexed { offsets, bytes } => visitor.indexed(at, offsets, *bytes),
            Node::Blocks { pieces, total } => {
                visitor.pieces(at, Steps { count: 1, stride: 0 }, pieces, *total);
            }
            Node::Loop { count, stride, body, .. } => {
                body.visit_repeated(at, Steps { count: *count, stride: *stride }, visitor);
            }
            Node::Sequence { parts, .. } => {
                for part in parts.iter() {
                    part.node.visit(at.wrapping_add(part.offset), visitor);
                }
            }
        }
    }

    /// Goes over all data again and again, at one distance.
    fn visit_repeated(&self, at: isize, outer: Steps, visitor: &mut impl Visit) {
        match self {
            Node::Strided { count, stride, bytes } => {
                return visitor.grid(at, outer, Steps { count: *count, stride: *stride }, *bytes);
            }
            Node::Blocks { pieces, total } => return visitor.pieces(at, outer, pieces, *total),
            Node::Indexed { offsets, bytes } if offsets.len() <= FEW && outer.count > 1 => {
                let piece = |i| Piece { offset: offsets[i], bytes: *bytes, before: i * bytes };
                let mut pieces = [piece(0); FEW];
                (0..offsets.len()).for_each(|i| pieces[i] = piece(i));
                return visitor.pieces(at, outer, &pieces[..offsets.len()], bytes * offsets.len());
            }
            _ => {}
        }
        for i in 0..outer.count as isize {
            self.visit(at.wrapping_add(outer.stride.wrapping_mul(i)), visitor);
        }
    }

    /// Goes over these bytes of the data; there are as many.
    fn visit_range(&self, at: isize, first: usize, bytes: usize, visitor: &mut impl Visit) {
        debug_assert!(first + bytes <= self.bytes());
        if first == 0 && bytes == self.bytes() {
            return self.visit(at, visitor);
        }
        match self {
            Node::Empty => {}
            Node::Block(_) => visitor.block(at.wrapping_add_unsigned(first), bytes),
            Node::Strided { stride, bytes: unit, .. } => {
                let span = Span::of(first, bytes, *unit);
                let place = |index: usize| at.wrapping_add(stride.wrapping_mul(index as isize));
                span.head(|index, first, n| visitor.block(place(index).wrapping_add_unsigned(first), n));
                visitor.strided(place(span.whole_from), span.whole, *stride, *unit);
                span.tail(|index, n| visitor.block(place(index), n));
            }
            Node::Indexed { offsets, bytes: unit } => {
                let span = Span::of(first, bytes, *unit);
                let place = |index: usize| at.wrapping_add(offsets[index]);
                span.head(|index, first, n| visitor.block(place(index).wrapping_add_unsigned(first), n));
                visitor.indexed(at, &offsets[span.whole_from..span.whole_from + span.whole], *unit);
                span.tail(|index, n| visitor.block(place(index), n));
            }
            Node::Blocks { pieces, .. } => {
                let start = pieces.partition_point(|piece| piece.before <= first) - 1;
                let mut range = (first, first + bytes);
                for piece in pieces[start..].iter().take_while(|piece| piece.before < first + bytes) {
                    let (within, n) = take(&mut range, piece.before, piece.bytes);
                    visitor.block(at.wrapping_add(piece.offset).wrapping_add_unsigned(within), n);
                }
            }
            Node::Loop { stride, body, body_bytes, .. } => {
                let span = Span::of(first, bytes, *body_bytes);
                let place = |index: usize| at.wrapping_add(stride.wrapping_mul(index as isize));
                span.head(|index, first, n| body.visit_range(place(index), first, n, visitor));
                let outer = Steps { count: span.whole, stride: *stride };
                body.visit_repeated(place(span.whole_from), outer, visitor);
                span.tail(|index, n| body.visit_range(place(index), 0, n, visitor));
            }
            Node::Sequence { parts, .. } => {
                let start = parts.partition_point(|part| part.before <= first) - 1;
                let mut range = (first, first + bytes);
                for part in parts[start..].iter().take_while(|part| part.before < first + bytes) {
                    let (within, n) = take(&mut range, part.before, part.node.bytes());
                    part.node.visit_range(at.wrapping_add(part.offset), within, n, visitor);
                }
            }
        }
    }
}

/// Takes the bytes of a part off the beginning of a range: where they begin in the part, and their number.
fn take(range: &mut (usize, usize), before: usize, bytes: usize) -> (usize, usize) {
    let end = range.1.min(before + bytes);
    let taken = (range.0 - before, end - range.0);
    range.0 = end;
    taken
}

/// The most blocks of an element that are taken one by one, for many elements each.
const FEW: usize = 16;
/// Bytes of the elements of which one block each is copied, before the next block of each: they stay in the
/// first cache.
const TILE_BYTES: usize = 8 << 10;
/// In a tile of fewer elements, each element is copied as a whole.
const TILE_MIN: usize = 8;

/// The elements of a tile, of elements with `total` bytes of data; 0 if they are too large or too few.
fn tile(count: usize, total: usize) -> usize {
    let tile = TILE_BYTES / total.max(1);
    if tile < TILE_MIN || count < TILE_MIN { 0 } else { tile }
}

/// Whether elements at a distance do not overlap: then the order of their blocks does not matter.
fn are_apart(pieces: &[Piece], stride: isize) -> bool {
    let low = pieces.iter().map(|piece| piece.offset).min().unwrap_or(0);
    let high = pieces.iter().map(|piece| piece.offset.wrapping_add_unsigned(piece.bytes)).max().unwrap_or(0);
    high.wrapping_sub(low) as usize <= stride.unsigned_abs()
}

/// Copies data out of a buffer, one after the other.
pub struct Gather {
    pub buffer: *const u8,
    pub into: *mut u8,
}

/// Copies data into a buffer.
pub struct Scatter {
    pub from: *const u8,
    pub buffer: *mut u8,
}

/// Copies one block. Short blocks of the usual lengths are moved without a call.
///
/// # Safety
/// Both ranges are valid, and do not overlap.
#[inline(always)]
unsafe fn copy_block(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise, for ranges of this length.
    unsafe {
        match bytes {
            1 => target.copy_from_nonoverlapping(source, 1),
            2 => target.copy_from_nonoverlapping(source, 2),
            4 => target.copy_from_nonoverlapping(source, 4),
            8 => target.copy_from_nonoverlapping(source, 8),
            12 => target.copy_from_nonoverlapping(source, 12),
            16 => target.copy_from_nonoverlapping(source, 16),
            24 => target.copy_from_nonoverlapping(source, 24),
            _ => copy::copy(target, source, bytes),
        }
    }
}

/// Calls a loop for blocks of these lengths with the length as a constant, and otherwise the loop for any.
macro_rules! by_length {
    ($bytes:expr, $loop:ident($($argument:expr),*)) => {
        match $bytes {
            1 => $loop::<1>($($argument),*),
            2 => $loop::<2>($($argument),*),
            4 => $loop::<4>($($argument),*),
            8 => $loop::<8>($($argument),*),
            12 => $loop::<12>($($argument),*),
            16 => $loop::<16>($($argument),*),
            24 => $loop::<24>($($argument),*),
            32 => $loop::<32>($($argument),*),
            _ => $loop::<0>($($argument),*),
        }
    };
}

/// Copies blocks of `N` bytes, or of `bytes` if `N` is 0, from places at one distance to places at another.
///
/// # Safety
/// The places are valid for these blocks, and do not overlap.
#[inline(always)]
unsafe fn copy_strided<const N: usize>(
    (mut target, target_stride): (*mut u8, isize),
    (mut source, source_stride): (*const u8, isize),
    count: usize,
    bytes: usize,
) {
    for _ in 0..count {
        // SAFETY: the caller promises that the places are valid.
        unsafe {
            match N {
                0 => copy::copy(target, source, bytes),
                _ => target.copy_from_nonoverlapping(source, N),
            }
        }
        target = target.wrapping_offset(target_stride);
        source = source.wrapping_offset(source_stride);
    }
}

/// Blocks to copy: where they go and their distance there, where they are and their distance, their number.
type Strided = ((*mut u8, isize), (*const u8, isize), usize);

/// Copies the pieces of `count` elements, at most `tile` of them at a time. `place` says where those of a
/// piece are, from an element on.
///
/// # Safety
/// As [`copy_strided`], for all pieces.
unsafe fn copy_pieces(
    count: usize,
    tile: usize,
    pieces: &[Piece],
    place: impl Fn(&Piece, usize, usize) -> Strided,
) {
    let step = tile.max(1);
    for first in (0..count).step_by(step) {
        for piece in pieces {
            let (target, source, count) = place(piece, first, step.min(count - first));
            // SAFETY: the caller promises that the places are valid.
            unsafe {
                match step {
                    1 => copy_block(target.0, source.0, piece.bytes),
                    _ => by_length!(piece.bytes, copy_strided(target, source, count, piece.bytes)),
                }
            }
        }
    }
}

/// As [`copy_strided`], of all of that again and again, at a distance of each side.
///
/// # Safety
/// As [`copy_strided`].
unsafe fn copy_grid<const N: usize>(
    (mut target, target_steps): (*mut u8, [isize; 2]),
    (mut source, source_steps): (*const u8, [isize; 2]),
    [outer, inner]: [usize; 2],
    bytes: usize,
) {
    for _ in 0..outer {
        // SAFETY: the caller promises that the places are valid.
        unsafe { copy_strided::<N>((target, target_steps[1]), (source, source_steps[1]), inner, bytes) };
        target = target.wrapping_offset(target_steps[0]);
        source = source.wrapping_offset(source_steps[0]);
    }
}

/// Copies blocks at offsets from `buffer` to where `packed` is.
///
/// # Safety
/// As [`copy_strided`].
unsafe fn gather_indexed<const N: usize>(
    buffer: *const u8,
    offsets: &[isize],
    packed: *mut u8,
    bytes: usize,
) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller promises that the places are valid.
        unsafe {
            match N {
                0 => copy::copy(packed.add(i * bytes), buffer.wrapping_offset(offset), bytes),
                _ => packed.add(i * N).copy_from_nonoverlapping(buffer.wrapping_offset(offset), N),
            }
        }
    }
}

/// The reverse.
///
/// # Safety
/// As [`copy_strided`].
unsafe fn scatter_indexed<const N: usize>(
    buffer: *mut u8,
    offsets: &[isize],
    packed: *const u8,
    bytes: usize,
) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller promises that the places are valid.
        unsafe {
            match N {
                0 => copy::copy(buffer.wrapping_offset(offset), packed.add(i * bytes), bytes),
                _ => buffer.wrapping_offset(offset).copy_from_nonoverlapping(packed.add(i * N), N),
            }
        }
    }
}

impl Visit for Gather {
    #[inline]
    fn block(&mut self, offset: isize, bytes: usize) {
        // SAFETY: the maker of this value promises that the buffer has the blocks, and room for their data.
        unsafe { copy_block(self.into, self.buffer.wrapping_offset(offset), bytes) };
        self.into = self.into.wrapping_add(bytes);
    }

    fn grid(&mut self, offset: isize, outer: Steps, inner: Steps, bytes: usize) {
        let source = (self.buffer.wrapping_offset(offset), [outer.stride, inner.stride]);
        let target = (self.into, [(inner.count * bytes) as isize, bytes as isize]);
        let counts = [outer.count, inner.count];
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe { by_length!(bytes, copy_grid(target, source, counts, bytes)) };
        self.into = self.into.wrapping_add(outer.count * inner.count * bytes);
    }

    fn pieces(&mut self, at: isize, outer: Steps, pieces: &[Piece], total: usize) {
        let start = self.buffer.wrapping_offset(at);
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe {
            copy_pieces(outer.count, tile(outer.count, total), pieces, |piece, first, count| {
                let source = start
                    .wrapping_offset(outer.stride.wrapping_mul(first as isize))
                    .wrapping_offset(piece.offset);
                let target = self.into.wrapping_add(first * total + piece.before);
                ((target, total as isize), (source, outer.stride), count)
            });
        }
        self.into = self.into.wrapping_add(outer.count * total);
    }

    fn indexed(&mut self, base: isize, offsets: &[isize], bytes: usize) {
        let buffer = self.buffer.wrapping_offset(base);
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe { by_length!(bytes, gather_indexed(buffer, offsets, self.into, bytes)) };
        self.into = self.into.wrapping_add(offsets.len() * bytes);
    }
}

impl Visit for Scatter {
    #[inline]
    fn block(&mut self, offset: isize, bytes: usize) {
        // SAFETY: the maker of this value promises that the buffer has room for the blocks, and their data.
        unsafe { copy_block(self.buffer.wrapping_offset(offset), self.from, bytes) };
        self.from = self.from.wrapping_add(bytes);
    }

    fn grid(&mut self, offset: isize, outer: Steps, inner: Steps, bytes: usize) {
        let target = (self.buffer.wrapping_offset(offset), [outer.stride, inner.stride]);
        let source = (self.from, [(inner.count * bytes) as isize, bytes as isize]);
        let counts = [outer.count, inner.count];
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe { by_length!(bytes, copy_grid(target, source, counts, bytes)) };
        self.from = self.from.wrapping_add(outer.count * inner.count * bytes);
    }

    fn pieces(&mut self, at: isize, outer: Steps, pieces: &[Piece], total: usize) {
        let start = self.buffer.wrapping_offset(at);
        let tile = if are_apart(pieces, outer.stride) { tile(outer.count, total) } else { 1 };
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe {
            copy_pieces(outer.count, tile, pieces, |piece, first, count| {
                let target = start
                    .wrapping_offset(outer.stride.wrapping_mul(first as isize))
                    .wrapping_offset(piece.offset);
                let source = self.from.wrapping_add(first * total + piece.before);
                ((target, outer.stride), (source, total as isize), count)
            });
        }
        self.from = self.from.wrapping_add(outer.count * total);
    }

    fn indexed(&mut self, base: isize, offsets: &[isize], bytes: usize) {
        let buffer = self.buffer.wrapping_offset(base);
        // SAFETY: the maker promises this of all blocks, as in `block`.
        unsafe { by_length!(bytes, scatter_indexed(buffer, offsets, self.from, bytes)) };
        self.from = self.from.wrapping_add(offsets.len() * bytes);
    }
}

/// Copies blocks of one length at one distance in `from` to `into`, one after the other.
///
/// # Panics
/// If a slice does not have them, or the distance is negative.
pub fn gather_strided(from: &[u8], offset: usize, steps: Steps, bytes: usize, into: &mut [u8]) {
    check_blocks(from.len(), offset, steps, bytes, into.len());
    let mut gather = Gather { buffer: from.as_ptr(), into: into.as_mut_ptr() };
    gather.strided(offset as isize, steps.count, steps.stride, bytes);
}

/// The reverse.
///
/// # Panics
/// As [`gather_strided`].
pub fn scatter_strided(from: &[u8], into: &mut [u8], offset: usize, steps: Steps, bytes: usize) {
    check_blocks(into.len(), offset, steps, bytes, from.len());
    let mut scatter = Scatter { from: from.as_ptr(), buffer: into.as_mut_ptr() };
    scatter.strided(offset as isize, steps.count, steps.stride, bytes);
}

fn check_blocks(room: usize, offset: usize, steps: Steps, bytes: usize, packed: usize) {
    let Steps { count, stride } = steps;
    let last = usize::try_from(stride).ok().and_then(|stride| stride.checked_mul(count.saturating_sub(1)));
    let end = last.and_then(|last| offset.checked_add(last)?.checked_add(bytes));
    let is_within = end.is_some_and(|end| end <= room) && count.checked_mul(bytes) == Some(packed);
    assert!(
        is_within,
        "{count} blocks of {bytes} bytes from {offset} on, {stride} apart, in {room} and {packed}"
    );
}
