//! `prism remove`: takes a server out of `prism.toml`, and says how to put it back.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use prism_core::{mcp::Era, shell::command_line};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::{add, say};
use prism_config::{
    DestinationConfig, Env, ServerKey, ServerTable,
    file::{self, ConfigDraft},
    raw,
};

/// Remove a server
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism remove files

It prints the command that adds it again.")]
pub struct RemoveArgs {
    /// Name of the server
    name: String,
    /// Config file to write to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What `prism add` can always write; the undo names the rest.
const ADDABLE: [&str; 9] =
    ["command", "url", "headers", "era", "sse_event_names", "process", "cwd", "max_sessions", "env"];

// === impl RemoveArgs ===

impl RemoveArgs {
    /// Removes the destination.
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        say::line(&self.apply(Path::new(""), env)?);
        Ok(())
    }

    pub(super) fn apply(&self, here: &Path, env: &Env) -> anyhow::Result<String> {
        let places = add::places(self.config.as_deref(), here, env)?;
        let Some(path) = places.find()? else {
            bail!("there is no {}, so there is nothing to remove", places.home.join(file::NAME).display());
        };
        let mut draft = ConfigDraft::open(&path, &places.home).context("nothing was removed")?;
        let mut meant = draft.written().destinations.clone();
        let Some(removed) = meant.remove(&self.name) else {
            let known = raw::by_nearness(&self.name, meant.keys().map(String::as_str));
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            bail!("{} has no server {:?}\n  known: {known}", draft.path().display(), self.name);
        };
        let mut after = draft.document.clone();
        take_out(&mut after, &self.name);
        // Where `prism add` will put it: the file may have lost its only table, and its word with that.
        let key = ServerKey { table: ServerTable::of_entry(&after, &self.name), name: &self.name };
        let undo = undo(&removed, key, entry(&draft, &self.name), self.config.as_deref(), &draft);
        let mut text = format!("removed {} from {}\nundo: {undo}", self.name, draft.path().display());
        for (profile, shown) in &draft.written().profiles {
            if shown.only.iter().flatten().chain(&shown.except).any(|name| *name == self.name) {
                let next =
                    format!("take {:?} out of [profile.{profile}] too, or the daemon will refuse the file", self.name);
                text.push_str(&format!("\nnext: {next}"));
            }
        }
        draft.document = after;
        draft.save(&meant).with_context(|| format!("cannot remove {:?}", self.name))?;
        Ok(text)
    }
}

/// Returns an entry as it stands in the document.
pub(super) fn entry<'a>(draft: &'a ConfigDraft, name: &str) -> Option<&'a dyn TableLike> {
    draft.document.get(ServerTable::of_entry(&draft.document, name).as_str())?.get(name)?.as_table_like()
}

