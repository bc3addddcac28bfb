//! The gate on a real store, a real log and real files, without a daemon around it.

mod full;

use std::{collections::BTreeMap, time::Duration};

use prism_api::{
    gate::{ApproveRequest, AskerView, ConfirmRequest, ConfirmationView},
    shown::ShownStep,
};
use prism_core::policy::{
    GrantLimits,
    person::{AskedUnder, Person, PersonQuestion, PersonVerdict},
};
use prism_editor::{ActionPreview, EditorEnvironment, GivenCommand, ProgressSink, Script};
use prism_os::census::OwnerDaemon;
use prism_store::audit::AuditQuery;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

struct World {
    gate: Arc<Gate>,
    home: TempDir,
    project: TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(config::GateConfig::default()).await
    }

    async fn with(settings: config::GateConfig) -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self { gate: open(home.path(), settings).await, home, project }
    }

    /// The same folder, with another daemon.
    async fn again(self) -> Self {
        self.gate.close();
        self.gate.store.close();
        Self { gate: open(self.home.path(), config::GateConfig::default()).await, ..self }
    }

    fn root(&self) -> String {
        self.project.path().canonicalize().unwrap().display().to_string()
    }

    /// Asks for everything.
    async fn ask(&self) -> (Uuid, String) {
        let ask = json!({"agent_id": "a", "scopes": ["*"], "roots": [self.root()], "reason": "r"});
        let told = self.gate.request(serde_json::from_value(ask).unwrap(), AskerView::default()).await.unwrap();
        (told.request_id.parse().unwrap(), told.claim)
    }

    async fn granted(&self) -> GrantLease {
        let (request_id, _) = self.ask().await;
        let given = self.gate.approve(approval(request_id), "test", true).await.unwrap();
        self.gate.hold(Some(given.id), given.token.unwrap().expose().as_bytes()).unwrap()
    }

    async fn narrowed(&self, held: &GrantLease, ask: Value) -> Result<GrantLease, GateError> {
        let given = self.gate.narrow(held, serde_json::from_value(ask).unwrap()).await?;
        self.gate.hold(Some(given.id), given.token.unwrap().expose().as_bytes())
    }

    /// What waits for the person, once there is something.
    async fn shown(&self) -> ConfirmationView {
        let mut events = self.gate.events.listen();
        loop {
            if let Some(view) = self.gate.confirmations(true).unwrap().into_iter().next() {
                return view;
            }
            timeout(LONG, events.recv()).await.expect("something to show").unwrap();
        }
    }

    async fn say(&self, view: &ConfirmationView, allow: bool) -> Result<(), GateError> {
        self.gate.confirm(answer(view, allow), "test").await.map(drop)
    }
}

async fn open(home: &std::path::Path, settings: config::GateConfig) -> Arc<Gate> {
    let surroundings = EditorEnvironment {
        env: BTreeMap::new(),
        owner: OwnerDaemon::this_process(home),
        closed: Vec::new(),
        unsaved: None,
        settings: prism_editor::EditorSettings::default(),
    };
    let opening = GateSetup {
        store: Store::open(&home.join("prism.db")).unwrap(),
        audit: Arc::new(AuditLog::open(&home.join("audit"), Default::default()).unwrap()),
        audit_trouble: None,
        ends: home.join("ends"),
        runtime: BuiltinEditor::new(surroundings),
        metrics: Arc::default(),
        secret: Token::random().unwrap(),
        plugin_secret: Token::random().unwrap(),
        settings: GateSettings { gate: settings, ..GateSettings::default() },
        person: "p".to_owned(),
    };
    Gate::open(opening).await.unwrap()
}

fn answer(view: &ConfirmationView, allow: bool) -> ConfirmRequest {
    ConfirmRequest {
        confirmation_id: view.confirmation_id.clone(),
        digest: view.digest.clone(),
        allow,
        uses: None,
        until_seconds: None,
        reason: None,
    }
}

