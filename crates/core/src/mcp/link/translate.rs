//! Messages told in the other side's words: a call on its way to the server, and its answer on the way back
//! (mcp-eras 5.13). Between two of the same era nothing is rewritten but ids and tokens.

use std::time::Instant;

use super::{
    Exchange, ExchangeOwner, Link, LinkAction, Method, ReplyRoute, ToolHeaders, UpstreamKind, WireId,
    ends::TranslatedAnswer, exchange::RequestStanding,
};
use crate::{
    mcp::{
        era::{Era, Revision},
        hello::{ClientClass, OWN_INFO},
        level::LogLevel,
        modern::{self, InputRequest, InputRequired, OwnClientMeta},
        payload,
    },
    wire::{Members, Message, members::JsonString, text},
};

impl Link {
    // --- To the server ---

    /// Sends a client's request to the server, under our id and with our progress token.
    pub(super) fn forward(&mut self, id: WireId, message: &Message) {
        self.send_as(id, id.0, message);
    }

    /// Sends a call once more, under another number: the server has answered the last one.
    pub(super) fn forward_again(&mut self, id: WireId) {
        let number = self.next_id();
        let Some(message) = self.exchanges.get(&id.0).and_then(|e| e.origin.clone()) else { return };
        self.aliases.insert(number.0, id);
        self.send_as(id, number.0, &message);
    }

    fn send_as(&mut self, id: WireId, number: u64, message: &Message) {
        let era = self.era();
        self.set_wire(id, number);
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        match (exchange.modern().map(|modern| &modern.envelope), era) {
            (None, Era::Legacy) => self.write_renumbered(number, message),
            (Some(envelope), Era::Legacy) => {
                let (level, can_be_asked) = (envelope.level, envelope.class.answers_questions());
                if can_be_asked && exchange.method.may_ask() {
                    self.keep_origin(id, message);
                }
                if self.exchanges.get(&id.0).is_some_and(|e| self.wants_floor(e)) {
                    self.takes_floor(id);
                }
                self.raise_level(level);
                self.write_to_legacy(number, message);
            }
            (Some(envelope), Era::Modern) => {
                let level = envelope.level.is_some();
                self.keep_origin(id, message);
                if level && !self.hears_log(id) {
                    let meta = message.params().meta.map(|span| (span, message.text(span)));
                    let meta = meta.map(|(span, text)| (span, modern::meta_without_level(text, number)));
                    self.write_with_meta(number, message, meta);
                } else {
                    self.write_renumbered(number, message);
                }
            }
            (None, Era::Modern) => {
                let session = exchange.session().and_then(|key| self.sessions.get(&key));
                // A client of the older era that has set no level expects the server's own choice, which was `info` or so.
                let (class, mut level) =
                    session.map_or((ClientClass::NONE, None), |s| (s.class, s.level.or(Some(LogLevel::Info))));
                let info = session.map_or_else(|| OWN_INFO.into(), |s| s.info.clone());
                if level.is_some() && !self.hears_log(id) {
                    level = None;
                }
                self.keep_origin(id, message);
                let round = self.exchanges.get(&id.0).and_then(|e| e.rounds.as_deref()).map(|rounds| &rounds.round);
                let text = modern::to_modern(message, number, OwnClientMeta { class, level, info: &info }, round);
                self.output.write_text(&text);
            }
        }
    }

    fn write_renumbered(&mut self, number: u64, message: &Message) {
        let Some(span) = message.id_span() else { return };
        let number = number.to_string();
        let mut edits = [(span, number.as_str()); 2];
        let edits = match message.params().meta_token {
            Some(token) => {
                edits[1].0 = token;
                &mut edits[..]
            }
            None => &mut edits[..1],
        };
        self.output.write(message, edits);
    }

    fn write_to_legacy(&mut self, number: u64, message: &Message) {
        if message.params().input_responses.is_some() || message.params().request_state.is_some() {
            // Answers to questions that were an error of the server's: it is asked again, and knows no such members.
            let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
            let top = Members::read(whole).unwrap_or_default();
            let mut params = top.object("params").unwrap_or_default();
            params.remove("inputResponses");
            params.remove("requestState");
            let meta = modern::meta_to_legacy(params.get("_meta").unwrap_or_default(), number);
            params.set("_meta", meta);
            let method = message.method_text().unwrap_or_default();
            let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":{method},"params":{params}}}"#);
            return self.output.write_text(&text);
        }
        let meta = message.params().meta;
        let meta = meta.map(|span| (span, modern::meta_to_legacy(message.text(span), number)));
        self.write_with_meta(number, message, meta);
    }

