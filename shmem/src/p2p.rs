//! Point-to-point synchronisation (OpenSHMEM 1.6, 9.11): waiting for, and testing of, words of this PE that
//! other PEs change.
//!
//! Invariant: a load that satisfies the comparison is an acquire, and every call makes progress. A word of 2,
//! 4 or 8 bytes is read with one load, so that it may be changed not only by atomics but also by aligned puts
//! of its size.

use crate::base::abi::{CMP_EQ, CMP_GE, CMP_GT, CMP_LE, CMP_LT, CMP_NE, c_int, size_t};
use crate::base::fault::{Call, Mark, fail, output};
use crate::library;
use crate::symmetric::RemoteAddress;
use pelago::binding::{WaitSet, copy};
use pelago::sync::{AtomicU64, Ordering};
use pelago::{Comparison, Element};

/// `shmem_<type>_wait_until`.
#[inline(always)]
pub(crate) unsafe fn wait_until<T: Word>(call: Call, ivar: *mut T, cmp: c_int, cmp_value: T) {
    // SAFETY: the caller's promises are the same.
    unsafe { wait(call, "ivar", ivar, cmp, cmp_value) };
}

/// `shmem_<type>_wait`: waits until the word differs from the value.
#[inline(always)]
pub(crate) unsafe fn wait_until_other<T: Word>(call: Call, ivar: *mut T, cmp_value: T) {
    // SAFETY: the caller's promises are the same.
    unsafe { wait(call, "ivar", ivar, CMP_NE, cmp_value) };
}

/// `shmem_<type>_test`.
#[inline(never)]
pub(crate) unsafe fn test<T: Word>(call: Call, ivar: *mut T, cmp: c_int, cmp_value: T) -> c_int {
    let comparison = comparison(call, cmp);
    let remote = library::of(call).words(call, "ivar", ivar, 1);
    let found = remote.array.test_to_find(|| {
        // SAFETY: the word was checked to be in this PE's symmetric memory.
        comparison.holds(unsafe { copy::load(ivar) }, cmp_value).then_some(())
    });
    c_int::from(found.is_some())
}

/// Waits for a word, which messages call `what`, and returns its value.
#[inline(never)]
pub(crate) unsafe fn wait<T: Word>(call: Call, what: &str, ivar: *mut T, cmp: c_int, cmp_value: T) -> T {
    let comparison = comparison(call, cmp);
    let remote = library::of(call).words(call, what, ivar, 1);
    wait_to_find(call, remote, || {
        // SAFETY: the word was checked to be in this PE's symmetric memory.
        let element = unsafe { copy::load(ivar) };
        comparison.holds(element, cmp_value).then_some(element)
    })
}

/// Waits until `look` finds something. The name of the call is stored only if the call must wait.
#[inline(always)]
fn wait_to_find<R>(call: Call, remote: RemoteAddress, mut look: impl FnMut() -> Option<R>) -> R {
    let mut mark = None;
    remote.array.wait_to_find(remote.offset, || {
        let found = look();
        if found.is_none() && mark.is_none() {
            mark = Some(Mark::set(call));
        }
        found
    })
}

/// The calls on a set of words: with one value for all words, and with a value for each word.
macro_rules! of_sets {
    ($(
        $name:ident $name_vector:ident: $of:ident, $(($indices:ident))? $(-> $result:ty)?;
    )+) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name<T: Word>(
            call: Call,
            ivars: *mut T,
            nelems: size_t,
            $($indices: *mut size_t,)?
            status: *const c_int,
            cmp: c_int,
            cmp_value: T,
        ) $(-> $result)? {
            let values = Values { first: &raw const cmp_value, step: 0 };
            // SAFETY: the caller's promises are the same, and the value outlives the set.
            unsafe { Set::new(call, ivars, nelems, status, cmp, values).$of($($indices)?) }
        }

        #[inline(always)]
        pub(crate) unsafe fn $name_vector<T: Word>(
            call: Call,
            ivars: *mut T,
            nelems: size_t,
            $($indices: *mut size_t,)?
            status: *const c_int,
            cmp: c_int,
            cmp_values: *const T,
        ) $(-> $result)? {
            let values = Values { first: cmp_values, step: 1 };
            // SAFETY: the caller's promises are the same.
            unsafe { Set::new(call, ivars, nelems, status, cmp, values).$of($($indices)?) }
        }
    )+};
}

