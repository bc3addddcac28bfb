//! What `prism wait` is as a hook, in the words of each program. Whatever goes wrong, a hook is silent and ends well: it
//! must never break an agent's turn.
//!
//! | hook | the program's event | says |
//! |---|---|---|
//! | claude-start, codex-start | SessionStart | `hookSpecificOutput.additionalContext` |
//! | claude-rewake | SessionStart and Stop, `asyncRewake` | exit code 2, and the bell on stderr |
//! | claude-stop, codex-stop | Stop | `{"decision": "block", "reason": BELL}` |
//! | cursor-stop | stop | `{"followup_message": BELL}` |

use std::{
    io::{self, BufRead, IsTerminal},
    os::unix::process::parent_id,
    process::ExitCode,
    time::Duration,
};

use prism_api::mesh::{MeshVerb, NoBell, WaitArguments, WaitEnded};
use prism_config::Env;
use prism_mcp::client::lenient;
use prism_os::{process, reader::StdoutReader};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{interval, sleep};

use super::{LOOK, MAX_POLL, poll};
use crate::cli::{
    reach, say,
    verbs::{DaemonCallError, MeshClient, acting},
};

/// What wakes Claude Code.
const REWAKE: u8 = 2;
/// How often Cursor's agent is sent on in a row without a person's word: Cursor's own default for `loop_limit`.
pub(crate) const CURSOR_LOOP_LIMIT: u64 = 5;
/// How long a hook may ask that the end of a turn waits for.
const ASK_WITHIN: Duration = Duration::from_secs(3);
/// How often it is looked whether the program is still there.
const PARENT: Duration = Duration::from_secs(1);
/// How long a waiter looks for a daemon that went. A restart takes seconds; the next turn arms another waiter.
const MAX_AWAY: Duration = Duration::from_secs(600);

/// What it is a hook of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HookKind {
    ClaudeStart,
    ClaudeRewake,
    ClaudeStop,
    CodexStart,
    CodexStop,
    CursorStop,
}

/// What of a hook's input counts. It is the program's own: other members, and others' values, are its affair.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct HookInput {
    #[serde(deserialize_with = "lenient")]
    hook_event_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<String>,
    /// Claude's and Codex's: whether the turn was sent on already.
    #[serde(deserialize_with = "lenient")]
    stop_hook_active: Option<bool>,
    // Cursor's.
    cursor_version: Option<IgnoredAny>,
    #[serde(deserialize_with = "lenient")]
    conversation_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    workspace_roots: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    loop_count: Option<u64>,
}

/// Why a hook has nothing to say.
struct HookSilence(String);

/// What a hook says: how it ends, and the words.
#[derive(Debug, PartialEq, Eq)]
enum HookOutput {
    /// On stdout, as JSON.
    Json(Value),
    /// On stderr, with the code that wakes.
    Rewake(String),
}

/// Runs a hook. Nothing that goes wrong is an error.
pub(super) fn run(hook: HookKind, agent: Option<&str>, verbose: bool, env: &Env) -> ExitCode {
    let mut said = None;
    let ended = reach::run(async {
        said = Some(say_it(hook, agent, env).await);
        Ok(ExitCode::SUCCESS)
    });
    let why = match (said, ended) {
        (Some(Ok(HookOutput::Json(words))), _) => {
            say::line(&words.to_string());
            return ExitCode::SUCCESS;
        }
        (Some(Ok(HookOutput::Rewake(words))), _) => {
            say::note(&words);
            return ExitCode::from(REWAKE);
        }
        (Some(Err(HookSilence(why))), _) => why,
        (None, Err(error)) => format!("{error:#}"),
        (None, Ok(_)) => return ExitCode::SUCCESS,
    };
    if verbose {
        say::note(&format!("prism wait --hook {}: {why}", hook.name()));
    }
    ExitCode::SUCCESS
}

