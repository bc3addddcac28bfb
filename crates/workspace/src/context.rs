//! What an agent should know when it arrives: the overview of its scope, a map, what was decided and learnt, what is
//! going on. The answer is bounded, and says what was left out and how to get it.

mod tree;

use std::collections::BTreeMap;

use prism_api::workspace::{NoteView, WorkspaceContext};
use prism_store::memory::{DocumentEntry, DocumentFilter, ScopeReach};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    IndexProgress, MemoryView, NoteScope, WorkspaceError, WorkspaceMemory, front_matter, layout::OVERVIEW, scan,
    scope::ResolvedScope, search::with_front_matter,
};

/// What to tell of.
#[derive(Clone, Debug, Default)]
pub struct ContextQuery {
    pub scope: NoteScope,
    /// Topics to list besides, each a folder `_<topic>`.
    pub topics: Vec<String>,
    /// Leave out everything but the topics.
    pub only_topics: bool,
    pub statuses: Vec<String>,
    pub tags: Vec<String>,
    pub categories: Vec<String>,
    pub tier: ContextTier,
}

/// How much of each note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextTier {
    // The scope's overview and the map alone; of notes only how many there are.
    Overview,
    // The front matter of each note.
    #[default]
    #[serde(alias = "t0", alias = "T0")]
    FrontMatter,
    // Their texts too.
    #[serde(alias = "t1", alias = "T1")]
    Full,
}

impl ContextTier {
    /// Every value, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Overview, Self::FrontMatter, Self::Full];

    /// Returns the word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::FrontMatter => "front_matter",
            Self::Full => "full",
        }
    }
}

/// Bytes of an answer: about twelve thousand tokens, as an agent that has just arrived has other things to read too.
/// What does not fit is counted in `left_out`.
const MAX_BYTES: usize = 48 << 10;

/// Bytes of the scope's overview; it is cut behind.
const MAX_OVERVIEW_BYTES: usize = 12 << 10;

/// Bytes of one note's text; it is cut behind.
const MAX_BODY_BYTES: usize = 8 << 10;

/// Notes of one section; the rest is counted in `left_out`.
const MAX_ENTRIES: usize = 40;

/// Notes under "recent".
const MAX_RECENT: usize = 10;

/// Files named for what is wrong with them.
const MAX_PROBLEMS: usize = 10;

impl WorkspaceMemory {
    /// Tells what there is to know about a scope.
    pub fn context(
        &self,
        context: &ContextQuery,
        progress: &mut dyn FnMut(IndexProgress),
    ) -> Result<Value, WorkspaceError> {
        self.answer(progress, |view| {
            let place = context.scope.find(view)?;
            ContextWriter::new(view, context, &place).all()
        })
    }
}

/// An answer that is being put together.
struct ContextWriter<'a> {
    view: &'a MemoryView<'a>,
    context: &'a ContextQuery,
    place: &'a ResolvedScope,
    answer: WorkspaceContext,
    left: usize,
}

impl<'a> ContextWriter<'a> {
    fn new(view: &'a MemoryView<'a>, context: &'a ContextQuery, place: &'a ResolvedScope) -> Self {
        Self { view, context, place, answer: WorkspaceContext::default(), left: MAX_BYTES }
    }

    fn all(mut self) -> Result<Value, WorkspaceError> {
        let root = self.view.root.to_string_lossy().into_owned();
        let (workspace, scope) = (self.place.workspace.clone(), self.place.shown());
        let scope = (!self.place.domain.is_empty()).then_some(scope);
        [Some(&root), Some(&workspace), scope.as_ref()].into_iter().flatten().for_each(|text| self.spend(text));
        (self.answer.root, self.answer.workspace, self.answer.scope) = (root, workspace, scope);
        let listed = self.context.tier != ContextTier::Overview;
        if !self.context.only_topics {
            self.overview()?;
            let tree = tree::of(self.view, self.place);
            self.spend(&tree);
            self.answer.tree = Some(tree);
        }
        self.topics()?;
        if !self.context.only_topics {
            if listed {
                self.answer.decisions = Some(self.section("decisions", &self.notes(&["decision"]))?);
                self.answer.lessons = Some(self.section("lessons", &self.notes(&["lesson"]))?);
                self.answer.recent = Some(self.recent()?);
                self.answer.overviews = Some(self.overviews()?);
            } else {
                self.counts()?;
            }
        }
        self.problems()?;
        Ok(json!(self.answer))
    }

