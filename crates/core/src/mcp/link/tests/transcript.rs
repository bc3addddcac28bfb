//! The transcripts that this machine's tests are written in, and the shell that plays them to a link.
//!
//! A line is an input, or what must have come of the inputs before it. What comes to one party is checked in its order,
//! and all of it must be checked before the next input: a transcript leaves nothing unsaid.
//!
//! | inputs | |
//! |---|---|
//! | `settings alone, timeout off` | see [`Stage::settings`]; the first line, if there is one |
//! | `open a 2025-03-26 {"roots":{}}` | client `a` sends `initialize`, with that revision and those capabilities |
//! | `greet {"tools":{}}` | the child answers `initialize`, with those capabilities |
//! | `up a b` | both are open and all of that is checked; takes what `open` takes |
//! | `a > {…}`, `a json > {…}`, `a events > {…}` | `a` POSTs a message, with that Accept |
//! | `a:x > {…}` | the same; what comes of this POST comes to `a:x`. `stateless > {…}` has no session |
//! | `a batch > […]`, `a get`, `a get:2 after 1-2` | a batch; a GET stream, the second with `Last-Event-ID` |
//! | `left a:x`, `close a` | the client leaves a POST; the session is deleted |
//! | `drop a get`, `drop a get having 3` | a stream breaks after all that was sent on it, or after that event |
//! | `server > {…}`, `exit`, `ended why`, `failed`, `+ 30s` | a line of the child's, its end, our ending it, one that did not start; time |
//! | `stuck`, `reads` | the child reads no more, and again |
//! | `probe`, `shut down` | |
//! | `plain a 2024-11-05` | as `open`, but `a` is one stream for everything, and its life (HTTP+SSE) |
//! | `open a part:2` | as `open`, but `a` is the second part of a session of the hub's; its names are those of `d` |
//! | `ring a`, `ring <uri>` | the bell of `a`, or of those who listen for that URI |
//! | `watch a 15s`, `watch a off` | its client is asked every so often whether it is there |
//! | `relay a {…}`, `relay a 2 {…}` | a part of `a` has this to say, or to ask under that number |
//! | `missed a 3` | so much of that did not get through |
//! | `modern:x > {…}` | a modern client POSTs; what comes of it comes to `modern:x`. See [`modern`] |
//! | `discover {"tools":{}}` | the child answers `server/discover`, with those capabilities |
//! | `ack`, `ack {…}` | it acknowledges our newest listen, which is `$union`; all of it, or that |
//! | `server about 3 > {…}` | a message that came with the response to our request 3 (HTTP) |
//! | `unanswered 3`, `cut 3`, `refused 3` | our request 3 gets no answer: an outage, a broken stream, the wrong era |
//! | `session lost` | the server, over HTTP, has forgotten our session |
//! | `save`, `killed`, `restarted` | what has changed is saved; the daemon is killed, or stopped, and starts again |
//!
//! | what comes of them | |
//! |---|---|
//! | `server < {…}` | a line to the child |
//! | `a < {…}`, `a fault exited`, `a cancelled`, `a refused Busy` | the answer to a POST |
//! | `modern:x error {…}` | an error to a modern client, whose code decides the status |
//! | `modern:x elsewhere {…}` | the call is to be made on another link |
//! | `a ~ {…}`, `a ~ 1-2 {…}`, `a ~ 1-0`, `a end` | an event on it, with or without its id; a priming event; its end |
//! | `a get ~ {…}`, `a get end` | the same on a GET stream |
//! | `a ~ @notifications/progress {…}` | an event that is named so, where it is not `message` |
//! | `! relay {…}`, `! relay 2 {…}` | something, or a question, for the home of a part |
//! | `! start`, `! stop`, `! ended a`, `! asked`, … | see [`Stage::act`] |
//! | `~ 1 in flight`, `~ over` | see [`Stage::assert`] |
//!
//! Messages are written without `"jsonrpc":"2.0",`, are compared byte by byte, and may hold `…` for any text, `$x` for a
//! number that is the same wherever `$x` stands, and, towards us, `⏎` for a line break. `‹{…} debug c›` stands for the
//! envelope of a modern request in `_meta`: capabilities, log level and client, as far as they are there.
//!
//! When a transcript is over everybody leaves and time passes: whatever happened, nothing may be left.

