//! Destinations behind a URL, in `prism.toml`, on the command line and in the files of editors.

use std::path::Path;

use super::{
    super::{Config, DestinationConfig, EventNames, Flags, mcp_json, raw::RawConfig},
    *,
};

fn config(text: &str) -> Result<Config, ConfigError> {
    RawConfig::parse(Path::new("prism.toml"), text)?.config(&Env::default(), &Flags::default())
}

/// The one destination, of the lines below its `[server.docs]`.
fn docs(lines: &str) -> DestinationConfig {
    config(&format!("[server.docs]\n{lines}")).unwrap().destinations["docs"].clone()
}

/// Checks the whole text of an error, as it would stand on a screen.
#[track_caller]
fn refused(lines: &str, expected: &str) {
    let error = config(&format!("[destination.docs]\n{lines}")).unwrap_err().to_string();
    assert_eq!(error, expected, "{lines}");
}

const URL: &str = "url = \"https://example.com/mcp\"\n";
const COMMAND: &str = "command = [\"x\"]\n";

#[test]
fn what_is_not_said_of_a_url_is_at_its_default() {
    assert_eq!(docs(URL), DestinationConfig::http("docs", HttpConfig::new("https://example.com/mcp")));
    let destination = docs(URL);
    assert_eq!((destination.command.len(), destination.era, destination.legacy_sse), (0, None, false));
    assert_eq!((destination.event_names, destination.max_sessions), (EventNames::Message, 10));
}

// B-21
#[test]
fn an_sse_server_is_offered_as_one_unless_somebody_says_no() {
    for (lines, expected) in [
        ("type = \"sse\"", true),
        ("type = \"sse\"\nlegacy_sse = true", true),
        ("type = \"sse\"\nlegacy_sse = false", false),
        ("type = \"streamable_http\"", false),
        ("type = \"streamable_http\"\nlegacy_sse = true", true),
        ("", false),
    ] {
        assert_eq!(docs(&format!("{URL}{lines}")).legacy_sse, expected, "{lines}");
    }
}

#[test]
fn a_url_that_could_be_called_is_taken_as_it_is_written() {
    for url in [
        "http://localhost",
        "http://127.0.0.1:8080/mcp",
        "http://[::1]:8080/mcp",
        "HTTPS://Example.com/a%20b?key=value&x",
        "https://example.com:65535/",
    ] {
        assert_eq!(docs(&format!("url = {url:?}")).http.unwrap().url, url);
    }
}