    /// The scope's own overview, in full (T1); one that has none is told by the next above that has.
    fn overview(&mut self) -> Result<(), WorkspaceError> {
        let (entries, _) =
            self.view.index.entries(&self.scoped(&[OVERVIEW], ScopeReach::AboveAndBelow), usize::MAX >> 1)?;
        let ResolvedScope { domain, repository, .. } = self.place;
        let ladder = [(domain.as_str(), repository.as_str()), (domain.as_str(), ""), ("", "")];
        let at = |(domain, repository): &(&str, &str)| {
            let here = entries.iter().filter(|entry| entry.domain == *domain && entry.repository == *repository);
            // OVERVIEW.md is written for this, a README for everybody.
            here.min_by_key(|entry| !entry.path.to_ascii_lowercase().contains("overview."))
        };
        let Some(entry) = ladder.iter().find_map(at) else {
            self.answer
                .left_out
                .push("there is no overview: write an OVERVIEW.md or README.md for this scope".to_owned());
            return Ok(());
        };
        let text = Some(self.body(entry, MAX_OVERVIEW_BYTES));
        let overview = NoteView { text, ..with_front_matter(entry) };
        self.spend(&overview);
        self.answer.overview = Some(overview);
        Ok(())
    }

    /// The overviews of the scopes below (T0): where to go on.
    fn overviews(&mut self) -> Result<Vec<NoteView>, WorkspaceError> {
        let (mut entries, total) =
            self.view.index.entries(&self.scoped(&[OVERVIEW], ScopeReach::Below), MAX_ENTRIES)?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let own =
            |entry: &DocumentEntry| entry.domain == self.place.domain && entry.repository == self.place.repository;
        let below: Vec<DocumentEntry> = entries.iter().filter(|entry| !own(entry)).cloned().collect();
        let total = total as usize - (entries.len() - below.len());
        Ok(self.listed("overviews", below, total))
    }

    fn recent(&mut self) -> Result<Vec<NoteView>, WorkspaceError> {
        let (entries, _) = self.view.index.recent(&self.notes(&["plan", "note"]), MAX_RECENT)?;
        let total = entries.len();
        Ok(self.listed("recent", entries, total))
    }

    fn topics(&mut self) -> Result<(), WorkspaceError> {
        let places = self.view.index.places()?;
        let in_scope = |[workspace, domain, repository, topic]: &[String; 4]| {
            let ResolvedScope { workspace: w, domain: d, repository: r } = self.place;
            let within = |part: &String, of: &String| of.is_empty() || part.is_empty() || part == of;
            workspace == w && within(domain, d) && within(repository, r) && !topic.is_empty()
        };
        let mut known: Vec<(String, u32)> = Vec::new();
        for (place, count) in places.iter().filter(|(place, _)| in_scope(place)) {
            match known.iter_mut().find(|(topic, _)| *topic == place[3]) {
                Some((_, sum)) => *sum += count,
                None => known.push((place[3].clone(), *count)),
            }
        }
        for topic in &self.context.topics {
            let topic = topic.trim_start_matches('_');
            if !known.iter().any(|(name, _)| name == topic) {
                let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
                self.answer.left_out.push(format!("there is no topic {topic:?} here; there are: {}", names.join(", ")));
                continue;
            }
            let filter = DocumentFilter { topic: Some(topic.to_owned()), ..self.notes(&[]) };
            let name = format!("topic:{topic}");
            let notes = self.section(&name, &filter)?;
            self.answer.asked_topics.insert(name, notes);
        }
        let counts: BTreeMap<String, u64> = known.into_iter().map(|(topic, count)| (topic, count.into())).collect();
        self.spend(&counts);
        self.answer.topics = Some(counts);
        Ok(())
    }

