//! Values: from what stands in a file, a variable or a flag to what it means, or to what is wrong with it.

use std::{net::IpAddr, time::Duration};

use hyper::header::HeaderName;
use prism_core::{
    mcp::Era,
    policy::{DefaultRule, NameGlob},
};
use prism_os::sandbox::NetworkAccess;
use toml::Value;

use super::{
    AuditCalls, ConfigError, EnvInheritance, ErrorStatuses, EventNames, HubMode, Origin, PinPolicy, ProcessSharing,
    SessionRequirement, Transport, http, inherit::is_pattern, raw::nearest,
};

/// A value before it is understood. `Bare` comes from outside a file, where nothing has quotes.
pub(super) enum ConfigValue<'a> {
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
    List(&'a [Value]),
    Other(&'static str),
    Bare(&'a str),
}

/// What is wrong with a value, and a right one as it would stand in the file.
pub(super) struct ValueProblem {
    pub(super) problem: String,
    pub(super) example: String,
}

pub(super) type Parse<T> = fn(&ConfigValue<'_>) -> Result<T, ValueProblem>;

/// The longest duration one can write. It keeps `Instant + Duration` from overflowing everywhere else.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

// === impl ConfigValue ===

impl<'a> From<&'a Value> for ConfigValue<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Integer(number) => Self::Integer(*number),
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Array(values) => Self::List(values),
            Value::Float(_) => Self::Other("a number with a fraction"),
            Value::Datetime(_) => Self::Other("a date"),
            Value::Table(_) => Self::Other("a table"),
        }
    }
}

impl ConfigValue<'_> {
    /// Makes the complaint that this value is not what is wanted.
    fn is_not(&self, wanted: &str, example: &str) -> ValueProblem {
        ValueProblem { problem: format!("is {}, not {wanted}", self.shown()), example: example.to_owned() }
    }

    /// What a person is told that it is.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Bare(text) => format!("{text:?}"),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }
}

// === impl ValueProblem ===

impl ValueProblem {
    /// Makes the error of it: where it stands, and the way out as one would write it there.
    pub(super) fn at(self, key: &str, at: &Origin) -> ConfigError {
        let Self { problem, example } = self;
        let bare = example.trim_matches(['[', ']', '"']);
        let fix = match at {
            Origin::File(_) => format!("{} = {example}", key.rsplit('.').next().unwrap_or(key)),
            Origin::Variable(name) => format!("{name}={bare}"),
            Origin::Flag(name) => format!("--{name} {bare}"),
        };
        ConfigError::Value { at: at.clone(), key: key.to_owned(), problem, fix }
    }
}

pub(super) fn address(value: &ConfigValue<'_>) -> Result<IpAddr, ValueProblem> {
    let (ConfigValue::Text(text) | ConfigValue::Bare(text)) = value else {
        return Err(value.is_not("an IP address", "\"127.0.0.1\""));
    };
    let text = if *text == "localhost" { "127.0.0.1" } else { text };
    text.parse().map_err(|_| value.is_not("an IP address", "\"127.0.0.1\""))
}