#[test]
fn a_url_that_could_not_be_called_is_refused_and_not_repeated() {
    for (url, problem) in [
        ("\"\"", "is not a URL"),
        ("\"example.com/mcp\"", "is not a URL"),
        ("\"/mcp\"", "is not an absolute http or https URL"),
        ("\"example.com\"", "is not an absolute http or https URL"),
        ("\"ftp://example.com/mcp\"", "is not an absolute http or https URL"),
        ("\"stdio://x\"", "is not an absolute http or https URL"),
        ("\"http://\"", "is not a URL"),
        ("\"http:///mcp\"", "is not a URL"),
        ("\"http://:80/mcp\"", "has no host"),
        ("\"http://example.com:0/\"", "has a port that is not one"),
        ("\"http://example.com:/\"", "has a port that is not one"),
        ("\"http://example.com:65536/\"", "has a port that is not one"),
        ("\"http://me:hunter2@example.com/\"", "has a user or a password in it, which belong into headers"),
        ("\"http://me@example.com/\"", "has a user or a password in it, which belong into headers"),
        ("\"http://example.com/mcp#top\"", "has a fragment (#...), which no server ever sees"),
        (
            "\"http://example.com/a b\"",
            "has a character that no URL has: blanks and letters beyond ASCII are written as %20 and the like",
        ),
        (
            "\"http://exämple.com/\"",
            "has a character that no URL has: blanks and letters beyond ASCII are written as %20 and the like",
        ),
        ("[\"http://example.com\"]", "is not a text in quotes"),
        ("7", "is not a text in quotes"),
    ] {
        refused(
            &format!("url = {url}"),
            &format!("prism.toml:2:7: destination.docs.url {problem}\n  fix: url = \"https://example.com/mcp\""),
        );
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_the_way_out() {
    for (lines, expected) in [
        (
            format!("{COMMAND}{URL}"),
            "prism.toml:1:14: server \"docs\" has both a command and a url\n  [destination.docs]\n  \
             fix: keep one of the two",
        ),
        (
            format!("{URL}type = \"stdio\""),
            "prism.toml:3:8: destination.docs.type is \"stdio\", and there is a url\n  type = \"stdio\"\n  \
             fix: take it out, or say how the url is spoken to: type = \"streamable_http\"",
        ),
        (
            format!("{COMMAND}type = \"sse\""),
            "prism.toml:3:8: destination.docs.type is \"sse\", and there is a command\n  type = \"sse\"\n  \
             fix: take it out: a command is always spoken to by its stdio",
        ),
        (
            format!("{COMMAND}headers = {{ A = \"hunter2\" }}"),
            "prism.toml:3:11: destination.docs.headers is for a url, and there is a command\n  \
             fix: take it out; what a command must know is told by env = { NAME = \"value\" }",
        ),
        (
            format!("{URL}cwd = \"/\""),
            "prism.toml:3:7: destination.docs.cwd is for a command, and there is a url\n  \
             fix: take it out; nothing is started here",
        ),
        (
            format!("{URL}env = {{ A = \"hunter2\" }}"),
            "prism.toml:3:7: destination.docs.env is for a command, and there is a url\n  \
             fix: take it out; what the server must know is told by \
             headers = { Authorization = \"Bearer env:NAME\" }",
        ),
    ] {
        refused(&lines, expected);
    }
}

#[test]
fn a_wrong_choice_lists_the_right_ones() {
    for (line, expected) in [
        (
            "type = \"streamable-http\"",
            "prism.toml:3:8: destination.docs.type is \"streamable-http\", not one of \"streamable_http\", \"sse\", \
             \"stdio\"\n  type = \"streamable-http\"\n  fix: type = \"streamable_http\"",
        ),
        (
            "type = \"http\"",
            "prism.toml:3:8: destination.docs.type is \"http\", not one of \"streamable_http\", \"sse\", \"stdio\"\n  \
             type = \"http\"\n  fix: type = \"streamable_http\"",
        ),
        (
            "era = \"modren\"",
            "prism.toml:3:7: destination.docs.era is \"modren\", not one of \"auto\", \"legacy\", \"modern\"\n  \
             era = \"modren\"\n  fix: era = \"modern\"",
        ),
        (
            "sse_event_names = \"Methods\"",
            "prism.toml:3:19: destination.docs.sse_event_names is \"Methods\", not one of \"message\", \"method\"\n  \
             sse_event_names = \"Methods\"\n  fix: sse_event_names = \"method\"",
        ),
        (
            "legacy_sse = \"yes\"",
            "prism.toml:3:14: destination.docs.legacy_sse is \"yes\", not true or false\n  legacy_sse = \"yes\"\n  \
             fix: legacy_sse = true",
        ),
    ] {
        refused(&format!("{URL}{line}"), expected);
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_and_its_value_is_not_repeated() {
    for (header, problem, fix) in [
        ("\"\" = \"hunter2\"", " is not the name of a header", "headers = { Authorization = \"Bearer env:NAME\" }"),
        (
            "\"X Y\" = \"hunter2\"",
            "X Y is not the name of a header",
            "headers = { Authorization = \"Bearer env:NAME\" }",
        ),
        (
            "X = \"hunter2\\r\\nY: z\"",
            "X has a value that no header can carry: one line, without blanks around it",
            "X = \"env:NAME\"",
        ),
        (
            "X = \" hunter2\"",
            "X has a value that no header can carry: one line, without blanks around it",
            "X = \"env:NAME\"",
        ),
        ("X = \"Bearer env:\"", "X names no variable after env:", "X = \"env:NAME\""),
        (
            "X = [\"hunter2\"]",
            "X is not a text in quotes",
            "X = \"value\", or \"env:NAME\" to take it from the daemon's own environment",
        ),
    ] {
        refused(
            &format!("{URL}headers = {{ {header} }}"),
            &format!("prism.toml:3:13: destination.docs.headers.{problem}\n  fix: {fix}"),
        );
    }
    refused(
        &format!("{URL}headers = {{ A-Key = \"hunter1\", a-keY = \"hunter2\" }}"),
        "prism.toml:3:32: destination.docs.headers.a-keY is there twice: capitals make no difference in the name of a \
         header\n  fix: keep one of the two",
    );
}

#[test]
fn a_text_in_the_place_of_headers_or_env_is_not_repeated() {
    for (lines, column) in [(format!("{URL}headers = \"hunter2\""), 11), (format!("{COMMAND}env = \"hunter2\""), 7)] {
        refused(
            &lines,
            &format!(
                "prism.toml:3:{column}: this is a text where names with a value each belong\n  \
                 fix: {{ NAME = \"value\" }}"
            ),
        );
    }
}

#[test]
fn a_header_of_the_protocol_is_refused() {
    for name in [
        "Content-Type",
        "Accept",
        "Host",
        "Content-Length",
        "Connection",
        "Transfer-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-Region",
        "mcp-param-",
        "Last-Event-ID",
        "Upgrade",
    ] {
        refused(
            &format!("{URL}headers = {{ {name} = \"x\" }}"),
            &format!(
                "prism.toml:3:13: destination.docs.headers.{name} belongs to the protocol, and Prism sets it by \
                 itself\n  fix: take it out"
            ),
        );
    }
    for name in ["Authorization", "X-Mcp-Name", "Mcp-Parameter", "Accept-Language", "User-Agent", "Origin", "Cookie"] {
        docs(&format!("{URL}headers = {{ {name} = \"x\" }}"));
    }
}

#[test]
fn a_header_stays_as_it_is_written_and_takes_its_secret_from_elsewhere_whole_or_as_its_last_word() {
    let env = Env::from([("TOKEN", "hunter2"), ("EMPTY", ""), ("LINES", "a\nb")]);
    for (written, value) in [
        ("env:TOKEN", Some("hunter2")),
        ("Bearer env:TOKEN", Some("Bearer hunter2")),
        ("a b  env:TOKEN", Some("a b  hunter2")),
        ("env:TOKEN Bearer", Some("env:TOKEN Bearer")),
        ("Bearer=env:TOKEN", Some("Bearer=env:TOKEN")),
        ("text:Bearer env:TOKEN", Some("Bearer env:TOKEN")),
        ("", Some("")),
        ("plain", Some("plain")),
        ("env:NOPE", None),
        ("Bearer env:EMPTY", None),
        ("Bearer env:PRISM_API_KEY", None),
    ] {
        let http = docs(&format!("{URL}headers = {{ X = {written:?} }}")).http.unwrap();
        assert_eq!(http.headers["X"], written);
        assert_eq!(secret::resolve_header(written, &env).ok().as_deref(), value, "{written}");
    }
}

#[test]
fn debug_shows_neither_header_values_nor_the_query() {
    let destination = docs(
        "url = \"https://example.com/mcp?key=hunter2\"\nheaders = { Authorization = \"Bearer hunter2\" }\nera = \"modern\"",
    );
    let shown = format!("{destination:?}");
    assert!(!shown.contains("hunter2") && !shown.contains('?'), "{shown}");
    assert!(shown.contains("\"https://example.com/mcp\"") && shown.contains("Authorization"), "{shown}");
    assert!(shown.contains("Modern"), "{shown}");
}

fn from_flags(url: &str, headers: &[(&str, &str)], env: Option<&Env>) -> Result<HttpConfig, ConfigError> {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    HttpConfig::from_flags("run", url, Some(Transport::Sse), &headers, env)
}

#[test]
fn a_command_line_is_checked_like_a_file() {
    let env = Env::from([("TOKEN", "hunter2")]);
    let headers = [("Authorization", "Bearer env:TOKEN")];
    let http = from_flags("https://example.com/mcp", &headers, Some(&env)).unwrap();
    assert_eq!((http.url.as_str(), http.transport), ("https://example.com/mcp", Some(Transport::Sse)));
    assert_eq!(http.headers["Authorization"], "Bearer hunter2");
    let http = from_flags("https://example.com/mcp", &headers, None).unwrap();
    assert_eq!(http.headers["Authorization"], "Bearer env:TOKEN");

    for (url, headers, expected) in [
        (
            "example.com",
            &[][..],
            "option --url: url is not an absolute http or https URL\n  fix: --url https://example.com/mcp",
        ),
        (
            "http://a",
            &[("X Y", "hunter2")],
            "option --header: X Y is not the name of a header\n  fix: --header 'Authorization: Bearer env:NAME'",
        ),
        (
            "http://a",
            &[("X", "hunter2\n3")],
            "option --header: X has a value that no header can carry: one line, without blanks around it\n  \
             fix: --header 'X: env:NAME'",
        ),
        (
            "http://a",
            &[("Accept", "*/*")],
            "option --header: Accept belongs to the protocol, and Prism sets it by itself\n  fix: take it out",
        ),
        (
            "http://a",
            &[("x", "1"), ("X", "2")],
            "option --header: X is there twice: capitals make no difference in the name of a header\n  \
             fix: keep one of the two",
        ),
        (
            "http://a",
            &[("X", "env:NOPE")],
            "option --header: server \"run\" wants the environment variable NOPE, which is not set, or empty\n  \
             fix: export NOPE=... first, where Prism is started",
        ),
    ] {
        assert_eq!(from_flags(url, headers, Some(&env)).unwrap_err().to_string(), expected);
    }
}

fn import(entries: &str) -> mcp_json::McpJsonImport {
    let env = Env::from([("TOKEN", "hunter2"), ("HOST", "example.com")]);
    mcp_json::parse(Path::new("/srv/app/.cursor/mcp.json"), &format!(r#"{{"mcpServers": {{{entries}}}}}"#), &env)
        .unwrap()
}

#[test]
fn the_urls_of_editors_are_read_under_each_name_and_type() {
    for (entry, transport) in [
        (r#""url": "https://example.com/mcp""#, None),
        (r#""serverUrl": "https://example.com/mcp""#, None),
        (r#""httpUrl": "https://example.com/mcp""#, None),
        (r#""url": "https://example.com/mcp", "command": null, "headers": null, "type": null"#, None),
        (r#""url": "https://example.com/mcp", "type": "http""#, None),
        (r#""url": "https://example.com/mcp", "type": "sse""#, Some(Transport::Sse)),
        (r#""url": "https://example.com/mcp", "transport": "sse""#, Some(Transport::Sse)),
        (r#""url": "https://example.com/mcp", "type": "streamable-http""#, Some(Transport::StreamableHttp)),
        (r#""url": "https://example.com/mcp", "type": "streamableHttp""#, Some(Transport::StreamableHttp)),
        (r#""url": "https://example.com/mcp", "transport": "streamable_http""#, Some(Transport::StreamableHttp)),
    ] {
        let import = import(&format!(r#""docs": {{{entry}}}"#));
        let http = HttpConfig { transport, ..HttpConfig::new("https://example.com/mcp") };
        assert_eq!(import.warnings, [], "{entry}");
        assert_eq!(import.destinations["docs"], DestinationConfig::http("docs", http), "{entry}");
    }
}

#[test]
fn what_an_editor_would_fill_into_a_url_and_its_headers_is_filled_in() {
    let import = import(
        r#""docs": {"url": "https://${env:HOST}/mcp?k=${TOKEN}", "headers": {
            "Authorization": "Bearer ${env:TOKEN}", "A": "${TOKEN}", "B": "${NOPE:-b}", "C": 1, "D": null,
            "E": "env:TOKEN", "F": "env:"}}"#,
    );
    assert_eq!(import.warnings, []);
    let http = import.destinations["docs"].http.clone().unwrap();
    assert_eq!(http.url, "https://example.com/mcp?k=hunter2");
    let headers: Vec<(&str, &str)> = http.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [
        ("A", "hunter2"),
        ("Authorization", "Bearer hunter2"),
        ("B", "b"),
        ("C", "1"),
        // Our own way to name a variable is not theirs, as in `env`.
        ("E", "text:env:TOKEN"),
        ("F", "text:env:"),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn a_url_of_an_editor_that_cannot_be_used_is_left_out_with_its_reason() {
    let url = r#""url": "https://example.com/mcp""#;
    for (entry, reason) in [
        (format!(r#"{url}, "command": "x""#), "it has both a command and a url"),
        (format!(r#"{url}, "type": "stdio""#), "its type is stdio, and it has a url"),
        (r#""type": "sse", "command": "x""#.to_owned(), "it has no url"),
        (r#""type": "http""#.to_owned(), "it has no url"),
        (
            format!(r#"{url}, "type": "ws""#),
            "its type is \"ws\", which is none of stdio, http, streamable-http and sse",
        ),
        (format!(r#"{url}, "type": 3"#), "its type is 3, which is none of stdio, http, streamable-http and sse"),
        (format!(r#"{url}, "disabled": true"#), "it is disabled"),
        (r#""url": 3"#.to_owned(), "its url is not a text"),
        (r#""url": "example.com""#.to_owned(), "its url is not an absolute http or https URL"),
        (format!(r#"{url}, "headers": []"#), "its headers is not an object"),
        (format!(r#"{url}, "headers": {{"X": []}}"#), "headers.X is not a text"),
        (format!(r#"{url}, "headers": {{"X Y": "z"}}"#), "headers.X Y is not the name of a header"),
        (
            format!(r#"{url}, "headers": {{"X": "hunter\n2"}}"#),
            "headers.X has a value that no header can carry: one line, without blanks around it",
        ),
        (
            format!(r#"{url}, "headers": {{"X": "a", "x": "b"}}"#),
            "headers.x is there twice: capitals make no difference in the name of a header",
        ),
        (
            format!(r#"{url}, "headers": {{"X": "${{env:NOPE}}"}}"#),
            "it wants the environment variable NOPE, which is not set",
        ),
        // Nobody behind us would fill it in.
        (
            format!(r#"{url}, "headers": {{"X": "Bearer ${{NOPE}}"}}"#),
            "it wants the environment variable NOPE, which is not set",
        ),
        (format!(r#"{url}, "headers": {{"X": "${{input:key}}"}}"#), "only an editor can fill in ${input:key}"),
    ] {
        let import = import(&format!(r#""docs": {{{entry}}}"#));
        assert_eq!(import.destinations.len(), 0, "{entry}");
        let warnings: Vec<String> = import.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, [format!("/srv/app/.cursor/mcp.json: \"docs\" is skipped: {reason}")], "{entry}");
    }
}

#[test]
fn a_header_of_the_protocol_in_the_file_of_an_editor_is_left_out_alone() {
    let import = import(
        r#""docs": {"url": "https://example.com/mcp", "headers": {"accept": "application/json", "X-Key": "k"}}"#,
    );
    let http = import.destinations["docs"].http.clone().unwrap();
    assert_eq!(http.headers.into_iter().collect::<Vec<_>>(), [("X-Key".to_owned(), "k".to_owned())]);
    assert_eq!(
        import.warnings[0].to_string(),
        "/srv/app/.cursor/mcp.json: \"docs\" is taken without its header accept, which belongs to the protocol"
    );
}

// R-18
#[test]
fn credentials_cannot_be_forwarded() {
    let refused =
        |list: &str| config(&format!("[destination.docs]\n{URL}forward_headers = {list}\n")).unwrap_err().to_string();
    for name in ["Authorization", "cookie", "Proxy-Authorization", "Mcp-Session-Id"] {
        let error = refused(&format!("[{name:?}]"));
        assert!(error.contains("never passed on") && error.contains("fix: forward_headers = ["), "{error}");
    }
    assert!(refused("[\"a b\"]").contains("not the name of a header"));
}
