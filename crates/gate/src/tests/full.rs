//! Taking away where there is no room to write it down (H6, L8): it is done, it is said what is not on record, and it stays done.

use std::{fs, path::PathBuf};

use super::*;

/// A log that cannot be written.
struct FullLog {
    file: PathBuf,
    away: PathBuf,
}

impl FullLog {
    fn of(world: &World) -> Self {
        let folder = world.home.path().join("audit");
        let full = Self { file: folder.join("audit.jsonl"), away: folder.join("away") };
        fs::rename(&full.file, &full.away).unwrap();
        fs::create_dir(&full.file).unwrap();
        full
    }

    fn make_room(self) {
        fs::remove_dir(&self.file).unwrap();
        fs::rename(&self.away, &self.file).unwrap();
    }
}

impl World {
    /// Another daemon after one that was killed: what was not on disk is lost.
    async fn after_a_kill(self, full: Option<FullLog>) -> Self {
        let Self { gate, home, project } = self;
        gate.store.close();
        // Its last try fails, too.
        gate.audit.close();
        drop(gate);
        if let Some(full) = full {
            full.make_room();
        }
        Self { gate: open(home.path(), config::GateConfig::default()).await, home, project }
    }

    fn actions(&self) -> Vec<String> {
        let lines = prism_store::audit::tail(&self.home.path().join("audit"), 1000).unwrap();
        let action =
            |line: &String| serde_json::from_str::<Value>(line).unwrap()["action"].as_str().unwrap().to_owned();
        lines.iter().rev().map(action).collect()
    }
}

async fn is_over(held: &GrantLease) -> GrantEnd {
    timeout(LONG, held.ended()).await.expect("it has ended")
}

// H6: "the grant is dead at once … the line is written when there is room, before anything else is"
#[tokio::test]
async fn a_full_log_keeps_no_grant_alive() {
    let world = World::new().await;
    let (gate, held) = (&world.gate, world.granted().await);
    let child = world.narrowed(&held, json!({"agent_id": "b"})).await.unwrap();
    let (other, _) = world.ask().await;
    let full = FullLog::of(&world);
    let taken = gate.revoke(Uuid::from_u128(held.id()), "test").await.unwrap();
    assert_eq!(taken.revoked, 2);
    let unwritten = taken.unwritten.expect("it says what is not on record");
    assert!(unwritten.contains("it is done") && unwritten.contains("audit log"), "{unwritten}");
    assert!(!unwritten.contains("database"), "{unwritten}");
    assert_eq!((is_over(&held).await, is_over(&child).await), (GrantEnd::Revoked, GrantEnd::Revoked));
    let path = world.project.path().join("a.txt").display().to_string();
    assert_eq!(act(gate, &held, "open_file", json!({"path": path})).await, Err("revoked"));
    // What gives is not done without its line.
    let approve = gate.approve(approval(other), "test", true).await;
    assert_eq!(approve.unwrap_err().code, "failed");
    assert!(gate.unsettled().is_some());
    full.make_room();
    gate.approve(approval(other), "test", true).await.unwrap();
    assert_eq!(gate.unsettled(), None);
    let actions = world.actions();
    let place = |action: &str| actions.iter().rposition(|one| one == action).expect(action);
    assert!(place("revoke") < place("approve"), "{actions:?}");
    prism_store::audit::verify(gate.audit.folder(), |_, _| ()).unwrap();
}

// L8: "Full database, writable log: the grant *is* ended, the answer says \"nothing was done\"."
#[tokio::test]
async fn a_full_database_keeps_no_grant_alive_and_the_answer_says_so() {
    let world = World::new().await;
    let held = world.granted().await;
    world.gate.store.close();
    let taken = world.gate.revoke(Uuid::from_u128(held.id()), "test").await.unwrap();
    assert_eq!(taken.revoked, 1);
    let unwritten = taken.unwritten.expect("it says what is not on record");
    assert!(unwritten.contains("it is done") && unwritten.contains("database"), "{unwritten}");
    assert!(!unwritten.contains("audit log"), "{unwritten}");
    assert_eq!(is_over(&held).await, GrantEnd::Revoked);
    assert!(world.gate.grants(true).unwrap().is_empty(), "nobody sees it as alive");
    assert!(world.gate.unsettled().is_some());
    assert!(world.actions().contains(&"revoke".to_owned()));
}

// H6: "grants that were revoked in memory only must not live again after kill -9"
#[tokio::test]
async fn what_was_revoked_with_everything_full_stays_so_after_a_kill() {
    let world = World::new().await;
    let (held, living) = (world.granted().await, world.granted().await);
    let child = world.narrowed(&held, json!({"agent_id": "b"})).await.unwrap();
    let (id, child, living) = (held.id(), child.id(), living.id());
    let full = FullLog::of(&world);
    world.gate.store.close();
    let taken = world.gate.revoke(Uuid::from_u128(id), "test").await.unwrap();
    let unwritten = taken.unwritten.expect("it says what is not on record");
    assert!(unwritten.contains("audit log") && unwritten.contains("database"), "{unwritten}");
    drop(held);
    let world = world.after_a_kill(Some(full)).await;
    let state = |id| world.gate.store.grant(id).unwrap().unwrap().state;
    assert_eq!((state(id), state(child), state(living)), ("REVOKED".into(), "REVOKED".into(), "APPROVED".into()));
    let alive: Vec<Uuid> =
        world.gate.grants(true).unwrap().iter().map(|view| view.session_id.parse().unwrap()).collect();
    assert_eq!(alive, [Uuid::from_u128(living)]);
    assert_eq!(world.actions().iter().filter(|action| *action == "revoke").count(), 1);
    assert_eq!(world.gate.unsettled(), None);
    // And that is all: the next daemon has nothing to make good.
    let lines = world.actions().len();
    let world = world.after_a_kill(None).await;
    assert_eq!(world.actions().iter().filter(|action| *action == "revoke").count(), 1);
    assert!(world.actions().len() <= lines + 2, "{:?}", world.actions());
}

// H6
#[tokio::test]
async fn a_request_that_was_denied_with_everything_full_is_not_approved_afterwards() {
    let world = World::new().await;
    let (gate, (request_id, _)) = (&world.gate, world.ask().await);
    let full = FullLog::of(&world);
    gate.store.close();
    let unwritten = gate.deny(request_id, Some("no".to_owned()), "console").await.unwrap();
    assert!(unwritten.is_some_and(|why| why.contains("it is done")));
    full.make_room();
    let approve = gate.approve(approval(request_id), "test", true).await.unwrap_err();
    assert_eq!((approve.code, approve.message.contains("denied")), ("not_pending", true), "{}", approve.message);
}

// H6: to say no is to take away.
#[tokio::test]
async fn what_is_denied_while_the_log_is_full_is_not_done() {
    let world = World::new().await;
    let (gate, held) = (&world.gate, world.granted().await);
    let path = world.project.path().join("a.txt");
    fs::write(&path, "text").unwrap();
    let (done, full) =
        tokio::join!(act(gate, &held, "delete_file", json!({"path": path.display().to_string()})), async {
            let shown = world.shown().await;
            let full = FullLog::of(&world);
            assert_eq!(
                world.say(&shown, true).await.unwrap_err().code,
                "failed",
                "nothing is allowed without its line"
            );
            let unwritten = gate.confirm(answer(&shown, false), "test").await.unwrap();
            assert!(unwritten.is_some_and(|why| why.contains("audit log")));
            full
        });
    assert_eq!(done, Err("denied"));
    assert!(path.exists());
    full.make_room();
}
