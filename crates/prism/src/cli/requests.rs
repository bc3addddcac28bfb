//! `prism requests`: who asks for access, and what was decided. How one request looks in full is here too, for those who
//! decide on it.

use std::{io, process::ExitCode, time::Duration};

use prism_api::gate::RequestView;
use prism_core::policy::{GrantScope, RequestState};
use serde_json::json;
use tokio::time::sleep;

use super::{
    columns::{Cell, cut, table, text},
    gate::{GateClient, GateRows, show},
    moments::{clock, until},
    reach::{self, Interrupts},
    say::{self, Colour, Line},
    verbs::{DaemonCallError, FeedItem, say_not_running},
    visible::visible_line,
};
use prism_config::Env;

/// How often a daemon that went is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// Show who asks for access and waits for you
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism requests
  prism requests --all
  prism requests --watch
  prism requests --json | jq '.requests[] | {agent_id, scopes, reason}'

Decide with prism approve ID or prism deny ID, or in the browser: prism console.
Exit codes: 0 shown, 1 refused, 3 the daemon does not run.")]
pub struct RequestsArgs {
    /// Also those that are decided, or over
    #[arg(long)]
    all: bool,
    /// Go on with what comes, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print JSON, for programs; with --watch one line each
    #[arg(long)]
    json: bool,
}

// === impl RequestsArgs ===

impl RequestsArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            if self.watch {
                let mut stop = Interrupts::new()?;
                return tokio::select! {
                    watched = self.follow(gate, env) => watched,
                    _ = stop.next() => Ok(ExitCode::SUCCESS),
                };
            }
            show(
                gate.requests(self.all).await,
                self.json,
                "nobody asks; an agent does with prism_request_access",
                lines,
            )
        })
    }

    /// Shows what waits, and then each request as it comes and changes.
    async fn follow(&self, mut gate: GateClient, env: &Env) -> anyhow::Result<ExitCode> {
        let mut shown: Vec<(String, RequestState)> = Vec::new();
        let mut was_there = false;
        loop {
            // The stream comes first: what happens while the list is read is told there.
            match gate.events().await {
                Ok(mut events) => {
                    was_there = true;
                    say::status(None);
                    loop {
                        match gate.requests(self.all || !shown.is_empty()).await {
                            Ok(listed) => {
                                if self.news(listed, &mut shown).is_err() {
                                    // Nobody reads any more: that is how `| head` ends it.
                                    return Ok(ExitCode::SUCCESS);
                                }
                            }
                            Err(DaemonCallError::Away(_) | DaemonCallError::Late(_)) => break,
                            Err(trouble) => return Err(trouble.into()),
                        }
                        let more = loop {
                            match events.next().await {
                                FeedItem::Event { name, .. } if matches!(name.as_str(), "request" | "missed") => {
                                    break true;
                                }
                                FeedItem::Event { .. } => {}
                                FeedItem::End => break false,
                            }
                        };
                        if !more {
                            break;
                        }
                    }
                    say::status(Some("the daemon is away; this goes on when it is back"));
                }
                Err(DaemonCallError::Away(_) | DaemonCallError::Late(_)) if was_there => {}
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                Err(trouble) => return Err(trouble.into()),
            }
            sleep(LOOK).await;
            // It may be elsewhere by now.
            if let Ok(Some(again)) = GateClient::running(env) {
                gate = again;
            }
        }
    }

    /// Shows those that are not as they were shown last, the oldest first.
    fn news(&self, mut listed: GateRows<RequestView>, shown: &mut Vec<(String, RequestState)>) -> io::Result<()> {
        listed.rows.reverse();
        for row in &listed.rows {
            let (id, state) = (&row.request_id, row.status);
            let known = shown.iter().position(|(known, _)| known == id);
            match known {
                Some(at) if shown[at].1 == state => continue,
                Some(at) => shown[at].1 = state,
                // Decided before anybody looked: no news, unless all are wanted.
                None if !self.all && !state.is_open() => continue,
                None => shown.push((id.clone(), state)),
            }
            let line = match self.json {
                true => json!(row).to_string(),
                false => {
                    let (agent, reason) = (visible_line(&row.agent_id), in_one_line(&row.reason));
                    format!("{}  {:<8}  {id}  {agent}: {reason}", clock(&row.created_at), state.name())
                }
            };
            say::try_line(&line)?;
        }
        Ok(())
    }
}

