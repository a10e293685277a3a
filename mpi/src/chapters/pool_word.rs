//! Words in the pools of PEs, which several processes change by atomics.
//!
//! A PE that maps the pool uses atomics of its processor. Others use the runtime's atomics over the network,
//! which the owner's progress or its service thread executes, or where no PE maps another, the fabric.
//!
//! Invariant: a word is changed by one kind of executor in a job: see `pelago_core::memory::route`.

use crate::chapters::library::Mpi;
use pelago_core::Pe;
use pelago_core::endpoint::RemoteAddress;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Atomic, AtomicKind, AtomicOp};

/// A word of 8 bytes in the pool of a PE.
#[derive(Clone, Copy, Debug)]
pub struct PoolWord {
    /// The operation that changes it, for messages.
    pub operation: &'static str,
    pub pe: Pe,
    /// Its place in the symmetric region, in bytes.
    pub offset: usize,
}

impl PoolWord {
    /// The word for atomics of this processor, if it is mapped here.
    pub fn mapped(&self, mpi: &Mpi) -> Option<&AtomicU64> {
        let memory = &mpi.core.memory;
        let word: *const AtomicU64 = memory.heap(self.pe).wrapping_add(self.offset).cast_const().cast();
        // SAFETY: the pool of a mapped PE is mapped as long as the job lasts, and the word is aligned in it.
        memory.is_mapped(self.pe).then(|| unsafe { &*word })
    }

    /// Adds to the word: its old value. `mapped` is the word where it is mapped here.
    pub fn add(&self, mpi: &Mpi, mapped: Option<&AtomicU64>, operand: u64) -> u64 {
        match mapped {
            // SYNC POINT pool-word: acquires what the changes before have released, and releases.
            Some(word) => word.fetch_add(operand, Ordering::AcqRel),
            None => {
                self.change(mpi, Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand, compare: 0 })
            }
        }
    }

    /// Sets the word to `new` if it is `compare`: its old value. `mapped` as for [`add`](PoolWord::add).
    pub fn swap(&self, mpi: &Mpi, mapped: Option<&AtomicU64>, (compare, new): (u64, u64)) -> u64 {
        if let Some(word) = mapped {
            // SYNC POINT pool-word: as above.
            return word
                .compare_exchange(compare, new, Ordering::AcqRel, Ordering::Relaxed)
                .unwrap_or_else(|held| held);
        }
        let (kind, op) = (AtomicKind::U64, AtomicOp::CompareSwap);
        self.change(mpi, Atomic { kind, op, operand: new, compare })
    }

    /// Changes the word over the network: its old value.
    fn change(&self, mpi: &Mpi, atomic: Atomic) -> u64 {
        let mut old = [0u64];
        let place: *mut u8 = old.as_mut_ptr().cast();
        let target = RemoteAddress { operation: self.operation, pe: self.pe, offset_bytes: self.offset };
        let core = &mpi.core;
        // SYNC POINT pool-word: as above, with the operations on the way complete before. SAFETY: the word
        // lies in the pool of the PE, aligned; the old value is valid until the atomic is complete, which is
        // when `track` returns.
        core.track((self.operation, self.pe), CompletionCounter::is_done, |counter| unsafe {
            core.start_atomic(core.net_endpoint(), target, &atomic, place, Some(counter));
        });
        old[0]
    }

    /// Adds to the word: its old value.
    pub fn fetch_add(&self, mpi: &Mpi, operand: u64) -> u64 {
        self.add(mpi, self.mapped(mpi), operand)
    }
}
