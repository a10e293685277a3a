//! Where the data of an element lie: nested loops over contiguous blocks, in the order of the type map.
//!
//! Invariant: the form is normalised. Blocks that follow each other both in memory and in the type map are
//! one block. A list of blocks or of equal parts at one distance is a loop, and a loop whose distance
//! continues the loop inside it is one with it. No part of a list is empty, and the first data of a node are
//! at 0.

use std::sync::Arc;

/// The data of an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Where the first data are, from the address of the element.
    pub offset: isize,
    pub node: Node,
}

/// Data, from where the first of them are.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Empty,
    /// A block of this many bytes.
    Block(usize),
    /// Blocks of one length at one distance.
    Strided {
        count: usize,
        stride: isize,
        bytes: usize,
    },
    /// Blocks of one length.
    Indexed {
        offsets: Arc<[isize]>,
        bytes: usize,
    },
    /// Blocks of any length.
    Blocks {
        pieces: Arc<[Piece]>,
        total: usize,
    },
    /// The same data again and again, at one distance.
    Loop {
        count: usize,
        stride: isize,
        body: Arc<Node>,
        body_bytes: usize,
    },
    Sequence {
        parts: Arc<[Part]>,
        total: usize,
    },
}

/// A block in a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub offset: isize,
    pub bytes: usize,
    /// The bytes of data before it.
    pub before: usize,
}

/// A part of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub offset: isize,
    pub node: Node,
    /// The bytes of data before it.
    pub before: usize,
}

/// Lists of at most this many blocks become part of the list that they are in.
const SMALL: usize = 8;

impl Layout {
    pub const EMPTY: Layout = Layout { offset: 0, node: Node::Empty };

    /// One block.
    pub fn block(offset: isize, bytes: usize) -> Layout {
        match bytes {
            0 => Layout::EMPTY,
            _ => Layout { offset, node: Node::Block(bytes) },
        }
    }

    /// The same data, further on.
    pub fn shifted(self, distance: isize) -> Layout {
        match self.node {
            Node::Empty => Layout::EMPTY,
            node => Layout { offset: self.offset.wrapping_add(distance), node },
        }
    }

    /// The same data `count` times, at one distance.
    pub fn repeated(self, count: usize, stride: isize) -> Layout {
        Layout { offset: if count == 0 { 0 } else { self.offset }, node: self.node.repeated(count, stride) }
    }

    /// These data, one after the other.
    pub fn sequence(layouts: impl IntoIterator<Item = Layout>) -> Layout {
        let mut list = Merged::default();
        for layout in layouts {
            list.add(layout);
        }
        let parts = list.parts;
        let Some(first) = parts.first() else { return Layout::EMPTY };
        let origin = first.offset;
        if let Some(stride) = distance(&parts) {
            return first.clone().repeated(parts.len(), stride);
        }
        Layout { offset: origin, node: listed(parts, origin) }
    }
}

/// A list in the making.
#[derive(Default)]
struct Merged {
    parts: Vec<Layout>,
}

impl Merged {
    fn add(&mut self, layout: Layout) {
        let at = |offset: isize| layout.offset.wrapping_add(offset);
        match &layout.node {
            Node::Empty => {}
            Node::Block(bytes) => self.add_block(layout.offset, *bytes),
            Node::Strided { count, stride, bytes } if *count <= SMALL => {
                for i in 0..*count as isize {
                    self.add_block(at(stride.wrapping_mul(i)), *bytes);
                }
            }
            Node::Indexed { offsets, bytes } if offsets.len() <= SMALL => {
                for &offset in offsets.iter() {
                    self.add_block(at(offset), *bytes);
                }
            }
            Node::Blocks { pieces, .. } if pieces.len() <= SMALL => {
                for piece in pieces.iter() {
                    self.add_block(at(piece.offset), piece.bytes);
                }
            }
            _ => self.parts.push(layout),
        }
    }

    fn add_block(&mut self, offset: isize, bytes: usize) {
        match self.parts.last_mut() {
            Some(Layout { offset: start, node: Node::Block(before) })
                if start.wrapping_add_unsigned(*before) == offset =>
            {
                *before += bytes;
            }
            _ => self.parts.push(Layout::block(offset, bytes)),
        }
    }
}

/// The distance of parts that are the same, if it is one distance.
fn distance(parts: &[Layout]) -> Option<isize> {
    let between = |pair: &[Layout]| pair[1].offset.wrapping_sub(pair[0].offset);
    let stride = parts.windows(2).next().map_or(0, between);
    let is_regular = parts.windows(2).all(|pair| pair[0].node == pair[1].node && between(pair) == stride);
    is_regular.then_some(stride)
}

/// A list of parts, from where the first is.
fn listed(parts: Vec<Layout>, origin: isize) -> Node {
    let bytes_of_all = match parts[0].node {
        Node::Block(bytes) if parts.iter().all(|part| part.node == Node::Block(bytes)) => Some(bytes),
        _ => None,
    };
    if let Some(bytes) = bytes_of_all {
        let offsets = parts.iter().map(|part| part.offset.wrapping_sub(origin)).collect();
        return Node::Indexed { offsets, bytes };
    }
    let mut total = 0;
    let mut before = |bytes: usize| {
        total += bytes;
        total - bytes
    };
    if parts.iter().all(|part| matches!(part.node, Node::Block(_))) {
        let piece = |part: &Layout| {
            let bytes = part.node.bytes();
            Piece { offset: part.offset.wrapping_sub(origin), bytes, before: before(bytes) }
        };
        let pieces = parts.iter().map(piece).collect();
        return Node::Blocks { pieces, total };
    }
    let part = |part: Layout| {
        let before = before(part.node.bytes());
        Part { offset: part.offset.wrapping_sub(origin), node: part.node, before }
    };
    let parts = parts.into_iter().map(part).collect();
    Node::Sequence { parts, total }
}

