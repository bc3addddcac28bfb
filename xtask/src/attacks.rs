//! The lane `attacks`: what was found by those who attacked it (docs/findings.md), played again by an
//! ordinary user on a real daemon. The tests are those of the integration binary, under the names that stand here. Each says what
//! the agent, the person and the log saw of it, as it was observed.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};

use crate::{
    Place,
    place::Scratch,
    process::{self, Show},
    say::say,
    test::Verdict,
};

/// A finding, what holds now, and the test that plays it. What names a page of `docs` holds as that page says, and no further.
struct Attack(&'static str, &'static str, &'static str);

const ATTACKS: &[Attack] = &[
    Attack(
        "C1",
        "a config that an agent wrote starts nothing",
        "trust::who_may_write_the_folder_of_the_daemons_config_gains_no_command_by_it",
    ),
    Attack(
        "C1",
        "nor one that nobody has seen",
        "trust::a_config_that_the_person_has_not_seen_starts_nothing_until_they_have",
    ),
    Attack(
        "C1",
        "nor is one read or written in a build",
        "sandbox_attacks::c1_a_file_that_prism_reads_its_config_or_a_secret_from_is_for_nobody_in_a_build",
    ),
    Attack(
        "H1, R-14",
        "no socket is reached, and none is named",
        "sandbox_attacks::h1_no_socket_of_the_persons_is_reached_and_none_is_named",
    ),
    Attack(
        "H1, R-14",
        "no network but what was granted",
        "sandbox_attacks::the_network_is_what_was_granted_and_never_the_daemon",
    ),
    Attack("H2", "no cache is written", "sandbox_attacks::h2_no_cache_that_the_persons_tools_run_from_is_written"),
    Attack(
        "H3",
        "what a browser sends elsewhere opens nothing",
        "console::what_a_browser_sends_to_other_ports_opens_nothing",
    ),
    Attack(
        "H4",
        "the daemon is not limited, slowed or ended",
        "sandbox_attacks::h4_the_daemon_is_neither_limited_nor_slowed_nor_ended",
    ),
    Attack("H5", "nothing outlives a build", "sandbox_attacks::h5_nothing_outlives_a_build"),
    Attack("H5", "nor a grant", "sandbox_attacks::h5_nothing_outlives_a_revoked_or_expired_grant"),
    Attack("H5", "nor a daemon that is killed", "sandbox_attacks::h5_nothing_outlives_a_daemon_that_is_killed"),
    Attack("H6", "a full disk keeps no grant alive", "full_disk::a_grant_is_revoked_on_a_full_disk"),
    Attack("H6", "a full log has a line left", "full_disk::a_revocation_is_on_record_at_once_in_a_full_log"),
    Attack(
        "H7, M4, M5",
        "no terminal, memory or limit is shared",
        "sandbox_attacks::h7_no_terminal_no_memory_and_no_limits_are_shared",
    ),
    Attack("H8", "no mode is changed", "sandbox_attacks::h8_no_mode_of_the_persons_files_is_changed"),
    Attack("H9", "no secret is sent to where an agent says", "findings::no_secret_is_sent_to_where_an_agent_says"),
    Attack("M1", "no server is given the secret that decides", "findings::no_server_is_given_the_secret_that_decides"),
    Attack(
        "M2",
        "no server has another's names",
        "hub::without_prefixes_no_server_has_the_names_of_another_or_of_prism",
    ),
    Attack(
        "M3",
        "no folder's name forges a line of the decision",
        "findings::no_folder_has_a_name_that_forges_a_line_where_the_person_decides",
    ),
    Attack("M6", "who loses its name is told", "mesh_voices::who_loses_its_name_to_another_window_is_told_so"),
    Attack(
        "M7",
        "idle strangers shut nobody out",
        "strangers::a_hundred_idle_strangers_shut_nobody_out_of_sixty_four_files",
    ),
    Attack("M7", "nor the command line", "strangers::the_command_line_gets_in_beside_idle_strangers"),
    Attack("M7", "few editors may wait", "strangers::few_editors_may_wait_before_they_say_who_they_are"),
    Attack(
        "M8",
        "a changed log is told at the start",
        "audit_broken::a_line_that_was_changed_is_told_by_the_next_daemon",
    ),
    Attack("M8", "and one that was cut", "audit_broken::a_log_that_was_cut_short_is_told_by_the_next_daemon"),
    Attack("L1", "docs/editor.md: a kill loses 300 ms of edits", "findings::what_a_kill_loses_is_what_the_page_says"),
    Attack(
        "L2",
        "docs/security.md: git names no file it cannot read",
        "findings::git_does_not_say_what_is_wrong_with_a_file_that_a_repository_includes",
    ),
    Attack(
        "L3",
        "docs/security.md: who asks for no folder is on record",
        "findings::whoever_asks_for_folders_that_are_not_there_is_on_record",
    ),
    Attack("L4", "what is said twice is refused", "door::what_is_said_twice_is_refused"),
    Attack("L4", "and a foreign authority", "door::a_foreign_authority_and_an_unknown_expectation_are_refused"),
    Attack("L5", "no token in a URL", "door::a_wrong_token_is_refused_and_the_right_one_is_not_told"),
    Attack(
        "L6",
        "docs/rules.md: no path climbs out, SQL is only text",
        "findings::a_path_does_not_climb_out_of_its_rule_and_sql_is_told_to_need_more_than_a_pattern",
    ),
    Attack("L7", "no cookie shuts the person out", "console::cookies_that_another_port_has_tossed_change_nothing"),
    Attack(
        "L8",
        "a full database tells the truth",
        "full_disk::a_grant_is_revoked_with_a_full_database_and_stays_so_after_a_kill",
    ),
    Attack(
        "L9",
        "a pipe as token file holds up no start",
        "findings::a_pipe_in_the_place_of_a_token_holds_up_no_start",
    ),
    Attack("L9", "no list shows a secret in a command", "findings::no_list_shows_a_secret_in_a_command"),
    Attack("L9", "a grant has so many sockets", "findings::a_grant_has_so_many_sockets_and_no_more"),
    Attack("L9", "deep JSON reaches no server", "findings::what_is_nested_a_thousand_deep_reaches_no_server"),
    Attack("L9", "blanks are counted for the person", "findings::many_blanks_are_counted_where_the_person_decides"),
    Attack(
        "L10",
        "a script is shown, and no other is run",
        "gate_holds::a_command_that_runs_a_script_shows_it_and_does_not_run_another",
    ),
    Attack(
        "R-04",
        "nothing is approved unseen",
        "gate_cli::without_a_person_at_a_terminal_nothing_is_approved_unless_it_is_said",
    ),
    Attack(
        "R-05",
        "a repository is closed to file verbs",
        "gate_holds::file_verbs_are_closed_to_a_repository_however_it_is_spelled",
    ),
    Attack(
        "R-05",
        "what tools run is shown first",
        "gate_holds::what_the_persons_tools_run_is_shown_first_with_the_reason",
    ),
    Attack(
        "R-05",
        "and is for reading in a build",
        "sandbox_attacks::what_the_persons_tools_run_by_themselves_is_for_reading",
    ),
    Attack("R-06", "destroying is asked about", "gate_holds::destroying_is_asked_about_however_it_is_spelled"),
    Attack("R-07", "another's text is another's", "gate_holds::what_another_has_not_saved_is_not_thrown_away_unasked"),
    Attack(
        "R-08",
        "who waits for the person is told so",
        "editor_mcp::a_client_without_progress_is_told_to_call_again_and_the_question_stays",
    ),
    Attack(
        "R-08",
        "what was taken back is not done",
        "editor_mcp::what_was_taken_back_is_not_done_however_soon_the_allow_comes",
    ),
    Attack(
        "R-09",
        "the clients' token speaks for nobody",
        "mesh_voices::the_clients_token_speaks_for_nobody_but_for_whose_session_it_shows",
    ),
    Attack("R-10", "an emptied log is not whole", "audit_broken::an_emptied_log_is_no_whole_one"),
    Attack(
        "R-11",
        "bodies hide their secrets",
        "telling::bodies_that_are_recorded_have_no_secrets_in_them_and_streams_have_content",
    ),
    Attack(
        "R-12",
        "who is reached by others is told so",
        "commands::an_address_that_others_can_reach_needs_a_word_of_its_own",
    ),
    Attack("R-13", "a look asks nobody", "gate_holds::a_look_at_the_language_servers_asks_nobody_and_a_stop_does"),
    Attack("R-13", "nobody reads others' command lines", "gate_holds::nobody_is_told_the_command_lines_of_others"),
    Attack("S-26", "thirty ways lead out of no place", "ways_out::thirty_ways_lead_out_of_no_place"),
    Attack(
        "S-26",
        "nor, without a sandbox, out of what was said",
        "ways_out::without_a_sandbox_the_person_is_told_first_of_each_way_that_is_open",
    ),
];

/// Whoever runs this as root attacks as somebody who has no account and no rights.
const ORDINARY: u32 = 65_533;

const WITHIN: Duration = Duration::from_secs(300);

/// Copies the programs to where an ordinary user may run them, and has that user run the attacks.
pub(crate) fn run(place: &Place, tests: &Path) -> anyhow::Result<Verdict> {
    let scratch = Scratch::new()?;
    let [tests, prism] = [(tests, "attacks"), (&place.release("prism"), "prism")].map(|(program, name)| {
        let copy = scratch.path().join(name);
        fs::copy(program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        anyhow::Ok(copy)
    });
    let (tests, prism) = (tests?, prism?);
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
    let home = scratch.path().join("home");
    fs::create_dir(&home)?;
    let mut command = Command::new(tests);
    command.args(["--exact", "--test-threads", "2"]).args(ATTACKS.iter().map(|Attack(_, _, test)| test));
    command.env("PRISM_TESTED_BINARY", prism).env("HOME", &home).env_remove("CARGO_TARGET_DIR").current_dir(&home);
    let (skips, sights) = (home.join("skipped"), home.join("seen"));
    command.env("PRISM_TESTS_SKIPPED", &skips).env("PRISM_ATTACKS_SEEN", &sights);
    // Version managers of root's are nobody else's.
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    if is_root() {
        std::os::unix::fs::chown(&home, Some(ORDINARY), Some(ORDINARY))?;
        command.uid(ORDINARY).gid(ORDINARY);
    }
    let ran = process::run(command, WITHIN, Show::Nothing, || ())?;
    let came: BTreeMap<&str, &str> = ran.stdout.lines().filter_map(told).collect();
    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    let skipped: Vec<&str> = skipped.lines().collect();
    let sights = fs::read_to_string(&sights).unwrap_or_default();
    // Of several lines of one test the last counts.
    let sights: BTreeMap<&str, &str> = sights.lines().filter_map(|line| line.split_once('\t')).collect();
    let (mut held, mut broken) = (0, 0);
    // What came of each way out, from each place.
    ran.stdout.lines().filter_map(|line| line.strip_prefix("ways: ")).for_each(say);
    for Attack(finding, holds, test) in ATTACKS {
        // What is skipped is listed by its name alone, or with its module.
        let name = test.rsplit("::").next().unwrap_or(test);
        let is_skipped = skipped.iter().any(|skipped| skipped.contains(name));
        let how = match (came.get(test).copied(), sights.get(test)) {
            _ if is_skipped => "skipped",
            (Some("ok"), Some(_)) if holds.starts_with("docs/") => "as told",
            (Some("ok"), Some(_)) => "refused",
            (Some("ok"), None) => "not told what was seen",
            (came, _) => came.unwrap_or("not played"),
        };
        held += usize::from(matches!(how, "refused" | "as told"));
        broken += usize::from(!matches!(how, "refused" | "as told" | "skipped"));
        say(format_args!("{finding:<11} {holds:<54} {how}"));
        if let Some(seen) = sights.get(test) {
            let mut seen = seen.splitn(3, '\t');
            let [agent, person, log] = [(); 3].map(|()| seen.next().unwrap_or_default());
            say(format_args!("{:<11} agent: {agent} | person: {person} | log: {log}", ""));
        }
    }
    say(format_args!("attacks: {held} of {} refused, or as told, as an ordinary user", ATTACKS.len()));
    if broken > 0 {
        say(ran.stdout.trim_end());
        say(ran.stderr.trim_end());
    }
    ensure!(broken == 0, "{broken} attacks were not refused, or not played: see above");
    Ok(match skipped.len() {
        0 => Verdict::Passed,
        count => Verdict::PassedBut(format!("{count} skipped: {}", skipped.join("; "))),
    })
}

/// What the test runner says of one test.
fn told(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.split_once(" ... ")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_is_a_test_that_there_is() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/prism/tests/it");
        for Attack(finding, holds, test) in ATTACKS {
            let (module, name) = test.split_once("::").unwrap();
            let source = fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
            assert!(source.contains(&format!("fn {name}(")), "{finding}: {test}");
            let page = holds.split_once(':').filter(|(page, _)| page.starts_with("docs/"));
            assert!(page.is_none_or(|(page, _)| folder.join("../../../..").join(page).exists()), "{finding}: {holds}");
        }
    }
}
