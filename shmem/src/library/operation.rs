//! The parts of every operation on a context: its target PE, its stream, and its completion.

use super::Library;
use crate::base::abi::{Ctx, c_int};
use crate::base::fault::{Call, Mark, fail};
use crate::handles::context::{self, CONTEXTS};
use crate::symmetric::RemoteAddress;
use crate::symmetric::check::User;
use pelago::binding;
use pelago::{Element, Pe, View};

impl Library {
    /// The PE of the job, from its number in the context's team.
    pub(crate) fn pe(&'static self, call: Call, ctx: Ctx, pe: c_int) -> Pe {
        let (n_pes, translate): (usize, &dyn Fn(Pe) -> Pe) = match context::find(call, ctx) {
            None => (self.world.n_pes(), &|pe| pe),
            Some(context) => (context.n_pes, &|pe| context.pe(pe)),
        };
        match usize::try_from(pe) {
            Ok(pe) if pe < n_pes => translate(pe),
            _ => {
                fail(call, format_args!("pe is {pe}, but there are {n_pes} PEs, numbered 0 to {}", n_pes - 1))
            }
        }
    }

    /// Calls `work` with an array, seen through a context. `None` once the exit of the process has finalised:
    /// then operations have no effect.
    pub(crate) fn through<R>(
        &'static self,
        call: Call,
        ctx: Ctx,
        array: &View<'static, u8>,
        work: impl FnOnce(&View<'_, u8>) -> R,
    ) -> Option<R> {
        if super::has_ended() {
            return None;
        }
        let _mark = Mark::set(call);
        let context = context::find(call, ctx);
        let counts = context.map_or(&self.counts, |context| &context.counts);
        Some(counts.of(self.world, || match context {
            None => work(array),
            Some(context) => work(&array.via(&context.stream)),
        }))
    }

    /// Calls `work` with the array of a word, seen through a context, as words of the type.
    pub(crate) fn through_words<T: Element, R>(
        &'static self,
        call: Call,
        ctx: Ctx,
        remote: RemoteAddress,
        work: impl FnOnce(&View<'_, T>) -> R,
    ) -> Option<R> {
        self.through(call, ctx, remote.array, |array| {
            // SAFETY: both arrays of the library live longer than a call, and have no exclusive phases.
            work(&unsafe { array.cast::<T>() })
        })
    }

    /// A barrier of all PEs, which completes the operations of the default context; none once the exit of the
    /// process has finalised.
    pub(crate) fn barrier(&self, call: Call) {
        if super::has_ended() {
            return;
        }
        let _mark = self.enter_barrier(call);
        self.world.barrier();
    }

    /// The actions before every operation that includes such a barrier.
    pub(crate) fn enter_barrier(&self, call: Call) -> Mark {
        self.settle_sources(call, Some(User::Context(Ctx::DEFAULT)));
        Mark::set(call)
    }

    /// A quiet on a context; none on `SHMEM_CTX_INVALID`, and once the exit of the process has finalised.
    #[inline]
    pub(crate) fn complete(&self, call: Call, ctx: Ctx) {
        if ctx != Ctx::INVALID && !super::has_ended() {
            self.settle_sources(call, Some(User::Context(ctx)));
            let _mark = Mark::set(call);
            match context::stream(call, ctx) {
                Some(stream) => stream.quiet(),
                None => self.world.quiet(),
            }
        }
    }

    /// Makes progress. Returns whether a quiet would return without waiting; in this case the call is a
    /// quiet.
    pub(crate) fn is_quiet(&self, call: Call, ctx: Ctx) -> bool {
        if ctx == Ctx::INVALID || super::has_ended() {
            return true;
        }
        let is_quiet = match context::stream(call, ctx) {
            Some(stream) => stream.is_quiet(),
            None => binding::is_quiet(self.world),
        };
        if is_quiet {
            self.settle_sources(call, Some(User::Context(ctx)));
        }
        is_quiet
    }

    /// Completes the operations of a context and ends it.
    pub(crate) fn end_context(&self, call: Call, ctx: Ctx) {
        self.complete(call, ctx);
        drop(CONTEXTS.remove(ctx.0));
    }
}
