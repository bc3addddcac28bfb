use std::{fs, time::Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

fn learned(destination: &str, era: &str, learned_at_us: i64) -> LearnedEra {
    LearnedEra { destination: destination.to_owned(), era: era.to_owned(), learned_at_us }
}

#[tokio::test]
async fn what_is_remembered_survives_reopening() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    let store = Store::open(&path).unwrap();
    store.remember_era("fs", "modern", 5).await.unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.eras().unwrap(), [learned("fs", "modern", 5)]);
}

#[tokio::test]
async fn the_last_verdict_on_each_destination_counts() {
    let home = TempDir::new().unwrap();
    let store = Store::open(&home.path().join("prism.db")).unwrap();
    for (destination, era, at_us) in [("git", "legacy", 4), ("fs", "modern", 7), ("fs", "legacy", 6)] {
        store.remember_era(destination, era, at_us).await.unwrap();
    }
    assert_eq!(store.eras().unwrap(), [learned("fs", "legacy", 6), learned("git", "legacy", 4)]);
}

#[tokio::test]
async fn a_destination_is_forgotten_alone() {
    let home = TempDir::new().unwrap();
    let store = Store::open(&home.path().join("prism.db")).unwrap();
    store.remember_era("fs", "modern", 5).await.unwrap();
    store.remember_era("git", "legacy", 5).await.unwrap();
    store.forget_era("fs").await.unwrap();
    assert_eq!(store.eras().unwrap(), [learned("git", "legacy", 5)]);
}

#[tokio::test]
async fn one_can_look_while_the_store_is_open_and_after_it_was_closed() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    let store = Store::open(&path).unwrap();
    store.remember_era("fs", "modern", 5).await.unwrap();
    assert_eq!(eras_at(&path).unwrap(), [learned("fs", "modern", 5)]);
    store.close();
    assert_eq!(eras_at(&path).unwrap(), [learned("fs", "modern", 5)]);
}

#[test]
fn looking_creates_nothing() {
    let home = TempDir::new().unwrap();
    assert!(matches!(eras_at(&home.path().join("prism.db")), Err(StoreReadError::Open { .. })));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn looking_migrates_nothing() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE quiet (x TEXT)").unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(eras_at(&path), Err(StoreReadError::Query { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    fs::write(&path, "not a database, but long enough to be taken for one ".repeat(100)).unwrap();
    assert!(matches!(eras_at(&path), Err(StoreReadError::Query { .. })));
}

#[test]
fn who_looks_does_not_wait_long_for_a_lock() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("prism.db");
    // With the old journal, which a filesystem without shared memory has: there a writer does lock readers out.
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("CREATE TABLE era (x TEXT); BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let error = eras_at(&path).unwrap_err();
    assert!(matches!(error, StoreReadError::Query { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}