// A-10: the pictures that the editor makes are those that the API reads.
#[test]
fn what_the_editor_shows_is_read_to_the_letter() {
    let script = Script { path: "/p/s".into(), bytes: 9, digest: "ab".into(), content: None, is_cut: true };
    let (cwd, env) = (String::from("/p"), BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    for shown in [
        ActionPreview::Command {
            command: GivenCommand::Shell("make".into()),
            cwd: cwd.clone(),
            env: env.clone(),
            timeout_ms: 5,
            runs: vec![script],
        },
        ActionPreview::Command {
            command: GivenCommand::List(vec!["ls".into()]),
            cwd,
            env,
            timeout_ms: 5,
            runs: Vec::new(),
        },
        ActionPreview::Diff { path: "/p/a".into(), old_text_digest: Some("ab".into()), unified: "+x".into() },
        ActionPreview::Delete { path: "/p/a".into(), what: "file", bytes: 7 },
        ActionPreview::Rename { from: "/p/a".into(), to: "/p/b".into(), replaces: true },
        ActionPreview::Plain { title: "t".into(), lines: vec!["l".into()] },
    ] {
        let shown = json!(shown);
        assert_eq!(json!(serde_json::from_value::<ShownStep>(shown.clone()).unwrap()), shown);
    }
}

fn approval(request_id: Uuid) -> ApproveRequest {
    ApproveRequest { request_id: request_id.to_string(), ..ApproveRequest::default() }
}

fn members(value: Value) -> Map<String, Value> {
    let Value::Object(members) = value else { panic!("{value}") };
    members
}

async fn act(gate: &Gate, held: &GrantLease, action: &str, args: Value) -> Result<Value, &'static str> {
    gate.act(held, action, members(args), ActionWaiter::patient(ProgressSink::unseen()))
        .await
        .result
        .map_err(|trouble| trouble.code)
}

// A-02: the token is for who asked, once.
#[tokio::test]
async fn a_grant_is_claimed_once_by_who_asked() {
    let world = World::new().await;
    let gate = &world.gate;
    let (request_id, claim) = world.ask().await;
    let pending = gate.claim(request_id, &claim, Duration::ZERO).await.unwrap();
    assert_eq!(pending.status, Stage::Pending);
    assert_eq!(gate.claim(request_id, "guessed", Duration::ZERO).await.unwrap_err().code, "unknown_request");
    let (waits, given) =
        tokio::join!(gate.claim(request_id, &claim, LONG), gate.approve(approval(request_id), "test", false),);
    let (told, given) = (waits.unwrap(), given.unwrap());
    assert!(given.token.is_none(), "who decides has no use for it");
    let held = gate.hold(Some(given.id), told.session_token.as_deref().unwrap().as_bytes());
    assert!(held.is_ok());
    assert!(gate.claim(request_id, &claim, Duration::ZERO).await.unwrap().session_token.is_none());
    assert_eq!(
        gate.hold(Some(Uuid::nil()), told.session_token.as_deref().unwrap().as_bytes()).err().unwrap().status,
        401
    );
}

// A-02: whoever asks while the decision is being written gets the grant too.
#[tokio::test]
async fn a_grant_is_not_missed_by_who_asks_at_that_moment() {
    let world = World::new().await;
    let gate = &world.gate;
    // The moment is short, so it is tried more than once.
    for _ in 0..30 {
        let (request_id, claim) = world.ask().await;
        let asking = async {
            loop {
                let told = gate.claim(request_id, &claim, Duration::ZERO).await.unwrap();
                if told.status != Stage::Pending {
                    break told;
                }
                tokio::task::yield_now().await;
            }
        };
        let approve = approval(request_id);
        let (told, given) = tokio::join!(asking, gate.approve(approve, "test", false));
        assert!(told.session_token.is_some(), "{told:?}");
        gate.revoke(given.unwrap().id, "test").await.unwrap();
    }
}

