//! Communication contexts: streams of operations that are ordered and completed apart from each other.
//!
//! Between PEs that map each other an operation is complete when it returns, and a context costs nothing;
//! over the net each has an endpoint of its own. Source: OpenSHMEM 1.5, section 9.5.

use crate::channel::Channel;
use crate::error::Result;
use crate::wait::Awaited;
use crate::world::World;
use std::sync::Arc;

/// Which threads of a PE will use a context: a promise, of which the runtime makes no use yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextKind {
    /// Any, also at the same time.
    #[default]
    Shared,
    /// Any, one at a time.
    Serialized,
    /// Only the one that made it.
    Private,
}

/// A stream of operations of one PE: see [`World::context`]. Dropping it completes them.
///
/// A context cannot be used after it is gone:
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
    channel: Option<Arc<Channel>>,
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
    /// If the fabric has no more of them.
    pub fn context(&self, kind: ContextKind) -> Result<Context<'_>> {
        let channel = match &self.net {
            None => None,
            Some(net) => {
                let channel = Arc::new(net.context()?);
                self.agenda.add_context(&channel);
                Some(channel)
            }
        };
        Ok(Context { world: self, kind, channel })
    }
}

impl Context<'_> {
    pub(crate) fn world(&self) -> &World {
        self.world
    }

    pub(crate) fn channel(&self) -> Option<&Arc<Channel>> {
        self.channel.as_ref()
    }

    /// The kind that it was made with.
    pub fn kind(&self) -> ContextKind {
        self.kind
    }

    /// As [`World::fence`], for the operations of this context.
    pub fn fence(&self) {
        match &self.channel {
            Some(channel) => channel.quiet(self.world),
            None => return self.world.fence(),
        }
        self.world.order_stores();
    }

    /// As [`World::quiet`], for the operations of this context.
    pub fn quiet(&self) {
        if let Some(channel) = &self.channel {
            channel.quiet(self.world);
        }
        self.world.order_stores();
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            self.world.finish_in_drop(|world| world.wait(Awaited::Quiet, || channel.is_quiet()));
        }
    }
}
