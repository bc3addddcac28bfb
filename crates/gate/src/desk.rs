//! What the person decides about in an editor: all of it at a glance, and their word on one thing. The same
//! functions decide as in the console and over HTTP; here is only what is particular to a window that is shown little at a time.

use std::collections::HashSet;

use prism_api::gate::{ApproveRequest, ConfirmRequest};
use prism_editor::protocol::{DecideMessage, PendingDecisions, RevokeMessage};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;
use uuid::Uuid;

use super::{Gate, GateError, views::view_of_confirmation};

/// How often anything has changed that a person looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Requests, confirmations and grants that came, changed or went.
    pub waiting: u64,
    /// Actions of grants.
    pub actions: u64,
}

/// What an editor is shown at once.
pub struct DecisionPicture {
    pub desk: PendingDecisions,
    /// Confirmations that are not shown whole.
    pub cut: HashSet<Uuid>,
}

/// The most of each that an editor is shown. The newest are left out beyond it, as they are in lists over HTTP.
const MOST: u32 = 200;
/// The most that is shown of one confirmation, and of all, in characters of JSON. The oldest are shown first, so that what
/// was whole stays whole; what is beyond is cut, which is said.
const MAX_SHOWN: u32 = 256 << 10;
const MAX_SHOWN_IN_ALL: u32 = 8 << 20;
/// What is shown of each in any case: what it is about.
const SHOWN_ALWAYS: u32 = 1 << 10;
/// What is said where something is cut, as JSON has it.
const CUT: &str = "\\n… cut here; `prism console` shows all of it";
/// The longest reason.
const MAX_REASON: usize = 2_000;

impl Gate {
    /// Says when something has changed that a person looks at.
    pub fn changes(&self) -> watch::Receiver<ChangeCounts> {
        self.changes.subscribe()
    }

    pub(super) fn waiting_changed(&self) {
        self.changes.send_modify(|changes| changes.waiting += 1);
    }

    pub(super) fn acted(&self) {
        self.changes.send_modify(|changes| changes.actions += 1);
    }

    /// All that a person can decide about now. It reads the store, and may take a moment. Of configs the gate knows nothing.
    pub fn desk(&self) -> Result<DecisionPicture, GateError> {
        let (mut confirmations, mut cut, mut left) = (Vec::new(), HashSet::new(), MAX_SHOWN_IN_ALL);
        for (id, length) in self.store.waiting_confirmations(MOST)? {
            let room = left.clamp(SHOWN_ALWAYS, MAX_SHOWN);
            left = left.saturating_sub(length.min(room));
            // No more of it is read: together they may be larger than all that is shown of them.
            let Some(mut row) = self.store.beginning_of_confirmation(id, room)? else { continue };
            let is_cut = length > room;
            if is_cut {
                row.shown = closed(&row.shown);
            }
            let mut members = members(&view_of_confirmation(row));
            if is_cut {
                cut.insert(Uuid::from_u128(id));
                members.insert("is_cut".to_owned(), true.into());
            }
            confirmations.push(members);
        }
        confirmations.reverse();
        let requests = self.requests(true)?.iter().map(members).collect();
        let grants = self.grants(true)?.iter().take(MOST as usize).map(members).collect();
        Ok(DecisionPicture { desk: PendingDecisions { requests, confirmations, grants, configs: Vec::new() }, cut })
    }

    /// Takes the person's word from an editor. `by` is on record, and `cut` what they could not see all of.
    pub async fn decide(&self, word: DecideMessage, by: &str, cut: &HashSet<Uuid>) -> Result<(), GateError> {
        if word.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
            return Err(GateError::bad(format!("reason has at most {MAX_REASON} bytes")));
        }
        match (&word.request_id, &word.confirmation_id) {
            (Some(request), None) => {
                let id = read(request).ok_or_else(GateError::unknown_request)?;
                self.decide_request(id, word, by).await
            }
            (None, Some(confirmation)) => {
                let id = read(confirmation).ok_or_else(unknown_confirmation)?;
                let Some(digest) = word.digest else {
                    return Err(GateError::bad("digest is missing: give the one of what was shown"));
                };
                if word.approve && cut.contains(&id) {
                    let why = "not all of it fits in here, so it cannot be allowed from here; see all of it in the \
                               console (`prism console`), or deny it";
                    return Err(GateError::new("too_large", 413, why));
                }
                let (allow, reason) = (word.approve, word.reason.filter(|_| !word.approve));
                let confirmation_id = id.to_string();
                let answer = ConfirmRequest { confirmation_id, digest, allow, uses: None, until_seconds: None, reason };
                // The editors' protocol has one word for what is decided already.
                let one_word = |trouble: GateError| match trouble.code {
                    "not_waiting" => GateError { code: "not_pending", ..trouble },
                    _ => trouble,
                };
                self.confirm(answer, by).await.map(drop).map_err(one_word)
            }
            _ => Err(GateError::bad("name either request_id or confirmation_id")),
        }
    }

    async fn decide_request(&self, request_id: Uuid, word: DecideMessage, by: &str) -> Result<(), GateError> {
        if !word.approve {
            return self.deny(request_id, word.reason, by).await.map(drop);
        }
        let approve = ApproveRequest {
            request_id: request_id.to_string(),
            approved_scopes: word.approved_scopes,
            approved_roots: word.approved_roots,
            ttl_seconds: word.ttl_seconds,
            confirm_changes: word.confirm_changes.unwrap_or(false),
        };
        // The token is the agent's: it claims it, and no editor needs to see it.
        self.approve(approve, by, false).await.map(drop)
    }

    /// The same for the end of a grant.
    pub async fn revoke_from_editor(&self, word: &RevokeMessage, by: &str) -> Result<(), GateError> {
        let id = read(&word.session_id).ok_or_else(GateError::unknown_session)?;
        self.revoke(id, by).await.map(drop)
    }
}

