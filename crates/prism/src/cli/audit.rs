//! `prism audit`: the audit log, read from its files, so that it works without a daemon too. What is in a line is decided
//! where it is written; that nobody changed it, by `prism_store::audit`.

mod show;

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use prism_config::{Env, duration};
use prism_core::time::parse_rfc3339;
use prism_daemon::running::{AUDIT, DATABASE};
use prism_store::{
    audit::{
        self, AuditBreak, AuditExportError, AuditHead, AuditQuery, AuditVerifyError, BreakKind, ExportSummary,
        VerifiedLog, export, search, verify_with_heads,
    },
    audit_head_at,
};
use serde_json::json;

use super::{
    bar::ProgressBar,
    daemon,
    moments::now_ms,
    say::{self, Colour},
};

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Read the audit log, and check that nobody changed it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism audit tail -f                            what happens, as it happens
  prism audit search --agent reviewer --since 2h
  prism audit verify                             whether all lines are there as they were written
  prism audit export audit-copy.jsonl            save a copy (compare its last hash later)

The files are read as they are, so this works when the daemon does not run.")]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    Tail(AuditTailArgs),
    Search(AuditSearchArgs),
    Verify(AuditVerifyArgs),
    Export(AuditExportArgs),
}

/// Show the newest lines
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism audit tail
  prism audit tail -n 100
  prism audit tail -f --json | jq .action")]
struct AuditTailArgs {
    /// How many lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Go on with what comes, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Print the lines as they are, for programs
    #[arg(long)]
    json: bool,
}

/// Find lines, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism audit search 'src/main.rs'
  prism audit search --agent reviewer --action 'git_*' --since 2h
  prism audit search refused --since 2026-11-16T00:00:00Z --json | jq .args

Exit codes: 0 some were found, 1 none.")]
struct AuditSearchArgs {
    /// Text anywhere in the line, in whichever case
    text: Option<String>,
    /// Only what this agent or person did
    #[arg(long, visible_alias = "actor", value_name = "NAME")]
    agent: Option<String>,
    /// Only this action; with a * at its end, all that begin so
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only of this grant, by its id
    #[arg(long, visible_alias = "grant", value_name = "ID")]
    session: Option<String>,
    /// Not older than this: a duration as in 2h, or a moment as in 2026-11-16T06:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<i64>,
    /// Only lines before this number
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print the lines as they are, for programs
    #[arg(long)]
    json: bool,
}

/// Check that every line is there as it was written
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism audit verify
  prism audit verify --head 4711:9f86d081…    and that line 4711 is the one that was exported
  prism audit verify --json

Whoever may write all files of the log could write another one. A head that is kept elsewhere shows that.
Exit codes: 0 whole, 1 broken or unreadable.")]
struct AuditVerifyArgs {
    /// The head of an earlier export or check, which has to be in the log
    #[arg(long, value_name = "SEQ:HASH", value_parser = str::parse::<AuditHead>)]
    head: Option<AuditHead>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Copy all lines, oldest first, to stdout or a file
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism audit export audit-copy.jsonl
  prism audit export | gzip > audit.jsonl.gz

The last line's number and hash go to stderr. Keep them: prism audit verify --head compares them later.")]
struct AuditExportArgs {
    /// A new file, for its owner alone; stdout if there is none
    file: Option<PathBuf>,
}

// === impl AuditArgs ===

impl AuditArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = daemon::home(env)?;
        let folder = home.path().join(AUDIT);
        // Before the lines: they may become more meanwhile.
        let known = audit_head_at(&home.path().join(DATABASE));
        let is_gone = matches!(self.command, AuditCommand::Verify(_)) && known.is_some();
        if !folder.is_dir() && !is_gone {
            bail!("there is no audit log yet: {}\n  fix: prism serve --detach", folder.display());
        }
        let ran = match self.command {
            AuditCommand::Tail(tail) => tail.run(&folder),
            AuditCommand::Search(search) => search.run(&folder),
            AuditCommand::Verify(verify) => verify.run(&folder, known),
            AuditCommand::Export(export) => export.run(&folder),
        };
        match ran {
            // Whoever reads this may have seen enough, as `head` has.
            Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
            ran => ran,
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(of)
}

fn since(text: &str) -> Result<i64, String> {
    if let Some(ms) = parse_rfc3339(text) {
        return Ok(ms.saturating_mul(1000));
    }
    let ago = duration(text).map_err(|_| "neither a duration as in 2h nor a moment as in 2026-11-16T06:00:00Z")?;
    let us = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(now_ms().saturating_mul(1000).saturating_sub(us))
}

/// Writes lines in their order.
fn show(lines: &[String], json: bool) -> io::Result<()> {
    for line in lines {
        match json {
            true => say::try_line(line)?,
            false if io::stdout().is_terminal() => say::coloured(&show::line(line)),
            false => say::try_line(&show::line(line).iter().map(|(text, _)| text.as_str()).collect::<String>())?,
        }
    }
    Ok(())
}

// === impl AuditTailArgs ===

impl AuditTailArgs {
    fn run(self, folder: &Path) -> anyhow::Result<ExitCode> {
        let looked_at = looks(folder);
        let mut newest = audit::tail(folder, self.lines.max(1))?;
        let mut last = newest.first().and_then(|line| show::seq(line)).unwrap_or(0);
        newest.truncate(self.lines);
        newest.reverse();
        if newest.is_empty() && !self.follow {
            say::note("no lines yet");
        }
        show(&newest, self.json)?;
        if self.follow { self.go_on(folder, &mut last, looked_at) } else { Ok(ExitCode::SUCCESS) }
    }