async fn say_it(hook: HookKind, agent: Option<&str>, env: &Env) -> Result<HookOutput, HookSilence> {
    let input = read(io::stdin())?;
    hook.fits(&input, env)?;
    let mesh = match MeshClient::running(env) {
        Ok(Some(mesh)) => mesh,
        Ok(None) => return silence("there is no daemon"),
        Err(error) => return Err(HookSilence(format!("{error:#}"))),
    };
    let agent = acting(agent, env);
    let mut arguments = match &agent {
        Some(agent) => WaitArguments { agent: Some(agent.clone()), ..WaitArguments::default() },
        None => hook.whose(&input, env)?,
    };
    match hook {
        HookKind::ClaudeStart | HookKind::CodexStart => {
            Ok(HookOutput::Json(context(&arguments, &hook.whose(&input, env)?)))
        }
        HookKind::ClaudeRewake => rewake(mesh, arguments, env).await,
        HookKind::ClaudeStop | HookKind::CodexStop => {
            let bell = bell_now(hook, &mesh, &mut arguments).await?;
            Ok(HookOutput::Json(json!({ "decision": "block", "reason": bell })))
        }
        HookKind::CursorStop => {
            let bell = bell_now(hook, &mesh, &mut arguments).await?;
            Ok(HookOutput::Json(json!({ "followup_message": bell })))
        }
    }
}

/// Reads one object, as the program wrote it. Some put a mark in front, some leave the pipe open behind it.
fn read(stdin: io::Stdin) -> Result<HookInput, HookSilence> {
    if stdin.is_terminal() {
        return Err(HookSilence("stdin is a terminal, and a hook's input is expected there".to_owned()));
    }
    parse(stdin.lock())
}

fn parse(mut input: impl BufRead) -> Result<HookInput, HookSilence> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if input.fill_buf().is_ok_and(|start| start.starts_with(MARK)) {
        input.consume(MARK.len());
    }
    match serde_json::Deserializer::from_reader(input).into_iter::<Value>().next() {
        Some(Ok(value @ Value::Object(_))) => {
            HookInput::deserialize(value).map_err(|error| HookSilence(format!("the input is not a hook's: {error}")))
        }
        Some(Err(error)) => Err(HookSilence(format!("the input is no JSON: {error}"))),
        _ => silence("the input is no object"),
    }
}

fn silence<T>(why: &str) -> Result<T, HookSilence> {
    Err(HookSilence(why.to_owned()))
}

// === impl HookKind ===

impl HookKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeStart => "claude-start",
            Self::ClaudeRewake => "claude-rewake",
            Self::ClaudeStop => "claude-stop",
            Self::CodexStart => "codex-start",
            Self::CodexStop => "codex-stop",
            Self::CursorStop => "cursor-stop",
        }
    }

    fn surface(self) -> &'static str {
        match self {
            Self::ClaudeStart | Self::ClaudeRewake | Self::ClaudeStop => "claude_code",
            Self::CodexStart | Self::CodexStop => "codex",
            Self::CursorStop => "cursor",
        }
    }

    /// Whether this is a moment to say something.
    fn fits(self, input: &HookInput, env: &Env) -> Result<(), HookSilence> {
        // Cursor runs Claude's hooks, too, and waits for those that Claude would not wait for.
        if self != Self::CursorStop && input.cursor_version.is_some() {
            return silence("this is Cursor, which has a hook of its own");
        }
        // What a turn was sent on for once is not said again at its end: the agent has heard it and wants to stop.
        if input.stop_hook_active == Some(true) && matches!(self, Self::ClaudeStop | Self::CodexStop) {
            return silence("the turn was sent on already");
        }
        let entry = env.var("CLAUDE_CODE_ENTRYPOINT").and_then(|entry| entry.to_str()).unwrap_or_default();
        let headless = self.surface() == "claude_code" && entry.starts_with("sdk");
        // Without a terminal Claude Code waits for every SessionStart hook, also for one that runs in the background.
        if self == Self::ClaudeRewake && headless && input.hook_event_name.as_deref() == Some("SessionStart") {
            return silence("a session without a terminal would wait for this hook");
        }
        // A script that runs claude -p has not asked for an agent in the mesh, unless it names one.
        if self == Self::ClaudeStart && headless && acting(None, env).is_none() {
            return silence("a session without a terminal is no agent unless PRISM_AGENT names it");
        }
        if self == Self::CursorStop {
            if input.status.as_ref().is_some_and(|status| status != "completed") {
                return silence("the turn was stopped");
            }
            if input.loop_count.is_some_and(|count| count >= CURSOR_LOOP_LIMIT) {
                return silence("it was sent on too often in a row");
            }
        }
        Ok(())
    }

    /// How the daemon knows the agent: by the program's own session, or by where it works.
    fn whose(self, input: &HookInput, env: &Env) -> Result<WaitArguments, HookSilence> {
        let said = |word: &Option<String>| word.clone().filter(|word| !word.is_empty());
        let (surface_session, workspace) = match self {
            Self::CursorStop => (said(&input.conversation_id), input.workspace_roots.first().cloned()),
            // The folder that Claude was started in; `cwd` goes where its commands go.
            _ if self.surface() == "claude_code" => {
                let project = env.var("CLAUDE_PROJECT_DIR").and_then(|folder| folder.to_str()).map(str::to_owned);
                (said(&input.session_id), project.or_else(|| said(&input.cwd)))
            }
            _ => (said(&input.session_id), said(&input.cwd)),
        };
        if surface_session.is_none() && workspace.is_none() {
            return silence("the input names neither a session nor a folder");
        }
        let surface = Some(self.surface().to_owned());
        Ok(WaitArguments { surface, surface_session, workspace, ..WaitArguments::default() })
    }
}

