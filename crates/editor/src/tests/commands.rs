//! `exec_command`.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::*;
use crate::{run::MAX_COMMANDS, shown::GivenCommand};

/// Long enough for anything that works, on a machine that is busy.
pub(super) const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_command_says_how_it_ended_and_what_it_printed() {
    let place = Place::roomy();
    let args = json!({ "command": "echo out; echo err >&2; exit 3" });
    let answer = place.run("exec_command", args).await.unwrap();
    for (name, expected) in [
        ("exit_code", json!(3)),
        ("signal", json!(null)),
        ("stdout", json!("out\n")),
        ("stderr", json!("err\n")),
        ("timed_out", json!(false)),
        ("cwd", json!(place.granted)),
    ] {
        assert_eq!(answer[name], expected, "{name}");
    }
    let answer = place.run("exec_command", json!({ "command": "kill -9 $$" })).await.unwrap();
    assert_eq!((&answer["exit_code"], &answer["signal"]), (&json!(null), &json!(9)));
}

//
#[tokio::test]
async fn what_is_shown_is_what_runs() {
    let place = Place::roomy();
    fs::create_dir(place.path("sub")).unwrap();
    let list = ["printf", "%s|", "$HOME", "a b"].map(str::to_owned).to_vec();
    let args = json!({ "command": list, "cwd": "sub", "env": { "A": "b" }, "timeout_ms": 5000 });
    let prepared = place.prepare("exec_command", args).await.unwrap();
    let cwd = text(&place.path("sub")).to_owned();
    let env = [("A".to_owned(), "b".to_owned())].into();
    let shown = ActionPreview::Command {
        command: GivenCommand::List(list.clone()),
        cwd: cwd.clone(),
        env,
        timeout_ms: 5000,
        runs: Vec::new(),
    };
    assert_eq!(prepared.shown(), shown);
    let told = json!({ "kind": "command", "command": list, "cwd": cwd, "env": { "A": "b" }, "timeout_ms": 5000 });
    assert_eq!(serde_json::to_value(&shown).unwrap(), told);
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap()["stdout"], "$HOME|a b|");
}