pub(super) fn port(value: &ConfigValue<'_>) -> Result<u16, ValueProblem> {
    let number = match value {
        ConfigValue::Integer(number) => u16::try_from(*number).ok(),
        ConfigValue::Bare(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| value.is_not("a port from 0 to 65535", "7420"))
}

pub(super) fn count(value: &ConfigValue<'_>) -> Result<usize, ValueProblem> {
    let number: Option<usize> = match value {
        ConfigValue::Integer(number) => usize::try_from(*number).ok(),
        ConfigValue::Bare(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| *number > 0).ok_or_else(|| value.is_not("a whole number from 1 up", "10"))
}

/// What becomes of a call that no rule is for.
pub(super) fn otherwise(value: &ConfigValue<'_>) -> Result<DefaultRule, ValueProblem> {
    match value {
        ConfigValue::Text("allow") => Ok(DefaultRule::Allow),
        ConfigValue::Text("confirm") => Ok(DefaultRule::Confirm),
        ConfigValue::Text("deny") => Ok(DefaultRule::Deny),
        _ => Err(value.is_not("\"allow\", \"confirm\" or \"deny\"", "\"deny\"")),
    }
}

/// What becomes of a tool that is no longer what it was.
pub(super) fn pin(value: &ConfigValue<'_>) -> Result<PinPolicy, ValueProblem> {
    match value {
        ConfigValue::Text("ask") => Ok(PinPolicy::Ask),
        ConfigValue::Text("warn") => Ok(PinPolicy::Warn),
        ConfigValue::Text("off") => Ok(PinPolicy::Off),
        _ => Err(value.is_not("\"ask\", \"warn\" or \"off\"", "\"ask\"")),
    }
}

/// How many files are kept; 0 keeps all.
pub(super) fn files_kept(value: &ConfigValue<'_>) -> Result<usize, ValueProblem> {
    match value {
        ConfigValue::Integer(0) => Ok(0),
        ConfigValue::Bare(text) if text.trim() == "0" => Ok(0),
        _ => count(value).map_err(|_| value.is_not("a whole number (0 keeps all)", "10")),
    }
}

/// How long a name may be. Below the least there is no room for what tells two tools apart; the most is what the
/// protocol allows.
pub(super) fn name_length(value: &ConfigValue<'_>) -> Result<usize, ValueProblem> {
    count(value)
        .ok()
        .filter(|length| (16..=128).contains(length))
        .ok_or_else(|| value.is_not("a whole number from 16 to 128", "64"))
}

pub(super) fn boolean(value: &ConfigValue<'_>) -> Result<bool, ValueProblem> {
    match value {
        ConfigValue::Boolean(value) => Ok(*value),
        ConfigValue::Bare(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(value.is_not("true or false", "true")),
        },
        _ => Err(value.is_not("true or false", "true")),
    }
}

pub(super) fn timeout(value: &ConfigValue<'_>) -> Result<Option<Duration>, ValueProblem> {
    duration(value).map(|duration| Some(duration).filter(|duration| !duration.is_zero()))
}

pub(super) fn duration(value: &ConfigValue<'_>) -> Result<Duration, ValueProblem> {
    const WANTED: &str = "a duration such as \"30s\", \"500ms\", \"5m\" or 0";
    let text = match value {
        ConfigValue::Integer(0) => return Ok(Duration::ZERO),
        ConfigValue::Integer(number) if *number > 0 => {
            let example = format!("\"{number}s\"");
            return Err(value.is_not("a duration: it has no unit", &example));
        }
        ConfigValue::Text(text) | ConfigValue::Bare(text) => text.trim(),
        _ => return Err(value.is_not(WANTED, "\"30s\"")),
    };
    let (number, unit) = number_and_unit(text).ok_or_else(|| value.is_not(WANTED, "\"30s\""))?;
    let milliseconds = match unit {
        "" if number == 0 => 0,
        "" => {
            let example = format!("\"{number}s\"");
            return Err(value.is_not("a duration: it has no unit", &example));
        }
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(value.is_not(WANTED, "\"30s\"")),
    };
    number
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| value.is_not("at most 365 days", "\"365d\""))
}

/// A duration as one would write it.
pub(super) fn in_words(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let fits = units.into_iter().find(|(_, unit)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit));
    fits.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", milliseconds / unit))
}

/// Elsewhere zero waits for ever, and here it could as well mean not at all; so it is neither.
pub(super) fn patience(value: &ConfigValue<'_>) -> Result<Duration, ValueProblem> {
    let duration = duration(value)?;
    if duration.is_zero() {
        return Err(value.is_not("longer than nothing", "\"5s\""));
    }
    Ok(duration)
}

pub(super) fn bytes(value: &ConfigValue<'_>) -> Result<usize, ValueProblem> {
    const WANTED: &str = "a size such as 1048576, \"2MiB\" or \"500kB\"";
    let wrong = || value.is_not(WANTED, "\"1MiB\"");
    let (number, unit) = match value {
        ConfigValue::Integer(number) => (u64::try_from(*number).map_err(|_| wrong())?, ""),
        ConfigValue::Text(text) | ConfigValue::Bare(text) => number_and_unit(text.trim()).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(factor)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wrong)
}

