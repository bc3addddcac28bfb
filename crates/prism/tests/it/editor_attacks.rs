//! Every verb under attack, over one socket: bad arguments, no scope, outside of the root, over the limit, on what is no text, on
//! a gigabyte, on a file that somebody makes and removes all the time. What must come of it is in `table`: the right code, in
//! time, on record, and the disk as it was.

mod table;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use prism_core::policy::Scopes;
use serde_json::{Value, json};

use self::table::{Row, rows};
use crate::support::{
    gate::{Gate, Granted, Holder},
    process, until,
};

/// Each verb is refused at once: nothing waits for what is not going to happen. Ample, as the machine may be busy.
const WITHIN: Duration = Duration::from_secs(10);

/// What one edit may write here.
const MAX_EDIT: usize = 2_000;

/// As the daemon should be found here: with neither rust-analyzer nor anything of the home folder.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const SETTINGS: &str = "[gate]\nrate_limit = 1000\nmax_grants = 500\nmax_requests = 500\nmax_requests_per_agent = 500\n\
                        max_edit_bytes = \"2kB\"\n";

/// A project with something bad in it.
async fn besieged() -> Gate {
    let gate = Gate::start_in(SETTINGS, &[("PATH", PATH.to_owned())]).await;
    let root = Path::new(&gate.project()).to_owned();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("a.rs"), "fn main() {}\n").unwrap();
    fs::write(root.join("src/lib.rs"), "pub fn main() {}\n").unwrap();
    fs::write(root.join("src/Makefile"), "all:\n\ttouch built\n").unwrap();
    symlink("/etc", root.join("way-out")).unwrap();
    for words in [&["init", "-q", "-b", "main"][..], &["add", "a.rs"]] {
        let git = Command::new("git").args(words).current_dir(&root).status();
        assert!(git.is_ok_and(|status| status.success()), "git is needed for these tests");
    }
    make_bad(&root);
    gate
}

/// The files that are hard to swallow, and nothing in the way of another name for them.
fn make_bad(root: &Path) {
    let _ = fs::remove_file(root.join("b.rs"));
    fs::write(root.join("bin.rs"), [0, 159, 146, 150, 0, 255].repeat(100)).unwrap();
    fs::File::create(root.join("huge.rs")).unwrap().set_len(1 << 30).unwrap();
}

/// A holder of these scopes for the whole project.
async fn holder(gate: &Gate, scopes: &[&str]) -> (Granted, Holder) {
    let granted = gate.approve(&gate.ask("attacker", scopes).await, json!({})).await;
    let holder = gate.hold(&granted).await;
    (granted, holder)
}

/// Has something done with a person who allows whatever is asked; returns `ok` or the code, in time.
async fn came_to(gate: &Gate, holder: &mut Holder, verb: &str, args: &Value) -> String {
    let begun = Instant::now();
    let id = holder.begins(verb, args.clone()).await;
    let result = tokio::select! {
        result = holder.result(&id) => result,
        () = gate.answers(true) => unreachable!("the person goes on"),
    };
    assert!(begun.elapsed() < WITHIN, "{verb} {args}: {:?}", begun.elapsed());
    if result["status"] == "ok" {
        "ok".to_owned()
    } else {
        result["data"]["code"].as_str().unwrap_or("none").to_owned()
    }
}

/// All that is beneath a folder, as it would show if anything had been changed. Large files by their times only.
fn picture(root: &Path) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, found) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let content = if found.is_file() && found.len() < 1 << 20 { fs::read(&path).unwrap() } else { Vec::new() };
            let about = format!(
                "{:o} {} {} {}",
                found.mode(),
                found.len(),
                found.mtime_nsec(),
                String::from_utf8_lossy(&content)
            );
            seen.insert(path.display().to_string(), about);
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    seen
}

/// The lines about refusals of a grant, and how many refusals they stand for.
fn on_record(gate: &Gate, granted: &Granted) -> u64 {
    let lines = gate.audit().into_iter().filter(|line| line["session_id"] == granted.id.as_str());
    let refused = lines.filter(|line| line["result"].as_str().is_some_and(|it| it.starts_with("refused: ")));
    refused.map(|line| 1 + line["args"]["refused_before"].as_u64().unwrap_or(0)).sum()
}

/// The arguments with one of them another.
fn with(row: &Row, name: &str, value: Value) -> Value {
    let mut args = row.good.clone();
    args[name] = value;
    args
}