    fn counts(&mut self) -> Result<(), WorkspaceError> {
        let mut counts = BTreeMap::new();
        for kind in ["decision", "lesson", "plan", "note"] {
            let (_, count) = self.view.index.entries(&self.notes(&[kind]), 0)?;
            counts.insert(format!("{kind}s"), u64::from(count));
        }
        self.spend(&counts);
        self.answer.notes = Some(counts);
        Ok(())
    }

    /// What every reader of the files should know of.
    fn problems(&mut self) -> Result<(), WorkspaceError> {
        let filter = DocumentFilter { troubled: true, ..self.scoped(&[], ScopeReach::AboveAndBelow) };
        let (entries, total) = self.view.index.entries(&filter, MAX_PROBLEMS)?;
        let mut problems: Vec<String> = self.view.remarks.iter().take(MAX_PROBLEMS).cloned().collect();
        problems.extend(entries.iter().map(|entry| format!("{}: {}", entry.path, entry.problem)));
        if total as usize > entries.len() {
            problems.push(format!("and {} files more", total as usize - entries.len()));
        }
        self.answer.problems = problems;
        Ok(())
    }

    fn section(&mut self, name: &str, filter: &DocumentFilter) -> Result<Vec<NoteView>, WorkspaceError> {
        let (entries, total) = self.view.index.entries(filter, MAX_ENTRIES)?;
        Ok(self.listed(name, entries, total as usize))
    }

    /// Returns as many entries as there is room for, and counts the rest.
    fn listed(&mut self, name: &str, entries: Vec<DocumentEntry>, total: usize) -> Vec<NoteView> {
        let mut list = Vec::new();
        let count = entries.len();
        for entry in entries {
            let mut value = with_front_matter(&entry);
            if self.context.tier == ContextTier::Full && entry.kind != OVERVIEW {
                value.body = Some(self.body(&entry, MAX_BODY_BYTES));
            }
            let size = json!(value).to_string().len() + 1;
            if size > self.left {
                break;
            }
            self.left -= size;
            list.push(value);
        }
        let missing = total.max(count) - list.len();
        if missing > 0 {
            let shorter = if self.context.tier == ContextTier::Full { ", ask for tier front_matter" } else { "" };
            self.answer.left_out.push(format!(
                "{missing} of {total} in {name}: name a domain or repository, filter by tags or status{shorter}, or use \
                 workspace_search"
            ));
        }
        list
    }

    /// The text of a note, from its file: the index keeps words, not texts.
    fn body(&self, entry: &DocumentEntry, most: usize) -> String {
        let Ok(text) =
            scan::note_at(self.view.root, &entry.path).and_then(|note| super::document::read(self.view.root, &note))
        else {
            return "(the file is gone)".to_owned();
        };
        let body = front_matter::split(&text.text).body.trim();
        if body.len() <= most {
            return body.to_owned();
        }
        let end = (0..=most).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
        format!("{}\n… cut here: {} of {} bytes; read {} for the rest", &body[..end], end, body.len(), entry.path)
    }

    /// Takes what is put into the answer from the room that there is. What is listed has seen to that itself.
    fn spend(&mut self, on: &impl Serialize) {
        self.left = self.left.saturating_sub(json!(on).to_string().len());
    }

    /// Notes of the scope, of what is below it and of what is above it, as the caller wants them.
    fn notes(&self, kinds: &[&str]) -> DocumentFilter {
        DocumentFilter {
            tags: self.context.tags.clone(),
            statuses: self.context.statuses.clone(),
            categories: self.context.categories.clone(),
            ..self.scoped(kinds, ScopeReach::AboveAndBelow)
        }
    }

    fn scoped(&self, kinds: &[&str], reach: ScopeReach) -> DocumentFilter {
        let given = |name: &String| (!name.is_empty()).then(|| name.clone());
        DocumentFilter {
            workspace: Some(self.place.workspace.clone()),
            domain: given(&self.place.domain),
            repository: given(&self.place.repository),
            reach,
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..DocumentFilter::default()
        }
    }
}
