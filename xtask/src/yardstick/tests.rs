use std::{fs, os::unix::process::ExitStatusExt, process::ExitStatus};

use super::*;

fn ran(code: i32, stdout: &str) -> Ran {
    Ran { status: ExitStatus::from_raw(code << 8), stdout: stdout.into(), stderr: String::new() }
}

#[test]
fn every_runner_is_there_and_may_be_executed() {
    use std::os::unix::fs::PermissionsExt;
    for script in [
        "crosstalk/run.sh",
        "conformance/run.sh",
        "conformance/upstream.sh",
        "clients/run.sh",
        "sdks/run.sh",
        "matrix/run.sh",
        "servers/run.sh",
        "everything-server/run.sh",
        "work/run.sh",
    ] {
        let path = crate::place::root().join("yardstick").join(script);
        let mode = fs::metadata(&path).unwrap_or_else(|error| panic!("{script}: {error}")).permissions().mode();
        assert!(mode & 0o111 != 0, "{script} is not executable: chmod +x yardstick/{script}");
    }
}

#[test]
fn only_what_is_out_of_reach_may_fail() {
    let said = "ok   tools-list\nFAIL one\n       why\nWARN two [1 warning(s)]\nFAIL tasks (unscored: extension)\n\
                conformance 2026-07-28: 35/37 passed\nconformance: 65/67 passed\n";
    assert_eq!(failed(said), ["one", "two"]);
    assert!(judge(&ran(1, said), &["one", "two"]).is_ok());
    let error = judge(&ran(1, said), &["one"]).unwrap_err().to_string();
    assert_eq!(error, "conformance: 65/67 passed (two)");
}

#[test]
fn a_lower_score_than_its_failures_explain_is_an_error() {
    let said = "FAIL one\nconformance: 60/67 passed\n";
    assert!(judge(&ran(1, said), &["one", "two"]).is_err());
    assert!(judge(&ran(1, "clients: 100/106 checks passed, 11/12 clients whole\n"), &[]).is_err());
    assert!(judge(&ran(2, said), &["one"]).is_err());
    assert!(judge(&ran(0, "conformance: 67/67 passed\n"), &[]).is_ok());
}

#[test]
fn a_configuration_has_each_destination_at_both_paths() {
    let command = Server::Command(vec!["/a \"b\"/run.sh".into(), "--legacy-only".into()]);
    let config =
        configuration(&[("one", &command, None), ("two", &Server::Url("http://127.0.0.1:1/sse".into()), Some("sse"))]);
    let expected = "[server.one]\ncommand = [\"/a \\\"b\\\"/run.sh\", \"--legacy-only\"]\nlegacy_sse = true\n\n\
                    [server.two]\nurl = \"http://127.0.0.1:1/sse\"\nlegacy_sse = true\ntype = \"sse\"\n\n";
    assert_eq!(config, expected);
}
