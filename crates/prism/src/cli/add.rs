//! `prism add`: writes a destination into `prism.toml`. How the file is kept whole is `config/file.rs`.

use std::{
    env::split_paths,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use toml_edit::{InlineTable, Item, Table, TableLike, Value};

use super::{remove, say, target::Target};
use crate::{
    config::{
        Config, Destination, Env, Flags, Process,
        file::{self, Draft, Places},
        http, raw,
    },
    home::{self, Home},
};

#[cfg(test)]
mod tests;

/// Add an MCP server
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism add files -- npx -y @modelcontextprotocol/server-filesystem .
  prism add docs --url https://example.com/mcp --header 'Authorization: Bearer env:DOCS_TOKEN'")]
pub struct Add {
    /// Name of the destination; its URL is /NAME/mcp
    name: String,
    /// Who shares a child process
    #[arg(long, value_parser = Process::ALL.map(Process::as_str))]
    process: Option<String>,
    /// Variable for the child; a value env:NAME is read from the daemon's environment at start
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Folder the child runs in
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Sessions it may have at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// Config file to write to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replace a destination of the same name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: Target,
}

/// What was done, in words.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) text: String,
    pub(super) warnings: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// Returns where `prism add`, `list` and `remove` look for their file.
pub(super) fn places(config: Option<&Path>, here: &Path, env: &Env) -> anyhow::Result<Places> {
    Ok(Places { explicit: config.map(Path::to_owned), here: here.to_owned(), home: home::folder(env)? })
}

/// Returns the `--config FILE` that the next command needs, as words.
pub(super) fn config_option(config: Option<&Path>) -> Vec<String> {
    match config {
        Some(path) => vec!["--config".to_owned(), path.to_string_lossy().into_owned()],
        None => Vec::new(),
    }
}

// === impl Add ===

impl Add {
    /// Adds the destination and says what comes next.
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        let report = self.apply(Path::new(""), env)?;
        for warning in &report.warnings {
            say::warning(warning);
        }
        say::line(&report.text);
        Ok(())
    }

    pub(super) fn apply(&self, here: &Path, env: &Env) -> anyhow::Result<Report> {
        if let Err(error) = raw::check_name(&self.name) {
            bail!("{error}\n  fix: {}", error.fix());
        }
        let added = self.destination()?;

        let places = places(self.config.as_deref(), here, env)?;
        let target = places.target()?;
        if target.parent() == Some(&places.home) {
            Home::find(env)?;
        }
        let mut draft = Draft::open(&target).context("nothing was added")?;
        let replaced = draft.written().destinations.get(&self.name).cloned();
        if replaced.is_some() && !self.force {
            bail!(
                "{} already has a destination {:?}\n  fix: choose another name, or replace it with --force",
                draft.path().display(),
                self.name
            );
        }

        let max_sessions = self.max_sessions.map_or(draft.written().max_sessions, |count| count as usize);
        let added = Destination { max_sessions, ..added };
        let undo = match &replaced {
            Some(old) => {
                let table = remove::entry(&draft, &self.name);
                Some(remove::undo(old, table, self.config.as_deref(), &draft))
            }
            None => None,
        };
        self.write_into(&mut draft)?;
        let mut meant = draft.written().destinations.clone();
        meant.insert(self.name.clone(), added.clone());
        let path = draft.path().to_owned();
        let written = draft.save(&meant).with_context(|| {
            format!("cannot add {:?}; these lines by hand would do it:\n\n{}", self.name, self.lines())
        })?;

        // The daemon's port may come from the environment; the file alone still gives a useful answer.
        let config = file::load(&places, &[], &Flags::default(), env).map_or(written, |loaded| loaded.config);
        Ok(Report { text: self.text(&added, &config, &path, undo.as_deref()), warnings: self.warnings(&added, env) })
    }

    /// Returns the destination as it will be written, but for the cap that it has from the file.
    fn destination(&self) -> anyhow::Result<Destination> {
        let typed = format!("prism add {}", self.name);
        let target = self.target.destination(&self.name, &typed, None)?;
        let stray = [("--env", !self.variables.is_empty()), ("--cwd", self.cwd.is_some())];
        if let Some((stray, _)) = stray.iter().find(|(_, is_there)| *is_there && target.http.is_some()) {
            bail!(
                "{stray} is for a command, and there is a --url\n  fix: take it out; a URL is told things by --header"
            );
        }
        let mut texts = self.variables.iter().flat_map(|(key, value)| [key, value]);
        if texts.any(|text| text.contains('\0')) {
            bail!("a variable cannot contain the NUL character");
        }
        let process = Process::ALL.into_iter().find(|process| self.process.as_deref() == Some(process.as_str()));
        Ok(Destination {
            env: self.variables.iter().cloned().collect(),
            cwd: self.folder()?,
            process: process.unwrap_or_default(),
            ..target
        })
    }

    /// Returns the folder as it will be written. What is relative to this shell would mean something else to the
    /// daemon, so it is made absolute; a `~` that the shell left alone is for the config to expand.
    fn folder(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(cwd) = &self.cwd else {
            return Ok(None);
        };
        if cwd == "~" || cwd.starts_with("~/") {
            return Ok(Some(cwd.into()));
        }
        let folder = std::path::absolute(cwd).with_context(|| format!("--cwd {cwd:?}"))?;
        match folder.to_str() {
            Some(_) => Ok(Some(folder)),
            None => Err(anyhow!("--cwd {cwd:?} lies in a folder whose name is not UTF-8")),
        }
    }

    /// Puts the entry into the document: a new one at the end, a replaced one where the old one stood.
    fn write_into(&self, draft: &mut Draft) -> anyhow::Result<()> {
        let entry = self.entry()?;
        let document = &mut draft.document;
        let had_text = !document.to_string().trim().is_empty();
        // Comments after the last table are text that stands before the new one, and should stay there.
        let mut trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        if !trailing.is_empty() && !trailing.ends_with('\n') {
            trailing.push('\n');
        }

        let destinations = document.entry("destination").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let inline = destinations.is_inline_table();
        let destinations = destinations.as_table_like_mut().ok_or_else(|| anyhow!("`destination` is not a table"))?;
        if let Some(old) = destinations.get_mut(&self.name).and_then(Item::as_table_like_mut) {
            replace(old, &entry);
            return Ok(());
        }
        if inline {
            let table: InlineTable = entry.into_iter().collect();
            destinations.insert(&self.name, Item::Value(table.into()));
            return Ok(());
        }
        let mut table: Table = entry.into_iter().collect();
        let gap = if had_text { "\n" } else { "" };
        table.decor_mut().set_prefix(format!("{trailing}{gap}"));
        // Else it would follow the last destination, before a `[hub]` that stands below that.
        table.set_position(Some(isize::MAX));
        destinations.insert(&self.name, Item::Table(table));
        document.set_trailing("");
        Ok(())
    }

    /// Returns the keys and values of the entry, only those that were asked for.
    fn entry(&self) -> anyhow::Result<Vec<(&'static str, Value)>> {
        let mut entry = self.target.entry();
        if let Some(process) = &self.process {
            entry.push(("process", process.into()));
        }
        if let Some(cwd) = self.folder()? {
            entry.push(("cwd", cwd.to_string_lossy().as_ref().into()));
        }
        if let Some(count) = self.max_sessions {
            entry.push(("max_sessions", i64::from(count).into()));
        }
        if !self.variables.is_empty() {
            let variables: InlineTable = self.variables.iter().map(|(key, value)| (key, Value::from(value))).collect();
            entry.push(("env", variables.into()));
        }
        Ok(entry)
    }

    /// Returns the entry as text, for the case that a person has to paste it.
    fn lines(&self) -> String {
        let entry = self.entry().unwrap_or_default();
        let body: Vec<String> = entry.iter().map(|(key, value)| format!("  {key} = {value}")).collect();
        format!("  [destination.{}]\n{}\n", self.name, body.join("\n"))
    }

    fn text(&self, added: &Destination, config: &Config, path: &Path, undo: Option<&str>) -> String {
        let mut serve = vec!["prism".to_owned(), "serve".to_owned()];
        serve.extend(config_option(self.config.as_deref()));
        let verb = if undo.is_some() { "replaced" } else { "added" };
        let mut text = format!(
            "{verb} {} in {}\n  {}  {}\n  process  {}\n  url      {}\n",
            self.name,
            path.display(),
            if added.http.is_some() { "server " } else { "command" },
            say::server(added),
            added.process.as_str(),
            config.url(&self.name),
        );
        if let Some(undo) = undo {
            text.push_str(&format!("before: {undo}\n"));
        }
        text.push_str(&format!("next: {}", say::command(&serve)));
        text
    }

    fn warnings(&self, added: &Destination, env: &Env) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(program) = added.command.first()
            && !is_program(program, added.cwd.as_deref(), env)
        {
            let mut warning = format!("{program:?} was not found on PATH; the daemon may not find it either");
            if let [only] = added.command.as_slice()
                && only.contains(' ')
            {
                warning.push_str(&format!("\n  fix: give each word by itself: prism add {} -- {only}", self.name));
            }
            warnings.push(warning);
        }
        if let Some(cwd) = added.cwd.as_deref().filter(|cwd| cwd.is_absolute() && !cwd.is_dir()) {
            warnings.push(format!("{} is not a folder, or not yet", cwd.display()));
        }
        let headers = added.http.iter().flat_map(|http| http.headers.values());
        let in_headers = headers.filter_map(|value| http::reference(value)).map(|(_, variable)| variable);
        for variable in added.env.values().filter_map(|value| value.strip_prefix("env:")).chain(in_headers) {
            if env.var(variable).is_none() {
                warnings.push(format!("{variable} is not set here; it must be where the daemon starts"));
            }
        }
        warnings
    }
}

/// Turns a table into another, key by key, so that the comments beside what stays are kept.
fn replace(table: &mut dyn TableLike, entry: &[(&'static str, Value)]) {
    let old: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for key in old.iter().filter(|key| !entry.iter().any(|(new, _)| new == key)) {
        table.remove(key);
    }
    for (key, value) in entry {
        match table.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = value.clone();
                *old.decor_mut() = decor;
            }
            None => {
                table.insert(key, Item::Value(value.clone()));
            }
        }
    }
}

/// Whether a shell with this environment would find the program.
pub(super) fn is_program(program: &str, cwd: Option<&Path>, env: &Env) -> bool {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(&cwd.unwrap_or(Path::new("")).join(program));
    }
    let path = env.var("PATH").unwrap_or_default();
    split_paths(path).any(|folder| executable(&folder.join(program)))
}