impl Node {
    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        match self {
            Node::Empty => 0,
            Node::Block(bytes) => *bytes,
            Node::Strided { count, bytes, .. } => count * bytes,
            Node::Indexed { offsets, bytes } => offsets.len() * bytes,
            Node::Blocks { total, .. } | Node::Sequence { total, .. } => *total,
            Node::Loop { count, body_bytes, .. } => count * body_bytes,
        }
    }

    fn repeated(self, count: usize, stride: isize) -> Node {
        let continues = |inner: usize, step: isize| Some(stride) == step.checked_mul(inner as isize);
        match self {
            _ if count == 0 => Node::Empty,
            Node::Empty => Node::Empty,
            node if count == 1 => node,
            Node::Block(bytes) if usize::try_from(stride) == Ok(bytes) => Node::Block(bytes * count),
            Node::Block(bytes) => Node::Strided { count, stride, bytes },
            Node::Strided { count: inner, stride: step, bytes } if continues(inner, step) => {
                Node::Strided { count: inner * count, stride: step, bytes }
            }
            Node::Loop { count: inner, stride: step, body, body_bytes } if continues(inner, step) => {
                Node::Loop { count: inner * count, stride: step, body, body_bytes }
            }
            node => Node::Loop { count, stride, body_bytes: node.bytes(), body: Arc::new(node) },
        }
    }

    /// Where the lowest byte is, and where the data end.
    pub fn bounds(&self) -> (i128, i128) {
        let around = |count: usize, stride: isize| {
            let last = (count as i128 - 1) * stride as i128;
            (last.min(0), last.max(0))
        };
        let join = |bounds: (i128, i128), other: (i128, i128)| (bounds.0.min(other.0), bounds.1.max(other.1));
        let block = |offset: isize, bytes: usize| (offset as i128, offset as i128 + bytes as i128);
        match self {
            Node::Empty => (0, 0),
            Node::Block(bytes) => block(0, *bytes),
            Node::Strided { count, stride, bytes } => {
                let (low, high) = around(*count, *stride);
                (low, high + *bytes as i128)
            }
            Node::Indexed { offsets, bytes } => {
                offsets.iter().map(|&offset| block(offset, *bytes)).fold((0, 0), join)
            }
            Node::Blocks { pieces, .. } => {
                pieces.iter().map(|piece| block(piece.offset, piece.bytes)).fold((0, 0), join)
            }
            Node::Loop { count, stride, body, .. } => {
                let ((low, high), (start, end)) = (around(*count, *stride), body.bounds());
                (low + start, high + end)
            }
            Node::Sequence { parts, .. } => {
                let part = |part: &Part| {
                    let (start, end) = part.node.bounds();
                    (part.offset as i128 + start, part.offset as i128 + end)
                };
                parts.iter().map(part).fold((0, 0), join)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_blocks_and_loops_are_merged() {
        let int = Layout::block(0, 4);
        assert_eq!(int.clone().repeated(6, 4), Layout::block(0, 24));
        let strided = int.clone().repeated(3, 8);
        assert_eq!(strided.node, Node::Strided { count: 3, stride: 8, bytes: 4 });
        assert_eq!(strided.clone().repeated(2, 24).node, Node::Strided { count: 6, stride: 8, bytes: 4 });
        assert!(matches!(strided.repeated(2, 20).node, Node::Loop { count: 2, stride: 20, .. }));
        assert_eq!(Layout::sequence([int.clone(), Layout::block(4, 8)]), Layout::block(0, 12));
        assert_eq!(Layout::sequence([Layout::EMPTY, int.clone().repeated(0, 8)]), Layout::EMPTY);
    }

    #[test]
    fn regular_lists_become_loops() {
        let at = |offsets: &[isize]| Layout::sequence(offsets.iter().map(|&offset| Layout::block(offset, 4)));
        let regular = Layout { offset: 8, node: Node::Strided { count: 3, stride: -16, bytes: 4 } };
        assert_eq!(at(&[8, -8, -24]), regular);
        assert!(matches!(at(&[0, 8, 12, 20]).node, Node::Blocks { .. }), "two blocks are merged");
        assert!(matches!(at(&[0, 8, 20]).node, Node::Indexed { bytes: 4, .. }));
        assert_eq!(at(&[4, 0]).node, Node::Strided { count: 2, stride: -4, bytes: 4 }, "the order counts");
    }

    #[test]
    fn bounds_hold_all_data() {
        let layout = Layout::block(0, 4).repeated(3, -8).shifted(100);
        assert_eq!((layout.offset, layout.node.bounds()), (100, (-16, 4)));
        let nested = Layout::sequence([layout.clone().repeated(20, 3), Layout::block(0, 1)]);
        assert_eq!(nested.node.bounds(), (-100, 61));
        assert_eq!(nested.node.bytes(), 241);
    }
}
