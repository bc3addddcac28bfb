//! `open_terminal`, `get_output` and `send_input`.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{
    commands::{SOON, dead, written},
    *,
};

impl Place {
    async fn terminal(&self, command: Value) -> String {
        let answer = self.run("open_terminal", json!({ "command": command })).await.unwrap();
        assert_eq!(answer["fence"]["enforced"], self.enforced(), "{answer}");
        answer["terminal"].as_str().unwrap().to_owned()
    }

    /// Reads on until the output has a word in it, and returns all of it.
    async fn until(&self, terminal: &str, word: &str) -> String {
        let mut read = String::new();
        let reading = async {
            let mut after = 0;
            while !read.contains(word) {
                let args = json!({ "terminal": terminal, "after": after, "wait_ms": 5000 });
                let answer = self.run("get_output", args).await.unwrap();
                read.push_str(answer["output"].as_str().unwrap());
                after = answer["next"].as_u64().unwrap();
            }
        };
        let is_found = timeout(SOON, reading).await.is_ok();
        assert!(is_found, "{word:?} is not in {read:?}");
        read
    }

    async fn ended(&self, terminal: &str) -> Value {
        let ending = async {
            loop {
                let args = json!({ "terminal": terminal });
                let answer = self.run("get_output", args).await.unwrap();
                if answer["is_running"] == false {
                    return answer;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, ending).await.unwrap()
    }

    async fn as_other(&self, verb: &str, args: Value) -> Result<Value, Refusal> {
        let mut order = self.order(verb, &args);
        order.holder = GrantHolder { id: 2, name: "two".to_owned(), ..GrantHolder::default() };
        self.runtime.prepare(order).await?.run(ProgressSink::unseen()).await
    }
}

#[tokio::test]
async fn a_shell_takes_input_and_says_how_it_ended() {
    let place = Place::roomy();
    let answer = place.run("open_terminal", json!({ "rows": 30, "cols": 100 })).await.unwrap();
    let terminal = answer["terminal"].as_str().unwrap();
    let typed = place.run("send_input", json!({ "terminal": terminal, "input": "stty size; pwd\n" })).await.unwrap();
    assert_eq!(typed["bytes"], 15);
    let read = place.until(terminal, text(&place.granted)).await;
    assert!(read.contains("30 100"), "{read}");
    place.run("send_input", json!({ "terminal": terminal, "input": "exit 7\n" })).await.unwrap();
    let end = place.ended(terminal).await;
    assert_eq!((&end["exit_code"], &end["signal"]), (&json!(7), &json!(null)));
    assert_eq!(place.code("send_input", json!({ "terminal": terminal, "input": "x" })).await, Code::NotFound);
}

//
#[tokio::test]
async fn a_terminal_in_which_the_fence_made_something_fail_says_so_and_what_helps() {
    let place = Place::roomy();
    let secret = place.outside.join("secret");
    let hint = async |terminal: &str| {
        let answer = place.run("get_output", json!({ "terminal": terminal })).await.unwrap();
        assert_eq!(answer["fence"]["enforced"], place.enforced(), "{answer}");
        answer["fence"]["hint"].as_str().map(str::to_owned)
    };
    let terminal =
        place.terminal(json!(format!("echo well; read a; cat {}; echo refused; read b", text(&secret)))).await;
    place.until(&terminal, "well").await;
    assert_eq!(hint(&terminal).await, None, "nothing is wrong yet");
    place.run("send_input", json!({ "terminal": terminal, "input": "\n" })).await.unwrap();
    place.until(&terminal, "refused").await;
    assert!(hint(&terminal).await.unwrap().contains("`readable` of `[editor]`"));
    // It may have come by without the file.
    let terminal = place.terminal(json!(format!("cat {}; exit 0", text(&secret)))).await;
    let ended = place.ended(&terminal).await;
    assert!(ended["exit_code"] == 0 && ended["fence"].get("hint").is_none(), "{ended}");
}

#[tokio::test]
async fn output_is_read_on_from_where_one_was_and_waited_for() {
    let place = Place::roomy();
    let terminal = place.terminal(json!("stty -echo; echo first; read a; echo second; read b")).await;
    place.until(&terminal, "first").await;
    let answer = place.run("get_output", json!({ "terminal": terminal })).await.unwrap();
    let next = answer["next"].as_u64().unwrap();
    let wait = place.prepare("get_output", json!({ "terminal": terminal, "after": next, "wait_ms": 60000 })).await;
    let waiting = tokio::spawn(wait.unwrap().run(ProgressSink::unseen()));
    place.run("send_input", json!({ "terminal": terminal, "input": "\n" })).await.unwrap();
    let answer = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(answer["output"], "second\r\n");
    assert_eq!(answer["next"], next + 8);
    let nothing = json!({ "terminal": terminal, "after": next + 8, "wait_ms": 20 });
    assert_eq!(place.run("get_output", nothing).await.unwrap()["output"], "");
}

#[tokio::test]
async fn a_screen_is_what_one_would_see() {
    let place = Place::roomy();
    let terminal = place.terminal(json!("printf 'one\\ntwo\\033[1;1HONE\\033[2;4H'; read a")).await;
    place.until(&terminal, "ONE").await;
    let answer = place.run("get_output", json!({ "terminal": terminal, "screen": true })).await.unwrap();
    assert_eq!(answer["screen"]["text"], "ONE\ntwo", "{answer}");
    assert_eq!(answer["screen"]["cursor"], json!({ "line": 1, "character": 3 }));
}

#[tokio::test]
async fn a_terminal_is_resized_and_signalled() {
    let place = Place::roomy();
    let terminal =
        place.terminal(json!("trap 'stty size' WINCH; trap 'exit 9' INT; echo ready; while :; do read a; done")).await;
    place.until(&terminal, "ready").await;
    place.run("send_input", json!({ "terminal": terminal, "rows": 50, "cols": 132 })).await.unwrap();
    place.until(&terminal, "50 132").await;
    let listed = place.run("get_output", json!({})).await.unwrap();
    assert_eq!((&listed["terminals"][0]["rows"], &listed["terminals"][0]["is_running"]), (&json!(50), &json!(true)));
    place.run("send_input", json!({ "terminal": terminal, "signal": "SIGINT" })).await.unwrap();
    assert_eq!(place.ended(&terminal).await["exit_code"], 9);
}

#[tokio::test]
async fn a_terminal_is_its_holders_own() {
    let place = Place::roomy();
    let terminal = place.terminal(json!("read a")).await;
    for (verb, args) in [
        ("get_output", json!({ "terminal": terminal })),
        ("send_input", json!({ "terminal": terminal, "input": "x\n" })),
        ("send_input", json!({ "terminal": terminal, "close": true })),
    ] {
        assert_eq!(place.as_other(verb, args).await.unwrap_err().code, Code::NotFound);
    }
    assert_eq!(place.as_other("get_output", json!({})).await.unwrap()["terminals"], json!([]));
    assert_eq!(place.run("get_output", json!({})).await.unwrap()["terminals"].as_array().unwrap().len(), 1);
}

/// Starts jobs that do not mind a hangup, each in a group of its own, and one in a session of its own.
const JOBS: &str = "set -m; trap '' HUP
    (trap '' HUP TERM; echo $BASHPID >one; while :; do sleep 1000; done) &
    setsid sh -c 'echo $$ >two; exec sleep 1000' </dev/null >/dev/null 2>&1 &
    while ! [ -s one ] || ! [ -s two ]; do :; done; echo ready";

#[tokio::test]
async fn everything_in_a_terminal_ends_with_it() {
    for way in ["close", "leave", "stop", "exit"] {
        let place = Place::roomy();
        let terminal = place.terminal(json!(["bash", "-c", format!("{JOBS}; read a")])).await;
        let pids = [written(&place.path("one")).await, written(&place.path("two")).await];
        place.until(&terminal, "ready").await;
        match way {
            "close" => {
                place.run("send_input", json!({ "terminal": terminal, "close": true })).await.unwrap();
                assert_eq!(place.code("get_output", json!({ "terminal": terminal })).await, Code::NotFound);
            }
            "leave" => place.runtime.leave(1).await,
            "stop" => place.runtime.close().await,
            _ => drop(place.run("send_input", json!({ "terminal": terminal, "input": "\n" })).await.unwrap()),
        }
        for pid in pids {
            dead(&place, &pid).await;
        }
    }
}

#[tokio::test]
async fn one_terminal_too_many_is_refused_and_one_that_has_ended_makes_room() {
    let place = Place::roomy();
    let mut last = String::new();
    for _ in 0..8 {
        last = place.terminal(json!("read a")).await;
    }
    let refusal = place.run("open_terminal", json!({ "command": "read a" })).await.unwrap_err();
    assert_eq!(refusal.code, Code::TooFast);
    assert!(place.as_other("open_terminal", json!({ "command": "read a" })).await.is_ok());
    place.run("send_input", json!({ "terminal": last, "input": "\n" })).await.unwrap();
    place.ended(&last).await;
    place.terminal(json!("read a")).await;
    place.runtime.close().await;
}

#[tokio::test]
async fn bad_wishes_are_refused() {
    let place = Place::roomy();
    let terminal = place.terminal(json!("read a")).await;
    for (verb, args, code) in [
        ("open_terminal", json!({ "command": 7 }), Code::BadArguments),
        ("open_terminal", json!({ "rows": 24 }), Code::BadArguments),
        ("open_terminal", json!({ "rows": 0, "cols": 80 }), Code::BadArguments),
        ("open_terminal", json!({ "cwd": "/" }), Code::OutsideRoot),
        ("open_terminal", json!({ "cwd": "missing" }), Code::NotFound),
        ("open_terminal", json!({ "command": ["prism-no-such-program"] }), Code::NotFound),
        ("open_terminal", json!({ "shell": "sh" }), Code::BadArguments),
        ("get_output", json!({ "terminal": "terminal-99" }), Code::NotFound),
        ("get_output", json!({ "terminal": terminal, "wait_ms": 60001 }), Code::BadArguments),
        ("send_input", json!({ "terminal": terminal }), Code::BadArguments),
        ("send_input", json!({ "terminal": terminal, "input": "a", "close": true }), Code::BadArguments),
        ("send_input", json!({ "terminal": terminal, "signal": "SIGSEGV" }), Code::BadArguments),
        ("send_input", json!({ "terminal": terminal, "input": "x".repeat(70_000) }), Code::TooLarge),
    ] {
        assert_eq!(place.code(verb, args.clone()).await, code, "{verb} {args}");
    }
}

#[tokio::test]
async fn a_person_sees_what_runs_in_a_terminal() {
    let place = Place::roomy();
    let ActionPreview::Command { command, cwd, env, .. } =
        place.shown("open_terminal", json!({ "command": "ls" })).await
    else {
        panic!("not a command");
    };
    assert_eq!((command, cwd.as_str()), (crate::shown::GivenCommand::Shell("ls".to_owned()), text(&place.granted)));
    assert_eq!(env["TERM"], "xterm-256color");
}

#[tokio::test]
async fn a_holder_hears_of_its_terminal_and_not_too_often() {
    let place = Place::roomy();
    let mut heard = place.runtime.listen();
    let began = Instant::now();
    let terminal = place.terminal(json!("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")).await;
    place.ended(&terminal).await;
    let tenths = began.elapsed().as_millis() / 100;
    let (mut names, mut all) = (Vec::new(), String::new());
    loop {
        let happening = timeout(SOON, heard.recv()).await.unwrap().unwrap();
        assert_eq!((happening.to, &happening.data["terminal"]), (Some(1), &json!(terminal)));
        names.push(happening.event.name);
        let told = happening.data["text"].as_str().unwrap_or_default();
        assert!(told.len() <= 5000);
        all.push_str(told);
        if happening.event.name == "process_ended" {
            break;
        }
    }
    assert_eq!(names.first(), Some(&"process_started"));
    assert!(all.contains("line 2999"), "{all}");
    let told = names.iter().filter(|name| **name == "output_received").count();
    assert!((1..=tenths as usize + 3).contains(&told), "{told} in {tenths} tenths of a second");
}

/// A part of a gigabyte: what is measured does not depend on how much it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_prints_a_lot_holds_up_nobody_and_costs_little() {
    prints(64, Duration::from_secs(120)).await;
}

async fn prints(mebibytes: u64, patience: Duration) {
    let place = Place::roomy();
    place.write("a.txt", "text");
    let began = Instant::now();
    let before = resident();
    let command = format!("stty -opost; head -c {}M /dev/zero | tr '\\0' x; printf end", mebibytes);
    let terminal = place.terminal(json!(command)).await;
    let (mut most, mut slowest) = (0, Duration::ZERO);
    let printing = async {
        loop {
            let asked = Instant::now();
            place.run("open_file", json!({ "path": "a.txt" })).await.unwrap();
            slowest = slowest.max(asked.elapsed());
            most = most.max(resident());
            let args = json!({ "terminal": terminal, "limit": 16 });
            let answer = place.run("get_output", args).await.unwrap();
            if answer["is_running"] == false {
                return answer;
            }
        }
    };
    let answer = timeout(patience, printing).await.unwrap();
    assert!(answer["output"].as_str().unwrap().ends_with("xend"), "{answer}");
    assert_eq!(answer["next"], (mebibytes << 20) + 3);
    let grown = most.saturating_sub(before);
    println!(
        "{mebibytes} MiB in {:?}: {} KiB more at most, other verbs within {slowest:?}",
        began.elapsed(),
        grown >> 10
    );
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert!(grown < 64 << 20, "{grown} bytes");
}

fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
