//! The configuration as a person writes it, in `prism.toml`, in the environment and on the command line, and
//! its way into a checked [`Config`]. Finding and reading files is next door, in `file.rs`.
//!
//! Every value is kept with its place until it has been understood, so that whatever is wrong with it can be
//! shown where it stands. A setting may be written in several places; each of them must make sense, even those
//! that another one beats, or else a typo would surface only on the day the stronger word goes away.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{Spanned, Value, de::ValueDeserializer};

use editor::RawEditor;
use gate::{RawAudit, RawGate};
use hub::{RawHub, RawProfile, RawWorkspace};
use keys::unknown_key_fix;
use mesh::RawMesh;
use sandbox::RawSandbox;
use tools::RawTools;

use super::{
    Config, ConfigError, DestinationConfig, Env, Flags, HttpConfig, NameError, Origin, ServerKey, ServerTable,
    SourceLocation, TimeLimitOverrides,
    http::HeaderReader,
    value::{
        ConfigValue, LONGEST, Parse, address, boolean, bytes, ceiling, command, count, duration, era, error_statuses,
        event_names, forward_headers, hosts, inherit, origins, port, process, sessions, text, timeout, transport, url,
        variable,
    },
};

mod editor;
mod gate;
mod hub;
pub(super) mod keys;
mod mesh;
mod sandbox;
mod tools;
mod variables;

/// `prism.toml`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    address: Setting,
    insecure: Setting,
    port: Setting,
    allowed_hosts: Setting,
    allowed_origins: Setting,
    request_timeout: Setting,
    max_request_time: Setting,
    start_timeout: Setting,
    max_message_bytes: Setting,
    session_idle_timeout: Setting,
    drain_timeout: Setting,
    log_bodies: Setting,
    error_statuses: Setting,
    max_sessions: Setting,
    inherit_env: Setting,
    login_path: Setting,
    max_memory: Setting,
    #[serde(default)]
    hub: RawHub,
    #[serde(default)]
    mesh: RawMesh,
    #[serde(default)]
    gate: RawGate,
    #[serde(default)]
    audit: RawAudit,
    #[serde(default)]
    editor: RawEditor,
    #[serde(default)]
    profile: BTreeMap<Spanned<String>, RawProfile>,
    #[serde(default)]
    workspace: RawWorkspace,
    #[serde(default)]
    server: BTreeMap<Spanned<String>, RawDestination>,
    /// The same, by the older word.
    #[serde(default)]
    destination: BTreeMap<Spanned<String>, RawDestination>,
    #[serde(skip)]
    source: ConfigSource,
}

/// One `[server.NAME]`, as written.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, as in [server.files] and below it command = [\"npx\", \"some-mcp-server\"]"
)]
struct RawDestination {
    command: Setting,
    env: Option<Spanned<Texts>>,
    cwd: Setting,
    url: Setting,
    r#type: Setting,
    headers: Option<Spanned<Texts>>,
    forward_headers: Setting,
    era: Setting,
    process: Setting,
    asks: Setting,
    sessions: Setting,
    max_sessions: Setting,
    keep_warm: Setting,
    idle_stop: Setting,
    request_timeout: Setting,
    max_request_time: Setting,
    start_timeout: Setting,
    strict_streams: Setting,
    legacy_sse: Setting,
    sse_event_names: Setting,
    hub: Setting,
    post_sse: Setting,
    error_statuses: Setting,
    inherit_env: Setting,
    max_memory: Setting,
    sandbox: Option<Spanned<RawSandbox>>,
    tools: Option<RawTools>,
}

type Setting = Option<Spanned<Value>>;
/// Names with a text each, any of which may be a secret.
type Texts = BTreeMap<Spanned<String>, Spanned<Value>>;

/// The text that spans point into.
#[derive(Debug, Default)]
struct ConfigSource {
    path: PathBuf,
    text: String,
}