/// Returns the command that adds a destination again, and the settings that it cannot carry.
pub(super) fn undo(
    destination: &DestinationConfig,
    key: ServerKey<'_>,
    entry: Option<&dyn TableLike>,
    config: Option<&Path>,
    draft: &ConfigDraft,
) -> String {
    let has = |key: &str| entry.is_some_and(|entry| entry.contains_key(key));
    let mut words = vec!["prism".to_owned(), "add".to_owned(), destination.name.clone()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    // Joined below by `type`, which `add` takes for a URL only, and by `legacy_sse`, which it can only turn on.
    let mut addable = ADDABLE.to_vec();
    if let Some(http) = &destination.http {
        option("url", http.url.clone());
        for (name, value) in &http.headers {
            option("header", format!("{name}={value}"));
        }
        if let Some(transport) = http.transport {
            option("type", transport.as_str().to_owned());
        }
        addable.push("type");
    }
    if has("era") {
        option("era", destination.era.map_or("auto", Era::name).to_owned());
    }
    if has("sse_event_names") {
        option("event-names", destination.event_names.as_str().to_owned());
    }
    if has("process") {
        option("process", destination.process.as_str().to_owned());
    }
    for (key, value) in &destination.env {
        option("env", format!("{key}={value}"));
    }
    if let Some(cwd) = &destination.cwd {
        // Relative, it starts at the file; on the command line it would start at the shell's folder.
        let cwd = match cwd.starts_with("~") {
            true => cwd.clone(),
            // Without the `.` of a project's own file.
            false => draft.path().parent().unwrap_or(Path::new("/")).join(cwd).components().collect(),
        };
        option("cwd", cwd.to_string_lossy().into_owned());
    }
    if has("max_sessions") {
        option("max-sessions", destination.max_sessions.to_string());
    }
    if has("legacy_sse") && destination.legacy_sse {
        words.push("--legacy-sse".to_owned());
        addable.push("legacy_sse");
    }
    words.extend(add::config_option(config));
    if destination.http.is_none() {
        words.push("--".to_owned());
        words.extend(destination.command.iter().cloned());
    }

    let mut text = command_line(&words);
    let rest: Vec<String> = entry
        .into_iter()
        .flat_map(TableLike::iter)
        .filter(|(key, _)| !addable.contains(key))
        .map(|(key, value)| format!("\n  {key} = {}", value.to_string().trim()))
        .collect();
    if !rest.is_empty() {
        text.push_str(&format!("\nand below [{key}]:{}", rest.concat()));
    }
    text
}

/// Takes an entry out of the document. The comment that touches its header goes with it; what stands further up,
/// behind an empty line, is about the file and stays.
fn take_out(document: &mut DocumentMut, name: &str) {
    let at_the_top = !document.to_string().starts_with('\n');
    let table = ServerTable::of_entry(document, name);
    let Some(destinations) = document.get_mut(table.as_str()).and_then(Item::as_table_like_mut) else {
        return;
    };
    if let Some(Item::Table(removed)) = destinations.remove(name) {
        let prefix = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let kept = match prefix.trim_end_matches(' ').rfind("\n\n") {
            Some(end) => &prefix[..end + 1],
            None => "",
        };
        if !kept.trim().is_empty() {
            keep_comment(document, removed.position().unwrap_or_default(), kept);
        }
    }
    if at_the_top {
        trim_top(document);
    }
}

/// Puts a comment before the table that now follows, or at the end where there is none.
fn keep_comment(document: &mut DocumentMut, position: isize, comment: &str) {
    let next = first_after(document, position).and_then(|next| at_position(document, next));
    match next {
        Some(table) => {
            let own = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            let joined = format!("{comment}{own}");
            table.decor_mut().set_prefix(joined);
        }
        None => {
            let own = document.trailing().as_str().unwrap_or_default();
            let joined = format!("{comment}{own}");
            document.set_trailing(joined);
        }
    }
}

/// Returns the position of the first table after another, of whatever kind.
fn first_after(table: &Table, position: isize) -> Option<isize> {
    let below = table.iter().filter_map(|(_, item)| item.as_table());
    below
        .flat_map(|table| {
            let own = table.position().filter(|at| *at > position && has_header(table));
            own.into_iter().chain(first_after(table, position))
        })
        .min()
}

fn at_position(table: &mut Table, position: isize) -> Option<&mut Table> {
    for table in table.iter_mut().filter_map(|(_, item)| item.as_table_mut()) {
        if table.position() == Some(position) && has_header(table) {
            return Some(table);
        }
        if let Some(found) = at_position(table, position) {
            return Some(found);
        }
    }
    None
}

/// Whether a table has a line of its own, and so a place for a comment before it.
fn has_header(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// Drops the empty lines that a removed first entry leaves at the top of the file.
fn trim_top(document: &mut DocumentMut) {
    let text = document.to_string();
    if text.starts_with('\n')
        && let Ok(trimmed) = text.trim_start_matches('\n').parse()
    {
        *document = trimmed;
    }
}