/// Requests in a table, each with its reason below it.
fn lines(listed: &GateRows<RequestView>, width: usize, now: i64) -> Vec<Line> {
    let columns = [
        text("REQUEST", 0),
        text("AGENT", 0),
        text("STATUS", 0),
        text("SCOPES", 3),
        text("ROOTS", 2),
        text("ASKED", 1),
        text("ENDS", 4),
    ];
    let rows = listed.rows.iter().map(|row| {
        let colour = match row.status {
            RequestState::Requested | RequestState::Pending => Some(Colour::Yellow),
            RequestState::Approved | RequestState::Active => Some(Colour::Green),
            RequestState::Denied | RequestState::Expired | RequestState::Revoked => Some(Colour::Dim),
        };
        let ends = if row.status.is_open() { until(&row.expires_at, now) } else { String::new() };
        let cells: Vec<Cell> = vec![
            (listed.short(row).to_owned(), None),
            (row.agent_id.clone(), None),
            (row.status.name().to_lowercase(), colour),
            (few(&row.scopes), None),
            (few(&row.roots), None),
            (until(&row.created_at, now), None),
            (ends, Some(Colour::Dim)),
        ];
        let reason = cut(vec![(format!("  {}", in_one_line(&row.reason)), Some(Colour::Dim))], width);
        (cells, vec![reason])
    });
    table(&columns, rows.collect(), width)
}

/// The first of a list, and how many more there are.
pub(super) fn few(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} {two}"),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}

pub(super) fn in_one_line(text: &str) -> String {
    visible_line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A request as the person sees it who decides: who, why, where, and what each scope means.
pub(super) fn in_full(row: &RequestView, now: i64) -> Vec<Line> {
    let plain = |text: String| (text, None);
    let label = |text: &str| (format!("  {text:<8}"), Some(Colour::Dim));
    let mark = |new: &[String], one: &String| {
        (if new.contains(one) { "  new".to_owned() } else { String::new() }, Some(Colour::Yellow))
    };
    let mut lines = vec![vec![
        (in_one_line(&row.agent_id), Some(Colour::Green)),
        plain(format!(" asks for access, {}  {}", until(&row.created_at, now), row.request_id)),
    ]];
    if let Some(client) = &row.asker.client {
        lines.push(vec![label("from"), plain(in_one_line(client))]);
    }
    for (at, one) in row.reason.lines().enumerate() {
        lines.push(vec![label(if at == 0 { "why" } else { "" }), plain(visible_line(one))]);
    }
    for (at, root) in row.roots.iter().enumerate() {
        let head = label(if at == 0 { "folders" } else { "" });
        lines.push(vec![head, plain(visible_line(root)), mark(&row.new_roots, root)]);
    }
    for (at, name) in row.scopes.iter().enumerate() {
        let words = GrantScope::named(name).map_or("", GrantScope::in_words);
        let head = label(if at == 0 { "scopes" } else { "" });
        lines.push(vec![head, plain(visible_line(&format!("{name:<20}{words}"))), mark(&row.new_scopes, name)]);
    }
    if row.ttl_seconds > 0 {
        #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
        let seconds = row.ttl_seconds as f64;
        lines.push(vec![label("for"), plain(super::status::words::time(seconds))]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &[Line]) -> Vec<String> {
        let line = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>().trim_end().to_owned();
        lines.iter().map(line).collect()
    }

    // M3
    #[test]
    fn no_word_of_an_agents_looks_like_another_or_like_a_line_of_ours() {
        let row = json!({
            "request_id": "r1", "agent_id": "fix\u{202e}er\nfixer", "reason": "a\u{200b}b", "scopes": ["read:files"],
            "roots": ["/p/pro\u{202e}jtxt\n  folders /home/me/harmless"], "asker": {"client": "c\u{2066}\u{1b}[2J"},
        });
        let row = serde_json::from_value(row).unwrap();
        let lines = drawn(&in_full(&row, 0));
        assert_eq!(lines[0], "fix\\u{202e}er fixer asks for access,   r1");
        assert_eq!(lines[1], "  from    c\\u{2066}\\u{1b}[2J");
        assert_eq!(lines[2], "  why     a\\u{200b}b");
        assert_eq!(lines[3], "  folders /p/pro\\u{202e}jtxt\\n  folders /home/me/harmless");
    }

    // the same that the console's dialog shows.
    #[test]
    fn who_decides_sees_who_asks_why_and_for_what_in_plain_words() {
        let row = json!({
            "request_id": "r1", "agent_id": "fixer", "reason": "Fix the login page,\nthen the logout page",
            "scopes": ["read:files", "delete:files"], "new_scopes": ["delete:files"], "roots": ["/p", "/q"],
            "new_roots": ["/p"], "ttl_seconds": 900, "created_at": "1970-01-01T00:00:00Z",
            "asker": {"client": "cursor 2.1"},
        });
        let row = serde_json::from_value(row).unwrap();
        assert_eq!(
            drawn(&in_full(&row, 120_000)),
            [
                "fixer asks for access, 2 min ago  r1",
                "  from    cursor 2.1",
                "  why     Fix the login page,",
                "          then the logout page",
                "  folders /p  new",
                "          /q",
                "  scopes  read:files          read files",
                "          delete:files        delete files; each time you are asked  new",
                "  for     15 min",
            ]
        );
    }
}
