//! Remote memory access: put and get.
//!
//! The fast path checks PE and range, and copies; everything else is in one cold function a direction: it
//! says what is wrong, or counts the operation.

use crate::Pe;
use crate::counters::Counters;
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::segment::Part;
use crate::symmetric::Symmetric;

impl<T: Element> Symmetric<'_, T> {
    /// Puts one element: writes `value` to element `index` on `pe`. Numbers of up to 8
    /// bytes arrive in one piece. Complete at the target after [`quiet`](crate::World::quiet) or a barrier.
    ///
    /// # Errors
    /// If there is no such PE or element; nothing is written then.
    #[inline]
    pub fn p(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        // Two tests, not one of both: joined, they cost more instructions.
        if pe >= self.place.gate {
            return self.p_cold(pe, index, value);
        }
        if index >= self.len() {
            return self.p_cold(pe, index, value);
        }
        // SAFETY: the gate lets only PEs of the job pass; the index was checked.
        unsafe { self.place.part(pe).store(index, value) };
        Ok(())
    }

    /// Gets one element: reads element `index` on `pe`. Numbers of up to 8 bytes are read in one piece.
    ///
    /// # Errors
    /// If there is no such PE or element.
    #[inline]
    pub fn g(&self, pe: Pe, index: usize) -> Result<T> {
        if pe >= self.place.gate {
            return self.g_cold(pe, index);
        }
        if index >= self.len() {
            return self.g_cold(pe, index);
        }
        // SAFETY: the gate lets only PEs of the job pass; the index was checked.
        Ok(unsafe { self.place.part(pe).load(index) })
    }

    /// Puts elements: writes `source` to the elements from `index` on, on `pe`. The source may be reused at
    /// return; the put is complete at the target after [`quiet`](crate::World::quiet) or a barrier.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is written then.
    #[inline]
    pub fn put(&self, pe: Pe, index: usize, source: &[T]) -> Result<()> {
        if pe >= self.place.gate {
            return self.put_cold("put", pe, index, source);
        }
        if !self.has_range(index, source.len()) {
            return self.put_cold("put", pe, index, source);
        }
        // SAFETY: the gate lets only PEs of the job pass; the range was checked.
        unsafe { self.place.part(pe).write(index, source) };
        Ok(())
    }

    /// Gets elements: reads those from `index` on, on `pe`, into `target`. The data are there at return.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is read then.
    #[inline]
    pub fn get(&self, pe: Pe, index: usize, target: &mut [T]) -> Result<()> {
        if pe >= self.place.gate {
            return self.get_cold("get", pe, index, target);
        }
        if !self.has_range(index, target.len()) {
            return self.get_cold("get", pe, index, target);
        }
        // SAFETY: the gate lets only PEs of the job pass; the range was checked.
        unsafe { self.place.part(pe).read(index, target) };
        Ok(())
    }

    /// A handle to the part on one PE, which is checked here once.
    ///
    /// # Errors
    /// If there is no such PE.
    #[inline]
    pub fn on(&self, pe: Pe) -> Result<On<'_, T>> {
        self.check_pe("on", pe)?;
        // SAFETY: the PE was compared with the number of PEs above.
        let part = unsafe { self.place.part(pe) };
        let gate_len = if pe < self.place.gate { self.len() } else { 0 };
        Ok(On { part, gate_len, array: self, pe })
    }

    #[inline(always)]
    fn has_range(&self, index: usize, count: usize) -> bool {
        self.len().checked_sub(count).is_some_and(|last| index <= last)
    }

    /// The arguments stand as in `p`, so that the fast path need not move them.
    #[cold]
    #[inline(never)]
    fn p_cold(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        self.put_cold("p", pe, index, &[value])
    }

    #[cold]
    #[inline(never)]
    fn put_cold(&self, operation: &'static str, pe: Pe, index: usize, source: &[T]) -> Result<()> {
        self.check(operation, pe, index, source.len())?;
        // SAFETY: PE and range were checked.
        unsafe { self.place.part(pe).write(index, source) };
        let bytes = size_of_val(source) as u64;
        self.world().tally.add(|c| *c = Counters { puts: c.puts + 1, put_bytes: c.put_bytes + bytes, ..*c });
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn get_cold(&self, operation: &'static str, pe: Pe, index: usize, target: &mut [T]) -> Result<()> {
        self.check(operation, pe, index, target.len())?;
        // SAFETY: PE and range were checked.
        unsafe { self.place.part(pe).read(index, target) };
        let bytes = size_of_val(target) as u64;
        self.world().tally.add(|c| *c = Counters { gets: c.gets + 1, get_bytes: c.get_bytes + bytes, ..*c });
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn g_cold(&self, pe: Pe, index: usize) -> Result<T> {
        self.check("g", pe, index, 1)?;
        // SAFETY: PE and index were checked.
        let value = unsafe { self.place.part(pe).load(index) };
        let bytes = size_of::<T>() as u64;
        self.world().tally.add(|c| *c = Counters { gets: c.gets + 1, get_bytes: c.get_bytes + bytes, ..*c });
        Ok(value)
    }

    fn check(&self, operation: &'static str, pe: Pe, index: usize, count: usize) -> Result<()> {
        self.check_pe(operation, pe)?;
        let (me, len) = (self.world().my_pe(), self.len());
        if !self.has_range(index, count) {
            return Err(ErrorKind::OutOfRange { me, operation, pe, index, count, len }.into());
        }
        self.check_open(operation)?;
        match self.world().has_failed() {
            Some(reason) => Err(ErrorKind::JobFailed { me, operation, reason }.into()),
            None => Ok(()),
        }
    }

    fn check_pe(&self, operation: &'static str, pe: Pe) -> Result<()> {
        let (me, n_pes) = (self.world().my_pe(), self.world().n_pes());
        if pe >= n_pes {
            return Err(ErrorKind::PeOutOfRange { me, operation, pe, n_pes }.into());
        }
        Ok(())
    }
}

/// The part of a symmetric array on one PE, for many operations there.
pub struct On<'a, T: Element> {
    part: Part<T>,
    /// Elements that the fast path may reach: all, or none if the gate is closed.
    gate_len: usize,
    array: &'a Symmetric<'a, T>,
    pe: Pe,
}