/// A ceiling on memory; `None`, written as `0`, is none.
pub(super) fn ceiling(value: &ConfigValue<'_>) -> Result<Option<u64>, ValueProblem> {
    /// With less not even a small server starts, and it is ended again and again.
    const LEAST: u64 = 16 << 20;
    if matches!(value, ConfigValue::Integer(0) | ConfigValue::Text("0") | ConfigValue::Bare("0")) {
        return Ok(None);
    }
    let bytes = bytes(value).map_err(|wrong| ValueProblem { example: "\"2GiB\"".to_owned(), ..wrong })? as u64;
    if bytes < LEAST {
        return Err(value.is_not("at least \"16MiB\" (or 0, for no ceiling)", "\"2GiB\""));
    }
    Ok(Some(bytes))
}

pub(super) fn inherit(value: &ConfigValue<'_>) -> Result<EnvInheritance, ValueProblem> {
    const WANTED: &str = "\"allowed\", \"all\" or a list of names such as [\"AWS_PROFILE\", \"MY_*\"]";
    match value {
        ConfigValue::Text(text) | ConfigValue::Bare(text) => match text.trim() {
            "allowed" => return Ok(EnvInheritance::Allowed),
            "all" => return Ok(EnvInheritance::All),
            typed => {
                if let Some(near) = nearest(typed, ["allowed", "all"].into_iter()) {
                    return Err(value.is_not(WANTED, &format!("{near:?}")));
                }
            }
        },
        _ => {}
    }
    let names = list(value, "").map_err(|_| value.is_not(WANTED, &example_list(value, "AWS_PROFILE")))?;
    match names.iter().find(|name| !is_pattern(name)) {
        Some(name) => Err(ValueProblem {
            problem: format!("has {name:?}, which is neither the name of a variable nor the beginning of one and a *"),
            example: if name == "*" { "\"all\"" } else { "[\"AWS_PROFILE\", \"MY_*\"]" }.to_owned(),
        }),
        None => Ok(EnvInheritance::Also(names)),
    }
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

pub(super) fn text(value: &ConfigValue<'_>) -> Result<String, ValueProblem> {
    match value {
        ConfigValue::Text(text) if !text.is_empty() && !text.contains('\0') => Ok((*text).to_owned()),
        _ => Err(value.is_not("a folder", "\"/home/me/project\"")),
    }
}

/// A folder that may be named outside a file too, where a name that is not UTF-8 arrives with marks in it.
pub(super) fn folder(value: &ConfigValue<'_>) -> Result<String, ValueProblem> {
    match value {
        ConfigValue::Bare(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
            Err(value.is_not("a folder whose name is UTF-8", "\"/home/me/project\""))
        }
        ConfigValue::Bare(name) => text(&ConfigValue::Text(name)),
        _ => text(value),
    }
}

/// A URL. It may hold a secret, so the complaint does not repeat it.
pub(super) fn url(value: &ConfigValue<'_>) -> Result<String, ValueProblem> {
    let checked = match value {
        ConfigValue::Text(text) | ConfigValue::Bare(text) => http::check_url(text).map(|()| (*text).to_owned()),
        _ => Err("is not a text in quotes"),
    };
    checked.map_err(|problem| ValueProblem {
        problem: problem.to_owned(),
        example: "\"https://example.com/mcp\"".to_owned(),
    })
}

/// A value of `env` or `headers`. It may be a secret too.
pub(super) fn variable(value: &ConfigValue<'_>) -> Result<String, ValueProblem> {
    match value {
        ConfigValue::Text(text) if !text.contains('\0') => Ok((*text).to_owned()),
        _ => Err(ValueProblem {
            problem: "is not a text in quotes".to_owned(),
            example: "\"value\", or \"env:NAME\" to take it from the daemon's own environment".to_owned(),
        }),
    }
}

pub(super) fn command(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    const EXAMPLE: &str = "[\"npx\", \"-y\", \"some-mcp-server\"]";
    match value {
        ConfigValue::Text(text) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let example = if words.is_empty() || text.contains(['"', '\'', '\\']) {
                EXAMPLE.to_owned()
            } else {
                format!("{words:?}")
            };
            Err(value.is_not("a list with each word by itself", &example))
        }
        ConfigValue::List(values) => {
            let words: Option<Vec<String>> = values.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            words
                .filter(|words| words.first().is_some_and(|program| !program.trim().is_empty()))
                .filter(|words| words.iter().all(|word| !word.contains('\0')))
                .ok_or_else(|| ValueProblem {
                    problem: "is not a list of texts that begins with a program".to_owned(),
                    example: EXAMPLE.to_owned(),
                })
        }
        _ => Err(value.is_not("a list with each word by itself", EXAMPLE)),
    }
}

