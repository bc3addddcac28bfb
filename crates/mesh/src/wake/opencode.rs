//! `opencode`: a prompt in the session of an OpenCode server (`opencode serve`, or a TUI with `--port`).
//!
//! What was seen of OpenCode 1.18: a prompt that names no agent is given to `build`, whatever the session was in. A bell
//! must not lead somebody out of `plan` into an agent that may write, so the session is read first and the prompt names
//! what it has. While the session is busy a prompt waits its turn by itself.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use hyper::{Method, header::HeaderValue};
use prism_core::mesh::WakePath;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    AgentFacts, ContactAddress, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, Why,
    http::{self, LoopbackConnection, LoopbackResponse},
    loopback::LoopbackServer,
    secret::{PointedSecrets, SecretPointer},
    told::WakeFields,
};

/// How long one ring may take: two requests. Measured: 40 ms.
const DEADLINE: Duration = Duration::from_secs(5);
/// What OpenCode calls its user, unless it is told otherwise.
const USER: &str = "opencode";
const KNOWN: [&str; 6] = ["url", "session", "username", "secret", "password_env", "password_file"];

pub(super) struct OpencodeAdapter {
    secrets: PointedSecrets,
    deadline: Duration,
}

/// A session of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpencodeSession {
    server: LoopbackServer,
    session: String,
    user: String,
    /// Where the password is. It is never in a contact.
    password: Option<SecretPointer>,
}

enum OpencodeError {
    /// The server is there, and the session is not.
    Nobody(Why),
    Broken(Why),
    /// It has the prompt, and has not said whether it took it: a busy one does so later.
    Unanswered(Why),
}

// === impl OpencodeAdapter ===

impl OpencodeAdapter {
    pub(super) fn new(secrets: PointedSecrets) -> Self {
        Self { secrets, deadline: DEADLINE }
    }

    /// Does one of the things that have to be done until then; if it takes longer, that means this.
    async fn until<T>(
        &self,
        until: Instant,
        late: fn(Why) -> OpencodeError,
        doing: impl Future<Output = Result<T, OpencodeError>>,
    ) -> Result<T, OpencodeError> {
        let why = || format!("OpenCode did not answer within {:?}", self.deadline).into();
        timeout_at(until, doing).await.unwrap_or_else(|_| Err(late(why())))
    }

    /// The session as the server has it, and what opens the door.
    async fn look(&self, at: &OpencodeSession) -> Result<(Value, Option<HeaderValue>), OpencodeError> {
        let authorization = self.authorization(at).await?;
        let path = format!("/session/{}", at.session);
        let line = LoopbackConnection::open(&at.server).await.map_err(failed)?;
        let answer = line.ask(Method::GET, &path, authorization.as_ref(), None).await;
        Ok((judged(answer)?.body, authorization))
    }

    async fn prompt(&self, at: &OpencodeSession, bell: &WakeBell) -> Result<(), OpencodeError> {
        let until = Instant::now() + self.deadline;
        let ready = async {
            let looked = self.look(at).await?;
            Ok((looked, LoopbackConnection::open(&at.server).await.map_err(failed)?))
        };
        let ((session, authorization), line) = self.until(until, OpencodeError::Broken, ready).await?;
        let mut prompt = json!({ "parts": [{ "type": "text", "text": &*bell.text }] });
        if let Some(agent) = session["agent"].as_str() {
            prompt["agent"] = json!(agent);
        }
        let model = &session["model"];
        if let (Some(provider), Some(id)) = (model["providerID"].as_str(), model["id"].as_str()) {
            prompt["model"] = json!({ "providerID": provider, "modelID": id });
            if let Some(variant) = model["variant"].as_str().filter(|variant| *variant != "default") {
                prompt["variant"] = json!(variant);
            }
        }
        let path = format!("/session/{}/prompt_async", at.session);
        let asked = async { judged(line.ask(Method::POST, &path, authorization.as_ref(), Some(&prompt)).await) };
        self.until(until, OpencodeError::Unanswered, asked).await.map(|_| ())
    }

