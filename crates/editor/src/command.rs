//! Commands: in a folder that is held open, in a process group of their own, with what they print kept within bounds.
//!
//! A command runs as the user and can do what the user can: the granted folder is where it starts, no fence. That is why a
//! person confirms each.

mod output;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::process::ExitStatusExt,
    time::{Duration, Instant},
};

use prism_core::policy::{Code, Refusal};
use prism_os::{
    child::{Child, SpawnError, Spec},
    root::{Root, WorkDir},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    Shown, Words,
    args::{Args, kind_of, wrong},
    ground::{Ground, Way, place},
    prepared::Work,
    runtime::{Desk, failed},
};
use output::Output;

/// A command that only needs to be started.
pub(crate) struct Ready {
    words: Vec<String>,
    env: BTreeMap<String, String>,
    way: Way,
    folder: Root,
    work_dir: WorkDir,
    cwd: String,
    patience: Duration,
}

/// How long a command may run, if nothing else is said, and at most.
const USUAL_TIME: Duration = Duration::from_secs(60);
const LONGEST_TIME: Duration = Duration::from_secs(600);

/// How long is read on after a command has ended: what it has left in the pipe is there at once, and somebody that has
/// run away with the other end must not keep us.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long is waited for a child that was killed: one that hangs in a device dies when it can.
const DEATH: Duration = Duration::from_secs(2);

/// Bytes of words and additions together; Linux takes 2 MiB, and a person has to read it.
const MAX_WORDS: usize = 128 << 10;

