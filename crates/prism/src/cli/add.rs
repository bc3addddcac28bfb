//! `prism add`: writes a server into `prism.toml`. How the file is kept whole is `config::file`.

mod folder;
mod taken;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, anyhow, bail};
use folder::CommandFolder;
use prism_config::{
    Config, DestinationConfig, Env, EnvInheritance, Flags, ProcessSharing, ServerTable,
    file::{self, ConfigDraft, ConfigPaths},
    home::{self, Home},
    raw,
    registration::Registration,
    secret::{self, SecretReference},
};
use prism_core::shell::command_line;
use prism_os::{
    login,
    program::{self, ProgramLookupError},
};
use taken::StartupWatch;
use toml_edit::{InlineTable, Item, Table, TableLike, Value};

use super::{reach, remove, say, target::TargetArgs};

#[cfg(test)]
mod tests;

/// Add an MCP server
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism add files -- npx -y @modelcontextprotocol/server-filesystem .
  prism add web --env API_KEY=file:~/.secrets/web -- uvx some-mcp-server
  prism add docs --url https://example.com/mcp --header 'Authorization: Bearer env:DOCS_TOKEN'

Exit codes: 0 it was added (and answers, if the daemon runs), 1 it was not, 4 it was added and does not answer.")]
pub struct AddArgs {
    /// Name of the server; its URL is /NAME/mcp
    name: String,
    /// Who shares a child process
    #[arg(long, value_parser = ProcessSharing::ALL.map(ProcessSharing::as_str))]
    process: Option<String>,
    /// Variable for the child. With env:NAME, file:PATH or keyring:SERVICE/ACCOUNT as its value, what is there is
    /// looked up whenever the child starts, and the secret is in no config and on no command line
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Folder the child runs in [default: this one, if a word of the command is a path from here, as in . or ./data]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Sessions it may have at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// Config file to write to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replace a server of the same name
    #[arg(long)]
    force: bool,
    /// Only write it down; do not wait until the daemon has started it once
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// What was done, in words.
#[derive(Debug)]
pub(super) struct AddReport {
    pub(super) text: String,
    pub(super) warnings: Vec<String>,
    /// The daemon that takes it up, if one runs on the file.
    taker: Option<StartupWatch>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// Returns where `prism add`, `list` and `remove` look for their file.
pub(super) fn places(config: Option<&Path>, here: &Path, env: &Env) -> anyhow::Result<ConfigPaths> {
    Ok(ConfigPaths { explicit: config.map(Path::to_owned), here: here.to_owned(), home: home::folder(env)? })
}

/// Returns the `--config FILE` that the next command needs, as words.
pub(super) fn config_option(config: Option<&Path>) -> Vec<String> {
    match config {
        Some(path) => vec!["--config".to_owned(), path.to_string_lossy().into_owned()],
        None => Vec::new(),
    }
}

/// What is said of a change to a file that does not count.
pub(super) fn unseen(target: &Path) -> String {
    let fix = command_line(&["prism".to_owned(), "trust".to_owned(), target.display().to_string()]);
    format!("you have not seen what else that file says, so none of it counts yet\n  fix: {fix}")
}

// === impl AddArgs ===

impl AddArgs {
    /// Adds the destination and says what comes next.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let report = self.apply(Path::new(""), env)?;
        for warning in &report.warnings {
            say::warning(warning);
        }
        say::line(&report.text);
        match report.taker.filter(|_| !self.no_wait) {
            Some(taker) => reach::run(taker.watch()),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    pub(super) fn apply(&self, here: &Path, env: &Env) -> anyhow::Result<AddReport> {
        if let Err(error) = raw::check_name(&self.name) {
            bail!("{error}\n  fix: {}", error.fix());
        }
        let added = self.destination()?;

        let places = places(self.config.as_deref(), here, env)?;
        let target = places.target()?;
        let folder = match &self.cwd {
            Some(cwd) => Some(CommandFolder::asked(cwd)?),
            None => CommandFolder::needed(&self.target.command, &places, &target)?,
        };
        if target.parent() == Some(&places.home) {
            Home::find(env)?;
        }
        let mut draft = ConfigDraft::open(&target, &places.home).context("nothing was added")?;
        let replaced = draft.written().destinations.get(&self.name).cloned();
        if replaced.is_some() && !self.force {
            bail!(
                "{} already has a server {:?}\n  fix: choose another name, or replace it with --force",
                draft.path().display(),
                self.name
            );
        }

        let max_sessions = self.max_sessions.map_or(draft.written().max_sessions, |count| count as usize);
        let cwd = folder.as_ref().map(|folder| folder.written.clone());
        let table = ServerTable::of_entry(&draft.document, &self.name);
        let added = DestinationConfig { table, max_sessions, cwd, ..added };
        let undo = match &replaced {
            Some(old) => {
                let entry = remove::entry(&draft, &self.name);
                Some(remove::undo(old, old.key(), entry, self.config.as_deref(), &draft))
            }
            None => None,
        };
        put(&mut draft, &self.name, self.entry(folder.as_ref()))?;
        let mut meant = draft.written().destinations.clone();
        meant.insert(self.name.clone(), added.clone());
        let path = draft.path().to_owned();
        // One that is named with --config counts where it is named.
        let counts = draft.counts() || self.config.is_some();
        let written = draft.save(&meant).with_context(|| {
            format!(
                "cannot add {:?}; these lines by hand would do it:\n\n{}",
                self.name,
                self.lines(table, folder.as_ref())
            )
        })?;

        // The daemon's port may come from the environment; the file alone still gives a useful answer.
        let config = file::load(&places, &[], &Flags::default(), env).map_or(written, |loaded| loaded.config);
        let verb = if replaced.is_some() { "replaced" } else { "added" };
        let mut text = format!("{verb} {} in {}\n", self.name, path.display());
        text.push_str(&self.text(&added, folder.as_ref(), &config));
        if let Some(undo) = undo {
            text.push_str(&format!("before: {undo}\n"));
        }
        let daemon = Registration::alive(&places.home);
        let is_its_file = |daemon: &Registration| {
            let its_own = daemon.config_file(&places.home);
            its_own.and_then(|file| file.canonicalize().ok()) == path.canonicalize().ok()
        };
        let taker = match daemon.as_ref().filter(|daemon| is_its_file(daemon)) {
            Some(daemon) => home::existing_token(env)?.map(|token| StartupWatch {
                base: daemon.url.clone(),
                token,
                name: self.name.clone(),
                server: say::server(&added),
                written: Instant::now(),
            }),
            None => None,
        };
        text.push_str(&self.next(daemon.as_ref(), taker.is_some()));
        // From here on the folder is where it is on this machine.
        let found = DestinationConfig { cwd: folder.map(|folder| folder.real), ..added };
        let mut warnings = self.warnings(&found, env);
        if !counts {
            warnings.push(unseen(&target));
        }
        Ok(AddReport { text: text.trim_end().to_owned(), warnings, taker: taker.filter(|_| counts) })
    }

    /// Returns the destination as it will be written, but for the cap that it has from the file.
    fn destination(&self) -> anyhow::Result<DestinationConfig> {
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
        let process = ProcessSharing::ALL.into_iter().find(|process| self.process.as_deref() == Some(process.as_str()));
        Ok(DestinationConfig {
            env: self.variables.iter().cloned().collect(),
            process: process.unwrap_or_default(),
            ..target
        })
    }

    /// Returns the keys and values of the entry, only those that were asked for.
    fn entry(&self, folder: Option<&CommandFolder>) -> Vec<(&'static str, Value)> {
        let mut entry = self.target.entry();
        if let Some(process) = &self.process {
            entry.push(("process", process.into()));
        }
        if let Some(folder) = folder {
            entry.push(("cwd", folder.written.to_string_lossy().as_ref().into()));
        }
        if let Some(count) = self.max_sessions {
            entry.push(("max_sessions", i64::from(count).into()));
        }
        if !self.variables.is_empty() {
            let variables: InlineTable = self.variables.iter().map(|(key, value)| (key, Value::from(value))).collect();
            entry.push(("env", variables.into()));
        }
        entry
    }

    /// Returns the entry as text, for the case that a person has to paste it.
    fn lines(&self, table: ServerTable, folder: Option<&CommandFolder>) -> String {
        let entry = self.entry(folder);
        let body: Vec<String> = entry.iter().map(|(key, value)| format!("  {key} = {value}")).collect();
        format!("  [{table}.{}]\n{}\n", self.name, body.join("\n"))
    }

    /// Returns the destination in words.
    fn text(&self, added: &DestinationConfig, folder: Option<&CommandFolder>, config: &Config) -> String {
        let kind = if added.http.is_some() { "server " } else { "command" };
        let mut text = format!("  {kind}  {}\n", say::server(added));
        if let Some(folder) = folder {
            text.push_str(&format!("  folder   {}", folder.real.display()));
            if let Some(word) = &folder.because {
                text.push_str(&format!(" (so that {word:?} keeps meaning this folder; change with --cwd)"));
            }
            text.push('\n');
        }
        text.push_str(&format!("  process  {}\n  url      {}\n", added.process.as_str(), config.url(&self.name)));
        text
    }

    /// Returns what to do so that the destination is there. A daemon that runs on the file takes it up by itself.
    fn next(&self, daemon: Option<&Registration>, is_taken_up: bool) -> String {
        let mut serve = vec!["prism".to_owned(), "serve".to_owned(), "--detach".to_owned()];
        serve.extend(config_option(self.config.as_deref()));
        let serve = command_line(&serve);
        match daemon {
            None => format!("next: {serve}"),
            Some(daemon) if is_taken_up && self.no_wait => {
                format!(
                    "the daemon (pid {}) reads the file again in a moment; next: prism tools {}, once prism status shows it",
                    daemon.pid, self.name
                )
            }
            Some(_) if is_taken_up => String::new(),
            Some(daemon) => {
                format!("next: prism stop, then {serve}: the daemon that runs (pid {}) has another config", daemon.pid)
            }
        }
    }

    fn warnings(&self, added: &DestinationConfig, env: &Env) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(program) = added.command.first()
            && !is_program(program, added.cwd.as_deref(), env)
            && !login_path(env).is_some_and(|path| Env::finds(program, added.cwd.as_deref(), &path))
        {
            let path = env.var("PATH").unwrap_or_default();
            let absent = program::find(program, added.cwd.as_deref(), path).err();
            let mut warning = match absent {
                Some(
                    absent @ (ProgramLookupError::NotExecutable { .. }
                    | ProgramLookupError::BrokenLink { .. }
                    | ProgramLookupError::NoInterpreter { .. }
                    | ProgramLookupError::Hidden { .. }),
                ) => {
                    format!("{absent}\n  fix: {}", absent.fix())
                }
                _ => format!("{program:?} was not found on PATH; the daemon may not find it either"),
            };
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
        let in_headers = headers.filter_map(|value| secret::of_header(value));
        for reference in added.env.values().filter_map(|value| secret::of_variable(value)).chain(in_headers) {
            match reference {
                SecretReference::Variable(variable) if env.var(variable).is_none() => {
                    warnings.push(format!("{variable} is not set here; it must be where the daemon starts"));
                }
                SecretReference::Variable(_) | SecretReference::File(_) | SecretReference::Keyring { .. } => {}
            }
        }
        warnings
    }
}

/// Puts an entry into the document: a new one at the end, a replaced one where the old one stood.
pub(super) fn put(draft: &mut ConfigDraft, name: &str, entry: Vec<(&'static str, Value)>) -> anyhow::Result<()> {
    let document = &mut draft.document;
    let had_text = !document.to_string().trim().is_empty();
    // Comments after the last table are text that stands before the new one, and should stay there.
    let mut trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    if !trailing.is_empty() && !trailing.ends_with('\n') {
        trailing.push('\n');
    }

    let key = ServerTable::of_entry(document, name).as_str();
    let destinations = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let inline = destinations.is_inline_table();
    let destinations = destinations.as_table_like_mut().ok_or_else(|| anyhow!("`{key}` is not a table"))?;
    if let Some(old) = destinations.get_mut(name).and_then(Item::as_table_like_mut) {
        replace(old, &entry);
        return Ok(());
    }
    if inline {
        let table: InlineTable = entry.into_iter().collect();
        destinations.insert(name, Item::Value(table.into()));
        return Ok(());
    }
    let mut table: Table = entry.into_iter().collect();
    let gap = if had_text { "\n" } else { "" };
    table.decor_mut().set_prefix(format!("{trailing}{gap}"));
    // Else it would follow the last destination, before a `[hub]` that stands below that.
    table.set_position(Some(isize::MAX));
    destinations.insert(name, Item::Table(table));
    document.set_trailing("");
    Ok(())
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

/// The PATH that the daemon will get from the login shell.
fn login_path(env: &Env) -> Option<OsString> {
    let shell = login::shell(env.var("SHELL"))?;
    login::path(&shell, &env.inherited(&EnvInheritance::All), login::PATIENCE)
}

/// Whether a shell with this environment would find the program.
pub(super) fn is_program(program: &str, cwd: Option<&Path>, env: &Env) -> bool {
    Env::finds(program, cwd, env.var("PATH").unwrap_or_default())
}
