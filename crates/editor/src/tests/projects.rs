//! `build_project` and `run_tests`, with real tools.

use std::{collections::BTreeSet, process::Command};

use tokio::time::timeout;

use super::{commands::SOON, *};
use crate::shown::GivenCommand;

impl Place {
    fn files(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            self.write(name, text);
        }
    }
}

fn is_here(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The cases as `outcome name`.
fn cases(answer: &Value) -> BTreeSet<String> {
    let cases = answer["tests"]["cases"].as_array().unwrap();
    let told = |case: &Value| format!("{} {}", case["outcome"].as_str().unwrap(), case["name"].as_str().unwrap());
    cases.iter().map(told).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const CARGO: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n"),
    ("member/Cargo.toml", "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "member/src/lib.rs",
        "pub fn one() -> i32 {\n    let unused = 1;\n    1\n}\n\n#[test]\nfn holds() {\n    assert_eq!(one(), 1);\n}\n\n\
         #[test]\nfn fails() {\n    assert_eq!(one(), 2, \"not two\");\n}\n\n#[test]\n#[ignore]\nfn waits() {}\n",
    ),
];

#[tokio::test]
async fn cargo_builds_and_tests() {
    let place = Place::roomy();
    place.files(CARGO);
    let mut heard = place.runtime.listen();
    let answer = place.run("build_project", json!({ "cwd": "member/src" })).await.unwrap();
    assert_eq!(
        (&answer["tool"], &answer["is_ok"], &answer["exit_code"]),
        (&json!("cargo"), &json!(true), &json!(0)),
        "{answer}"
    );
    assert_eq!(answer["cwd"], json!(place.path("member")));
    let diagnostic = &answer["diagnostics"][0];
    let expected = json!({ "start": { "line": 1, "character": 8 }, "end": { "line": 1, "character": 14 } });
    assert_eq!((&diagnostic["path"], &diagnostic["range"]), (&json!(place.path("member/src/lib.rs")), &expected));
    assert_eq!((&diagnostic["severity"], &diagnostic["source"]), (&json!("warning"), &json!("rustc")));
    assert_eq!(answer["fence"]["enforced"], place.enforced());
    let names = std::iter::from_fn(|| heard.try_recv().ok()).map(|happening| happening.event.name);
    assert_eq!(names.collect::<Vec<_>>(), ["build_started", "build_completed"]);

    let (progress, mut notes) = ProgressSink::channel();
    let prepared = place.prepare("run_tests", json!({ "cwd": "member" })).await.unwrap();
    let answer = prepared.run(progress).await.unwrap();
    assert_eq!(answer["is_ok"], false, "{answer}");
    let tests = &answer["tests"];
    assert_eq!((&tests["passed"], &tests["failed"], &tests["ignored"]), (&json!(1), &json!(1), &json!(1)), "{answer}");
    assert_eq!(cases(&answer), set(&["passed holds", "failed fails", "ignored waits"]));
    let failed = tests["cases"].as_array().unwrap().iter().find(|case| case["name"] == "fails").unwrap();
    assert_eq!(failed["path"], json!(place.path("member/src/lib.rs")));
    assert!(failed["message"].as_str().unwrap().contains("not two"));
    assert!(notes.try_recv().is_ok_and(|note| note.message.starts_with("cargo test")));
    let told = heard.try_recv().unwrap();
    assert_eq!((told.event.name, &told.data["failed"]), ("test_results", &json!(1)));

    let answer = place.run("run_tests", json!({ "cwd": "member", "filter": "holds" })).await.unwrap();
    assert_eq!((&answer["is_ok"], cases(&answer)), (&json!(true), set(&["passed holds"])));
    place.write("member/src/lib.rs", "pub fn one() -> i32 { two }");
    let answer = place.run("build_project", json!({ "target": "member" })).await.unwrap();
    assert_eq!((&answer["is_ok"], &answer["errors"]), (&json!(false), &json!(1)));
    assert_eq!(answer["diagnostics"][0]["code"], "E0425");
}

#[tokio::test]
async fn npm_builds_and_tests() {
    let place = Place::roomy();
    let manifest = r#"{"name":"a","scripts":{"build":"node build.js","test":"node --test","lint":"exit 0"}}"#;
    place.files(&[
        ("package.json", manifest),
        ("build.js", "console.log(\"src/a.ts(3,5): error TS2322: no\"); process.exit(2)"),
        (
            "a.test.js",
            "const test = require('node:test');\ntest('holds', () => {});\ntest('fails', () => { throw new Error('no'); });\n",
        ),
    ]);
    let answer = place.run("build_project", json!({})).await.unwrap();
    assert_eq!((&answer["tool"], &answer["exit_code"]), (&json!("npm"), &json!(2)), "{answer}");
    assert_eq!(answer["diagnostics"][0]["code"], "TS2322");
    assert_eq!(place.run("build_project", json!({ "target": "lint" })).await.unwrap()["is_ok"], true);
    let refusal = place.run("build_project", json!({ "target": "none" })).await.unwrap_err();
    assert_eq!(
        (refusal.code, refusal.message.contains("build, test, lint") || refusal.message.contains("build, lint, test")),
        (Code::NotFound, true),
        "{refusal:?}"
    );

    let answer = place.run("run_tests", json!({})).await.unwrap();
    assert_eq!((&answer["is_ok"], &answer["tests"]["passed"]), (&json!(false), &json!(1)), "{answer}");
    assert_eq!(cases(&answer), set(&["passed holds", "failed fails"]));
}

/// A folder with a Python that has pytest, made once.
fn python_with_pytest() -> Option<PathBuf> {
    let folder = std::env::temp_dir().join("prism-test-python");
    let python = folder.join("bin/python");
    let has_it = || Command::new(&python).args(["-c", "import pytest"]).status().is_ok_and(|status| status.success());
    if !has_it() {
        let run = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let is_made = run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            && run(Command::new(&python).args(["-m", "pip", "install", "-q", "pytest"]));
        if !is_made || !has_it() {
            skipped("there is no pytest, and none could be installed; type: python3 -m pip install pytest");
            return None;
        }
    }
    folder.canonicalize().ok()
}

#[tokio::test]
async fn pytest_tests() {
    let Some(python) = python_with_pytest() else { return };
    let home = environment().get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
    let place =
        Place::with(EditorSettings { home, readable: vec![python.clone()], ..EditorSettings::default() }, "prism");
    place.files(&[
        ("pyproject.toml", "[project]\nname = \"a\"\n"),
        ("tests/test_a.py", "def test_holds():\n    pass\n\ndef test_fails():\n    assert 1 == 2, 'not two'\n"),
        ("src/b.py", "def f(:\n"),
    ]);
    std::os::unix::fs::symlink(&python, place.path(".venv")).unwrap();
    let answer = place.run("run_tests", json!({ "cwd": "tests" })).await.unwrap();
    assert_eq!((&answer["tool"], &answer["exit_code"]), (&json!("pytest"), &json!(1)), "{answer}");
    assert_eq!(cases(&answer), set(&["passed tests/test_a.py::test_holds", "failed tests/test_a.py::test_fails"]));
    let failed = answer["tests"]["cases"].as_array().unwrap().iter().find(|case| case["outcome"] == "failed").unwrap();
    assert!(failed["message"].as_str().unwrap().contains("not two"));
    assert_eq!(failed["path"], json!(place.path("tests/test_a.py")));
    let one = json!({ "filter": "tests/test_a.py::test_holds" });
    assert_eq!(place.run("run_tests", one).await.unwrap()["tests"]["failed"], 0);
    let answer = place.run("build_project", json!({})).await.unwrap();
    assert_eq!(
        (&answer["is_ok"], &answer["diagnostics"][0]["path"]),
        (&json!(false), &json!(place.path("src/b.py"))),
        "{answer}"
    );
}

#[tokio::test]
async fn go_builds_and_tests() {
    if !is_here("go") {
        skipped("there is no go; install the package `golang`");
        return;
    }
    let place = Place::roomy();
    place.files(&[
        ("go.mod", "module lab\n\ngo 1.18\n"),
        ("a.go", "package lab\n\nfunc One() int { return 1 }\n"),
        ("a_test.go", "package lab\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tt.Error(One())\n}\n"),
    ]);
    let answer = place.run("run_tests", json!({})).await.unwrap();
    assert_eq!((&answer["tool"], cases(&answer)), (&json!("go"), set(&["failed lab.TestOne"])), "{answer}");
    assert_eq!(place.run("build_project", json!({})).await.unwrap()["is_ok"], true);
    place.write("a.go", "package lab\n\nfunc One() int { return two }\n");
    let answer = place.run("build_project", json!({})).await.unwrap();
    assert_eq!(
        (&answer["errors"], &answer["diagnostics"][0]["path"]),
        (&json!(1), &json!(place.path("a.go"))),
        "{answer}"
    );
}

#[tokio::test]
async fn make_builds_and_tests() {
    let place = Place::roomy();
    place.files(&[
        ("Makefile", "all: a.o\na.o: a.c\n\tcc -Wall -c a.c\ncheck:\n\techo checked\n"),
        ("a.c", "int f(void) {\n  int unused;\n  return missing;\n}\n"),
    ]);
    let answer = place.run("build_project", json!({})).await.unwrap();
    assert_eq!(
        (&answer["tool"], &answer["exit_code"], &answer["errors"]),
        (&json!("make"), &json!(2), &json!(1)),
        "{answer}"
    );
    let path = json!(place.path("a.c"));
    assert!(answer["diagnostics"].as_array().unwrap().iter().all(|diagnostic| diagnostic["path"] == path));
    let answer = place.run("run_tests", json!({})).await.unwrap();
    assert_eq!((&answer["is_ok"], &answer["command"]), (&json!(true), &json!(["make", "check"])), "{answer}");
}

// A-10
#[tokio::test]
async fn a_person_sees_what_is_run_and_where() {
    let place = Place::roomy();
    place.files(CARGO);
    let shown = place.shown("build_project", json!({ "cwd": "member", "timeout_ms": 5000 })).await;
    let ActionPreview::Command { command: GivenCommand::List(words), cwd, timeout_ms, .. } = shown else {
        panic!("{shown:?}")
    };
    assert_eq!(words[..2], ["cargo", "build"]);
    assert_eq!((cwd.as_str(), timeout_ms), (text(&place.path("member")), 5000));
}

#[tokio::test]
async fn what_is_no_project_is_refused() {
    let place = Place::roomy();
    fs::create_dir(place.path("empty")).unwrap();
    // Above the granted folder there is one, and it is not for us.
    fs::write(place.granted.parent().unwrap().join("Cargo.toml"), "[workspace]").unwrap();
    for (args, code) in [
        (json!({}), Code::NotFound),
        (json!({ "cwd": "empty" }), Code::NotFound),
        (json!({ "tool": "cargo" }), Code::NotFound),
        (json!({ "tool": "bazel" }), Code::BadArguments),
        (json!({ "target": "--config=x" }), Code::BadArguments),
        (json!({ "target": "" }), Code::BadArguments),
        (json!({ "cwd": "/" }), Code::OutsideRoot),
        (json!({ "cwd": "missing" }), Code::NotFound),
        (json!({ "timeout_ms": 0 }), Code::BadArguments),
        (json!({ "filter": "x" }), Code::BadArguments),
    ] {
        assert_eq!(place.code("build_project", args.clone()).await, code, "{args}");
    }
}

#[tokio::test]
async fn a_build_that_takes_too_long_is_ended() {
    let place = Place::roomy();
    place.write("Makefile", "all:\n\tsleep 1000\n");
    let answer = timeout(SOON, place.run("build_project", json!({ "timeout_ms": 300 }))).await.unwrap().unwrap();
    assert_eq!(
        (&answer["timed_out"], &answer["is_ok"], &answer["exit_code"]),
        (&json!(true), &json!(false), &json!(null))
    );
    assert_eq!(place.living(), []);
}

#[tokio::test]
async fn of_a_build_that_forks_and_is_revoked_nothing_is_left() {
    const FORKS: usize = 500;
    let place = Place::roomy();
    let fork = "if [ $$((i % 5)) = 0 ]; then setsid sleep 1000 & elif [ $$((i % 5)) = 1 ]; then (sleep 1000 &) ; else sleep 1000 & fi";
    let rule = format!("i=0; while [ $$i -lt {FORKS} ]; do {fork}; i=$$((i+1)); done; touch begun; wait; sleep 1000");
    place.write("Makefile", format!("all:\n\t@{rule}\n"));
    let mut heard = place.runtime.listen();
    let prepared = place.prepare("build_project", json!({})).await.unwrap();
    let running = tokio::spawn(prepared.run(ProgressSink::unseen()));
    let begun = async {
        while !place.path("begun").exists() || place.living().len() < FORKS {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, begun).await.unwrap();
    let revoked = std::time::Instant::now();
    running.abort();
    let gone = async {
        while !place.living().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, gone).await.unwrap();
    println!("{FORKS} processes gone {:?} after the build was revoked", revoked.elapsed());
    let told: Vec<_> = std::iter::from_fn(|| heard.try_recv().ok()).map(|happening| happening.event.name).collect();
    assert_eq!(told, ["build_started", "build_completed"], "who heard of its beginning hears of its end");
}
