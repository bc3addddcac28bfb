//! Each type against JSON as the daemon writes it, or has promised to (docs/): what is read and written again is the same, and
//! what is not known is passed over.

use prism_core::policy::{ConfirmationState, RequestState};
use schemars::{JsonSchema, schema_for};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    audit::*, editor::*, events::*, gate::*, mesh::*, refusal::*, shown::*, socket::*, status::*, workspace::*,
};

/// Reads a sample and writes it again.
fn again<T: Serialize + DeserializeOwned>(sample: &Value) -> Value {
    let read: T = serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{error}: {sample}"));
    serde_json::to_value(read).unwrap()
}

/// Nothing of a sample is lost or added, and a member that is not known does no harm.
fn is_kept<T: Serialize + DeserializeOwned>(sample: Value) {
    assert_eq!(again::<T>(&sample), sample);
    let mut newer = sample.clone();
    newer.as_object_mut().unwrap().insert("of_a_newer_prism".to_owned(), json!({"a": [1]}));
    assert_eq!(again::<T>(&newer), sample);
}

/// The same of what is asked of the daemon, which takes nothing that it does not know.
fn is_strict<T: Serialize + DeserializeOwned>(sample: Value) {
    assert_eq!(again::<T>(&sample), sample);
    let mut wrong = sample.clone();
    wrong.as_object_mut().unwrap().insert("misspelt".to_owned(), json!(1));
    assert!(serde_json::from_value::<T>(wrong).is_err(), "{sample}");
}

const AT: &str = "2026-11-16T06:00:00.000Z";

fn request() -> Value {
    json!({
        "request_id": "r", "agent_id": "fixer", "scopes": ["read:files", "run:commands"], "new_scopes": ["run:commands"],
        "roots": ["/p"], "new_roots": [], "reason": "Fix it", "status": "PENDING", "created_at": AT, "expires_at": AT,
        "ttl_seconds": 900, "approved_by": null, "denied_because": null, "session_id": null,
        "asker": {"via": "mcp", "agent": "fixer", "client": "cursor 2.1"},
    })
}

fn grant() -> Value {
    json!({
        "session_id": "s", "request_id": "r", "parent": null, "agent_id": "fixer", "allowed_scopes": ["read:files"],
        "roots": ["/p"], "status": "ACTIVE", "created_at": AT, "expires_at": AT, "expires_in_ms": 5, "rate_limit": 10,
        "max_edit_bytes": 1024, "confirm_changes": false, "degraded": ["vscode"], "sockets": 1, "actions": 2,
        "last_actions": [{"at": AT, "action": "open_file", "about": "/p/a", "result": "ok"}],
    })
}

fn confirmation() -> Value {
    json!({
        "confirmation_id": "c", "kind": "action", "agent_id": "fixer", "session_id": "s", "digest": "ab",
        "shown": {"action": "exec_command", "shown": {"kind": "command", "command": "make", "cwd": "/p", "env": {}}},
        "state": "waiting", "created_at": AT, "expires_at": AT, "decided_by": null, "reason": null, "uses_left": 0,
    })
}

#[test]
fn the_gates_pages_are_read_as_they_are_written() {
    is_kept::<RequestsPage>(json!({"requests": [request()]}));
    is_kept::<GrantsPage>(json!({"sessions": [grant()]}));
    is_kept::<ConfirmationsPage>(json!({"confirmations": [confirmation()]}));
    is_kept::<RequestView>(request());
    is_kept::<GrantView>(grant());
    is_kept::<ConfirmationView>(confirmation());
    is_kept::<PluginsPage>(json!({"plugins": [{
        "plugin": "vscode", "connection": "vscode#1", "instance": "i", "kind": "vscode", "version": "1", "roots": ["/p"],
        "ui": true, "decides": true, "chat": false, "shows": false, "capabilities": ["open_file"], "pid": 7, "state": "owner", "unsaved": 0,
        "events_dropped": 0,
    }]}));
    is_kept::<ConsoleLink>(json!({"url": "http://127.0.0.1:7420/console/login#x", "expires_in_seconds": 60}));
}

