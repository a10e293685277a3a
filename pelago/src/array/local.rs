//! The part of a symmetric array in the PE's own memory. Other PEs may access it at any time, so it is read
//! and written through copies, never through references.

use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::memory::segment::Part;

/// This PE's part of a symmetric array.
pub struct Local<'a, T: Element> {
    pub(crate) view: &'a View<'a, T>,
    pub(crate) part: Part<T>,
}

impl<'a, T: Element> Local<'a, T> {
    pub(crate) fn new(view: &'a View<'_, T>, part: Part<T>) -> Local<'a, T> {
        Local { view, part }
    }

    /// Number of elements.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "the length of a part, not of a collection")]
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Reads an element. Numbers of up to 8 bytes are read by one access.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        self.check(index, 1);
        // SAFETY: the index was compared with the array's length above.
        unsafe { self.part.load(index) }
    }

    /// Writes an element. Numbers of up to 8 bytes are written by one access.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        self.check(index, 1);
        // SAFETY: the index was compared with the array's length above.
        unsafe { self.part.store(index, value) }
    }

    /// Copies elements from `index` on into `target`.
    ///
    /// # Panics
    /// If the range exceeds the part.
    #[inline]
    #[track_caller]
    pub fn read(&self, index: usize, target: &mut [T]) {
        self.check(index, target.len());
        // SAFETY: the range was compared with the array's length above.
        unsafe { self.part.read(index, target) }
    }

    /// Copies `source` into the elements from `index` on.
    ///
    /// # Panics
    /// If the range exceeds the part.
    #[inline]
    #[track_caller]
    pub fn write(&self, index: usize, source: &[T]) {
        self.check(index, source.len());
        // SAFETY: the range was compared with the array's length above.
        unsafe { self.part.write(index, source) }
    }

    /// A copy of all elements.
    pub fn to_vec(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.len());
        // SAFETY: the vector has room for the array's length, and is given as many elements.
        unsafe {
            self.part.read_first(&mut elements.spare_capacity_mut()[..self.len()]);
            elements.set_len(self.len());
        }
        elements
    }

    /// Waits until `condition` holds for an element that another PE writes, and returns the element. Data
    /// that the writer put and fenced before it wrote the element are then visible: the wait is an acquire.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let (data, flag) = (world.alloc_zeroed::<f64>(1000)?, world.alloc_zeroed::<u64>(1)?);
    /// if world.my_pe() == 0 {
    ///     data.put(1, 0, &[1.5; 1000])?;
    ///     world.fence();
    ///     flag.p(1, 0, 1)?;
    /// } else if world.my_pe() == 1 {
    ///     flag.local().wait_until(0, |value| value == 1);
    ///     assert_eq!(data.local().get(999), 1.5);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Panics
    /// If there is no such element, or every other PE has left the job before the condition holds.
    #[inline]
    #[track_caller]
    pub fn wait_until(&self, index: usize, mut condition: impl FnMut(T) -> bool) -> T {
        self.check(index, 1);
        self.until(index, || {
            // SAFETY: the index was compared with the array's length above.
            let value = unsafe { self.part.load(index) };
            condition(value).then_some(value)
        })
    }

    /// Waits until `look`, which reads elements of this part from `index` on, returns a result. Data that the
    /// writer put and fenced before it wrote these elements are then visible.
    #[inline]
    #[track_caller]
    pub(crate) fn until<R>(&self, index: usize, look: impl FnMut() -> Option<R>) -> R {
        self.view.access().until(index, look)
    }

    #[track_caller]
    fn check(&self, index: usize, count: usize) {
        if index > self.len() || count > self.len() - index {
            out_of_range(self.view, index, count);
        }
    }
}

#[cold]
#[inline(never)]
fn out_of_range<T: Element>(view: &View<'_, T>, index: usize, count: usize) -> ! {
    let (me, len) = (view.world().my_pe(), view.len());
    panic!(
        "PE {me}: access of {count} elements at index {index} lies outside the local part of {len} elements"
    );
}
