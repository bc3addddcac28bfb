//! A link among clients and a server that remember everything: whatever it does to one of them is checked at once.
//!
//! Everything a client says carries its mark, and the server gives every mark back, so that a word in the wrong place
//! shows. Also compiled into the fuzz target `link`.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};

use super::{
    fake::{Question, Server},
    moderns::{Guest, Parked},
    sse,
};
use crate::{
    mcp::{
        AcceptedFormats, CallFault, ClientHello, Era, EraDiscovery, Link, LinkAction, LinkAnswer, LinkSettings, Method,
        link::{SessionKey, StreamKey, WireId},
    },
    wire::{Message, MessageKind, frame::EventId},
};

/// What one session may make the link keep: two replay windows and the bound of its POST streams.
const MAX_KEPT: usize = 11 << 20;
/// Timeouts in a row at one instant, after which the link is taken to spin.
const SPINNING: usize = 100;

pub(crate) struct World {
    pub(crate) link: Link,
    pub(crate) settings: LinkSettings,
    pub(crate) now: Instant,
    pub(crate) clients: Vec<Client>,
    /// How many there may be at a time.
    pub(crate) most_clients: usize,
    pub(crate) calls: Vec<Call>,
    /// The calls whose POST is still held.
    pub(crate) waiting: BTreeMap<WireId, usize>,
    pub(crate) streams: BTreeMap<StreamKey, Stream>,
    pub(crate) server: Option<Server>,
    /// The events that came of the last step.
    pub(crate) last_events: Vec<EventId>,
    /// Calls of modern clients that were asked something.
    pub(crate) parked: Vec<Parked>,
    pub(crate) guests: HashMap<usize, Guest>,
    /// Secrets given to their calls.
    pub(crate) tickets: u128,
    /// Ids that any child has seen.
    ids: HashSet<u64>,
}