/// Returns the bell's text, if something waits right now.
async fn bell_now(hook: HookKind, mesh: &MeshClient, arguments: &mut WaitArguments) -> Result<String, HookSilence> {
    (arguments.hook, arguments.timeout_s) = (Some(hook.name().to_owned()), Some(0));
    let asking = mesh.call(MeshVerb::Wait, arguments, ASK_WITHIN).await;
    let answer: WaitEnded = asking.map_err(|trouble| HookSilence(trouble.to_string()))?;
    rung(&answer).ok_or_else(|| HookSilence("nothing waits".to_owned()))
}

fn rung(answer: &WaitEnded) -> Option<String> {
    let text = || "A signal waits. Use prism_signals_pending to read.".to_owned();
    answer.bell.then(|| answer.text.clone().unwrap_or_else(text))
}

/// Waits without end, for as long as somebody wants to be woken.
async fn rewake(mesh: MeshClient, mut arguments: WaitArguments, env: &Env) -> Result<HookOutput, HookSilence> {
    arguments.hook = Some(HookKind::ClaudeRewake.name().to_owned());
    let reader = StdoutReader::of_stdout().ok();
    let unread = async {
        match &reader {
            Some(reader) => reader.gone().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        rung = ring(mesh, &mut arguments, env) => rung.map(HookOutput::Rewake),
        () = unread => silence("nobody is left to hear it"),
        () = orphaned() => silence("the program that started it is gone"),
    }
}

async fn ring(mut mesh: MeshClient, arguments: &mut WaitArguments, env: &Env) -> Result<String, HookSilence> {
    let mut away = Duration::ZERO;
    loop {
        match poll(&mesh, arguments, MAX_POLL).await {
            Ok(answer) => {
                away = Duration::ZERO;
                if let Some(bell) = rung(&answer) {
                    return Ok(bell);
                }
                match answer.why {
                    Some(NoBell::Superseded) => return silence("a newer hook waits"),
                    Some(NoBell::Wrapped) => return silence("the agent has ended its session"),
                    _ => {}
                }
            }
            Err(DaemonCallError::Away(_) | DaemonCallError::Late(_)) if away < MAX_AWAY => {
                sleep(LOOK).await;
                away += LOOK;
                if let Ok(Some(again)) = MeshClient::running(env) {
                    mesh = again;
                }
            }
            Err(trouble) => return Err(HookSilence(trouble.to_string())),
        }
    }
}

/// Returns when whoever started us has ended.
async fn orphaned() {
    let (parent, starter) = (parent_id(), process::starter());
    let mut look = interval(PARENT);
    while parent_id() == parent && starter.is_none_or(process::ProcessIdentity::is_alive) {
        look.tick().await;
    }
}

/// What the model is told at the start: two sentences.
fn context(named: &WaitArguments, whose: &WaitArguments) -> Value {
    let agent = match &named.agent {
        Some(agent) => format!("{agent:?}"),
        None => "a short name for yourself".to_owned(),
    };
    let mut arguments = format!("agent {agent}");
    let known =
        [("surface", &whose.surface), ("surface_session", &whose.surface_session), ("workspace", &whose.workspace)];
    for (name, value) in known {
        if let Some(value) = value {
            arguments.push_str(&format!(", {name} {value:?}"));
        }
    }
    let text = format!(
        "Prism's signal mesh connects you with the other agents on this machine: call prism_start with {arguments} to be \
         reachable. When a line begins with \"Signal from\", call prism_signals_pending to read it, and \
         prism_signal_reply where an answer is wanted."
    );
    json!({ "hookSpecificOutput": { "hookEventName": "SessionStart", "additionalContext": text } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(hook: HookKind, input: Value, env: &Env) -> bool {
        hook.fits(&HookInput::deserialize(input).unwrap(), env).is_ok()
    }

    #[test]
    fn input_with_a_mark_or_with_an_open_pipe_is_read_and_other_input_is_silence() {
        for good in ["{\"a\": 1}", "\u{feff}{\"a\": 1}", "{\"a\": 1}\n{\"more"] {
            assert_eq!(parse(good.as_bytes()).ok(), Some(HookInput::default()), "{good:?}");
        }
        for bad in ["", "[]", "{\"a\":", "no", "\u{feff}"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_turn_is_sent_on_once() {
        let none = Env::default();
        for hook in [HookKind::ClaudeStop, HookKind::CodexStop] {
            assert!(fits(hook, json!({"stop_hook_active": false}), &none));
            assert!(!fits(hook, json!({"stop_hook_active": true}), &none));
        }
        for (loops, expected) in [(0, true), (CURSOR_LOOP_LIMIT - 1, true), (CURSOR_LOOP_LIMIT, false)] {
            let input = json!({"status": "completed", "loop_count": loops, "cursor_version": "3"});
            assert_eq!(fits(HookKind::CursorStop, input, &none), expected, "{loops}");
        }
        assert!(!fits(HookKind::CursorStop, json!({"status": "aborted", "loop_count": 0}), &none));
    }

    #[test]
    fn nobody_waits_for_a_hook_that_is_meant_for_the_background() {
        let (none, script) = (Env::default(), Env::from([("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")]));
        let start = json!({"hook_event_name": "SessionStart"});
        assert!(fits(HookKind::ClaudeRewake, start.clone(), &none));
        assert!(!fits(HookKind::ClaudeRewake, start.clone(), &script));
        assert!(fits(HookKind::ClaudeRewake, json!({"hook_event_name": "Stop"}), &script));
        assert!(!fits(HookKind::ClaudeRewake, json!({"hook_event_name": "Stop", "cursor_version": "3.7"}), &none));
        assert!(!fits(HookKind::ClaudeStart, start.clone(), &script));
        let named = Env::from([("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("PRISM_AGENT", "nightly")]);
        assert!(fits(HookKind::ClaudeStart, start, &named));
    }

    #[test]
    fn an_agent_is_known_by_its_programs_session_and_folder() {
        let none = Env::default();
        let whose = |hook: HookKind, input: &Value, env: &Env| {
            let whose = hook.whose(&HookInput::deserialize(input).unwrap(), env);
            whose.ok().map(|whose| json!(whose))
        };
        let claude = json!({"session_id": "s1", "cwd": "/srv/sites/src"});
        let project = Env::from([("CLAUDE_PROJECT_DIR", "/srv/sites")]);
        assert_eq!(
            whose(HookKind::ClaudeStop, &claude, &project),
            Some(json!({"surface": "claude_code", "surface_session": "s1", "workspace": "/srv/sites"}))
        );
        assert_eq!(
            whose(HookKind::CodexStop, &claude, &none),
            Some(json!({"surface": "codex", "surface_session": "s1", "workspace": "/srv/sites/src"}))
        );
        let cursor = json!({"conversation_id": "c1", "workspace_roots": ["/srv/sites"]});
        assert_eq!(
            whose(HookKind::CursorStop, &cursor, &none),
            Some(json!({"surface": "cursor", "surface_session": "c1", "workspace": "/srv/sites"}))
        );
        assert_eq!(whose(HookKind::CodexStop, &json!({}), &none), None);
    }
}
