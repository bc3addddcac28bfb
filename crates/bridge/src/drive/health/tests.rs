//! The last use counts, and what is said of it.

use super::*;

fn lines(text: &str) -> Vec<StderrLine> {
    text.lines().map(|line| StderrLine { text: line.to_owned() }).collect()
}

fn state(sightings: &HealthObservations, links: &[LinkState]) -> Option<ServerState> {
    sightings.now(links).map(|(state, _)| state)
}

// a connection that is up says nothing.
#[test]
fn the_last_use_of_an_upstream_counts_whatever_its_links_do() {
    let (sightings, up) = (HealthObservations::default(), [LinkState::Up]);
    let refused = RemoteFailure::Unreachable { why: "connection refused".to_owned() };
    assert_eq!(state(&sightings, &up), None);
    sightings.failed(&refused, "http://x/mcp");
    assert_eq!(
        sightings.now(&up),
        Some((ServerState::Refusing, "nobody answers at http://x/mcp: connection refused".into()))
    );
    sightings.failed(&RemoteFailure::Unauthorized { status: 401 }, "http://x/mcp");
    assert_eq!(state(&sightings, &up), Some(ServerState::Unauthorized));
    sightings.failed(&RemoteFailure::Status { status: 503 }, "http://x/mcp");
    assert_eq!(state(&sightings, &[LinkState::Failed]), Some(ServerState::Refusing));
    sightings.answered();
    assert_eq!(state(&sightings, &up), None);
    // What is said to one request says nothing of the server, but that it is there.
    sightings.failed(&refused, "http://x/mcp");
    sightings.failed(&RemoteFailure::Status { status: 404 }, "http://x/mcp");
    assert_eq!(state(&sightings, &up), None);
}

#[test]
fn what_was_given_up_says_what_is_known_best() {
    let sightings = HealthObservations::default();
    sightings.failed(&RemoteFailure::Unauthorized { status: 401 }, "http://x/mcp");
    sightings.given_up(Some(&CallFault::Unavailable { why: "it refused".to_owned() }));
    assert_eq!(state(&sightings, &[LinkState::Failed]), Some(ServerState::Unauthorized));
    let sightings = HealthObservations::default();
    sightings.given_up(Some(&CallFault::Unavailable { why: "it did not answer `initialize`".to_owned() }));
    let told = (ServerState::Failing, "it did not answer `initialize`".to_owned());
    assert_eq!(sightings.now(&[LinkState::Failed]), Some(told));
}

//
#[test]
fn a_start_that_failed_counts_once_nobody_tries_any_more_and_until_one_goes_well() {
    let sightings = HealthObservations::default();
    sightings.start_failed("x exited".to_owned());
    assert_eq!(state(&sightings, &[LinkState::Restarting]), None, "it is being started");
    assert_eq!(sightings.so_far().as_deref(), Some("x exited"));
    sightings.given_up(None);
    assert_eq!(state(&sightings, &[LinkState::Down]), Some(ServerState::Failing));
    assert_eq!(
        state(&sightings, &[LinkState::Starting]),
        Some(ServerState::Failing),
        "the next one fails as well, so far"
    );
    assert_eq!(state(&sightings, &[LinkState::Starting, LinkState::Up]), None, "another link's is up");
    sightings.answered();
    assert_eq!(state(&sightings, &[]), Some(ServerState::Failing), "that was another's answer");
    sightings.greeted();
    assert_eq!(state(&sightings, &[]), None);
}

#[test]
fn slow_is_one_that_is_up_until_it_answers() {
    let sightings = HealthObservations::default();
    sightings.fault(&CallFault::Timeout { after: Duration::from_secs(3), setting: "request_timeout" });
    let told = (ServerState::Slow, "it did not answer within `request_timeout` (3s)".to_owned());
    assert_eq!(sightings.now(&[LinkState::Up]), Some(told));
    assert_eq!(state(&sightings, &[LinkState::Asleep]), None);
    sightings.fault(&CallFault::SessionEnded);
    assert_eq!(state(&sightings, &[LinkState::Up]), Some(ServerState::Slow));
    sightings.answered();
    assert_eq!(state(&sightings, &[LinkState::Up]), None);
}

// the reason stands where the failure is told.
#[test]
fn an_exit_is_told_with_its_status_its_tries_and_its_last_words() {
    let begun = Instant::now();
    let mut tries = FailedStarts::begin(begun);
    tries.add();
    let now = begun + Duration::from_millis(2600);
    assert_eq!(
        tries.told("crash", "exit status: 1", None, now),
        "crash exited at its start (status 1), without a word on stderr"
    );
    (0..3).for_each(|_| tries.add());
    let heard = heard(None, &lines("cannot find module foo\n"));
    assert_eq!(
        tries.told("crash", "exit status: 1", heard.as_deref(), now),
        "crash keeps exiting (status 1, 4 tries in 3 s). Its last output: `cannot find module foo`. More: prism logs"
    );
}

#[test]
fn the_word_that_matters_is_told_though_a_stack_trace_follows() {
    let trace = "Error: Cannot find module 'foo'\n    at one\n    at two\n    at three\n\nNode.js v22.1.0\n";
    let told = heard(None, &lines(trace)).unwrap();
    assert_eq!(told, "its last output: `Error: Cannot find module 'foo' / at three / Node.js v22.1.0`");
    assert_eq!(heard(None, &lines("a\nb\nc\nd\n")).unwrap(), "its last output: `b / c / d`");
    assert_eq!(heard(Some("hello\x1b[2J"), &[]).unwrap(), "it printed text that is not MCP: `hello[2J`");
    assert_eq!(heard(None, &lines("\n \n")), None);
    let long = heard(None, &lines(&"ä".repeat(300))).unwrap();
    assert!(long.ends_with("ä…`") && long.chars().count() < 230, "{long}");
}
