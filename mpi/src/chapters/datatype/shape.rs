//! The shape of a datatype: size, bounds, layout and type signature, and the rules by which constructors make
//! one from others (MPI 5.0, sections 5.1.2 to 5.1.8).
//!
//! Invariant: sizes, bounds and extents are 64-bit numbers; a shape whose numbers would not be is refused.
//! Without markers the lower bound is that of the data, and the upper bound their end, so far beyond it that
//! the extent is a multiple of the strictest alignment of the elementary types. `MPI_Type_create_resized`,
//! arrays and their parts have markers, which alone count where there are any.

use super::layout::{Layout, Node};
use super::named::Basic;
use super::signature::Signature;
use crate::abi::{MPI_ERR_ARG, MPI_ERR_COUNT};
use crate::chapters::error::{Error, Result, ensure};

/// The shape of a datatype.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Bytes of data of an element.
    pub size: usize,
    pub lb: isize,
    /// The distance from one element to the next.
    pub extent: isize,
    /// At most this number of elements have their data in one piece.
    pub run_count: usize,
    /// Where the lowest byte of data is, and where the data end.
    pub true_lb: isize,
    pub true_ub: isize,
    /// The lower and the upper bound, where markers set them.
    markers: Option<(isize, isize)>,
    /// The strictest alignment of the elementary types.
    alignment: usize,
    pub layout: Layout,
    pub signature: Signature,
    /// The elementary type, of a datatype that is one.
    pub basic: Option<Basic>,
    /// The elementary type, if all are the same.
    pub only: Option<Basic>,
}

/// Elements of a datatype in another: displacement in bytes, number, and their shape.
pub type Placed<'a> = (i64, i64, &'a Shape);

impl Shape {
    /// One with these data and markers.
    pub fn new(
        layout: Layout,
        signature: Signature,
        markers: Option<(i128, i128)>,
        alignment: usize,
    ) -> Result<Shape> {
        let size = layout.node.bytes();
        let (low, high) = layout.node.bounds();
        let (low, high) = (low + layout.offset as i128, high + layout.offset as i128);
        let (lb, ub) = markers.unwrap_or_else(|| (low, rounded(low, high, alignment)));
        let extent = number(ub - lb)?;
        // The true extent is an address as well.
        number(high - low)?;
        let run_count = match layout.node {
            Node::Empty => usize::MAX,
            Node::Block(bytes) if usize::try_from(extent) == Ok(bytes) => usize::MAX,
            Node::Block(_) => 1,
            _ => 0,
        };
        let markers = markers.map(|(lb, ub)| Ok::<_, Error>((number(lb)?, number(ub)?))).transpose()?;
        let only = signature.only();
        Ok(Shape {
            size,
            lb: number(lb)?,
            extent,
            run_count,
            true_lb: number(low)?,
            true_ub: number(high)?,
            markers,
            alignment,
            layout,
            signature,
            basic: None,
            only,
        })
    }

    /// Elements of other datatypes at their displacements.
    pub fn structure<'a>(parts: impl Iterator<Item = Placed<'a>> + Clone) -> Result<Shape> {
        let mut bounds = Bounds::default();
        for (displacement, count, shape) in parts.clone() {
            bounds.add(shape, displacement.into(), count.into());
        }
        bounds.check()?;
        let layout = |(displacement, count, shape): Placed| {
            shape.layout.clone().repeated(count as usize, shape.extent).shifted(displacement as isize)
        };
        let layout = Layout::sequence(parts.clone().map(layout));
        let signature = parts.clone().map(|(_, count, shape)| shape.signature.repeated(count as usize));
        let used = parts.filter(|(_, count, _)| *count > 0);
        let alignment = used.map(|(_, _, shape)| shape.alignment).max().unwrap_or(1);
        Shape::new(layout, Signature::sequence(signature), bounds.markers, alignment)
    }

    /// `count` blocks at one distance in bytes, each of `length` elements.
    pub fn vector(&self, count: i64, length: i64, stride: i128) -> Result<Shape> {
        let mut bounds = Bounds::default();
        if count > 0 {
            let last = (count as i128 - 1).checked_mul(stride).ok_or_else(too_large)?;
            bounds.add(self, 0, length.into());
            bounds.add(self, last, length.into());
            bounds.size = (count as i128 * length as i128).saturating_mul(self.size as i128);
        }
        bounds.check()?;
        let (count, length) = (count as usize, length as usize);
        let block = self.layout.clone().repeated(length, self.extent);
        let layout = block.repeated(count, stride as isize);
        let elements = count.saturating_mul(length);
        let signature = self.signature.repeated(elements);
        let alignment = if elements > 0 { self.alignment } else { 1 };
        Shape::new(layout, signature, bounds.markers, alignment)
    }

    /// The same data with other bounds.
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Shape> {
        let markers = Some((lb as i128, lb as i128 + extent as i128));
        Shape::new(self.layout.clone(), self.signature.clone(), markers, self.alignment)
    }

    /// A part of an array of `elements` elements of this shape: `chosen` of them, with this layout.
    pub fn of_array(&self, elements: i128, chosen: usize, layout: Layout) -> Result<Shape> {
        let ub = elements.checked_mul(self.extent as i128).ok_or_else(too_large)?;
        Shape::new(layout, self.signature.repeated(chosen), Some((0, ub)), self.alignment)
    }

    /// Whether the array of `elements` elements is one that memory can hold.
    pub fn check_array(&self, elements: i128) -> Result {
        let distance = (self.extent as i128).abs().max(self.size as i128).max(1);
        let is_possible = elements.checked_mul(distance).is_some_and(|bytes| bytes <= i64::MAX.into());
        if is_possible { Ok(()) } else { Err(too_large()) }
    }
}

/// The end of data, so far beyond them that the extent is a multiple of the alignment.
fn rounded(low: i128, high: i128, alignment: usize) -> i128 {
    let alignment = alignment as i128;
    low + (high - low + alignment - 1) / alignment * alignment
}

fn number(value: i128) -> Result<isize> {
    isize::try_from(value).map_err(|_| too_large())
}

#[cold]
pub fn too_large() -> Error {
    Error::new(
        MPI_ERR_ARG,
        "the datatype would be larger than memory can be. Use smaller counts and displacements",
    )
}

/// The bounds of a shape in the making.
#[derive(Default)]
struct Bounds {
    markers: Option<(i128, i128)>,
    low: i128,
    high: i128,
    size: i128,
}

impl Bounds {
    /// With `count` elements of a shape from a displacement on.
    fn add(&mut self, shape: &Shape, displacement: i128, count: i128) {
        if count == 0 {
            return;
        }
        let last = displacement + (count - 1) * shape.extent as i128;
        let (first, last) = (displacement.min(last), displacement.max(last));
        self.size = self.size.saturating_add(count * shape.size as i128);
        self.low = self.low.min(first + shape.true_lb as i128);
        self.high = self.high.max(last + shape.true_ub as i128);
        if let Some((lb, ub)) = shape.markers {
            let (lb, ub) = (first + lb as i128, last + ub as i128);
            let (old_lb, old_ub) = self.markers.unwrap_or((lb, ub));
            self.markers = Some((old_lb.min(lb), old_ub.max(ub)));
        }
    }

    fn check(&self) -> Result {
        ensure!(
            self.size <= i64::MAX.into(),
            MPI_ERR_COUNT,
            "an element would have {} bytes, more than memory can hold. Use smaller counts",
            self.size
        );
        let is_possible = self.low >= i64::MIN.into() && self.high <= i64::MAX.into();
        if is_possible { Ok(()) } else { Err(too_large()) }
    }
}