pub(crate) fn prepare(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let words = words(args.take("command"))?;
    let cwd = args.maybe_text("cwd")?;
    let env = additions(args.take("env"))?;
    let most = LONGEST_TIME.as_millis() as u64;
    let timeout_ms = args.number("timeout_ms", 1, most)?.unwrap_or(USUAL_TIME.as_millis() as u64);
    args.done()?;
    let command = match &words {
        Words::Shell(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
        Words::List(list) => list.clone(),
    };
    let additions = env.iter().map(|(name, value)| name.len() + value.len() + 2);
    let bytes: usize = command.iter().map(|word| word.len() + 1).chain(additions).sum();
    if bytes > MAX_WORDS {
        return Err(Refusal::new(
            Code::TooLarge,
            format!("a command of {bytes} bytes; at most {MAX_WORDS} are allowed"),
        ));
    }

    let way = cwd.as_deref().map_or_else(|| ground.first(), |cwd| ground.way(cwd))?;
    let folder = way.folder()?;
    let work_dir = folder.dir_for_command().map_err(|error| way.refusal(error))?;
    let cwd = place(&folder, cwd.as_deref().unwrap_or(".")).display().to_string();
    let shown = Shown::Command { command: words, cwd: cwd.clone(), env: env.clone(), timeout_ms };
    let patience = Duration::from_millis(timeout_ms);
    Ok((shown, Work::Command(Box::new(Ready { words: command, env, way, folder, work_dir, cwd, patience }))))
}

fn words(given: Option<Value>) -> Result<Words, Refusal> {
    let words = match given {
        Some(Value::String(line)) => Words::Shell(line),
        Some(Value::Array(list)) => {
            let word = |word| match word {
                Value::String(word) => Ok(word),
                other => Err(wrong(format!("`command` must hold strings, not {}", kind_of(&other)))),
            };
            Words::List(list.into_iter().map(word).collect::<Result<_, _>>()?)
        }
        Some(other) => return Err(wrong(format!("`command` must be a string or an array, not {}", kind_of(&other)))),
        None => return Err(wrong("`command` is missing: a line for the shell, or a program and its arguments")),
    };
    let (is_empty, has_nul) = match &words {
        Words::Shell(line) => (line.trim().is_empty(), line.contains('\0')),
        Words::List(list) => (list.first().is_none_or(String::is_empty), list.iter().any(|word| word.contains('\0'))),
    };
    match (is_empty, has_nul) {
        (true, _) => Err(wrong("`command` is empty")),
        (_, true) => Err(wrong("`command` has a NUL in it")),
        _ => Ok(words),
    }
}

fn additions(given: Option<Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let given = match given {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(wrong(format!("`env` must be an object, not {}", kind_of(&other)))),
    };
    let mut env = BTreeMap::new();
    for (name, value) in given {
        let Value::String(value) = value else {
            return Err(wrong(format!("`env`: {name:?} must be a string, not {}", kind_of(&value))));
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(wrong(format!("`env`: {name:?} cannot be a variable")));
        }
        if is_own(OsStr::new(&name)) {
            return Err(wrong(format!("`env`: {name:?} is Prism's own")));
        }
        env.insert(name, value);
    }
    Ok(env)
}

/// Takes out of an environment what is Prism's own: its settings and its secrets.
pub(crate) fn without_secrets(env: BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    env.into_iter().filter(|(name, _)| !is_own(name)).collect()
}

fn is_own(name: &OsStr) -> bool {
    name == "MCP_TOKEN" || name.as_encoded_bytes().starts_with(b"PRISM_")
}

// === impl Ready ===

impl Ready {
    /// Runs it to its end. Dropping the future kills it, and whatever it has started.
    pub(crate) async fn run(self, desk: &Desk) -> Result<Value, Refusal> {
        let busy = |_| Refusal {
            code: Code::TooFast,
            message: "too many commands run already; try again when one has ended".to_owned(),
            retry_after: Some(Duration::from_secs(5)),
        };
        let _turn = desk.commands.try_acquire().map_err(busy)?;
        let this = desk.blocking(move |_| self.way.is_still(&self.folder).map(|()| self)).await?;
        let child = this.start(desk)?;
        Ok(attend(child, this.patience, &this.cwd).await)
    }

    fn start(&self, desk: &Desk) -> Result<Child, Refusal> {
        let mut env = desk.env.clone();
        // Where it is, and not where the daemon is.
        env.insert("PWD".into(), OsString::from(&self.cwd));
        env.remove(OsStr::new("OLDPWD"));
        env.extend(self.env.iter().map(|(name, value)| (name.into(), value.into())));
        let cwd = self.work_dir.path();
        let spec = Spec { command: &self.words, env: &env, cwd: Some(&cwd), cgroup: None };
        Child::spawn(&spec, &desk.owner).map_err(|error| match error {
            SpawnError::NotFound { .. } | SpawnError::NoCommand => Refusal::new(Code::NotFound, error.to_string()),
            SpawnError::Cwd { .. } => Refusal::new(Code::NotFound, format!("the folder {:?} is no more", self.cwd)),
            SpawnError::Exec { ref source, .. } => failed(format!("{error}: {source}")),
        })
    }
}

/// Reads what a child prints until it has ended, or its time is up.
async fn attend(child: Child, patience: Duration, cwd: &str) -> Value {
    let began = Instant::now();
    let Child { stdin, mut stdout, mut stderr, group } = child;
    // There is nothing to read for it.
    drop(stdin);
    let (mut out, mut err) = (Output::default(), Output::default());
    let timed_out = {
        let reading = async { tokio::join!(out.read(&mut stdout), err.read(&mut stderr)) };
        tokio::pin!(reading);
        let mut is_silent = false;
        let up = sleep(patience);
        tokio::pin!(up);
        loop {
            tokio::select! {
                () = group.exited() => break false,
                () = &mut up => break true,
                _ = &mut reading, if !is_silent => is_silent = true,
            }
        }
    };
    // Whatever it has started and left behind ends with it.
    group.kill();
    let is_gone = timeout(DEATH, group.exited()).await.is_ok();
    let status = if is_gone { group.finish().ok() } else { None };
    let _ = timeout(LAST_WORDS, async { tokio::join!(out.read(&mut stdout), err.read(&mut stderr)) }).await;

    let (stdout, stdout_left_out) = out.told();
    let (stderr, stderr_left_out) = err.told();
    json!({
        "exit_code": status.filter(|_| !timed_out).and_then(|status| status.code()),
        "signal": status.and_then(|status| status.signal()),
        "timed_out": timed_out,
        "stdout": stdout,
        "stderr": stderr,
        "stdout_bytes_left_out": stdout_left_out,
        "stderr_bytes_left_out": stderr_left_out,
        "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "cwd": cwd,
    })
}
