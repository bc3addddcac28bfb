//! One client's session on a link: what it can do, its streams, and the questions it was asked.
//!
//! A session has one track for what belongs to no call (its GET streams) and one for each POST that became a stream. A
//! message goes down exactly one track (N-01); an HTTP stream that breaks is attached again with `Last-Event-ID`.

mod kept;
mod pings;

pub use kept::SessionSnapshot;
pub use pings::ClientPings;

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    era::Revision,
    hello::{ClientClass, ClientHello},
    level::LogLevel,
    link::{LinkAction, LinkRefusal, SessionKey, StreamKey, WireId},
    names::MemberNames,
    replay::{LostEvents, Replay, ReplayKind},
};
use crate::wire::{
    Method,
    frame::{self, EventId},
    text,
};

/// How long the events of a finished POST stream are kept for a client that lost its end.
const RETENTION: Duration = Duration::from_secs(5 * 60);
/// Finished POST streams kept per session; the oldest goes first.
const MAX_FINISHED: usize = 8;
/// Bytes of them kept per session.
const MAX_FINISHED_BYTES: usize = 1 << 20;
/// Bytes kept of all POST streams of a session, running ones included. Beyond it a stream forgets its oldest events.
const MAX_POST_BYTES: usize = 8 << 20;
/// The number of the track that belongs to no call.
const STANDALONE: u64 = 0;
/// Questions of other links that a session may have open. Beyond it they are dropped: a person cannot answer that many.
const MAX_GUESTS: usize = 64;

#[derive(Debug)]
pub struct Session {
    pub revision: Revision,
    pub class: ClientClass,
    pub level: Option<LogLevel>,
    /// What the client calls itself, as it wrote it.
    pub info: Box<str>,
    /// Everything goes down its one stream, without ids, and it ends with it (2024-11-05).
    plain: bool,
    pub part: Option<HubPart>,
    /// Resources that its client watches under the hub's names, where those are not the names of all.
    pub aliases: HashMap<String, MemberNames>,
    /// Calls that the server has not answered yet.
    pub calls: usize,
    standalone: Replay,
    /// Open GET streams, the newest last.
    gets: Vec<Get>,
    /// The newest standalone event that is known to have left on a stream which is gone.
    had: u64,
    posts: Vec<Post>,
    last_post: u64,
    pub questions: Vec<SessionQuestion>,
    last_question: u64,
    /// How it is asked whether its client is there, if anybody wants to know.
    pub pings: Option<Box<ClientPings>>,
    saved: Saved,
}

/// What of a session is where it outlives the daemon.
#[derive(Debug, Default)]
enum Saved {
    /// Nothing, and nothing is to be.
    #[default]
    Never,
    /// All but what has changed after this event of its own stream; and whether the shell knows that anything has.
    Until { event: u64, changed: bool },
}

/// A session of the hub's has its streams at one link, its home, and a part at each server that it uses (B-27). What a
/// part says that belongs to no call is said at home.
#[derive(Clone, Debug)]
pub struct HubPart {
    pub home: SessionKey,
    /// From 1 on. It is in every number that the client gets to see, so that what comes back finds the part it is for.
    pub number: u32,
    /// How the client calls what the server has, where that is not as the server does.
    pub names: Option<MemberNames>,
    /// Whether the client hears from here, and from nobody else, that this server's lists have changed.
    pub tells_of_lists: bool,
    /// What the lower halves of its numbers come after: another part of this number may have been there before.
    pub numbers_from: u32,
}

/// An open GET stream, and the event it goes on from.
#[derive(Debug)]
struct Get {
    stream: StreamKey,
    from: u64,
    /// Its client has said that it goes on from there.
    resumes: bool,
    /// Its events are named after their methods (N-03).
    by_method: bool,
}

/// A POST that became a stream.
#[derive(Debug)]
struct Post {
    number: u64,
    replay: Replay,
    attached: Option<StreamKey>,
    by_method: bool,
    /// Calls on it that are not answered yet: one, or as many as a batch had.
    open: usize,
    finished: Option<Instant>,
    /// Its events are to be saved: nobody was there to have the last of them.
    unsaved: bool,
}

/// A server's request that this client was asked and has not answered.
#[derive(Debug)]
pub struct SessionQuestion {
    /// Our id for it, towards the client.
    pub number: u64,
    pub asked_by: QuestionOrigin,
    pub method: Method,
    /// The progress token the server put on it, which only this client may use.
    pub token: Option<Box<str>>,
    pub track: u64,
    shown_on: Option<StreamKey>,
    pub deadline: Instant,
}

