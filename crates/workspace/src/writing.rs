//! Remembering: one new Markdown file, with front matter, in the folder for its kind. Nothing that is there is ever
//! written over, and nothing outside of the root is written to.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use prism_api::workspace::{NoteMeta, NoteRemembered};
use serde_json::{Value, json};

use super::{
    IndexProgress, MemoryView, NoteScope, WorkspaceError, WorkspaceMemory, front_matter,
    layout::{BaseContent, OWN, TOPICS, WorkspaceBase, is_folder, is_name, topic},
    scope::ResolvedScope,
};
use prism_core::time::date_and_time;

/// Something to remember.
#[derive(Clone, Debug, Default)]
pub struct NewNote {
    pub title: String,
    pub text: String,
    pub kind: NoteKind,
    pub scope: NoteScope,
    pub topic: Option<String>,
    pub tags: Vec<String>,
    pub status: Option<String>,
}

/// What a note is. The variants have no doc comments, as a schema with them is more than some clients can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoteKind {
    #[default]
    Note,
    Decision,
    Lesson,
    Plan,
}

impl NoteKind {
    /// Every value, the usual one first.
    pub const ALL: [Self; 4] = [Self::Note, Self::Decision, Self::Lesson, Self::Plan];

    /// Returns the word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Decision => "decision",
            Self::Lesson => "lesson",
            Self::Plan => "plan",
        }
    }
}

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// Bytes of a text: some ten thousand words. What is longer is refused, not cut.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Files of one name that are numbered; beyond it the title is refused, as somebody is writing in a loop.
const MAX_NUMBER: usize = 1_000;

impl WorkspaceMemory {
    /// Writes one new note, and returns where.
    pub fn remember(&self, note: &NewNote, progress: &mut dyn FnMut(IndexProgress)) -> Result<Value, WorkspaceError> {
        note.check()?;
        // The walk before this finds out how the workspace is laid out.
        let (root, folder) = self.answer(progress, |view| Ok((view.root.to_owned(), folder(view, note)?)))?;
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (name, text) = file(note, seconds);
        make_folders(&root, &folder)?;
        let path = write_new(&root.join(&folder), &name, text.as_bytes())?;
        let path = format!("{folder}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        Ok(json!(NoteRemembered {
            remembered: note.title.trim().to_owned(),
            kind: note.kind.as_str().to_owned(),
            root: root.to_string_lossy().into_owned(),
            meta: NoteMeta { document_path: path, bytes: None },
        }))
    }
}

// === impl NewNote ===

impl NewNote {
    fn check(&self) -> Result<(), WorkspaceError> {
        let title = self.title.trim();
        if title.is_empty() {
            return Err(WorkspaceError::argument("title", "is empty; give the note a name of a few words"));
        }
        if title.chars().count() > MAX_TITLE_CHARS {
            return Err(WorkspaceError::argument("title", "is longer than 200 characters; put the rest into `text`"));
        }
        if title.contains(char::is_control) {
            return Err(WorkspaceError::argument("title", "has a line break or another control character in it"));
        }
        if self.text.trim().is_empty() {
            return Err(WorkspaceError::argument("text", "is empty; say what to remember"));
        }
        if self.text.len() > MAX_TEXT_BYTES {
            return Err(WorkspaceError::argument("text", "is longer than 256 KiB; write several notes"));
        }
        if self.status.as_ref().is_some_and(|status| status.len() > 100) {
            return Err(WorkspaceError::argument("status", "is longer than 100 bytes; one word will do"));
        }
        match &self.topic {
            Some(topic) if !is_name(topic) => Err(WorkspaceError::argument("topic", "is not the name of one folder")),
            _ => Ok(()),
        }
    }
}

// === impl NoteKind ===

impl NoteKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Decision => "decision",
            Self::Lesson => "lesson",
            Self::Plan => "plan",
        }
    }
}

/// Returns the folder for a note, relative to the root: one for its kind or topic that is there, or else one like those
/// that the workspace has, or else one of Prism's own.
fn folder(view: &MemoryView<'_>, note: &NewNote) -> Result<String, WorkspaceError> {
    let ResolvedScope { workspace, domain, repository } = note.scope.find_or_new(view)?;
    let (domain, repository) = (domain.as_str(), repository.as_str());
    let kind = note.kind.as_str();
    let usual = TOPICS.iter().find(|(_, of_kind)| *of_kind == kind).map_or("notes", |(topic, _)| *topic);
    let topic = note.topic.as_deref().unwrap_or(usual);
    let bare = TOPICS.iter().any(|(known, _)| *known == topic);
    let names = if bare { vec![topic.to_owned(), format!("_{topic}")] } else { vec![format!("_{topic}")] };
    let bases = || view.layout.of_workspace(&workspace);
    for base in bases() {
        let scope = base.scope(domain, repository);
        let there = names.iter().map(|name| below(&scope, name)).find(|path| is_folder(&view.root.join(path)));
        if let Some(path) = there {
            return Ok(path);
        }
    }
    let first = |name: &str, base: &WorkspaceBase| below(&base.scope(domain, repository), name);
    let underscored = format!("_{topic}");
    let own = WorkspaceBase { folder: OWN.to_owned(), workspace: workspace.clone(), holds: BaseContent::Memory };
    Ok(match bases().next() {
        Some(base) if base.holds == BaseContent::Memory => first(&underscored, base),
        Some(base) if takes_notes(view.root, base, domain, repository) => first(&names[0], base),
        _ => first(&names[0], &own),
    })
}

