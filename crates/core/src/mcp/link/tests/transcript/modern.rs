//! The part of a transcript that is of the modern era: clients whose every request stands for itself, and what a modern
//! server says of itself and acknowledges.
//!
//! `modern:x > {…}` is checked as the shell checks it, with headers that say what the body says, and goes to
//! [`Link::ask`](crate::mcp::Link::ask), or to `attend` if it is a listen. Between handle and `>` may stand `json`,
//! `events`, `named` (events by method), `evicts`, `movable`, `fetch` and headers: `Mcp-Param-Region=eu`. What the check refuses comes as
//! `modern:x unfit …`.

use super::{CAPABILITIES, Stage, full, message};
use crate::{
    mcp::{
        AcceptedFormats, ModernCall,
        hello::OWN_INFO,
        level::LogLevel,
        link::read_state,
        modern::{self, ListenFilter, RoutingHeader, RoutingHeaders},
    },
    wire::{Message, MessageKind},
};

impl Stage {
    pub(super) fn modern_client(&mut self, handle: &str, how: &str, text: &str) {
        let message = message(text);
        let MessageKind::Request(method) = message.kind() else { panic!("{:?}: no request", self.line) };
        let name = message.string(message.params().name.or(message.params().uri)).unwrap_or_default();
        let named = message.method().unwrap();
        let headers = RoutingHeaders {
            version: RoutingHeader::Once(modern::VERSION),
            method: RoutingHeader::Once(&named),
            name: RoutingHeader::Once(&name),
        };
        let envelope = match modern::check(&message, method, &headers) {
            Ok(envelope) => envelope,
            Err(unfit) => return self.hear(handle, format!("unfit {unfit:?}")),
        };
        let says = |word: &str| how.split(' ').any(|said| said == word);
        let (by_method, json) = (says("named"), !says("events"));
        if named == "subscriptions/listen" {
            let Some(wanted) = ListenFilter::read(&message) else {
                return self.hear(handle, "unfit filter".to_owned());
            };
            match self.link.attend(&message, wanted, by_method, None, self.now) {
                Ok(stream) => drop(self.streams.insert(stream, (handle.to_owned(), None))),
                Err(refusal) => self.refused(handle, refusal),
            }
            return;
        }
        let params = how.split(' ').filter_map(|word| word.strip_prefix("Mcp-Param-")?.split_once('='));
        let headers = params.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let state = message.string(message.params().request_state);
        let resumes = state.as_deref().and_then(read_state).filter(|(link, _)| *link == self.settings.number);
        self.tickets += 1;
        let ask = ModernCall {
            envelope,
            headers,
            names: None,
            fetch: says("fetch"),
            accepts: AcceptedFormats { json, events: !says("json"), by_method },
            // Digits in the base of sixteen, too: a transcript can name it.
            ticket: u128::from_str_radix(&self.tickets.to_string(), 16).unwrap(),
            resumes: resumes.map(|(_, ticket)| ticket),
            evicts: says("evicts"),
            movable: says("movable"),
            message: message.clone(),
        };
        let id = message.id().unwrap().to_owned();
        match self.link.ask(ask, self.now) {
            Ok(wire) => self.await_answer(wire, handle, None, &id),
            Err(refusal) => self.refused(handle, refusal),
        }
    }

    pub(super) fn discovered(&mut self, capabilities: &str) {
        let id = self.discover.take().expect("the link has sent `server/discover`");
        let capabilities = if capabilities.is_empty() { CAPABILITIES } else { capabilities };
        let info = r#"{"name":"s","version":"2"}"#;
        self.server(
            None,
            &format!(
                r#"{{"id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{info}}}}}}}"#
            ),
        );
    }

    /// The child has read a listen of the link's own.
    pub(super) fn listens_at(&mut self, id: u64, message: &Message) {
        let wanted = ListenFilter::read(message).expect("a listen says what it wants");
        self.union = Some((id, wanted.to_json()));
        self.names.insert("union".to_owned(), id.to_string());
    }

    pub(super) fn acknowledge(&mut self, honoured: &str) {
        let (id, asked) = self.union.take().expect("the link listens");
        let honoured = if honoured.is_empty() { &asked } else { honoured };
        let text = format!(
            r#"{{"method":"notifications/subscriptions/acknowledged","params":{{"notifications":{honoured},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        );
        self.server(None, &full(&text));
    }
}

/// A text with its envelopes, `‹…›`, written out; and `‹#…›`, the tag of a listen.
pub(super) fn unfolded(text: &str) -> String {
    let mut pieces = text.split('‹');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (words, rest) = piece.split_once('›').expect("‹ and › come in pairs");
        match words.strip_prefix('#') {
            Some(id) => out.push_str(&format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#)),
            None if words == "s" => out.push_str(r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#),
            None => out.push_str(&envelope(words)),
        }
        out.push_str(rest);
    }
    out
}

fn envelope(words: &str) -> String {
    let (mut capabilities, mut level, mut info) = ("{}", String::new(), String::new());
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        match word {
            _ if word.starts_with('{') => capabilities = word,
            _ if LogLevel::named(word).is_some() => {
                level = format!(r#","io.modelcontextprotocol/logLevel":"{word}""#);
            }
            "prism" => info = format!(r#","io.modelcontextprotocol/clientInfo":{OWN_INFO}"#),
            _ => info = format!(r#","io.modelcontextprotocol/clientInfo":{{"name":"{word}"}}"#),
        }
    }
    let version = modern::VERSION;
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{capabilities}{info}{level}"#
    )
}
