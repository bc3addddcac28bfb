use super::*;

const SOME: &str = "1 A one thing\n2 L,S,D another thing\n3 M a third\n";

fn report(files: &[(&str, &str)]) -> Report {
    Report::of(SOME, scan::scan(&Tree::of(files))).unwrap()
}

#[test]
fn the_list_is_whole() {
    let list = parse(LIST).unwrap();
    let numbers: Vec<u32> = list.iter().map(|check| check.number).collect();
    assert_eq!(numbers, (1..=120).collect::<Vec<u32>>());
    let known = ["A", "L", "S", "M", "D", "24-11", "25-03", "25-06", "25-06+", "25-11"];
    for check in list {
        assert!(check.tags.split(',').all(|tag| known.contains(&tag)), "{}: {}", check.number, check.tags);
    }
}

#[test]
fn every_marker_of_this_tree_can_be_read() {
    let tree = Tree::read(&crate::place::root()).unwrap();
    assert_eq!(Report::of(LIST, scan::scan(&tree)).unwrap().faults, Vec::<String>::new());
}

#[test]
fn a_marked_test_is_named_by_its_whole_path() {
    let inner = "mod a {}\nmod tests {\n    mod deep {\n        // checks 1 3\n        #[test]\n        fn in_a_file() {}\n    }\n}\n";
    let tokio = "// checks 2\n#[tokio::test(start_paused = true)]\nasync fn with_a_clock() {}\n";
    let matrix = "const STEPS = {\n  // checks 2 3\n  async list(c) {\n";
    let report = report(&[
        ("crates/core/src/mcp/link.rs", inner),
        ("crates/core/src/mcp/link/tests.rs", "// checks 1\n#[test]\nfn beside_it() {}\n"),
        ("crates/prism/tests/it/http.rs", tokio),
        ("yardstick/matrix/matrix.mjs", matrix),
    ]);
    assert_eq!((report.missing(), &report.faults), (Vec::new(), &Vec::new()));
    let tests: Vec<&[String]> = report.rows.iter().map(|(_, tests)| tests.as_slice()).collect();
    assert_eq!(tests[0], ["prism_core::mcp::link::tests::deep::in_a_file", "prism_core::mcp::link::tests::beside_it"]);
    assert_eq!(tests[1], ["prism::it::http::with_a_clock", "yardstick/matrix::list"]);
    assert_eq!(report.summary(), "checks: 3/3 asserted");
}

#[test]
fn what_no_test_asserts_is_missing() {
    let report = report(&[("crates/os/src/child.rs", "// checks 2\n#[test]\nfn a_test() {}\n")]);
    assert_eq!(report.missing(), [1, 3]);
    assert_eq!(report.summary(), "checks: 1/3 asserted, missing 1 3");
    assert!(report.text().contains("  1 [A] one thing\n      MISSING\n"), "{}", report.text());
    assert!(report.text().contains("  2 [L,S,D] another thing\n      prism_os::child::a_test\n"), "{}", report.text());
}

#[test]
fn an_unknown_number_is_a_fault() {
    let report = report(&[("crates/os/src/child.rs", "// checks 2 4\n#[test]\nfn a_test() {}\n")]);
    assert_eq!(report.faults, ["there is no check 4: prism_os::child::a_test"]);
}

#[test]
fn a_marker_that_is_not_above_a_test_is_a_fault() {
    for after in ["fn no_test() {}\n", "\n#[test]\nfn too_far() {}\n", "/// A test.\n#[test]\nfn documented() {}\n", ""]
    {
        let report = report(&[("crates/os/src/child.rs", &format!("fn f() {{}}\n// checks 1\n{after}"))]);
        assert_eq!(report.faults, ["crates/os/src/child.rs:2: not directly above a test"], "{after:?}");
    }
    let report = report(&[("yardstick/matrix/wire.mjs", "// checks 1\nconst x = 1;\n")]);
    assert_eq!(report.faults, ["yardstick/matrix/wire.mjs:1: not directly above a test"]);
}

#[test]
fn a_marker_that_nobody_can_read_is_a_fault_and_prose_is_not() {
    for line in ["// checks 1, 2", "// checks 1  2", "// checks 1 and 2", "// checks 1-3"] {
        let report = report(&[("crates/os/src/child.rs", &format!("{line}\n#[test]\nfn a_test() {{}}\n"))]);
        assert_eq!(report.faults, ["crates/os/src/child.rs:1: not of the form `// checks 12 34`"], "{line}");
    }
    let report = report(&[("crates/os/src/child.rs", "// checks that it holds\nfn f() {}\n")]);
    assert_eq!(report.faults, Vec::<String>::new());
}
