//! `prism demo-server`: a small, real MCP server, to try things out with and to stand behind the bridge in our tests.
//! This file is its options. What it has on offer is in `tools.rs`, `talk.rs` and `shelf.rs`, how it misbehaves on request
//! in `faults.rs`; the protocol is the kit's.

mod faults;
mod shelf;
mod talk;
#[cfg(test)]
mod tests;
mod tools;

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use crate::words::one_of;
use faults::FaultInterceptor;
use prism_mcp::kit::{self, BuiltinServer, ChangeNotifier, Eras};

// The doc comment is what `--help` prints.
/// A small MCP server, to try things out with
///
/// It speaks MCP on stdin and stdout, as servers do that a client starts. With --http it listens on an address instead,
/// behind a bridge of its own, and prints the URL to give to a client.
///
/// Its tools do one thing each, so that you can see what becomes of it: `echo` says it back, `slow` waits, `progress`
/// reports, `log` logs, `ask` and `sample` ask the client, `stream` answers much, `fail` and `trouble` fail, `change` and
/// `touch` tell of changes. It has resources (demo://hello, demo://counter, demo://item/1), a prompt with completions,
/// and it speaks every revision of the protocol.
#[derive(clap::Args, Debug, Default)]
#[command(after_help = "Examples:\n  \
    prism demo-server --http                 listen on a free port, for curl, an inspector or an agent\n  \
    prism run -- prism demo-server           the same behind a bridge that asks for a token\n  \
    prism add demo -- prism demo-server      add it to prism.toml\n  \
    claude mcp add demo -- prism demo-server use it over stdio")]
pub(crate) struct DemoOptions {
    /// Listen for HTTP on ADDR instead of stdin, and print the URL. Everybody on this machine can use it
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    pub http: Option<std::net::SocketAddr>,
    /// Answer POSTs with an event stream where there is something to tell on the way. false: always with plain JSON, and
    /// log notes go down the GET stream. Only with --http
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, requires = "http")]
    #[arg(default_missing_value = "true")]
    pub enable_post_sse: Option<bool>,
    /// Speak the eras of the protocol that are named; both: whichever the client speaks
    #[arg(long, value_name = "ERA", value_parser = one_of(&Eras::ALL, Eras::name), default_value = Eras::default().name())]
    pub era: Eras,
    /// Misbehave in one way
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub fault: DemoFault,
    /// Append the process id to FILE at each start, so that starts can be counted
    #[arg(long, value_name = "FILE", hide = true)]
    pub starts: Option<PathBuf>,
    /// Append every line read from stdin to FILE, before acting on it
    #[arg(long, value_name = "FILE", hide = true)]
    pub record: Option<PathBuf>,
}

/// One way in which a child can be bad. The bridge has to outlive every one.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DemoFault {
    #[default]
    None,
    /// Writes what is no message before each message.
    Garbage,
    /// Breaks off in the middle of its first tool answer, and writes nothing after that.
    HalfLine,
    /// Answers `initialize`, then reads no more: not even the end of stdin.
    Deaf,
    /// Exits with status 1 before it reads anything.
    DieAtStart,
    /// Answers everything except tool calls.
    Mute,
    /// Answers the call of `ask` first, and asks afterwards: a question that belongs to no call.
    LateAsk,
}

/// What the tools share.
struct DemoState {
    fault: DemoFault,
    notifier: ChangeNotifier,
    /// How often `demo://counter` was touched.
    counter: AtomicU64,
    /// Pages that a client was told to open.
    opened: Mutex<BTreeSet<String>>,
}

const INSTRUCTIONS: &str = "A server to try things out with. Call `echo` to hear yourself, `slow` and \
    `progress` to wait, `ask` and `sample` to be asked, `change` and `touch` to be notified.";

/// Serves on stdin and stdout until stdin ends. Calls still in flight are abandoned then.
pub(crate) fn run(options: DemoOptions) -> io::Result<()> {
    if let Some(path) = &options.starts {
        // One write, so that lines of servers that start together do not mix.
        append(path)?.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    }
    if options.fault == DemoFault::DieAtStart {
        std::process::exit(1);
    }
    let record = options.record.as_deref().map(append).transpose()?;
    let gate = FaultInterceptor::new(options.fault, record);
    // One thread does: what waits, waits for a clock or for the client.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let outcome = runtime.block_on(kit::serve(server(options.fault), options.era, stdin, stdout, &gate));
    // A read of stdin may still be under way when stdout is gone. Nobody waits for it.
    runtime.shutdown_background();
    outcome
}

/// The demo server, with what it offers.
fn server(fault: DemoFault) -> Arc<BuiltinServer> {
    let notifier = ChangeNotifier::default();
    let state =
        Arc::new(DemoState { fault, notifier: notifier.clone(), counter: AtomicU64::new(0), opened: Mutex::default() });
    let server =
        BuiltinServer::new("prism-demo", "Prism's demo server", INSTRUCTIONS).with_notifier(notifier).tools_change();
    let server = talk::add(tools::add(server, &state), &state);
    Arc::new(
        server.resources(shelf::DemoResources(state)).prompts(shelf::DemoPrompts).completions(shelf::DemoCompletions),
    )
}

fn append(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