#[tokio::test]
async fn a_command_has_its_environment_and_none_of_prisms() {
    let place = Place::roomy();
    let command = "pwd; echo \"$PWD\"; echo \"$A-$MCP_TOKEN-$PRISM_HOME\"; command -v sh >/dev/null && echo path; cat";
    let answer = place.run("exec_command", json!({ "command": command, "env": { "A": "b" } })).await.unwrap();
    let cwd = text(&place.granted);
    assert_eq!(answer["stdout"], format!("{cwd}\n{cwd}\nb--\npath\n"));
    for env in [json!({ "PRISM_HOME": "x" }), json!({ "MCP_TOKEN": "x" }), json!({ "": "x" }), json!({ "A=B": "x" })] {
        assert_eq!(place.code("exec_command", json!({ "command": "true", "env": env })).await, Code::BadArguments);
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    for place in [Place::roomy(), Place::bound()] {
        let command = "sleep 1000 & echo $!; wait";
        let run = place.run("exec_command", json!({ "command": command, "timeout_ms": 300 }));
        let answer = timeout(SOON, run).await.unwrap().unwrap();
        assert_eq!((&answer["timed_out"], &answer["exit_code"]), (&json!(true), &json!(null)));
        dead(&place, answer["stdout"].as_str().unwrap().trim()).await;
    }
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    for place in [Place::roomy(), Place::bound()] {
        let began = Instant::now();
        let answer = place.run("exec_command", json!({ "command": "sleep 1000 & echo $!" })).await.unwrap();
        assert_eq!(answer["exit_code"], 0);
        assert!(began.elapsed() < SOON);
        dead(&place, answer["stdout"].as_str().unwrap().trim()).await;
    }
}

#[tokio::test]
async fn a_command_dies_with_whoever_waits_for_it() {
    for place in [Place::roomy(), Place::bound()] {
        let prepared =
            place.prepare("exec_command", json!({ "command": "echo $$ >pid; exec sleep 1000" })).await.unwrap();
        let running = tokio::spawn(prepared.run(ProgressSink::unseen()));
        let pid = timeout(SOON, async {
            loop {
                match fs::read_to_string(place.path("pid")) {
                    Ok(pid) if pid.ends_with('\n') => return pid.trim().to_owned(),
                    _ => tokio::task::yield_now().await,
                }
            }
        })
        .await
        .unwrap();
        running.abort();
        dead(&place, &pid).await;
    }
}

#[tokio::test]
async fn a_command_that_prints_much_is_not_held_up_and_the_rest_is_marked() {
    let place = Place::roomy();
    let command = "head -c 5000000 /dev/zero | tr '\\0' a; echo end; echo quiet >&2";
    let answer = timeout(SOON, place.run("exec_command", json!({ "command": command }))).await.unwrap().unwrap();
    let left_out = answer["stdout_bytes_left_out"].as_u64().unwrap();
    assert_eq!(left_out, 5_000_004 - (1 << 20));
    let stdout = answer["stdout"].as_str().unwrap();
    assert!(stdout.contains(&format!("[… {left_out} bytes left out …]")) && stdout.ends_with("aend\n"));
    assert_eq!((&answer["stderr"], &answer["stderr_bytes_left_out"]), (&json!("quiet\n"), &json!(0)));
}

#[tokio::test]
async fn a_command_that_cannot_be_one_is_refused() {
    let place = Place::roomy();
    for (command, code) in [
        (json!(null), Code::BadArguments),
        (json!(""), Code::BadArguments),
        (json!("  "), Code::BadArguments),
        (json!([]), Code::BadArguments),
        (json!([""]), Code::BadArguments),
        (json!(["ls", 1]), Code::BadArguments),
        (json!("a\0b"), Code::BadArguments),
        (json!(7), Code::BadArguments),
        (json!("x".repeat(200_000)), Code::TooLarge),
        (json!(["prism-no-such-program"]), Code::NotFound),
    ] {
        let args = json!({ "command": command, "env": { "PATH": "/usr/bin:/bin" } });
        assert_eq!(place.code("exec_command", args).await, code, "{command}");
    }
    for timeout_ms in [0, 600_001] {
        let args = json!({ "command": "true", "timeout_ms": timeout_ms });
        assert_eq!(place.code("exec_command", args).await, Code::BadArguments);
    }
}

//
#[tokio::test]
async fn a_command_whose_folder_is_another_by_then_is_not_run() {
    let place = Place::roomy();
    fs::create_dir(place.path("sub")).unwrap();
    let args = json!({ "command": "touch ran", "cwd": "sub" });
    let prepared = place.prepare("exec_command", args).await.unwrap();
    fs::rename(place.path("sub"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink(&place.outside, place.path("sub")).unwrap();
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert!(!place.path("moved/ran").exists());
    place.assert_untouched();
}

#[tokio::test]
async fn one_command_too_many_is_refused_and_told_to_come_back() {
    let place = Place::roomy();
    let mut running = Vec::new();
    for i in 0..MAX_COMMANDS {
        let args = json!({ "command": format!("touch began-{i}; exec sleep 1000") });
        running.push(tokio::spawn(place.prepare("exec_command", args).await.unwrap().run(ProgressSink::unseen())));
    }
    let all_began = async {
        while !(0..MAX_COMMANDS).all(|i| place.path(&format!("began-{i}")).exists()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, all_began).await.unwrap();
    let refusal = place.run("exec_command", json!({ "command": "true" })).await.unwrap_err();
    assert_eq!(refusal.code, Code::TooFast);
    assert!(refusal.retry_after.is_some());

    let first = running.swap_remove(0);
    first.abort();
    let _ = first.await;
    assert!(place.run("exec_command", json!({ "command": "true" })).await.is_ok(), "there is room again");
    running.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Waits until a process is no more, which is named as it names itself.
pub(super) async fn dead(place: &Place, pid: &str) {
    let waiting = async {
        while place.living().iter().any(|(_, inside)| inside == pid) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("it should be dead by now");
}

//
#[tokio::test]
async fn a_command_reaches_nothing_but_what_was_granted() {
    for place in [Place::roomy(), Place::bound()] {
        let outside = text(&place.outside);
        let command =
            format!("cat {outside}/secret; echo x >{outside}/new; echo in >made; cat made; echo x >\"$TMPDIR/t\"");
        let answer = place.run("exec_command", json!({ "command": command })).await.unwrap();
        assert_eq!((&answer["stdout"], &answer["exit_code"]), (&json!("in\n"), &json!(0)), "{answer}");
        assert_eq!(answer["stderr"].as_str().unwrap().lines().count(), 2, "{answer}");
        assert_eq!(answer["fence"]["enforced"], place.enforced());
        assert!(answer["fence"]["layers"]["landlock"].as_u64().unwrap() >= 1, "{answer}");
        assert!(answer["fence"].get("hint").is_none(), "it has not failed: {answer}");
        place.assert_untouched();
    }
}

//
#[tokio::test]
async fn a_command_that_the_fence_makes_fail_says_so_and_what_helps() {
    for place in [Place::roomy(), Place::bound()] {
        let answer =
            place.run("exec_command", json!({ "command": ["cat", place.outside.join("secret")] })).await.unwrap();
        assert_eq!(answer["exit_code"], 1, "{answer}");
        let hint = answer["fence"]["hint"].as_str().unwrap();
        assert!(hint.contains("the fence") && hint.contains("`readable` of `[editor]`"), "{hint}");
        let answer =
            place.run("exec_command", json!({ "command": "echo nothing is wrong here; exit 3" })).await.unwrap();
        assert!(answer["exit_code"] == 3 && answer["fence"].get("hint").is_none(), "{answer}");
    }
}

//
#[tokio::test]
async fn prisms_own_folder_is_closed_to_a_command_even_beneath_a_granted_one() {
    let place = Place::new();
    let command =
        "cat home/management-token; echo x >home/management-token; mv home other; cat $PWD/home/management-token";
    let answer = place.run("exec_command", json!({ "command": command })).await.unwrap();
    assert_eq!(answer["stdout"], "", "{answer}");
    place.assert_untouched();
    if place.enforced() == "landlock" {
        assert!(answer["fence"]["why"].as_str().unwrap().contains("nothing new can be made"), "{answer}");
    }
}

#[tokio::test]
async fn a_command_without_a_fence_says_so() {
    let place = Place::with(EditorSettings { fence: false, ..EditorSettings::default() }, "prism");
    let answer = place.run("exec_command", json!({ "command": "echo $TMPDIR" })).await.unwrap();
    assert_eq!(answer["fence"]["enforced"], "none");
    assert!(answer["fence"]["why"].as_str().unwrap().contains("switched off"));
}

#[tokio::test]
async fn a_command_says_what_it_could_not_see() {
    let place = Place::roomy();
    place.write("a.txt", "on the disk");
    let edit = json!({ "path": "a.txt", "old_text": "on the disk", "new_text": "in the buffer" });
    place.run("edit_buffer", edit).await.unwrap();
    let answer = place.run("exec_command", json!({ "command": "cat a.txt" })).await.unwrap();
    assert_eq!(answer["stdout"], "on the disk");
    assert_eq!(answer["unsaved"], json!([place.path("a.txt")]));
}

/// Forks twice, each time into a session of its own, and writes down who is left.
const RUNAWAY: &str =
    "setsid sh -c 'setsid sh -c \"echo \\$\\$ >runaway; exec sleep 1000\" &' </dev/null >/dev/null 2>&1 &
    while ! [ -s runaway ]; do :; done; cat runaway";

#[tokio::test]
async fn what_runs_away_from_a_command_ends_with_it() {
    for place in [Place::roomy(), Place::bound()] {
        let answer = place.run("exec_command", json!({ "command": RUNAWAY })).await.unwrap();
        assert_eq!(answer["exit_code"], 0, "{answer}");
        let pid = answer["stdout"].as_str().unwrap().trim();
        assert!(pid.parse::<u32>().is_ok(), "{answer}");
        dead(&place, pid).await;
    }
}

#[tokio::test]
async fn what_runs_away_ends_when_nobody_waits_any_more() {
    for place in [Place::roomy(), Place::bound()] {
        let command = format!("{RUNAWAY}; exec sleep 1000");
        let prepared = place.prepare("exec_command", json!({ "command": command })).await.unwrap();
        let running = tokio::spawn(prepared.run(ProgressSink::unseen()));
        let pid = written(&place.path("runaway")).await;
        running.abort();
        dead(&place, &pid).await;
    }
}

#[tokio::test]
async fn whoever_listens_hears_of_commands() {
    let place = Place::roomy();
    let mut heard = place.runtime.listen();
    place.run("exec_command", json!({ "command": "exit 3" })).await.unwrap();
    let mut names = Vec::new();
    while let Ok(happening) = heard.try_recv() {
        assert_eq!((happening.by, happening.path.as_deref()), (Some(1), Some(place.granted.as_path())));
        assert_eq!(happening.data["command"], "exit 3");
        names.push((happening.event.name, happening.data["exit_code"].clone()));
    }
    let expected = [("process_started", json!(null)), ("process_ended", json!(3)), ("command_executed", json!(3))];
    assert_eq!(names, expected);
}

/// Waits for a file with a line in it.
pub(super) async fn written(path: &Path) -> String {
    let waiting = async {
        loop {
            match fs::read_to_string(path) {
                Ok(line) if line.ends_with('\n') => return line.trim().to_owned(),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    timeout(SOON, waiting).await.expect("it should be written by now")
}