    async fn authorization(&self, at: &OpencodeSession) -> Result<Option<HeaderValue>, OpencodeError> {
        let Some(password) = &at.password else { return Ok(None) };
        let password = self.secrets.look_up(password).await.map_err(|why| OpencodeError::Broken(why.into()))?;
        let words = base64(format!("{}:{password}", at.user).as_bytes());
        let mut value = HeaderValue::from_str(&format!("Basic {words}"))
            .map_err(|_| OpencodeError::Broken("the password is none that a header can hold".into()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// What an answer means.
fn judged(answer: Result<LoopbackResponse, http::LoopbackError>) -> Result<LoopbackResponse, OpencodeError> {
    let broken = |why: Why| Err(OpencodeError::Broken(why));
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(answer),
        Ok(LoopbackResponse { status: 401 | 403, .. }) => broken(
            "OpenCode does not take the password: wake.opencode.password_env or password_file must lead to its \
             OPENCODE_SERVER_PASSWORD"
                .into(),
        ),
        Ok(LoopbackResponse { status: 404, body }) if body["name"] == "NotFoundError" => Err(OpencodeError::Nobody(
            "OpenCode has no such session: name the one that is open, as wake.opencode.session in prism_start".into(),
        )),
        Ok(LoopbackResponse { status, .. }) => {
            broken(format!("OpenCode answered HTTP {status}: is it OpenCode that listens there?").into())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Why there is no answer to judge.
fn failed(error: http::LoopbackError) -> OpencodeError {
    OpencodeError::Broken(match error {
        http::LoopbackError::Unreachable(error) => {
            format!("no OpenCode listens there ({error}): start opencode --port PORT, or opencode serve --port PORT")
                .into()
        }
        http::LoopbackError::Cut => "OpenCode hung up before it had answered: look at what it printed".into(),
    })
}

impl WakeAdapter for OpencodeAdapter {
    fn path(&self) -> WakePath {
        WakePath::Opencode
    }

    fn check(&self, told: &Value) -> Result<(), String> {
        let at = OpencodeSession::read(told)?;
        at.password.map_or(Ok(()), |password| self.secrets.check(&password))
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        let at = OpencodeSession::read(agent.wake.get(self.path().name())?).ok()?;
        Some(WakeContact::new(agent, ContactAddress::Opencode(at)))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        let ContactAddress::Opencode(at) = &contact.to else { return Box::pin(async { ProbeOutcome::misled() }) };
        Box::pin(async {
            match self.until(Instant::now() + self.deadline, OpencodeError::Broken, self.look(at)).await {
                Ok(_) => ProbeOutcome::There,
                Err(OpencodeError::Nobody(why) | OpencodeError::Broken(why) | OpencodeError::Unanswered(why)) => {
                    ProbeOutcome::Absent(why)
                }
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        let ContactAddress::Opencode(at) = &contact.to else { return Box::pin(async { RingOutcome::misled() }) };
        Box::pin(async {
            match self.prompt(at, bell).await {
                Ok(()) => RingOutcome::Rang,
                Err(OpencodeError::Nobody(why)) => RingOutcome::Uncaptured(why),
                Err(OpencodeError::Broken(why)) => RingOutcome::SendFailed(why),
                Err(OpencodeError::Unanswered(why)) => RingOutcome::Unanswered(why),
            }
        })
    }
}

// === impl OpencodeSession ===

impl OpencodeSession {
    fn read(told: &Value) -> Result<Self, String> {
        let told = WakeFields::read("opencode", told, &KNOWN)?;
        let server = LoopbackServer::parse(told.wanted("url")?, "http", "http://127.0.0.1:4096");
        let server = server.map_err(|why| told.wrong("url", &why))?;
        let session = told.wanted("session")?;
        // It goes into a path.
        if !session.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            return Err(told.wrong("session", "must be OpenCode's own name of the session, as in ses_…"));
        }
        let named = told.text("secret")?.map(|name| SecretPointer::Named(name.to_owned()));
        let in_env = told.text("password_env")?.map(|name| SecretPointer::Env(name.to_owned()));
        let in_file = told.file("password_file")?.map(SecretPointer::File);
        if [&named, &in_env, &in_file].into_iter().flatten().count() > 1 {
            return Err(told.wrong("secret", "and password_env and password_file exclude each other"));
        }
        let password = named.or(in_env).or(in_file);
        let user = told.text("username")?.unwrap_or(USER);
        if user.contains(':') {
            return Err(told.wrong("username", "must have no colon"));
        }
        Ok(Self { server, session: session.to_owned(), user: user.to_owned(), password })
    }
}

/// As RFC 4648 has it. Not worth a crate: it is written once and read by nobody here.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0u32, |number, i| number << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