/// A command that may be none, for a language that is to have no server.
pub(super) fn language_server(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    match value {
        ConfigValue::List([]) => Ok(Vec::new()),
        _ => command(value),
    }
}

/// Folders by name.
pub(super) fn folders(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    let example = example_list(value, "/opt/sdk");
    let names = list(value, &example)?;
    match names.iter().find(|name| name.contains('\0')) {
        Some(name) => Err(ValueProblem { problem: format!("has {name:?}, which is no folder"), example }),
        None => Ok(names),
    }
}

/// Whether a server is in a sandbox, where that is all that is said.
pub(super) fn is_sandboxed(value: &ConfigValue<'_>) -> Result<bool, ValueProblem> {
    boolean(value).map_err(|_| value.is_not("true, false or a table with folders, readable and network", "true"))
}

/// What of the network a sandbox reaches.
pub(super) fn network(value: &ConfigValue<'_>) -> Result<NetworkAccess, ValueProblem> {
    choice(value, [NetworkAccess::All, NetworkAccess::Own], NetworkAccess::name)
}

pub(super) fn process(value: &ConfigValue<'_>) -> Result<ProcessSharing, ValueProblem> {
    choice(value, ProcessSharing::ALL, ProcessSharing::as_str)
}

pub(super) fn sessions(value: &ConfigValue<'_>) -> Result<SessionRequirement, ValueProblem> {
    choice(value, SessionRequirement::ALL, SessionRequirement::as_str)
}

/// The `type` of a destination; `None` is a command.
pub(super) fn transport(value: &ConfigValue<'_>) -> Result<Option<Transport>, ValueProblem> {
    let [streamable_http, sse] = Transport::ALL.map(Some);
    choice(value, [streamable_http, sse, None], |transport| transport.map_or("stdio", Transport::as_str))
}

/// An `era`; `None` is to find out.
pub(super) fn era(value: &ConfigValue<'_>) -> Result<Option<Era>, ValueProblem> {
    let [legacy, modern] = Era::ALL.map(Some);
    choice(value, [None, legacy, modern], |era| era.map_or("auto", Era::name))
}

pub(super) fn event_names(value: &ConfigValue<'_>) -> Result<EventNames, ValueProblem> {
    choice(value, EventNames::ALL, EventNames::as_str)
}

pub(super) fn error_statuses(value: &ConfigValue<'_>) -> Result<ErrorStatuses, ValueProblem> {
    choice(value, ErrorStatuses::ALL, ErrorStatuses::as_str)
}

pub(super) fn hub_mode(value: &ConfigValue<'_>) -> Result<HubMode, ValueProblem> {
    choice(value, HubMode::ALL, HubMode::as_str)
}

pub(super) fn audit_calls(value: &ConfigValue<'_>) -> Result<AuditCalls, ValueProblem> {
    choice(value, AuditCalls::ALL, AuditCalls::as_str)
}

