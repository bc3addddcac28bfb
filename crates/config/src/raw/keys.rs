//! The keys of a `prism.toml`, and what to do about one that is unknown. A test holds them against what serde accepts.

use super::nearest;
use crate::ServerTable;

/// The keys at the top of the file.
pub(crate) const GLOBAL_KEYS: [&str; 26] = [
    "address",
    "insecure",
    "port",
    "allowed_hosts",
    "allowed_origins",
    "request_timeout",
    "max_request_time",
    "start_timeout",
    "max_message_bytes",
    "session_idle_timeout",
    "drain_timeout",
    "log_bodies",
    "error_statuses",
    "max_sessions",
    "inherit_env",
    "login_path",
    "max_memory",
    "hub",
    "mesh",
    "gate",
    "audit",
    "editor",
    "profile",
    "workspace",
    "server",
    "destination",
];

/// The keys below `[server.NAME]`.
pub(crate) const DESTINATION_KEYS: [&str; 27] = [
    "command",
    "env",
    "cwd",
    "url",
    "type",
    "headers",
    "forward_headers",
    "era",
    "process",
    "asks",
    "sessions",
    "max_sessions",
    "keep_warm",
    "idle_stop",
    "request_timeout",
    "max_request_time",
    "start_timeout",
    "strict_streams",
    "legacy_sse",
    "sse_event_names",
    "hub",
    "post_sse",
    "error_statuses",
    "inherit_env",
    "max_memory",
    "sandbox",
    "tools",
];

/// The keys below `[server.NAME.sandbox]`.
pub(crate) const SANDBOX_KEYS: [&str; 3] = ["folders", "readable", "network"];

/// The keys below `[server.NAME.tools]`.
pub(crate) const TOOLS_KEYS: [&str; 5] = ["allow", "confirm", "deny", "otherwise", "pin"];

/// The keys below `[hub]`.
pub(crate) const HUB_KEYS: [&str; 5] = ["prefix", "mode", "patience", "first_patience", "longest_name"];

/// The keys below `[mesh]`.
pub(crate) const MESH_KEYS: [&str; 13] = [
    "climb_after",
    "confirm_within",
    "max_wake_attempts",
    "question_within",
    "task_within",
    "review_within",
    "keep_asked",
    "keep_told",
    "ping_every",
    "tmux",
    "editor_chat",
    "desktop",
    "secrets",
];

/// The keys below `[gate]`.
pub(crate) const GATE_KEYS: [&str; 12] = [
    "max_requests_per_agent",
    "max_requests",
    "max_concurrent_sessions",
    "request_ttl",
    "default_ttl",
    "max_ttl",
    "rate_limit_per_session",
    "burst",
    "max_edit_bytes",
    "confirm_within",
    "call_wait",
    "editors_decide",
];

/// The keys below `[audit]`.
pub(crate) const AUDIT_KEYS: [&str; 4] = ["bodies", "redact", "keep", "calls"];

/// The keys below `[editor]`.
pub(crate) const EDITOR_KEYS: [&str; 8] =
    ["fence", "readable", "writable", "servers", "runs_project_code", "idle_server", "max_memory", "max_scratch"];

/// The keys below `[profile.NAME]`.
pub(crate) const PROFILE_KEYS: [&str; 5] = ["only", "except", "tools", "prefix", "mode"];

/// The keys below `[workspace]`.
pub(crate) const WORKSPACE_KEYS: [&str; 1] = ["root"];

/// Says what to do about an unknown key in a text; `expected` is the parser's list of those that could stand in its place.
pub(super) fn unknown_key_fix(key: &str, expected: &str, text: &str, offset: usize) -> String {
    let table = ServerTable::around(text, offset);
    // A key that only one kind of table has tells which one this is.
    if expected.contains("`command`") {
        destination_key_fix(key, ServerTable::first(text))
    } else if expected.contains("`otherwise`") {
        section_key_fix(key, &format!("[{table}.NAME.tools]"), &TOOLS_KEYS)
    } else if expected.contains("`folders`") {
        section_key_fix(key, &format!("[{table}.NAME.sandbox]"), &SANDBOX_KEYS)
    } else if expected.contains("`patience`") {
        section_key_fix(key, "[hub]", &HUB_KEYS)
    } else if expected.contains("`climb_after`") {
        section_key_fix(key, "[mesh]", &MESH_KEYS)
    } else if expected.contains("`max_concurrent_sessions`") {
        section_key_fix(key, "[gate]", &GATE_KEYS)
    } else if expected.contains("`redact`") {
        section_key_fix(key, "[audit]", &AUDIT_KEYS)
    } else if expected.contains("`fence`") {
        section_key_fix(key, "[editor]", &EDITOR_KEYS)
    } else if expected.contains("`only`") {
        section_key_fix(key, "[profile.NAME]", &PROFILE_KEYS)
    } else if expected.contains("`root`") {
        section_key_fix(key, "[workspace]", &WORKSPACE_KEYS)
    } else {
        global_key_fix(key, table)
    }
}

fn global_key_fix(key: &str, table: ServerTable) -> String {
    if matches!(key, "mcpServers" | "servers") {
        return format!("[{table}.NAME] for each server, or keep the JSON: prism serve --mcp-json FILE");
    }
    if let Some(nearest) = nearest(key, GLOBAL_KEYS.into_iter()) {
        return format!("did you mean {nearest:?}?");
    }
    if DESTINATION_KEYS.contains(&key) {
        return format!("{key:?} belongs to a server: put it below a [{table}.NAME] line");
    }
    // As in `PRISM_HUB_MODE`.
    let below_hub = key.strip_prefix("hub_").unwrap_or(key);
    if HUB_KEYS.contains(&below_hub) {
        return format!("{below_hub:?} belongs to the hub: put it below a [hub] line");
    }
    format!("the keys are {}", GLOBAL_KEYS.join(", "))
}

fn destination_key_fix(key: &str, first: ServerTable) -> String {
    if key == "args" {
        return "the arguments belong to the command: command = [\"npx\", \"-y\", \"some-mcp-server\"]".to_owned();
    }
    if GLOBAL_KEYS.contains(&key) {
        return format!("{key:?} is for the whole daemon: put it above the first [{first}.NAME] line");
    }
    if let Some(nearest) = nearest(key, DESTINATION_KEYS.into_iter()) {
        return format!("did you mean {nearest:?}?");
    }
    format!("the keys of a server are {}", DESTINATION_KEYS.join(", "))
}

fn section_key_fix(key: &str, section: &str, keys: &[&'static str]) -> String {
    if GLOBAL_KEYS.contains(&key) {
        return format!("{key:?} is for the whole daemon: put it above the first line in [brackets]");
    }
    if let Some(nearest) = nearest(key, keys.iter().copied()) {
        return format!("did you mean {nearest:?}?");
    }
    match keys {
        [only] => format!("the one key of {section} is {only}"),
        _ => format!("the keys of {section} are {}", keys.join(", ")),
    }
}
