//! `prism call`: calls one tool of one server, once. What the arguments mean is in `call/arguments.rs`, how a result is
//! shown in `call/output.rs`, and what a person is asked on the way in `call/person.rs`.

pub(super) mod arguments;
mod output;
mod person;

use std::{io::Read, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use prism_config::{Env, HttpConfig, duration};
use prism_mcp::client::{
    ClientError, Foreign, ListedTool, McpClient, ReceivedMessage, RpcResult, SeenMessage, ToolResult, TrafficObserver,
};
use serde_json::Value;

use super::{
    reach::{self, ConnectArgs, Interrupts, is_url},
    say,
};

/// Call a tool of a server
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism call files read_text_file path=README.md
  prism call files write_file path=a.txt content=@draft.txt
  prism call search find words=red,blue limit:=10 --json
  echo '{\"path\": \"README.md\"}' | prism call files read_text_file -")]
pub struct CallArgs {
    /// Name of a server, or a URL
    dest: String,
    /// Name of the tool
    tool: String,
    /// Arguments: key=value, typed as the tool wants them (lists as a,b); key=@FILE; key:=JSON; - reads a JSON object
    /// from stdin
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// Print the whole result as JSON, as it came
    #[arg(long)]
    json: bool,
    /// Save images, sounds and other files of the result into this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// How long the server may say nothing
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    toward: ConnectArgs,
}

/// Shows on stderr what a call says while it works.
struct ProgressPrinter;

impl CallArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(self.call(env))
    }

    async fn call(self, env: &Env) -> anyhow::Result<ExitCode> {
        // Before anything is asked of anybody, and before Ctrl-C has another meaning than it always has.
        let stdin = match self.arguments.iter().any(|word| word == "-") {
            true => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
                Some(text)
            }
            false => None,
        };
        let mut stop = Interrupts::new()?;
        if is_url(&self.dest) {
            let http = self.toward.http(&self.dest, env)?;
            return self.call_at(http, stdin, None, &mut stop).await;
        }
        let reach = self.toward.reach(Some(&self.dest), env).await?;
        let advice = reach.advice(&self.dest);
        let outcome = self.call_at(reach.http(&self.dest), stdin, advice.as_deref(), &mut stop).await;
        reach.close(&mut stop).await;
        outcome
    }

    async fn call_at(
        &self,
        http: HttpConfig,
        stdin: Option<String>,
        advice: Option<&str>,
        stop: &mut Interrupts,
    ) -> anyhow::Result<ExitCode> {
        let wanted = self.toward.wanted()?;
        let url = http.shown_url().to_owned();
        let manners = person::manners();
        let explained = |fault: ClientError| fault.explained(&url, advice);
        let client = tokio::select! {
            client = reach::open(http, wanted, self.timeout, manners, Arc::new(ProgressPrinter)) => client.map_err(explained)?,
            code = stop.next() => return Ok(code),
        };
        let outcome = self.call_with(&client, &url, stdin, stop).await;
        client.close().await;
        say::status(None);
        outcome
    }

    async fn call_with(
        &self,
        client: &Arc<McpClient>,
        url: &str,
        stdin: Option<String>,
        stop: &mut Interrupts,
    ) -> anyhow::Result<ExitCode> {
        let tools = tokio::select! {
            tools = client.tools() => tools.map_err(|fault| fault.explained(url, None))?,
            code = stop.next() => return Ok(code),
        };
        let tools: Vec<ListedTool> = tools.iter().map(ListedTool::of).collect();
        let Some(tool) = tools.iter().find(|tool| tool.name == self.tool) else {
            let names = tools.iter().map(|tool| &*tool.name).filter(|name| !name.is_empty());
            bail!("{}", reach::unknown("tool", &self.tool, names));
        };
        let usage = || arguments::usage(&self.dest, tool);
        let arguments = arguments::read(&tool.input_schema, &self.arguments, stdin.as_deref())
            .map_err(|wrong| anyhow::anyhow!("{wrong}\n{}", usage()))?;
        client.keep_listening();
        let id = client.next_id();
        let called = tokio::select! {
            called = client.call(id, &self.tool, &arguments) => called,
            code = stop.next() => {
                reach::say_interrupted();
                client.cancel(id, "interrupted by the user").await;
                return Ok(code);
            }
        };
        say::status(None);
        match called {
            Ok(outcome) => self.show(&outcome),
            Err(fault @ ClientError::Timeout { .. }) => {
                client.cancel(id, "the client waits no longer").await;
                Err(fault.explained(url, None))
            }
            Err(ClientError::Rpc { code, message, data }) => {
                let data = if data.is_null() { String::new() } else { format!("\n  data: {data}") };
                bail!("{message} (error {code}){data}")
            }
            Err(fault) => Err(fault.explained(url, None)),
        }
    }

    fn show(&self, outcome: &RpcResult) -> anyhow::Result<ExitCode> {
        let result = ToolResult::of(&outcome.result);
        let failed = result.is_error;
        let code = if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        if self.json {
            say::text(outcome.raw.get());
            return Ok(code);
        }
        let texts = output::texts(&result, self.save.as_deref())?;
        if failed {
            bail!(
                "{}",
                if texts.is_empty() { "the tool failed, and gives no reason".to_owned() } else { texts.join("\n") }
            );
        }
        for text in texts {
            say::text(&text);
        }
        Ok(code)
    }
}

impl TrafficObserver for ProgressPrinter {
    fn message(&self, arrival: &ReceivedMessage) {
        let SeenMessage { method, params, .. } = SeenMessage::of(&arrival.message);
        match method.as_deref() {
            Some("notifications/progress") => say::status(Some(&output::bar(&params))),
            Some("notifications/message") => {
                say::status(None);
                let level = params.level.as_ref().and_then(Value::as_str).unwrap_or("info");
                let logger = params.logger.map(|logger| format!(" {logger}")).unwrap_or_default();
                let data = match params.data {
                    Value::String(text) => text,
                    data => data.to_string(),
                };
                say::note(&format!("[{level}{logger}] {data}"));
            }
            _ => {}
        }
    }
}
