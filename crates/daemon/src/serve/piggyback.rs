//! The bell on the back of an answer: a client that no bell can be rung for hears of it with the answer to its next tool,
//! whichever server gives it (M-06).

use bytes::Bytes;
use prism_core::{
    mcp::{LinkAnswer, Method},
    wire::{ByteChain, Members, Message, MessageKind, members::JsonString},
};

use super::{DaemonSnapshot, request::Ingress};
use prism_bridge::drive::{Destination, ReplyHead, SessionEntry};
use prism_mesh::tools as signals;

/// Whether the answer to this may carry a bell. Known before the call is made: then its words are gone.
pub(super) fn may_carry(destination: &Destination, message: &Message) -> bool {
    let is_own = || message.string(message.params().name).is_some_and(|name| signals::NAMES.contains(&&*name));
    matches!(message.kind(), MessageKind::Request(Method::ToolsCall)) && !(destination.meets_agents() && is_own())
}

/// An answer to a session's call, with the bell if it rings.
pub(super) fn for_session(server: &DaemonSnapshot, entry: &SessionEntry, head: ReplyHead) -> ReplyHead {
    if !entry.visit.rings() {
        return head;
    }
    with_bell(head, || server.sessions.reached().get()?.piggyback(entry.key()))
}

/// The same for a modern client that came through `prism stdio`.
pub(super) fn for_instance(server: &DaemonSnapshot, through: Ingress, head: ReplyHead) -> ReplyHead {
    let Some(instance) = through.instance.filter(|_| server.sessions.reached().instances_ring()) else { return head };
    with_bell(head, || server.sessions.reached().get()?.piggyback_instance(instance))
}

/// Puts a text to what a tool has said. What is no such answer stays as it is, and nobody is asked for the text.
fn with_bell(head: ReplyHead, bell: impl FnOnce() -> Option<String>) -> ReplyHead {
    match head {
        ReplyHead::Answer(LinkAnswer::Message(chain)) => {
            let carried = carried(&chain, bell);
            ReplyHead::Answer(LinkAnswer::Message(carried.unwrap_or(chain)))
        }
        head => head,
    }
}

fn carried(chain: &ByteChain, bell: impl FnOnce() -> Option<String>) -> Option<ByteChain> {
    let message = Message::parse(Bytes::from(chain.to_vec())).ok()?;
    let span = message.result_span()?;
    let mut result = Members::read(message.text(span))?;
    let said = result.get("content")?.strip_suffix(']')?.trim_end().to_owned();
    let comma = if said.strip_prefix('[')?.trim().is_empty() { "" } else { "," };
    let text = bell()?;
    result.set("content", format!(r#"{said}{comma}{{"type":"text","text":{}}}]"#, JsonString(&text)));
    Some(ByteChain::spliced(&message, span, &result.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: &str) -> Option<String> {
        let carried =
            carried(&ByteChain::from(Bytes::copy_from_slice(answer.as_bytes())), || Some("a \"b\"".to_owned()));
        carried.map(|chain| String::from_utf8(chain.to_vec()).expect("text"))
    }

    // M-06
    #[test]
    fn a_bell_comes_after_what_the_tool_has_said() {
        let bell = r#"{"type":"text","text":"a \"b\""}"#;
        let whole = |content: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":"x","result":{{"a":1.50,"content":{content},"isError":true}}}}"#)
        };
        for (before, after) in [
            ("[]", format!("[{bell}]")),
            ("[ \n ]", format!("[{bell}]")),
            (r#"[{"type":"text","text":"]"} ]"#, format!(r#"[{{"type":"text","text":"]"}},{bell}]"#)),
        ] {
            assert_eq!(told(&whole(before)), Some(whole(&after)), "{before}");
        }
    }

    // M-06
    #[test]
    fn what_is_no_answer_of_a_tool_carries_none_and_nobody_is_asked() {
        for answer in [
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"content":[]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"[]"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        ] {
            let chain = ByteChain::from(Bytes::from(answer));
            assert!(carried(&chain, || panic!("asked")).is_none(), "{answer}");
        }
    }
}
