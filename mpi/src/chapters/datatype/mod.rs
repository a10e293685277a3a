//! Datatypes.
//!
//! A datatype has a `Shape`: where the data of an element lie (`layout`), of which elementary types they are
//! (`signature`), and its bounds. Constructors make shapes from shapes; `walk` copies data, and `blocks`
//! iterates over the places where they lie.
//!
//! Invariant: a datatype does not change once it is made, apart from being committed and named, and from its
//! attributes.

mod array;
mod blocks;
mod construct;
mod contents;
mod elements;
mod external;
mod file_form;
mod fortran;
mod inquiry;
mod layout;
mod named;
mod pack;
mod shape;
mod signature;
mod walk;

#[cfg(test)]
mod tests;

pub use array::*;
pub use blocks::Blocks;
pub use construct::*;
pub use contents::*;
pub use elements::*;
pub use external::*;
pub use file_form::in_file;
pub use fortran::*;
pub use inquiry::*;
pub use named::Basic;
pub use pack::*;
pub use walk::{Steps, gather_strided, scatter_strided};

use crate::abi::*;
use crate::chapters::attribute::Attributes;
use crate::chapters::error::{Error, Result};
use crate::table::{Kind, Table};
use contents::Contents;
use named::{FIRST, NUMBER, Named};
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicBool, Ordering};
use shape::Shape;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
#[cfg(test)]
use walk::Visit;
use walk::{Gather, Scatter};

static NAMED: OnceLock<Box<[Option<Arc<Datatype>>]>> = OnceLock::new();
static DERIVED: Table<Datatype> = Table::new(Kind::Datatype);

/// A datatype.
pub struct Datatype {
    shape: Shape,
    is_committed: AtomicBool,
    /// The handle of a datatype that the program has not made and cannot free.
    predefined: OnceLock<MPI_Datatype>,
    /// The call that has made it; a named datatype has none.
    contents: Option<Arc<Contents>>,
    name: Mutex<String>,
    pub attributes: Attributes,
}

impl Datatype {
    fn new(shape: Shape, contents: Contents) -> Datatype {
        Datatype {
            shape,
            is_committed: AtomicBool::new(false),
            predefined: OnceLock::new(),
            contents: Some(Arc::new(contents)),
            name: Mutex::default(),
            attributes: Attributes::default(),
        }
    }

    fn of_named(named: Named) -> Datatype {
        Datatype {
            shape: named.shape(),
            is_committed: AtomicBool::new(true),
            predefined: named.handle().into(),
            contents: None,
            name: Mutex::new(named.name().to_owned()),
            attributes: Attributes::default(),
        }
    }

    /// Another datatype that is the same, without name and attributes.
    fn duplicate(&self, contents: Option<Arc<Contents>>) -> Datatype {
        Datatype {
            shape: self.shape.clone(),
            is_committed: AtomicBool::new(self.is_committed()),
            predefined: OnceLock::new(),
            contents,
            name: Mutex::default(),
            attributes: Attributes::default(),
        }
    }

    /// Bytes of data of an element.
    #[inline]
    pub fn size(&self) -> usize {
        self.shape.size
    }

    #[inline]
    pub fn lb(&self) -> isize {
        self.shape.lb
    }

    /// The distance from one element to the next.
    #[inline]
    pub fn extent(&self) -> isize {
        self.shape.extent
    }

    /// Where the lowest byte of the data of an element is.
    pub fn true_lb(&self) -> isize {
        self.shape.true_lb
    }

    /// The distance from the lowest byte of the data of an element to their end.
    pub fn true_extent(&self) -> isize {
        self.shape.true_ub - self.shape.true_lb
    }

    /// Where the data of `count` elements lie: the lowest byte, and their end. Nowhere, if there are none.
    pub fn span(&self, count: usize) -> (isize, isize) {
        if count == 0 || self.shape.size == 0 {
            return (0, 0);
        }
        let last = self.shape.extent.wrapping_mul(count as isize - 1);
        (self.shape.true_lb.wrapping_add(last.min(0)), self.shape.true_ub.wrapping_add(last.max(0)))
    }

    /// The elementary type, of a datatype that is one.
    pub fn basic(&self) -> Option<Basic> {
        self.shape.basic
    }

    /// The elementary type, if the datatype is made of one only.
    pub fn only_basic(&self) -> Option<Basic> {
        self.shape.only
    }

    /// Whether communication may use it.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Lets communication use it.
    pub fn commit(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
    }