pub(super) fn unknown_confirmation() -> GateError {
    GateError::new("unknown_confirmation", 404, "there is no such confirmation; `prism confirmations` lists them")
}

fn read(id: &str) -> Option<Uuid> {
    Uuid::parse_str(id).ok()
}

fn members(view: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(view) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Makes a whole value of the beginning of one, so that as much of it is shown as there is room for: a text that is cut says so,
/// and what was only begun otherwise is left out.
fn closed(begun: &str) -> String {
    let bytes = begun.as_bytes();
    let mut open: Vec<char> = Vec::new();
    // Where a value ended last, and in how many others.
    let (mut whole, mut depth) = (0, 0);
    let (mut names, mut i) = (false, 0);
    while i < bytes.len() {
        match bytes[i] {
            b'"' => match end_of_text(bytes, i + 1) {
                Ok(end) => {
                    if !names {
                        (whole, depth) = (end, open.len());
                    }
                    i = end;
                    continue;
                }
                Err(cut) if !names => {
                    let closing: String = open.iter().rev().collect();
                    return format!("{}{CUT}\"{closing}", &begun[..cut]);
                }
                Err(_) => break,
            },
            b'{' => {
                open.push('}');
                names = true;
            }
            b'[' => {
                open.push(']');
                names = false;
            }
            b'}' | b']' => {
                open.pop();
                (whole, depth, names) = (i + 1, open.len(), false);
            }
            b':' => names = false,
            b',' => {
                (whole, depth) = (i, open.len());
                names = open.last() == Some(&'}');
            }
            _ => {}
        }
        i += 1;
    }
    open.truncate(depth);
    let closing: String = open.iter().rev().collect();
    format!("{}{closing}", &begun[..whole])
}

/// Where a text ends that begins here, behind its quote; `Err`: it does not, and can be cut there.
fn end_of_text(bytes: &[u8], begin: usize) -> Result<usize, usize> {
    let mut i = begin;
    while i < bytes.len() {
        i += match bytes[i] {
            b'"' => return Ok(i + 1),
            b'\\' => {
                let escape = if bytes.get(i + 1) == Some(&b'u') { 6 } else { 2 };
                if i + escape > bytes.len() {
                    return Err(i);
                }
                escape
            }
            _ => 1,
        };
    }
    Err(bytes.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    //
    #[test]
    fn what_is_too_long_is_cut_anywhere_and_is_still_a_value() {
        for whole in [
            json!({"action": "edit_buffer", "shown": {"kind": "diff", "path": "/a\"\\", "unified": "-é\n+x\u{1}\t\\"}}),
            json!(["a", ["b", {}, {"x": null, "y": [1, 2.5, -3e4, true, false]}], {"": ""}]),
            json!({"n": 12345, "m": [{"z": 1}, {"z": 2}], "o": {"c": "d,e:{}[]"}}),
        ] {
            let text = whole.to_string();
            assert_eq!(closed(&text), text);
            for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
                let closed = closed(&text[..end]);
                let is_value = closed.is_empty() || serde_json::from_str::<Value>(&closed).is_ok();
                assert!(is_value, "{} became {closed}", &text[..end]);
                assert!(closed.len() <= end + CUT.len() + 8, "{closed}");
            }
        }
        let long = json!({"action": "edit_buffer", "shown": {"kind": "diff", "unified": "é".repeat(1000)}}).to_string();
        let shown: Value = serde_json::from_str(&closed(&long[..200])).unwrap();
        assert_eq!((&shown["action"], &shown["shown"]["kind"]), (&json!("edit_buffer"), &json!("diff")));
        assert!(shown["shown"]["unified"].as_str().is_some_and(|text| text.ends_with("shows all of it")), "{shown}");
    }
}