/// Where the answer to a question goes.
#[derive(Debug)]
pub enum QuestionOrigin {
    /// To the server that asked it, under its own id, as it wrote it.
    Server(Box<str>),
    /// Into the next round of a call (2026-07-28), under this key.
    Round { call: WireId, key: String },
    /// To a part of this session, at another link.
    Part,
}

impl QuestionOrigin {
    pub fn server_id(&self) -> Option<&str> {
        match self {
            Self::Server(id) => Some(id),
            Self::Round { .. } | Self::Part => None,
        }
    }
}

type Actions = VecDeque<LinkAction>;

impl Session {
    pub fn new(hello: &ClientHello, part: Option<HubPart>) -> Self {
        let first = part.as_ref().map_or(STANDALONE, HubPart::first_number);
        Self {
            revision: hello.revision,
            class: hello.class,
            level: None,
            info: hello.info.get().into(),
            plain: false,
            part,
            aliases: HashMap::new(),
            calls: 0,
            standalone: Replay::default(),
            gets: Vec::new(),
            had: 0,
            posts: Vec::new(),
            last_post: first,
            questions: Vec::new(),
            last_question: first,
            pings: None,
            saved: Saved::Never,
        }
    }

    /// Makes a stream the one and only of this session (2024-11-05).
    pub fn make_plain(&mut self, stream: StreamKey, by_method: bool) {
        self.plain = true;
        self.gets.push(Get { stream, from: 0, resumes: false, by_method });
    }

    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// The track of what belongs to no call.
    pub fn standalone_track(&self) -> u64 {
        STANDALONE
    }