of_sets! {
    wait_until_all wait_until_all_vector: wait_all,;
    wait_until_any wait_until_any_vector: wait_any, -> size_t;
    wait_until_some wait_until_some_vector: wait_some, (indices) -> size_t;
    test_all test_all_vector: test_all, -> c_int;
    test_any test_any_vector: test_any, -> size_t;
    test_some test_some_vector: test_some, (indices) -> size_t;
}

/// A type of words that are waited for.
pub(crate) trait Word: Element + PartialOrd {}

impl<T: Element + PartialOrd> Word for T {}

/// The index that stands for no element: `SIZE_MAX`.
const NONE: size_t = size_t::MAX;

/// The values that words are compared with: one for all words, or one for each.
#[derive(Clone, Copy)]
struct Values<T> {
    first: *const T,
    step: usize,
}

/// Words of this PE, and the values that they are compared with.
struct Set<T> {
    call: Call,
    ivars: *const T,
    len: usize,
    /// The words to ignore: those whose entry is not 0. If the pointer is null, no word is ignored.
    status: *const c_int,
    comparison: Comparison,
    values: Values<T>,
    /// The place of the words; `None` if the set is empty.
    remote: Option<RemoteAddress>,
}

impl<T: Word> Set<T> {
    /// # Safety
    /// `status` is null or has an entry for each word. If the values are several, they have an entry for each
    /// word, too. Both live as long as the set.
    #[inline(never)]
    unsafe fn new(
        call: Call,
        ivars: *mut T,
        len: usize,
        status: *const c_int,
        cmp: c_int,
        values: Values<T>,
    ) -> Set<T> {
        let (library, comparison) = (library::of(call), comparison(call, cmp));
        let ivars = ivars.cast_const();
        let mut set = Set { call, ivars, len, status, comparison, values, remote: None };
        let is_empty = !(0..len).any(|index| set.is_in(index));
        set.remote = (!is_empty).then(|| library.words(call, "ivars", ivars, len));
        if !is_empty && set.values.first.is_null() {
            fail(call, "cmp_values is null: give a value for each word");
        }
        set
    }

    /// "Each element of ivars has been updated": at any time during the call.
    #[inline(never)]
    fn wait_all(&self) {
        let Some(remote) = self.remote else { return };
        let mut awaited = WaitSet::new(self.len);
        let is_over = |index: usize| !self.is_in(index) || self.holds(index);
        wait_to_find(self.call, remote, || awaited.look(is_over).then_some(()));
    }

    #[inline(never)]
    fn wait_any(&self) -> size_t {
        let Some(remote) = self.remote else { return NONE };
        let cursor = Cursor::of(self.ivars.cast());
        let found = wait_to_find(self.call, remote, || self.find(cursor.start(self.len)));
        cursor.found(found);
        found
    }

    /// # Safety
    /// `indices` is valid for as many indices as the set has words.
    #[inline(never)]
    unsafe fn wait_some(&self, indices: *mut size_t) -> size_t {
        let Some(remote) = self.remote else { return 0 };
        let indices = output(self.call, "indices", indices);
        // SAFETY: the caller's promises are the same.
        wait_to_find(self.call, remote, || unsafe { self.find_all(indices) })
    }

    #[inline(never)]
    fn test_all(&self) -> c_int {
        let Some(remote) = self.remote else { return 1 };
        let all = || (0..self.len).all(|index| !self.is_in(index) || self.holds(index));
        c_int::from(remote.array.test_to_find(|| all().then_some(())).is_some())
    }

