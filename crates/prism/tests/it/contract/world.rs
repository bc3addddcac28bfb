//! Where a case is played: a folder of its own, granted whole, and a holder on a WebSocket.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process,
};

use prism_core::policy::{Code, Risk, VerbSpec};
use serde_json::{Map, Value, json};

use super::{
    case::{Awaited, Case, Command, Content, Step},
    check::{Saved, covers},
};
use crate::support::{
    DEADLINE,
    gate::{Gate, Holder},
};

/// What `repository` means.
const REPOSITORY: &[&[&str]] = &[
    &["git", "init", "-q", "-b", "main"],
    &["git", "config", "user.name", "A Tester"],
    &["git", "config", "user.email", "tester@example.invalid"],
    &["git", "add", "--all"],
    &["git", "commit", "-q", "--allow-empty", "-m", "The beginning"],
];

/// How the router refuses a verb that the folder's editor does not have and the built-in one may not do there.
const NOBODY_ELSE: &str = "has this folder open and cannot ";

pub(super) struct World<'a> {
    gate: &'a Gate,
    /// What the runtime of the folder does.
    verbs: &'a BTreeSet<&'static str>,
    root: PathBuf,
    holder: Holder,
    events: Vec<Value>,
    saved: Saved,
}

/// Why a case did not come to its end.
pub(super) enum Stopped {
    /// The runtime does not have this verb, and nobody else may do it in its folder.
    Lacks(&'static str),
    Broken(String),
}

impl<'a> World<'a> {
    /// Makes what is given, and has it granted.
    pub(super) async fn new(
        gate: &'a Gate,
        root: PathBuf,
        verbs: &'a BTreeSet<&'static str>,
        case: &Case,
    ) -> Result<Self, String> {
        let root = {
            fs::create_dir_all(&root).map_err(|error| error.to_string())?;
            root.canonicalize().map_err(|error| error.to_string())?
        };
        for (path, content) in &case.given.files {
            write(&root.join(path), &content.bytes());
        }
        for (path, target) in &case.given.links {
            symlink(target, root.join(path)).map_err(|error| error.to_string())?;
        }
        for command in &case.given.commands {
            match command {
                Command::Words(words) => drop(run(&root, words)?),
                Command::Named(name) if name == "repository" => {
                    for words in REPOSITORY {
                        run(&root, words)?;
                    }
                }
                Command::Named(name) => return Err(format!("no commands are called {name:?}")),
            }
        }
        let asked = json!({"agent_id": "tester", "scopes": ["*"], "roots": [root], "reason": case.name});
        let (status, asked) = gate.as_agent("/mcp/request_access", asked).await;
        assert_eq!(status, 200, "{asked}");
        let approve = json!({"request_id": asked["request_id"]});
        let (status, told) = gate.as_person("/mcp/approve", approve).await;
        assert_eq!(status, 200, "{told}");
        let granted = crate::support::gate::Granted {
            id: crate::support::gate::text(&told["session_id"]),
            token: crate::support::gate::text(&told["session_token"]),
        };
        let holder = gate.hold(&granted).await;
        let mut saved = Saved::default();
        saved.0.insert("root".to_owned(), root.to_string_lossy().into());
        Ok(Self { gate, verbs, root, holder, events: Vec::new(), saved })
    }

    /// Does all of it, and checks what came of it.
    pub(super) async fn play(&mut self, case: &Case) -> Result<(), Stopped> {
        for step in &case.when {
            let came_to = self.step(step).await?;
            if let Some(verb) = self.lacks(step, &came_to) {
                return Err(Stopped::Lacks(verb));
            }
            let name = step.name.as_deref();
            let is_expected = name.is_some_and(|name| {
                case.then.iter().any(|check| check.of.as_deref() == Some(name) && check.error.is_some())
            });
            if came_to["status"] == "error" && !is_expected {
                return Err(format!("{}: {came_to}", step.act.as_deref().unwrap_or_default()).into());
            }
            if let Some(name) = name {
                self.saved.0.insert(name.to_owned(), came_to);
            }
        }
        Ok(case.then.iter().try_for_each(|check| self.saved.holds(check, &self.root))?)
    }

