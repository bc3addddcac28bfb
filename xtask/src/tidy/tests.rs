use super::{
    Weight,
    check::CHECKS,
    source::{comments, test_items, views},
    tree::Tree,
};

/// Runs one check on a made-up tree and returns its errors as `path:line what`.
fn found(name: &str, files: &[(&str, &str)]) -> Vec<String> {
    let check = CHECKS.iter().find(|check| check.name == name).unwrap();
    let findings = (check.find)(&Tree::of(files));
    findings.iter().filter(|f| f.weight == Weight::Error).map(|f| format!("{}:{} {}", f.path, f.line, f.what)).collect()
}

fn clean(name: &str, files: &[(&str, &str)]) {
    assert_eq!(found(name, files), Vec::<String>::new());
}

/// Runs one check on the workspace itself.
fn holds(name: &str) {
    let tree = Tree::read(&crate::place::root()).unwrap();
    let check = CHECKS.iter().find(|check| check.name == name).unwrap();
    let findings = (check.find)(&tree);
    let errors: Vec<String> =
        findings.iter().filter(|f| f.weight == Weight::Error).map(|finding| finding.describe(check)).collect();
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

/// One test a check on the workspace, so that a failure names its rule.
macro_rules! holds {
    ($($test:ident $name:literal)*) => {
        $(#[test] fn $test() { holds($name); })*

        #[test]
        fn every_check_is_held_against_the_workspace() {
            let held = [$($name),*];
            assert!(CHECKS.iter().map(|check| check.name).eq(held), "add the new check to `holds!`");
        }
    };
}

holds! {
    core_depends_on_nothing "core-depends-on-nothing"
    core_does_no_io "core-does-no-io"
    crates_keep_their_floor "crates-keep-their-floor"
    rooms_have_no_knots "rooms-have-no-knots"
    one_way_in "one-way-in"
    unsafe_is_in_os "unsafe-is-in-os"
    sql_is_in_store "sql-is-in-store"
    status_is_in_serve "status-is-in-serve"
    environment_is_in_config "environment-is-in-config"
    queues_are_bounded "queues-are-bounded"
    payloads_are_not_traced "payloads-are-not-traced"
    cited_numbers_exist "cited-numbers-exist"
    cited_sections_exist "cited-sections-exist"
    cited_pages_exist "cited-pages-exist"
    comments_outlive_the_work "comments-outlive-the-work"
    api_does_nothing "api-does-nothing"
    answers_are_typed "answers-are-typed"
    no_ignored_tests "no-ignored-tests"
    expect_not_allow "expect-not-allow"
    no_mod_rs "no-mod-rs"
    no_forgotten_file "no-forgotten-file"
    one_test_binary "one-test-binary"
    files_are_short "files-are-short"
    manifests "manifests"
    no_machine_paths "no-machine-paths"
}

const CORE: &str = "crates/core/src/lib.rs";
const OS: &str = "crates/os/src/lib.rs";
const PRISM: &str = "crates/prism/src/lib.rs";

#[test]
fn comments_and_strings_are_told_from_code() {
    let text = "a // b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# 'k' '\\'' l::<'m>() \"ü\" n";
    let (bare, code) = views(text);
    assert_eq!((bare.len(), code.len()), (text.len(), text.len()));
    let letters = |view: &str| view.chars().filter(char::is_ascii_lowercase).collect::<String>();
    assert_eq!(letters(&code), "afrlmn");
    assert_eq!(letters(&bare), "afghrijklmn");
}

#[test]
fn comments_are_kept_by_themselves() {
    let text = "a(); // b: ü\n\"// c\" /* d */";
    assert_eq!(comments(text, &views(text).0), "     // b: ü\n       /* d */");
}

#[test]
fn test_modules_are_told_from_the_rest() {
    let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}";
    let items: Vec<&str> = test_items(code).into_iter().map(|range| &code[range]).collect();
    assert_eq!(items, ["#[cfg(test)]\nmod tests { fn b() {} }", "#[cfg(test)]\nmod more;"]);
}

#[test]
fn a_runtime_in_core_is_found_whatever_its_form() {
    let manifest = "[dependencies]\ntokio.workspace = true\nbytes = \"1\"\n[dependencies.rustix]\nversion = \"1\"\n\
                    [dev-dependencies]\ntokio = \"1\"\n";
    let all = found("core-depends-on-nothing", &[("crates/core/Cargo.toml", manifest)]);
    assert!(all.iter().any(|line| line == "crates/core/Cargo.toml:2 core depends on tokio"), "{all:?}");
    assert!(all.iter().any(|line| line.contains("rustix")), "{all:?}");
    assert!(!all.iter().any(|line| line.contains("bytes") || line.contains(":7 ")), "{all:?}");
}

#[test]
fn the_api_depends_on_core_and_serdes_family_only() {
    let manifest = "[package]\nname = \"prism-api\"\n[dependencies]\nprism-core.workspace = true\nserde = \"1\"\n\
                    uuid.workspace = true\n[dependencies.tokio]\nversion = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n";
    let all = found("api-does-nothing", &[("crates/api/Cargo.toml", manifest)]);
    assert!(all.iter().any(|line| line.ends_with(":6 api depends on uuid")), "{all:?}");
    assert!(all.iter().any(|line| line.contains("tokio")), "{all:?}");
    assert!(!all.iter().any(|line| line.contains("proptest") || line.contains("serde")), "{all:?}");
}

#[test]
fn a_look_up_by_name_is_found_where_answers_have_types() {
    let text = "fn f() { told[\"status\"]; rows()[\"a\"][\"b\"]; let list = [\"a\"]; one[NAME]; }\n// told[\"x\"]\n\
                #[cfg(test)]\nmod tests { fn t() { told[\"y\"]; } }";
    let all = found("answers-are-typed", &[("crates/prism/src/cli/grants.rs", text)]);
    let all: Vec<&str> = all.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(all, ["`[\"status\"]`", "`[\"a\"]`", "`[\"b\"]`"]);
    clean(
        "answers-are-typed",
        &[("crates/prism/src/wake/opencode.rs", text), ("crates/prism/src/gate/tests.rs", text)],
    );
}

#[test]
fn io_in_core_is_found_in_paths_and_in_groups() {
    let text = "use std::{collections::HashMap, fs::File};\nfn f() { std::env::var(x); Instant::now(); }\n// std::net\n\
                #[cfg(test)]\nmod tests { use std::process::Command; }";
    let all = found("core-does-no-io", &[(CORE, text)]);
    let mut all: Vec<&str> = all.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    all.sort_unstable();
    assert_eq!(all, ["`Instant::now`", "`std::env`", "`std::fs`"]);
    clean("core-does-no-io", &[(PRISM, text), ("crates/core/tests/it/main.rs", text)]);
}

#[test]
fn unsafe_needs_the_right_crate_and_a_reason() {
    assert_eq!(found("unsafe-is-in-os", &[(PRISM, "// SAFETY: no\nunsafe { x() }")]).len(), 1);
    assert_eq!(
        found("unsafe-is-in-os", &[(OS, "fn f() {}\nunsafe { x() }")]),
        [format!("{OS}:2 `unsafe` without `SAFETY:`")]
    );
    clean(
        "unsafe-is-in-os",
        &[(OS, "// SAFETY: x is sound here.\nunsafe { x() }"), (PRISM, "#![deny(unsafe_code)] // unsafe")],
    );
}

#[test]
fn sql_outside_of_the_store_is_found() {
    let text = r#"const Q: &str = "SELECT id FROM grants";"#;
    assert_eq!(found("sql-is-in-store", &[(PRISM, text)]), [format!("{PRISM}:1 `SELECT`")]);
    clean("sql-is-in-store", &[("crates/store/src/lib.rs", text), (CORE, "// SELECT what you like")]);
}

#[test]
fn status_codes_and_variables_stay_where_they_belong() {
    assert_eq!(found("status-is-in-serve", &[("crates/prism/src/drive.rs", "StatusCode::OK")]).len(), 1);
    clean(
        "status-is-in-serve",
        &[("crates/daemon/src/serve/fault.rs", "StatusCode::OK"), ("crates/daemon/src/serve.rs", "StatusCode")],
    );
    assert_eq!(
        found("environment-is-in-config", &[("crates/prism/src/home.rs", "std::env::var_os(\"HOME\")")]).len(),
        1
    );
    clean(
        "environment-is-in-config",
        &[
            ("crates/config/src/lib.rs", "std::env::var(\"HOME\")"),
            ("crates/config/src/raw.rs", "env::vars()"),
            ("crates/prism/src/main.rs", "std::env::args()"),
            ("crates/prism/tests/it/run.rs", "std::env::var(\"PATH\")"),
        ],
    );
}

#[test]
fn a_queue_has_a_named_and_explained_bound() {
    let said = "/// Beyond it the caller waits.\nconst MAILBOX: usize = 8;\nconst BARE: usize = 8;\n";
    let queue = |call: &str| found("queues-are-bounded", &[(PRISM, &format!("{said}fn f() {{ {call}; }}"))]);
    assert_eq!(queue("mpsc::channel(MAILBOX)"), Vec::<String>::new());
    assert_eq!(queue("mpsc::channel::<(u8, u8)>(Self::MAILBOX)"), Vec::<String>::new());
    assert_eq!(queue("use tokio::sync::mpsc::channel"), Vec::<String>::new());
    for wrong in [
        "mpsc::channel(64)",
        "mpsc::channel::<u8>(size)",
        "mpsc::channel(BARE)",
        "mpsc::channel()",
        "mpsc::unbounded_channel()",
    ] {
        assert_eq!(queue(wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn a_traced_payload_is_found_and_an_operator_is_not() {
    assert_eq!(found("payloads-are-not-traced", &[(PRISM, "debug!(?params, \"got\")")]).len(), 1);
    assert_eq!(found("payloads-are-not-traced", &[(PRISM, "debug!(body = %body)")]).len(), 1);
    clean(
        "payloads-are-not-traced",
        &[(PRISM, "let n = a % line; f()?; debug!(?id, size = bytes.len()); warn!(bytes = %bytes.len())")],
    );
}

#[test]
fn numbers_that_are_cited_and_nowhere_are_found() {
    let requirements = ("docs/requirements.md", "| # | what |\n|---|---|\n| B-04 | shared |\n");
    let findings = ("docs/findings.md", "| R-17 | x | y |\n| H5 | x | y |\n");
    let cited = "// B-04, R-17: and (H5)\nfn a() { \"B-99 H9\" } // utf-8 H264 A-1 AB-04 0B-04\n";
    let numbers = |code: &str| found("cited-numbers-exist", &[requirements, findings, (PRISM, code)]);
    assert_eq!(numbers(cited), Vec::<String>::new());
    assert_eq!(numbers("fn a() {}\n/// As B-40 has it. (L8)\n").len(), 2);
    assert_eq!(
        found("cited-numbers-exist", &[requirements, ("yardstick/lib.sh", "# R-17\n")]),
        ["yardstick/lib.sh:1 R-17 is in no page of docs/"]
    );
    let twice = ("docs/findings.md", "| R-17 | x | y |\n| R-17 | x | y |\n");
    assert_eq!(found("cited-numbers-exist", &[twice]), ["docs/findings.md:2 R-17 a second time"]);
}

#[test]
fn sections_that_are_cited_and_nowhere_are_found() {
    let pages = [
        ("docs/mcp-eras.md", "## 3. Error codes\n### 5.7 Questions\n### 5.10 Cancelling\n"),
        ("docs/style.md", "## 3. When something is full\n"),
        ("ARCHITECTURE.md", "| 5 | every queue is bounded |\n"),
        ("xtask/src/checks/list.txt", "46 A ping\n"),
    ];
    let sections = |code: &str| found("cited-sections-exist", &[&pages[..], &[(PRISM, code)]].concat());
    let held = "// (mcp-eras 5.7 A2, 5.10, and more), mcp-eras, check 46, mcp-eras 3. Style 3: style 3, invariant 5\n\
                fn check(style: u8) { \"mcp-eras 9\" } // check it, style that\n";
    assert_eq!(sections(held), Vec::<String>::new());
    for wrong in ["mcp-eras 5.8", "mcp-eras 5.7, 5.11", "style 7", "invariant 6", "Check 121."] {
        assert_eq!(sections(&format!("// {wrong}\n")).len(), 1, "{wrong}");
    }
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = ("docs/gate.md", "# The gate\n## What your own tools run\n[this](#the-gate) [up](../README.md)\n");
    let links = |text: &str| found("cited-pages-exist", &[page, ("README.md", text)]);
    let good =
        "[a](docs/gate.md) [b](docs/gate.md#what-your-own-tools-run) [c](https://x.example/y.md) [d](docs/console.png)";
    assert_eq!(links(good), Vec::<String>::new());
    for wrong in ["[a](docs/gates.md)", "[a](docs/gate.md#what)", "see docs/lost.md."] {
        assert_eq!(links(wrong).len(), 1, "{wrong}");
    }
    assert_eq!(found("cited-pages-exist", &[page, ("README.md", ""), (PRISM, "// as docs/lost.md says")]).len(), 1);
}

#[test]
fn comments_that_only_their_makers_understand_are_found() {
    let comment = |text: &str| found("comments-outlive-the-work", &[(PRISM, &format!("// {text}\n"))]).len();
    for wrong in ["issue 12", "Issue #3: x", "as it must show", "House style 3", "see ../shared/x.md"] {
        assert_eq!(comment(wrong), 1, "{wrong}");
    }
    assert_eq!(comment("the issue is that 3 reissue 4 issues; TODO(#123): x"), 0);
    clean("comments-outlive-the-work", &[(PRISM, "fn a() { \"issue 12\" }")]);
}

#[test]
fn attributes_of_the_wrong_kind_are_found() {
    assert_eq!(
        found("no-ignored-tests", &[(PRISM, "#[test]\n#[ignore = \"slow\"]\nfn a() {}")]),
        [format!("{PRISM}:2 `#[ignore]`")]
    );
    assert_eq!(
        found("expect-not-allow", &[(PRISM, "#![allow(dead_code)]\n#[cfg_attr(x, allow(y))]\n#[expect(z)]")]).len(),
        3
    );
    clean("expect-not-allow", &[(PRISM, "#[expect(dead_code, reason = \"soon\")]\nfn allow() { x.expect(\"y\"); }")]);
}

#[test]
fn a_file_that_no_mod_names_is_found() {
    let files = [
        ("crates/prism/src/lib.rs", "pub mod serve;"),
        ("crates/prism/src/serve.rs", "mod fault;"),
        ("crates/prism/src/serve/fault.rs", ""),
        ("crates/prism/src/serve/lost.rs", ""),
        ("crates/prism/src/main.rs", ""),
        ("crates/prism/tests/it/main.rs", "mod run;"),
        ("crates/prism/tests/it/run.rs", ""),
        ("crates/prism/tests/it/forgotten.rs", ""),
    ];
    let all = found("no-forgotten-file", &files);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].starts_with("crates/prism/src/serve/lost.rs")
            && all[1].starts_with("crates/prism/tests/it/forgotten.rs"),
        "{all:?}"
    );
}

#[test]
fn layout_rules_are_checked() {
    assert_eq!(found("no-mod-rs", &[("crates/prism/src/serve/mod.rs", "")]).len(), 1);
    let second = [("crates/core/tests/it/main.rs", ""), ("crates/core/tests/more.rs", "")];
    assert_eq!(found("one-test-binary", &second), ["crates/core/tests/more.rs:1 a test binary besides `it`"]);
    assert_eq!(found("files-are-short", &[(PRISM, &"//\n".repeat(701))]).len(), 1);
    clean("files-are-short", &[(PRISM, &"//\n".repeat(700))]);
}

#[test]
fn manifests_and_paths_are_checked() {
    let git = "[dependencies]\nx = { git = \"https://example.com/x\" }\n[lints]\nworkspace = true\n";
    assert_eq!(found("manifests", &[("crates/core/Cargo.toml", git)]), ["crates/core/Cargo.toml:2 a git dependency"]);
    assert_eq!(found("manifests", &[("crates/core/Cargo.toml", "[package]\n")]).len(), 1);
    assert_eq!(found("manifests", &[("Cargo.lock", "source = \"registry+https://example.com/index\"\n")]).len(), 1);
    let path = concat!("see /ro", "ot/x and dir/wo", "rk/y");
    assert_eq!(found("no-machine-paths", &[("README.md", path)]).len(), 1);
}

#[test]
fn a_crate_that_names_one_above_it_is_found() {
    let manifest = "[dependencies]\nprism-core.workspace = true\nprism-daemon.workspace = true\n\
                    [dev-dependencies]\nprism-daemon.workspace = true\n";
    assert_eq!(
        found("crates-keep-their-floor", &[("crates/mesh/Cargo.toml", manifest)]),
        ["crates/mesh/Cargo.toml:3 mesh depends on daemon"]
    );
    let stranger = "[dependencies]\nhyper = { workspace = true, features = [\"client\"] }\n";
    assert_eq!(found("crates-keep-their-floor", &[("crates/gate/Cargo.toml", stranger)]).len(), 1);
    assert_eq!(found("crates-keep-their-floor", &[("crates/attic/Cargo.toml", "")]).len(), 1);
    clean("crates-keep-their-floor", &[("crates/prism/Cargo.toml", manifest.split("[dev").next().unwrap())]);
}

#[test]
fn rooms_that_need_each_other_are_found_whatever_the_form() {
    let knot = [
        ("crates/gate/src/live.rs", "use crate::{grants::Grant, other};"),
        ("crates/gate/src/grants/more.rs", "fn f() -> crate::requests::Request { x }"),
        ("crates/gate/src/requests.rs", "use crate::live;"),
        ("crates/gate/src/other.rs", "use crate::live;\n#[cfg(test)]\nmod tests { use crate::unrelated; }"),
    ];
    assert_eq!(
        found("rooms-have-no-knots", &knot),
        ["crates/gate/src/grants/more.rs:1 grants, live, other, requests need each other"]
    );
    clean("rooms-have-no-knots", &knot[..2]);
}

#[test]
fn a_second_way_in_is_found() {
    let text = "match server.calls.check(&destination, message) {}";
    assert_eq!(found("one-way-in", &[("crates/daemon/src/serve/post.rs", text)]).len(), 1);
    clean("one-way-in", &[("crates/daemon/src/serve/inbound.rs", text)]);
}