mod expected;
mod modern;
mod newcomers;
mod pattern;
mod restarts;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::{Duration, Instant},
};

use bytes::Bytes;

use self::pattern::{duration, fits, split_name};
use super::{sse, world::written};
use crate::{
    mcp::{
        AcceptedFormats, CallFault, ClientClass, ClientHello, Era, EraDiscovery, Link, LinkAction, LinkAnswer,
        LinkRefusal, LinkSettings, SessionSnapshot, UpstreamKind,
        link::{LinkHoldings, SessionKey, StreamKey, WireId},
        replay::ReplayKind,
    },
    wire::{LineSplitter, Message, MessageKind},
};

const CAPABILITIES: &str = r#"{"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}"#;
/// What a session is told of when its bell rings.
const BELL: &str = "prism://signals/pending";
/// Timeouts in a row at one instant, after which the link is taken to spin.
const SPINNING: usize = 100;

/// Plays a transcript. Panics where the link does anything else than it says.
pub(super) fn check(transcript: &str) {
    let mut stage = Stage::new();
    for line in transcript.lines().map(str::trim).filter(|line| !line.is_empty()) {
        line.clone_into(&mut stage.line);
        stage.play(line);
    }
    "the end".clone_into(&mut stage.line);
    stage.all_is_said();
    stage.clean_up();
}

struct Stage {
    link: Link,
    settings: LinkSettings,
    now: Instant,
    /// What the child has written, while there is a child.
    child: Option<LineSplitter>,
    /// The link's own `initialize`, while the child has not answered it.
    initialize: Option<u64>,
    /// The link's own `server/discover`, likewise.
    discover: Option<u64>,
    /// The newest listen at the child, and what it asks for.
    union: Option<(u64, String)>,
    /// Secrets given to calls of the modern era.
    tickets: u32,
    /// Ids that a child has seen.
    ids: HashSet<u64>,
    sessions: BTreeMap<String, SessionKey>,
    hellos: BTreeMap<SessionKey, ClientHello>,
    /// Whether it is told that there is something to save; and what was saved.
    keeps: bool,
    saved: BTreeMap<SessionKey, SessionSnapshot>,
    /// Those of them that are one stream.
    plain: HashSet<SessionKey>,
    posts: HashMap<WireId, Post>,
    streams: HashMap<StreamKey, (String, Option<SessionKey>)>,
    /// What came to whom and was not checked yet.
    heard: BTreeMap<String, VecDeque<String>>,
    names: HashMap<String, String>,
    beats: usize,
    stuck: bool,
    line: String,
}

struct Post {
    handle: String,
    key: Option<SessionKey>,
    id: String,
}

impl Stage {
    #[expect(clippy::disallowed_methods, reason = "a test's time starts somewhere, and then stands still")]
    fn new() -> Self {
        let settings = LinkSettings {
            request_timeout: Some(Duration::from_secs(30)),
            max_request_time: Duration::from_secs(5 * 60),
            start_timeout: Some(Duration::from_secs(120)),
            leaving_cancels: false,
            max_message_bytes: 1 << 20,
            keep_warm: Duration::ZERO,
            keep_stateless: Duration::from_secs(60),
            idle_stop: None,
            strict_streams: false,
            class: ClientClass::NONE,
            alone: false,
            opening: EraDiscovery::Pinned(Era::Legacy),
            prefers: Era::Modern,
            wire: UpstreamKind::Pipe,
            exclusive: false,
            number: 7,
        };
        Self {
            link: Link::new(settings.clone()),
            settings,
            now: Instant::now(),
            child: None,
            initialize: None,
            discover: None,
            union: None,
            tickets: 0,
            ids: HashSet::new(),
            sessions: BTreeMap::new(),
            hellos: BTreeMap::new(),
            keeps: false,
            saved: BTreeMap::new(),
            plain: HashSet::new(),
            posts: HashMap::new(),
            streams: HashMap::new(),
            heard: BTreeMap::new(),
            names: HashMap::new(),
            beats: 0,
            stuck: false,
            line: String::new(),
        }
    }