    /// The verb of a step that was refused because the runtime does not have it.
    fn lacks(&self, step: &Step, came_to: &Value) -> Option<&'static str> {
        let op = step.args.get("op").and_then(Value::as_str);
        let verb = VerbSpec::asked(step.act.as_deref()?, op).ok()?.verb;
        let data = &came_to["data"];
        let is_refused = data["code"] == Code::Unsupported.name()
            && data["message"].as_str().is_some_and(|why| why.contains(NOBODY_ELSE));
        (is_refused && !self.verbs.contains(verb)).then_some(verb)
    }

    async fn step(&mut self, step: &Step) -> Result<Value, String> {
        if let Some(action) = &step.act {
            let Value::Object(args) = self.saved.filled(&Value::Object(step.args.clone()))? else { unreachable!() };
            let begun = tokio::time::Instant::now();
            loop {
                let result = self.act(action, &args, step.person.as_deref() != Some("denies")).await;
                let open = step.until.iter().find_map(|check| self.saved.holds_of(check, action, &result).err());
                match open {
                    None => return Ok(result),
                    Some(_) if self.lacks(step, &result).is_some() => return Ok(result),
                    Some(why) if result["status"] == "error" || begun.elapsed() > DEADLINE => return Err(why),
                    Some(_) => {}
                }
            }
        }
        if let Some(files) = &step.write {
            for (path, text) in files {
                write(&self.root.join(path), text.as_bytes());
            }
        } else if let Some(path) = &step.read {
            return fs::read_to_string(self.root.join(path))
                .map(Value::from)
                .map_err(|error| format!("{path}: {error}"));
        } else if let Some(words) = &step.run {
            return run(&self.root, words).map(Value::from);
        } else if let Some(awaited) = &step.event {
            return self.arrives(awaited).await;
        }
        Ok(Value::Null)
    }

    async fn act(&mut self, action: &str, args: &Map<String, Value>, allows: bool) -> Value {
        let op = args.get("op").and_then(Value::as_str);
        // Whether a change is asked about is decided by what it does.
        let asks = VerbSpec::asked(action, op)
            .is_ok_and(|action| matches!(action.risk, Risk::Changes | Risk::Destroys) || action.verb == "close_buffer");
        let id = self.holder.begins(action, Value::Object(args.clone())).await;
        let gate = self.gate;
        let mut person = std::pin::pin!(async move {
            if asks {
                gate.answers(allows).await;
            }
            std::future::pending::<()>().await;
        });
        loop {
            let message = tokio::select! {
                message = self.holder.next() => message.unwrap_or_else(|code| panic!("closed with {code}")),
                () = &mut person => continue,
            };
            match message["type"].as_str() {
                Some("result") if message["id"] == id => return message,
                Some("event") => self.events.push(message),
                _ => {}
            }
        }
    }

    /// Waits for an event, if it has not come already.
    async fn arrives(&mut self, awaited: &Awaited) -> Result<Value, String> {
        let has = self.saved.filled(&awaited.has)?;
        let is_it = |event: &Value| event["data"]["event"] == *awaited.event && covers(&event["data"], &has);
        if let Some(found) = self.events.iter().find(|event| is_it(event)) {
            return Ok(found["data"].clone());
        }
        let begun = tokio::time::Instant::now();
        while let Ok(next) =
            tokio::time::timeout(DEADLINE / 4 - begun.elapsed().min(DEADLINE / 4), self.holder.next()).await
        {
            let message = next.map_err(|code| format!("closed with {code}"))?;
            if message["type"] != "event" {
                continue;
            }
            self.events.push(message.clone());
            if is_it(&message) {
                return Ok(message["data"].clone());
            }
        }
        let came: Vec<String> = self.events.iter().map(|event| event["data"].to_string()).collect();
        Err(format!("no event {} with {has}; there came {}", awaited.event, came.join(", ")))
    }
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Broken(why)
    }
}

impl Content {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes { base64 } => from_base64(base64),
        }
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for sign in text.bytes().filter(|sign| *sign != b'=') {
        let value = ALPHABET.iter().position(|one| *one == sign).expect("the suite has valid base64");
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("it is below the root")).expect("its folder can be made");
    fs::write(path, bytes).expect("it can be written");
}

fn run(root: &Path, words: &[impl AsRef<std::ffi::OsStr>]) -> Result<String, String> {
    let mut command = process::Command::new(&words[0]);
    command.args(&words[1..]).current_dir(root).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.stdin(process::Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