    fn write_with_meta(&mut self, number: u64, message: &Message, meta: Option<(crate::wire::ByteSpan, String)>) {
        let Some(span) = message.id_span() else { return };
        let number = number.to_string();
        match &meta {
            Some((at, meta)) => self.output.write(message, &mut [(span, &number), (*at, meta)]),
            None => self.output.write(message, &mut [(span, &number)]),
        }
    }

    fn keep_origin(&mut self, id: WireId, message: &Message) {
        if let Some(exchange) = self.exchanges.get_mut(&id.0)
            && exchange.method.may_ask()
            && exchange.origin.is_none()
        {
            exchange.origin = Some(message.clone());
        }
    }

    /// Notes under which number the server knows a call; 0 if it does not.
    pub(super) fn set_wire(&mut self, id: WireId, number: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let before = std::mem::replace(&mut exchange.wire, number);
        if matches!(exchange.owner, ExchangeOwner::Client { .. }) && exchange.standing != RequestStanding::Ghost {
            self.sent = self.sent + usize::from(number != 0) - usize::from(before != 0);
        }
        if before != id.0 {
            self.aliases.remove(&before);
        }
        if number == 0 {
            self.leaves_floor(id);
        }
    }

    /// Sends a call of the modern era, or answers it where it is ours to answer.
    pub(super) fn dispatch_modern(&mut self, id: WireId, method: Method, message: Message, now: Instant) {
        let legacy = self.era() == Era::Legacy;
        let movable = |e: &Exchange| e.reply == ReplyRoute::Held && e.modern().is_some_and(|modern| modern.movable);
        if legacy && self.exchanges.get(&id.0).is_some_and(movable) {
            // This link is for a server of the modern era: now it is known that it is none.
            self.retire(id);
            if self.calls == 0 {
                // It was started to find that out.
                self.stateless_until = None;
            }
            return self.actions.push_back(LinkAction::Elsewhere(id, message));
        }
        match method {
            Method::Discover => {
                let Some(ExchangeOwner::Client { id: own, .. }) = self.exchanges.get(&id.0).map(|e| &e.owner) else {
                    return;
                };
                let body = self.greeting.as_ref().map(|greeting| greeting.discovery(own)).unwrap_or_default();
                self.finish(id, &[body.as_bytes()], now);
            }
            Method::Other if legacy => self.refuse_modern(id, -32601, "method not found", "", now),
            _ if legacy && message.params().request_state.is_some() => {
                let why = "this `requestState` is not known: it was used, has expired, or is another's";
                self.refuse_modern(id, -32602, why, "", now);
            }
            Method::ToolsCall => {
                let headers = self.exchanges.get(&id.0).and_then(Exchange::modern).map(|modern| &modern.headers);
                match headers.map_or(Ok(()), |headers| self.tools.check(&message, headers)) {
                    Ok(()) => self.forward(id, &message),
                    Err(why) => self.refuse_modern(id, modern::HEADER_MISMATCH, &why, "", now),
                }
            }
            _ if self.shares(id, &message, now) => {}
            _ => self.forward(id, &message),
        }
    }

    /// The `Mcp-Param-*` headers that a request of ours must carry.
    pub fn param_headers(&self, message: &Message) -> Vec<(String, String)> {
        if self.era() == Era::Modern { self.tools.headers(message) } else { Vec::new() }
    }

    // --- To the client ---

