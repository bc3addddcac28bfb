//! The person at an editor's window: what waits for them is shown there, and what they say there counts as in the console
//! . Whose word counts is decided here, once for each: of a window that answers, not too many, one at a time.

mod configs;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prism_core::policy::{Bucket, Code};
use prism_editor::protocol::{
    self, DecideMessage, DecidedMessage, DecisionError, ResultStatus, RevokeMessage, ToPlugin, UnseenConfig,
};
use serde_json::{Map, json};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use uuid::Uuid;

use self::configs::UnseenConfigs;
use prism_config::trust::UntrustedFile;
use prism_gate::{ChangeCounts, Gate, GateError, router::Plugin};
use prism_os::clock::Clock;

/// What a person said at a window.
#[derive(Clone, Debug)]
pub(super) enum DecisionInput {
    Decide(DecideMessage),
    Revoke(RevokeMessage),
}

/// The desk of one connection.
pub(super) struct DecisionFeed {
    gate: Arc<Gate>,
    plugin: Arc<Plugin>,
    words: mpsc::Sender<DecisionInput>,
    bucket: Bucket,
    clock: Clock,
}

/// What the last picture did not show whole.
type Cut = Arc<Mutex<HashSet<Uuid>>>;

/// Words that wait to be acted on. A further one is refused: no person is that fast.
const MAX_WORDS: usize = 128;
/// Words that are listened to, a second and at once. Beyond it each is refused and told when to come back.
const WORDS_PER_SECOND: u32 = 10;
const WORDS_AT_ONCE: u32 = 100;
/// Pictures that are made and not sent yet. While there is one no other is made: the next shows what changed meanwhile, and an
/// editor that does not read holds one, however much happens.
const MAX_PICTURES: usize = 1;
/// What happens within this time is shown at once.
const GATHER: Duration = Duration::from_millis(80);
/// How long a picture of what agents do, and of nothing that waits, may be behind.
const BEHIND: Duration = Duration::from_secs(1);

impl DecisionFeed {
    /// The desk of an editor, and the pictures to send there. There is none for one where nobody decides.
    pub(super) fn open(
        gate: &Arc<Gate>,
        plugin: &Arc<Plugin>,
        untrusted: &watch::Receiver<Vec<UntrustedFile>>,
    ) -> (Self, mpsc::Receiver<String>) {
        let (words, said) = mpsc::channel(MAX_WORDS);
        let (pictures, shown) = mpsc::channel(MAX_PICTURES);
        if plugin.about.decides {
            let cut = Cut::default();
            tokio::spawn(act(gate.clone(), plugin.clone(), said, cut.clone()));
            let (gate, plugin, untrusted) = (gate.clone(), plugin.clone(), untrusted.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = pictures.closed() => {}
                    () = show(&gate, &plugin, &untrusted, &pictures, &cut) => {}
                }
            });
        }
        let clock = Clock::start();
        let bucket = Bucket::full(WORDS_AT_ONCE, clock.now());
        (Self { gate: gate.clone(), plugin: plugin.clone(), words, bucket, clock }, shown)
    }

    /// Takes a word. Who said it is looked at now: a window that is closed a moment later has still said it.
    pub(super) fn hear(&mut self, word: DecisionInput) {
        let id = word.id();
        if let Err(trouble) = self.admit(word) {
            self.gate.metrics.plugin_decision(trouble.code);
            self.plugin.say(answer(id, Err(trouble)));
        }
    }

    fn admit(&mut self, word: DecisionInput) -> Result<(), GateError> {
        let too_fast = |wait: Duration| GateError {
            retry_after_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1)),
            ..GateError::new(Code::TooFast.name(), Code::TooFast.status(), "too many decisions at once; wait a moment")
        };
        self.bucket.take(WORDS_PER_SECOND, WORDS_AT_ONCE, self.clock.now()).map_err(too_fast)?;
        let refused = |why: &'static str, message: &str| {
            let by = self.plugin.signature();
            self.gate.record_refusal(&by, word.name(), &json!({}), why);
            GateError::forbidden(message)
        };
        if !self.plugin.about.decides || !self.gate.router().decides() {
            let message = "nobody decides in this editor: it did not register with `ui` and `decides`, or [gate] \
                           editors_decide is false; use the console (`prism console`)";
            return Err(refused("nobody decides there", message));
        }
        if !self.plugin.is_alive() {
            let message = "this window does not answer, so nobody decides in it; answer pings with `ui: true`";
            return Err(refused("a window that does not answer", message));
        }
        self.words.try_send(word).map_err(|_| too_fast(GATHER))
    }
}

