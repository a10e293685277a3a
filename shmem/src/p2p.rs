//! Point-to-point synchronisation (OpenSHMEM 1.6, 9.11): waiting for, and testing of, words of this PE that
//! other PEs change.
//!
//! Invariant: what is found is an acquire, and every call makes progress. A word of 2, 4 or 8 bytes is read
//! in one piece, so that not only atomics may change it but also aligned puts of its size.

use crate::abi::{CMP_EQ, CMP_GE, CMP_GT, CMP_LE, CMP_LT, CMP_NE, c_int, size_t};
use crate::fault::{Call, Mark, fail, output};
use crate::library::{self, RemoteAddress};
use pelago::binding::copy;
use pelago::sync::{AtomicU64, Ordering};
use pelago::{Comparison, Element};

/// `shmem_<type>_wait_until`.
#[inline(always)]
pub(crate) unsafe fn wait_until<T: Word>(call: Call, ivar: *mut T, cmp: c_int, cmp_value: T) {
    // SAFETY: the caller's promises are the same.
    unsafe { wait(call, "ivar", ivar, cmp, cmp_value) };
}

/// `shmem_<type>_wait`: until the word differs.
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
        // SAFETY: the word is one of this PE's symmetric memory, as was found.
        comparison.holds(unsafe { copy::load(ivar) }, cmp_value).then_some(())
    });
    c_int::from(found.is_some())
}

/// Waits for a word that the call names `what`, and answers what it then is.
#[inline(never)]
pub(crate) unsafe fn wait<T: Word>(call: Call, what: &str, ivar: *mut T, cmp: c_int, cmp_value: T) -> T {
    let comparison = comparison(call, cmp);
    let remote = library::of(call).words(call, what, ivar, 1);
    wait_to_find(call, remote, || {
        // SAFETY: the word is one of this PE's symmetric memory, as was found.
        let element = unsafe { copy::load(ivar) };
        comparison.holds(element, cmp_value).then_some(element)
    })
}

/// Waits until `look` finds something. Only who has to wait pays for the name of the call.
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

/// The calls on a set of words, and those with a value for each of them.
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

/// What no element of an empty set has as its index: `SIZE_MAX`.
const NONE: size_t = size_t::MAX;

/// What words are compared with: all with the same, or each with one of its own.
#[derive(Clone, Copy)]
struct Values<T> {
    first: *const T,
    step: usize,
}

/// Words of this PE, and what they are compared with.
struct Set<T> {
    call: Call,
    ivars: *const T,
    len: usize,
    /// Which words are left out: those whose entry is not 0. None if null.
    status: *const c_int,
    comparison: Comparison,
    values: Values<T>,
    /// Where the words lie; none if there are none.
    remote: Option<RemoteAddress>,
}

impl<T: Word> Set<T> {
    /// # Safety
    /// `status` is null or has an entry for each word, and so have the values if they are several; they live
    /// as long as the set.
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

    /// "Each element of ivars has been updated": at whatever time during the call.
    #[inline(never)]
    fn wait_all(&self) {
        let Some(remote) = self.remote else { return };
        let mut next = 0;
        wait_to_find(self.call, remote, || {
            while next < self.len && (!self.is_in(next) || self.holds(next)) {
                next += 1;
            }
            (next == self.len).then_some(())
        });
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
    /// There is room for as many indices as the set has words.
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
    /// There is room for as many indices as the set has words.
    #[inline(never)]
    unsafe fn test_some(&self, indices: *mut size_t) -> size_t {
        let Some(remote) = self.remote else { return 0 };
        let indices = output(self.call, "indices", indices);
        // SAFETY: the caller's promises are the same.
        remote.array.test_to_find(|| unsafe { self.find_all(indices) }).unwrap_or(0)
    }

    /// A word for which the comparison holds, looked for from `first` on, round the set.
    fn find(&self, first: usize) -> Option<usize> {
        (first..self.len).chain(0..first).find(|&index| self.is_in(index) && self.holds(index))
    }

    /// Writes the indices of all words for which the comparison holds; how many, if there are any.
    ///
    /// # Safety
    /// There is room for as many indices as the set has words.
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
        // SAFETY: the one who made the set vouches for an entry of each word.
        self.status.is_null() || unsafe { self.status.add(index).read() } == 0
    }

    fn holds(&self, index: usize) -> bool {
        // SAFETY: the words lie in this PE's symmetric memory, as was found; the one who made the set vouches
        // for the values.
        unsafe {
            let value = self.values.first.add(index * self.values.step).read();
            self.comparison.holds(copy::load(self.ivars.add(index)), value)
        }
    }
}

/// Where the next search in a set begins: behind the word that the last one has found, so that of several
/// that always hold each is found in turn. Sets are told apart by the address of their first word; those
/// that share a cursor begin anywhere, so that none of their words is left out for ever.
struct Cursor {
    slot: &'static AtomicU64,
    tag: u64,
}

static CURSORS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Counts the searches whose slot another set has.
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
            // Another set has the slot: anywhere, and not the same place each time.
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
