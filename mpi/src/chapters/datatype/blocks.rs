//! An iterator over the contiguous blocks of elements.
//!
//! Invariant: blocks come in the order of the type map, and two that follow each other are not adjacent.

use super::layout::{Layout, Node};

/// The contiguous blocks of elements: offset from the address of the buffer, and bytes.
pub struct Blocks<'a> {
    root: &'a Node,
    extent: isize,
    /// Where the next element is, and how many remain.
    next_at: isize,
    remaining: usize,
    /// The nodes that the iterator is within.
    stack: Vec<Frame<'a>>,
    /// A block that was found already.
    found: Option<(isize, usize)>,
}

struct Frame<'a> {
    node: &'a Node,
    at: isize,
    /// The next part of the node.
    index: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks of `count` elements, from a byte of their data on.
    pub fn new(layout: &'a Layout, count: usize, extent: isize, first: usize) -> Blocks<'a> {
        let size = layout.node.bytes();
        let skipped = first.checked_div(size).unwrap_or(count).min(count);
        let at = |index: usize| layout.offset.wrapping_add(extent.wrapping_mul(index as isize));
        let mut blocks = Blocks {
            root: &layout.node,
            extent,
            next_at: at(skipped),
            remaining: count - skipped,
            stack: Vec::new(),
            found: None,
        };
        match &layout.node {
            Node::Block(bytes) if usize::try_from(extent) == Ok(*bytes) => {
                let rest = (count * bytes).saturating_sub(first);
                blocks.remaining = 0;
                blocks.found = (rest > 0).then_some((layout.offset.wrapping_add_unsigned(first), rest));
            }
            node if blocks.remaining > 0 && !first.is_multiple_of(size) => {
                blocks.enter_element();
                blocks.stack.pop();
                blocks.seek(node, at(skipped), first % size);
            }
            _ => {}
        }
        blocks
    }

    fn enter_element(&mut self) {
        self.stack.push(Frame { node: self.root, at: self.next_at, index: 0 });
        self.next_at = self.next_at.wrapping_add(self.extent);
        self.remaining -= 1;
    }

    /// Enters a node at a byte of its data.
    fn seek(&mut self, node: &'a Node, at: isize, first: usize) {
        if first == 0 {
            self.stack.push(Frame { node, at, index: 0 });
            return;
        }
        let mut cut = |offset: isize, bytes: usize, within: usize| {
            self.found = Some((at.wrapping_add(offset).wrapping_add_unsigned(within), bytes - within));
        };
        let strided = |stride: isize, index: usize| stride.wrapping_mul(index as isize);
        let (index, inner) = match node {
            Node::Empty => return,
            Node::Block(bytes) => return cut(0, *bytes, first),
            Node::Strided { stride, bytes, .. } => {
                cut(strided(*stride, first / bytes), *bytes, first % bytes);
                (first / bytes, None)
            }
            Node::Indexed { offsets, bytes } => {
                cut(offsets[first / bytes], *bytes, first % bytes);
                (first / bytes, None)
            }
            Node::Blocks { pieces, .. } => {
                let index = pieces.partition_point(|piece| piece.before <= first) - 1;
                let piece = pieces[index];
                cut(piece.offset, piece.bytes, first - piece.before);
                (index, None)
            }
            Node::Loop { stride, body, body_bytes, .. } => {
                let index = first / body_bytes;
                (index, Some((&**body, strided(*stride, index), first % body_bytes)))
            }
            Node::Sequence { parts, .. } => {
                let index = parts.partition_point(|part| part.before <= first) - 1;
                let part = &parts[index];
                (index, Some((&part.node, part.offset, first - part.before)))
            }
        };
        self.stack.push(Frame { node, at, index: index + 1 });
        if let Some((inner, offset, first)) = inner {
            self.seek(inner, at.wrapping_add(offset), first);
        }
    }

    /// The next block of the layout.
    fn step(&mut self) -> Option<(isize, usize)> {
        loop {
            let Some(frame) = self.stack.last_mut() else {
                if self.remaining == 0 {
                    return None;
                }
                self.enter_element();
                continue;
            };
            let (index, at) = (frame.index, frame.at);
            frame.index += 1;
            let strided = |stride: isize| at.wrapping_add(stride.wrapping_mul(index as isize));
            let inner = match frame.node {
                Node::Block(bytes) if index == 0 => return Some((at, *bytes)),
                Node::Strided { count, stride, bytes } if index < *count => {
                    return Some((strided(*stride), *bytes));
                }
                Node::Indexed { offsets, bytes } if index < offsets.len() => {
                    return Some((at.wrapping_add(offsets[index]), *bytes));
                }
                Node::Blocks { pieces, .. } if index < pieces.len() => {
                    return Some((at.wrapping_add(pieces[index].offset), pieces[index].bytes));
                }
                Node::Loop { count, stride, body, .. } if index < *count => {
                    Frame { node: body, at: strided(*stride), index: 0 }
                }
                Node::Sequence { parts, .. } if index < parts.len() => {
                    let part = &parts[index];
                    Frame { node: &part.node, at: at.wrapping_add(part.offset), index: 0 }
                }
                _ => {
                    self.stack.pop();
                    continue;
                }
            };
            self.stack.push(inner);
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = (isize, usize);

    fn next(&mut self) -> Option<(isize, usize)> {
        let (start, mut bytes) = self.found.take().or_else(|| self.step())?;
        loop {
            match self.step() {
                Some((offset, more)) if offset == start.wrapping_add_unsigned(bytes) => bytes += more,
                other => {
                    self.found = other;
                    return Some((start, bytes));
                }
            }
        }
    }
}
