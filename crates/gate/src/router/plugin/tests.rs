//! Commands on a connection whose other end says nothing, or the wrong thing.

use prism_editor::protocol::ResultStatus;
use serde_json::json;

use super::*;

fn plugin(verbs: &[&str]) -> (Arc<Plugin>, mpsc::Receiver<ToPlugin>) {
    let register =
        json!({"protocol": 1, "instance_id": "i", "kind": "testedit", "roots": ["/w"], "capabilities": verbs});
    Plugin::new("edit", &serde_json::from_value(register).unwrap(), vec!["/w".into()], (1, 1), Time(0))
}

//
#[tokio::test]
async fn a_command_that_is_never_answered_is_timed_out_and_taken_back() {
    let (plugin, mut outgoing) = plugin(&["find_in_file"]);
    let (holder, within) = (GrantHolder { id: 7, ..GrantHolder::default() }, Duration::from_millis(500));
    let unseen = ProgressSink::unseen();
    let call = || plugin.call("find_in_file", Map::new(), (&holder, &[]), within, &unseen);
    let result = call().await;
    assert_eq!(result.unwrap_err().code, Code::TimedOut);
    let Some(ToPlugin::Cmd(cmd)) = outgoing.recv().await else { panic!("it was asked") };
    assert_eq!(cmd.deadline_ms, 500);
    let Some(ToPlugin::Cancel(cancel)) = outgoing.recv().await else { panic!("it is told that nobody waits") };
    assert_eq!(cancel.id, cmd.id);
    // An answer that comes now is nobody's.
    let answer = |id, data| ResultMessage { id, status: ResultStatus::Ok, data: Some(data), error: None };
    assert!(!plugin.answered(answer(cmd.id, json!({"n": 1}))));
    let answering = async {
        let Some(ToPlugin::Cmd(next)) = outgoing.recv().await else { panic!("it is asked again") };
        assert_ne!(next.id, cmd.id);
        assert!(plugin.answered(answer(next.id, json!({"n": 2}))));
    };
    assert_eq!(tokio::join!(call(), answering).0.unwrap(), json!({"n": 2}));
}

//
#[test]
fn what_runs_programs_is_not_its_to_do_whatever_it_registers() {
    let all: Vec<&str> = VerbSpec::all().map(|action| action.verb).collect();
    let (plugin, _) = plugin(&all);
    let left_out: Vec<&str> = all.into_iter().filter(|verb| !plugin.can(verb)).collect();
    assert_eq!(
        left_out,
        [
            "build_project",
            "run_tests",
            "exec_command",
            "open_terminal",
            "get_output",
            "send_input",
            "git_status",
            "git_add",
            "git_commit",
            "git_diff",
            "git_branch"
        ]
    );
    assert!(plugin.about.capabilities.iter().all(|verb| plugin.can(verb)));
}
