//! `prism tools`: what the tools of one server, or of every configured one, are called and want.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use prism_config::{Env, HttpConfig, duration};
use prism_mcp::client::{
    ClientError, Foreign, ListedTool, QuestionHandler, ReceivedMessage, RevisionChoice, SchemaPart, ServerDescription,
    TrafficObserver,
};
use serde_json::{Value, json};
use tokio::time::{sleep_until, timeout};

use super::{
    reach::{self, ConnectArgs, Interrupts, ServerReach, is_url},
    say,
};

/// List the tools of a server, or of all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism tools
  prism tools files
  prism tools https://example.com/mcp --token env:EXAMPLE_TOKEN

Exit codes: 0 every server answered, 1 one did not.")]
pub struct ToolsArgs {
    /// Name of a server, or a URL; all servers if left out
    dest: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// How long each server may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    toward: ConnectArgs,
}

/// What came of one server.
struct ToolListing {
    name: String,
    outcome: Result<(ServerDescription, Vec<Value>), (&'static str, String)>,
}

/// Letters of a description that fit beside the name.
const SHOWN: usize = 100;
/// Whoever is still waited for after this is named.
const PATIENCE: Duration = Duration::from_secs(3);
/// The widest that the column of names gets for the sake of one of them.
const WIDEST: usize = 44;

/// Nobody looks at what arrives.
pub(super) struct NullObserver;

impl TrafficObserver for NullObserver {
    fn message(&self, _: &ReceivedMessage) {}
}

impl ToolsArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(self.list(env))
    }

    async fn list(self, env: &Env) -> anyhow::Result<ExitCode> {
        let wanted = self.toward.wanted()?;
        let mut stop = Interrupts::new()?;
        if let Some(url) = self.dest.as_deref().filter(|dest| is_url(dest)) {
            let http = self.toward.http(url, env)?;
            let shown = http.shown_url().to_owned();
            let listed = tokio::select! {
                listed = listed(shown, http, wanted, self.timeout, None) => listed,
                code = stop.next() => return Ok(code),
            };
            return Ok(self.show(vec![listed]));
        }
        let reach = self.toward.reach(self.dest.as_deref(), env).await?;
        let names: Vec<String> = match &self.dest {
            Some(name) => vec![name.clone()],
            None => reach.config.destinations.keys().cloned().collect(),
        };
        let code = tokio::select! {
            listed = self.gather(&reach, names, wanted) => self.end(listed),
            code = stop.next() => code,
        };
        say::status(None);
        reach.close(&mut stop).await;
        Ok(code)
    }

    /// Asks all of them side by side. Each is shown as it comes, but for programs; who takes long is named with the reason.
    async fn gather(&self, reach: &ServerReach, names: Vec<String>, wanted: RevisionChoice) -> Vec<ToolListing> {
        let mut asking: FuturesUnordered<_> = names
            .iter()
            .map(|name| listed(name.clone(), reach.http(name), wanted, self.timeout, reach.advice(name)))
            .collect();
        let (begun, mut came, mut named) = (Instant::now(), Vec::new(), false);
        loop {
            tokio::select! {
                one = asking.next() => match one {
                    Some(one) => {
                        say::status(None);
                        self.show_one(&one, came.iter().any(|one: &ToolListing| one.outcome.is_ok()));
                        came.push(one);
                    }
                    None => break,
                },
                () = sleep_until((begun + PATIENCE).into()), if !named => {
                    named = true;
                    if !self.json {
                        for name in names.iter().filter(|name| came.iter().all(|one| one.name != **name)) {
                            say::note(&reach.delay(name, begun).await);
                        }
                    }
                }
            }
        }
        // As the config has them, whoever was the fastest.
        came.sort_by_key(|one| names.iter().position(|name| *name == one.name));
        came
    }

    fn show_one(&self, one: &ToolListing, after_another: bool) {
        if self.json {
            return;
        }
        if after_another && one.outcome.is_ok() {
            say::line("");
        }
        one.say();
    }

    fn show(&self, listed: Vec<ToolListing>) -> ExitCode {
        listed.iter().for_each(|one| self.show_one(one, false));
        self.end(listed)
    }

    /// One document for programs, of all of them; and whether they all answered.
    fn end(&self, listed: Vec<ToolListing>) -> ExitCode {
        if self.json {
            let all: Vec<Value> = listed.iter().map(ToolListing::json).collect();
            say::text(&json!({"destinations": all}).to_string());
        }
        let all = listed.iter().all(|one| one.outcome.is_ok());
        if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

async fn listed(
    name: String,
    http: HttpConfig,
    wanted: RevisionChoice,
    patience: Duration,
    advice: Option<String>,
) -> ToolListing {
    let url = http.shown_url().to_owned();
    let asking = async {
        let client = reach::open(http, wanted, patience, QuestionHandler::Decline, Arc::new(NullObserver)).await?;
        let tools = if client.has("tools") { client.tools().await } else { Ok(Vec::new()) };
        client.close().await;
        Ok((client.greeting.clone(), tools?))
    };
    let late = |_| Err(ClientError::Timeout { what: "answer".to_owned(), after: patience });
    let outcome = timeout(patience, asking).await.unwrap_or_else(late);
    ToolListing {
        name,
        outcome: outcome.map_err(|fault| (fault.name(), fault.explained(&url, advice.as_deref()).to_string())),
    }
}

// === impl ToolListing ===

impl ToolListing {
    fn json(&self) -> Value {
        match &self.outcome {
            Ok((greeting, tools)) => json!({
                "name": self.name,
                "server": {"name": greeting.name, "version": greeting.version},
                "revision": greeting.revision,
                "tools": tools,
            }),
            Err((kind, why)) => json!({"name": self.name, "error": {"kind": kind, "message": why}}),
        }
    }

    fn say(&self) {
        match &self.outcome {
            Ok((greeting, tools)) => {
                let count = if tools.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", tools.len()) };
                let server = format!("{} {}", greeting.name, greeting.version);
                let server = format!("{}, {}", server.trim(), greeting.revision);
                say::line(&format!("{}  ({server})  {count}", self.name));
                for line in table(tools) {
                    say::line(&line);
                }
            }
            // Beside the others that answered: the list goes to stdout, what is wrong does not.
            Err((_, why)) => say::warning(&format!("{}: {why}", self.name)),
        }
    }
}

/// One line for each tool: its name and arguments, and what it is for.
fn table(tools: &[Value]) -> Vec<String> {
    let row = |tool: &Value| {
        let tool = ListedTool::of(tool);
        (signature(&tool), about(&tool))
    };
    let rows: Vec<(String, String)> = tools.iter().map(row).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).filter(|width| *width <= WIDEST).max().unwrap_or(0);
    rows.iter().map(|(name, about)| format!("  {name:width$}  {about}").trim_end().to_owned()).collect()
}