// docs/gate.md
#[test]
fn what_is_asked_of_the_gate_is_strict_and_what_it_answers_is_kept() {
    is_strict::<AccessRequest>(json!({"agent_id": "a", "scopes": ["read:files"], "roots": ["/p"], "reason": "r"}));
    is_strict::<ClaimRequest>(json!({"request_id": "r", "claim": "c", "wait_seconds": 50}));
    is_strict::<ApproveRequest>(json!({"request_id": "r", "approved_scopes": ["read:files"], "confirm_changes": true}));
    is_strict::<DenyRequest>(json!({"request_id": "r", "reason": "no"}));
    is_strict::<RevokeRequest>(json!({"session_id": "s"}));
    is_strict::<NarrowRequest>(json!({"agent_id": "b", "rate_limit": 1}));
    is_strict::<ConfirmRequest>(json!({"confirmation_id": "c", "digest": "ab", "allow": true, "until_seconds": 900}));
    is_kept::<AccessRequested>(
        json!({"request_id": "r", "claim": "c", "status": "PENDING", "expires_at": AT, "next": "wait"}),
    );
    is_kept::<ClaimAnswer>(json!({"request_id": "r", "status": "DENIED", "reason": "no"}));
    is_kept::<ClaimAnswer>(json!({
        "request_id": "r", "status": "APPROVED", "session_id": "s", "session_token": "t", "expires_at": AT,
        "allowed_scopes": ["read:files"], "roots": ["/p"],
        "use": {"url": "ws://x", "mcp": "http://x", "header": "h", "send": {"type": "cmd"}, "note": "n"},
    }));
    is_kept::<GrantIssued>(json!({"session_id": "s", "session_token": null, "expires_at": 1_794_796_020}));
    is_kept::<DecisionTaken>(json!({}));
    is_kept::<GrantsRevoked>(json!({"revoked": 2, "unwritten": "the disk is full"}));
    is_kept::<RefusedAnswer>(json!({
        "error": {"code": "too_many", "message": "wait", "details": {"status": 429, "retry_after_ms": 10_000}},
    }));
    is_kept::<RefusedAnswer>(json!({"error": {"code": "unknown_agent", "message": "nobody"}}));
}

#[test]
fn what_an_older_daemon_leaves_out_is_at_its_default() {
    let view: RequestView = serde_json::from_value(json!({"request_id": "r"})).unwrap();
    assert_eq!((view.request_id.as_str(), view.status), ("r", RequestState::Requested));
    let view: ConfirmationView = serde_json::from_value(json!({"confirmation_id": "c", "state": "withdrawn"})).unwrap();
    assert_eq!(view.state, ConfirmationState::Withdrawn);
    assert_eq!(serde_json::from_value::<MeshOverview>(json!({})).unwrap(), MeshOverview::default());
    assert!(serde_json::from_value::<StatusReport>(json!({})).unwrap().destinations.is_empty());
}

// docs/gate.md, A-10
#[test]
fn what_is_shown_is_told_apart_by_its_kind() {
    is_kept::<ShownAction>(json!({"action": "write_file", "shown": {"kind": "x"}, "because": ["it is new"]}));
    for step in [
        json!({
            "kind": "command", "command": "make", "cwd": "/p", "env": {"A": "1"}, "timeout_ms": 60_000,
            "runs": [{"path": "/p/s", "bytes": 9, "digest": "ab", "content": null, "is_cut": true}],
        }),
        json!({"kind": "command", "command": ["rm", "a b"], "cwd": "/p", "env": {}, "timeout_ms": 1}),
        json!({"kind": "diff", "path": "/p/a", "old_text_digest": null, "unified": "+x"}),
        json!({"kind": "delete", "path": "/p/a", "what": "file", "bytes": 7}),
        json!({"kind": "rename", "from": "/p/a", "to": "/p/b", "replaces": false}),
        json!({"kind": "plain", "title": "t", "lines": ["l"]}),
    ] {
        assert_eq!(again::<ShownStep>(&step), step);
    }
    assert!(serde_json::from_value::<ShownStep>(json!({"kind": "of a newer prism"})).is_err());
    is_kept::<ShownToolCall>(json!({
        "destination": "db", "tool": "drop", "client": "cursor", "rule": "drop*", "arguments": "{}", "definition": "d",
    }));
    is_kept::<ShownDefinition>(json!({"destination": "db", "tool": "drop", "client": "c", "unified": "+x"}));
}