    fn play(&mut self, line: &str) {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let is_message = |rest: &str| rest.split_once("> ").is_some_and(|(how, _)| !how.contains(['{', '<', '~']));
        match (first, rest) {
            ("!", _) => return self.expect("!", rest),
            ("~", _) => return self.assert(rest),
            ("server", _) if rest.starts_with('<') => return self.expect("server", rest),
            _ => {}
        }
        let is_get = |rest: &str| rest.starts_with("get") && (!rest.contains(' ') || rest.contains(" after "));
        let inputs = "settings open plain greet discover ack up left drop close server exit ended failed unanswered cut \
                      refused session stuck reads share relay ring watch overheard missed + shut";
        let alone = ["probe", "save", "killed", "restarted"];
        let is_input = inputs.split(' ').any(|input| input == first) || alone.contains(&line);
        if !is_input && !is_message(rest) && !is_get(rest) {
            return match rest.strip_prefix("get").and_then(|rest| rest.split_once(' ')) {
                Some((name, rest)) => self.expect(&format!("{first} get{name}"), rest),
                None => self.expect(first, rest),
            };
        }
        self.all_is_said();
        match first {
            "settings" => self.settings(rest),
            "open" => self.open(rest),
            "relay" => self.relay(rest),
            "missed" => self.missed(rest),
            "ring" => self.ring(rest),
            "watch" => {
                let (session, every) = rest.split_once(' ').expect("`watch a 15s`");
                let every = (every != "off").then(|| duration(every));
                self.link.watch_over(self.sessions[session], every, self.now);
            }
            "plain" => self.open_plain(rest),
            "greet" => self.greet(rest),
            "discover" => self.discovered(rest),
            "ack" => self.acknowledge(rest),
            "up" => self.up(rest),
            "left" => {
                let (id, _) = self.post(rest);
                self.posts.remove(&id);
                self.link.handle_left(id, self.now);
            }
            "drop" => self.drop_stream(rest),
            "close" => self.link.close(self.sessions[rest], self.now),
            "server" => {
                let (about, text) = rest.split_once('>').expect("`server > …` or `server about 3 > …`");
                let about = about.trim().strip_prefix("about ").map(|number| self.named(number).parse().unwrap());
                self.server(about, &self.named(text.trim_start()));
            }
            "exit" => {
                self.lose_child();
                self.link.explain(Some(rest).filter(|said| !said.is_empty()).map(str::to_owned));
                self.link.handle_exit(self.now);
            }
            "ended" => {
                self.lose_child();
                self.link.handle_ended(rest.to_owned(), self.now);
            }
            "unanswered" | "cut" | "refused" => {
                let fault = match first {
                    "cut" => CallFault::Cut,
                    _ => CallFault::Unavailable { why: "it does not answer".to_owned() },
                };
                self.link.handle_failed(self.named(rest).parse().unwrap(), fault, first == "refused", self.now);
            }
            "overheard" => self.link.overhear(Some(rest.to_owned())),
            "session" => self.link.handle_session_lost(self.now),
            "share" => self.link.share_freely(self.now),
            "failed" => {
                self.lose_child();
                self.link.handle_start_failed("no such program", self.now);
            }
            "stuck" => self.stuck = true,
            "reads" => self.stuck = false,
            "+" => self.pass(duration(rest)),
            "probe" => match self.link.probe(self.now) {
                Ok(id) => self.await_answer(id, "probe", None, ""),
                Err(_) => self.hear("probe", "refused".to_owned()),
            },
            "shut" => drop(self.link.shut_down(CallFault::Stopping, self.now)),
            "save" => self.save(),
            "killed" => self.start_again(),
            "restarted" => self.restart(),
            handle => match rest.split_once("> ") {
                Some((how, text)) => self.client(handle, how.trim(), &self.named(text)),
                None => self.listen(handle, rest),
            },
        }
        self.act();
    }

