//! The modern clients of a random life: calls that stand for themselves, some of them asked and gone on with, and
//! listens. Also compiled into the fuzz target `link`.

use super::{
    life::{IDS, TOKENS, nth},
    world::{Fate, Owner, World, mark, parse},
};
use crate::{
    mcp::{
        AcceptedFormats, ModernCall,
        link::read_state,
        modern::{self, InputRequired, ListenFilter, RoutingHeader, RoutingHeaders},
    },
    wire::MessageKind,
};

/// Who calls what: the same again when it comes back.
#[derive(Clone)]
pub(crate) struct Guest {
    root: usize,
    /// What it calls itself, if it says so: who says the same is the same.
    name: Option<u8>,
    method: &'static str,
    params: &'static str,
    can_answer: bool,
}

/// A call whose client was asked something.
pub(crate) struct Parked {
    guest: Guest,
    /// What leads back to it, as it was written.
    state: String,
    keys: Vec<String>,
}

impl World {
    pub(crate) fn step_modern(&mut self, a: u8, b: u8, c: u8) {
        if self.settings.alone {
            return;
        }
        let (method, params) = [
            ("tools/call", r#","name":"t""#),
            ("tools/call", r#","name":"t""#),
            ("prompts/get", r#","name":"p""#),
            ("tools/list", ""),
        ][usize::from(a) % 4];
        let can_answer = self.settings.class.sampling && a < 192;
        let name = Some(a % 3).filter(|_| b < 128);
        let guest = Guest { root: self.calls.len(), name, method, params, can_answer };
        self.guests.insert(guest.root, guest.clone());
        self.send(&guest, guest.name, "", b, c);
    }

    /// Sends a call of a modern client, or what it says when it comes back. Returns its number.
    fn send(&mut self, guest: &Guest, name: Option<u8>, answers: &str, b: u8, c: u8) -> usize {
        let Guest { root, method, params, can_answer, .. } = *guest;
        let owner = Owner::Call(root);
        let mark = mark(owner, root);
        let (id, token) = (IDS[usize::from(b) % 5], TOKENS[usize::from(b / 5) % 6]);
        let capabilities = if can_answer { r#"{"sampling":{}}"# } else { "{}" };
        let info = name.map(|name| format!(r#","io.modelcontextprotocol/clientInfo":{{"name":"g{name}"}}"#));
        let info = info.unwrap_or_default();
        let envelope = format!(
            r#""io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{capabilities}{info}"#,
            modern::VERSION
        );
        let answers = answers.to_owned();
        let text = move |id: &str, token: &str, envelope: &str| {
            let comma = if token.is_empty() || envelope.is_empty() { "" } else { "," };
            let token = if token.is_empty() { String::new() } else { format!(r#""progressToken":{token}"#) };
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"mine":"{mark}"{params},"_meta":{{{token}{comma}{envelope}}}{answers}}}}}"#
            )
        };
        let message = parse(&text(id, token, &envelope));
        let shown = if self.is_modern() { envelope } else { String::new() };
        let upstream = move |id: &str, new: &str| text(id, if token.is_empty() { "" } else { new }, &shown);
        let accepts = match c & 7 {
            0 => AcceptedFormats { json: true, events: false, by_method: false },
            1 => AcceptedFormats { json: false, events: true, by_method: false },
            _ => AcceptedFormats { json: true, events: true, by_method: false },
        };
        let at = self.note(owner, &message, accepts, Box::new(upstream));
        self.calls[at].root = root;
        let MessageKind::Request(kind) = message.kind() else { panic!("a request") };
        let named = message.string(message.params().name).unwrap_or_default().into_owned();
        let headers = RoutingHeaders {
            version: RoutingHeader::Once(modern::VERSION),
            method: RoutingHeader::Once(method),
            name: RoutingHeader::Once(&named),
        };
        self.tickets += 1;
        let ask = ModernCall {
            envelope: modern::check(&message, kind, &headers).unwrap(),
            headers: Vec::new(),
            accepts,
            names: None,
            fetch: false,
            ticket: self.tickets,
            resumes: message.string(message.params().request_state).and_then(|state| Some(read_state(&state)?.1)),
            evicts: c & 0xF0 == 0xF0,
            movable: false,
            message,
        };
        match self.link.ask(ask, self.now) {
            Ok(id) => drop(self.waiting.insert(id, at)),
            Err(_) => self.calls[at].fate = Fate::Silent,
        }
        at
    }

    /// Whether two are one client, as far as anybody can tell.
    pub(crate) fn is_same(&self, one: Owner, other: Owner) -> bool {
        let name = |owner: Owner| match owner {
            Owner::Call(root) => self.guests.get(&root).and_then(|guest| guest.name),
            Owner::Client(_) => None,
        };
        one == other || (name(one).is_some() && name(one) == name(other))
    }

    /// Notes what a modern client was asked in the place of an answer.
    pub(crate) fn note_questions(&mut self, at: usize, text: &str) {
        let message = parse(text);
        let Some(asked) = message.result_span().and_then(|span| InputRequired::read(message.text(span))) else {
            return;
        };
        // What a modern server asks is between it and its client.
        if self.is_modern() {
            return;
        }
        let guest = self.guests[&self.calls[at].root].clone();
        let keys = asked.requests.into_iter().map(|request| request.key).collect();
        self.parked.push(Parked { guest, state: asked.state.expect("a way back").into(), keys });
    }

    /// A client comes back; or another one, with what is not its own.
    pub(crate) fn step_resume(&mut self, at: usize, b: u8, c: u8) {
        let Some(at) = at.checked_rem(self.parked.len()) else { return };
        let thief = b.is_multiple_of(8);
        self.resume(at, thief, b, c);
    }

    fn resume(&mut self, at: usize, thief: bool, b: u8, c: u8) {
        let Parked { guest, state, keys } = &self.parked[at];
        let (guest, root) = (guest.clone(), guest.root);
        let mark = mark(Owner::Call(root), root);
        // Sometimes a part of the answers, or none.
        let given = keys.iter().enumerate().filter(|(n, _)| c >> (n % 3) & 4 == 0);
        let given: Vec<String> = given.map(|(_, key)| format!(r#""{key}":{{"text":"{mark}"}}"#)).collect();
        let answers = format!(r#","inputResponses":{{{}}},"requestState":{state}"#, given.join(","));
        if thief {
            let before = self.link.holdings();
            let call = self.send(&guest, Some(guest.name.map_or(0, |name| name + 1)), &answers, b, c);
            self.act();
            let refused = matches!(self.calls[call].fate, Fate::Answered | Fate::Silent);
            assert!(refused && self.link.holdings() == before, "another client's state is good for nothing");
            return;
        }
        self.parked.swap_remove(at);
        let call = self.send(&guest, guest.name, &answers, b, c);
        self.calls[call].wire = self.calls[root].wire;
        self.calls[root].latest = call;
        self.act();
    }

    pub(crate) fn resume_all(&mut self) {
        while !self.parked.is_empty() {
            self.resume(0, false, 1, 0);
        }
    }

    /// Sessions answer what a modern server asked them: it works on nothing meanwhile.
    pub(crate) fn answer_all(&mut self) {
        for client in 0..self.clients.len() {
            let (key, mark) = (self.clients[client].key, mark(Owner::Client(client), 0));
            for number in std::mem::take(&mut self.clients[client].questions).into_keys() {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"text":"{mark}"}}}}"#);
                self.link.tell(Some(key), parse(&text), self.now);
                self.act();
            }
        }
    }

    /// A modern server asks in the place of an answer.
    pub(crate) fn ask_in_return(&mut self, asking: u64, mark: &str) {
        let Some(server) = &mut self.server else { return };
        let Some(at) = server.requests.iter().position(|request| request.id == asking) else { return };
        let request = server.requests.remove(at);
        server.done.push(request.id);
        if let Some(call) = request.call {
            // A session's call comes again.
            self.calls[call].wire = None;
        }
        self.server_says(&format!(
            r#"{{"jsonrpc":"2.0","id":{asking},"result":{{"resultType":"input_required","inputRequests":{{"k":{{"method":"sampling/createMessage","params":{{"text":"{mark}"}}}}}},"requestState":"s"}}}}"#
        ));
    }

    // --- Listens ---

    pub(crate) fn step_attend(&mut self, a: u8, b: u8) {
        if self.settings.alone || self.streams.values().filter(|stream| stream.listen.is_some()).count() > 3 {
            return;
        }
        let id = IDS[usize::from(b) % 5];
        let uris = ["", r#""file:///a""#, r#""file:///a","file:///a/b""#][usize::from(b / 5) % 3];
        let message = parse(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":{},"resourceSubscriptions":[{uris}]}}}}}}"#,
            a.is_multiple_of(2)
        ));
        let wanted = ListenFilter::read(&message).unwrap();
        if let Ok(stream) = self.link.attend(&message, wanted, false, None, self.now) {
            // It belongs to nobody else.
            self.attach(stream, Owner::Call(usize::MAX), Vec::new());
            if let Some(stream) = self.streams.get_mut(&stream) {
                stream.listen = Some(id.to_owned());
            }
        }
    }

    /// A modern server acknowledges a listen of the link's, or ends one.
    pub(crate) fn step_acknowledge(&mut self, at: usize, b: u8) {
        let Some(server) = &mut self.server else { return };
        let tag = |listen: u64| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}}"#);
        if b.is_multiple_of(8) {
            if let Some(listen) = nth(server.listening.iter().chain(&server.listens).copied(), at) {
                server.listening.retain(|one| *one != listen);
                server.listens.retain(|one| *one != listen);
                self.server_says(&format!(r#"{{"jsonrpc":"2.0","id":{listen},"result":{{}}}}"#));
            }
        } else if let Some(listen) = nth(server.listens.iter().copied(), at) {
            server.listens.retain(|one| *one != listen);
            server.listening.push(listen);
            let uris = if b & 1 == 0 { r#""file:///a""# } else { r#""file:///a","file:///a/b""# };
            self.server_says(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true,"resourceSubscriptions":[{uris}]}},{}}}}}"#,
                tag(listen)
            ));
        }
    }
}
