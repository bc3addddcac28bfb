//! What a server's tools are, as it has last listed them to anybody: that is what a model believes it calls. The links
//! say what passes by; nobody is asked for it as long as it is known.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use prism_core::{
    mcp::{Method, names},
    policy::canonical,
    wire::Members,
};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{Audience, Destination, lock};
use crate::{digest::sha256, drive::hub::fetch};

/// Pages of lists that wait to be read, until somebody wants to know. Beyond it they are read as they come.
const MAX_UNREAD: usize = 32;
/// Tools that are remembered of one server. What it lists beyond them is not held against what it was.
const MAX_TOOLS: usize = 10_000;
/// Pages of one list that are asked for.
const MAX_PAGES: usize = 64;
/// How long a call waits to learn what it calls, once the server is there.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct ToolDefinitions {
    state: Mutex<DefinitionTable>,
    /// One asks for the list, others wait for what it learns.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct DefinitionTable {
    tools: HashMap<Box<str>, KnownTool>,
    /// Lists that nobody has looked at yet, and how many doubts there had been when they came.
    unread: Vec<(u64, Box<str>)>,
    /// How often what was known has become doubtful, and how often that had been so when the whole list was last fetched.
    doubts: u64,
    settled: Option<u64>,
    /// Tools that are no longer what they were, since the daemon has started.
    changed: Vec<String>,
}

struct KnownTool {
    definition: Arc<ToolDefinition>,
    /// How many doubts there had been when it was last listed.
    as_of: u64,
}

/// What a tool is, in the one way to write it.
pub struct ToolDefinition {
    pub text: String,
    pub digest: [u8; 32],
    held: AtomicU8,
    /// Held by who has a person asked about it.
    pub asking: tokio::sync::Mutex<()>,
}

/// Whether a definition was held against the one that is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinCheck {
    NotYet = 0,
    /// Somebody is at it, and nobody waits.
    Soon = 1,
    Same = 2,
}

/// What is known of a tool without asking.
pub enum DefinitionLookup {
    /// It is what it was.
    Same,
    Known(Arc<ToolDefinition>),
    Unknown,
}

impl ToolDefinitions {
    /// A list of tools has passed by.
    pub(crate) fn learn(&self, result: Box<str>) {
        let mut state = lock(&self.state);
        // The hub asks again and again, and mostly hears the same.
        let page = (state.doubts, result);
        if state.unread.last() == Some(&page) {
            return;
        }
        state.unread.push(page);
        if state.unread.len() > MAX_UNREAD {
            state.read();
        }
    }

    /// The server has started anew, or says that its tools are others now.
    pub(crate) fn doubt(&self) {
        lock(&self.state).doubts += 1;
    }

    /// What is known of a tool. Where it matters, doubtful knowledge is none.
    pub fn look(&self, tool: &str) -> DefinitionLookup {
        let mut state = lock(&self.state);
        state.read();
        match state.tools.get(tool) {
            Some(known) if known.definition.held() == PinCheck::Same && known.as_of == state.doubts => {
                DefinitionLookup::Same
            }
            Some(known) => DefinitionLookup::Known(known.definition.clone()),
            None => DefinitionLookup::Unknown,
        }
    }

    /// What is known of a tool, and whether that can be relied on.
    fn find(&self, tool: &str) -> (Option<Arc<ToolDefinition>>, bool) {
        let mut state = lock(&self.state);
        state.read();
        let settled = state.settled == Some(state.doubts);
        match state.tools.get(tool) {
            Some(known) => (Some(known.definition.clone()), settled || known.as_of == state.doubts),
            None => (None, settled),
        }
    }

    /// Notes that a tool is no longer what it was.
    pub fn note_changed(&self, tool: &str) {
        let changed = &mut lock(&self.state).changed;
        if changed.len() < MAX_TOOLS && changed.iter().all(|known| known != tool) {
            changed.push(tool.to_owned());
        }
    }

    /// Tools that are no longer what they were, since the daemon has started.
    pub fn changed(&self) -> Vec<String> {
        lock(&self.state).changed.clone()
    }
}

impl DefinitionTable {
    fn read(&mut self) {
        for (as_of, result) in std::mem::take(&mut self.unread) {
            for item in names::items(Method::ToolsList, &result).unwrap_or_default() {
                // What does not mean one thing only is still the same as long as it is written the same.
                let text = canonical::definition(&item.text).unwrap_or_else(|| item.text.to_string());
                let is_full = self.tools.len() >= MAX_TOOLS;
                match self.tools.get_mut(&item.name) {
                    Some(known) if known.definition.text == text => known.as_of = as_of,
                    None if is_full => {}
                    _ => {
                        let definition = Arc::new(ToolDefinition::new(text));
                        self.tools.insert(item.name, KnownTool { definition, as_of });
                    }
                }
            }
        }
    }
}

