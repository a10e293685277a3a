//! Point-to-point synchronisation: waiting until other PEs change one element, or a set of elements, of this
//! PE's own part.
//!
//! Invariant: every form whose condition holds is an acquire: data that the writer put and fenced before, or
//! sent with the signal, are then visible. Every form makes progress. Elements are read as [`Local::get`]
//! reads them, so numbers of up to 8 bytes are never seen half written. Source: OpenSHMEM 1.6, section 9.11
//! (point-to-point synchronization routines).

use crate::array::local::Local;
use pelago_core::base::element::Element;
use pelago_core::base::wait_set::WaitSet;
use pelago_fabric::sync::{AtomicUsize, Ordering, fence};
use std::ops::Range;

/// The comparison of an element with a value. Comparisons with NaN hold for `Ne` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The element equals the value.
    Eq,
    /// The element differs from the value.
    Ne,
    /// The element is greater.
    Gt,
    /// The element is greater or equal.
    Ge,
    /// The element is less.
    Lt,
    /// The element is less or equal.
    Le,
}

impl Comparison {
    /// Whether the comparison holds between an element and a value.
    #[inline]
    pub fn holds<T: PartialOrd>(self, element: T, value: T) -> bool {
        match self {
            Comparison::Eq => element == value,
            Comparison::Ne => element != value,
            Comparison::Gt => element > value,
            Comparison::Ge => element >= value,
            Comparison::Lt => element < value,
            Comparison::Le => element <= value,
        }
    }
}

/// The values that the elements of a [`Watch`] are compared with, converted from one value or from a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values<'v, T> {
    /// All elements are compared with the same value.
    Same(T),
    /// Each element is compared with its own value. The slice has the length of the watched range.
    Each(&'v [T]),
}

impl<T> From<T> for Values<'_, T> {
    fn from(value: T) -> Self {
        Values::Same(value)
    }
}

impl<'v, T> From<&'v [T]> for Values<'v, T> {
    fn from(values: &'v [T]) -> Self {
        Values::Each(values)
    }
}

impl<'v, T, const N: usize> From<&'v [T; N]> for Values<'v, T> {
    fn from(values: &'v [T; N]) -> Self {
        Values::Each(values)
    }
}

impl<'v, T> From<&'v Vec<T>> for Values<'v, T> {
    fn from(values: &'v Vec<T>) -> Self {
        Values::Each(values)
    }
}

impl<'a, T: Element + PartialOrd> Local<'a, T> {
    /// Waits until the comparison of an element with `value` holds, and returns the element. Data that the
    /// writer put and fenced before, or sent with this signal, are then visible.
    ///
    /// ```
    /// use pelago::Comparison;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let count = world.alloc_zeroed::<u32>(1)?;
    /// count.add(1 - world.my_pe(), 0, 3)?;
    /// assert_eq!(count.local().wait(0, Comparison::Gt, 2), 3);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Panics
    /// If there is no such element, or every other PE has left the job before the comparison holds.
    #[inline]
    #[track_caller]
    pub fn wait(&self, index: usize, comparison: Comparison, value: T) -> T {
        self.check_watched("wait", &(index..index.saturating_add(1)));
        self.until(index, || {
            // SAFETY: the index was compared with the array's length above.
            let element = unsafe { self.part.load(index) };
            comparison.holds(element, value).then_some(element)
        })
    }