/// Whether a project has folders of notes, and the scope's own folder to put one more into.
fn takes_notes(root: &Path, base: &WorkspaceBase, domain: &str, repository: &str) -> bool {
    let scope = root.join(base.scope(domain, repository));
    let has_topic = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| {
            entry.file_name().to_str().and_then(topic).is_some() && entry.file_type().is_ok_and(|kind| kind.is_dir())
        })
    };
    is_folder(&scope) && (has_topic(&root.join(&base.folder)) || has_topic(&scope))
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the name and the text of a note's file.
fn file(note: &NewNote, now: Duration) -> (String, String) {
    let date = date_and_time(now.as_secs()).split('T').next().unwrap_or_default().to_owned();
    let title = note.title.trim();
    let mut text = "---\n".to_owned();
    text.push_str(&front_matter::line("name", title));
    text.push_str(&front_matter::line("kind", note.kind.as_str()));
    if let Some(status) = &note.status {
        text.push_str(&front_matter::line("status", status));
    }
    // Dates are texts to everybody who reads front matter; quotes would only look odd.
    text.push_str(&format!("created: {date}\n"));
    if !note.tags.is_empty() {
        text.push_str(&front_matter::list("tags", &note.tags));
    }
    text.push_str("---\n\n");
    let body = note.text.trim_matches(['\n', '\r']);
    if !body.starts_with("# ") {
        text.push_str(&format!("# {title}\n\n"));
    }
    text.push_str(body);
    text.push('\n');
    let short_date: String = date.chars().skip(2).filter(|c| *c != '-').collect();
    (format!("{short_date}-{}", slug(title)), text)
}

/// Returns a title as the name of a file: letters and digits, and single dashes between them.
fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        // Names of files have 255 bytes at most, and people read the first few words.
        if slug.len() + word.len() > 80 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(word);
    }
    if slug.is_empty() {
        // One word that is too long, or none.
        slug = lower.chars().filter(|c| c.is_alphanumeric()).take(20).collect();
    }
    if slug.is_empty() { "note".to_owned() } else { slug }
}

/// Makes the folders that are missing, one by one, so that none is made behind a symbolic link.
pub(super) fn make_folders(root: &Path, folder: &str) -> Result<(), WorkspaceError> {
    let mut path = root.to_owned();
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        path.push(part);
        if let Err(source) = fs::create_dir(&path)
            && source.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(WorkspaceError::Write { path, source });
        }
        if !is_folder(&path) {
            return Err(WorkspaceError::Detour { path });
        }
    }
    Ok(())
}

/// Writes a new file `name.md`, or `name-2.md` if there is one, all of it or nothing.
pub(super) fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, WorkspaceError> {
    let mut random = [0; 8];
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| WorkspaceError::Write { path, source }
    };
    getrandom::fill(&mut random).map_err(|error| failed(folder)(io::Error::other(error)))?;
    // Hidden, so that no walk takes it for a note.
    let draft = folder.join(format!(".{name}.{:016x}", u64::from_ne_bytes(random)));
    let written = write_synced(&draft, bytes).map_err(failed(&draft)).and_then(|()| publish(&draft, folder, name));
    // Gone already where the draft itself was renamed.
    let _ = fs::remove_file(&draft);
    let path = written?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
    Ok(path)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Gives a draft its name; a name that is taken is not taken away.
fn publish(draft: &Path, folder: &Path, name: &str) -> Result<PathBuf, WorkspaceError> {
    for number in 1..=MAX_NUMBER {
        let path = folder.join(if number == 1 { format!("{name}.md") } else { format!("{name}-{number}.md") });
        // Unlike a rename, a link does not replace what is there.
        let linked = fs::hard_link(draft, &path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            // A filesystem without links: reserve the name, then replace what is known to be ours.
            _ => OpenOptions::new().write(true).create_new(true).open(&path).and_then(|_| fs::rename(draft, &path)),
        });
        match linked {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(WorkspaceError::Write { path, source }),
        }
    }
    Err(WorkspaceError::argument("title", format!("is that of {MAX_NUMBER} notes already; choose another")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_safe_name() {
        for (title, name) in [
            ("Wake the Agent!", "wake-the-agent"),
            ("../../etc/passwd", "etc-passwd"),
            ("Größe & Maß", "größe-maß"),
            ("…", "note"),
            (&"long ".repeat(40), &["long"; 16].join("-")),
        ] {
            assert_eq!(slug(title), name, "{title}");
        }
        assert!(slug(&"語".repeat(200)).len() <= 80);
    }

    #[test]
    fn a_note_is_written_as_a_person_would() {
        let note = NewNote {
            title: " Use FTS5: it ranks ".to_owned(),
            text: "Because it is there.\n---\n".to_owned(),
            kind: NoteKind::Decision,
            tags: vec!["sql".to_owned(), "a, b".to_owned()],
            status: Some("accepted".to_owned()),
            ..NewNote::default()
        };
        let (name, text) = file(&note, Duration::from_secs(1_772_323_200));
        assert_eq!(name, "260301-use-fts5-it-ranks");
        let expected = "---\nname: \"Use FTS5: it ranks\"\nkind: decision\nstatus: accepted\ncreated: 2026-03-01\n\
                        tags: [sql, \"a, b\"]\n---\n\n# Use FTS5: it ranks\n\nBecause it is there.\n---\n";
        assert_eq!(text, expected);
    }
}
