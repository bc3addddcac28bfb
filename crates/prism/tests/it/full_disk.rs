//! Disk full, log full, database full, each while a grant acts (H6, L8): revoking works, what the grant
//! had started is gone, nothing is acted on without a line, and all is written when there is room.
//!
//! Small file systems are made in a namespace of the test's own, which any user may have where the kernel allows it.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{
    Home,
    gate::{Gate, Granted, Holder, SETTINGS, answer},
    process,
    seen::{line, seen, told},
    skipped, soon, until,
};

/// Says to a test that it runs where it may mount.
const INSIDE: &str = "PRISM_TEST_MOUNTS";

/// Where there is little room.
const SMALL: &str = "12m";

/// Returns whether this is the process in which a test may mount. Elsewhere it is run once more, in such a one.
fn may_mount(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).arg(std::env::current_exe().unwrap());
    // With threads, since those have the names of their tests.
    command.args([&format!("full_disk::{test}"), "--exact", "--nocapture", "--test-threads", "2"]);
    let ran = command.env(INSIDE, "1").output();
    match ran {
        Ok(ran) => {
            let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
            if said.contains("unshare: ") && !said.contains("running 1 test") {
                skipped(test, &format!("no namespace of one's own is to be had here: {}", said.trim()));
            } else {
                assert!(ran.status.success() && said.contains("1 passed"), "{said}");
            }
        }
        Err(error) => skipped(test, &format!("there is no unshare: {error}")),
    }
    false
}

fn mount(place: &Path) {
    let options = format!("size={SMALL},mode=0700");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(place).status().unwrap();
    assert!(mounted.success());
}

/// A file that takes all the room there is.
struct Full(PathBuf);

impl Full {
    fn of(folder: &Path) -> Self {
        let full = Self(folder.join("fill"));
        full.again();
        full
    }

