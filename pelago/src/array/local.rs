//! The part of a symmetric array in the PE's own memory. Other PEs may access it at any time, so it is read
//! and written through copies, never through references.

use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::memory::segment::Part;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

/// This PE's part of a symmetric array, or a range of it.
///
/// Elements are read by [`get`](Local::get), [`iter`](Local::iter) and `for`. The rows of a matrix are those
/// of [`rows`](Local::rows). [`to_vec`](Local::to_vec) copies a [`range`](Local::range) or all. Each access
/// to an element costs a comparison and a load or store.
///
/// ```
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// // Each PE has 3 rows of a matrix with 4 columns.
/// let matrix = world.alloc_zeroed::<f64>(3 * 4)?;
/// let local = matrix.local();
/// for (y, row) in local.rows(4).enumerate() {
///     row.fill(y as f64);
///     row.set(0, 10.0);
/// }
/// local.update(5, |element| 2.0 * element);
/// assert_eq!(local.range(4..8).to_vec(), [10.0, 2.0, 1.0, 1.0]);
/// assert_eq!(local.iter().sum::<f64>(), 40.0);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
pub struct Local<'a, T: Element> {
    pub(crate) view: &'a View<'a, T>,
    /// Where the first element lies.
    pub(crate) part: Part<T>,
    len: usize,
    /// The index of the first element in the part of the array.
    first: usize,
}

impl<T: Element> Clone for Local<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Element> Copy for Local<'_, T> {}

impl<'a, T: Element> Local<'a, T> {
    #[inline]
    pub(crate) fn new(view: &'a View<'_, T>, part: Part<T>) -> Local<'a, T> {
        Local { view, part, len: view.len(), first: 0 }
    }

    /// Number of elements.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "the length of a part, not of a collection")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The elements of a range. Indices into it count from its start.
    ///
    /// # Panics
    /// If the range exceeds the part, or its end lies before its start.
    #[inline]
    #[track_caller]
    pub fn range(&self, range: Range<usize>) -> Local<'a, T> {
        let Some(len) = range.end.checked_sub(range.start) else { ends_before_start(self, &range) };
        self.check(range.start, len);
        // SAFETY: the range was compared with the part's length above.
        let part = unsafe { self.part.starting_at(range.start) };
        Local { part, len, first: self.first + range.start, ..*self }
    }

    /// The rows of a matrix that is stored row by row, each of `columns` elements, as
    /// [`chunks_exact`](slice::chunks_exact) has them: elements behind the last whole row belong to none.
    ///
    /// # Panics
    /// If `columns` is 0.
    #[inline]
    #[track_caller]
    pub fn rows(&self, columns: usize) -> impl DoubleEndedIterator<Item = Local<'a, T>> + ExactSizeIterator {
        assert!(columns > 0, "PE {}: rows of 0 elements", self.view.world().my_pe());
        let all = *self;
        (0..self.len / columns).map(move |row| all.range(row * columns..(row + 1) * columns))
    }

    /// The elements in order, each read when the iterator comes to it.
    #[inline]
    pub fn iter(&self) -> LocalIter<'a, T> {
        LocalIter { part: self.part, rest: 0..self.len, array: PhantomData }
    }

    /// Sets all elements to `value`.
    #[inline]
    pub fn fill(&self, value: T) {
        // SAFETY: the indices are less than the length.
        (0..self.len).for_each(|index| unsafe { self.part.store(index, value) });
    }

    /// Replaces an element by a function of it, and returns the new one. It is not atomic: where other PEs
    /// write the element at the same time, use [`View::fetch_amo`] and its relatives.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn update(&self, index: usize, change: impl FnOnce(T) -> T) -> T {
        let value = change(self.get(index));
        self.set(index, value);
        value
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

    /// Waits until `condition` holds for an element that another PE changes by a signal or an atomic, and
    /// returns the element. Data that the other PE put and fenced before that change are then visible: the
    /// wait is an acquire. Do not wait for an element that is put: over some networks half of it may be seen.
    ///
    /// ```
    /// use pelago::SignalOp;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let (data, flag) = (world.alloc_zeroed::<f64>(1000)?, world.alloc_zeroed::<u64>(1)?);
    /// if world.my_pe() == 0 {
    ///     data.put(1, 0, &[1.5; 1000])?;
    ///     world.fence();
    ///     flag.signal(1, 0, SignalOp::Set(1))?;
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
        self.view.access().until(self.first + index, look)
    }

    #[track_caller]
    fn check(&self, index: usize, count: usize) {
        if index > self.len() || count > self.len() - index {
            out_of_range(self, index, count);
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn ends_before_start<T: Element>(local: &Local<'_, T>, range: &Range<usize>) -> ! {
    let me = local.view.world().my_pe();
    panic!("PE {me}: the range of elements {range:?} ends before its start");
}

/// The elements of a [`Local`] in order, each read when the iterator comes to it: see [`Local::iter`].
#[derive(Clone)]
pub struct LocalIter<'a, T: Element> {
    part: Part<T>,
    /// The indices that are still to come, all less than the length of the part.
    rest: Range<usize>,
    /// The borrow of the array, which is neither freed nor in an exclusive phase meanwhile.
    array: PhantomData<&'a View<'a, T>>,
}

impl<T: Element> Iterator for LocalIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        // SAFETY: the rest has only indices that are less than the length.
        self.rest.next().map(|index| unsafe { self.part.load(index) })
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<T> {
        // SAFETY: the rest has only indices that are less than the length.
        self.rest.nth(n).map(|index| unsafe { self.part.load(index) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }

    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, start: B, mut combine: F) -> B {
        let part = self.part;
        // SAFETY: the rest has only indices that are less than the length.
        self.rest.fold(start, |folded, index| combine(folded, unsafe { part.load(index) }))
    }
}

impl<T: Element> DoubleEndedIterator for LocalIter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        // SAFETY: the rest has only indices that are less than the length.
        self.rest.next_back().map(|index| unsafe { self.part.load(index) })
    }
}