    /// Whether the program has not made it and cannot free it.
    pub fn is_predefined(&self) -> bool {
        self.predefined.get().is_some()
    }

    pub fn set_name(&self, name: &str) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.to_owned();
    }

    pub fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the data of `count` elements begin, from the address of the buffer, if they follow each other
    /// without gaps.
    #[inline]
    pub fn run(&self, count: usize) -> Option<isize> {
        (count <= self.shape.run_count).then_some(self.shape.layout.offset)
    }

    /// Copies the data of `count` elements to `into`, one after the other.
    ///
    /// # Safety
    /// The buffer has the elements, and there is room for their data.
    pub unsafe fn pack(&self, buffer: *const u8, count: usize, into: *mut u8) {
        match self.run(count) {
            // SAFETY: the caller promises what this function requires.
            Some(offset) => unsafe { copy::copy(into, buffer.wrapping_offset(offset), count * self.size()) },
            None => self.shape.layout.visit(count, self.extent(), &mut Gather { buffer, into }),
        }
    }

    /// The reverse, for this number of bytes; they may end within an element.
    ///
    /// # Safety
    /// The buffer has room for the elements that these bytes are the data of.
    pub unsafe fn unpack(&self, from: *const u8, bytes: usize, buffer: *mut u8) {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.scatter(from, 0, bytes, buffer) };
    }

    /// Copies a part of the data of elements: those from byte `first` on, until
    /// `into` is full.
    ///
    /// # Safety
    /// The buffer has the elements that these bytes are in.
    pub unsafe fn pack_range(&self, buffer: *const u8, first: usize, into: &mut [u8]) {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.gather(buffer, first, into.len(), into.as_mut_ptr()) };
    }

    /// As [`pack_range`](Datatype::pack_range), to memory that others may access.
    ///
    /// # Safety
    /// The buffer has the elements that these bytes are in, and there is room for them.
    pub unsafe fn gather(&self, buffer: *const u8, first: usize, bytes: usize, into: *mut u8) {
        if let Some(offset) = self.run_of_bytes(first + bytes) {
            let source = buffer.wrapping_offset(offset).wrapping_add(first);
            // SAFETY: the caller promises what this function requires.
            return unsafe { copy::copy(into, source, bytes) };
        }
        self.shape.layout.visit_range(self.extent(), first, bytes, &mut Gather { buffer, into });
    }

    /// The reverse.
    ///
    /// # Safety
    /// The buffer has room for the elements that these bytes are in.
    pub unsafe fn unpack_range(&self, from: &[u8], first: usize, buffer: *mut u8) {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.scatter(from.as_ptr(), first, from.len(), buffer) };
    }

    /// As [`unpack_range`](Datatype::unpack_range), from memory that others may access.
    ///
    /// # Safety
    /// The buffer has room for the elements that these bytes are in, which can be read.
    pub unsafe fn scatter(&self, from: *const u8, first: usize, bytes: usize, buffer: *mut u8) {
        if let Some(offset) = self.run_of_bytes(first + bytes) {
            let target = buffer.wrapping_offset(offset).wrapping_add(first);
            // SAFETY: the caller promises room for the data.
            return unsafe { copy::copy(target, from, bytes) };
        }
        self.shape.layout.visit_range(self.extent(), first, bytes, &mut Scatter { from, buffer });
    }

    /// As [`run`](Datatype::run), for the elements that this number of bytes is the data of.
    #[inline]
    fn run_of_bytes(&self, bytes: usize) -> Option<isize> {
        match self.shape.run_count {
            0 => None,
            usize::MAX => Some(self.shape.layout.offset),
            count => (bytes <= count * self.size()).then_some(self.shape.layout.offset),
        }
    }

    /// The contiguous blocks of the data of `count` elements, in the order of the data: the offset from the
    /// address of the buffer, and the bytes.
    pub fn blocks(&self, count: usize) -> Blocks<'_> {
        self.blocks_from(count, 0)
    }

    /// The same from a byte of the data on.
    pub fn blocks_from(&self, count: usize, first: usize) -> Blocks<'_> {
        Blocks::new(&self.shape.layout, count, self.extent(), first)
    }

    /// Calls a function with the contiguous blocks of a part of the data of elements. It gets blocks that
    /// are adjacent apart or as one. It is faster than the iterator.
    #[cfg(test)]
    pub fn for_each_block(&self, first: usize, bytes: usize, each: impl FnMut(isize, usize)) {
        struct Each<F>(F);
        impl<F: FnMut(isize, usize)> Visit for Each<F> {
            fn block(&mut self, offset: isize, bytes: usize) {
                self.0(offset, bytes);
            }
        }
        self.shape.layout.visit_range(self.extent(), first, bytes, &mut Each(each));
    }

    /// The type map of `count` elements: elementary types, and where they are from the address of the buffer.
    #[cfg(test)]
    pub fn basics(&self, count: usize) -> impl Iterator<Item = (Basic, isize)> + '_ {
        let mut blocks = self.blocks(count);
        let (mut place, mut rest) = (0isize, 0usize);
        self.shape.signature.basics(count).map(move |named| {
            let mut start = None;
            let mut bytes = named.native_bytes();
            while bytes > 0 {
                if rest == 0 {
                    (place, rest) = blocks.next().expect("all data are in blocks");
                }
                start.get_or_insert(place);
                let taken = bytes.min(rest);
                (place, rest, bytes) = (place.wrapping_add_unsigned(taken), rest - taken, bytes - taken);
            }
            (named.basic(), start.unwrap_or(place))
        })
    }

    /// Calls a function with the elementary types of `count` elements: the named datatype, and how often it
    /// follows itself.
    pub fn for_each_named_run(&self, count: usize, mut each: impl FnMut(MPI_Datatype, usize)) {
        self.shape.signature.for_each_run(count, &mut |named, times| each(named.handle(), times));
    }

    /// A handle of it.
    fn handle(self: &Arc<Datatype>) -> Result<MPI_Datatype> {
        let handle = DERIVED.insert(Arc::clone(self)).map(MPI_Datatype);
        handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many datatypes. Free some"))
    }
}

