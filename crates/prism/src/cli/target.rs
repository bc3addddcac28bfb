//! Which server, and how it is spoken to: what `prism run` and `prism add` are told in the same words.

use anyhow::bail;
use prism_core::mcp::Era;
use toml_edit::{Array, InlineTable, Value};

use prism_config::{DestinationConfig, Env, EventNames, HttpConfig, Transport};

#[derive(Debug, Default, clap::Args)]
pub(super) struct TargetArgs {
    /// A server that is reached over HTTP, in place of a command
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// Transport of the URL (default: detect)
    #[arg(long = "type", value_name = "TYPE", value_parser = Transport::ALL.map(Transport::as_str))]
    pub(super) transport: Option<String>,
    /// Header for every request to the URL, as in 'Authorization: Bearer env:NAME' or X-Key=env:NAME. What env:NAME,
    /// file:PATH or keyring:SERVICE/ACCOUNT stands for is looked up by the daemon, so that no secret is on a command line
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(super) headers: Vec<(String, String)>,
    /// Which era of the protocol the server speaks; auto finds out
    #[arg(long, value_name = "ERA", value_parser = ["auto", "legacy", "modern"])]
    pub(super) era: Option<String>,
    /// Serve clients of the protocol's first revision too, at /sse beside /mcp
    #[arg(long)]
    pub(super) legacy_sse: bool,
    /// What the event lines of streams say: always "message", or the method of each message
    #[arg(long, value_name = "NAMES", value_parser = EventNames::ALL.map(EventNames::as_str))]
    pub(super) event_names: Option<String>,
    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// Reads a header as people know it from curl, or as `--env` is written. No name has either of the two characters.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once([':', '=']) {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as 'NAME: VALUE' or NAME=VALUE".to_owned()),
    }
}

// === impl TargetArgs ===

impl TargetArgs {
    /// Checks that one server is meant, and returns it. `typed` is the command line so far, for the way out. With an
    /// environment what its headers refer to must be there; with or without, they stay as they are written.
    pub(super) fn destination(&self, name: &str, typed: &str, env: Option<&Env>) -> anyhow::Result<DestinationConfig> {
        let mut destination = match (&self.url, self.command.as_slice()) {
            (Some(_), [_, ..]) => bail!("a command and --url are two servers\n  fix: keep one of the two"),
            (None, []) => bail!(
                "there is neither a command nor --url\n  \
                 fix: {typed} -- npx -y some-mcp-server, or {typed} --url https://example.com/mcp"
            ),
            (None, command) => self.stdio(name, command, typed)?,
            (Some(url), []) => {
                let transport = Transport::ALL.into_iter().find(|one| self.transport.as_deref() == Some(one.as_str()));
                if env.is_some() {
                    HttpConfig::from_flags(name, url, transport, &self.headers, env)?;
                }
                DestinationConfig::http(name, HttpConfig::from_flags(name, url, transport, &self.headers, None)?)
            }
        };
        destination.era = self.era.as_deref().and_then(Era::named);
        destination.legacy_sse |= self.legacy_sse;
        let names = EventNames::ALL.into_iter().find(|names| self.event_names.as_deref() == Some(names.as_str()));
        destination.event_names = names.unwrap_or_default();
        Ok(destination)
    }

    fn stdio(&self, name: &str, command: &[String], typed: &str) -> anyhow::Result<DestinationConfig> {
        let stray = match (&self.transport, self.headers.as_slice()) {
            (Some(_), _) => Some("--type"),
            (None, [_, ..]) => Some("--header"),
            (None, []) => None,
        };
        if let Some(stray) = stray {
            bail!("{stray} is for --url, and there is a command\n  fix: take it out, or {typed} --url URL");
        }
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            bail!("the command is empty\n  fix: {typed} -- npx -y some-mcp-server");
        }
        if command.iter().any(|word| word.contains('\0')) {
            bail!("a command cannot contain the NUL character");
        }
        Ok(DestinationConfig::stdio(name, command.to_vec()))
    }

    /// Returns the keys and values that say the same in a config, only those that were asked for.
    pub(super) fn entry(&self) -> Vec<(&'static str, Value)> {
        let mut entry = Vec::new();
        match &self.url {
            Some(url) => entry.push(("url", url.into())),
            None => entry.push(("command", self.command.iter().collect::<Array>().into())),
        }
        let texts = [("type", &self.transport), ("era", &self.era), ("sse_event_names", &self.event_names)].into_iter();
        entry.extend(texts.filter_map(|(key, text)| Some((key, text.as_ref()?.into()))));
        if self.legacy_sse {
            entry.push(("legacy_sse", true.into()));
        }
        if !self.headers.is_empty() {
            let headers: InlineTable = self.headers.iter().map(|(name, value)| (name, Value::from(value))).collect();
            entry.push(("headers", headers.into()));
        }
        entry
    }
}