impl<T: Element> ExactSizeIterator for LocalIter<'_, T> {}
impl<T: Element> FusedIterator for LocalIter<'_, T> {}

/// Iterates as [`Local::iter`] does.
impl<'a, T: Element> IntoIterator for Local<'a, T> {
    type Item = T;
    type IntoIter = LocalIter<'a, T>;

    #[inline]
    fn into_iter(self) -> LocalIter<'a, T> {
        self.iter()
    }
}

/// Iterates as [`Local::iter`] does.
impl<'a, T: Element> IntoIterator for &Local<'a, T> {
    type Item = T;
    type IntoIter = LocalIter<'a, T>;

    #[inline]
    fn into_iter(self) -> LocalIter<'a, T> {
        self.iter()
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn out_of_range<T: Element>(local: &Local<'_, T>, index: usize, count: usize) -> ! {
    let (me, len, all) = (local.view.world().my_pe(), local.len, local.view.len());
    let place = match len == all {
        true => format!("the local part of {len} elements"),
        false => format!("a range of {len} elements, from element {} of the local part on", local.first),
    };
    panic!("PE {me}: access of {count} elements at index {index} lies outside {place}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_loop_over_the_part_reads_each_element_once() {
        let sums = crate::spmd(2, |world| {
            let array = world.alloc_zeroed::<u32>(6).unwrap();
            let local = array.local();
            (0..6).for_each(|i| local.set(i, 10 * i as u32));
            let mut sum = 0;
            for element in local {
                sum += element;
            }
            for element in &local.range(1..3) {
                sum += element;
            }
            assert!(local.into_iter().rev().eq([50, 40, 30, 20, 10, 0]));
            let mut rest = local.iter();
            assert_eq!((rest.nth(2), rest.len(), rest.next_back()), (Some(20), 3, Some(50)));
            assert_eq!(rest.clone().sum::<u32>(), 70);
            sum
        });
        assert_eq!(sums.unwrap(), [180, 180]);
    }
}
