//! The membership of this process in a job, as its launcher knows it.

use crate::base::error::Result;
use pelago_boot::Job;
use std::sync::Arc;

/// The membership of this process in a job, and the number of worlds that it has had. A process joins its
/// launcher once, but one world may follow another, and each PE of the process has a share of the membership.
#[derive(Debug)]
pub struct Membership {
    pub job: Arc<Job>,
    pub worlds: usize,
}

impl Membership {
    /// Leaves the job, if no other PE of this process is still in it.
    ///
    /// # Errors
    /// If the launcher has exited or does not respond.
    pub fn finalize(self) -> Result<()> {
        Ok(Arc::into_inner(self.job).map_or(Ok(()), Job::finalize)?)
    }
}