/// A tool as it is called: `read(path*, head)`.
pub(super) fn signature(tool: &ListedTool) -> String {
    let schema = SchemaPart::of(&tool.input_schema);
    let required: Vec<&str> = schema.required().collect();
    let mut names: Vec<&String> = schema.properties.iter().flatten().map(|(name, _)| name).collect();
    // What must be there comes first, in the order in which the server names it.
    names.sort_by_key(|name| required.iter().position(|one| one == name).unwrap_or(usize::MAX));
    let arguments: Vec<String> = names
        .iter()
        .map(|name| format!("{name}{}", if required.contains(&name.as_str()) { "*" } else { "" }))
        .collect();
    format!("{}({})", tool.name, arguments.join(", "))
}

/// The first line of a tool's description, cut where it gets long.
fn about(tool: &ListedTool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_one_line_with_stars_at_what_must_be_there() {
        let schema = json!({"properties": {"head": {}, "path": {}, "all": {}}, "required": ["path"]});
        let tools = [
            json!({"name": "read", "description": "\n  Reads a file.\n\nAnd more.", "inputSchema": schema}),
            json!({"name": "now", "inputSchema": {"type": "object"}}),
            json!({"name": "x".repeat(60), "description": "y".repeat(200), "inputSchema": {}}),
        ];
        let lines = table(&tools);
        assert_eq!(lines[0], "  read(path*, all, head)  Reads a file.");
        assert_eq!(lines[1], "  now()");
        assert!(lines[2].ends_with("yyy…") && lines[2].chars().count() == 2 + 62 + 2 + SHOWN + 1, "{}", lines[2]);
    }
}