// docs/gate.md: the holder's socket
#[test]
fn the_holders_messages_are_told_apart_by_their_type() {
    for message in [
        json!({"type": "result", "id": "1", "status": "ok", "data": {"content": "x"}}),
        json!({"type": "result", "id": 7, "status": "error", "data": {
            "code": "forbidden", "message": "no", "details": {"status": 403},
        }}),
        json!({"type": "progress", "id": 1, "data": {"message": "half", "done": 1, "total": 2}}),
        json!({"type": "event", "event": "buffers", "seq": 3, "data": {
            "event": "buffer_changed", "path": "/p/a", "version": 4,
        }}),
        json!({"type": "event", "event": "session_state", "data": {"event": "session_opened", "session_id": "s"}}),
    ] {
        assert_eq!(again::<HolderMessage>(&message), message);
    }
    let newer = json!({"type": "of_a_newer_prism", "data": 1});
    assert_eq!(serde_json::from_value::<HolderMessage>(newer).unwrap(), HolderMessage::Unknown);
    let command = json!({"type": "cmd", "id": "1", "action": "open_file", "args": {"path": "a"}});
    assert_eq!(again::<HolderCommand>(&command), command);
    is_kept::<SessionOpened>(json!({
        "session_id": "s", "allowed_scopes": [], "roots": ["/p"], "expires_at": AT, "max_edit_bytes": 1, "rate_limit": 2,
        "degraded": [],
    }));
}

// docs/mesh.md
#[test]
fn the_meshs_verbs_are_strict_and_what_they_answer_is_kept() {
    is_strict::<StartArguments>(json!({"agent": "sable", "surface": "codex", "wake": {"tmux": {"pane": "%1"}}}));
    is_strict::<SendArguments>(
        json!({"to": "sable", "type": "Question", "body": "?", "delivery": "sync", "ttl_s": 60}),
    );
    is_strict::<ReplyArguments>(json!({"to_signal": "s", "body": "!", "agent": "person"}));
    is_strict::<RecallArguments>(json!({"signal_id": "s"}));
    is_strict::<WaiveArguments>(json!({"signal_id": "s", "reason": "done"}));
    is_strict::<PendingArguments>(json!({"peek": true, "after": 7, "limit": 20}));
    is_strict::<HistoryArguments>(json!({"before": 7}));
    is_strict::<WaitArguments>(json!({"surface": "codex", "workspace": "/p", "hook": "codex-stop", "timeout_s": 0}));
    is_strict::<ObligationsArguments>(json!({"of": "others", "state": "open"}));
    is_strict::<DiagnosticsArguments>(json!({"agent": "sable"}));
    is_strict::<WakeTestArguments>(json!({"agent": "sable", "ring": true}));
    is_strict::<CheckpointArguments>(json!({"note": "half way"}));
    is_strict::<WrapArguments>(json!({"session": "s"}));
    is_strict::<NoArguments>(json!({}));
    let sent: SendArguments = serde_json::from_value(json!({"to": "a", "body": "b"})).unwrap();
    assert_eq!(sent.kind, "Question");

    is_kept::<AgentStarted>(json!({
        "session": "s", "agent": "sable", "surface": "codex", "workspace": "/p", "transport": "http",
        "surface_support": "full", "doorbell": "prism://signals/pending/s", "next": "n",
    }));
    is_kept::<SignalAccepted>(json!({
        "signal_id": "s", "trace_id": "t", "seq": 4, "recipient_state": {
            "presence": "connected", "surface_support": "full", "pending": 2,
        }, "obligation": {"due_at": AT}, "bell": "Signal from a",
    }));
    is_kept::<SignalAccepted>(
        json!({"signal_id": "s", "trace_id": "t", "seq": 4, "recipient_state": {"presence": "person"}}),
    );
    is_kept::<SignalsPage>(json!({
        "signals": [{
            "signal_id": "s", "seq": 4, "trace_id": "t", "type": "Question", "from": "a", "body": "b", "sent_at": AT,
            "reply_to": "r", "redelivered": true, "reply_with": "Answer",
        }],
        "remaining": 0, "more": false, "cursor": 4, "notice": "n",
    }));
    is_kept::<HistoryPage>(json!({"signals": [{
        "signal_id": "s", "seq": 4, "trace_id": "t", "type": "Answer", "from": "a", "body": "b", "sent_at": AT, "to": "c",
        "state": "drained", "drained_at": AT,
    }]}));
    is_kept::<WaitEnded>(json!({"bell": true, "agent": "a", "text": "t", "pending": 1, "next": "n"}));
    is_kept::<WaitEnded>(json!({"bell": false, "why": "superseded"}));
    let newer: WaitEnded = serde_json::from_value(json!({"bell": false, "why": "of a newer prism"})).unwrap();
    assert_eq!(newer.why, Some(NoBell::Unknown));
    is_kept::<WakeTestResult>(json!({"rows": [{
        "agent": "a", "path": "sse", "grade": "push", "attached": true, "outcome": "there", "ms": 0.5, "note": null,
    }]}));
    is_kept::<SignalRecalled>(json!({"recalled": true, "signal_id": "s"}));
    is_kept::<SignalWaived>(json!({"waived": true, "signal_id": "s", "reason": "r"}));
    for verb in MeshVerb::ALL {
        assert_eq!(MeshVerb::named(verb.name()), Some(verb));
    }
}

