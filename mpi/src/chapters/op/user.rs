//! Operations of the program: a function that combines elements in the layout of a datatype.
//!
//! Invariant: the function gets the operands of lower ranks as its first argument. Where elements have gaps,
//! it gets copies of them with the same gaps, at an address that every type of C can have.

use crate::abi::*;
use crate::chapters::datatype::{self, Datatype};
use crate::convert::UserCombine;
use pelago_core::coll::reduction::{Combine, Combiner};
use pelago_core::coll::select::Laws;
use std::sync::Arc;

/// The function of an operation.
pub struct Function {
    pub function: UserCombine,
    pub is_commutative: bool,
}

impl Function {
    /// Combines `count` elements: `inout[i] = left[i] op inout[i]`. `extent` is that of the datatype.
    ///
    /// # Safety
    /// Both buffers have the elements.
    pub unsafe fn call(
        &self,
        left: *mut c_void,
        inout: *mut c_void,
        count: usize,
        mut datatype: MPI_Datatype,
        extent: isize,
    ) {
        if count > 0 && self.function.is_wide() {
            let mut len = count as MPI_Count;
            // SAFETY: the program has passed a function of this type, and the caller promises the elements.
            unsafe { self.function.wide()(left, inout, &raw mut len, &raw mut datatype) };
            return;
        }
        let mut done = 0;
        while done < count {
            let mut len = (count - done).min(c_int::MAX as usize) as c_int;
            let offset = (done as isize).wrapping_mul(extent);
            let [left, inout] = [left, inout].map(|buffer| buffer.wrapping_byte_offset(offset));
            done += len as usize;
            // SAFETY: the caller promises what this function requires, as above.
            unsafe { self.function.narrow()(left, inout, &raw mut len, &raw mut datatype) };
        }
    }
}

/// The largest alignment of the types of C that are not declared with one.
const ALIGN_MAX: usize = 16;

/// A function on elements of a datatype.
pub struct OnElements {
    function: Arc<Function>,
    handle: MPI_Datatype,
    layout: Arc<Datatype>,
}

/// Memory that is aligned for every type of C.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Elements with their gaps.
struct Copy {
    _memory: Vec<Line>,
    /// The address that the function gets.
    buffer: *mut u8,
}

impl OnElements {
    /// The combiner of the function on elements of a datatype, in one piece.
    pub fn combiner(function: Arc<Function>, handle: MPI_Datatype, layout: Arc<Datatype>) -> Combiner {
        let laws = Laws { is_associative: false, is_commutative: function.is_commutative };
        let bytes = layout.size();
        Combiner::of_function(bytes, laws, Arc::new(OnElements { function, handle, layout }))
    }

    /// Elements in the layout of the datatype.
    ///
    /// # Safety
    /// There are as many bytes.
    unsafe fn spread(&self, data: *const u8, bytes: usize, count: usize) -> Copy {
        // Elements may be assigned as a whole, with the gaps before and behind their data.
        let (first, end) = self.layout.span(count);
        let (lb, ub) = (self.layout.lb(), self.layout.lb() + self.layout.extent());
        let last = self.layout.extent().wrapping_mul(count as isize - 1);
        let (first, end) = (first.min(lb + last.min(0)), end.max(ub + last.max(0)));
        let mut memory = vec![Line([0; 64]); (end - first) as usize / size_of::<Line>() + 2];
        // An element's address is as far from a multiple of 64 as its first byte is from the element.
        let shift = first.rem_euclid(64);
        let buffer = memory.as_mut_ptr().cast::<u8>().wrapping_offset(shift - first);
        // SAFETY: the caller promises the data, and the memory reaches from `first` to `end`.
        unsafe { self.layout.unpack(data, bytes, buffer) };
        Copy { _memory: memory, buffer }
    }

    /// # Safety
    /// As [`Function::call`].
    unsafe fn call(&self, left: *mut u8, inout: *mut u8, count: usize) {
        // The program may have freed its handle since it has started the operation.
        let is_valid = datatype::find(self.handle).is_ok_and(|found| std::ptr::eq(found, &*self.layout));
        let other = if is_valid { None } else { datatype::retain_shared(&self.layout).ok() };
        let handle = other.as_ref().map_or(self.handle, datatype::Retained::handle);
        // SAFETY: the caller promises what this function requires.
        unsafe { self.function.call(left.cast(), inout.cast(), count, handle, self.layout.extent()) };
    }

    /// Where an element begins, from its data, if elements that follow each other in one piece are as the
    /// function expects them.
    fn direct(&self) -> Option<isize> {
        self.layout.run(usize::MAX).map(|offset| -offset)
    }

    /// Whether a type of C with this extent may be at an address.
    fn is_aligned(&self, address: *const u8) -> bool {
        let align = (1 << self.layout.extent().trailing_zeros().min(ALIGN_MAX.ilog2())) as usize;
        address.addr().is_multiple_of(align)
    }
}

impl Combine for OnElements {
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        let count = bytes.checked_div(self.layout.size()).unwrap_or(0);
        if count == 0 {
            return;
        }
        let elements =
            self.direct().map(|start| [left.cast_mut(), into].map(|data| data.wrapping_offset(start)));
        let elements = elements.filter(|places| places.iter().all(|&place| self.is_aligned(place)));
        // SAFETY: the caller promises the bytes of the three places; `into` is one of the operands or apart.
        unsafe {
            match elements {
                Some([left_elements, into_elements]) if into.cast_const() != left => {
                    if into.cast_const() != right {
                        std::ptr::copy_nonoverlapping(right, into, bytes);
                    }
                    self.call(left_elements, into_elements, count);
                }
                _ => {
                    let one = self.spread(left, bytes, count);
                    let two = self.spread(right, bytes, count);
                    self.call(one.buffer, two.buffer, count);
                    self.layout.pack(two.buffer, count, into);
                }
            }
        }
    }
}