fn choice<T: Copy, const N: usize>(
    value: &ConfigValue<'_>,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, ValueProblem> {
    let typed = match value {
        ConfigValue::Text(text) => *text,
        ConfigValue::Bare(text) => text.trim(),
        _ => "",
    };
    all.into_iter().find(|choice| name(*choice) == typed).ok_or_else(|| {
        let names = all.map(name);
        let example = nearest(typed, names.into_iter()).unwrap_or(names[0]);
        let wanted = names.map(|name| format!("{name:?}")).join(", ");
        value.is_not(&format!("one of {wanted}"), &format!("{example:?}"))
    })
}

pub(super) fn hosts(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    const EXAMPLE: &str = "[\"build.example\"]";
    let hosts = list(value, EXAMPLE)?;
    match hosts.iter().find(|host| host.contains(['/', '*', '@']) || host.contains(char::is_whitespace)) {
        Some(host) => Err(ValueProblem {
            problem: format!("has {host:?}, which is not the name of one host"),
            example: EXAMPLE.to_owned(),
        }),
        None => Ok(hosts),
    }
}

pub(super) fn forward_headers(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    const EXAMPLE: &str = "[\"X-Tenant\", \"X-Team-*\"]";
    let names = list(value, EXAMPLE)?;
    let problem = |name: &String| {
        let begin = name.strip_suffix('*').unwrap_or(name);
        match HeaderName::from_bytes(begin.as_bytes()) {
            Err(_) if name != "*" => Some(format!("has {name:?}, which is not the name of a header")),
            Ok(header) if begin.len() == name.len() && !http::may_forward(header.as_str()) => {
                Some(format!("has {name:?}, which is never passed on: a credential, or the protocol's own"))
            }
            _ => None,
        }
    };
    match names.iter().find_map(problem) {
        Some(problem) => Err(ValueProblem { problem, example: EXAMPLE.to_owned() }),
        None => Ok(names.into_iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

pub(super) fn origins(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    const EXAMPLE: &str = "[\"https://build.example\"]";
    let origins = list(value, EXAMPLE)?;
    let is_origin = |origin: &&String| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*']))
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(origin) => Err(ValueProblem {
            problem: format!("has {origin:?}, which is not an origin: a scheme and a host, no path"),
            example: EXAMPLE.to_owned(),
        }),
        None => Ok(origins),
    }
}

pub(super) fn destinations(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    list(value, &example_list(value, "files"))
}

/// Destinations of which there must be one, since nothing would be left without.
pub(super) fn some_destinations(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    let destinations = destinations(value)?;
    if destinations.is_empty() {
        return Err(ValueProblem {
            problem: "is an empty list, so nothing would be shown".to_owned(),
            example: "[\"files\"], or take it out to show all".to_owned(),
        });
    }
    Ok(destinations)
}

pub(super) fn tool_patterns(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    list(value, &example_list(value, "files__*"))
}

pub(super) fn member_patterns(value: &ConfigValue<'_>) -> Result<Vec<String>, ValueProblem> {
    let example = example_list(value, "*_pin");
    let patterns = list(value, &example)?;
    if patterns.iter().any(|pattern| NameGlob::new(pattern).is_err()) {
        return Err(value.is_not("a list of patterns of at most 256 characters each", &example));
    }
    Ok(patterns)
}

/// A list as an example: with the text in it that somebody wrote in place of a list.
fn example_list(value: &ConfigValue<'_>, example: &str) -> String {
    match value {
        ConfigValue::Text(text) if !text.trim().is_empty() => format!("[{text:?}]"),
        _ => format!("[{example:?}]"),
    }
}

/// A list of texts; outside a file they are separated by commas.
fn list(value: &ConfigValue<'_>, example: &str) -> Result<Vec<String>, ValueProblem> {
    let words: Option<Vec<String>> = match value {
        ConfigValue::List(values) => {
            values.iter().map(|word| word.as_str().map(|word| word.trim().to_owned())).collect()
        }
        ConfigValue::Bare(text) => Some(text.split(',').map(|word| word.trim().to_owned()).collect()),
        _ => None,
    };
    words
        .filter(|words| words.iter().all(|word| !word.is_empty()))
        .ok_or_else(|| value.is_not("a list of texts", example))
}
