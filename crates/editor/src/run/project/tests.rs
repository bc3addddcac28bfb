//! What tools have said, word for word, and what is read from it.

use super::{
    findings::{Diagnostic, Findings, PathBase, Severity, TestCase, TestCounts, TestOutcome, placed_line},
    tool::BuildTool,
};

fn read(tool: &str, said: &str) -> Findings {
    let (mut found, mut reader) = (Findings::default(), BuildTool::named(tool).unwrap().reader());
    for line in said.lines() {
        reader.line(line, &mut found);
    }
    reader.end(&mut found);
    found
}

#[test]
fn what_is_said_to_programs_is_shown_as_a_person_would_have_read_it() {
    for (line, expected) in [
        ("running 3 tests", Some("running 3 tests")),
        (r#"{"reason":"compiler-message","message":{"level":"error","rendered":"error: no\n"}}"#, Some("error: no\n")),
        (r#"{"reason":"compiler-artifact","target":{}}"#, None),
        (r#"{"Action":"output","Test":"T","Output":"=== RUN T\n"}"#, Some("=== RUN T\n")),
        (r#"{"Action":"start"}"#, None),
        (r#"{"message":"a program's own"}"#, Some(r#"{"message":"a program's own"}"#)),
        (r#"{"not json"#, Some(r#"{"not json"#)),
    ] {
        assert_eq!(super::readable(line).as_deref(), expected, "{line}");
    }
}

/// The cases as `outcome name`.
fn cases(found: &Findings) -> Vec<String> {
    let (_, cases) = found.parts();
    cases.iter().map(|case| format!("{:?} {}", case.outcome, case.name)).collect()
}

fn case<'a>(found: &'a Findings, name: &str) -> &'a TestCase {
    found.parts().1.iter().find(|case| case.name == name).unwrap()
}

/// The diagnostics as `path:line:character severity code`.
fn diagnostics(found: &Findings) -> Vec<String> {
    let told = |diagnostic: &Diagnostic| {
        let Diagnostic { path, start: (line, character), severity, code, .. } = diagnostic;
        format!("{path}:{line}:{character} {severity:?} {}", code.as_deref().unwrap_or("-"))
    };
    found.parts().0.iter().map(told).collect()
}

fn counts(passed: u64, failed: u64, ignored: u64) -> TestCounts {
    TestCounts { passed, failed, ignored }
}

#[test]
fn cargo_tells_of_tests() {
    let found = read("cargo", include_str!("tests/cargo-test.txt"));
    assert_eq!(
        cases(&found),
        [
            "Passed tests::adds",
            "Passed tests::panics",
            "Failed tests::lies",
            "Ignored tests::sleeps",
            "Passed src/lib.rs - add (line 3)",
        ]
    );
    assert_eq!((found.counts(), found.expected), (counts(3, 1, 1), 5));
    let lies = case(&found, "tests::lies");
    assert_eq!(lies.path.as_deref(), Some("src/lib.rs"));
    assert!(lies.message.as_deref().unwrap().contains("left == right` failed: it does not"), "{lies:?}");
    assert_eq!(case(&found, "tests::sleeps").message.as_deref(), Some("too slow"));
    assert_eq!(diagnostics(&found), ["src/lib.rs:6:8 Warning unused_variables"], "once, though compiled twice");
}

#[test]
fn cargo_tells_of_errors() {
    let found = read("cargo", include_str!("tests/cargo-build.txt"));
    // In front of it stands `let é = "ä"; let x: u32 = `.
    assert_eq!(diagnostics(&found), ["src/lib.rs:6:30 Error E0308"]);
    let diagnostic = &found.parts().0[0];
    assert_eq!(diagnostic.end, Some((6, 31)));
    assert!(diagnostic.message.contains("expected `u32`, found `&str`"), "{diagnostic:?}");
    assert_eq!((found.errors, found.warnings), (1, 0));
}

#[test]
fn a_column_is_counted_in_utf_16() {
    let said = r#"{"reason":"compiler-message","message":{"message":"m","level":"warning","code":null,"spans":[{"file_name":"a.rs","line_start":1,"line_end":1,"column_start":3,"column_end":9,"is_primary":true,"text":[{"text":"😀😀x"}]}]}}"#;
    let found = read("cargo", said);
    assert_eq!((found.parts().0[0].start, found.parts().0[0].end), ((0, 4), Some((0, 10))));
}

#[test]
fn node_tells_in_tap_and_for_people() {
    let tap = read("npm", include_str!("tests/node-tap.txt"));
    assert_eq!(
        cases(&tap),
        ["Passed adds", "Failed lies", "Ignored later", "Passed a suite > inner", "Failed a suite > inner bad"]
    );
    assert_eq!(tap.counts(), counts(2, 2, 1));
    let lies = case(&tap, "lies");
    assert_eq!((lies.message.as_deref(), lies.path.as_deref()), (Some("2 == 3"), Some("/p/t/a.test.cjs")));
    assert_eq!((lies.duration_ms, case(&tap, "later").message.as_deref()), (Some(2), Some("not yet")));

    let spec = read("npm", include_str!("tests/node-spec.txt"));
    assert_eq!(cases(&spec), ["Passed adds", "Failed lies", "Ignored later", "Passed inner", "Failed inner bad"]);
    assert_eq!(spec.counts(), counts(2, 2, 1));
    let lies = case(&spec, "lies");
    assert!(lies.message.as_deref().unwrap().starts_with("AssertionError"), "{lies:?}");
    assert_eq!(lies.path.as_deref(), Some("/p/t/a.test.cjs"));
}

#[test]
fn vitest_and_jest_tell_of_tests() {
    let vitest = read("npm", include_str!("tests/vitest.txt"));
    let failed = "v/a.test.mjs > suite > lies";
    assert_eq!(cases(&vitest), ["Passed adds", &format!("Failed {failed}"), "Ignored later"]);
    assert_eq!(vitest.counts(), counts(2, 1, 1));
    assert_eq!(case(&vitest, failed).path.as_deref(), Some("v/a.test.mjs"));
    assert!(case(&vitest, failed).message.as_deref().unwrap().starts_with("AssertionError: expected 2 to be 3"));

    let jest = read("npm", include_str!("tests/jest.txt"));
    assert_eq!(cases(&jest), ["Passed adds", "Failed suite › lies", "Ignored later"]);
    assert_eq!(jest.counts(), counts(1, 1, 1));
    assert!(case(&jest, "suite › lies").message.as_deref().unwrap().contains("Expected: 3"));
}

#[test]
fn typescript_and_eslint_tell_of_errors() {
    let expected = ["a.ts:0:6 Error TS2322", "a.ts:1:39 Error TS2322"];
    assert_eq!(diagnostics(&read("npm", include_str!("tests/tsc.txt"))), expected);
    assert_eq!(diagnostics(&read("npm", include_str!("tests/tsc-pretty.txt"))), expected);
    let eslint = read("npm", include_str!("tests/eslint.txt"));
    assert_eq!(diagnostics(&eslint), ["/p/l.js:0:6 Warning no-unused-vars", "/p/l.js:0:18 Error no-undef"]);
    assert_eq!(eslint.parts().0[1].message, "'missing' is not defined");
    assert!(eslint.parts().1.is_empty(), "its sum is no test");
}

#[test]
fn pytest_tells_of_tests() {
    let found = read("pytest", include_str!("tests/pytest.txt"));
    assert_eq!(
        cases(&found),
        [
            "Passed test_a.py::TestSums::test_adds",
            "Passed test_a.py::test_each[1]",
            "Ignored test_a.py:15",
            "Failed test_a.py::test_broken",
            "Failed test_a.py::TestSums::test_lies",
            "Failed test_a.py::test_each[2]",
        ]
    );
    assert_eq!(found.counts(), counts(2, 3, 1));
    let lies = case(&found, "test_a.py::TestSums::test_lies");
    assert!(lies.message.as_deref().unwrap().contains("E   AssertionError: it does not"), "{lies:?}");
    assert_eq!(lies.path.as_deref(), Some("test_a.py"));
    assert!(case(&found, "test_a.py::test_broken").message.as_deref().unwrap().contains("no fixture"));

    let broken = read("pytest", include_str!("tests/pytest-syntax.txt"));
    assert_eq!((cases(&broken), broken.counts()), (vec!["Failed test_b.py".to_owned()], counts(0, 1, 0)));
    assert!(case(&broken, "test_b.py").message.as_deref().unwrap().contains("SyntaxError: invalid syntax"));

    let compiled = read("pytest", include_str!("tests/compileall.txt"));
    assert_eq!(diagnostics(&compiled), ["./test_b.py:0:0 Error -"]);
    assert_eq!(compiled.parts().0[0].message, "SyntaxError: invalid syntax");
}

#[test]
fn go_tells_of_tests_and_errors() {
    let found = read("go", include_str!("tests/go-test.txt"));
    assert_eq!(
        cases(&found),
        [
            "Passed lab.TestAdds",
            "Failed lab.TestLies",
            "Ignored lab.TestLater",
            "Passed lab.TestSub/inner",
            "Passed lab.TestSub"
        ]
    );
    let lies = case(&found, "lab.TestLies");
    assert_eq!((lies.message.as_deref(), lies.path.as_deref()), (Some("a_test.go:12: got 3"), Some("a_test.go")));
    for said in [include_str!("tests/go-build.txt"), include_str!("tests/go-test-broken.txt")] {
        let found = read("go", said);
        assert_eq!(diagnostics(&found), ["./a.go:3:24 Error -"]);
        assert_eq!(found.parts().0[0].message, "undefined: missing");
    }
    // As go 1.24 and later have it.
    let newer = r#"{"ImportPath":"lab","Action":"build-output","Output":"./a.go:4:25: undefined: missing\n"}"#;
    assert_eq!(diagnostics(&read("go", newer)), ["./a.go:3:24 Error -"]);
}

#[test]
fn make_tells_of_errors_where_they_are() {
    let found = read("make", include_str!("tests/make.txt"));
    assert_eq!(diagnostics(&found), ["a.c:1:6 Warning -Wunused-variable", "/p/sub/b.c:1:9 Error -"]);
    let found = read("make", "make: *** No rule to make target 'nothing'.  Stop.");
    assert_eq!((found.errors, found.parts().0[0].message.as_str()), (1, "No rule to make target 'nothing'.  Stop."));
}

#[test]
fn a_line_with_a_place_is_told_from_others() {
    assert_eq!(placed_line("src/a.c:3:5: error: x: y"), Some(("src/a.c", (2, 4), "error: x: y")));
    assert_eq!(placed_line("a.go:3: note"), Some(("a.go", (2, 0), "note")));
    for line in ["10:20:30: at night", "http://a.b:80: no", "a: b", "", ":", "::::", "error: a.c:1:1: x", "a.c:0:1: x"]
    {
        assert_eq!(placed_line(line), None, "{line}");
    }
}

#[test]
fn what_is_found_is_bounded_and_counted_whole() {
    let mut found = Findings::default();
    for i in 0..10_000 {
        let message = format!("{i} {}", "ä".repeat(5000));
        found.diagnostic(Diagnostic { message: message.clone(), severity: Severity::Error, ..Diagnostic::default() });
        let outcome = if i % 2 == 0 { TestOutcome::Failed } else { TestOutcome::Passed };
        found.case(TestCase { name: i.to_string(), outcome, message: Some(message), ..TestCase::default() });
    }
    let (diagnostics, cases) = found.parts();
    assert_eq!((diagnostics.len(), cases.len(), found.is_complete()), (500, 1500, false));
    assert_eq!((found.errors, found.counts()), (10_000, counts(5000, 5000, 0)));
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.message.len() < 4200));
}

#[test]
fn no_words_break_a_reader() {
    let texts = [
        include_str!("tests/cargo-test.txt"),
        include_str!("tests/node-tap.txt"),
        include_str!("tests/node-spec.txt"),
        include_str!("tests/vitest.txt"),
        include_str!("tests/jest.txt"),
        include_str!("tests/pytest.txt"),
        include_str!("tests/go-test.txt"),
        include_str!("tests/make.txt"),
        "---- \n---- stdout ----\ntest  ... \ntest result: . \n✓\n✓ \n(,): \n  : \n=\n==\n= =\n_ _\nmake\nmake: \n\u{1b}\n\u{1b}[",
    ];
    for tool in ["cargo", "npm", "pytest", "go", "make"] {
        for text in texts {
            // Each line cut anywhere.
            for length in 0..40 {
                let cut: Vec<String> = text.lines().map(|line| line.chars().take(length).collect()).collect();
                read(tool, &cut.join("\n"));
            }
        }
    }
}

#[test]
fn a_path_is_looked_for_in_the_folders_above_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("member/src")).unwrap();
    std::fs::write(root.join("member/src/lib.rs"), "").unwrap();
    std::fs::write(folder.path().join("outside.rs"), "").unwrap();
    let base = PathBase { folder: root.join("member"), root: root.clone() };
    assert_eq!(base.resolve("member/src/lib.rs"), root.join("member/src/lib.rs"));
    assert_eq!(base.resolve("./src/lib.rs"), root.join("member/src/lib.rs"));
    assert_eq!(base.resolve("outside.rs"), root.join("member/outside.rs"));
}