/// What surrounds the file when a daemon is about to run on it.
#[derive(Clone, Copy)]
struct ConfigContext<'a> {
    env: &'a Env,
    flags: &'a Flags,
}

/// Names that variables had before. The newer name beats them.
const OLD_VARIABLES: [(&str, &str); 5] = [
    ("max_sessions", "MAX_STDIO_CONNECTIONS"),
    ("log_bodies", "AUDIT_LOG_BODIES"),
    ("audit.bodies", "AUDIT_LOG_BODIES"),
    ("gate.max_concurrent_sessions", "PRISM_GATE_MAX_GRANTS"),
    ("gate.rate_limit_per_session", "PRISM_GATE_RATE_LIMIT"),
];

/// First parts of a path that Prism answers itself, and the servers it is itself.
const RESERVED: [&str; 9] =
    ["mcp", "healthz", "readyz", "metrics", "console", "plugin", "workspace", "editor", "prism"];

/// Checks that a word may be the name of a server.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if !is_shaped(name) {
        return Err(NameError::Shape { name: name.to_owned() });
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(NameError::Reserved { name: name.to_owned() });
    }
    Ok(())
}

fn is_shaped(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Sorts words by how likely each is what somebody meant to type, the likeliest first.
#[must_use]
pub fn by_nearness<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.collect();
    known.sort_by_key(|word| distance(typed, word));
    known
}

/// Returns the word that was probably meant, if one is near enough to be named.
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = by_nearness(typed, known).into_iter().next()?;
    let near = distance(typed, word) <= (typed.chars().count() / 3).max(1);
    near.then_some(word)
}

/// Counts the letters to change, add, drop or swap with their neighbour until one word is the other.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut cost = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(before_last[j - 2] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

// === impl RawConfig ===

/// A server as it is written: its name, the word that it stands below, and its table.
type WrittenServer<'a> = (&'a Spanned<String>, ServerTable, &'a RawDestination);