impl<T: Element> On<'_, T> {
    /// Puts one element, as [`Symmetric::p`].
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn p(&self, index: usize, value: T) -> Result<()> {
        if index >= self.gate_len {
            return self.p_cold(index, value);
        }
        // SAFETY: the index was compared with the array's length above.
        unsafe { self.part.store(index, value) };
        Ok(())
    }

    /// The arguments stand as in `p`. The black box keeps the compiler from passing the fields of `self` one
    /// by one instead, which would move registers on the fast path.
    #[cold]
    #[inline(never)]
    fn p_cold(&self, index: usize, value: T) -> Result<()> {
        let this = std::hint::black_box(self);
        this.array.put_cold("p", this.pe, index, &[value])
    }

    /// Gets one element, as [`Symmetric::g`].
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn g(&self, index: usize) -> Result<T> {
        if index < self.gate_len {
            // SAFETY: the index was compared with the array's length above.
            return Ok(unsafe { self.part.load(index) });
        }
        self.array.g_cold(self.pe, index)
    }

    /// Puts elements, as [`Symmetric::put`].
    ///
    /// # Errors
    /// If the range exceeds the array.
    #[inline]
    pub fn put(&self, index: usize, source: &[T]) -> Result<()> {
        if index <= self.gate_len && source.len() <= self.gate_len - index {
            // SAFETY: the range was compared with the array's length above.
            unsafe { self.part.write(index, source) };
            return Ok(());
        }
        self.array.put_cold("put", self.pe, index, source)
    }

    /// Gets elements, as [`Symmetric::get`].
    ///
    /// # Errors
    /// If the range exceeds the array.
    #[inline]
    pub fn get(&self, index: usize, target: &mut [T]) -> Result<()> {
        if index <= self.gate_len && target.len() <= self.gate_len - index {
            // SAFETY: the range was compared with the array's length above.
            unsafe { self.part.read(index, target) };
            return Ok(());
        }
        self.array.get_cold("get", self.pe, index, target)
    }
}
