use std::{path::Path, sync::mpsc, time::Duration};

use tempfile::TempDir;
use tokio::{task::JoinSet, time::timeout};

use super::*;
use crate::Store;

type Write = Box<dyn FnOnce(&Connection) -> rusqlite::Result<()> + Send>;

/// Long enough for anything that works, on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(20);

async fn soon<T>(event: impl Future<Output = T>) -> T {
    timeout(DEADLINE, event).await.expect("it should have happened by now")
}

fn open(home: &TempDir) -> Store {
    Store::open(&home.path().join("prism.db")).unwrap()
}

fn insert(destination: &str) -> impl FnOnce(&Connection) -> rusqlite::Result<()> + use<> {
    let destination = destination.to_owned();
    move |connection| connection.execute("INSERT INTO quiet VALUES (?1, 's', '1', 0)", [destination]).map(drop)
}

/// Returns what a stranger sees in the file.
fn destinations(home: &Path) -> Vec<String> {
    let connection = Connection::open(home.join("prism.db")).unwrap();
    let mut statement = connection.prepare("SELECT destination FROM quiet ORDER BY 1").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Holds the thread up until the returned sender is used, so that what is queued meanwhile makes one batch.
async fn hold(store: &Store) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel();
    let (arrive, arrived) = oneshot::channel();
    let writer = store.writer.clone();
    tokio::spawn(async move {
        let wait = move |_: &Connection| {
            arrive.send(()).unwrap();
            released.recv_timeout(DEADLINE).unwrap();
            Ok(())
        };
        writer.write(wait).await
    });
    soon(arrived).await.unwrap();
    release
}

/// Waits until every task that was spawned before has been polled: there is one thread, and it goes in order.
async fn all_polled() {
    tokio::spawn(async {}).await.unwrap();
}

/// Does writes in one batch, as far as they fit, and returns what became of each.
async fn batch(store: &Store, writes: Vec<Write>) -> Vec<Result<(), StoreWriteError>> {
    let release = hold(store).await;
    let mut tasks = JoinSet::new();
    for (i, write) in writes.into_iter().enumerate() {
        let writer = store.writer.clone();
        tasks.spawn(async move { (i, writer.write(write).await) });
    }
    all_polled().await;
    release.send(()).unwrap();
    let mut outcomes = soon(tasks.join_all()).await;
    outcomes.sort_by_key(|&(i, _)| i);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[tokio::test]
async fn a_thousand_writers_share_a_few_commits() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let names: Vec<String> = (0..1000).map(|i| format!("{i:04}")).collect();
    let writes = names.iter().map(|name| Box::new(insert(name)) as Write).collect();

    let outcomes = batch(&store, writes).await;

    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(destinations(home.path()), names);
    // The one that held the thread up, and full batches after it.
    assert_eq!(store.commits(), 1 + 1000_u64.div_ceil(MAX_BATCH as u64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_on_many_threads_are_all_durable_when_answered() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let mut tasks = JoinSet::new();
    for i in 0..1000 {
        let store = store.clone();
        tasks.spawn(async move { store.remember_quiet(&i.to_string(), "s", "1", 0).await });
    }
    let outcomes = soon(tasks.join_all()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(destinations(home.path()).len(), 1000);
    assert!(store.commits() < 500, "{} commits", store.commits());
}

#[tokio::test]
async fn a_full_queue_makes_writers_wait() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let count = MAX_QUEUED * 2;
    let writes = (0..count).map(|i| Box::new(insert(&i.to_string())) as Write).collect();
    let outcomes = batch(&store, writes).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(destinations(home.path()).len(), count);
}

#[tokio::test]
async fn a_write_is_durable_before_it_is_acknowledged() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for i in 1..=20 {
        store.writer.write(insert(&i.to_string())).await.unwrap();
        assert_eq!(destinations(home.path()).len(), i);
    }
}

#[tokio::test]
async fn a_write_that_fails_fails_alone_and_whole() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let half = |connection: &Connection| {
        insert("half")(connection)?;
        insert("half")(connection)
    };

    let outcomes = batch(&store, vec![Box::new(insert("a")), Box::new(half), Box::new(insert("b"))]).await;

    assert!(matches!(outcomes[..], [Ok(()), Err(StoreWriteError::Refused { .. }), Ok(())]), "{outcomes:?}");
    assert_eq!(destinations(home.path()), ["a", "b"]);
    assert_eq!(store.commits(), 2, "the one that held the thread up, and one for all three");
}

#[tokio::test]
async fn what_nobody_waits_for_goes_along_or_by_itself() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    soon(store.writer.write_behind(insert("alone"))).await.unwrap();
    assert_eq!((destinations(home.path()), store.commits()), (vec!["alone".to_owned()], 1));

    let release = hold(&store).await;
    let mut tasks = JoinSet::new();
    for i in 0..3 {
        let writer = store.writer.clone();
        tasks.spawn(async move { writer.write_behind(insert(&i.to_string())).await });
    }
    let writer = store.writer.clone();
    tasks.spawn(async move { writer.write(insert("waited for")).await });
    all_polled().await;
    release.send(()).unwrap();
    assert!(soon(tasks.join_all()).await.iter().all(Result::is_ok));
    assert_eq!(store.commits(), 3, "one for the lone one, one that held the thread up, and one for all four");
}