fn named() -> &'static [Option<Arc<Datatype>>] {
    let datatype = |named| Some(Arc::new(Datatype::of_named(named?)));
    NAMED.get_or_init(|| named::all().map(datatype).collect())
}

/// The datatype with a handle, whether it is committed or not.
#[inline]
pub fn find(handle: MPI_Datatype) -> Result<&'static Datatype> {
    let number = handle.0.wrapping_sub(FIRST);
    let found = match number < NUMBER {
        true => named()[number].as_deref(),
        false => DERIVED.get(handle.0),
    };
    found.ok_or_else(|| no_datatype(handle))
}

/// A handle of the library's own, for an operation that uses a datatype again after the program may have
/// freed it.
pub struct Retained(MPI_Datatype);

/// Retains the datatype with a handle.
pub fn retain(handle: MPI_Datatype) -> Result<Retained> {
    let datatype = share(handle)?;
    if let Some(&predefined) = datatype.predefined.get() {
        return Ok(Retained(predefined));
    }
    datatype.handle().map(Retained)
}

/// Makes a handle for a datatype that may have no other any more.
pub fn retain_shared(datatype: &Arc<Datatype>) -> Result<Retained> {
    datatype.handle().map(Retained)
}

impl Retained {
    /// The handle, which is valid as long as this lives.
    pub fn handle(&self) -> MPI_Datatype {
        self.0
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // Those of predefined datatypes are in no table, or stay there.
        if find(self.0).is_ok_and(|datatype| !datatype.is_predefined()) {
            DERIVED.remove(self.0.0);
        }
    }
}

/// The attributes of a datatype.
pub fn attributes(handle: MPI_Datatype) -> Result<&'static Attributes> {
    Ok(&find(handle)?.attributes)
}

/// The datatype with a handle, for communication.
#[inline]
pub fn find_committed(handle: MPI_Datatype) -> Result<&'static Datatype> {
    let datatype = find(handle)?;
    match datatype.is_committed() {
        true => Ok(datatype),
        false => Err(not_committed()),
    }
}

/// A share of the datatype with a handle, whether it is committed or not.
pub fn share(handle: MPI_Datatype) -> Result<Arc<Datatype>> {
    let number = handle.0.wrapping_sub(FIRST);
    let found = match number < NUMBER {
        true => named()[number].clone(),
        false => DERIVED.share(handle.0),
    };
    found.ok_or_else(|| no_datatype(handle))
}

#[cold]
fn no_datatype(handle: MPI_Datatype) -> Error {
    let text = match handle {
        MPI_DATATYPE_NULL => "the datatype is MPI_DATATYPE_NULL",
        _ => "the datatype was freed, or never was one",
    };
    Error::new(MPI_ERR_TYPE, text)
}

#[cold]
fn not_committed() -> Error {
    Error::new(MPI_ERR_TYPE, "the datatype is not committed. Call MPI_Type_commit before it is communicated")
}