/// All wrong arguments of a verb, each with the code that it must come to.
fn wrong(row: &Row) -> Vec<(Value, &'static str)> {
    let mut all = vec![(with(row, "no_such_argument", json!(1)), "bad_arguments")];
    for (name, good) in row.good.as_object().unwrap() {
        for bad in [json!({"x": 1}), json!(7), json!([[]]), json!(true)] {
            // An object with other members is as wrong as anything else; a value of the right type is not.
            let is_right = bad.is_boolean() && good.is_boolean();
            if !is_right {
                all.push((with(row, name, bad), "bad_arguments"));
            }
        }
    }
    for name in row.required {
        let mut args = row.good.clone();
        args.as_object_mut().unwrap().remove(*name);
        all.push((args, "bad_arguments"));
    }
    for name in row.numbers {
        for bad in [json!(-1), json!(u64::MAX), json!(1e300), json!(0.5), json!("7")] {
            all.push((with(row, name, bad), "bad_arguments"));
        }
    }
    let paths = row.action.paths.iter().filter(|name| row.good.get(**name).is_some());
    for name in paths {
        for bad in ["a\0.rs".to_owned(), "x".repeat(5_000), "x/".repeat(5_000)] {
            all.push((with(row, name, bad.into()), "bad_arguments"));
        }
        for outside in ["/etc/hostname", "/", "../x", "src/../../x", "way-out/hostname", "/proc/self/environ"] {
            all.push((with(row, name, outside.into()), "outside_root"));
        }
    }
    all
}