// docs/mesh.md
#[test]
fn how_the_mesh_is_is_read_as_it_is_written() {
    let agent = json!({
        "agent": "sable", "session": null, "presence": "connected", "surface": "codex", "workspace": null,
        "transport": "http", "surface_support": "full", "paths": ["sse"], "pending": 1, "owes": 0, "overdue": 0,
        "last_seen_ms": 5, "checkpoint": {"at": AT, "note": "half way"},
    });
    let bell = json!({
        "event": "surface_doorbell_sent", "at": AT, "agent": "sable", "path": "sse", "result": "rang", "signal_id": "s",
        "signal_type": "Question", "trace_id": null, "after_ms": 73,
    });
    is_kept::<Roster>(json!({"agents": [agent]}));
    is_kept::<MeshOverview>(json!({
        "agents": [agent], "bells": [bell], "obligations_open": 1, "at": AT, "counters": {"rang": 2},
        "latencies": {"bell_to_drain": {"count": 0, "p50_ms": null, "p99_ms": null}},
        "obligations": [{
            "signal_id": "s", "type": "Question", "debtor": "a", "creditor": "b", "state": "open", "opened_at": AT,
            "due_at": AT, "due_in_ms": -5, "overdue": true, "sla_exempt": false, "wake_attempt_count": 1,
            "wake_ring_count": 1, "last_wake_path": "sse", "last_wake_result": "rang",
        }],
    }));
    is_kept::<ObligationsPage>(json!({"obligations": [{
        "signal_id": "s", "type": "Question", "debtor": "a", "creditor": "b", "state": "done", "action_required": true,
        "reply_required": true, "opened_at": AT, "due_at": null, "overdue": false, "escalated_at": null,
        "sla_exempt": false, "heard_at": AT, "closed_at": AT, "closed_why": "r", "wake_attempt_count": 0,
        "wake_ring_count": 0, "last_wake_at": null, "last_wake_path": null, "last_wake_result": null,
    }]}));
    let mut known = agent.clone();
    let members = known.as_object_mut().unwrap();
    for (name, value) in [
        ("connection", json!("connected")),
        ("bell", json!({"outstanding": false})),
        ("support_changes", json!([{"at": AT, "surface_support": "full"}])),
        ("recent_bells", json!([bell])),
        ("checkpoints", json!([])),
        (
            "paths",
            json!([{
                "path": "sse", "grade": "push", "attached": true, "healthy": true, "last_result": null, "last_at": null,
                "absent": null,
            }]),
        ),
    ] {
        members.insert(name.to_owned(), value);
    }
    assert_eq!(again::<Diagnostics>(&known), known);
    let stranger = json!({
        "agent": null, "surface": "codex", "transport": "http", "connection": "connected", "surface_support": "full",
        "next": "n",
    });
    assert_eq!(again::<Diagnostics>(&stranger), stranger);
}