    /// Makes progress, and returns whether the comparison of an element with `value` holds. If so, data that
    /// the writer put and fenced before, or sent with this signal, are visible.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn test(&self, index: usize, comparison: Comparison, value: T) -> bool {
        self.check_watched("test", &(index..index.saturating_add(1)));
        // SAFETY: the index was compared with the array's length above.
        let holds = || comparison.holds(unsafe { self.part.load(index) }, value);
        self.look_once(|| holds().then_some(())).is_some()
    }

    /// Returns the elements of `range` as a set that can be waited for and tested.
    ///
    /// # Panics
    /// If the range exceeds the part.
    #[track_caller]
    pub fn watch(&self, range: Range<usize>) -> Watch<'a, T> {
        self.check_watched("watch", &range);
        Watch { local: *self, range, excluded: None, cursor: AtomicUsize::new(0) }
    }

    /// Checks once, as all tests do.
    #[track_caller]
    fn look_once<R>(&self, look: impl FnOnce() -> Option<R>) -> Option<R> {
        let world = self.view.world();
        world.core().ring_sleepers_for_data();
        world.progress();
        let found = look();
        match found {
            // SYNC POINT put-order: acquires what the writer released by its fence before it wrote.
            Some(_) => fence(Ordering::Acquire),
            None => _ = world.core().note_test(false),
        }
        found
    }

    #[track_caller]
    fn check_watched(&self, operation: &'static str, range: &Range<usize>) {
        if range.start > range.end || range.end > self.len() {
            self.out_of_range(operation, range);
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn out_of_range(&self, operation: &'static str, range: &Range<usize>) -> ! {
        let (me, len) = (self.view.world().my_pe(), self.len());
        panic!(
            "PE {me}: {operation} of the elements {range:?} reaches beyond the local part, which has {len} \
             elements; name elements inside it, the lower end first"
        );
    }
}

/// Elements of a PE's own part, to be waited for together: see [`Local::watch`].
///
/// Elements are named by their index in the part. Entries of masks and of slices of values are named by their
/// position in the range. If the set is empty, or if every element is excluded, no form waits: the `all`
/// forms hold, the `any` forms return `None`, and the `some` forms return no index.
///
/// ```
/// use pelago::Comparison;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let (me, n) = (world.my_pe(), world.n_pes());
/// let inbox = world.alloc_zeroed::<u64>(n)?;
/// (0..n).try_for_each(|pe| inbox.atomic_set(pe, me, 7))?;
/// let local = inbox.local();
/// let mut is_done = vec![false; n];
/// while is_done.contains(&false) {
///     for pe in local.watch(0..n).excluding(&is_done).wait_some(Comparison::Ne, 0) {
///         is_done[pe] = true; // the data of PE `pe` can be used
///     }
/// }
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
pub struct Watch<'a, T: Element> {
    local: Local<'a, T>,
    range: Range<usize>,
    excluded: Option<&'a [bool]>,
    /// The position in the range where the next search for any element begins: behind the last one found.
    cursor: AtomicUsize,
}

