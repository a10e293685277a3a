//! A job that this process is in, as its launcher knows it.

use crate::base::error::Result;
use pelago_boot::Job;
use std::sync::Arc;

/// A job that this process is in, and how many worlds it has had: a launcher is joined once, but one world
/// may follow another, and each PE of the process has a share of it.
#[derive(Debug)]
pub struct Membership {
    pub(crate) job: Arc<Job>,
    pub(crate) worlds: usize,
}

impl Membership {
    /// Leaves the job, if no other PE of this process is still in it.
    ///
    /// # Errors
    /// If the launcher is gone or does not answer.
    pub fn finalize(self) -> Result<()> {
        Ok(Arc::into_inner(self.job).map_or(Ok(()), Job::finalize)?)
    }
}