#[test]
fn events_are_read_as_they_are_written() {
    is_kept::<SignalSentEvent>(
        json!({"at": AT, "signal_id": "s", "seq": 1, "type": "Question", "from": "a", "to": "b"}),
    );
    is_kept::<SignalDrainedEvent>(json!({"at": AT, "signal_id": "s", "seq": 1, "agent": "b"}));
    is_kept::<AgentEvent>(json!({"at": AT, "agent": "a", "change": "left"}));
    is_kept::<SupportEvent>(json!({"at": AT, "agent": "a", "surface_support": "full"}));
    is_kept::<ObligationEvent>(json!({
        "at": AT, "state": "overdue", "signal_id": "s", "type": "Question", "debtor": "a", "creditor": "b",
        "sla_exempt": false,
    }));
    is_kept::<MissedEvent>(json!({"events": 3}));
}

// docs/status.md
#[test]
fn the_status_is_read_as_it_is_written() {
    let sample = serde_json::to_value(StatusReport {
        destinations: vec![DestinationStatus { links: vec![LinkStatus::default()], ..DestinationStatus::default() }],
        sessions: vec![SessionStatus { streams: Some(vec![StreamStatus::default()]), ..SessionStatus::default() }],
        mesh: Some(MeshStatus { agents: vec![AgentStatus::default()], person: ReplyDebts { owes: 2, overdue: 1 } }),
        ..StatusReport::default()
    });
    let sample = sample.unwrap();
    assert_eq!(sample.pointer("/daemon/config/state"), Some(&json!("ok")));
    assert_eq!(sample.pointer("/mesh/agents/0/owes"), Some(&json!(0)), "flat, as docs/status.md has it");
    is_kept::<StatusReport>(sample);
}

// A-11
#[test]
fn audit_lines_are_read_as_they_are_written() {
    let line = json!({
        "seq": 12, "ts": AT, "actor": "fixer", "user": "me", "action": "open_file", "args": {"path": "/p"}, "result": "ok",
        "session_id": "s", "request_id": null, "of": 11, "prev": "00", "hash": "ff",
    });
    is_kept::<AuditPage>(json!({"logs": [line]}));
    let mut first = line.clone();
    first.as_object_mut().unwrap().remove("of");
    is_kept::<AuditLine>(first);
}

// docs/workspace.md
#[test]
fn the_memorys_answers_are_read_as_they_are_written() {
    let note = json!({
        "title": "Ports", "kind": "decision", "date": "2026-11-16", "status": "accepted", "tags": ["a"],
        "_meta": {"document_path": "decisions/ports.md", "bytes": 5},
    });
    is_kept::<SearchAnswer>(
        json!({"query": "q", "matched": "all", "total": 1, "results": [note], "more": 2, "remarks": ["r"]}),
    );
    is_kept::<ListAnswer>(json!({"root": "/p", "workspaces": ["w"], "total": 1, "notes": [note], "remarks": []}));
    let context = json!({
        "root": "/p", "workspace": "w", "scope": "d", "overview": note, "tree": "t", "topics": {"x": 1}, "decisions": [note],
        "topic:x": [note], "left_out": ["l"],
    });
    assert_eq!(again::<WorkspaceContext>(&context), context);
    is_kept::<NoteForgotten>(json!({"forgotten": "t", "id": "i", "undo": "u", "_meta": {"document_path": "p"}}));
}

// docs/editor.md: answers of plugins write `null` for what they do not know.
#[test]
fn answers_of_the_editors_verbs_are_read_whoever_wrote_them() {
    let found: MatchesFound = serde_json::from_value(json!({
        "matches": [{"path": null, "line_text": "x", "range": {"start": {"line": 2, "character": 4}}}], "is_complete": false,
    }))
    .unwrap();
    assert_eq!((found.matches[0].range.start.line, found.is_complete), (2, Some(false)));
    let state: GitState = serde_json::from_value(json!({"branch": null, "entries": null})).unwrap();
    assert_eq!(state, GitState::default());
}

#[test]
fn every_type_has_a_schema_with_its_members() {
    fn members<T: JsonSchema>() -> usize {
        let schema = schema_for!(T).to_value();
        schema.pointer("/properties").and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }
    assert_eq!(members::<GrantView>(), 17);
    assert!(members::<StatusReport>() == 6 && members::<MeshOverview>() == 7 && members::<AuditLine>() == 12);
}