    /// Whether its client hears from here that a list has changed.
    pub fn hears_of_lists(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.tells_of_lists)
    }

    /// The names under which its client hears that a resource has changed, where those are not the server's own.
    pub fn names_of(&self, uri: &str) -> Option<MemberNames> {
        let of_all = self.part.as_ref().and_then(|part| part.names.as_ref());
        // What is told of may lie below what is watched.
        let alias = || self.aliases.iter().find(|(watched, _)| uri.starts_with(watched.as_str()));
        of_all.or_else(|| Some(alias()?.1)).cloned()
    }

    pub fn has_get_stream(&self) -> bool {
        !self.gets.is_empty()
    }

    /// Whether this is one of its GET streams.
    pub fn has_get(&self, stream: StreamKey) -> bool {
        self.gets.iter().any(|get| get.stream == stream)
    }

    // --- GET streams ---

    /// Attaches a GET stream: to the standalone track, or to the track of the event it goes on from.
    pub fn listen(
        &mut self,
        stream: StreamKey,
        after: Option<EventId>,
        by_method: bool,
        actions: &mut Actions,
    ) -> Result<(), LinkRefusal> {
        match after {
            Some(EventId { stream: number, event }) if number != STANDALONE => {
                let at = self.posts.iter().position(|post| post.number == number && post.replay.has_sent(event));
                let post = at.and_then(|at| self.posts.get_mut(at)).ok_or(LinkRefusal::UnknownEvent)?;
                // The newest connection is the one the client reads.
                if let Some(old) = post.attached.replace(stream) {
                    actions.push_back(LinkAction::End(old));
                }
                post.by_method = by_method;
                post.replay.mark_forgotten(event);
                for (number, bytes, what) in post.replay.after(event) {
                    let Some(bytes) = told(EventId { stream: post.number, event: number }, bytes, what, self.level)
                    else {
                        continue;
                    };
                    actions.push_back(LinkAction::Event { stream, number, bytes: named(&bytes, by_method) });
                }
                post.replay.mark_delivered();
                if post.open == 0 {
                    post.attached = None;
                    actions.push_back(LinkAction::End(stream));
                }
            }
            _ => {
                let from = match after {
                    Some(EventId { event, .. }) if !self.standalone.has_sent(event) => {
                        return Err(LinkRefusal::UnknownEvent);
                    }
                    Some(EventId { event, .. }) => event,
                    None => {
                        if self.revision.knows_priming_events() {
                            let id = EventId { stream: STANDALONE, event: self.standalone.delivered() };
                            actions.push_back(LinkAction::Event { stream, number: 0, bytes: frame::priming_event(id) });
                        }
                        self.standalone.delivered()
                    }
                };
                self.standalone.mark_forgotten(from);
                for (number, bytes, what) in self.standalone.after(from) {
                    if let ReplayKind::Question(asked) = what {
                        let open = |shown: StreamKey| self.gets.iter().any(|get| get.stream == shown);
                        match self.questions.iter_mut().find(|question| question.number == *asked) {
                            // Another open stream of this client shows it already.
                            Some(question) if question.shown_on.is_some_and(open) => continue,
                            Some(question) => question.shown_on = Some(stream),
                            None => continue,
                        }
                    }
                    let Some(bytes) = told(EventId { stream: STANDALONE, event: number }, bytes, what, self.level)
                    else {
                        continue;
                    };
                    actions.push_back(LinkAction::Event { stream, number, bytes: named(&bytes, by_method) });
                }
                self.standalone.mark_delivered();
                self.gets.push(Get { stream, from, resumes: after.is_some(), by_method });
            }
        }
        Ok(())
    }

    /// Sends something that belongs to no call. `strict` keeps it to one stream where several are open (B-12).
    pub fn send_standalone(&mut self, parts: &[&[u8]], what: ReplayKind, strict: bool, actions: &mut Actions) {
        if let Some(HubPart { home, .. }) = self.part {
            return actions.push_back(LinkAction::Relay { home, text: parts.concat().into(), what });
        }
        if self.gets.is_empty() && self.standalone.holds_undelivered(&what) {
            return;
        }
        let id = EventId { stream: STANDALONE, event: self.standalone.next_number() };
        let bytes = frame::event((!self.plain).then_some(id), parts);
        let only_one = strict || matches!(what, ReplayKind::Question(_));
        if let (ReplayKind::Question(number), Some(newest)) = (&what, self.gets.last())
            && let Some(question) = self.questions.iter_mut().find(|q| q.number == *number)
        {
            question.shown_on = Some(newest.stream);
        }
        let first = if only_one { self.gets.len().saturating_sub(1) } else { 0 };
        for get in &self.gets[first..] {
            let bytes = named(&bytes, get.by_method);
            actions.push_back(LinkAction::Event { stream: get.stream, number: id.event, bytes });
        }
        if self.plain {
            // Nobody can ask for it again.
            return;
        }
        // That a list or a resource may have changed is told anyway when a session is taken up again.
        let worth_saving = what == ReplayKind::Message;
        let lost = self.standalone.push(bytes, what);
        if lost > 0 {
            actions.push_back(LinkAction::Dropped(lost));
        }
        self.told_more(worth_saving, actions);
        if !self.gets.is_empty() {
            self.standalone.mark_delivered();
        }
    }

    /// Sends something on the streams that are open now and on no other, ever. Returns them.
    pub fn ring(&mut self, parts: &[&[u8]], strict: bool, actions: &mut Actions) -> Vec<StreamKey> {
        // What is a part has no streams of its own.
        let first = if strict { self.gets.len().saturating_sub(1) } else { 0 };
        let Some(gets) = self.gets.get(first..).filter(|gets| !gets.is_empty()) else { return Vec::new() };
        let id = EventId { stream: STANDALONE, event: self.standalone.next_number() };
        let bytes = frame::event((!self.plain).then_some(id), parts);
        for get in gets {
            let bytes = named(&bytes, get.by_method);
            actions.push_back(LinkAction::Event { stream: get.stream, number: id.event, bytes });
        }
        let told = gets.iter().map(|get| get.stream).collect();
        if !self.plain {
            self.standalone.skip();
            self.standalone.mark_delivered();
            self.told_more(false, actions);
        }
        told
    }

    // --- POST streams ---

    /// Turns a POST into a stream for that many calls. Returns its track.
    pub fn open_post(&mut self, stream: StreamKey, calls: usize, by_method: bool, actions: &mut Actions) -> u64 {
        self.last_post += 1;
        let number = self.last_post;
        if self.revision.knows_priming_events() {
            let id = EventId { stream: number, event: 0 };
            actions.push_back(LinkAction::Event { stream, number: 0, bytes: frame::priming_event(id) });
        }
        let replay = Replay::default();
        let attached = Some(stream);
        let post = Post { number, replay, attached, by_method, open: calls, finished: None, unsaved: false };
        self.posts.push(post);
        number
    }

    /// Sends something on the track of a POST.
    pub fn send_post(&mut self, track: u64, parts: &[&[u8]], what: ReplayKind, actions: &mut Actions) {
        let kept: usize = self.posts.iter().map(|post| post.replay.kept_bytes()).sum();
        let Some(post) = self.posts.iter_mut().find(|post| post.number == track) else { return };
        let id = EventId { stream: track, event: post.replay.next_number() };
        let bytes = frame::event(Some(id), parts);
        if let Some(stream) = post.attached {
            actions.push_back(LinkAction::Event { stream, number: id.event, bytes: named(&bytes, post.by_method) });
        }
        let mut lost = post.replay.push(bytes, what);
        if kept > MAX_POST_BYTES {
            lost += post.replay.keep_only_newest();
        }
        match post.attached {
            Some(_) => post.replay.mark_delivered(),
            None if lost > 0 => actions.push_back(LinkAction::Dropped(lost)),
            None => {}
        }
    }

    /// Counts one call of a POST's track as over, and ends the stream with the last one.
    pub fn finish_post(&mut self, track: u64, now: Instant, actions: &mut Actions) {
        let Some(post) = self.posts.iter_mut().find(|post| post.number == track) else { return };
        post.open = post.open.saturating_sub(1);
        if post.open > 0 {
            return;
        }
        post.finished = Some(now);
        match post.attached.take() {
            Some(stream) => actions.push_back(LinkAction::End(stream)),
            None => {
                post.unsaved = true;
                self.changed(actions);
            }
        }
        self.forget_finished(now);
    }

    fn forget_finished(&mut self, now: Instant) {
        let (mut count, mut bytes) = (0, 0);
        // From the newest to the oldest, so that the bounds hit the oldest.
        let mut keep: Vec<bool> = Vec::with_capacity(self.posts.len());
        for post in self.posts.iter().rev() {
            let Some(finished) = post.finished else {
                keep.push(true);
                continue;
            };
            count += 1;
            bytes += post.replay.kept_bytes();
            let fits = count <= MAX_FINISHED && (bytes <= MAX_FINISHED_BYTES || count == 1);
            keep.push(fits && now.saturating_duration_since(finished) < RETENTION);
        }
        let mut keep = keep.into_iter().rev();
        self.posts.retain(|_| keep.next().unwrap_or(true));
    }

    /// Detaches an HTTP stream that broke after the given event. What it had not delivered waits for the next one.
    pub fn detach(&mut self, stream: StreamKey, had: u64, actions: &mut Actions) {
        if let Some(at) = self.gets.iter().position(|get| get.stream == stream) {
            self.had = self.had.max(had).max(self.gets.remove(at).from);
            match self.gets.last() {
                // Sent, but into a connection that nobody read any more.
                None => self.standalone.rewind(self.had),
                // Its client was back before it was known to be gone, and has not seen what went to one stream only.
                Some(newest) => {
                    let since = if newest.resumes { had.min(newest.from) } else { had };
                    let (stream_now, by_method) = (newest.stream, newest.by_method);
                    for number in self.standalone.questions_after(since) {
                        let shown = |question: &&mut SessionQuestion| question.shown_on == Some(stream);
                        let question = self.questions.iter_mut().find(|q| q.number == number).filter(shown);
                        let Some(question) = question else { continue };
                        question.shown_on = Some(stream_now);
                        // As a new event: this stream may have gone beyond the old one, and a stream only goes on.
                        let Some(bytes) = self.standalone.forget_question(number) else { continue };
                        let id = EventId { stream: STANDALONE, event: self.standalone.next_number() };
                        let bytes = frame::renumbered(&bytes, id);
                        let shown = named(&bytes, by_method);
                        actions.push_back(LinkAction::Event { stream: stream_now, number: id.event, bytes: shown });
                        self.standalone.push(bytes, ReplayKind::Question(number));
                        self.standalone.mark_delivered();
                        self.told_more(false, actions);
                    }
                }
            }
        }
        for post in &mut self.posts {
            if post.attached == Some(stream) {
                post.attached = None;
            }
        }
    }

    /// Events of its own stream that nobody has had.
    pub fn undelivered(&self) -> usize {
        self.standalone.undelivered()
    }

    /// Bytes of events that are kept for this client.
    pub fn kept_bytes(&self) -> usize {
        self.standalone.kept_bytes() + self.posts.iter().map(|post| post.replay.kept_bytes()).sum::<usize>()
    }

    /// Whether nobody reads the stream of a POST that is not over.
    pub fn is_deserted(&self, track: u64) -> bool {
        self.posts.iter().any(|post| post.number == track && post.attached.is_none() && post.finished.is_none())
    }

    /// Every open HTTP stream of this session.
    pub fn open_streams(&self) -> impl Iterator<Item = StreamKey> {
        self.gets.iter().map(|get| get.stream).chain(self.posts.iter().filter_map(|post| post.attached))
    }

    // --- Questions ---

    /// Notes a question that is about to be sent on a track. Returns our number for it.
    pub fn ask(
        &mut self,
        asked_by: QuestionOrigin,
        method: Method,
        token: Option<&str>,
        track: Option<u64>,
        deadline: Instant,
    ) -> u64 {
        self.last_question += 1;
        self.questions.push(SessionQuestion {
            number: self.last_question,
            asked_by,
            method,
            token: token.map(Into::into),
            track: track.unwrap_or(STANDALONE),
            shown_on: None,
            deadline,
        });
        self.last_question
    }

    /// Notes a question that a part of this session has asked. Returns whether there was room for it.
    pub fn host(&mut self, number: u64, deadline: Instant) -> bool {
        if self.questions.len() >= MAX_GUESTS {
            return false;
        }
        let (asked_by, method, track) = (QuestionOrigin::Part, Method::Other, STANDALONE);
        self.questions.push(SessionQuestion { number, asked_by, method, token: None, track, shown_on: None, deadline });
        true
    }

    /// Takes the question that a client's answer names; `None` if there is none such (any more).
    pub fn take_question(&mut self, matches: impl Fn(&SessionQuestion) -> bool) -> Option<SessionQuestion> {
        let at = self.questions.iter().position(matches)?;
        let question = self.questions.remove(at);
        match question.track {
            STANDALONE => drop(self.standalone.forget_question(question.number)),
            track => {
                if let Some(post) = self.posts.iter_mut().find(|post| post.number == track) {
                    post.replay.forget_question(question.number);
                }
            }
        }
        Some(question)
    }

    /// Sends something about a question where the question went.
    pub fn send_on_track(
        &mut self,
        track: u64,
        parts: &[&[u8]],
        what: ReplayKind,
        strict: bool,
        actions: &mut Actions,
    ) {
        if track == STANDALONE {
            self.send_standalone(parts, what, strict, actions);
        } else {
            self.send_post(track, parts, what, actions);
        }
    }
}

