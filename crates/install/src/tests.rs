//! What is written into a text comes out of it again, whatever the text looks like.

use proptest::prelude::*;
use serde_json::Value;

use super::{
    ConfigFile, InstallError,
    document::{ConfigLanguage, ConfigText},
    entry::{EntryMarks, SurfaceTransport},
    jsonc::EmptyObjectRule,
    node::ConfigNode,
    surface::{Surface, SurfaceScope},
};
use prism_config::Env;

fn container(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn ours() -> ConfigNode {
    let way = SurfaceTransport::Http { url: "http://127.0.0.1:7420/mcp".to_owned(), token: "t".to_owned() };
    way.entry(Surface::Cursor, false)
}

/// What may stand between two tokens.
fn gap() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just(" "), 3 => Just("\n"), 1 => Just("\r\n"), 2 => Just("\t"), 3 => Just("\n  "),
        1 => Just("/* c */"), 1 => Just("// \"c\": {\n"), 1 => Just("// c\r\n"),
    ];
    proptest::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

/// An object with random members, gaps and a comma too many now and then; `named` members stand among them.
fn object(value: BoxedStrategy<String>, named: Option<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let member = |name: BoxedStrategy<String>, value: BoxedStrategy<String>| {
        (gap(), name, gap(), gap(), value, gap())
            .prop_map(|(a, name, b, c, value, d)| format!("{a}\"{name}\"{b}:{c}{value}{d}"))
    };
    let others = proptest::collection::btree_map("[a-d]", value, 0..3);
    let others = others.prop_flat_map(move |others| {
        others
            .into_iter()
            .map(|(name, value)| member(Just(name).boxed(), Just(value).boxed()).boxed())
            .collect::<Vec<_>>()
    });
    let named: BoxedStrategy<Vec<String>> = match named {
        Some((name, value)) => proptest::option::of(member(Just(name.to_owned()).boxed(), value))
            .prop_map(|it| it.into_iter().collect())
            .boxed(),
        None => Just(Vec::new()).boxed(),
    };
    (others, named, any::<bool>(), any::<bool>(), gap())
        .prop_map(|(mut members, named, first, trailing, gap)| {
            let place = if first { 0 } else { members.len() };
            members.splice(place..place, named);
            let comma = if trailing && !members.is_empty() { format!(",{gap}") } else { gap };
            format!("{{{}{comma}}}", members.join(","))
        })
        .boxed()
}