/// A client with a session.
pub(crate) struct Client {
    pub(crate) key: SessionKey,
    pub(crate) revision: &'static str,
    pub(crate) phase: ClientPhase,
    /// Every event it has had.
    pub(crate) events: HashMap<EventId, String>,
    /// The calls of each POST that became a stream.
    pub(crate) tracks: HashMap<u64, Vec<usize>>,
    /// The questions it was asked and has not answered, and where each is shown.
    pub(crate) questions: BTreeMap<u64, StreamKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientPhase {
    Opening,
    Open,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Client(usize),
    /// A call without a session belongs to itself.
    Call(usize),
}

/// A call's text with another id and token.
type Text = Box<dyn Fn(&str, &str) -> String>;

pub(crate) struct Call {
    pub(crate) owner: Owner,
    pub(crate) method: Method,
    pub(crate) id: String,
    pub(crate) token: Option<String>,
    pub(crate) text: Text,
    pub(crate) accepts: AcceptedFormats,
    pub(crate) since: Instant,
    pub(crate) fate: Fate,
    pub(crate) cancelled: bool,
    /// The id that the server knows it by.
    pub(crate) wire: Option<u64>,
    /// The server has answered it.
    pub(crate) served: bool,
    /// The call that it goes on with, or itself.
    pub(crate) root: usize,
    /// The last one that went on with it.
    pub(crate) latest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Waiting,
    Streaming(StreamKey),
    /// Its stream broke; its client may come back for it.
    Detached,
    Answered,
    /// It was cancelled, or its client left: there is nothing to come.
    Silent,
}

pub(crate) struct Stream {
    pub(crate) owner: Owner,
    pub(crate) calls: Vec<usize>,
    /// The track it is attached to, and the last event on it.
    pub(crate) at: Option<EventId>,
    pub(crate) events: usize,
    /// The id of the listen that it is.
    pub(crate) listen: Option<String>,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "a test's time starts somewhere, and then stands still")]
    pub(crate) fn new(settings: LinkSettings) -> Self {
        Self {
            link: Link::new(settings.clone()),
            settings,
            now: Instant::now(),
            clients: Vec::new(),
            most_clients: 1,
            calls: Vec::new(),
            waiting: BTreeMap::new(),
            streams: BTreeMap::new(),
            server: None,
            last_events: Vec::new(),
            parked: Vec::new(),
            guests: HashMap::new(),
            tickets: 0,
            ids: HashSet::new(),
        }
    }

    // --- What clients do ---

    pub(crate) fn open(&mut self, revision: &'static str, capabilities: &str) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c"}}}}}}"#
        );
        let message = parse(&text);
        let (client, accepts) = (self.clients.len(), AcceptedFormats { json: true, events: true, by_method: false });
        let key = SessionKey(client as u128 + 1);
        let hello = ClientHello::read(&message).unwrap();
        self.clients.push(Client {
            key,
            revision,
            phase: ClientPhase::Opening,
            events: HashMap::new(),
            tracks: HashMap::new(),
            questions: BTreeMap::new(),
        });
        let call = self.note(Owner::Client(client), &message, accepts, Box::new(|_, _| String::new()));
        match self.link.open(key, hello, message, accepts, None, self.now) {
            Ok(id) => drop(self.waiting.insert(id, call)),
            Err(_) => {
                self.calls[call].fate = Fate::Silent;
                self.clients[client].phase = ClientPhase::Over;
            }
        }
        self.act();
    }

    /// Notes a call that is about to be made.
    pub(crate) fn note(&mut self, owner: Owner, message: &Message, accepts: AcceptedFormats, text: Text) -> usize {
        let MessageKind::Request(method) = message.kind() else { panic!("{message:?} is no call") };
        self.calls.push(Call {
            owner,
            method,
            id: message.id().unwrap().to_owned(),
            token: message.params().meta_token.map(|span| message.text(span).to_owned()),
            text,
            accepts,
            since: self.now,
            fate: Fate::Waiting,
            cancelled: false,
            wire: None,
            served: false,
            root: self.calls.len(),
            latest: self.calls.len(),
        });
        self.calls.len() - 1
    }

    pub(crate) fn call(&mut self, call: usize, message: Message) {
        let Call { owner, accepts, .. } = self.calls[call];
        match self.link.call(self.key(owner), message, accepts, None, self.now) {
            Ok(id) => drop(self.waiting.insert(id, call)),
            Err(_) => self.calls[call].fate = Fate::Silent,
        }
        self.act();
    }

    /// Breaks a stream.
    pub(crate) fn drop_stream(&mut self, stream: StreamKey) {
        let Stream { owner, calls, at, .. } = self.streams.remove(&stream).unwrap();
        for call in calls {
            let fate = if matches!(owner, Owner::Client(_)) { Fate::Detached } else { Fate::Silent };
            if self.calls[call].fate == Fate::Streaming(stream) {
                self.calls[call].fate = fate;
            }
        }
        self.link.handle_stream_gone(self.key(owner), stream, at.map_or(0, |id| id.event), self.now);
        self.act();
    }

    pub(crate) fn close(&mut self, client: usize) {
        self.clients[client].phase = ClientPhase::Over;
        self.link.close(self.clients[client].key, self.now);
        self.act();
        self.assert_over(client);
    }

    /// A session is over: everything it waited for has come, and nothing will come any more.
    fn assert_over(&mut self, client: usize) {
        let owner = Owner::Client(client);
        assert!(self.streams.values().all(|stream| stream.owner != owner), "a stream outlives its session");
        for call in self.calls.iter_mut().filter(|call| call.owner == owner) {
            assert!(call.is_settled() || call.fate == Fate::Detached, "{} is left unanswered", call.id);
            if call.fate == Fate::Detached {
                call.fate = Fate::Silent;
            }
        }
    }

    // --- What the server does ---

    pub(crate) fn server_says(&mut self, line: &str) {
        let server = self.server.as_mut().expect("there is a server");
        server.lines.space().extend_from_slice(format!("{line}\n").as_bytes());
        while let Some(frame) = server.lines.next_frame() {
            self.link.handle_child(frame, self.now);
        }
        self.act();
    }

    pub(crate) fn exit(&mut self) {
        self.server = None;
        self.link.handle_exit(self.now);
        self.act();
        for call in self.calls.iter_mut().filter(|call| call.wire.is_some()) {
            assert!(call.is_settled() || call.fate == Fate::Detached, "{} was not failed with its child", call.id);
            if call.fate == Fate::Detached {
                call.served = true;
            }
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut at_once = 0;
        while let Some(due) = self.link.poll_timeout().filter(|due| *due <= until) {
            at_once = if due <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < SPINNING, "the link spins");
            self.now = self.now.max(due);
            self.link.handle_timeout(self.now);
            self.act();
        }
        self.now = until;
    }

    // --- What the link does ---

    pub(crate) fn act(&mut self) {
        self.last_events.clear();
        while let Some(action) = self.link.poll_action() {
            match action {
                LinkAction::Start => {
                    assert!(self.server.is_none(), "a second child");
                    self.server = Some(Server::new(self.settings.max_message_bytes, self.is_modern()));
                }
                LinkAction::Stop => self.server = None,
                LinkAction::Answer(id, answer) => self.answered(id, answer),
                LinkAction::Elsewhere(id, _) => {
                    let call = self.waiting.remove(&id).expect("a call that waits");
                    assert!(matches!(self.calls[call].owner, Owner::Call(_)) && self.calls[call].wire.is_none());
                    self.calls[call].fate = Fate::Silent;
                }
                LinkAction::Tools(_) | LinkAction::Defined(_) | LinkAction::ListChanged(_) => continue,
                LinkAction::Stream(id, stream) => {
                    let call = self.waiting.remove(&id).expect("a stream for a POST that waits");
                    assert!(self.calls[call].accepts.events, "a stream for a client that takes none");
                    self.calls[call].fate = Fate::Streaming(stream);
                    self.attach(stream, self.calls[call].owner, vec![call]);
                }
                LinkAction::Event { stream, number, bytes } => self.event(stream, number, &bytes),
                LinkAction::End(stream) => self.ended(stream),
                LinkAction::Unsaved => drop(self.link.take_unsaved()),
                LinkAction::Ended(key) => {
                    let client = self.clients.iter().position(|client| client.key == key).unwrap();
                    self.clients[client].phase = ClientPhase::Over;
                    self.assert_over(client);
                }
                _ => {}
            }
        }
        for line in written(&mut self.link) {
            self.told(&line);
        }
        let held = self.link.holdings();
        assert!(held.events_bytes <= held.sessions * MAX_KEPT, "{held:?}");
    }

    pub(crate) fn attach(&mut self, stream: StreamKey, owner: Owner, calls: Vec<usize>) {
        let new = Stream { owner, calls, at: None, events: 0, listen: None };
        assert!(self.streams.insert(stream, new).is_none(), "{stream:?} is used twice");
    }

    fn answered(&mut self, id: WireId, answer: LinkAnswer) {
        let at = self.waiting.remove(&id).expect("an answer to a POST that waits");
        let call = &self.calls[at];
        let fate = match answer {
            LinkAnswer::Message(chain) => {
                let text = String::from_utf8(chain.to_vec()).unwrap();
                return self.response(at, &text);
            }
            LinkAnswer::Error { code, body } => {
                let text = String::from_utf8(body.to_vec()).unwrap();
                assert!(text.contains(&format!(r#""code":{code}"#)), "{code} is not in {text}");
                return self.response(at, &text);
            }
            LinkAnswer::Cancelled { id } => {
                assert!(*id == *call.id && call.cancelled, "nobody cancelled {id}");
                Fate::Silent
            }
            LinkAnswer::Fault { fault, id } => {
                assert_eq!(*id, *call.id, "the fault is about another call");
                assert!(!call.served || matches!(fault, CallFault::TooLarge { .. }), "it was answered: {fault:?}");
                if let CallFault::Timeout { after, .. } = fault {
                    assert!(self.now >= call.since + after, "too early");
                }
                if let (Owner::Client(client), Method::Initialize) = (call.owner, call.method) {
                    self.clients[client].phase = ClientPhase::Over;
                }
                Fate::Answered
            }
        };
        self.calls[at].fate = fate;
    }

    /// A call has its answer.
    fn response(&mut self, at: usize, text: &str) {
        self.assert_unmixed(self.calls[at].owner, text);
        let root = self.calls[at].root;
        let served = self.calls[root].served;
        let call = &mut self.calls[at];
        assert!(!call.is_settled(), "a second answer: {text}");
        let own = format!(r#"{{"jsonrpc":"2.0","id":{},"#, call.id);
        assert!(text.starts_with(&own), "{text} does not answer {}", call.id);
        let is_error = text.contains(r#""error":"#);
        assert!(!served || is_error || text.contains(&mark(call.owner, root)), "{text} is not what was asked for");
        call.fate = Fate::Answered;
        self.note_questions(at, text);
        let call = &self.calls[at];
        if let (Owner::Client(client), Method::Initialize) = (call.owner, call.method) {
            self.clients[client].phase = if is_error { ClientPhase::Over } else { ClientPhase::Open };
        }
    }

    fn event(&mut self, key: StreamKey, number: u64, bytes: &[u8]) {
        let events = sse::read(bytes);
        let [event] = &events[..] else { panic!("{events:?} at once") };
        assert_eq!(event.name, "message");
        let stream = self.streams.get_mut(&key).expect("an event on a stream that is open");
        let (owner, first) = (stream.owner, stream.events == 0);
        stream.events += 1;
        let mut known = None;
        if let Owner::Client(client) = owner {
            let id: EventId = event.id.as_ref().expect("a session's event has an id").parse().unwrap();
            if let Some(at) = stream.at.replace(id) {
                let follows = id.event > at.event || first && event.data.is_empty();
                assert!(at.stream == id.stream && follows, "{id} after {at}");
            }
            let client = &mut self.clients[client];
            if event.data.is_empty() {
                assert!(first && number == 0 && client.revision == "2025-11-25", "a priming event out of place");
            } else {
                assert_eq!(number, id.event);
                self.last_events.push(id);
                known = client.events.insert(id, event.data.clone());
                assert!(known.as_ref().is_none_or(|known| *known == event.data), "{id} means two things");
            }
            if id.stream > 0 {
                client.tracks.insert(id.stream, stream.calls.clone());
            }
        } else {
            assert_eq!(event.id, None, "nobody can resume it");
        }
        if event.data.is_empty() {
            return;
        }
        self.assert_unmixed(owner, &event.data);
        self.spoken(key, &event.data, known.is_some());
    }

    /// A message on a stream. `again` if the client has had it before.
    fn spoken(&mut self, key: StreamKey, text: &str, again: bool) {
        let stream = &self.streams[&key];
        let message = parse(text);
        if let Some(id) = &stream.listen {
            return assert_heard(id, stream.events == 1, &message);
        }
        let standalone = matches!(stream.owner, Owner::Client(_)) && stream.at.is_some_and(|at| at.stream == 0);
        match message.kind() {
            MessageKind::Response => {
                assert!(!standalone, "an answer on a GET stream: {text}");
                let is_it = |at: &&usize| {
                    let call = &self.calls[**at];
                    // What a server asks late may be put to the next call of the same client.
                    let inherited = || marks(text).all(|(of, _)| of != call.owner && self.is_same(of, call.owner));
                    let marked = text.contains(&mark(call.owner, call.root)) || !text.contains(['<']) || inherited();
                    message.id() == Some(&call.id) && marked && !call.is_settled()
                };
                match stream.calls.iter().find(is_it).copied() {
                    Some(call) => self.response(call, text),
                    None => assert!(again, "{text} answers nothing"),
                }
            }
            MessageKind::Notification(Method::Progress) => {
                let token = message.params().token.map(|span| message.text(span));
                let is_its = |at: &usize| self.calls[*at].token.as_deref() == token;
                assert!(!standalone && stream.calls.iter().any(is_its), "progress on the wrong stream: {text}");
                assert!(again || stream.calls.iter().any(|at| !self.calls[*at].is_settled()), "late: {text}");
            }
            MessageKind::Notification(_) => {}
            MessageKind::Request(_) => {
                // Check 72.
                let Owner::Client(client) = stream.owner else { panic!("nobody can answer {text}") };
                let number = message.id().unwrap().parse().unwrap();
                if let Some(before) = self.clients[client].questions.insert(number, key) {
                    assert!(!self.streams.contains_key(&before), "{text} is shown twice");
                }
            }
        }
    }

    fn ended(&mut self, key: StreamKey) {
        let Stream { owner, calls, at, .. } = self.streams.remove(&key).expect("a stream ends once");
        for call in calls {
            let call = &mut self.calls[call];
            if call.fate == Fate::Streaming(key) {
                assert!(call.cancelled, "the stream ended before {} was answered", call.id);
                call.fate = Fate::Silent;
            }
        }
        self.link.handle_stream_gone(self.key(owner), key, at.map_or(0, |id| id.event), self.now);
    }

    /// The child reads a line.
    fn told(&mut self, line: &str) {
        let server = self.server.as_mut().unwrap_or_else(|| panic!("written to no child: {line}"));
        let message = parse(line);
        match message.kind() {
            MessageKind::Request(method) => {
                let id: u64 = message.id().unwrap().parse().expect("our ids are integers");
                assert!(id > 0 && self.ids.insert(id), "id {id} for the second time");
                let call = marks(line).next().map(|(_, call)| call);
                let modern = server.is_modern();
                assert!(line.contains("/protocolVersion") == modern, "an envelope is for the modern era: {line}");
                if let Some(at) = call {
                    let owner = self.calls[at].owner;
                    assert!(marks(line).all(|(of, _)| of == owner), "another client's words: {line}");
                    let call = &mut self.calls[at];
                    assert!(call.wire.replace(id).is_none() && !call.is_settled(), "{line} is sent twice, or too late");
                    let number = id.to_string();
                    // A session's call to a modern server is told in other words.
                    if !modern || matches!(owner, Owner::Call(root) if self.guests.contains_key(&root)) {
                        assert_eq!(line, (call.text)(&number, &number).replace('\n', " "));
                    }
                }
                server.requested(id, method, call, line.contains("/logLevel"));
            }
            MessageKind::Notification(method) => {
                let about = message.params().request_id.map(|span| message.text(span));
                server.notified(method, about, self.now);
            }
            MessageKind::Response => {
                let question: Option<&mut Question> = server.answered(&message);
                if let (Some(asked), Some((owner, _))) = (question.map(|question| question.owner), marks(line).next()) {
                    assert!(self.is_same(owner, asked), "another client's answer: {line}");
                }
            }
        }
    }

    // --- Helpers ---

    pub(crate) fn is_modern(&self) -> bool {
        self.settings.opening == EraDiscovery::Pinned(Era::Modern)
    }

    pub(crate) fn key(&self, owner: Owner) -> Option<SessionKey> {
        match owner {
            Owner::Client(client) => Some(self.clients[client].key),
            Owner::Call(_) => None,
        }
    }

    /// Nothing that belongs to one client reaches another (B-04).
    fn assert_unmixed(&self, owner: Owner, text: &str) {
        for (of, _) in marks(text) {
            assert!(self.is_same(of, owner), "{text} reached {owner:?}");
        }
    }
}

impl Call {
    /// Whether nothing is to come for it.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.fate, Fate::Answered | Fate::Silent)
    }
}

/// What a call is known by wherever it leads.
pub(crate) fn mark(owner: Owner, call: usize) -> String {
    match owner {
        Owner::Client(client) => format!("<c{client}.{call}>"),
        Owner::Call(call) => format!("<x{call}.{call}>"),
    }
}

/// The marks in a text: whose, and which call's.
pub(crate) fn marks(text: &str) -> impl Iterator<Item = (Owner, usize)> {
    text.split('<').skip(1).map(|rest| {
        let (owner, call) = rest.split_once('>').and_then(|(mark, _)| mark.split_once('.')).expect("a mark");
        let number = owner[1..].parse().unwrap();
        let owner = if owner.starts_with('c') { Owner::Client(number) } else { Owner::Call(number) };
        (owner, call.parse().unwrap())
    })
}

/// What a listen hears is tagged with its id, and begins with the acknowledgement (checks 81, 82).
fn assert_heard(id: &str, first: bool, message: &Message) {
    let text = std::str::from_utf8(message.bytes()).unwrap();
    let tagged = text.contains(&format!(r#""io.modelcontextprotocol/subscriptionId":{id}}}"#));
    match message.kind() {
        MessageKind::Notification(method) => {
            assert!(tagged && first == (method == Method::Acknowledged), "{text}");
            let told = [Method::Acknowledged, Method::ToolsChanged, Method::ResourceUpdated];
            assert!(told.contains(&method), "{text}");
        }
        MessageKind::Response => assert_eq!(message.id(), Some(id)),
        MessageKind::Request(_) => panic!("a question on a listen: {text}"),
    }
}

pub(crate) fn parse(text: &str) -> Message {
    Message::parse(text.to_owned().into()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What the machine has written since, a line each. A message that is sent by itself knows all that reading it would tell.
pub(crate) fn written(link: &mut Link) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(output) = link.output().lines() {
        let text = String::from_utf8(output.split().into()).unwrap();
        lines.extend(text.split_terminator('\n').map(str::to_owned));
    }
    while let Some(message) = link.output().next_message() {
        let read = Message::parse(message.bytes().clone()).unwrap();
        assert_eq!(format!("{message:?}"), format!("{read:?}"));
        lines.push(String::from_utf8(message.bytes().to_vec()).unwrap().replace(['\n', '\r'], " "));
    }
    lines
}