impl<'a, T: Element + PartialOrd> Watch<'a, T> {
    /// Excludes the elements for which `mask` is `true` (the standard's status array). A mask has one entry
    /// for each element of the range.
    ///
    /// # Panics
    /// If the lengths of the mask and the range differ.
    #[track_caller]
    pub fn excluding<'m>(self, mask: &'m [bool]) -> Watch<'m, T>
    where
        'a: 'm,
    {
        self.check_count("excluding", "entries of the mask", mask.len());
        Watch { local: self.local, range: self.range, excluded: Some(mask), cursor: self.cursor }
    }

    /// Makes the next search for any element begin at `index` and wrap around at the end of the range. It is
    /// for callers that create a new watch for each search.
    ///
    /// # Panics
    /// If a range that is not empty does not have this element.
    #[track_caller]
    pub fn starting_at(self, index: usize) -> Watch<'a, T> {
        if !self.range.is_empty() && !self.range.contains(&index) {
            let (me, range) = (self.local.view.world().my_pe(), &self.range);
            panic!(
                "PE {me}: starting_at element {index} of a watch of the elements {range:?}: it is not there"
            );
        }
        self.cursor.store(index.saturating_sub(self.range.start), Ordering::Relaxed);
        self
    }

    /// Waits until this call has seen the comparison hold for each element: not necessarily for all at one
    /// time. A value that is overwritten between two looks may not be seen.
    ///
    /// # Panics
    /// If the number of values is not the number of elements, or every other PE has left the job before.
    #[track_caller]
    pub fn wait_all<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>)
    where
        T: 'v,
    {
        let values = self.checked("wait_all", values);
        let mut awaited = WaitSet::new(self.range.len());
        let is_over = |place: usize| !self.is_watched(place) || self.holds(place, comparison, values);
        self.local.until(self.range.start, || awaited.look(is_over).then_some(()));
    }

    /// Waits until the comparison holds for an element, and returns its index; `None` at once if the set is
    /// empty. Repeated calls return all elements for which it holds in turn.
    ///
    /// # Panics
    /// As [`wait_all`](Watch::wait_all).
    #[track_caller]
    pub fn wait_any<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>) -> Option<usize>
    where
        T: 'v,
    {
        let values = self.checked("wait_any", values);
        let wait = || self.local.until(self.range.start, || self.find_any(comparison, values));
        (!self.is_empty()).then(wait)
    }

    /// Waits until the comparison holds for at least one element, and returns the indices of all elements for
    /// which it holds. Each element is checked at least once. If the set is empty, it returns an empty vector
    /// at once.
    ///
    /// # Panics
    /// As [`wait_all`](Watch::wait_all).
    #[track_caller]
    pub fn wait_some<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>) -> Vec<usize>
    where
        T: 'v,
    {
        let values = self.checked("wait_some", values);
        match self.is_empty() {
            true => Vec::new(),
            false => self.local.until(self.range.start, || self.find_some(comparison, values)),
        }
    }

    /// Makes progress, and returns whether the comparison holds for each element.
    ///
    /// # Panics
    /// If the number of values is not the number of elements.
    #[track_caller]
    pub fn test_all<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>) -> bool
    where
        T: 'v,
    {
        let values = self.checked("test_all", values);
        let all = || self.watched().all(|place| self.holds(place, comparison, values));
        self.local.look_once(|| all().then_some(())).is_some()
    }

    /// Makes progress, and returns the index of an element for which the comparison holds, if there is one.
    /// Repeated calls return all such elements in turn.
    ///
    /// # Panics
    /// As [`test_all`](Watch::test_all).
    #[track_caller]
    pub fn test_any<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>) -> Option<usize>
    where
        T: 'v,
    {
        let values = self.checked("test_any", values);
        self.local.look_once(|| self.find_any(comparison, values))
    }

    /// Makes progress, and returns the indices of all elements for which the comparison holds.
    ///
    /// # Panics
    /// As [`test_all`](Watch::test_all).
    #[track_caller]
    pub fn test_some<'v>(&self, comparison: Comparison, values: impl Into<Values<'v, T>>) -> Vec<usize>
    where
        T: 'v,
    {
        let values = self.checked("test_some", values);
        self.local.look_once(|| self.find_some(comparison, values)).unwrap_or_default()
    }

    fn find_any(&self, comparison: Comparison, values: Values<'_, T>) -> Option<usize> {
        let (len, first) = (self.range.len(), self.cursor.load(Ordering::Relaxed));
        let mut places = (first..len).chain(0..first.min(len));
        let found = places.find(|&place| self.is_watched(place) && self.holds(place, comparison, values))?;
        self.cursor.store(found + 1, Ordering::Relaxed);
        Some(self.range.start + found)
    }

    fn find_some(&self, comparison: Comparison, values: Values<'_, T>) -> Option<Vec<usize>> {
        let places = self.watched().filter(|&place| self.holds(place, comparison, values));
        let found: Vec<usize> = places.map(|place| self.range.start + place).collect();
        (!found.is_empty()).then_some(found)
    }

    /// The positions of the range that are not excluded.
    fn watched(&self) -> impl Iterator<Item = usize> {
        (0..self.range.len()).filter(|&place| self.is_watched(place))
    }

    fn is_watched(&self, place: usize) -> bool {
        self.excluded.is_none_or(|excluded| !excluded[place])
    }

    fn is_empty(&self) -> bool {
        self.watched().next().is_none()
    }

    fn holds(&self, place: usize, comparison: Comparison, values: Values<'_, T>) -> bool {
        // SAFETY: the range was compared with the array's length when this was made.
        let element = unsafe { self.local.part.load(self.range.start + place) };
        let value = match values {
            Values::Same(value) => value,
            Values::Each(values) => values[place],
        };
        comparison.holds(element, value)
    }

    /// The values, after a check of their number.
    #[track_caller]
    fn checked<'v>(&self, operation: &'static str, values: impl Into<Values<'v, T>>) -> Values<'v, T>
    where
        T: 'v,
    {
        let values = values.into();
        if let Values::Each(values) = values {
            self.check_count(operation, "values", values.len());
        }
        values
    }

    #[track_caller]
    fn check_count(&self, operation: &'static str, what: &str, count: usize) {
        let (me, len) = (self.local.view.world().my_pe(), self.range.len());
        assert!(
            count == len,
            "PE {me}: {operation} on the elements {:?} has {count} {what}, but needs {len}, one an element",
            self.range
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use pelago_fabric::sync::spin_once;
    use std::time::{Duration, Instant};

    /// PE 0 puts one element by a plain `p` once PE 1 has announced that it sleeps, and then computes until
    /// PE 1 reports that it has woken up.
    fn a_plain_put_wakes_a_sleeper(world: &World) {
        let compute_until = |is_over: &dyn Fn() -> bool, what: &str| {
            let since = Instant::now();
            while !is_over() {
                spin_once();
                assert!(since.elapsed() < Duration::from_secs(60), "{what}");
            }
        };
        let words = world.alloc_zeroed::<u16>(2).unwrap();
        for round in 1..=12 {
            if world.my_pe() == 0 {
                let there = words.place.fast(1).expect("all PEs are mapped");
                compute_until(&|| there.has_waiters(), "PE 1 does not fall asleep");
                words.p(1, 0, round).unwrap();
                compute_until(&|| words.local().get(1) == round, "PE 1 sleeps on");
            } else {
                let local = words.local();
                match round % 3 {
                    0 => assert_eq!(local.wait(0, Comparison::Eq, round), round),
                    1 => local.watch(0..1).wait_all(Comparison::Ge, &[round]),
                    _ => assert_eq!(local.watch(0..2).wait_any(Comparison::Eq, &[round, 99]), Some(0)),
                }
                words.p(0, 1, round).unwrap();
            }
        }
    }

    #[test]
    fn a_plain_put_wakes_a_thread() {
        crate::spmd(2, a_plain_put_wakes_a_sleeper).unwrap();
    }

    #[test]
    fn a_plain_put_wakes_a_process() {
        crate::processes!(2, a_plain_put_wakes_a_sleeper);
    }
}