    /// The answer of a server of this era in the words of a call's client; `None` if its own will do.
    pub(super) fn reworded(&self, id: WireId, era: Era, message: &Message) -> Option<TranslatedAnswer> {
        let exchange = self.exchanges.get(&id.0)?;
        let ExchangeOwner::Client { id: own, session, modern, names, .. } = &exchange.owner else { return None };
        let method = exchange.method;
        let result = message.result_span().map(|span| message.text(span));
        let listed = era == Era::Modern && method == Method::ToolsList && self.settings.wire == UpstreamKind::Http;
        let sound = result.filter(|_| listed).and_then(ToolHeaders::sound_only);
        let sound = sound.or_else(|| names.as_ref()?.result(method, result?));
        let result = sound.as_deref().or(result);
        let error = message.error_span().map(|span| message.text(span));
        let result_told = |result: &str| TranslatedAnswer { body: text::result(own, result), code: None };
        match (modern, era, result, error) {
            (Some(modern), Era::Legacy, Some(result), _) => {
                if method == Method::ToolsCall
                    && let Some((why, required)) = modern::missing_capability(result, modern.envelope.class)
                {
                    return Some(lacking(own, &why, required));
                }
                Some(result_told(&modern::result_to_modern(method, result, self.greeting.as_ref())))
            }
            (Some(modern), Era::Legacy, None, Some(error)) => {
                if let Some(elicitations) = payload::url_elicitations(error) {
                    return Some(self.urls_asked(own, modern.envelope.class, elicitations));
                }
                Some(error_told(own, &payload::error_to_modern(error).unwrap_or_else(|| error.to_owned())))
            }
            (Some(_), Era::Modern, _, Some(error)) => {
                // Its own three codes mean what they say; the others it must not use either.
                let known = |error: &Members| matches!(error.get("code"), Some("-32020" | "-32021" | "-32022"));
                let told = match Members::read(error).as_ref().is_some_and(known) {
                    true => None,
                    false => payload::error_to_modern(error),
                };
                Some(error_told(own, told.as_deref().unwrap_or(error)))
            }
            (Some(_), Era::Modern, Some(_), _) => sound.as_deref().map(result_told),
            (None, era, Some(result), _) => {
                let revision = session.and_then(|key| self.sessions.get(&key)).map(|session| session.revision);
                let revision = revision.unwrap_or(Revision::NEWEST);
                payload::result_for(revision, era, method, result).or(sound).map(|result| result_told(&result))
            }
            (None, Era::Modern, None, Some(error)) => {
                let uri = exchange.origin.as_ref().and_then(|origin| origin.string(origin.params().uri));
                let error = payload::error_to_legacy(method, uri.as_deref(), error)?;
                Some(TranslatedAnswer { body: text::error(own, error), code: None })
            }
            _ => None,
        }
    }

    /// A server's error that asks to open pages, as questions to a modern client (mcp-eras 5.7 A7). Nothing is kept: the
    /// client calls again when it has done so.
    fn urls_asked(&self, own: &str, class: ClientClass, elicitations: Vec<String>) -> TranslatedAnswer {
        if !class.url {
            return lacking(own, "the client must be able to open a page", r#"{"elicitation":{"url":{}}}"#);
        }
        let requests = elicitations.into_iter().enumerate().map(|(at, params)| InputRequest {
            key: format!("r{}", at + 1),
            method: Method::Elicit,
            params,
        });
        let asked = InputRequired { requests: requests.collect(), state: None };
        TranslatedAnswer { body: asked.write(own, self.greeting.as_ref()), code: None }
    }

    // --- A server that wants other headers ---

    /// Takes an answer that says our headers do not fit a tool as what it is: the tool has changed. Its list is read
    /// again and the call repeated, once (mcp-eras, check 116).
    pub(super) fn retries(&mut self, id: WireId, message: &Message) -> bool {
        let is_mismatch = |error: &str| Members::read(error).is_some_and(|error| error.get("code") == Some("-32020"));
        let Some(exchange) = self.exchanges.get(&id.0) else { return false };
        let first = exchange.origin.is_some() && exchange.method == Method::ToolsCall && exchange.wire == id.0;
        if self.settings.wire != UpstreamKind::Http
            || !first
            || !message.error_span().is_some_and(|span| is_mismatch(message.text(span)))
        {
            return false;
        }
        let latest = exchange.latest;
        self.set_wire(id, 0);
        let refresh = self.ask_on_our_own(Method::ToolsList, "", Some(latest));
        self.refreshing.push((refresh, id));
        true
    }

    /// The list of tools that a call waited for is here, or will not come.
    pub(super) fn tools_refreshed(&mut self, refresh: WireId, message: Option<&Message>) {
        if let Some(result) = message.and_then(|message| message.result_span().map(|span| message.text(span))) {
            self.learn_tools(result);
        }
        let Some(at) = self.refreshing.iter().position(|(id, _)| *id == refresh) else { return };
        let (_, call) = self.refreshing.swap_remove(at);
        self.forward_again(call);
    }
}

/// The error of the modern era that names what a client would have to be able to do.
fn lacking(own: &str, why: &str, required: &str) -> TranslatedAnswer {
    let (code, why) = (modern::MISSING_CAPABILITY, JsonString(why));
    let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
    let body = text::error(own, format_args!(r#"{{"code":{code},"message":{why},"data":{data}}}"#));
    TranslatedAnswer { body, code: Some(code) }
}

fn error_told(own: &str, error: &str) -> TranslatedAnswer {
    let code = Members::read(error).and_then(|error| error.get("code")?.parse().ok());
    let body = text::error(own, error);
    TranslatedAnswer { body, code: Some(code.unwrap_or(-32603)) }
}
