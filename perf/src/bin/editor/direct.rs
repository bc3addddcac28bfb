//! A language server that is spoken to directly: the least time that its errors can take.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

pub(super) struct Server {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    uri: String,
    last: u64,
    version: u64,
}

impl Server {
    /// Starts it in a folder, and opens `a.ts` there.
    pub(super) fn start(program: &str, arguments: &[String], folder: &Path, text: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let stdin = process.stdin.take().context("stdin is a pipe")?;
        let stdout = BufReader::new(process.stdout.take().context("stdout is a pipe")?);
        let root = format!("file://{}", folder.display());
        let mut server = Self { process, stdin, stdout, uri: format!("{root}/a.ts"), last: 0, version: 1 };
        let capabilities = json!({"textDocument": {"diagnostic": {"dynamicRegistration": false}}});
        let hello = json!({"processId": std::process::id(), "rootUri": root, "capabilities": capabilities,
                           "workspaceFolders": [{"uri": root, "name": "theirs"}]});
        server.ask("initialize", hello)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}))?;
        let document = json!({"uri": server.uri, "languageId": "typescript", "version": 1, "text": text});
        server
            .send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}))?;
        server.pulled()?;
        Ok(server)
    }

    /// Changes the text, and returns how many errors there are in it.
    pub(super) fn errors_of(&mut self, text: &str) -> anyhow::Result<usize> {
        self.version += 1;
        let document = json!({"uri": self.uri, "version": self.version});
        let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}))?;
        self.pulled()
    }

    fn pulled(&mut self) -> anyhow::Result<usize> {
        let told = self.ask("textDocument/diagnostic", json!({"textDocument": {"uri": self.uri}}))?;
        let listed = told["items"].as_array().with_context(|| format!("no diagnostics: {told}"))?;
        // What is no error, is a hint.
        Ok(listed.iter().filter(|one| one["severity"] == 1).count())
    }

    fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut message = self.receive()?;
            if message["id"] == id && message.get("method").is_none() {
                if !message["error"].is_null() {
                    bail!("{method}: {}", message["error"]);
                }
                return Ok(message["result"].take());
            }
            // Whatever it asks for, it gets nothing.
            if message.get("method").is_some() && message.get("id").is_some() {
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}))?;
            }
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = message.to_string();
        write!(self.stdin, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(self.stdin.flush()?)
    }

    fn receive(&mut self) -> anyhow::Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                bail!("the language server has ended");
            }
            match line.trim_end().split_once(':') {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.stdout.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
