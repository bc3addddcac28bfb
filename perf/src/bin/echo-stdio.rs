//! A stdio MCP server that is never the bottleneck: one tool, `echo`.
//!
//! `echo {text, size?, delay_ms?, notify?, progress?, broadcast?, exit?}`
//! - `size`: answer with that many bytes instead of `text`
//! - `notify`: send that many `notifications/message` before the answer
//! - `progress`: send that many `notifications/progress` with the caller's token
//! - `broadcast`: send one `notifications/tools/list_changed` after the answer
//! - `exit`: die with that status instead of answering
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{BufRead, BufReader, BufWriter, Write};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
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

fn main() -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin());
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Ok(message) = serde_json::from_str::<Envelope>(&line) {
            answer(&message, &mut out)?;
        }
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
}

fn answer(message: &Envelope, out: &mut impl Write) -> std::io::Result<()> {
    let (Some(id), Some(method)) = (message.id, message.method.as_deref()) else {
        return Ok(());
    };
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
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{"listChanged":true}},"logging":{{}}}},"serverInfo":{{"name":"echo-stdio","version":"0.1.0"}}}}}}"#
            )
        }
        "ping" | "logging/setLevel" => {
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        }
        "tools/list" => writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"echo","description":"Says it back.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}]}}}}"#
        ),
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
                out.flush()?;
                std::thread::sleep(std::time::Duration::from_millis(args.delay_ms));
            }
            let text = if args.size > 0 { "x".repeat(args.size) } else { args.text };
            writeln!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{}}}]}}}}"#,
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