impl RawConfig {
    /// Parses the text of a `prism.toml`: its syntax and its keys, not yet its values.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let source = ConfigSource { path: path.to_owned(), text: text.to_owned() };
        match toml::from_str::<Self>(text) {
            Ok(raw) => Ok(Self { source, ..raw }),
            Err(error) => Err(source.refuse(&error)),
        }
    }

    /// Checks everything, in the light of the environment and the command line. What profiles name is left to
    /// `check_profiles`: destinations may come from elsewhere too.
    pub fn config(&self, env: &Env, flags: &Flags) -> Result<Config, ConfigError> {
        self.check(Some(ConfigContext { env, flags }))
    }

    /// Checks what the file says by itself. Relative folders stay as they are written, and
    /// whether `address` is allowed is left to the daemon, which may have been told `--insecure`.
    pub fn written(&self) -> Result<Config, ConfigError> {
        self.check(None)
    }

    fn check(&self, around: Option<ConfigContext<'_>>) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let insecure = self.global("insecure", &self.insecure, boolean, around)?;
        if let Some((address, at)) = self.global("address", &self.address, address, around)? {
            let allowed = address.is_loopback() || insecure.is_some_and(|(insecure, _)| insecure);
            if around.is_some() && !allowed {
                return Err(ConfigError::NotLoopback { at, address });
            }
            config.address = address;
        }
        let limit = self.global("max_request_time", &self.max_request_time, timeout, around)?;
        if let Some((timeout, _)) = self.global("request_timeout", &self.request_timeout, timeout, around)? {
            config.request_timeout = timeout;
            // Nobody who allows a call one hour wants it ended after the default part of that.
            config.max_request_time = config.max_request_time.max(timeout.unwrap_or_default());
        }
        if let Some((limit, _)) = limit {
            config.max_request_time = limit.unwrap_or(LONGEST);
        }

        // The rest have one name in the file, here and in `Config`, and no rule beyond their own.
        macro_rules! take {
            ($($key:ident: $parse:ident),*) => { $(
                if let Some((value, _)) = self.global(stringify!($key), &self.$key, $parse, around)? {
                    config.$key = value;
                }
            )* };
        }
        take!(port: port, start_timeout: timeout, allowed_hosts: hosts, allowed_origins: origins, max_message_bytes: bytes,
              session_idle_timeout: timeout, drain_timeout: duration, log_bodies: boolean,
              error_statuses: error_statuses, max_sessions: count,
              inherit_env: inherit, login_path: boolean, max_memory: ceiling);

        config.hub = self.hub(around)?;
        config.mesh = self.mesh(around)?;
        config.gate = self.gate(around)?;
        config.audit = self.audit(around)?;
        config.editor = self.editor(around)?;
        config.workspace = self.workspace(around)?;
        for (name, written) in &self.profile {
            config.profiles.insert(name.get_ref().clone(), self.profile(name, written)?);
        }
        for (name, table, written) in self.servers()? {
            let destination = self.destination(name, table, written, &config, around)?;
            config.destinations.insert(name.get_ref().clone(), destination);
        }
        Ok(config)
    }

    /// Reads a global setting wherever it may stand; the last place wins.
    fn global<T>(
        &self,
        key: &str,
        setting: &Setting,
        parse: Parse<T>,
        around: Option<ConfigContext<'_>>,
    ) -> Result<Option<(T, Origin)>, ConfigError> {
        let mut last = None;
        if let Some(value) = setting {
            let at = self.source.origin(value.span());
            last = Some((understand(key, &ConfigValue::from(value.get_ref()), parse, &at)?, at));
        }
        let Some(ConfigContext { env, flags }) = around else {
            return Ok(last);
        };
        // Outside a file there are no tables: `hub.mode` is `PRISM_HUB_MODE` and `--hub-mode`.
        let word = if key == "workspace.root" { "workspace".to_owned() } else { key.replace('.', "_") };
        let old = OLD_VARIABLES.iter().filter(|(new, _)| *new == key).map(|(_, old)| (*old).to_owned());
        for variable in old.chain([format!("PRISM_{}", word.to_uppercase())]) {
            if let Some(value) = env.var(&variable) {
                // What is not UTF-8 is no number, address, duration or folder either, so `parse` will say the right
                // thing.
                let text = value.to_string_lossy();
                let at = Origin::Variable(variable);
                last = Some((understand(key, &ConfigValue::Bare(&text), parse, &at)?, at));
            }
        }
        if let Some(text) = flags.text(&word) {
            let at = Origin::Flag(word.replace('_', "-"));
            last = Some((understand(key, &ConfigValue::Bare(&text), parse, &at)?, at));
        }
        Ok(last)
    }

    /// Returns the servers of both words, which are one set.
    fn servers(&self) -> Result<Vec<WrittenServer<'_>>, ConfigError> {
        let both = self.server.keys().find_map(|new| Some((new, self.destination.get_key_value(new)?.0)));
        if let Some((new, old)) = both {
            let mut places = [(new.span(), ServerTable::Server), (old.span(), ServerTable::Destination)];
            places.sort_by_key(|(span, _)| span.start);
            let [(first, before), (at, table)] = places.map(|(span, table)| (self.source.origin(span), table));
            return Err(ConfigError::TwoTables { at, table, first, before, name: new.get_ref().clone() });
        }
        let servers = [(ServerTable::Server, &self.server), (ServerTable::Destination, &self.destination)].into_iter();
        Ok(servers.flat_map(|(table, all)| all.iter().map(move |(name, one)| (name, table, one))).collect())
    }

    fn destination(
        &self,
        name: &Spanned<String>,
        table: ServerTable,
        written: &RawDestination,
        daemon: &Config,
        around: Option<ConfigContext<'_>>,
    ) -> Result<DestinationConfig, ConfigError> {
        let at = self.source.origin(name.span());
        let name = name.get_ref().as_str();
        check_name(name).map_err(|problem| ConfigError::Name { at: at.clone(), problem })?;
        let server = ServerKey { table, name };

        let defaults = match (&written.command, &written.url) {
            (Some(_), Some(_)) => return Err(ConfigError::TwoServers { at, destination: name.to_owned() }),
            (None, None) => return Err(ConfigError::NoServer { at, destination: name.to_owned() }),
            (Some(_), None) => self.stdio(server, written, daemon, around)?,
            (None, Some(url)) => DestinationConfig::http(name, self.http(server, url, written, around)?),
        };
        Ok(DestinationConfig {
            table,
            era: self.local(server, "era", &written.era, era)?.flatten(),
            process: self.local(server, "process", &written.process, process)?.unwrap_or_default(),
            asks: self.local(server, "asks", &written.asks, boolean)?,
            sessions: self.local(server, "sessions", &written.sessions, sessions)?.unwrap_or_default(),
            max_sessions: self
                .local(server, "max_sessions", &written.max_sessions, count)?
                .unwrap_or(daemon.max_sessions),
            keep_warm: self.local(server, "keep_warm", &written.keep_warm, duration)?.unwrap_or(defaults.keep_warm),
            idle_stop: self.local(server, "idle_stop", &written.idle_stop, timeout)?.flatten(),
            times: TimeLimitOverrides {
                request_timeout: self.local(server, "request_timeout", &written.request_timeout, timeout)?,
                max_request_time: self
                    .local(server, "max_request_time", &written.max_request_time, timeout)?
                    .map(|limit| limit.unwrap_or(LONGEST)),
                start_timeout: self.local(server, "start_timeout", &written.start_timeout, timeout)?,
            },
            strict_streams: self
                .local(server, "strict_streams", &written.strict_streams, boolean)?
                .unwrap_or(defaults.strict_streams),
            legacy_sse: self.local(server, "legacy_sse", &written.legacy_sse, boolean)?.unwrap_or(defaults.legacy_sse),
            event_names: self
                .local(server, "sse_event_names", &written.sse_event_names, event_names)?
                .unwrap_or(defaults.event_names),
            hub: self.local(server, "hub", &written.hub, boolean)?.unwrap_or(defaults.hub),
            post_sse: self.local(server, "post_sse", &written.post_sse, boolean)?.unwrap_or(defaults.post_sse),
            error_statuses: self.local(server, "error_statuses", &written.error_statuses, error_statuses)?,
            tools: self.tools(server, written.tools.as_ref())?,
            ..defaults
        })
    }

    /// Reads what only a command has.
    fn stdio(
        &self,
        server: ServerKey<'_>,
        written: &RawDestination,
        daemon: &Config,
        around: Option<ConfigContext<'_>>,
    ) -> Result<DestinationConfig, ConfigError> {
        let command = self.local(server, "command", &written.command, command)?.unwrap_or_default();
        if let (Some(value), Some(Some(other))) =
            (&written.r#type, self.local(server, "type", &written.r#type, transport)?)
        {
            let problem = format!("is {:?}, and there is a command", other.as_str());
            let fix = "take it out: a command is always spoken to by its stdio";
            return Err(misplaced(self.source.origin(value.span()), server, "type", &problem, fix));
        }
        if let Some(headers) = &written.headers {
            let at = self.source.origin_without_text(headers.span());
            let fix = "take it out; what a command must know is told by env = { NAME = \"value\" }";
            return Err(misplaced(at, server, "headers", "is for a url, and there is a command", fix));
        }
        if let Some(forward) = &written.forward_headers {
            let fix = "take it out; only a server behind a url sees headers";
            let at = self.source.origin(forward.span());
            return Err(misplaced(at, server, "forward_headers", "is for a url, and there is a command", fix));
        }
        let cwd = self.local(server, "cwd", &written.cwd, text)?;
        Ok(DestinationConfig {
            env: self.variables(server, &written.env, around)?,
            inherit_env: self
                .local(server, "inherit_env", &written.inherit_env, inherit)?
                .unwrap_or_else(|| daemon.inherit_env.clone()),
            max_memory: self.local(server, "max_memory", &written.max_memory, ceiling)?.unwrap_or(daemon.max_memory),
            cwd: cwd.map(|cwd| match around {
                Some(ConfigContext { env, .. }) => self.source.folder(&cwd, env),
                None => PathBuf::from(cwd),
            }),
            sandbox: self.sandbox(server, written.sandbox.as_ref(), around)?,
            ..DestinationConfig::stdio(server.name, command)
        })
    }

    /// Reads what only a server behind a URL has.
    fn http(
        &self,
        server: ServerKey<'_>,
        written_url: &Spanned<Value>,
        written: &RawDestination,
        around: Option<ConfigContext<'_>>,
    ) -> Result<HttpConfig, ConfigError> {
        let transport = match self.local(server, "type", &written.r#type, transport)? {
            Some(None) => {
                let at = self.source.origin(written.r#type.as_ref().map(Spanned::span).unwrap_or_default());
                let fix = "take it out, or say how the url is spoken to: type = \"streamable_http\"";
                return Err(misplaced(at, server, "type", "is \"stdio\", and there is a url", fix));
            }
            known => known.flatten(),
        };
        let stray = |key, span: Option<Range<usize>>, fix: &str| match span {
            Some(span) => {
                let at = self.source.origin_without_text(span);
                Err(misplaced(at, server, key, "is for a command, and there is a url", fix))
            }
            None => Ok(()),
        };
        for (key, setting) in
            [("cwd", &written.cwd), ("inherit_env", &written.inherit_env), ("max_memory", &written.max_memory)]
        {
            stray(key, setting.as_ref().map(Spanned::span), "take it out; nothing is started here")?;
        }
        stray("sandbox", written.sandbox.as_ref().map(Spanned::span), "take it out; nothing is started here")?;
        stray(
            "env",
            written.env.as_ref().map(Spanned::span),
            "take it out; what the server must know is told by headers = { Authorization = \"Bearer env:NAME\" }",
        )?;

        let at = self.source.origin_without_text(written_url.span());
        let url = understand(&format!("{server}.url"), &ConfigValue::from(written_url.get_ref()), url, &at)?;
        let mut headers = HeaderReader::new(server.name, None);
        for (header, value) in written.headers.iter().flat_map(|headers| headers.get_ref()) {
            let at = self.source.origin_without_text(header.span());
            let key = format!("{server}.headers.{}", header.get_ref());
            let value = understand(&key, &ConfigValue::from(value.get_ref()), variable, &at)?;
            headers.add(&key, header.get_ref(), &self.anchored(value, around), &at)?;
        }
        let forward = self.local(server, "forward_headers", &written.forward_headers, forward_headers)?;
        Ok(HttpConfig { url, transport, headers: headers.finish(), forward_headers: forward.unwrap_or_default() })
    }

    /// Reads a setting of a server.
    fn local<T>(
        &self,
        server: ServerKey<'_>,
        key: &str,
        setting: &Setting,
        parse: Parse<T>,
    ) -> Result<Option<T>, ConfigError> {
        self.in_file(&format!("{server}.{key}"), setting, parse)
    }

    /// Reads a setting that stands in the file and nowhere else.
    fn in_file<T>(&self, key: &str, setting: &Setting, parse: Parse<T>) -> Result<Option<T>, ConfigError> {
        let Some(value) = setting else {
            return Ok(None);
        };
        let at = self.source.origin(value.span());
        understand(key, &ConfigValue::from(value.get_ref()), parse, &at).map(Some)
    }
}

/// Parses one value, and turns what is wrong with it into an error that knows the way out.
fn understand<T>(key: &str, value: &ConfigValue<'_>, parse: Parse<T>, at: &Origin) -> Result<T, ConfigError> {
    parse(value).map_err(|wrong| wrong.at(key, at))
}

/// Makes the error of a key that does not fit to the rest of its server.
fn misplaced(at: Origin, server: ServerKey<'_>, key: &str, problem: &str, fix: &str) -> ConfigError {
    let key = format!("{server}.{key}");
    ConfigError::Value { at, key, problem: problem.to_owned(), fix: fix.to_owned() }
}

// === impl ConfigSource ===

impl ConfigSource {
    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::File(Box::new(SourceLocation::at_offset(&self.path, &self.text, span.start)))
    }

    /// Like `origin`, for lines that may hold a secret and must not be repeated on a screen.
    fn origin_without_text(&self, span: Range<usize>) -> Origin {
        let place = SourceLocation::at_offset(&self.path, &self.text, span.start);
        Origin::File(Box::new(SourceLocation { text: String::new(), ..place }))
    }

    /// Returns the place of one item of a list, which may have a line of its own.
    fn item(&self, list: Range<usize>, index: usize) -> Origin {
        let text = self.text.get(list.clone()).unwrap_or_default();
        let items = ValueDeserializer::parse(text).and_then(Vec::<Spanned<Value>>::deserialize).unwrap_or_default();
        let start = list.start + items.get(index).map_or(0, |item| item.span().start);
        self.origin(start..list.end)
    }

    /// Returns the folder that is meant: `~` is the user's, and what is relative starts at the config file, because
    /// the daemon's own folder is an accident of who started it.
    fn folder(&self, written: &str, env: &Env) -> PathBuf {
        let home = env.var("HOME").map(PathBuf::from);
        match (written.strip_prefix('~'), home) {
            (Some(""), Some(home)) => home,
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => {
                let folder = self.path.parent().unwrap_or(Path::new("")).join(written);
                std::path::absolute(&folder).unwrap_or(folder)
            }
        }
    }

    /// Turns what the parser says into what a person needs.
    fn refuse(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or_default();
        let at = self.origin(span.clone());
        let message = error.message();
        if let Some(rest) = message.strip_prefix("unknown field `") {
            let (key, expected) = rest.split_once('`').unwrap_or((rest, ""));
            return ConfigError::UnknownKey {
                at,
                key: key.to_owned(),
                fix: unknown_key_fix(key, expected, &self.text, span.start),
            };
        }
        // Maps are `env` and `headers`, and what stands there instead of one is as secret; the parser would repeat it.
        if message.starts_with("invalid type: string") && message.ends_with("expected a map") {
            return ConfigError::Syntax {
                at: self.origin_without_text(span),
                problem: "this is a text where names with a value each belong".to_owned(),
                fix: Some("{ NAME = \"value\" }".to_owned()),
            };
        }
        let fix = message.starts_with("duplicate key").then(|| "keep one of the two".to_owned());
        // The parser's examples have the newer word.
        let table = ServerTable::around(&self.text, span.start);
        ConfigError::Syntax { at, problem: message.replace("[server.files", &format!("[{table}.files")), fix }
    }
}

// === impl Flags ===

impl Flags {
    /// Returns a setting as typed, by its name.
    fn text(&self, key: &str) -> Option<String> {
        match key {
            "address" => self.address.clone(),
            "insecure" => self.insecure.then(|| "true".to_owned()),
            "port" => self.port.map(|port| port.to_string()),
            "request_timeout" => self.request_timeout.clone(),
            "max_request_time" => self.max_request_time.clone(),
            "start_timeout" => self.start_timeout.clone(),
            "max_message_bytes" => self.max_message_bytes.clone(),
            "session_idle_timeout" => self.session_idle_timeout.clone(),
            "max_sessions" => self.max_sessions.map(|count| count.to_string()),
            "log_bodies" => self.log_bodies.then(|| "true".to_owned()),
            "hub_mode" => self.hub_mode.clone(),
            "workspace" => self.workspace.clone(),
            _ => None,
        }
    }
}
