//! `prism trust`: the person looks at a config that others may have written, and says that it counts. What is shown is what
//! is kept: the file is read once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use prism_os::clock::now_rfc3339;
use serde_json::{Value, json};

use super::{
    daemon,
    say::{self, Colour},
    talk,
    visible::visible,
};
use prism_config::{
    Env,
    file::NAME,
    home,
    raw::RawConfig,
    registration::Registration,
    trust::{self, TrustStatus, TrustedText, name_of},
};
use prism_install::diff::{self, DiffLine};

/// Look at a project's config, and let it count
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism trust                    ./prism.toml: see what is new in it, and decide
  prism trust ../shared/prism.toml --yes
  prism trust --list
  prism trust --revoke

A config in a project can start programs, and others than you write there. So it counts once you
have seen what it says, and after a change what you saw before counts until you look again. What
prism add, remove and import write for you needs no second look; nor does Prism's own folder.
Exit codes: 0 it counts (or was listed, or revoked), 1 it does not.")]
pub struct TrustArgs {
    /// Config, or the folder that it is in [default: ./prism.toml]
    path: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
    /// Show what was trusted, and whether it is still so
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Let it count no more
    #[arg(long)]
    revoke: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl TrustArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        if self.list {
            return self.listed(&trust::TrustStore::of(&home::folder(env)?));
        }
        let home = daemon::home(env)?;
        let trust = trust::TrustStore::of(home.path());
        let path = name_of(&self.file());
        if self.revoke {
            return self.revoked(&trust, &path);
        }
        let bytes = fs::read(&path).with_context(|| {
            format!("cannot read {}\n  fix: prism trust PATH, with the path of a prism.toml", path.display())
        })?;
        let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
        let before = match trust.standing(&path, &text)? {
            TrustStatus::Own => {
                return Ok(self.said(&path, "own", "counts without that: it lies in Prism's own folder"));
            }
            TrustStatus::Seen => return Ok(self.said(&path, "unchanged", "is as you have seen it, and counts")),
            TrustStatus::Changed(seen) => Some(seen.text),
            TrustStatus::Unknown => None,
        };
        if !self.json {
            show(&path, before.as_deref(), &text);
        }
        if !self.yes && !asked()? {
            return Ok(ExitCode::FAILURE);
        }
        trust.see(&path, &text, now_rfc3339()).with_context(|| format!("cannot write {}", trust.file().display()))?;
        let taken = match Registration::alive(home.path()) {
            Some(_) => "counts now; a daemon that runs on it takes it up at once",
            None => "counts now",
        };
        Ok(self.said(&path, "trusted", taken))
    }

    fn file(&self) -> PathBuf {
        match &self.path {
            Some(path) if path.is_dir() => path.join(NAME),
            Some(path) => path.clone(),
            None => PathBuf::from(NAME),
        }
    }

    fn said(&self, path: &Path, state: &str, words: &str) -> ExitCode {
        match self.json {
            true => say::line(&json!({ "path": path, "state": state }).to_string()),
            false => say::line(&format!("{} {words}", visible(&path.display().to_string()))),
        }
        ExitCode::SUCCESS
    }

    fn revoked(&self, trust: &trust::TrustStore, path: &Path) -> anyhow::Result<ExitCode> {
        if !trust.forget(path).with_context(|| format!("cannot write {}", trust.file().display()))? {
            bail!("{} was not trusted, so there is nothing to revoke\n  see: prism trust --list", path.display());
        }
        Ok(self.said(path, "revoked", "counts no more; a daemon that runs on it goes on without"))
    }

    fn listed(&self, trust: &trust::TrustStore) -> anyhow::Result<ExitCode> {
        let all = trust.all().with_context(|| format!("cannot read {}", trust.file().display()))?;
        let state = |seen: &TrustedText| match fs::read(&seen.path) {
            Ok(bytes) if bytes == seen.text.as_bytes() => "unchanged",
            Ok(_) => "changed",
            Err(_) => "gone",
        };
        if self.json {
            let row = |seen: &TrustedText| json!({ "path": seen.path, "trusted_at": seen.at, "state": state(seen) });
            let rows: Vec<Value> = all.iter().map(row).collect();
            say::text(&serde_json::to_string_pretty(&rows)?);
            return Ok(ExitCode::SUCCESS);
        }
        if all.is_empty() {
            say::line("no project's config is trusted; what is in Prism's own folder needs no trust");
        }
        for seen in &all {
            let said = match state(seen) {
                "changed" => " (changed since; see prism trust PATH)",
                "gone" => " (it is not there any more)",
                _ => "",
            };
            say::line(&format!("{}  {}{said}", seen.at, visible(&seen.path.display().to_string())));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows what is new, nothing of it hidden: not what else a secret would be, and no letter that looks like none.
fn show(path: &Path, before: Option<&str>, text: &str) {
    for line in diff::lines_in_full(path, before, Some(text)) {
        let colour = match line {
            DiffLine::Head(_) => Some(Colour::Dim),
            DiffLine::Same(_) => None,
            DiffLine::Added(_) => Some(Colour::Green),
            DiffLine::Removed(_) => Some(Colour::Red),
        };
        say::told(&vec![(visible(line.as_str()), colour)]);
    }
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    if let Some(Err(error)) = is_toml.then(|| RawConfig::parse(path, text).and_then(|raw| raw.written())) {
        say::warning(&format!("as it is it cannot be used: {error}"));
    }
}

fn asked() -> anyhow::Result<bool> {
    if !talk::has_person() {
        say::note("nothing was trusted: nobody is at a terminal to see it");
        say::note("  fix: --yes trusts what is shown");
        return Ok(false);
    }
    let question = "It can start programs as you. Let it count? yes, no:";
    let is_yes = talk::choose(question, &["yes", "no"])? == Some("yes");
    if !is_yes {
        say::note("nothing was trusted; what counted before goes on counting");
    }
    Ok(is_yes)
}