    #[inline(never)]
    fn test_any(&self) -> size_t {
        let Some(remote) = self.remote else { return NONE };
        let cursor = Cursor::of(self.ivars.cast());
        let found = remote.array.test_to_find(|| self.find(cursor.start(self.len)));
        found.inspect(|&found| cursor.found(found)).unwrap_or(NONE)
    }

    /// # Safety
    /// `indices` is valid for as many indices as the set has words.
    #[inline(never)]
    unsafe fn test_some(&self, indices: *mut size_t) -> size_t {
        let Some(remote) = self.remote else { return 0 };
        let indices = output(self.call, "indices", indices);
        // SAFETY: the caller's promises are the same.
        remote.array.test_to_find(|| unsafe { self.find_all(indices) }).unwrap_or(0)
    }

    /// A word for which the comparison holds. The search starts at `first` and wraps around the set.
    fn find(&self, first: usize) -> Option<usize> {
        (first..self.len).chain(0..first).find(|&index| self.is_in(index) && self.holds(index))
    }

    /// Writes the indices of all words for which the comparison holds. Returns their number, if there are
    /// any.
    ///
    /// # Safety
    /// `indices` is valid for as many indices as the set has words.
    unsafe fn find_all(&self, indices: *mut size_t) -> Option<size_t> {
        let mut count = 0;
        for index in (0..self.len).filter(|&index| self.is_in(index) && self.holds(index)) {
            // SAFETY: at most one index a word is written.
            unsafe { indices.add(count).write(index) };
            count += 1;
        }
        (count > 0).then_some(count)
    }

    fn is_in(&self, index: usize) -> bool {
        // SAFETY: the caller of `Set::new` has guaranteed an entry for each word.
        self.status.is_null() || unsafe { self.status.add(index).read() } == 0
    }

    fn holds(&self, index: usize) -> bool {
        // SAFETY: the words were checked to be in this PE's symmetric memory; the caller of `Set::new` has
        // guaranteed the values.
        unsafe {
            let value = self.values.first.add(index * self.values.step).read();
            self.comparison.holds(copy::load(self.ivars.add(index)), value)
        }
    }
}

/// The start of the next search in a set: after the word that the last search has found, so that several
/// words that always satisfy the comparison are found in turn. Sets are identified by the address of their
/// first word; sets that share a cursor start at varying words, so that none of their words is ignored
/// forever.
struct Cursor {
    slot: &'static AtomicU64,
    tag: u64,
}

static CURSORS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Counts the searches whose cursor belongs to another set.
static TURN: AtomicU64 = AtomicU64::new(0);

/// An odd number whose multiples differ in their high bits: 2^64 by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Cursor {
    fn of(address: *const u8) -> Cursor {
        let hash = (address as u64).wrapping_mul(SPREAD);
        Cursor { slot: &CURSORS[(hash >> 58) as usize], tag: hash >> 26 & 0xffff_ffff }
    }

    fn start(&self, len: usize) -> usize {
        let word = self.slot.load(Ordering::Relaxed);
        let start = match word >> 32 == self.tag {
            true => word & 0xffff_ffff,
            // The cursor belongs to another set: start at a word that varies from search to search.
            false => TURN.fetch_add(1, Ordering::Relaxed).wrapping_mul(SPREAD) >> 32,
        };
        start as usize % len
    }

    fn found(&self, index: usize) {
        let next = (index as u64 + 1) & 0xffff_ffff;
        self.slot.store(self.tag << 32 | next, Ordering::Relaxed);
    }
}

fn comparison(call: Call, cmp: c_int) -> Comparison {
    match cmp {
        CMP_EQ => Comparison::Eq,
        CMP_NE => Comparison::Ne,
        CMP_GT => Comparison::Gt,
        CMP_GE => Comparison::Ge,
        CMP_LT => Comparison::Lt,
        CMP_LE => Comparison::Le,
        _ => fail(
            call,
            format_args!(
                "cmp is {cmp}, which is no comparison: give SHMEM_CMP_EQ, _NE, _GT, _GE, _LT or _LE"
            ),
        ),
    }
}
