//! The outcomes of the online tuner, for measurements and tests.

use super::Team;
use pelago_core::coll::online::{Class, Form, Found};
use pelago_core::coll::select::Laws;
use pelago_core::coll::shape::Operation;

impl Team<'_> {
    /// The outcome of the online tuner (`PELAGO_COLL_ONLINE`) for blocking calls with blocks of this many
    /// bytes. `None` if no such call was made, or their trial is not over.
    #[doc(hidden)]
    pub fn tuned(&self, operation: Operation, bytes: usize, laws: Option<Laws>) -> Option<Found> {
        self.core.online_classes().outcome(&Class::of(operation, bytes, laws)?)
    }

    /// Lets such calls take this form from now on, or the best one again: all members do it between the same
    /// calls, after the trial.
    #[doc(hidden)]
    pub fn take_tuned(&self, operation: Operation, bytes: usize, laws: Option<Laws>, form: Option<Form>) {
        if let Some(class) = Class::of(operation, bytes, laws) {
            self.core.online_classes().take(&class, form);
        }
    }
}