    fn go_on(&self, folder: &Path, last: &mut u64, mut looked_at: Looks) -> anyhow::Result<ExitCode> {
        loop {
            thread::sleep(LOOK);
            let now = looks(folder);
            if now == looked_at {
                continue;
            }
            looked_at = now;
            let query = AuditQuery { after_seq: Some(*last), limit: usize::MAX, ..AuditQuery::default() };
            let mut news = search(folder, &query)?;
            news.reverse();
            *last = news.last().and_then(|line| show::seq(line)).unwrap_or(*last);
            show(&news, self.json)?;
        }
    }
}

/// What changes when a line is added: the file itself and its length.
type Looks = Option<(u64, u64)>;

fn looks(folder: &Path) -> Looks {
    folder.join("audit.jsonl").metadata().ok().map(|found| (found.ino(), found.len()))
}

// === impl AuditSearchArgs ===

impl AuditSearchArgs {
    fn run(self, folder: &Path) -> anyhow::Result<ExitCode> {
        let Self { text, agent, action, session, since, before, limit, json } = self;
        let query = AuditQuery {
            actor: agent,
            action,
            text,
            session,
            since_us: since,
            before_seq: before,
            after_seq: None,
            limit,
        };
        let found = search(folder, &query)?;
        show(&found, json)?;
        if found.is_empty() {
            say::note("no line matches");
            return Ok(ExitCode::FAILURE);
        }
        if found.len() == limit
            && let Some(seq) = found.last().and_then(|line| show::seq(line)).filter(|seq| *seq > 1)
        {
            say::note(&format!("the newest {limit}; go on with --before {seq}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl AuditVerifyArgs ===

impl AuditVerifyArgs {
    fn run(self, folder: &Path, known: Option<AuditHead>) -> anyhow::Result<ExitCode> {
        let kept: Vec<AuditHead> = self.head.iter().cloned().chain(known.clone()).collect();
        let mut bar = ProgressBar::new("verifying (MiB)");
        let whole = verify_with_heads(folder, &kept, |done, total| {
            let mib = |bytes: u64| usize::try_from(bytes >> 20).unwrap_or(usize::MAX);
            bar.show(mib(done), mib(total));
        });
        let elapsed = bar.elapsed();
        drop(bar);
        match whole {
            Ok(verified) => self.say_whole(&verified, elapsed)?,
            Err(AuditVerifyError::Broken(broken)) => {
                self.say_broken(&broken, known.as_ref())?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn say_whole(&self, verified: &VerifiedLog, elapsed: Duration) -> anyhow::Result<()> {
        let VerifiedLog { lines, files, first_seq, head, unfinished_bytes } = verified;
        if self.json {
            let head = json!({ "seq": head.seq, "hash": head.hash });
            let said = json!({
                "ok": true, "lines": lines, "files": files, "first_seq": first_seq, "head": head,
                "unfinished_bytes": unfinished_bytes, "seconds": elapsed.as_secs_f64(),
            });
            say::text(&serde_json::to_string_pretty(&said)?);
            return Ok(());
        }
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let text = format!(": {lines} lines in {files}, checked in {:.1} s", elapsed.as_secs_f64());
        say::parts(&[("whole", Some(Colour::Green)), (&text, None)]);
        if *first_seq > 1 {
            say::line(&format!("lines before {first_seq} are no longer kept (audit.keep)"));
        }
        if *unfinished_bytes > 0 {
            say::line(&format!(
                "{unfinished_bytes} bytes behind the last line are being written, or were left by a crash"
            ));
        }
        say::line(&format!("head {head}"));
        Ok(())
    }

    fn say_broken(&self, broken: &AuditBreak, known: Option<&AuditHead>) -> anyhow::Result<()> {
        if self.json {
            let said = json!({
                "ok": false, "file": broken.file, "line": broken.line, "seq": broken.seq, "what": broken.what.name(),
                "message": broken.what.to_string(), "known_seq": known.map(|known| known.seq),
            });
            say::text(&serde_json::to_string_pretty(&said)?);
            return Ok(());
        }
        say::parts(&[("broken", Some(Colour::Red)), (&format!(": {broken}"), None)]);
        if let (BreakKind::Missing { newest }, Some(known)) = (&broken.what, known)
            && known.seq > *newest
        {
            say::line(&format!("  Prism's database knows of {} lines, up to number {}", known.seq, known.seq));
        }
        let fix = match broken.what {
            BreakKind::HeadMissing | BreakKind::HeadDamaged => {
                "compare the newest lines with a copy; the next prism serve writes a new head, and a line that says so"
            }
            BreakKind::LetGo => "give a newer head",
            _ => "compare this place with a copy (prism audit export); all lines before it are as they were written",
        };
        say::line(&format!("  fix: {fix}"));
        Ok(())
    }
}

// === impl AuditExportArgs ===

impl AuditExportArgs {
    fn run(self, folder: &Path) -> anyhow::Result<ExitCode> {
        let ExportSummary { lines, head } = match &self.file {
            None => export(folder, say::try_text)?,
            Some(path) => to_file(folder, path)?,
        };
        say::note(&format!("{lines} lines; head {head}"));
        Ok(ExitCode::SUCCESS)
    }
}

fn to_file(folder: &Path, path: &Path) -> anyhow::Result<ExportSummary> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{} is there already\n  fix: name another file, or remove this one", path.display())
        }
        file => file.with_context(|| format!("cannot create {}", path.display()))?,
    };
    let exported = export(folder, |lines| file.write_all(lines)).and_then(|exported| {
        file.sync_all().map_err(AuditExportError::Write)?;
        Ok(exported)
    });
    exported.with_context(|| format!("{} is not a whole copy", path.display()))
}
