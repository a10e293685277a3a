//! Non-blocking puts and gets: in scopes, and with explicit handles that own their buffers.
//!
//! Invariant: a buffer in use cannot be touched, moved or freed before its operation is complete, whatever is
//! forgotten: a scope does not end before its operations have, and a handle owns its buffer. Between PEs that
//! map each other the operations are complete when they are issued.

use crate::Pe;
use crate::element::Element;
use crate::error::Result;
use crate::symmetric::Symmetric;
use crate::world::World;
use std::marker::PhantomData;

/// A scope of non-blocking operations; see [`World::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    world: &'env World,
    buffers: PhantomData<&'scope mut &'scope ()>,
}

impl World {
    /// Runs `work` with a scope in which puts and gets do not wait: they may use buffers that outlive the
    /// scope, and all of them are complete when `scope` returns.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u32>(3)?;
    /// let mine = [world.my_pe() as u32 + 1];
    /// world.scope(|scope| (0..3).try_for_each(|pe| scope.put(&inbox, pe, world.my_pe(), &mine)))?;
    /// world.barrier();
    /// assert_eq!(inbox.local().to_vec(), [1, 2, 3]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn scope<'env, R>(&'env self, work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
        let scope = Scope { world: self, buffers: PhantomData };
        // Completes on unwinding as well.
        struct Complete<'a>(&'a World);
        impl Drop for Complete<'_> {
            fn drop(&mut self) {
                self.0.quiet();
            }
        }
        let _complete = Complete(scope.world);
        work(&scope)
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a put, as [`Symmetric::put`]. The source is in use until the scope ends.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is started then.
    pub fn put<T: Element>(
        &'scope self,
        array: &'scope Symmetric<'_, T>,
        pe: Pe,
        index: usize,
        source: &'scope [T],
    ) -> Result<()> {
        array.put(pe, index, source)
    }

    /// Starts a get, as [`Symmetric::get`]. The data are there when the scope ends.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is started then.
    pub fn get<T: Element>(
        &'scope self,
        array: &'scope Symmetric<'_, T>,
        pe: Pe,
        index: usize,
        target: &'scope mut [T],
    ) -> Result<()> {
        array.get(pe, index, target)
    }

    /// Waits until everything started so far is complete.
    pub fn quiet(&self) {
        self.world.quiet();
    }
}

/// A put or get in flight, with the buffer that it owns.
#[must_use = "the operation is complete after `wait`"]
pub struct Transfer<'a, T: Element> {
    world: &'a World,
    buffer: Vec<T>,
}

impl<T: Element> Transfer<'_, T> {
    /// Whether the operation is complete.
    pub fn test(&self) -> bool {
        true
    }

    /// Waits until the operation is complete, and gives the buffer back: the source of a put, the data of a
    /// get.
    pub fn wait(self) -> Vec<T> {
        self.world.quiet();
        self.buffer
    }
}

impl<T: Element> Symmetric<'_, T> {
    /// Starts a put whose source the operation owns until it is complete.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u8>(4)?;
    /// let put = inbox.put_nb(1 - world.my_pe(), 0, vec![7; 4])?;
    /// let buffer = put.wait();
    /// world.barrier();
    /// assert_eq!(inbox.local().to_vec(), buffer);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is started then.
    pub fn put_nb(&self, pe: Pe, index: usize, source: Vec<T>) -> Result<Transfer<'_, T>> {
        self.put(pe, index, &source)?;
        Ok(Transfer { world: self.world(), buffer: source })
    }

    /// Starts a get into a buffer that the operation owns until it is complete.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is started then.
    pub fn get_nb(&self, pe: Pe, index: usize, mut target: Vec<T>) -> Result<Transfer<'_, T>> {
        self.get(pe, index, &mut target)?;
        Ok(Transfer { world: self.world(), buffer: target })
    }
}
