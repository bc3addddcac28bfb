//! An action that everything is opened for, and nothing done.

use std::{fmt, sync::Arc};

use prism_core::policy::Refusal;
use serde_json::Value;

use crate::{
    Shown,
    command::Ready,
    runtime::{Desk, Stop},
};

/// An action that can be shown, and then run. Dropping it leaves everything as it was.
pub struct Prepared {
    shown: Shown,
    work: Work,
    desk: Arc<Desk>,
}

/// What is left to do.
pub(crate) enum Work {
    Blocking(Box<Act>),
    Command(Box<Ready>),
}

type Act = dyn FnOnce(&Stop) -> Result<Value, Refusal> + Send;

impl Prepared {
    pub(crate) fn new(desk: Arc<Desk>, (shown, work): (Shown, Work)) -> Self {
        Self { shown, work, desk }
    }

    /// What will happen.
    pub fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// Does it. Dropping the future ends a command and all that it started, and a search. A change of a file that has begun
    /// is finished all the same: there is the old file or the new one.
    pub async fn run(self) -> Result<Value, Refusal> {
        match self.work {
            Work::Blocking(work) => self.desk.blocking(work).await,
            Work::Command(ready) => ready.run(&self.desk).await,
        }
    }
}

impl Work {
    pub(crate) fn new(work: impl FnOnce(&Stop) -> Result<Value, Refusal> + Send + 'static) -> Self {
        Self::Blocking(Box::new(work))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}