// A-03
#[tokio::test]
async fn an_approval_only_narrows_and_is_made_once() {
    let world = World::new().await;
    let gate = &world.gate;
    let ask = json!({"agent_id": "a", "scopes": ["read:files"], "roots": [world.root()], "reason": "r"});
    let told = gate.request(serde_json::from_value(ask).unwrap(), AskerView::default()).await.unwrap();
    let request_id: Uuid = told.request_id.parse().unwrap();
    let approve = |scopes: &[&str], roots: &[&str]| ApproveRequest {
        approved_scopes: Some(scopes.iter().map(|scope| (*scope).to_owned()).collect()),
        approved_roots: (!roots.is_empty()).then(|| roots.iter().map(|root| (*root).to_owned()).collect()),
        ..approval(request_id)
    };
    for (wrong, code) in [
        (approve(&["read:files", "write:files"], &[]), "forbidden"),
        (approve(&["*"], &[]), "forbidden"),
        (approve(&["read:files"], &["/"]), "forbidden"),
        (approve(&[], &[]), "bad_arguments"),
    ] {
        assert_eq!(gate.approve(wrong, "test", true).await.unwrap_err().code, code);
    }
    let (one, other) = tokio::join!(
        gate.approve(approve(&["read:files"], &[]), "one", true),
        gate.approve(approve(&["read:files"], &[]), "other", true),
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1, "one decision");
}

