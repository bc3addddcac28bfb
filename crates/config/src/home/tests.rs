//! The folder and its secret, on a real filesystem. D-03.

use std::{sync::Barrier, thread};

use super::*;

fn home_in(folder: &Path) -> Home {
    Home::find(&Env::from([("PRISM_HOME", folder.to_str().unwrap())])).unwrap()
}

fn mode(path: &Path) -> u32 {
    super::mode(&path.metadata().unwrap())
}

#[test]
fn the_folder_is_named_by_prism_home_or_else_lies_in_the_users() {
    let both = Env::from([("PRISM_HOME", "/p"), ("HOME", "/h")]);
    assert_eq!(folder(&both).unwrap(), Path::new("/p"));
    let user = Env::from([("PRISM_HOME", ""), ("HOME", "/h")]);
    assert_eq!(folder(&user).unwrap(), Path::new("/h/.prism"));
    assert!(matches!(folder(&Env::default()), Err(HomeError::Nowhere)));
}

#[test]
fn folder_and_token_are_made_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = home_in(&folder.path().join("deep/home"));
    assert_eq!(mode(home.path()), 0o700);
    let (token, origin) = home.token().unwrap();
    assert_eq!(origin, TokenOrigin::Made);
    assert_eq!(token.expose().len(), 64);
    assert!(token.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
    let path = home.path().join(TOKEN_FILE);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), token.expose());
}

#[test]
fn the_token_stays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = home_in(folder.path()).token().unwrap();
    let (second, origin) = home_in(folder.path()).token().unwrap();
    assert_eq!(first.expose(), second.expose());
    assert_eq!(origin, TokenOrigin::File);
}

#[test]
fn starts_at_once_agree_on_one_token() {
    const STARTS: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let home = home_in(folder.path());
    let barrier = Barrier::new(STARTS);
    let found: Vec<(Token, TokenOrigin)> = thread::scope(|scope| {
        let start = || {
            barrier.wait();
            home.token().unwrap()
        };
        let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let made = found.iter().filter(|(_, origin)| *origin == TokenOrigin::Made);
    assert_eq!(made.count(), 1);
    assert!(found.iter().all(|(token, _)| token.expose() == found[0].0.expose()));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside the token");
}

/// Sets the mode of a file or a folder.
fn change(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// D-03
#[test]
fn a_token_that_others_could_read_is_refused_with_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(TOKEN_FILE);
    fs::write(&path, "mine\n").unwrap();
    for wide in [0o644, 0o640, 0o604, 0o620, 0o602] {
        change(&path, wide);
        let error = home_in(folder.path()).token().unwrap_err();
        assert!(matches!(error, HomeError::Exposed { mode, .. } if mode == wide), "{error}");
        let (said, path) = (error.to_string(), path.display().to_string());
        assert!(said.contains(&format!("chmod 600 {path}")) && said.contains(&format!("rm {path}")), "{said}");
    }
    assert_eq!(mode(&path), 0o602, "it is left as it was");
    change(&path, 0o400);
    assert_eq!(home_in(folder.path()).token().unwrap().0.expose(), "mine");
}

// D-03: only root can give a file away.
#[test]
fn a_token_or_a_folder_of_somebody_else_is_refused() {
    if user_id() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(TOKEN_FILE);
    fs::write(&path, "theirs\n").unwrap();
    change(&path, 0o600);
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let error = home_in(folder.path()).token().unwrap_err();
    assert!(matches!(error, HomeError::NotOurs { uid: 65534, .. }), "{error}");

    std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
    let error = Home::find(&Env::from([("PRISM_HOME", folder.path().to_str().unwrap())])).unwrap_err();
    assert!(matches!(error, HomeError::Foreign { uid: 65534, .. }), "{error}");
}

// D-03
#[test]
fn a_folder_that_others_can_look_into_is_closed_and_one_they_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    change(folder.path(), 0o755);
    let home = home_in(folder.path());
    assert_eq!((home.tightened(), mode(folder.path())), (Some(0o755), 0o700));
    assert_eq!(home_in(folder.path()).tightened(), None);
    for wide in [0o775, 0o757, 0o1777] {
        change(folder.path(), wide);
        let error = Home::find(&Env::from([("PRISM_HOME", folder.path().to_str().unwrap())])).unwrap_err();
        assert!(matches!(error, HomeError::Open { mode, .. } if mode == wide), "{error}");
        assert!(error.to_string().contains(&format!("chmod 700 {}", folder.path().display())), "{error}");
    }
}

#[test]
fn the_environment_supplies_the_token_and_no_file_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let home = Home::find(&Env::from([("PRISM_HOME", path), ("PRISM_API_KEY", "key")])).unwrap();
    let (token, origin) = home.token().unwrap();
    assert_eq!((token.expose(), origin), ("key", TokenOrigin::Environment));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let spoilt = Env::from([("PRISM_HOME", path), ("PRISM_API_KEY", "two words")]);
    assert!(matches!(Home::find(&spoilt), Err(HomeError::ApiKey)));
    let empty = Env::from([("PRISM_HOME", path), ("PRISM_API_KEY", "")]);
    assert_eq!(Home::find(&empty).unwrap().token().unwrap().1, TokenOrigin::Made);
}

//
#[test]
fn a_management_secret_of_the_environment_is_what_the_file_says_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let without = Env::from([("PRISM_HOME", path)]);
    let made = Home::find(&without).unwrap().management().unwrap();
    let with = Env::from([("PRISM_HOME", path), ("MCP_TOKEN", "of-the-person")]);
    Home::find(&with).unwrap().management().unwrap();
    let found = existing_management(&without).unwrap().unwrap();
    assert_eq!((found.expose(), mode(&folder.path().join(MANAGEMENT_FILE))), ("of-the-person", 0o600));
    assert!(!made.matches(b"of-the-person"));
    // What the clients have is refused, and written nowhere.
    let both = Env::from([("PRISM_HOME", path), ("MCP_TOKEN", "one"), ("PRISM_API_KEY", "one")]);
    assert!(matches!(Home::find(&both).unwrap().management(), Err(HomeError::OneSecret)));
    assert_eq!(existing_management(&without).unwrap().unwrap().expose(), "of-the-person");
}

#[test]
fn an_empty_token_file_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(TOKEN_FILE), " \n").unwrap();
    change(&folder.path().join(TOKEN_FILE), 0o600);
    let error = home_in(folder.path()).token().unwrap_err();
    assert!(matches!(error, HomeError::NoToken { .. }), "{error}");
}

// L9: opening a pipe would wait until somebody writes to it.
#[test]
fn a_pipe_in_the_place_of_a_token_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join(TOKEN_FILE);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = home_in(folder.path()).token().unwrap_err();
    assert!(matches!(error, HomeError::NoToken { .. }), "{error}");
}

#[test]
fn a_home_that_is_a_file_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let env = Env::from([("PRISM_HOME", file.path().to_str().unwrap())]);
    let error = Home::find(&env).unwrap_err();
    assert!(matches!(&error, HomeError::NotAFolder { path } if path == file.path()), "{error}");
}

// D-04
#[test]
fn a_token_matches_itself_only_and_debug_hides_it() {
    let token = Token::read("secret").unwrap();
    assert!(token.matches(b"secret"));
    assert!(!token.matches(b"secreT") && !token.matches(b"secre") && !token.matches(b""));
    assert!(!format!("{token:?}").contains("secret"));
}