/// Does what was said, one after the other, also if the window is closed meanwhile.
async fn act(gate: Arc<Gate>, plugin: Arc<Plugin>, mut said: mpsc::Receiver<DecisionInput>, cut: Cut) {
    let by = plugin.signature();
    while let Some(word) = said.recv().await {
        let id = word.id();
        let result = match word {
            DecisionInput::Decide(word) => {
                let cut = cut.lock().unwrap_or_else(PoisonError::into_inner).clone();
                gate.decide(word, &by, &cut).await
            }
            DecisionInput::Revoke(word) => gate.revoke_from_editor(&word, &by).await,
        };
        gate.metrics.plugin_decision(result.as_ref().map_or_else(|trouble| trouble.code, |()| "ok"));
        plugin.say(answer(id, result));
    }
}

/// Shows what there is whenever somebody is there to see it.
async fn show(
    gate: &Arc<Gate>,
    plugin: &Plugin,
    untrusted: &watch::Receiver<Vec<UntrustedFile>>,
    pictures: &mpsc::Sender<String>,
    cut: &Cut,
) {
    while plugin.alive().await {
        tokio::select! {
            () = plugin.faded() => {}
            () = show_on(gate, UnseenConfigs::of(untrusted), pictures, cut) => return,
        }
    }
}

async fn show_on(gate: &Arc<Gate>, mut configs: UnseenConfigs, pictures: &mpsc::Sender<String>, cut: &Cut) {
    let mut changes = gate.changes();
    while let Ok(place) = pictures.reserve().await {
        let seen = *changes.borrow_and_update();
        let drawn = {
            let (gate, configs) = (gate.clone(), configs.now().await);
            tokio::task::spawn_blocking(move || drawn(&gate, configs)).await
        };
        // A store that cannot be read now is read at the next change.
        if let Ok(Some((picture, unseen))) = drawn {
            *cut.lock().unwrap_or_else(PoisonError::into_inner) = unseen;
            place.send(picture);
        }
        if next(&mut changes, seen, &mut configs).await.is_none() {
            return;
        }
    }
}

fn drawn(gate: &Gate, configs: Vec<UnseenConfig>) -> Option<(String, HashSet<Uuid>)> {
    let shown = gate.desk().ok()?;
    let desk = protocol::PendingDecisions { configs, ..shown.desk };
    Some((serde_json::to_string(&ToPlugin::Desk(desk)).ok()?, shown.cut))
}

/// Waits until there is something new to show; `None` if there never will be.
async fn next(
    changes: &mut watch::Receiver<ChangeCounts>,
    seen: ChangeCounts,
    configs: &mut UnseenConfigs,
) -> Option<()> {
    let waits_more = |now: &ChangeCounts| now.waiting != seen.waiting;
    tokio::select! {
        changed = changes.changed() => {
            changed.ok()?;
            if !waits_more(&changes.borrow()) {
                let _ = timeout(BEHIND, changes.wait_for(waits_more)).await;
            }
        }
        changed = configs.changed() => changed?,
    }
    sleep(GATHER).await;
    Some(())
}

fn answer(id: u64, result: Result<(), GateError>) -> ToPlugin {
    let error = result.err().map(|trouble| {
        let wait = trouble.retry_after_ms.map(|ms| ("retry_after_ms".to_owned(), ms.into()));
        DecisionError { code: trouble.code.to_owned(), message: trouble.message, details: Map::from_iter(wait) }
    });
    let status = if error.is_some() { ResultStatus::Error } else { ResultStatus::Ok };
    ToPlugin::Decided(DecidedMessage { id, status, error })
}

// === impl DecisionInput ===

impl DecisionInput {
    fn id(&self) -> u64 {
        match self {
            Self::Decide(word) => word.id,
            Self::Revoke(word) => word.id,
        }
    }

    /// What it is called in the audit log.
    fn name(&self) -> &'static str {
        match self {
            Self::Decide(DecideMessage { confirmation_id: Some(_), .. }) => "confirm",
            Self::Decide(DecideMessage { approve: true, .. }) => "approve",
            Self::Decide(_) => "deny",
            Self::Revoke(_) => "revoke",
        }
    }
}
