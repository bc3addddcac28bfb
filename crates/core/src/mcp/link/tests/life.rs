//! A random life of a link: every four bytes are one step of somebody's. Also compiled into the fuzz target `link`.

use std::time::Duration;

use super::{
    fake::{Asked, Question, Request},
    world::{Call, ClientPhase, Fate, Owner, World, mark, parse},
};
use crate::{
    mcp::{
        AcceptedFormats, CallFault, ClientClass, Era, EraDiscovery, LinkSettings, Method, UpstreamKind,
        link::LinkHoldings,
    },
    wire::{MessageKind, frame::EventId},
};

/// Clients, and server requests, with the same few ids and tokens, so that they meet.
pub(crate) const IDS: [&str; 5] = ["1", r#""1""#, "2", "9007199254740993", r#""a""#];
pub(crate) const TOKENS: [&str; 6] = ["", "", "1", r#""1""#, r#""t""#, "0"];
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// In milliseconds: short ones mostly, or every call would time out.
const TIMES: [u64; 14] = [0, 1, 50, 100, 200, 500, 500, 1000, 1000, 2000, 16_000, 31_000, 61_000, 130_000];
/// A line that is longer than the link takes.
const LIMIT: usize = 1000;

/// Lives the life that the bytes say. Panics where the link does not keep its word.
pub(crate) fn live(program: &[u8]) {
    let mut steps = program.chunks_exact(4).map(|step| [step[0], step[1], step[2], step[3]]);
    let first = steps.next().unwrap_or_default();
    let mut world = World::new(settings(first));
    world.most_clients = if world.settings.alone { 1 } else { 1 + usize::from(first[3] % 4) };
    for step in steps {
        world.step(step);
    }
    world.end();
}

fn settings([flags, timeout, warm, _]: [u8; 4]) -> LinkSettings {
    let has = |bit: u8| flags & bit != 0;
    LinkSettings {
        request_timeout: (!timeout.is_multiple_of(4)).then_some(Duration::from_secs(30)),
        max_request_time: Duration::from_secs(90),
        start_timeout: (!warm.is_multiple_of(5)).then_some(Duration::from_secs(120)),
        leaving_cancels: timeout.is_multiple_of(8),
        max_message_bytes: LIMIT,
        keep_warm: Duration::from_secs(u64::from(warm % 3) * 20),
        keep_stateless: Duration::from_secs(60),
        idle_stop: has(128).then_some(Duration::from_secs(45)),
        strict_streams: has(1),
        class: ClientClass { sampling: has(2), ..ClientClass::NONE },
        alone: has(4) && has(8),
        opening: EraDiscovery::Pinned(if has(32) && has(64) { Era::Modern } else { Era::Legacy }),
        prefers: Era::Modern,
        wire: UpstreamKind::Pipe,
        exclusive: has(2) && has(16),
        number: 7,
    }
}

impl World {
    fn step(&mut self, [what, a, b, c]: [u8; 4]) {
        let at = usize::from(a);
        match what % 50 {
            0 | 1 => self.step_open(a, b),
            2..=6 => self.step_call(at, "tools/call", r#","name":"t""#, b, c),
            7 => {
                let (method, params) = [
                    ("prompts/get", r#","name":"p""#),
                    ("tools/list", ""),
                    ("ping", ""),
                    ("logging/setLevel", r#","level":"debug""#),
                    ("logging/setLevel", r#","level":"error""#),
                    ("resources/subscribe", r#","uri":"file:///a""#),
                    ("resources/subscribe", r#","uri":"file:///a/b""#),
                    ("resources/unsubscribe", r#","uri":"file:///a""#),
                ][usize::from(c % 8)];
                self.step_call(at, method, params, b, b);
            }
            8 => self.step_batch(at, b, c),
            9 => self.step_cancel(at, b),
            10 | 32..=34 => self.step_answer(at, b, c),
            11 | 37 => self.step_listen(at, b),
            12 => {
                let stream = nth(self.streams.keys().copied(), at);
                stream.into_iter().for_each(|stream| self.drop_stream(stream));
            }
            13 => self.step_leave(at),
            14 => {
                let client = nth(self.open_clients().into_iter(), at);
                client.into_iter().for_each(|client| self.close(client));
            }
            15 => self.step_stateless(b, c),
            16 => self.step_greet(a),
            17..=20 => self.step_serve(at, b),
            21 | 22 | 38 => self.step_progress(at, b),
            23 => self.step_log(at, b),
            24 | 35 | 36 => self.step_ask(at, b, c),
            25 => self.step_withdraw(at),
            26 => self.step_noise(b, c),
            27 => self.step_too_long(at, b),
            28 if a < 64 && self.server.is_some() => self.exit(),
            29 | 30 => self.pass(Duration::from_millis(TIMES[at % TIMES.len()])),
            39..=42 => self.step_modern(a, b, c),
            43..=45 => self.step_resume(at, b, c),
            46 => self.step_attend(a, b),
            47 | 48 => self.step_acknowledge(at, b),
            31 => drop(self.link.probe(self.now).map(|id| self.link.handle_left(id, self.now))),
            _ => {}
        }
        self.act();
    }

    // --- Clients ---

    fn open_clients(&self) -> Vec<usize> {
        (0..self.clients.len()).filter(|at| self.clients[*at].phase == ClientPhase::Open).collect()
    }

    fn step_open(&mut self, a: u8, b: u8) {
        let alive = self.clients.iter().filter(|client| client.phase != ClientPhase::Over).count();
        let over = self.settings.alone && !self.clients.is_empty();
        if alive < self.most_clients && !over {
            let capabilities = if self.settings.class.sampling { r#"{"sampling":{}}"# } else { "{}" };
            self.open(REVISIONS[usize::from(a) % 3], capabilities);
            if !b.is_multiple_of(4) {
                self.step_greet(b);
            }
        }
    }

    fn step_call(&mut self, client: usize, method: &'static str, params: &'static str, b: u8, c: u8) {
        if let Some(client) = nth(self.open_clients().into_iter(), client) {
            let (call, message) = self.prepare(Owner::Client(client), method, params, b, c);
            self.call(call, parse(&message));
        }
    }

    fn step_stateless(&mut self, b: u8, c: u8) {
        if !self.settings.alone {
            let owner = Owner::Call(self.calls.len());
            let (call, message) = self.prepare(owner, "tools/call", r#","name":"t""#, b, c);
            self.call(call, parse(&message));
        }
    }

    /// Notes a call and writes its text.
    fn prepare(&mut self, owner: Owner, method: &'static str, params: &'static str, b: u8, c: u8) -> (usize, String) {
        let mark = mark(owner, self.calls.len());
        let (id, token) = (IDS[usize::from(b) % 5], TOKENS[usize::from(b / 5) % 6]);
        let space = if c & 1 == 0 { "" } else { "\n " };
        let text = move |id: &str, new: &str| {
            let token = if token.is_empty() { String::new() } else { format!(r#","_meta":{{"progressToken":{new}}}"#) };
            format!(
                r#"{{{space}"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"mine":"{mark}"{params}{token}}}{space}}}"#
            )
        };
        let accepts = match c >> 1 & 7 {
            0 => AcceptedFormats { json: true, events: false, by_method: false },
            1 => AcceptedFormats { json: false, events: true, by_method: false },
            _ => AcceptedFormats { json: true, events: true, by_method: false },
        };
        let message = text(id, token);
        (self.note(owner, &parse(&message), accepts, Box::new(text)), message)
    }

    fn step_batch(&mut self, client: usize, b: u8, c: u8) {
        let Some(client) = nth(self.open_clients().into_iter(), client) else { return };
        if self.clients[client].revision != "2025-03-26" {
            return;
        }
        let methods = ["tools/call", "ping", "tools/list"];
        let made: Vec<(usize, String)> = (0..c % 4)
            .map(|n| {
                // Not one id twice in a batch: nobody could tell their answers apart.
                let method = methods[usize::from(b / 5 + n) % 3];
                self.prepare(Owner::Client(client), method, "", (b % 250) + n, c)
            })
            .collect();
        let (calls, texts): (Vec<usize>, Vec<String>) = made.into_iter().unzip();
        let messages = texts.iter().map(|text| parse(text)).collect();
        match self.link.batch(self.clients[client].key, messages, false, self.now) {
            Ok(Some(stream)) => {
                calls.iter().for_each(|call| self.calls[*call].fate = Fate::Streaming(stream));
                self.attach(stream, Owner::Client(client), calls);
            }
            _ => calls.iter().for_each(|call| self.calls[*call].fate = Fate::Silent),
        }
    }

    fn step_cancel(&mut self, client: usize, b: u8) {
        let Some(client) = nth(self.open_clients().into_iter(), client) else { return };
        let id = IDS[usize::from(b) % 5];
        let runs = |call: &Call| call.owner == Owner::Client(client) && call.id == id && !call.is_settled();
        let named: Vec<usize> = (0..self.calls.len()).filter(|at| runs(&self.calls[*at])).collect();
        // What has become of a call whose stream broke, its client does not know.
        if named.iter().any(|at| self.calls[*at].fate == Fate::Detached) {
            return;
        }
        let one = if let [one] = named[..] { Some(one) } else { None };
        if let Some(call) = one.map(|one| &mut self.calls[one]) {
            call.cancelled = true;
            // One of a batch just falls silent; its stream goes on for the others.
            if let Fate::Streaming(stream) = call.fate
                && self.streams[&stream].calls.len() > 1
            {
                call.fate = Fate::Silent;
            }
        }
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        self.link.tell(Some(self.clients[client].key), parse(&text), self.now);
        self.act();
        for at in named {
            assert_eq!(self.calls[at].fate == Fate::Silent, one.is_some(), "cancelled is what is named, if it is one");
        }
    }

    fn step_answer(&mut self, client: usize, b: u8, c: u8) {
        let Some(client) = nth(self.open_clients().into_iter(), client) else { return };
        let asked = nth(self.clients[client].questions.keys().copied(), usize::from(b));
        // Sometimes a number that another was given, or nobody.
        let number = asked.filter(|_| !c.is_multiple_of(4)).unwrap_or_else(|| u64::from(b % 4));
        self.clients[client].questions.remove(&number);
        let mark = mark(Owner::Client(client), 0);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"text":"{mark}"}}}}"#);
        self.link.tell(Some(self.clients[client].key), parse(&text), self.now);
    }

    fn step_listen(&mut self, client: usize, b: u8) {
        let Some(client) = nth(self.open_clients().into_iter(), client) else { return };
        let mut had: Vec<EventId> = self.clients[client].events.keys().copied().collect();
        had.sort_unstable_by_key(|id| (id.stream, id.event));
        let after = match b % 4 {
            0 => None,
            1 => Some(EventId { stream: u64::from(b / 4), event: 99 }),
            _ => nth(had.iter().copied(), usize::from(b)),
        };
        let track = after.map_or(0, |id| id.stream);
        let calls = self.clients[client].tracks.get(&track).cloned().unwrap_or_default();
        let is_running = |id: u64| self.server.as_ref().is_some_and(|server| server.is_running(id));
        let running = calls.iter().any(|call| self.calls[*call].wire.is_some_and(is_running));
        match self.link.listen(self.clients[client].key, after, false, self.now) {
            Ok(stream) => {
                let open: Vec<usize> = calls.iter().copied().filter(|call| !self.calls[*call].is_settled()).collect();
                open.into_iter().for_each(|call| self.calls[call].fate = Fate::Streaming(stream));
                self.attach(stream, Owner::Client(client), calls);
                self.act();
                self.assert_resumed(client, after, &had);
            }
            Err(refusal) => {
                let known = after.is_some_and(|after| had.contains(&after));
                assert!(after.is_some() && !(known && (running || track == 0)), "{refusal:?} {after:?}");
            }
        }
    }

    /// What a client had after the event it names comes again, and without one nothing does (B-28).
    fn assert_resumed(&self, client: usize, after: Option<EventId>, had: &[EventId]) {
        for id in had {
            // A question that is open elsewhere or over is not asked again.
            let asked = matches!(parse(&self.clients[client].events[id]).kind(), MessageKind::Request(_));
            let again = after.is_some_and(|after| after.stream == id.stream && after.event < id.event);
            assert!(asked || self.last_events.contains(id) == again, "{id} after {after:?}: {:?}", self.last_events);
        }
    }

    fn step_leave(&mut self, at: usize) {
        let Some((id, call)) = nth(self.waiting.iter().map(|(id, call)| (*id, *call)), at) else { return };
        self.waiting.remove(&id);
        self.calls[call].fate = Fate::Silent;
        if let (Owner::Client(client), Method::Initialize) = (self.calls[call].owner, self.calls[call].method) {
            self.clients[client].phase = ClientPhase::Over;
        }
        self.link.handle_left(id, self.now);
    }

    // --- The server ---

    fn step_greet(&mut self, how: u8) {
        let Some(id) = self.server.as_mut().and_then(super::fake::Server::greet) else { return };
        let versions = if self.is_modern() { r#""supportedVersions":["2026-07-28"],"# } else { "" };
        let answer = match how % 16 {
            0 => r#""error":{"code":-1,"message":"no"}"#.to_owned(),
            4 => r#""result":7"#.to_owned(),
            how => {
                let tools = if how == 8 { r#","tools":{}"# } else { r#","tools":{"listChanged":true}"# };
                format!(
                    r#""result":{{{versions}"capabilities":{{"logging":{{}},"resources":{{"subscribe":true}}{tools}}},"serverInfo":{{"name":"s"}}}}"#
                )
            }
        };
        self.server_says(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
    }

    fn step_serve(&mut self, at: usize, how: u8) {
        let Some(request) = self.server.as_mut().and_then(|server| server.take(at)) else { return };
        self.serve(&request, how);
    }

    fn serve(&mut self, request: &Request, how: u8) {
        let Request { id, call, method, .. } = *request;
        let mark = call.map(|call| mark(self.calls[call].owner, call)).unwrap_or_default();
        let result = match how % 8 {
            0 => format!(r#""error":{{"code":-1,"message":"{mark}"}}"#),
            _ => format!(r#""result":{{"echo":"{mark}"}}"#),
        };
        // Some servers turn ids into strings.
        let id = if how & 8 == 0 { id.to_string() } else { format!("\"{id}\"") };
        if let Some(call) = call {
            self.calls[call].served = true;
        }
        self.server_says(&format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#));
        if let Some(call) = call {
            for call in [&self.calls[call], &self.calls[self.calls[call].latest]] {
                assert!(call.is_settled() || call.fate == Fate::Detached, "{method:?} {} was not answered", call.id);
            }
        }
    }

    fn step_too_long(&mut self, at: usize, how: u8) {
        let Some(request) = self.server.as_mut().and_then(|server| server.take(at)) else { return };
        let (id, long) = (request.id, "x".repeat(LIMIT));
        let line = match how % 2 {
            0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{long}"}}"#),
            _ => format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":{id}}}"#),
        };
        if let Some(call) = request.call {
            self.calls[call].served = true;
        }
        self.server_says(&line);
        if let Some(call) = request.call {
            let call = &self.calls[call];
            assert!(call.is_settled() || call.fate == Fate::Detached, "{} was not failed", call.id);
        }
    }

    /// A call that the server works on, of those that it says something about, and the call's mark.
    fn work(&self, at: usize, of: impl Fn(&Request) -> bool) -> Option<(u64, Owner, String)> {
        let server = self.server.as_ref().filter(|server| server.is_up())?;
        let request = nth(server.requests.iter().filter(|request| request.call.is_some() && of(request)), at)?;
        let call = request.call?;
        let owner = self.calls[call].owner;
        Some((request.id, owner, mark(owner, call)))
    }

    fn step_progress(&mut self, at: usize, b: u8) {
        let stale = self.server.as_ref().and_then(|server| nth(server.done.iter().copied(), at));
        let (token, mark) = match (self.work(at, |_| true), stale) {
            (Some((token, _, mark)), _) if !b.is_multiple_of(8) => (token, mark),
            (_, Some(stale)) => (stale, String::new()),
            _ => return,
        };
        self.server_says(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"message":"{mark}"}}}}"#
        ));
    }

    fn step_log(&mut self, at: usize, b: u8) {
        let Some(server) = &self.server else { return };
        let mark = match server.is_modern() {
            false => {
                let logging = self.work(at, |request| request.may_log(self.now));
                logging.map(|(_, _, mark)| mark).unwrap_or_default()
            }
            // Only what told it a level.
            true => {
                let telling = server.requests.iter().filter(|request| request.level && request.may_log(self.now));
                nth(telling.filter_map(|request| request.call), at)
                    .map(|call| mark(self.calls[call].owner, call))
                    .unwrap_or_default()
            }
        };
        let level = ["debug", "info", "error"][usize::from(b) % 3];
        self.server_says(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"{mark}"}}}}"#
        ));
    }

    fn step_ask(&mut self, at: usize, b: u8, c: u8) {
        // Only these ask (mcp-eras 5.6).
        let Some((asking, owner, mark)) = self.work(at, |request| request.method.may_ask()) else { return };
        if self.is_modern() {
            return self.ask_in_return(asking, &mark);
        }
        let Some(server) = &mut self.server else { return };
        // Ids of its own, which look like ours, and never the same twice while one is open.
        let id =
            if b & 1 == 0 { format!("{}", server.questions.len()) } else { format!("\"{}\"", server.questions.len()) };
        server.questions.push(Question { id: id.clone(), owner, state: Asked::Open });
        let method = if c.is_multiple_of(4) { "roots/list" } else { "sampling/createMessage" };
        self.server_says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"text":"{mark}"}}}}"#));
    }

    fn step_withdraw(&mut self, at: usize) {
        let Some(server) = &mut self.server else { return };
        let open = nth(server.questions.iter_mut().filter(|question| question.state == Asked::Open), at);
        let Some(question) = open else { return };
        question.state = Asked::Withdrawn;
        let id = question.id.clone();
        self.server_says(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }

    fn step_noise(&mut self, b: u8, c: u8) {
        let Some(server) = &mut self.server else { return };
        let ping = format!("\"ping {b}\"");
        let stale = nth(server.done.iter().copied(), usize::from(b)).unwrap_or(0);
        let tag = match (server.is_modern(), nth(server.listening.iter().copied(), usize::from(b))) {
            (true, Some(listen)) => format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}}"#),
            _ => r#""n":1"#.to_owned(),
        };
        let line = match c % 8 {
            0 if server.is_modern() => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
            0 => {
                server.ping(ping.clone());
                format!(r#"{{"jsonrpc":"2.0","id":{ping},"method":"ping"}}"#)
            }
            1 => format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{tag}}}}}"#),
            2 => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"file:///a/b",{tag}}}}}"#
            ),
            3 => "not JSON".to_owned(),
            4 => format!(r#"{{"jsonrpc":"2.0","id":{stale},"result":"late"}}"#),
            5 => r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}"#.to_owned(),
            6 => "x".repeat(2 * LIMIT),
            _ => return self.custom_noise(),
        };
        self.server_says(&line);
        assert!(self.server.as_ref().is_none_or(|server| !server.has_open_pings()), "a ping was not answered");
    }

    /// A note that no revision knows: outside of any call every session that listens hears it (R-19).
    fn custom_noise(&mut self) {
        let Some(server) = &self.server else { return };
        let idle = server.requests.iter().all(|request| request.call.is_none());
        let listens = |client: &usize| {
            let own = self.streams.values().filter(|stream| stream.owner == Owner::Client(*client));
            own.filter(|stream| stream.calls.is_empty()).any(|stream| stream.at.is_none_or(|at| at.stream == 0))
        };
        let custom = "notifications/custom";
        let heard = |world: &Self, client: usize| {
            world.clients[client].events.values().filter(|text| text.contains(custom)).count()
        };
        let listening: Vec<usize> = self.open_clients().into_iter().filter(listens).collect();
        let before: Vec<usize> = listening.iter().map(|client| heard(self, *client)).collect();
        self.server_says(&format!(r#"{{"jsonrpc":"2.0","method":"{custom}"}}"#));
        for (client, before) in listening.into_iter().zip(before).filter(|_| idle) {
            assert_eq!(heard(self, client), before + 1, "client {client} has not heard what belongs to no call");
        }
    }

    // --- The end ---

    /// The server answers everything, everybody leaves, time passes: nothing is left.
    fn end(&mut self) {
        // As often as the child may have to be started again.
        for _ in 0..5 {
            self.step_greet(1);
            self.resume_all();
            if self.is_modern() {
                self.answer_all();
            }
            while let Some(request) = self.server.as_mut().and_then(|server| server.take(0)) {
                self.serve(&request, 1);
            }
            self.pass(Duration::from_secs(3));
        }
        for call in &self.calls {
            assert!(
                call.is_settled() || call.fate == Fate::Detached,
                "{} was never answered: {:?}",
                call.id,
                call.fate
            );
        }
        self.pass(Duration::from_secs(11 * 60));
        for question in self.server.iter().flat_map(|server| &server.questions) {
            assert_ne!(question.state, Asked::Open, "{} was never answered", question.id);
        }
        if self.calls.len().is_multiple_of(4) {
            drop(self.link.shut_down(CallFault::Stopping, self.now));
            self.act();
        }
        for client in 0..self.clients.len() {
            self.close(client);
        }
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            self.drop_stream(stream);
        }
        self.pass(Duration::from_secs(20 * 60));
        assert_eq!(self.link.holdings(), LinkHoldings::default());
        assert!(self.server.is_none() && self.streams.is_empty() && self.link.poll_timeout().is_none());
    }
}

/// One of them, if there are any.
pub(crate) fn nth<T>(among: impl Iterator<Item = T>, at: usize) -> Option<T> {
    let mut among: Vec<T> = among.collect();
    let at = at.checked_rem(among.len())?;
    Some(among.swap_remove(at))
}