    /// `alone`, `strict`, `class {…}`, `limit BYTES`, and times: `timeout 30s`, `at most 5m`, `start 2m`, `warm 0s`,
    /// `stateless 1m`; `probe`, `learned legacy`, `pinned modern`, `prefers legacy`, `http`, `exclusive`, `leaving cancels`.
    fn settings(&mut self, words: &str) {
        for setting in words.split(", ") {
            if setting == "leaving cancels" {
                self.settings.leaving_cancels = true;
                continue;
            }
            let (name, value) = setting.rsplit_once(' ').unwrap_or((setting, ""));
            match name {
                "alone" => self.settings.alone = true,
                "probe" => self.settings.opening = EraDiscovery::Probe,
                "learned" => self.settings.opening = EraDiscovery::Learned(Era::named(value).unwrap()),
                "prefers" => self.settings.prefers = Era::named(value).unwrap(),
                "pinned" => self.settings.opening = EraDiscovery::Pinned(Era::named(value).unwrap()),
                "http" => self.settings.wire = UpstreamKind::Http,
                "exclusive" => self.settings.exclusive = true,
                "strict" => self.settings.strict_streams = true,
                "class" => self.settings.class = hello("2025-11-25", value).1.class,
                "limit" => self.settings.max_message_bytes = value.parse().unwrap(),
                "timeout" => self.settings.request_timeout = (value != "off").then(|| duration(value)),
                "start" => self.settings.start_timeout = (value != "off").then(|| duration(value)),
                "at most" => self.settings.max_request_time = duration(value),
                "warm" => self.settings.keep_warm = duration(value),
                "stateless" => self.settings.keep_stateless = duration(value),
                "idle" => self.settings.idle_stop = Some(duration(value)),
                "keeps" => self.keeps = true,
                _ => panic!("no setting {name:?}"),
            }
        }
        self.link = Link::new(self.settings.clone());
    }

    // --- Clients ---

