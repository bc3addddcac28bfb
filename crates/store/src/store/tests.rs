use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use tempfile::TempDir;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_store_can_be_shared_between_threads() {
    fn check<T: Clone + Send + Sync>() {}
    check::<Store>();
}

#[tokio::test]
async fn every_file_is_private() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    let store = Store::open(&path).unwrap();
    store.remember_quiet("fs", "server", "1.0", 5).await.unwrap();
    let files: Vec<PathBuf> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "database, log and index: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
}

#[test]
fn a_file_that_others_could_read_is_made_private() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    fs::write(&path, []).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    Store::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn commits_are_durable_and_logged_ahead() {
    let home = TempDir::new().unwrap();
    let connection = connect_new(&home.path().join("prism.db"));
    let pragma = |name| -> String {
        connection.pragma_query_value(None, name, |row| Ok(format!("{:?}", row.get_ref(0)?.as_str().ok()))).unwrap()
    };
    assert_eq!(pragma("journal_mode"), "Some(\"wal\")");
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(synchronous, 2, "FULL");
}

fn connect_new(path: &Path) -> Connection {
    make_private(path).unwrap();
    connect(path).unwrap()
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    let schema = |path: &Path| -> Vec<String> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql NOT NULL").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    drop(Store::open(&path).unwrap());
    let first = schema(&path);
    drop(Store::open(&path).unwrap());
    assert_eq!(schema(&path), first);
    assert!(!first.is_empty());
}

#[test]
fn a_database_from_the_future_is_refused_and_left_as_it_is() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    connect_new(&path).pragma_update(None, "user_version", 4711).unwrap();

    let error = Store::open(&path).unwrap_err();

    assert!(matches!(error, StoreOpenError::Newer { found: 4711, .. }), "{error}");
    assert!(error.to_string().contains("is of version 4711"), "{error}");
    let version: i64 =
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 4711);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    fs::write(&path, "not a database, but long enough to be taken for one ".repeat(100)).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreOpenError::Open { .. })));
}

#[test]
fn a_missing_directory_is_named() {
    let error = Store::open(Path::new("/no/such/directory/prism.db")).unwrap_err();
    assert_eq!(error.to_string(), "cannot create database \"/no/such/directory/prism.db\"");
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let home = TempDir::new().unwrap();
    let store = Store::open(&home.path().join("prism.db")).unwrap();
    store.remember_quiet("fs", "server", "1.0", 5).await.unwrap();
    store.quiet().unwrap();
    store.close();
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}