//
#[tokio::test]
async fn bad_arguments_and_paths_outside_of_the_root_come_to_nothing() {
    let gate = besieged().await;
    let root = Path::new(&gate.project()).to_owned();
    let before = picture(&root);
    let mut faults = Vec::new();
    for row in rows() {
        let (granted, mut holder) = holder(&gate, &["*"]).await;
        let verb = row.action.verb;
        let mut refused = 0;
        for (args, code) in wrong(&row) {
            let came = came_to(&gate, &mut holder, verb, &args).await;
            // A terminal that is none is as good a reason.
            let is_other = row.is_of_terminal() && came == "not_found";
            if came != code && !is_other {
                let args: String = args.to_string().chars().take(120).collect();
                faults.push(format!("{verb} {args}: {came}, not {code}"));
            }
            refused += u64::from(came != "ok");
        }
        // A flood of refusals is a line with a count; the last may still wait for the next line.
        until(&format!("{verb} is on record"), async || {
            let more = came_to(&gate, &mut holder, verb, &json!({"no_such_argument": 1})).await;
            refused += u64::from(more != "ok");
            on_record(&gate, &granted) + 50 >= refused
        })
        .await;
        let after = picture(&root);
        assert_eq!(before, after, "{verb} has changed something");
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

//
#[tokio::test]
async fn no_verb_is_done_without_its_scope() {
    let gate = besieged().await;
    let root = Path::new(&gate.project()).to_owned();
    let before = picture(&root);
    for row in rows() {
        let verb = row.action.verb;
        // All scopes but those that would do.
        let scopes = Scopes::all().names();
        let needed = row.action.scopes().names();
        let others: Vec<&str> =
            scopes.iter().map(AsRef::as_ref).filter(|name| !needed.iter().any(|one| one == name)).collect();
        let (_, mut holder) = holder(&gate, &others).await;
        let lines = gate.audit().len();
        assert_eq!(came_to(&gate, &mut holder, verb, &row.good).await, "forbidden", "{verb}");
        gate.audited_after(lines.saturating_sub(1), verb, "refused: forbidden").await;
    }
    assert_eq!(before, picture(&root));
}

//
#[tokio::test]
async fn no_verb_writes_more_than_an_edit_may() {
    let gate = besieged().await;
    let root = Path::new(&gate.project()).to_owned();
    let before = picture(&root);
    let large = "x".repeat(MAX_EDIT + 1);
    let (_, mut holder) = holder(&gate, &["*"]).await;
    for (verb, args) in [
        ("create_file", json!({"path": "new.txt", "content": large})),
        ("write_file", json!({"path": "a.rs", "content": large})),
        ("edit_buffer", json!({"path": "a.rs", "old_text": "main", "new_text": large})),
        ("edit_buffer", json!({"files": [{"path": "a.rs", "edits": [{"old_text": "main", "new_text": large}]}]})),
        ("replace_text", json!({"text": "main", "new_text": large})),
        // Each place is small, and all of them together are not.
        ("replace_text", json!({"pattern": "\\b|\\w", "new_text": "x".repeat(MAX_EDIT / 10)})),
        ("refactor_symbol", json!({"path": "a.rs", "position": {"line": 0, "character": 3}, "new_name": large})),
        ("send_input", json!({"terminal": "t", "input": "x".repeat(2 << 20)})),
        ("git_commit", json!({"message": "x".repeat(2 << 20)})),
    ] {
        let came = came_to(&gate, &mut holder, verb, &args).await;
        let codes: &[&str] = match verb {
            // Their own bounds come first, or what they would be about is not there.
            "refactor_symbol" => &["too_large", "bad_arguments", "unsupported"],
            "send_input" | "git_commit" => &["too_large", "bad_arguments", "not_found"],
            _ => &["too_large"],
        };
        assert!(codes.contains(&came.as_str()), "{verb}: {came}");
        gate.audited(verb, &format!("refused: {came}")).await;
    }
    assert_eq!(before, picture(&root));
}

//
#[tokio::test]
async fn every_verb_counts_against_the_rate() {
    let settings =
        "[gate]\nrate_limit = 1\nburst = 1\nmax_grants = 500\nmax_requests = 500\nmax_requests_per_agent = 500\n";
    let gate = Gate::start_in(settings, &[("PATH", PATH.to_owned())]).await;
    let (granted, mut holder) = holder(&gate, &["*"]).await;
    let mut refused = 0;
    for row in rows() {
        let verb = row.action.verb;
        // What is refused for its arguments has taken its turn too, so that nothing is done even if it comes through.
        until(&format!("{verb} is too fast"), async || {
            refused += 2;
            came_to(&gate, &mut holder, "open_file", &json!({})).await;
            came_to(&gate, &mut holder, verb, &json!({"no_such_argument": 1})).await == "rate_limited"
        })
        .await;
    }
    gate.audited("open_file", "refused: rate_limited").await;
    // A flood of them is a line with a count; the last may still wait for the next line.
    until("they are on record", async || on_record(&gate, &granted) + 50 >= refused).await;
}

#[tokio::test]
async fn what_is_no_text_and_what_is_a_gigabyte_is_refused_in_time() {
    let gate = besieged().await;
    let root = Path::new(&gate.project()).to_owned();
    let mut faults = Vec::new();
    for row in rows().iter().filter(|row| !row.binary.is_empty()) {
        let (_, mut holder) = holder(&gate, &["*"]).await;
        for (path, codes) in [("bin.rs", row.binary), ("huge.rs", row.huge)] {
            make_bad(&root);
            let (before, lines) = (picture(&root), gate.audit().len());
            let came = came_to(&gate, &mut holder, row.action.verb, &with(row, "path", path.into())).await;
            if !codes.contains(&came.as_str()) {
                faults.push(format!("{} on {path}: {came}, not {codes:?}", row.action.verb));
            }
            if came != "ok" {
                until(&format!("{}: {came} is on record", row.action.verb), async || {
                    gate.audit().iter().skip(lines.saturating_sub(1)).any(|line| {
                        let result = line["result"].as_str().unwrap_or_default();
                        line["action"] == row.action.verb && result.ends_with(&format!(": {came}"))
                    })
                })
                .await;
                assert_eq!(before, picture(&root), "{}", row.action.verb);
            }
        }
    }
    let peak = process::peak_kib(gate.daemon.pid());
    assert!(peak < 400 << 10, "the daemon held {peak} KiB");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_file_that_comes_and_goes_confuses_no_verb() {
    const TIMES: usize = 20;
    let gate = besieged().await;
    let root = Path::new(&gate.project()).to_owned();
    let before = picture(&root);
    let ends = Arc::new(AtomicBool::new(false));
    let restless = {
        let (path, ends) = (root.join("restless.rs"), ends.clone());
        thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let _ = fs::write(&path, "fn main() {}\n");
                thread::yield_now();
                let _ = fs::remove_file(&path);
                thread::yield_now();
            }
        })
    };
    let mut faults = Vec::new();
    for row in rows().iter().filter(|row| !row.restless.is_empty()) {
        let (_, mut holder) = holder(&gate, &["*"]).await;
        let verb = row.action.verb;
        for _ in 0..TIMES {
            let came = came_to(&gate, &mut holder, verb, &with(row, "path", "restless.rs".into())).await;
            if !row.restless.contains(&came.as_str()) {
                faults.push(format!("{verb}: {came}, not {:?}", row.restless));
                break;
            }
            let _ = fs::remove_file(root.join("b.rs"));
        }
        let close = json!({"path": "restless.rs", "discard": true});
        came_to(&gate, &mut holder, "close_buffer", &close).await;
    }
    ends.store(true, Ordering::Relaxed);
    restless.join().unwrap();
    let _ = fs::remove_file(root.join("restless.rs"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let left: Vec<_> = picture(&root).into_keys().filter(|path| !before.contains_key(path)).collect();
    assert_eq!(left, [""; 0], "left behind");
}
