//! Programs that run for a holder: commands, terminals, builds and tests, git. Each runs behind a fence, within limits, and ends
//! with whoever it runs for.

pub(crate) mod command;
pub(crate) mod fence;
pub(crate) mod git;
pub(crate) mod observe;
pub(crate) mod project;
pub(crate) mod script;
pub(crate) mod terminal;

use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use crate::{
    state::{EditorState, OrderContext},
    text::TextState,
};
use fence::Fences;
use git::Repositories;
use observe::RunObserver;
use terminal::HolderTerminals;

/// What runs, and what it is kept within.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) editor: Arc<EditorState>,
    /// What is open and not saved, which no program sees.
    pub(crate) text: Arc<TextState>,
    pub(crate) fences: Arc<Fences>,
    pub(crate) terminals: HolderTerminals,
    pub(crate) repositories: Repositories,
    pub(crate) commands: Arc<Semaphore>,
    /// Who is told of what is run, if anybody is.
    pub(crate) observer: OnceLock<Arc<dyn RunObserver>>,
}

/// Where an order to run something is carried out.
pub(crate) type RunContext = OrderContext<RunState>;

/// Commands that run at the same time. Further ones are refused, not queued: one can take ten minutes.
pub(crate) const MAX_COMMANDS: usize = 16;

impl RunState {
    pub(crate) fn new(text: Arc<TextState>, fences: Arc<Fences>) -> Self {
        Self {
            editor: text.editor.clone(),
            text,
            fences,
            terminals: HolderTerminals::default(),
            repositories: Repositories::new(),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
            observer: OnceLock::new(),
        }
    }
}