    fn client(&mut self, handle: &str, how: &str, text: &str) {
        let session = handle.split(':').next().unwrap_or_default();
        if session == "modern" {
            return self.modern_client(handle, how, text);
        }
        let key = (session != "stateless").then(|| self.sessions[session]);
        if how == "batch" {
            let parts: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).unwrap();
            let messages = parts.into_iter().map(|part| message(part.get())).collect();
            match self.link.batch(key.expect("a batch has a session"), messages, false, self.now) {
                Ok(Some(stream)) => drop(self.streams.insert(stream, (handle.to_owned(), key))),
                Ok(None) => self.hear(handle, "accepted".to_owned()),
                Err(refusal) => self.refused(handle, refusal),
            }
            return;
        }
        let message = message(text);
        let id = message.id().unwrap_or_default().to_owned();
        if !matches!(message.kind(), MessageKind::Request(_)) {
            return self.link.tell(key, message, self.now);
        }
        let accepts = AcceptedFormats { json: how != "events", events: how != "json", by_method: how == "named" };
        match self.link.call(key, message, accepts, None, self.now) {
            // What comes of it comes on its one stream.
            Ok(_) if key.is_some_and(|key| self.plain.contains(&key)) => {}
            Ok(wire) => self.await_answer(wire, handle, key, &id),
            Err(refusal) => self.refused(handle, refusal),
        }
    }

    fn listen(&mut self, session: &str, get: &str) {
        let (get, after) = get.split_once(" after ").unwrap_or((get, ""));
        let after = (!after.is_empty()).then(|| after.parse().expect("an event id"));
        let (handle, key) = (format!("{session} {get}"), self.sessions[session]);
        match self.link.listen(key, after, false, self.now) {
            Ok(stream) => drop(self.streams.insert(stream, (handle, Some(key)))),
            Err(refusal) => self.refused(&handle, refusal),
        }
    }

    /// Says who was told, or that nobody was.
    fn ring(&mut self, whom: &str) {
        let told = match self.sessions.get(whom) {
            Some(key) => self.link.ring(*key, BELL),
            None => self.link.ring_listens(whom),
        };
        self.hear("!", format!("rang {}", told.len()));
    }

    fn drop_stream(&mut self, words: &str) {
        let (handle, had) =
            words.split_once(" having ").map_or((words, u64::MAX), |(h, had)| (h, had.parse().unwrap()));
        let stream = self.streams.iter().find(|(_, (of, _))| of == handle).map(|(stream, _)| *stream);
        let stream = stream.unwrap_or_else(|| panic!("{:?}: {handle} has no open stream", self.line));
        let (_, key) = self.streams.remove(&stream).unwrap();
        self.link.handle_stream_gone(key, stream, had, self.now);
    }

    fn await_answer(&mut self, id: WireId, handle: &str, key: Option<SessionKey>, own: &str) {
        let post = Post { handle: handle.to_owned(), key, id: own.to_owned() };
        assert!(self.posts.insert(id, post).is_none(), "{:?}: {id:?} was given twice", self.line);
    }

    fn post(&self, handle: &str) -> (WireId, &Post) {
        let post = self.posts.iter().find(|(_, post)| post.handle == handle).map(|(id, post)| (*id, post));
        post.unwrap_or_else(|| panic!("{:?}: {handle} waits for nothing", self.line))
    }

    // --- The server ---

    fn server(&mut self, about: Option<u64>, text: &str) {
        let text = full(text);
        let lines = self.child.as_mut().expect("there is a child");
        lines.space().extend_from_slice(format!("{text}\n").as_bytes());
        while let Some(frame) = lines.next_frame() {
            match about {
                Some(number) => self.link.handle_reply(number, frame, self.now),
                None => self.link.handle_child(frame, self.now),
            }
        }
    }

    fn greet(&mut self, capabilities: &str) {
        let id = self.initialize.take().expect("the link has sent `initialize`");
        let capabilities = if capabilities.is_empty() { CAPABILITIES } else { capabilities };
        let info = r#"{"name":"s","version":"1"}"#;
        self.server(None, &format!(
            r#"{{"id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{info}}}}}"#
        ));
    }

    fn lose_child(&mut self) {
        (self.child, self.initialize, self.discover, self.union) = (None, None, None, None);
    }

    /// A message with the numbers that its names stand for.
    fn named(&self, text: &str) -> String {
        let mut pieces = text.split('$');
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = split_name(piece);
            out.push_str(self.names.get(name).unwrap_or_else(|| panic!("{:?}: what is ${name}?", self.line)));
            out.push_str(rest);
        }
        out
    }

    // --- Time ---

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut at_once = 0;
        while let Some(due) = self.link.poll_timeout().filter(|due| *due <= until) {
            at_once = if due <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < SPINNING, "{:?}: the link spins", self.line);
            self.now = self.now.max(due);
            self.link.handle_timeout(self.now);
            self.act();
        }
        self.now = until;
    }

    // --- What comes of it ---

    fn act(&mut self) {
        let mut actions: VecDeque<LinkAction> = VecDeque::new();
        loop {
            actions.extend(std::iter::from_fn(|| self.link.poll_action()));
            let Some(action) = actions.pop_front() else { break };
            let told = match action {
                LinkAction::Start => {
                    self.child = Some(LineSplitter::new(self.settings.max_message_bytes));
                    "start".to_owned()
                }
                LinkAction::Stop => {
                    // Where another is started at once, what has gathered is for that one.
                    if !actions.iter().any(|action| matches!(action, LinkAction::Start)) {
                        self.read_output();
                    }
                    self.lose_child();
                    "stop".to_owned()
                }
                LinkAction::Answer(id, answer) => {
                    self.answered(id, answer);
                    continue;
                }
                LinkAction::Elsewhere(id, message) => {
                    let post = self.posts.remove(&id).expect("a POST that waits");
                    let text = String::from_utf8(message.bytes().to_vec()).unwrap();
                    self.hear(&post.handle, format!("elsewhere {text}"));
                    continue;
                }
                LinkAction::Tools(_)
                | LinkAction::Defined(_)
                | LinkAction::ListChanged(_)
                | LinkAction::Promised { .. } => continue,
                LinkAction::Stream(id, stream) => {
                    let post = self.posts.remove(&id).unwrap_or_else(|| panic!("{:?}: {id:?} is over", self.line));
                    self.streams.insert(stream, (post.handle, post.key));
                    continue;
                }
                LinkAction::Event { stream, bytes, .. } => {
                    let (handle, key) = self.streams[&stream].clone();
                    for event in sse::read(&bytes) {
                        let resumable = key.is_some_and(|key| !self.plain.contains(&key));
                        assert_eq!(event.id.is_some(), resumable, "{:?}: an id is for those who can resume", self.line);
                        let name = if event.name == "message" { String::new() } else { format!("@{} ", event.name) };
                        let id = event.id.map(|id| id + " ").unwrap_or_default();
                        self.hear(&handle, format!("~ {name}{id}{}", event.data).trim_end().to_owned());
                    }
                    continue;
                }
                LinkAction::End(stream) => {
                    let (handle, key) = self.streams.remove(&stream).expect("a stream ends once");
                    self.hear(&handle, "end".to_owned());
                    self.link.handle_stream_gone(key, stream, u64::MAX, self.now);
                    continue;
                }
                LinkAction::KeepAlive => {
                    self.beats += 1;
                    continue;
                }
                LinkAction::Ended(key) => format!("ended {}", self.label(key)),
                LinkAction::Seen(key) => format!("seen {}", self.label(key)),
                LinkAction::Silent(key) => format!("silent {}", self.label(key)),
                LinkAction::Unsaved if !self.keeps => continue,
                LinkAction::Unsaved => "unsaved".to_owned(),
                LinkAction::Relay { text, what, .. } => {
                    let number =
                        if let ReplayKind::Question(number) = what { format!("{number} ") } else { String::new() };
                    format!("relay {number}{}", String::from_utf8_lossy(&text))
                }
                LinkAction::Asked => "asked".to_owned(),
                LinkAction::Ambiguous => "ambiguous".to_owned(),
                LinkAction::Listed { tools, whole } => {
                    format!("listed {}{}", tools.join(" "), if whole { "" } else { " …and more" })
                }
                LinkAction::Answered { tool } => format!("answered {tool}"),
                LinkAction::Dropped(count) => format!("dropped {count}"),
                LinkAction::Unowned(message) => format!("unowned {}", message.method_text().unwrap_or_default()),
                LinkAction::Garbage { why, .. } => format!("garbage: {why}"),
                LinkAction::Ready { name, version, era: Era::Modern, .. } => format!("ready {name} {version} modern"),
                LinkAction::Ready { name, version, .. } => format!("ready {name} {version}"),
            };
            self.hear("!", told);
        }
        self.read_output();
    }

    fn label(&self, key: SessionKey) -> &str {
        let label = self.sessions.iter().find(|(_, known)| **known == key).map(|(label, _)| label);
        label.expect("a session that was opened")
    }

    fn answered(&mut self, id: WireId, answer: LinkAnswer) {
        let post = self.posts.remove(&id).unwrap_or_else(|| panic!("{:?}: {id:?} is answered twice", self.line));
        let own = |id: Box<str>| assert_eq!(*id, *post.id, "the fault is about another call");
        let text = match answer {
            LinkAnswer::Message(chain) => {
                format!("< {}", String::from_utf8(chain.to_vec()).unwrap()).trim_end().to_owned()
            }
            LinkAnswer::Error { code, body } => {
                let text = String::from_utf8(body.to_vec()).unwrap();
                assert!(text.contains(&format!(r#""code":{code}"#)), "{code} is not in {text}");
                format!("error {text}")
            }
            LinkAnswer::Cancelled { id } => {
                own(id);
                "cancelled".to_owned()
            }
            LinkAnswer::Fault { fault, id } => {
                own(id);
                let name = match fault {
                    CallFault::Exited => "exited".to_owned(),
                    CallFault::Ended { why } => format!("ended: {why}"),
                    CallFault::Cut => "cut".to_owned(),
                    CallFault::Refused { why } => format!("refused: {why}"),
                    CallFault::Unavailable { why } | CallFault::DoesNotStart { said: why } => {
                        format!("unavailable: {why}")
                    }
                    CallFault::Timeout { .. } => "timeout".to_owned(),
                    CallFault::TooLarge { .. } => "too large".to_owned(),
                    CallFault::Stuck => "stuck".to_owned(),
                    CallFault::SessionEnded => "session ended".to_owned(),
                    CallFault::Deserted => "deserted".to_owned(),
                    CallFault::Stopping => "stopping".to_owned(),
                    CallFault::Replaced => "replaced".to_owned(),
                };
                format!("fault {name}")
            }
        };
        self.hear(&post.handle, text);
    }

    fn read_output(&mut self) {
        if self.stuck {
            return;
        }
        let output = written(&mut self.link);
        assert!(output.is_empty() || self.child.is_some(), "{:?}: written to no child: {output:?}", self.line);
        for line in &output {
            let message = Message::parse(Bytes::copy_from_slice(line.as_bytes()))
                .unwrap_or_else(|error| panic!("{:?}: the child reads {line:?}: {error}", self.line));
            if let (MessageKind::Request(_), Some(id)) = (message.kind(), message.id()) {
                // Check 96.
                let id: u64 = id.parse().expect("our ids are integers");
                assert!(id > 0 && self.ids.insert(id), "{:?}: id {id} for the second time", self.line);
                match message.method_text() {
                    Some(r#""initialize""#) => self.initialize = Some(id),
                    Some(r#""server/discover""#) => self.discover = Some(id),
                    Some(r#""subscriptions/listen""#) => self.listens_at(id, &message),
                    _ => {}
                }
            }
            self.hear("server", format!("< {line}"));
        }
    }

    fn refused(&mut self, handle: &str, refusal: LinkRefusal) {
        self.hear(handle, format!("refused {refusal:?}"));
    }

    fn hear(&mut self, who: &str, what: String) {
        self.heard.entry(who.to_owned()).or_default().push_back(what);
    }
}

/// The message that a transcript means.
fn message(text: &str) -> Message {
    Message::parse(Bytes::from(full(text).replace('⏎', "\n"))).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn full(text: &str) -> String {
    let text = modern::unfolded(text);
    match text.strip_prefix('{') {
        Some(rest) if !text.contains(r#""jsonrpc""#) => format!(r#"{{"jsonrpc":"2.0",{rest}"#),
        _ => text,
    }
}

fn hello(revision: &str, capabilities: &str) -> (Message, ClientHello) {
    let message = message(&format!(
        r#"{{"id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c"}}}}}}"#
    ));
    let hello = ClientHello::read(&message).unwrap();
    (message, hello)
}
