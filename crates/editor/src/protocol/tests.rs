//! Messages as they are written, and the schema that says so.

use std::{fs, path::Path};

use serde_json::json;

use super::*;

//
#[test]
fn a_plugin_is_understood_whatever_more_it_says() {
    let written = json!({"type": "register", "protocol": 1, "instance_id": "i", "kind": "vscode", "roots": ["/w"],
        "capabilities": ["open_file"], "ui": true, "token": "s3cret", "of_the_future": {"a": 1}});
    let FromPlugin::Register(register) = serde_json::from_value(written).unwrap() else { panic!("a registration") };
    assert_eq!((register.roots.as_slice(), register.ui), (&["/w".to_owned()][..], true));
    assert!(!format!("{register:?}").contains("s3cret"), "a secret is in no log");
    for wrong in [
        json!({"type": "register", "protocol": 1}),
        json!({"type": "approve", "id": 1}),
        json!({"id": 1, "status": "ok"}),
        json!({"type": "result", "id": "one", "status": "ok"}),
        json!([]),
    ] {
        assert!(serde_json::from_value::<FromPlugin>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn an_event_is_named_in_either_form() {
    let told = |event: &str, data: Value| {
        let written = json!({"event": event, "seq": 1, "data": data});
        serde_json::from_value::<EventMessage>(written).unwrap().name().to_owned()
    };
    assert_eq!(told("file_saved", json!({"path": "/a"})), "file_saved");
    assert_eq!(told("editor_state", json!({"event": "file_saved"})), "file_saved");
    assert_eq!(told("file_saved", json!({"event": "buffer_changed"})), "file_saved", "no category, so the name counts");
}

#[test]
fn an_error_keeps_its_code_unless_that_is_the_gates_own() {
    for (code, becomes) in [
        ("changed", Code::Changed),
        ("not_found", Code::NotFound),
        ("unsupported", Code::Unsupported),
        ("forbidden", Code::Failed),
        ("revoked", Code::Failed),
        ("ENOENT", Code::Failed),
    ] {
        for member in ["error", "data"] {
            let written = json!({"id": 1, "status": "error", member: {"code": code, "message": "m"}});
            let refusal = serde_json::from_value::<ResultMessage>(written).unwrap().result().unwrap_err();
            assert_eq!((refusal.code, refusal.message.as_str()), (becomes, "m"), "{code}");
        }
    }
    let silent = json!({"id": 1, "status": "error"});
    assert_eq!(serde_json::from_value::<ResultMessage>(silent).unwrap().result().unwrap_err().code, Code::Failed);
}

#[test]
fn a_path_is_absolute_and_leads_down_also_as_a_uri() {
    for (written, path) in [
        ("/a/b", Some("/a/b")),
        ("/a//b/", Some("/a/b")),
        ("file:///a/b%20c%C3%A9", Some("/a/b cé")),
        ("file://localhost/a", Some("/a")),
        ("file://elsewhere/a", None),
        ("file:///a/%2e%2e/b", None),
        ("file:///a%", None),
        ("a/b", None),
        ("/a/../b", None),
        ("/a\0", None),
        ("untitled:Untitled-1", None),
        ("vscode-scm:/a", None),
        ("", None),
    ] {
        assert_eq!(as_path(written).as_deref(), path.map(Path::new), "{written:?}");
    }
    assert!(is_beneath(Path::new("/a/b"), Path::new("/a")) && is_beneath(Path::new("/a"), Path::new("/a")));
    assert!(!is_beneath(Path::new("/ab"), Path::new("/a")));
}

//
#[test]
fn the_schema_in_docs_is_the_one_that_is_spoken() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugin.schema.json");
    let written = fs::read_to_string(file).unwrap_or_default();
    let made = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    assert!(written == made, "docs/plugin.schema.json is another; it should be:\n{made}");
}