// L3: it is told, and it is on record.
#[tokio::test]
async fn whoever_asks_for_folders_that_are_not_there_is_told_and_seen_in_the_log() {
    let world = World::new().await;
    let ask = json!({"agent_id": "a", "scopes": ["*"], "roots": [format!("{}/none", world.root())], "reason": "r"});
    let refused = world.gate.request(serde_json::from_value(ask).unwrap(), AskerView::default()).await.unwrap_err();
    assert!(refused.message.contains("is no folder on this machine"), "{refused:?}");
    let seen = async {
        loop {
            let lines = world.gate.lines(AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap();
            if format!("{lines:?}").contains("refused: bad_arguments") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, seen).await.expect("a line");
}

// A-08
#[tokio::test]
async fn what_is_approved_is_the_folder_itself_and_not_a_link_to_it() {
    let world = World::new().await;
    let link = world.home.path().join("link");
    std::os::unix::fs::symlink(world.root(), &link).unwrap();
    let ask = |root: &str| {
        let ask = json!({"agent_id": "a", "scopes": ["*"], "roots": [root], "reason": "r"});
        world.gate.request(serde_json::from_value(ask).unwrap(), AskerView::default())
    };
    ask(link.to_str().unwrap()).await.unwrap();
    assert_eq!(world.gate.requests(true).unwrap()[0].roots, [world.root()]);
    assert_eq!(ask(world.home.path().to_str().unwrap()).await.unwrap_err().code, "forbidden", "Prism's own folder");
    for wrong in ["relative", "/no/such/folder", "/a/../b", "/etc/passwd"] {
        assert_eq!(ask(wrong).await.unwrap_err().code, "bad_arguments", "{wrong}");
    }
}

#[tokio::test]
async fn a_revoked_grant_ends_with_all_that_came_from_it() {
    let world = World::new().await;
    let parent = world.granted().await;
    let stranger = world.granted().await;
    let child = world.narrowed(&parent, json!({"agent_id": "b", "scopes": ["read:*"]})).await.unwrap();
    let grandchild =
        world.narrowed(&child, json!({"agent_id": "c", "scopes": ["read:files"], "rate_limit": 1})).await.unwrap();
    let wide = world.narrowed(&grandchild, json!({"agent_id": "d", "scopes": ["write:files"]})).await;
    assert_eq!(wide.err().unwrap().code, "forbidden");
    assert_eq!(world.gate.give_up(&child, Uuid::from_u128(parent.id())).await.unwrap_err().code, "forbidden");
    assert_eq!(world.gate.revoke(Uuid::from_u128(parent.id()), "test").await.unwrap().revoked, 3);
    for held in [&parent, &child, &grandchild] {
        assert_eq!(timeout(LONG, held.ended()).await.unwrap(), GrantEnd::Revoked);
        assert_eq!(act(&world.gate, held, "open_file", json!({"path": "x"})).await.unwrap_err(), "revoked");
    }
    assert!(act(&world.gate, &stranger, "get_workspace_info", json!({})).await.is_ok(), "another's goes on");
}

#[tokio::test]
async fn a_grant_ends_at_its_time() {
    let world = World::new().await;
    let (request_id, _) = world.ask().await;
    let approve = ApproveRequest { ttl_seconds: Some(1), ..approval(request_id) };
    let given = world.gate.approve(approve, "test", true).await.unwrap();
    let token = given.token.unwrap();
    let held = world.gate.hold(Some(given.id), token.expose().as_bytes()).unwrap();
    assert_eq!(timeout(LONG, held.ended()).await.unwrap(), GrantEnd::Expired);
    assert!(world.gate.clock.now() >= given.expires_at, "not before it");
    assert_eq!(world.gate.hold(Some(given.id), token.expose().as_bytes()).err().unwrap().code, "expired");
}

// A-10
#[tokio::test]
async fn what_is_shown_is_what_runs_and_only_if_it_is_allowed() {
    let world = World::new().await;
    let held = world.granted().await;
    let mark = world.project.path().join("mark");
    let command = json!({"command": "touch mark"});
    for allow in [false, true] {
        let (result, ()) = tokio::join!(act(&world.gate, &held, "exec_command", command.clone()), async {
            let view = world.shown().await;
            assert_eq!(view.shown["shown"]["command"], "touch mark");
            assert!(!mark.exists(), "not before the person has seen it");
            let mut other = answer(&view, true);
            other.digest = "0".repeat(64);
            assert_eq!(world.gate.confirm(other, "test").await.unwrap_err().code, "changed");
            world.say(&view, allow).await.unwrap();
            assert_eq!(world.say(&view, true).await.unwrap_err().code, "not_waiting");
        });
        assert_eq!(result.is_ok(), allow);
        assert_eq!(mark.exists(), allow);
    }
    // It was allowed once.
    let again = timeout(Duration::from_millis(300), act(&world.gate, &held, "exec_command", command)).await;
    assert!(again.is_err(), "it asks again");
}

#[tokio::test]
async fn what_changed_after_it_was_shown_is_not_done() {
    let world = World::new().await;
    let held = world.granted().await;
    let path = world.project.path().join("f");
    std::fs::write(&path, "old").unwrap();
    let (result, ()) = tokio::join!(act(&world.gate, &held, "delete_file", json!({"path": "f"})), async {
        let view = world.shown().await;
        std::fs::write(&path, "precious").unwrap();
        world.say(&view, true).await.unwrap();
    });
    assert_eq!(result.unwrap_err(), "changed");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "precious");
}

#[tokio::test]
async fn who_leaves_takes_the_question_back() {
    let world = World::new().await;
    let held = Arc::new(world.granted().await);
    let (gate, holder) = (world.gate.clone(), held.clone());
    let asking = tokio::spawn(async move { act(&gate, &holder, "exec_command", json!({"command": "true"})).await });
    let view = world.shown().await;
    let mut events = world.gate.events.listen();
    asking.abort();
    while !world.gate.confirmations(true).unwrap().is_empty() {
        timeout(LONG, events.recv()).await.expect("it is taken back").unwrap();
    }
    assert_eq!(world.say(&view, true).await.unwrap_err().code, "not_waiting");
}

fn question(digest: u8, wait: Duration) -> PersonQuestion {
    let (agent, digest, asked) = ("a".to_owned(), [digest; 32], AskedUnder::default());
    PersonQuestion { kind: "tool", grant: None, agent, digest, shown: json!({}), wait, asked }
}

// A late Allow still counts, once; and only for the very same thing.
#[tokio::test]
async fn an_allow_that_comes_late_counts_once() {
    let world = World::new().await;
    let gate = &world.gate;
    let PersonVerdict::Unanswered(id) = gate.ask_person(question(1, Duration::ZERO)).await.unwrap() else {
        panic!("answered")
    };
    let view = world.shown().await;
    assert_eq!(view.confirmation_id, id.to_string());
    world.say(&view, true).await.unwrap();
    assert!(matches!(gate.ask_person(question(2, Duration::ZERO)).await.unwrap(), PersonVerdict::Unanswered(_)));
    assert_eq!(gate.ask_person(question(1, Duration::ZERO)).await.unwrap(), PersonVerdict::Allowed);
    assert!(matches!(gate.ask_person(question(1, Duration::ZERO)).await.unwrap(), PersonVerdict::Unanswered(_)));
}

#[tokio::test]
async fn an_allow_is_for_so_many_uses_or_for_a_time() {
    let world = World::new().await;
    let gate = &world.gate;
    for (digest, answer_with) in [(1, (Some(3), None)), (2, (None, Some(3600)))] {
        gate.ask_person(question(digest, Duration::ZERO)).await.unwrap();
        let view = world.shown().await;
        let (uses, until_seconds) = answer_with;
        gate.confirm(ConfirmRequest { uses, until_seconds, ..answer(&view, true) }, "test").await.unwrap();
        let mut allowed = 0;
        while allowed < 10 && gate.ask_person(question(digest, Duration::ZERO)).await.unwrap() == PersonVerdict::Allowed
        {
            allowed += 1;
        }
        assert_eq!(allowed, if uses.is_some() { 3 } else { 10 });
        // What was asked once more is taken off the table.
        if let Some(view) = gate.confirmations(true).unwrap().first() {
            world.say(view, false).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_person_is_not_flooded() {
    let settings = config::GateConfig { max_requests_per_agent: 3, max_requests: 5, ..config::GateConfig::default() };
    let world = World::with(settings).await;
    let ask = |agent: &str| {
        let ask = json!({"agent_id": agent, "scopes": ["*"], "roots": [world.root()], "reason": "r"});
        world.gate.request(serde_json::from_value(ask).unwrap(), AskerView::default())
    };
    let mut refused = 0;
    for _ in 0..50 {
        refused += usize::from(ask("a").await.is_err_and(|trouble| trouble.code == "too_many"));
    }
    assert_eq!(refused, 47);
    assert!(ask("b").await.is_ok() && ask("b").await.is_ok(), "others may still ask");
    assert_eq!(ask("c").await.unwrap_err().status, 429, "but not without end");
    assert_eq!(world.gate.requests(true).unwrap().len(), 5);
}

// R-45: what counted at the start counted until the end.
#[tokio::test]
async fn other_settings_count_at_once_and_what_was_given_is_as_it_was_given() {
    let world = World::new().await;
    let held = world.granted().await;
    world.ask().await;
    let ask = async || {
        let ask = json!({"agent_id": "a", "scopes": ["*"], "roots": [world.root()], "reason": "My number is 4711"});
        world.gate.request(serde_json::from_value(ask).unwrap(), AskerView::default()).await
    };
    let limits = GrantLimits { per_second: 1, ..GrantLimits::default() };
    let gate = config::GateConfig { max_requests_per_agent: 2, max_grants: 2, limits, ..config::GateConfig::default() };
    let audit = config::AuditConfig {
        redact: vec!["reason".to_owned()],
        calls: config::AuditCalls::All,
        ..config::AuditConfig::default()
    };
    world.gate.obey(GateSettings::of(&gate, &audit));
    let asked = ask().await.unwrap();
    assert_eq!(ask().await.unwrap_err().code, "too_many", "two of this agent wait");
    let lines = world.gate.lines(AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap();
    assert!(!json!(lines).to_string().contains("4711"), "{lines:?}");
    assert!(Person::audits_all(&*world.gate));
    let request_id = asked.request_id.parse().unwrap();
    world.gate.approve(approval(request_id), "test", true).await.unwrap();
    let rates: Vec<u32> = world.gate.state().live.values().map(|live| live.grant.limits.per_second).collect();
    assert!(rates.len() == 2 && rates.contains(&1) && rates.contains(&GrantLimits::default().per_second), "{rates:?}");
    let (request_id, _) = world.ask().await;
    let third = world.gate.approve(approval(request_id), "test", true).await;
    assert_eq!(third.unwrap_err().code, "too_many", "two are alive");
    drop(held);

    world.gate.obey(GateSettings::of(&config::GateConfig { editors_decide: false, ..gate }, &audit));
    assert!(!world.gate.router().decides());
}

// A-04: everything is on disk.
#[tokio::test]
async fn another_daemon_goes_on_with_requests_grants_and_tokens() {
    let world = World::new().await;
    let (open_request, claim) = world.ask().await;
    let (request_id, _) = world.ask().await;
    let given = world.gate.approve(approval(request_id), "test", true).await.unwrap();
    let token = given.token.unwrap();
    let revoked = world.granted().await;
    world.gate.revoke(Uuid::from_u128(revoked.id()), "test").await.unwrap();
    drop(revoked);
    let world = world.again().await;
    assert!(world.gate.hold(Some(given.id), token.expose().as_bytes()).is_ok());
    assert_eq!(world.gate.grants(true).unwrap().len(), 1);
    assert_eq!(world.gate.requests(true).unwrap()[0].request_id, open_request.to_string());
    world.gate.approve(approval(open_request), "test", false).await.unwrap();
    let told = world.gate.claim(open_request, &claim, Duration::ZERO).await.unwrap();
    assert!(told.session_token.is_some(), "{told:?}");
}

// A-11: each action has its line before it is done, and another after it; secrets and bodies are in neither.
#[tokio::test]
async fn what_was_done_is_on_record() {
    let world = World::new().await;
    let held = world.granted().await;
    let write = json!({"path": "f", "content": "api_key = sk-abcdefghijklmnopqrstuvwxyz123456"});
    act(&world.gate, &held, "create_file", write).await.unwrap();
    act(&world.gate, &held, "open_file", json!({"path": "../../etc/passwd"})).await.unwrap_err();
    act(&world.gate, &held, "fly", json!({})).await.unwrap_err();
    world.gate.close();
    let folder = world.home.path().join("audit");
    prism_store::audit::verify(&folder, |_, _| ()).unwrap();
    let lines = prism_store::audit::tail(&folder, 100).unwrap();
    let read: Vec<Value> = lines.iter().rev().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = read.iter().map(|line| format!("{} {}", line["action"], line["result"])).collect();
    assert_eq!(
        told,
        [
            r#""request_access" "requested""#,
            r#""approve" "allowed""#,
            r#""create_file" "allowed""#,
            r#""create_file" "ok""#,
            r#""open_file" "refused: outside_root""#,
            r#""fly" "refused: unknown_action""#,
        ]
    );
    assert_eq!(read[3]["of"], read[2]["seq"]);
    assert!(read.iter().all(|line| line["request_id"].is_string()), "{read:?}");
    assert!(!lines.concat().contains("sk-abc"), "{lines:?}");
}

// A-09
#[tokio::test]
async fn a_holder_who_keeps_trying_what_it_may_not_is_shown_the_door() {
    let world = World::new().await;
    let held = world.granted().await;
    let small = world.narrowed(&held, json!({"agent_id": "b", "scopes": ["read:files"]})).await.unwrap();
    let mut tries = 0;
    loop {
        tries += 1;
        let outcome = world
            .gate
            .act(&small, "delete_file", members(json!({"path": "x"})), ActionWaiter::patient(ProgressSink::unseen()))
            .await;
        assert_eq!(outcome.result.unwrap_err().code, "forbidden");
        if outcome.trespassed {
            break;
        }
    }
    assert_eq!(tries, 20);
}
