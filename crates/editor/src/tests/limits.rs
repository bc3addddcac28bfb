//! What runs may use: who goes over it is ended, and is told why.

use tokio::time::timeout;

use super::{commands::SOON, *};

fn place(settings: EditorSettings) -> Place {
    let home = environment().get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
    Place::with(EditorSettings { home, inner: inner(), ..settings }, "prism")
}

async fn ended(place: &Place, command: &str) -> Value {
    let answer = timeout(SOON, place.run("exec_command", json!({ "command": command }))).await.unwrap().unwrap();
    assert_eq!((&answer["exit_code"], &answer["timed_out"]), (&json!(null), &json!(false)), "{answer}");
    answer
}

async fn is_quiet(place: &Place) {
    let waiting = async {
        while !place.living().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("nothing should be left by now");
}

/// Holds memory in a process that has left its session.
const HOLDER: &str = "setsid perl -e '$held = \"x\" x (200 << 20); sleep 1000' & sleep 1000";

// M5
#[tokio::test]
async fn a_command_that_uses_too_much_memory_is_ended_and_told_why() {
    let place = place(EditorSettings { max_memory: Some(100 << 20), ..EditorSettings::default() });
    let answer = ended(&place, HOLDER).await;
    let why = answer["ended_because"].as_str().unwrap();
    assert!(why.contains("more than 100 MiB of memory") && why.contains("`max_memory` of `[editor]`"), "{why}");
    is_quiet(&place).await;
}

#[tokio::test]
async fn a_terminal_that_uses_too_much_memory_is_ended_and_told_why() {
    let place = place(EditorSettings { max_memory: Some(100 << 20), ..EditorSettings::default() });
    let opened = place.run("open_terminal", json!({ "command": ["sh", "-c", HOLDER] })).await.unwrap();
    let told = timeout(SOON, async {
        loop {
            let told = place.run("get_output", json!({ "terminal": opened["terminal"] })).await.unwrap();
            if told["is_running"] == false {
                return told;
            }
            tokio::task::yield_now().await;
        }
    });
    let told = told.await.unwrap();
    assert!(told["ended_because"].as_str().unwrap().contains("more than 100 MiB of memory"), "{told}");
    is_quiet(&place).await;
}

// M5, S-22
#[tokio::test]
async fn a_command_that_writes_too_much_of_its_own_is_ended_and_the_next_one_has_room() {
    let place = place(EditorSettings { max_scratch: 20 << 20, ..EditorSettings::default() });
    if place.runtime.lacks_sandbox().is_some() {
        return skipped("install the package bubblewrap");
    }
    for folder in ["$HOME", "/tmp"] {
        let command = format!("head -c 10M /dev/zero >{folder}/a; head -c 11M /dev/zero >{folder}/b; sleep 1000");
        let why = ended(&place, &command).await["ended_because"].to_string();
        assert!(why.contains("more than 20 MiB; that is removed now"), "{why}");
        let answer = place.run("exec_command", json!({ "command": "ls $HOME/a /tmp/a" })).await.unwrap();
        assert_eq!(answer["stdout"], "", "{answer}");
    }
}

// M5: rather than the daemon, the kernel ends what it runs.
#[tokio::test]
async fn what_runs_in_a_sandbox_is_the_first_to_go_when_there_is_no_memory() {
    let place = place(EditorSettings::default());
    if place.runtime.lacks_sandbox().is_some() {
        return skipped("install the package bubblewrap");
    }
    let answer = place.run("exec_command", json!({ "command": "cat /proc/self/oom_score_adj" })).await.unwrap();
    assert_eq!(answer["stdout"], "500\n", "{answer}");
}