fn file() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("1"), Just("\"x // y\""), Just("[1, 2,]"), Just("{}"), Just("null")];
    let leaf = leaf.prop_map(str::to_owned).boxed();
    let servers = object(object(leaf.clone(), None), None);
    (gap(), object(leaf, Some(("mcpServers", servers))), gap()).prop_map(|(a, object, b)| format!("{a}{object}{b}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    // D-06
    #[test]
    fn adding_and_removing_leave_every_byte_as_it_was(text in file()) {
        let path = container(&["mcpServers"]);
        let added = ConfigText::new(ConfigLanguage::Json, &text).insert(&path, "prism", &ours()).unwrap();
        let value = ConfigText::new(ConfigLanguage::Json, &added).value().unwrap();
        prop_assert_eq!(&value["mcpServers"]["prism"], &ours().value());
        let removed = ConfigText::new(ConfigLanguage::Json, &added).remove(&path, "prism", EmptyObjectRule::GoesIfOurs).unwrap();
        prop_assert_eq!(removed, text);
    }

    // D-06: whichever member goes, the others stay.
    #[test]
    fn any_member_can_be_removed_and_the_rest_reads_the_same(text in file()) {
        let path = container(&["mcpServers"]);
        for entry in ConfigText::new(ConfigLanguage::Json, &text).entries(&path).unwrap() {
            let removed = ConfigText::new(ConfigLanguage::Json, &text).remove(&path, &entry.name, EmptyObjectRule::Stays).unwrap();
            let mut value = ConfigText::new(ConfigLanguage::Json, &text).value().unwrap();
            value["mcpServers"].as_object_mut().unwrap().remove(&entry.name);
            prop_assert_eq!(ConfigText::new(ConfigLanguage::Json, &removed).value().unwrap(), value);
        }
    }
}

// D-06: it looks as if its owner had written it.
#[test]
fn an_entry_stands_where_a_person_would_put_it() {
    let node = ConfigNode::table([("url", ConfigNode::text("u"))]);
    for (text, with) in [
        ("", "{\n  \"s\": {\n    \"p\": {\n      \"url\": \"u\"\n    }\n  }\n}\n"),
        ("{}", "{\"s\": {\n  \"p\": {\n    \"url\": \"u\"\n  }\n}}"),
        ("{\n  \"s\": {}\n}\n", "{\n  \"s\": {\"p\": {\n    \"url\": \"u\"\n  }}\n}\n"),
        (
            "{\n\t\"s\": {\n\t\t\"a\": 1 // one\n\t\t// two\n\t}\n}\n",
            "{\n\t\"s\": {\n\t\t\"a\": 1, // one\n\t\t\"p\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t\t// two\n\t}\n}\n",
        ),
        (
            "{\r\n    \"a\": 1, /* one */\r\n}",
            "{\r\n    \"a\": 1, /* one */\r\n    \"s\": {\r\n        \"p\": {\r\n            \"url\": \"u\"\r\n        }\r\n    },\r\n}",
        ),
        ("{\"s\":{\"a\":1}}", "{\"s\":{\"a\":1,\"p\":{\"url\":\"u\"}}}"),
        ("{ \"a\": 1 }", "{ \"a\": 1, \"s\": { \"p\": {\"url\": \"u\"} } }"),
    ] {
        assert_eq!(ConfigText::new(ConfigLanguage::Json, text).insert(&container(&["s"]), "p", &node).unwrap(), with);
    }
    for (text, with) in [
        ("", "[s.p]\nurl = \"u\"\n"),
        ("a = 1\r\n", "a = 1\r\n\r\n[s.p]\r\nurl = \"u\"\r\n"),
        ("a = 1", "a = 1\n\n[s.p]\nurl = \"u\""),
        ("s = { a = {} }\n", "s = { a = {}, p = { url = \"u\" } }\n"),
    ] {
        assert_eq!(ConfigText::new(ConfigLanguage::Toml, text).insert(&container(&["s"]), "p", &node).unwrap(), with);
    }
}

// D-06: Claude Code writes its file all the time.
#[test]
fn a_file_that_is_written_meanwhile_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    std::fs::write(&path, "{}").unwrap();
    let file = ConfigFile::open(&path).unwrap();
    std::fs::write(&path, "{ }").unwrap();
    assert!(matches!(file.write("[]", true), Err(InstallError::Raced { .. })));
    assert!(matches!(file.delete(&[]), Err(InstallError::Raced { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ }");
}

// D-06
#[test]
fn toml_that_has_our_entry_in_another_form_loses_it_and_nothing_else() {
    for (text, without) in [
        ("mcp_servers.prism.url = \"x\"\nmodel = \"o3\"\n", "model = \"o3\"\n"),
        (
            "[mcp_servers]\nprism = { url = \"x\" }\na = { command = \"y\" }\n",
            "[mcp_servers]\na = { command = \"y\" }\n",
        ),
        (
            "mcp_servers = { prism = { url = \"x\" }, a = { command = \"y\" } }\n",
            "mcp_servers = { a = { command = \"y\" } }\n",
        ),
        ("[mcp_servers.prism]\nurl = \"x\"\n\n[mcp_servers.prism.tools]\na = 1\n\n[tui]\nb = 2\n", "\n[tui]\nb = 2\n"),
        ("# mine\n[mcp_servers.prism]\nurl = \"x\"", "# mine"),
    ] {
        let removed = ConfigText::new(ConfigLanguage::Toml, text).remove(
            &container(&["mcp_servers"]),
            "prism",
            EmptyObjectRule::GoesIfOurs,
        );
        assert_eq!(removed.unwrap(), without);
    }
}

#[test]
fn an_entry_is_ours_by_its_port_its_token_or_its_shim() {
    let marks = EntryMarks { url: "http://127.0.0.1:7420/mcp".to_owned(), token: Some("secret".to_owned()) };
    let entry = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for ours in [
        r#"{"url": "http://127.0.0.1:7420/mcp"}"#,
        r#"{"serverUrl": "http://localhost:7420/files/mcp"}"#,
        r#"{"httpUrl": "http://[::1]:9/mcp", "headers": {"Authorization": "Bearer secret"}}"#,
        r#"{"command": "/opt/bin/prism", "args": ["stdio", "files"]}"#,
        r#"{"command": ["prism", "stdio"]}"#,
        r#"{"command": {"path": "prism", "args": ["stdio"]}}"#,
    ] {
        assert!(marks.are_on(&entry(ours)), "{ours}");
    }
    for theirs in [
        r#"{"url": "https://example.com:7420/mcp"}"#,
        r#"{"url": "https://127.example.com/mcp", "headers": {"Authorization": "Bearer secret"}}"#,
        r#"{"url": "http://127.0.0.1:7421/mcp"}"#,
        r#"{"command": "prism"}"#,
        r#"{"command": "photo-prism", "args": ["stdio"]}"#,
        r"{}",
    ] {
        assert!(!marks.are_on(&entry(theirs)), "{theirs}");
    }
}

#[test]
fn every_surface_has_a_file_of_its_own_in_the_home_folder() {
    let env = Env::from([("HOME", "/h")]);
    let files: std::collections::BTreeSet<_> =
        Surface::ALL.iter().map(|surface| surface.file(SurfaceScope::User, &env).unwrap()).collect();
    assert_eq!(files.len(), Surface::ALL.len());
    assert!(files.iter().all(|file| file.starts_with("/h")));
    assert!(Surface::Cursor.file(SurfaceScope::User, &Env::default()).is_err());
}