#[tokio::test]
async fn what_nobody_waits_for_is_written_before_the_end() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let release = hold(&store).await;
    let writer = store.writer.clone();
    tokio::spawn(async move { writer.write_behind(insert("last")).await });
    all_polled().await;
    release.send(()).unwrap();
    store.close();
    assert_eq!(destinations(home.path()), ["last"]);
}

#[tokio::test]
async fn the_log_is_folded_in_while_others_write() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let length = || std::fs::metadata(home.path().join("prism.db")).unwrap().len();
    let before = length();
    // Far fewer than it would take for a commit to do it.
    for i in 0..2000 {
        soon(store.writer.write(insert(&i.to_string()))).await.unwrap();
        if length() > before {
            return;
        }
    }
    panic!("all that was written is still in the log");
}

#[tokio::test]
async fn the_log_of_a_process_that_was_killed_is_folded_in_by_the_next() {
    let (home, killed) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&home);
    let long = "x".repeat(2 << 20);
    soon(store.writer.write(insert(&long))).await.unwrap();
    for file in ["prism.db", "prism.db-wal"] {
        std::fs::copy(home.path().join(file), killed.path().join(file)).unwrap();
    }
    let length = || std::fs::metadata(killed.path().join("prism.db")).unwrap().len();
    assert!(length() < 2 << 20, "it is in the log");
    let _next = open(&killed);
    let folded = async {
        while length() < 2 << 20 {
            tokio::task::yield_now().await;
        }
    };
    soon(folded).await;
}

#[tokio::test]
async fn a_lost_transaction_is_acknowledged_to_nobody() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    // What SQLite does by itself when the disk is full.
    let lose = |connection: &Connection| {
        connection.execute_batch("ROLLBACK")?;
        Err(rusqlite::Error::InvalidQuery)
    };

    let outcomes = batch(&store, vec![Box::new(insert("a")), Box::new(lose), Box::new(insert("b"))]).await;

    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreWriteError::Commit { .. }))), "{outcomes:?}");
    assert_eq!(destinations(home.path()), [""; 0]);
    store.writer.write(insert("after")).await.unwrap();
    assert_eq!(destinations(home.path()), ["after"]);
}

#[tokio::test]
async fn a_write_whose_caller_leaves_still_happens() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let release = hold(&store).await;
    let writer = store.writer.clone();
    let caller = tokio::spawn(async move { writer.write(insert("left")).await });
    all_polled().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    store.close();
    assert_eq!(destinations(home.path()), ["left"]);
}

#[tokio::test]
async fn a_closed_store_refuses_writes_of_every_clone() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let clone = store.clone();
    store.close();
    store.close();
    assert!(matches!(soon(clone.writer.write(insert("late"))).await, Err(StoreWriteError::Closed)));
}

#[tokio::test]
async fn closing_finishes_what_is_queued_and_refuses_who_waits_for_a_place() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let release = hold(&store).await;
    let mut tasks = JoinSet::new();
    for i in 0..MAX_QUEUED * 3 {
        let writer = store.writer.clone();
        tasks.spawn(async move { writer.write(insert(&i.to_string())).await });
    }
    all_polled().await;
    release.send(()).unwrap();
    // Blocks the only thread of this runtime, so whoever waits for a place is not polled meanwhile.
    store.close();
    let outcomes = soon(tasks.join_all()).await;
    let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(accepted, MAX_QUEUED);
    assert_eq!(destinations(home.path()).len(), accepted);
}

#[tokio::test]
async fn dropping_the_last_clone_ends_the_thread() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let shared = Arc::downgrade(&store.writer.shared);
    drop(store.clone());
    assert!(shared.upgrade().is_some());
    drop(store);
    assert!(shared.upgrade().is_none(), "the thread held it");
}

#[tokio::test]
async fn a_thread_that_panics_leaves_no_caller_waiting() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let writes: Vec<Write> =
        vec![Box::new(insert("a")), Box::new(|_: &Connection| panic!("on purpose")), Box::new(insert("b"))];
    let outcomes = batch(&store, writes).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreWriteError::Closed))), "{outcomes:?}");
    assert!(matches!(soon(store.writer.write(insert("c"))).await, Err(StoreWriteError::Closed)));
    store.close();
    assert_eq!(destinations(home.path()), [""; 0]);
}

#[tokio::test]
async fn a_thread_that_panics_leaves_nobody_waiting_for_a_place() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let mut writes: Vec<Write> = vec![Box::new(|_: &Connection| panic!("on purpose"))];
    writes.extend((0..MAX_QUEUED * 3).map(|i| Box::new(insert(&i.to_string())) as Write));
    let outcomes = batch(&store, writes).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreWriteError::Closed))));
}
