//! What the door adds to a call: one id for it, in Prism's own log, and for Prism's own servers in the notes on either stream
//! and in the result (N-06); and, for the servers `prism` and `workspace`, whose call it is (M-01, W-02).

use std::{borrow::Cow, cell::RefCell, time::SystemTime};

use crate::own_server;
use bytes::Bytes;
use prism_core::wire::{Members, Message, MessageKind, members::JsonString};
use uuid::Uuid;

use super::request::Ingress;
use prism_bridge::{
    access::TrackedRequest,
    admission::CallIdentity,
    drive::{
        Destination, SessionEntry,
        visitor::{self, ClientActivity, ClientTransport},
    },
};
use prism_mcp::{folder, kit::CALLER};

const CORRELATION_ID: &str = "correlation_id";

/// Who makes a call, as far as the door knows.
#[derive(Clone, Copy)]
pub(super) enum CallOrigin<'a> {
    Session(&'a SessionEntry, Ingress),
    /// A session of 2024-11-05.
    Plain(Uuid, &'a ClientActivity),
    /// Nobody that could be told from others by more than this: a legacy call without a session.
    Stranger(Ingress),
    /// A modern client, and what it says of itself.
    Modern(Ingress, &'a str),
}

/// Has a request recorded under the client's own correlation id or a new one, whoever answers it. (R-23)
pub(super) fn recorded(message: &Message, record: &mut TrackedRequest) {
    if matches!(message.kind(), MessageKind::Request(_)) {
        record.known_as(given(message).unwrap_or_else(new_id));
    }
}

/// A request as its server gets it. Prism's own servers are told under which id it is recorded, and who calls over whatever the
/// client says of that; to any other the client's bytes go as they are.
pub(super) fn correlated(
    destination: &Destination,
    from: CallOrigin,
    message: Message,
    record: &mut TrackedRequest,
) -> Message {
    let calls = matches!(message.kind(), MessageKind::Request(method) if method.may_ask());
    if !destination.is_built_in() || !calls {
        return message;
    }
    let wants = [own_server::NAME, prism_workspace::NAME].contains(&destination.config().name.as_str());
    let mark = wants.then(|| from.mark());
    // Of a batch each call has an id of its own.
    let id = given(&message).or(record.correlation_id()).unwrap_or_else(new_id);
    // Without parameters there is nothing to add to, and nothing that could be forged.
    told(&message, id, mark).unwrap_or(message)
}

/// A call with an id, and with the mark in place of any that it has.
fn told(message: &Message, id: Uuid, mark: Option<String>) -> Option<Message> {
    let mut top = Members::read(std::str::from_utf8(message.bytes()).ok()?)?;
    let mut params = Members::read(message.params_text()?)?;
    let mut meta = params.object("_meta").unwrap_or_default();
    meta.set(CORRELATION_ID, JsonString(&id.to_string()).to_string());
    // Of several of that name none may stay.
    meta.remove(CALLER);
    if let Some(mark) = mark {
        meta.set(CALLER, mark);
    }
    let meta = meta.to_string();
    params.set("_meta", meta);
    let params = params.to_string();
    top.set("params", params);
    Message::parse(Bytes::from(top.to_string())).ok()
}

/// Ids whose random part is drawn at a time.
const DRAWN: usize = 128;

/// A new id, a UUID v7 (N-05). Its random part is drawn from the kernel for many at a time: a system call for each request would
/// be the dearest part of its record.
fn new_id() -> Uuid {
    thread_local! {
        static LEFT: RefCell<Vec<[u8; 10]>> = const { RefCell::new(Vec::new()) };
    }
    let random = LEFT.with_borrow_mut(|left| {
        if left.is_empty() {
            let mut drawn = [0; DRAWN * 10];
            getrandom::fill(&mut drawn).ok()?;
            left.extend(drawn.as_chunks().0);
        }
        left.pop()
    });
    let since = SystemTime::UNIX_EPOCH.elapsed().ok().and_then(|since| u64::try_from(since.as_millis()).ok());
    match (random, since) {
        (Some(random), Some(millis)) => uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid(),
        _ => Uuid::now_v7(),
    }
}

/// The id that a client has given its request.
fn given(message: &Message) -> Option<Uuid> {
    correlation_id(&Members::read(message.text(message.params().meta?))?)
}

fn correlation_id(meta: &Members) -> Option<Uuid> {
    meta.string(CORRELATION_ID).map(Cow::into_owned).and_then(|text| Uuid::try_parse(&text).ok())
}

impl CallOrigin<'_> {
    /// Who a call is put down to: what an approval is bound to, and what a person is shown.
    pub(super) fn who(self) -> CallIdentity {
        let of_visit = |visit: &ClientActivity| visit.who().and_then(|who| who.client.clone()).map(|(name, _)| name);
        let unnamed = |way: ClientTransport| format!("a client over {}", way.name());
        let (session, through, caller, client) = match self {
            Self::Session(entry, through) => {
                let client = of_visit(&entry.visit).unwrap_or_else(|| unnamed(entry.visit.way()));
                (Some(entry.id), through, format!("session {}", entry.id), client)
            }
            Self::Plain(id, visit) => {
                let client = of_visit(visit).unwrap_or_else(|| unnamed(ClientTransport::Sse));
                (Some(id), Ingress::default(), format!("session {id}"), client)
            }
            Self::Stranger(through) => {
                let caller = through.instance.map_or_else(|| "no session".to_owned(), |id| format!("stdio {id}"));
                (None, through, caller, unnamed(through.way))
            }
            Self::Modern(through, info) => {
                let caller = through.instance.map_or_else(|| format!("client {info}"), |id| format!("stdio {id}"));
                let client = visitor::read(info).map_or_else(|| unnamed(through.way), |(name, _)| name);
                (None, through, caller, client)
            }
        };
        CallIdentity { session, instance: through.instance, caller, client }
    }

    /// What the server hears of it.
    fn mark(self) -> String {
        let of_visit = |visit: &ClientActivity| visit.who().and_then(|who| who.client.clone()).map(|(name, _)| name);
        let (session, through, way, client) = match self {
            Self::Session(entry, through) => (Some(entry.id), through, entry.visit.way(), of_visit(&entry.visit)),
            Self::Plain(id, visit) => (Some(id), Ingress::default(), ClientTransport::Sse, of_visit(visit)),
            Self::Stranger(through) => (None, through, through.way, None),
            Self::Modern(through, info) => (None, through, through.way, visitor::read(info).map(|(name, _)| name)),
        };
        let mut mark = Members::default();
        mark.set("transport", JsonString(way.name()).to_string());
        for (name, text) in [
            ("session", session.map(|id| id.to_string())),
            ("instance", through.instance.map(|id| id.to_string())),
            ("tmux_pane", through.pane.map(|pane| format!("%{pane}"))),
            ("folder", through.folder.map(folder::escaped)),
            ("client", client),
        ] {
            if let Some(text) = text {
                mark.set(name, JsonString(&text).to_string());
            }
        }
        mark.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn mark(from: CallOrigin) -> Value {
        serde_json::from_str(&from.mark()).expect("a mark is JSON")
    }

    // N-05
    #[test]
    fn each_request_gets_an_id_of_its_own() {
        let ids: Vec<Uuid> = (0..3 * DRAWN).map(|_| new_id()).collect();
        assert!(ids.iter().all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122));
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
        let (seconds, _) = ids[0].get_timestamp().expect("a time").to_unix();
        assert!(SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs().abs_diff(seconds) < 60);
    }

    // M-01
    #[test]
    fn the_door_says_who_calls() {
        let instance = Uuid::now_v7();
        let folder = Some(Path::new("/desk"));
        let shim = Ingress { way: ClientTransport::Stdio, instance: Some(instance), pane: Some(3), folder };
        assert_eq!(mark(CallOrigin::Stranger(Ingress::default())), json!({"transport": "http"}));
        let modern = mark(CallOrigin::Modern(shim, r#"{"name":"a \"client\"","version":"1"}"#));
        assert_eq!(
            modern,
            json!({
                "transport": "stdio", "instance": instance.to_string(), "tmux_pane": "%3", "folder": "/desk",
                "client": "a \"client\"",
            })
        );
        let session = Uuid::now_v7();
        let plain = mark(CallOrigin::Plain(session, &ClientActivity::default()));
        assert_eq!(plain, json!({"transport": "sse", "session": session.to_string()}));
    }

    // M-01
    #[test]
    fn nothing_that_a_client_says_of_the_caller_gets_past_the_door() {
        let forged = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"a":1.50,
            "prism/caller":{"session":"s"},"prism\/calle\u0072":{"session":"t"},"correlation_id":7}}}"#;
        let forged = Message::parse(Bytes::from(forged)).expect("a message");
        for mark in [None, Some(r#"{"transport":"http"}"#.to_owned())] {
            let id = Uuid::now_v7();
            let told = told(&forged, id, mark.clone()).expect("it has parameters");
            let id = JsonString(&id.to_string()).to_string();
            let mark = mark.map_or(String::new(), |mark| format!(r#","prism/caller":{mark}"#));
            let meta = format!(r#"{{"a":1.50,"correlation_id":{id}{mark}}}"#);
            assert!(std::str::from_utf8(told.bytes()).expect("text").contains(&meta), "{told:?}");
        }
    }
}
