//! Clients that come: with a handshake, on one stream for everything, or as a part of a session of the hub's.

use bytes::Bytes;

use super::{Stage, full, hello};
use crate::{
    mcp::{AcceptedFormats, ClientHello, HubPart, MemberNames, link::SessionKey, replay::ReplayKind},
    wire::Message,
};

/// A client that is about to open a session.
struct Newcomer {
    label: String,
    key: SessionKey,
    message: Message,
    hello: ClientHello,
    by_method: bool,
    part: Option<HubPart>,
}

impl Stage {
    pub(super) fn open(&mut self, words: &str) {
        let Newcomer { label, key, message, hello, by_method, part } = self.newcomer(words);
        let accepts = AcceptedFormats { json: true, events: true, by_method };
        match self.link.open(key, hello, message, accepts, part, self.now) {
            Ok(id) => self.await_answer(id, &label, Some(key), "0"),
            Err(refusal) => self.refused(&label, refusal),
        }
    }

    pub(super) fn missed(&mut self, words: &str) {
        let (label, count) = words.split_once(' ').expect("whose, and how many");
        self.link.missed(self.sessions[label], count.parse().expect("a number"));
    }

    pub(super) fn relay(&mut self, words: &str) {
        let (label, text) = words.split_once(' ').unwrap();
        let (what, text) = match text.split_once(' ').and_then(|(number, text)| Some((number.parse().ok()?, text))) {
            Some((number, text)) => (ReplayKind::Question(number), text),
            None => (ReplayKind::Message, text),
        };
        let text = Bytes::from(full(text));
        self.link.relay(self.sessions[label], &text, what, self.now);
    }

    pub(super) fn open_plain(&mut self, words: &str) {
        let Newcomer { label, key, message, hello, by_method, .. } = self.newcomer(words);
        match self.link.open_plain(key, hello, message, by_method, self.now) {
            Ok(stream) => {
                self.plain.insert(key);
                self.streams.insert(stream, (label, Some(key)));
            }
            Err(refusal) => self.refused(&label, refusal),
        }
    }

    fn newcomer(&mut self, words: &str) -> Newcomer {
        let (mut label, mut revision, mut capabilities, mut by_method, mut number) = ("", "2025-11-25", "{}", false, 0);
        for word in words.split(' ') {
            match word.as_bytes()[0] {
                b'{' => capabilities = word,
                b'0'..=b'9' => revision = word,
                _ if word == "named" => by_method = true,
                _ if word.starts_with("part:") => number = word[5..].parse().unwrap(),
                _ => label = word,
            }
        }
        let (message, hello) = hello(revision, capabilities);
        let key = SessionKey(self.sessions.len() as u128 + 1);
        self.sessions.insert(label.to_owned(), key);
        self.hellos.insert(key, hello.clone());
        let names = Some(MemberNames::new("d", &[]));
        let part = HubPart { home: key, number, names, tells_of_lists: self.settings.alone, numbers_from: 0 };
        let part = (number > 0).then_some(part);
        Newcomer { label: label.to_owned(), key, message, hello, by_method, part }
    }

    pub(super) fn up(&mut self, words: &str) {
        let (labels, how): (Vec<&str>, Vec<&str>) =
            words.split(' ').partition(|word| word.starts_with(char::is_alphabetic) && !word.starts_with("part:"));
        for label in &labels {
            match label.starts_with("modern") {
                true => self.client(label, "", r#"{"id":0,"method":"server/discover","params":{"_meta":{‹{}›}}}"#),
                false => self.open(format!("{label} {}", how.join(" ")).trim_end()),
            }
            self.act();
        }
        if self.initialize.is_some() {
            self.greet("");
            self.act();
        } else if self.discover.is_some() {
            self.discovered("");
            self.act();
        }
        if self.union.is_some() {
            self.acknowledge("");
            self.act();
        }
        for label in labels {
            let welcome = self.heard.remove(label).expect("a welcome");
            assert!(welcome.len() == 1 && welcome[0].contains(r#"serverInfo""#), "{welcome:?}");
        }
        self.heard.clear();
    }
}