impl ToolDefinition {
    pub fn new(text: String) -> Self {
        let (digest, held) = (sha256(&[text.as_bytes()]), AtomicU8::new(PinCheck::NotYet as u8));
        Self { text, digest, held, asking: tokio::sync::Mutex::default() }
    }

    pub fn held(&self) -> PinCheck {
        match self.held.load(Ordering::Relaxed) {
            0 => PinCheck::NotYet,
            1 => PinCheck::Soon,
            _ => PinCheck::Same,
        }
    }

    pub fn hold(&self, held: PinCheck) {
        self.held.store(held as u8, Ordering::Relaxed);
    }
}

impl Destination {
    pub fn definitions(&self) -> &ToolDefinitions {
        &self.shared.definitions
    }

    /// What a tool is now. The server is asked if it is not known, or may have changed since it was.
    pub async fn definition(&self, tool: &str) -> Option<Arc<ToolDefinition>> {
        let definitions = self.definitions();
        if let (known, true) = definitions.find(tool) {
            return known;
        }
        let _turn = definitions.fetching.lock().await;
        if let (known, true) = definitions.find(tool) {
            return known;
        }
        // One that has to be started takes its time, and what it calls must be known all the same. It raises doubts by
        // that; what raises them from then on is news.
        let listed = match fetch::reach(self, Audience::PLAIN).await {
            Ok(()) => timeout(FETCHED_WITHIN, self.list_tools()).await,
            Err(why) => Ok(Err(why)),
        };
        match listed {
            Ok(Ok(())) => {}
            Ok(Err(why)) => debug!(destination = self.config().name, why, "Cannot learn what a server's tools are"),
            Err(_) => warn!(destination = self.config().name, "A server does not say what its tools are"),
        }
        definitions.find(tool).0
    }

    /// Asks for all pages of the list. What they say is learned on their way.
    async fn list_tools(&self) -> Result<(), String> {
        let before = lock(&self.definitions().state).doubts;
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
            let answer = match fetch::request(self, Audience::PLAIN, Method::ToolsList, &params).await {
                Ok(answer) => answer,
                Err(fetch::FetchError::Error { message, .. }) => return Err(message),
                Err(fetch::FetchError::Fault(why)) => return Err(why),
            };
            let result = answer.result_span().map(|span| answer.text(span)).unwrap_or_default();
            self.definitions().learn(result.into());
            let next = Members::read(result).and_then(|result| result.get("nextCursor").map(str::to_owned));
            cursor = next.filter(|raw| raw.starts_with('"'));
            if cursor.is_none() {
                break;
            }
        }
        lock(&self.definitions().state).settled = Some(before);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(description: &str) -> Box<str> {
        format!(r#"{{"tools":[{{"name":"a","description":"{description}","inputSchema":{{}}}}]}}"#).into()
    }

    #[test]
    fn what_passes_by_is_learned_and_what_has_changed_is_held_against_the_pin_again() {
        let definitions = ToolDefinitions::default();
        assert!(matches!(definitions.look("a"), DefinitionLookup::Unknown));
        assert!(!definitions.find("a").1 && !definitions.find("b").1, "nobody has said anything yet");
        definitions.learn(page("one"));
        assert!(definitions.find("a").1 && !definitions.find("b").1, "only what was listed is known");
        let DefinitionLookup::Known(first) = definitions.look("a") else { panic!("it was listed") };
        first.hold(PinCheck::Same);
        assert!(matches!(definitions.look("a"), DefinitionLookup::Same));
        definitions.learn(page("one"));
        assert!(matches!(definitions.look("a"), DefinitionLookup::Same));
        definitions.doubt();
        assert!(matches!(definitions.look("a"), DefinitionLookup::Known(_)) && !definitions.find("a").1);
        definitions.learn(page("one"));
        assert!(matches!(definitions.look("a"), DefinitionLookup::Same));
        definitions.learn(page("two"));
        let DefinitionLookup::Known(second) = definitions.look("a") else { panic!("it is another") };
        assert_eq!((second.held(), second.digest == first.digest), (PinCheck::NotYet, false));
    }

    #[test]
    fn what_waits_to_be_read_is_bounded() {
        let definitions = ToolDefinitions::default();
        for number in 0..=MAX_UNREAD + 3 {
            definitions.learn(page(&number.to_string()));
            assert!(lock(&definitions.state).unread.len() <= MAX_UNREAD);
        }
        assert!(matches!(definitions.look("a"), DefinitionLookup::Known(known) if known.text.contains("35")));
    }
}
