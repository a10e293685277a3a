//! A PE that sends and executes active messages.

use super::message_state::MessageState;
use crate::coll::teams::Teams;
use std::ops::Deref;

/// A PE's teams, and its active messages. The teams come first, so that both have one address.
#[repr(C)]
pub struct Messaging {
    pub teams: Teams,
    pub am: MessageState,
}

impl Deref for Messaging {
    type Target = Teams;

    #[inline(always)]
    fn deref(&self) -> &Teams {
        &self.teams
    }
}
