//! Communication contexts: streams of operations that are ordered and completed apart from each other.
//!
//! Between PEs that map each other an operation is complete when it returns, and a context costs nothing;
//! over the network each has an endpoint of its own, which a later context takes over when the context is
//! dropped. Source: OpenSHMEM 1.6, section 9.5.

use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::error::Result;
use pelago_core::endpoint::Endpoint;
use std::sync::Arc;

/// Which threads of a PE will use a context: a promise, of which the runtime makes no use yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextKind {
    /// Any threads, also at the same time.
    #[default]
    Shared,
    /// Any threads, one at a time.
    Serialized,
    /// Only the thread that made it.
    Private,
}

/// A stream of operations of one PE: see [`World::context`]. Dropping it completes them.
///
/// A context cannot be used after it was dropped:
/// ```compile_fail,E0505
/// # pelago::spmd(1, |world| -> pelago::Result<()> {
/// let counts = world.alloc_zeroed::<u64>(1)?;
/// let context = world.context(Default::default())?;
/// let through = counts.via(&context);
/// drop(context);
/// through.p(0, 0, 1)
/// # });
/// ```
pub struct Context<'w> {
    world: &'w World,
    kind: ContextKind,
    /// `None` if every PE is mapped.
    endpoint: Option<Arc<Endpoint>>,
}

impl World {
    /// Makes a context. Local. Operations on an array seen [`via`](crate::View::via) it are ordered by its
    /// fence and completed by its quiet only; a barrier does not complete them.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u64>(8)?;
    /// let context = world.context(Default::default())?;
    /// inbox.via(&context).put(1, 0, &[7; 8])?;
    /// context.quiet(); // complete, whatever else is under way
    /// world.barrier();
    /// assert_eq!(inbox.g(1, 7)?, 7);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the fabric has no further endpoint for a context.
    pub fn context(&self, kind: ContextKind) -> Result<Context<'_>> {
        let endpoint = match &self.core().net {
            None => None,
            Some(net) => {
                let endpoint = match self.core().contexts.take_idle() {
                    Some(endpoint) => endpoint,
                    None => net.context(
                        (!self.core().tally.is_on()).then(|| &self.core().memory.header().failure),
                    )?,
                };
                self.core().contexts.add(&endpoint);
                Some(endpoint)
            }
        };
        Ok(Context { world: self, kind, endpoint })
    }
}

impl Context<'_> {
    pub(crate) fn world(&self) -> &World {
        self.world
    }

    pub(crate) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.endpoint.as_ref()
    }

    /// The kind that it was made with.
    pub fn kind(&self) -> ContextKind {
        self.kind
    }

    /// As [`World::fence`], for the operations of this context.
    #[track_caller]
    pub fn fence(&self) {
        match &self.endpoint {
            Some(endpoint) => endpoint.quiet(self.world.core()),
            None => return self.world.fence(),
        }
        self.world.core().order_stores();
    }

    /// As [`World::quiet`], for the operations of this context.
    #[track_caller]
    pub fn quiet(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.quiet(self.world.core());
        }
        self.world.core().order_stores();
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if let Some(endpoint) = &self.endpoint {
            self.world.finish_in_drop(|world| {
                let core = world.core();
                core.wait(Awaited::Quiet, || endpoint.tests_quiet(core));
            });
            self.world.core().contexts.remove(endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spmd;
    use crate::sim::SimParams;
    use pelago_core::endpoint::contexts::IDLE_MAX;

    #[test]
    fn contexts_take_over_the_channels_of_those_that_are_gone() {
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let (array, right) = (world.alloc_zeroed::<u64>(1).unwrap(), 1 - world.my_pe());
            let context = || world.context(ContextKind::Private).unwrap();
            let used = || {
                let context = context();
                array.via(&context).inc(right, 0).unwrap();
                Arc::as_ptr(context.endpoint().unwrap())
            };
            assert_eq!(used(), used(), "the second one takes over what the first one has left");
            let many: Vec<_> = (0..2 * IDLE_MAX).map(|_| context()).collect();
            let mut endpoints: Vec<_> =
                many.iter().map(|context| Arc::as_ptr(context.endpoint().unwrap())).collect();
            endpoints.sort();
            endpoints.dedup();
            assert_eq!(endpoints.len(), many.len(), "contexts have no endpoint in common");
            drop(many);
            let kept = std::iter::from_fn(|| world.core().contexts.take_idle()).count();
            assert_eq!(kept, IDLE_MAX, "no more are kept");
            world.barrier();
            let sum = array.g(right, 0).unwrap();
            world.barrier();
            sum
        });
        assert_eq!(outcome.unwrap(), [2, 2]);
    }

    #[test]
    fn a_channel_with_something_under_way_is_not_kept() {
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let (array, right) = (world.alloc_zeroed::<u64>(1).unwrap(), 1 - world.my_pe());
            let context = world.context(ContextKind::Private).unwrap();
            let endpoint = context.endpoint().unwrap();
            array.via(&context).p(right, 0, 1).unwrap();
            world.core().contexts.remove(endpoint);
            assert!(world.core().contexts.take_idle().is_none(), "its put is not known to be complete");
            world.core().contexts.add(endpoint);
            context.quiet();
            world.core().contexts.remove(endpoint);
            assert!(world.core().contexts.take_idle().is_some());
            world.core().contexts.add(endpoint);
        });
        outcome.unwrap();
    }
}
