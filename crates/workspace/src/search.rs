//! Searching and listing notes, as an answer in JSON.

use prism_api::workspace::{ListAnswer, NoteMeta, NoteView, SearchAnswer};
use prism_store::memory::{DocumentEntry, DocumentFilter, DocumentHit, MatchMode};
use serde_json::{Value, json};

use super::{IndexProgress, NoteScope, WorkspaceError, WorkspaceMemory, scope};

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pub query: String,
    pub scope: NoteScope,
    pub kind: Option<String>,
    pub tags: Vec<String>,
    pub limit: Option<usize>,
}

/// Which notes to list.
#[derive(Clone, Debug, Default)]
pub struct NoteListQuery {
    pub scope: NoteScope,
    pub kind: Option<String>,
    pub tags: Vec<String>,
    pub limit: usize,
}

/// Results of a search for which no number was given.
pub(super) const USUAL_LIMIT: usize = 10;

/// Results of one search at most; more would fill a model's context with what it did not look for.
pub(super) const MAX_LIMIT: usize = 50;

/// Front matter that an entry carries whole; of a longer one only what is known to matter.
const MAX_FRONT_MATTER_BYTES: usize = 2 << 10;

impl WorkspaceMemory {
    /// Searches the notes of a scope and of all below it, best first.
    pub fn search(&self, search: &Search, progress: &mut dyn FnMut(IndexProgress)) -> Result<Value, WorkspaceError> {
        let limit = search.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT);
        self.answer(progress, |view| {
            // Without a word about it a search is over all workspaces.
            let filter = filter(&search.scope, search.kind.as_deref(), &search.tags, view)?;
            let found = view.index.search(&search.query, &filter, limit)?;
            let more = found.total as usize - found.hits.len();
            let mut answer = SearchAnswer {
                query: search.query.clone(),
                matched: matched(found.matched).to_owned(),
                total: found.total.into(),
                results: found.hits.iter().map(result).collect(),
                ..SearchAnswer::default()
            };
            let mut remarks = view.remarks.to_vec();
            match found.matched {
                // None of them: that there is nothing says it all.
                MatchMode::Any if found.hits.is_empty() => {}
                MatchMode::All => {}
                MatchMode::Any => remarks.push("no note has all of these words; these have some of them".to_owned()),
                MatchMode::Newest => {
                    remarks.push("the query has no word to look for; these are the newest notes".to_owned())
                }
            }
            if found.ignored_words > 0 {
                remarks.push(format!("the last {} words of the query were not looked for", found.ignored_words));
            }
            if more > 0 {
                answer.more = Some(more as u64);
                remarks.push(if limit < MAX_LIMIT {
                    format!("{more} more: raise `limit` (up to {MAX_LIMIT}), or add words, a kind, tags or a scope")
                } else {
                    format!("{more} more: add words, a kind, tags or a scope")
                });
            }
            let troubled = found.hits.iter().filter(|hit| !hit.entry.problem.is_empty());
            remarks.extend(troubled.map(|hit| format!("{}: {}", hit.entry.path, hit.entry.problem)));
            answer.remarks = remarks;
            Ok(json!(answer))
        })
    }

    /// Lists the notes of a scope, newest first.
    pub fn list(
        &self,
        listing: &NoteListQuery,
        progress: &mut dyn FnMut(IndexProgress),
    ) -> Result<Value, WorkspaceError> {
        self.answer(progress, |view| {
            let filter = filter(&listing.scope, listing.kind.as_deref(), &listing.tags, view)?;
            let (entries, total) = view.index.entries(&filter, listing.limit)?;
            Ok(json!(ListAnswer {
                root: view.root.to_string_lossy().into_owned(),
                workspaces: view.layout.workspaces().into_iter().map(str::to_owned).collect(),
                total: total.into(),
                notes: entries.iter().map(outline).collect(),
                remarks: view.remarks.to_vec(),
            }))
        })
    }
}

fn filter(
    scope: &NoteScope,
    kind: Option<&str>,
    tags: &[String],
    view: &super::MemoryView<'_>,
) -> Result<DocumentFilter, WorkspaceError> {
    let given = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let mut filter = DocumentFilter {
        kinds: kind.map(str::to_owned).into_iter().collect(),
        tags: tags.to_vec(),
        ..DocumentFilter::default()
    };
    if scope.workspace.is_some() || scope.domain.is_some() || scope.repository.is_some() {
        let place = scope.find(view)?;
        filter.workspace = Some(place.workspace);
        filter.domain = given(&place.domain);
        filter.repository = given(&place.repository);
    }
    Ok(filter)
}

fn matched(matched: MatchMode) -> &'static str {
    match matched {
        MatchMode::All => "all",
        MatchMode::Any => "any",
        MatchMode::Newest => "newest",
    }
}

fn result(hit: &DocumentHit) -> NoteView {
    let snippet = Some(hit.snippet.clone()).filter(|snippet| !snippet.is_empty());
    NoteView { snippet, ..outline(&hit.entry) }
}

/// Returns what tells a note from others: its name, what it is, whose, when, and its path.
pub(super) fn outline(entry: &DocumentEntry) -> NoteView {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    NoteView {
        title: entry.title.clone(),
        kind: entry.kind.clone(),
        date: given(&entry.date),
        status: given(&entry.status),
        scope: given(&scope::shown(&entry.domain, &entry.repository)),
        topic: given(&entry.topic),
        tags: entry.tags.clone(),
        meta: NoteMeta { document_path: entry.path.clone(), bytes: u64::try_from(entry.size).ok() },
        ..NoteView::default()
    }
}

/// Returns an entry with its front matter (T0).
pub(super) fn with_front_matter(entry: &DocumentEntry) -> NoteView {
    let outline = outline(entry);
    if entry.front_matter.is_empty() {
        return outline;
    }
    let Ok(Value::Object(mut matter)) = serde_json::from_str(&entry.front_matter) else { return outline };
    if entry.front_matter.len() > MAX_FRONT_MATTER_BYTES {
        matter.retain(|key, value| {
            let known =
                ["title", "name", "description", "status", "category", "created", "tags"].contains(&key.as_str());
            known && value.to_string().len() <= MAX_FRONT_MATTER_BYTES / 4
        });
        matter.insert("…".to_owned(), "cut; read the file for the rest".into());
    }
    NoteView { front_matter: Some(matter), ..outline }
}
