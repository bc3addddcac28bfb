//! Programs that lie on PATH and cannot work, and servers that cannot load what they need.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::{
    language::SourceLanguage,
    lsp::catalogue::{self, ServerChoice, ServerKind},
};

/// What rustup's proxy says where the component is not installed.
const PROXY: &str = "#!/bin/sh\necho \"error: Unknown binary 'rust-analyzer' in official toolchain\" >&2\nexit 1\n";
const WORKS: &str = "#!/bin/sh\necho rust-analyzer 1.95.0\n";

fn program(folder: &Path, script: &str, mode: u32) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("rust-analyzer"), script).unwrap();
    fs::set_permissions(folder.join("rust-analyzer"), PermissionsExt::from_mode(mode)).unwrap();
}

/// Looks for the server of Rust in folders `1` and `2`, in this order.
fn found_in(folder: &Path) -> Result<ServerChoice, Refusal> {
    let mut env = environment();
    let places = format!("{}:{}:/usr/bin:/bin", folder.join("1").display(), folder.join("2").display());
    env.insert("PATH".into(), places.into());
    let prove = |kind: &ServerKind, path: &Path| kind.look.at(path, Path::new("/"), &env, None);
    catalogue::choose(
        SourceLanguage::Rust,
        &EditorSettings::default(),
        &env,
        Path::new("/granted"),
        Path::new("/granted"),
        &prove,
    )
}

//
#[test]
fn a_program_that_cannot_work_is_not_installed_and_the_next_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    program(&first, PROXY, 0o755);
    let refusal = found_in(folder.path()).unwrap_err();
    assert_eq!(refusal.code, Code::Unsupported);
    for part in ["is not installed", "Unknown binary", "`rustup component add rust-analyzer rust-src`"] {
        assert!(refusal.message.contains(part), "{part}: {}", refusal.message);
    }
    program(&second, WORKS, 0o755);
    assert_eq!(found_in(folder.path()).unwrap().command, [text(&second.join("rust-analyzer"))]);
}

//
#[test]
fn broken_links_and_files_that_nobody_may_execute_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("1");
    program(&first, WORKS, 0o644);
    let refusal = found_in(folder.path()).unwrap_err();
    assert!(refusal.message.contains("may not be executed"), "{}", refusal.message);
    fs::remove_file(first.join("rust-analyzer")).unwrap();
    symlink("/no/such/program", first.join("rust-analyzer")).unwrap();
    let refusal = found_in(folder.path()).unwrap_err();
    assert!(refusal.message.contains("leads nowhere"), "{}", refusal.message);
    fs::remove_file(first.join("rust-analyzer")).unwrap();
    let refusal = found_in(folder.path()).unwrap_err();
    assert!(refusal.message.contains("was not found on PATH"), "{}", refusal.message);
}

// as an agent sees it, behind the fence; and what helps is noticed without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_what_to_type_instead_of_the_last_words_of_a_proxy() {
    let tools = tempfile::tempdir().unwrap();
    let tools = tools.path().canonicalize().unwrap();
    program(&tools, PROXY, 0o755);
    let server = text(&tools.join("rust-analyzer"));
    let shop = Workshop::with("pull", |settings| drop(settings.servers.insert("rust".to_owned(), vec![server])));
    shop.write("Cargo.toml", "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n");
    let path = shop.write("src/lib.rs", "");
    let refusal = shop.refused("get_errors", json!({ "path": path })).await;
    assert_eq!(refusal.code, Code::Unsupported, "{}", refusal.message);
    assert!(refusal.message.contains("Unknown binary 'rust-analyzer'"), "{}", refusal.message);
    let listed = shop.server("rust").await;
    assert_eq!(listed["state"], "not_found", "{listed}");
    program(&tools, WORKS, 0o755);
    assert_eq!(shop.server("rust").await["state"], "not_started");
}

//
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_cannot_know_is_left_out_and_said() {
    let shop = Workshop::scripted("lacks");
    let path = shop.write("a.md", "bad\nbroken\n");
    for args in [json!({ "path": path }), json!({})] {
        let told = shop.run("get_errors", args).await;
        assert_eq!((messages(&told), &told["is_complete"]), (vec!["broken"], &json!(false)), "{told}");
        assert!(told["note"].as_str().unwrap().contains("`rustup component add rust-src`"), "{told}");
    }
    let place = json!({ "line": 0, "character": 0 });
    let found = shop.run("goto_definition", json!({ "path": path, "position": place })).await;
    assert_eq!(found["is_complete"], false, "{found}");
    shop.runtime.close().await;
}