    /// Takes what has become free.
    fn again(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// A daemon with a grant that has a program running.
struct Acting {
    gate: Gate,
    granted: Granted,
    holder: Holder,
    programs: Vec<u32>,
    /// What the agent was told last.
    heard: String,
}

/// `small`: folders of Prism's home on small file systems of their own.
async fn acting(small: &[&str]) -> Acting {
    let home = Home::new();
    for below in small {
        let place = home.path().join(below);
        fs::create_dir_all(&place).unwrap();
        mount(&place);
    }
    let gate = Gate::start_at(SETTINGS, &home).await;
    let granted = gate.granted(&["read:files", "run:commands"]).await;
    let mut holder = gate.hold(&granted).await;
    holder.begins("exec_command", json!({"command": "sleep 1000", "cwd": gate.project()})).await;
    let shown = gate.confirmation().await;
    assert_eq!(answer(&gate, &shown, &shown["digest"], true).await.0, 200);
    let mut programs = Vec::new();
    until("the command runs", async || {
        programs = gate.daemon.children();
        !programs.is_empty()
    })
    .await;
    Acting { gate, granted, holder, programs, heard: String::new() }
}

impl Acting {
    /// Acts until nothing more can be written down, as an agent would that wants to be rid of the log.
    async fn uses_up_the_log(&mut self, full: &Full) {
        let mut other = self.gate.hold(&self.granted).await;
        until("nothing is done without its line", async || {
            full.again();
            let read = other.does("open_file", json!({"path": "main.rs"})).await;
            self.heard = told(&read);
            read["data"]["code"] == "failed"
        })
        .await;
    }

    async fn revoked(&mut self) -> Value {
        let (status, told) = self.gate.as_person("/mcp/revoke", json!({"session_id": self.granted.id})).await;
        assert_eq!((status, &told["revoked"]), (200, &json!(1)), "{told}");
        assert_eq!(self.holder.closed().await, 4001);
        let programs = &self.programs;
        until("its programs are gone", async || programs.iter().all(|pid| !process::is_there(*pid))).await;
        assert_eq!(self.gate.grant_seen(&self.granted.id).await["status"], "REVOKED");
        told
    }

    /// Waits until all is on record, in order: the end before whatever was allowed afterwards.
    async fn is_on_record(&self) {
        self.gate.granted(&["read:files"]).await;
        let lines = self.gate.audit();
        let place = |action: &str| lines.iter().rposition(|line| line["action"] == action).expect(action);
        assert!(place("revoke") < place("approve"), "{lines:?}");
        let gate = &self.gate;
        until("nothing is left to write", async || {
            let status = gate.prism(&["status", "--json"]).output().await;
            serde_json::from_str::<Value>(&status).unwrap()["daemon"]["record"] == json!([])
        })
        .await;
        let said = self.gate.prism(&["audit", "verify"]).output().await;
        assert!(said.starts_with("whole"), "{said}");
    }
}

/// What the person is told of a revocation.
fn said(told: &Value) -> String {
    format!("revoked: {} {}", told["revoked"], told["unwritten"].as_str().unwrap_or_default())
}

// H6: "No revoke on a full disk, and an agent can fill it."
#[tokio::test]
async fn a_grant_is_revoked_on_a_full_disk() {
    if !may_mount("a_grant_is_revoked_on_a_full_disk") {
        return;
    }
    let mut world = acting(&[""]).await;
    let full = Full::of(world.gate.daemon.home().path());
    world.uses_up_the_log(&full).await;
    full.again();
    let asked = json!({"agent_id": "b", "scopes": ["read:files"], "roots": [world.gate.project()], "reason": "r"});
    let told = world.revoked().await;
    // Nothing is given meanwhile.
    assert_ne!(world.gate.as_agent("/mcp/request_access", asked).await.0, 200);
    full.make_room();
    world.is_on_record().await;
    seen(&world.heard, said(&told), line(&world.gate.audited("revoke", "allowed").await));
}

// H6: the reserve. The log has its line at once, although nothing else fits in.
#[tokio::test]
async fn a_revocation_is_on_record_at_once_in_a_full_log() {
    if !may_mount("a_revocation_is_on_record_at_once_in_a_full_log") {
        return;
    }
    let mut world = acting(&["audit"]).await;
    let asked = world.gate.ask("b", &["read:files"]).await;
    let full = Full::of(&world.gate.daemon.home().path().join("audit"));
    world.uses_up_the_log(&full).await;
    full.again();
    let told = world.revoked().await;
    assert_eq!(told["unwritten"], Value::Null, "{told}");
    seen(&world.heard, said(&told), line(&world.gate.audited("revoke", "allowed").await));
    let (status, told) = world.gate.try_approve(&asked, json!({})).await;
    assert_eq!((status, &told["error"]["code"]), (503, &json!("failed")), "{told}");
    full.make_room();
    world.is_on_record().await;
}

// L8: "Full database, writable log: the grant *is* ended, the answer says \"nothing was done\"."
#[tokio::test]
async fn a_grant_is_revoked_with_a_full_database_and_stays_so_after_a_kill() {
    if !may_mount("a_grant_is_revoked_with_a_full_database_and_stays_so_after_a_kill") {
        return;
    }
    let mut world = acting(&["", "audit"]).await;
    let full = Full::of(world.gate.daemon.home().path());
    // What the database has of room in its own files goes first.
    let gate = &world.gate;
    let (mut asked, mut heard) = (0, String::new());
    until("the database is full", async || {
        full.again();
        asked += 1;
        let ask = json!({"agent_id": format!("a{asked}"), "scopes": ["read:files"], "roots": [gate.project()],
            "reason": "r".repeat(2000)});
        let (status, told) = gate.as_agent("/mcp/request_access", ask).await;
        heard = format!("{status}: {}", told["error"]["message"].as_str().unwrap_or_default());
        status == 503
    })
    .await;
    let told = world.revoked().await;
    let unwritten = told["unwritten"].as_str().expect("it says what is not on record");
    assert!(unwritten.contains("it is done") && unwritten.contains("database"), "{unwritten}");
    seen(heard, said(&told), line(&world.gate.audited("revoke", "allowed").await));
    let Acting { mut gate, granted, holder, programs, heard } = world;
    drop(holder);
    gate.daemon.kill().await;
    full.make_room();
    let gate = gate.started_again(SETTINGS).await;
    if let Ok(mut holder) = gate.knock(&granted.id, Some(&granted.token), &[]).await {
        let code = soon("a grant that was revoked is closed", holder.closed()).await;
        assert!(matches!(code, 1008 | 4001), "it does not live again: {code}");
    }
    assert_eq!(gate.grant_seen(&granted.id).await["status"], "REVOKED");
    let holder = gate.hold(&gate.granted(&["read:files"]).await).await;
    Acting { gate, granted, holder, programs, heard }.is_on_record().await;
}
