//! What is told of what happens, whoever did it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::broadcast::Receiver, time::timeout};

use super::*;
use crate::{happening::EditorEvent, roots::GrantedRoots, run::git};

/// Long enough for a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn next(events: &mut Receiver<Arc<EditorEvent>>) -> (&'static str, Value, Option<u128>) {
    let happening = timeout(SOON, events.recv()).await.expect("it should be told").unwrap();
    (happening.event.name, happening.data.clone(), happening.by)
}

/// Reads on until something is told, and returns its data.
async fn until(events: &mut Receiver<Arc<EditorEvent>>, name: &str) -> Value {
    loop {
        let (told, data, _) = next(events).await;
        if told == name {
            return data;
        }
    }
}

#[tokio::test]
async fn what_an_action_does_is_told_once() {
    let shop = Shop::begun(true);
    let mut events = shop.runtime.listen();
    shop.write("first", "two\n");
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    assert_eq!(next(&mut events).await, ("status_updated", json!({ "path": shop.granted }), Some(7)));
    let commit = shop.run("git_commit", json!({ "message": "Two" })).await.unwrap()["commit"].clone();
    assert_eq!(next(&mut events).await, ("commit_made", json!({ "path": shop.granted, "commit": commit }), Some(7)));
    assert_eq!(next(&mut events).await.0, "status_updated");
    shop.run("git_branch", json!({ "name": "side", "create": true, "switch": true })).await.unwrap();
    assert_eq!(next(&mut events).await, ("branch_changed", json!({ "path": shop.granted, "branch": "side" }), Some(7)));
    assert_eq!(next(&mut events).await.0, "status_updated");
    shop.run("git_status", json!({})).await.unwrap();
    assert!(events.is_empty());
}

#[tokio::test]
async fn what_the_person_does_in_a_shell_is_told() {
    let shop = Shop::begun(true);
    shop.git(&["init", "-q", "--bare", shop.outside.join("remote.git").to_str().unwrap()]);
    shop.git(&["remote", "add", "origin", shop.outside.join("remote.git").to_str().unwrap()]);
    let root = policy::GrantRoot::new(shop.granted.to_str().unwrap()).unwrap();
    let roots = GrantedRoots::new(vec![root], Arc::default());
    let state = shop.runtime.state();
    let mut events = shop.runtime.listen();
    git::news::attend(&state.run, &roots, &shop.granted);
    let changed = || git::news::changed(&state.run, &roots, &shop.granted);

    shop.write("first", "main\n");
    shop.git(&["commit", "-qam", "Main"]);
    // However often the files change, it is one thing.
    (0..5).for_each(|_| changed());
    let commit = shop.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(next(&mut events).await, ("commit_made", json!({ "path": shop.granted, "commit": commit }), None));
    assert_eq!(next(&mut events).await.0, "status_updated");

    shop.git(&["push", "-q", "-u", "origin", "main"]);
    changed();
    assert_eq!(
        until(&mut events, "push_completed").await,
        json!({
            "path": shop.granted, "branch": "origin/main", "commit": commit,
        })
    );

    shop.git(&["switch", "-qc", "side", "HEAD~1"]);
    changed();
    assert_eq!(until(&mut events, "branch_changed").await["branch"], "side");
    shop.write("first", "side\n");
    shop.git(&["commit", "-qam", "Side"]);
    assert!(!shop.git_may_fail(&shop.granted, &["merge", "-q", "main"]).0);
    changed();
    assert_eq!(until(&mut events, "merge_conflict").await["paths"], json!([shop.path("first")]));
}

// E-03
#[tokio::test(flavor = "multi_thread")]
async fn who_watches_a_folder_hears_of_its_repository() {
    let shop = Shop::begun(true);
    let root = policy::GrantRoot::new(shop.granted.to_str().unwrap()).unwrap();
    let roots = GrantedRoots::new(vec![root], Arc::default());
    let state = shop.runtime.state();
    let mut events = shop.runtime.listen();
    let watches = state.watches.clone();
    let want = move |_: &_| watches.want(7, roots);
    state.editor.blocking(want).await.unwrap();
    shop.write("first", "two\n");
    shop.git(&["commit", "-qam", "Two"]);
    let commit = shop.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(until(&mut events, "commit_made").await["commit"], commit);
    shop.git(&["switch", "-qc", "side"]);
    assert_eq!(until(&mut events, "branch_changed").await["branch"], "side");
}
