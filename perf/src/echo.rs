//! An MCP server with one tool, `echo`, as a function from a message to lines. It may list more: all of them echo.
//!
//! `echo {text, size?, delay_ms?, notify?, progress?, broadcast?, exit?}`
//! - `size`: answer with that many bytes instead of `text`
//! - `notify`: send that many `notifications/message` before the answer
//! - `progress`: send that many `notifications/progress` with the caller's token
//! - `broadcast`: send one `notifications/tools/list_changed` after the answer
//! - `exit`: die with that status instead of answering
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    io::{self, Write},
    time::Duration,
};

#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// What a result has to look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    /// 2026-07-28.
    Modern,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct EchoArgs {
    text: String,
    size: usize,
    delay_ms: u64,
    notify: usize,
    progress: usize,
    broadcast: bool,
    exit: Option<i32>,
}

#[derive(Deserialize)]
struct CallParams {
    #[serde(default)]
    arguments: EchoArgs,
    #[serde(rename = "_meta")]
    meta: Option<serde_json::Value>,
}

impl Era {
    /// What stands at the beginning of every result, and what else in one that may be kept.
    fn members(self) -> (&'static str, &'static str) {
        match self {
            Era::Legacy => ("", ""),
            Era::Modern => (r#""resultType":"complete","#, r#""ttlMs":0,"cacheScope":"private","#),
        }
    }
}

/// What `tools/list` shows: `echo`, and after it `echo_1` and so on, up to this many.
#[must_use]
pub fn tools(count: usize) -> String {
    let tool = |n: usize| {
        let name = if n == 0 { "echo".to_owned() } else { format!("echo_{n}") };
        format!(
            r#"{{"name":"{name}","description":"Says it back.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}"#
        )
    };
    (0..count).map(tool).collect::<Vec<_>>().join(",")
}

/// Writes the answer, one line a message; nothing for what asks for none. `tools` are those of [`tools`]; `pause` is
/// called for `delay_ms`.
pub fn answer<W: Write>(
    message: &Envelope,
    era: Era,
    tools: &str,
    out: &mut W,
    pause: impl FnOnce(&mut W, Duration) -> io::Result<()>,
) -> io::Result<()> {
    let (Some(id), Some(method)) = (message.id, message.method.as_deref()) else {
        return Ok(());
    };
    let (complete, hints) = era.members();
    match method {
        "initialize" => {
            let version = message
                .params
                .and_then(|p| serde_json::from_str::<serde_json::Value>(p.get()).ok())
                .and_then(|p| p["protocolVersion"].as_str().map(str::to_owned))
                .filter(|v| v.as_str() < "2026")
                .unwrap_or_else(|| "2025-11-25".into());
            writeln!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{"listChanged":true}},"logging":{{}}}},"serverInfo":{{"name":"echo","version":"0.1.0"}}}}}}"#
            )
        }
        "server/discover" if era == Era::Modern => writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{complete}{hints}"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{"listChanged":true}},"logging":{{}}}},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"echo","version":"0.1.0"}}}}}}}}"#
        ),
        "ping" | "logging/setLevel" if era == Era::Legacy => {
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        }
        "tools/list" => {
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{{complete}{hints}"tools":[{tools}]}}}}"#)
        }
        "tools/call" => {
            let call: CallParams = match message.params.map(|p| serde_json::from_str(p.get())) {
                Some(Ok(call)) => call,
                _ => {
                    return writeln!(
                        out,
                        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"bad params"}}}}"#
                    );
                }
            };
            let args = call.arguments;
            if let Some(status) = args.exit {
                std::process::exit(status);
            }
            let token = call.meta.as_ref().and_then(|m| m.get("progressToken")).cloned();
            for i in 0..args.progress {
                if let Some(token) = &token {
                    writeln!(
                        out,
                        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{},"total":{}}}}}"#,
                        i + 1,
                        args.progress
                    )?;
                }
            }
            for i in 0..args.notify {
                writeln!(
                    out,
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"note {i}"}}}}"#
                )?;
            }
            if args.delay_ms > 0 {
                pause(out, Duration::from_millis(args.delay_ms))?;
            }
            let text = if args.size > 0 { "x".repeat(args.size) } else { args.text };
            writeln!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{{complete}"content":[{{"type":"text","text":{}}}]}}}}"#,
                serde_json::Value::from(text)
            )?;
            if args.broadcast {
                writeln!(out, r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}"#)?;
            }
            Ok(())
        }
        _ => writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"method not found"}}}}"#),
    }
}
