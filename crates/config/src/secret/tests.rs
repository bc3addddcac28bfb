use std::os::unix::fs::symlink;

use super::*;

fn file(folder: &Path, text: &[u8], mode: u32) -> String {
    let path = folder.join("secret");
    let _ = fs::remove_file(&path);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    format!("file:{}", path.display())
}

#[test]
fn a_file_is_read_each_time_and_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let written = file(folder.path(), b"  hunter2\n\n", 0o600);
    assert_eq!(resolve(&written, &Env::default()).unwrap(), "hunter2");
    file(folder.path(), b"hunter3", 0o400);
    assert_eq!(resolve(&written, &Env::default()).unwrap(), "hunter3");
    assert_eq!(resolve_header(&format!("Bearer {written}"), &Env::default()).unwrap(), "Bearer hunter3");
    let env = Env::from([("HOME", folder.path().to_str().unwrap())]);
    assert_eq!(resolve("file:~/secret", &env).unwrap(), "hunter3");
    symlink(folder.path().join("secret"), folder.path().join("link")).unwrap();
    assert_eq!(resolve("file:~/link", &env).unwrap(), "hunter3");
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o644, 0o640, 0o604, 0o660] {
        let error = resolve(&file(folder.path(), b"hunter2", mode), &Env::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("(mode {mode:04o}); chmod 600 it")), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_file_that_holds_no_secret_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let large = vec![b'x'; 65 << 10];
    for (text, why) in [
        (&b" \n"[..], "is empty"),
        (b"a\0b", "is not text"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (&large, "is too large to be one"),
    ] {
        let error = resolve(&file(folder.path(), text, 0o600), &Env::default()).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
    let error = resolve("file:/no/such/secret", &Env::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the secret file /no/such/secret: "), "{error}");
    let error = resolve("file:/", &Env::default()).unwrap_err().to_string();
    assert!(error.ends_with("is no file"), "{error}");
}

#[test]
fn a_variable_that_is_missing_is_named_and_our_own_is_not_given_away() {
    let env = Env::from([("A", "hunter2"), ("EMPTY", ""), ("PRISM_API_KEY", "hunter2"), ("MCP_TOKEN", "hunter2")]);
    assert_eq!(resolve("env:A", &env).unwrap(), "hunter2");
    for name in ["NOPE", "EMPTY"] {
        let error = resolve(&format!("env:{name}"), &env).unwrap_err().to_string();
        assert!(error.contains(&format!("wants the environment variable {name}, which is not set")), "{error}");
    }
    for own in ["PRISM_API_KEY", "MCP_TOKEN"] {
        let error = resolve(&format!("env:{own}"), &env).unwrap_err().to_string();
        assert!(error.contains("Prism's own") && !error.contains("hunter2"), "{error}");
    }
}

// L9
#[test]
fn a_command_is_shown_without_the_secrets_in_it() {
    for (line, shown) in [
        ("npx -y some-server --api-key abc --port 1", "npx -y some-server --api-key … --port 1"),
        ("x --token=abc TOKEN=abc -v", "x --token=… TOKEN=… -v"),
        ("x --auth-token --verbose y", "x --auth-token --verbose y"),
        ("npx server postgresql://me:abc@db.local:5432/x?y", "npx server postgresql://me:…@db.local:5432/x?y"),
        ("x http://localhost/a@b /path:1 a=b", "x http://localhost/a@b /path:1 a=b"),
        ("x Authorization:abc", "x Authorization:…"),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(without_secrets(&words).join(" "), shown);
    }
    assert_eq!(without_secrets(&["--header".to_owned(), "Authorization: Bearer abc".to_owned()])[1], "Authorization:…");
}

/// A program in the place of the one that asks the keyring.
fn keyring(script: &str) -> (tempfile::TempDir, Env) {
    let folder = tempfile::tempdir().unwrap();
    for program in ["secret-tool", "security"] {
        let path = folder.path().join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let env = Env::from([("PATH", path.as_str()), ("DBUS_SESSION_BUS_ADDRESS", "bus"), ("TOKEN", "hunter2")]);
    (folder, env)
}

#[test]
fn the_keyring_is_asked_for_service_and_account() {
    let (_folder, env) = keyring("echo \"$*|$DBUS_SESSION_BUS_ADDRESS|$TOKEN\"");
    let secret = resolve("keyring:my service/me@example.com/x", &env).unwrap();
    if cfg!(target_os = "macos") {
        assert_eq!(secret, "find-generic-password -w -s my service -a me@example.com/x|bus|");
    } else {
        assert_eq!(secret, "lookup service my service username me@example.com/x|bus|");
    }
}

#[test]
fn a_keyring_without_the_secret_or_without_its_program_says_what_to_do() {
    let (_folder, env) = keyring("echo hunter2; exit 1");
    let error = resolve("keyring:s/a", &env).unwrap_err().to_string();
    assert!(error.contains("no secret for service \"s\" and account \"a\"") && error.contains("store"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let (_folder, env) = keyring("exit 0");
    assert!(matches!(resolve("keyring:s/a", &env), Err(SecretError::NotInKeyring { .. })), "nothing is no secret");
    let env = Env::from([("PATH", "/nowhere")]);
    let error = resolve("keyring:s/a", &env).unwrap_err().to_string();
    assert!(error.contains("is not installed") && error.contains("file:PATH"), "{error}");
}

#[test]
fn any_text_can_be_written_so_that_it_means_itself() {
    let env = Env::default();
    for text in ["plain", "env:NOPE", "file:./dev.db", "keyring:x", "text:env:A", "Bearer env:NOPE", "", "https://x"] {
        let written = literal(text);
        assert_eq!(resolve(&written, &env).unwrap(), text);
        assert_eq!(resolve_header(&written, &env).unwrap(), text);
        assert_eq!((check(&written), check_header(&written)), (Ok(()), Ok(())), "{written}");
    }
    assert_eq!(literal("plain"), "plain");
    assert_eq!(literal("https://x"), "https://x");
}