impl HubPart {
    /// The part that a number belongs to, which a client has named; 0 is its home.
    pub fn of(number: u64) -> u32 {
        u32::try_from(number >> u32::BITS).unwrap_or(0)
    }

    /// What its numbers come after.
    fn first_number(&self) -> u64 {
        (u64::from(self.number) << u32::BITS) + u64::from(self.numbers_from)
    }
}

/// An event that is kept, as it is told to a client of this log level; that there is a gap in Prism's own words. `None`: it
/// does not want to be told.
fn told(id: EventId, bytes: &Bytes, what: &ReplayKind, level: Option<LogLevel>) -> Option<Bytes> {
    let ReplayKind::Gap(lost) = what else { return Some(bytes.clone()) };
    level.is_none_or(|least| LogLevel::Warning >= least).then(|| frame::event(Some(id), &[gap_note(*lost).as_bytes()]))
}

fn gap_note(LostEvents { events, logs }: LostEvents) -> String {
    let why = "came while nobody read this stream, which keeps no more than 256, and were dropped";
    warning(format_args!(r#"{{"dropped":{events},"log_notes":{logs},"message":"Up to {events} messages {why}"}}"#))
}

/// What a session is told of what never got to it.
pub(super) fn missed_note(count: u64) -> String {
    let why = "came while Prism had too much to do, and were dropped";
    warning(format_args!(r#"{{"dropped":{count},"message":"{count} messages {why}"}}"#))
}

fn warning(data: std::fmt::Arguments) -> String {
    text::note(Method::Log, format_args!(r#"{{"level":"warning","logger":"prism","data":{data}}}"#))
}

/// An event as a stream's client wants it.
fn named(event: &Bytes, by_method: bool) -> Bytes {
    if by_method { frame::by_method(event) } else { event.clone() }
}
