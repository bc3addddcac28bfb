//! The daemon is killed again and again while agents send each other signals, drain and reply: what was acknowledged is
//! drained exactly once (M-12).

mod agent;

use std::{
    collections::HashMap,
    fs,
    panic::resume_unwind,
    sync::{Arc, Mutex},
};

use prism_store::mesh::ObligationFilter;
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use self::agent::{Door, Mode, Player};
use crate::{
    cycles::{
        free_port,
        life::{Life, below},
        starting,
    },
    support::{Client, Daemon, Home, Launch, Place, process, shim::registered, until},
};

/// How often the daemon is killed. `cargo xtask test mesh-survival` says 100.
const KILLS: usize = 5;
/// The agents: each door with a cursor and without.
const AGENTS: usize = 12;
/// At least so many answers, and up to as many more, come between a start and the next kill. Few enough that no agent's
/// history is so long that it is forgotten: its obligations are counted in the end.
const ANSWERS: u64 = 16;
/// In every fifth cycle the daemon that is just starting is killed as well.
const KILLED_AT_START: usize = 5;

/// All that was acknowledged, and what came of it.
#[derive(Default)]
struct Ledger(Mutex<Books>);

#[derive(Default)]
struct Books {
    /// By id: the agent that each acknowledged signal is for, and whether it asks for a reply.
    sent: HashMap<String, (usize, bool)>,
    replies: u64,
    /// Times that each was drained.
    drained: HashMap<String, u64>,
    redelivered: u64,
    /// Answers that died with a daemon and were asked for again.
    repeated: u64,
}

// M-12
#[tokio::test]
async fn what_was_acknowledged_is_drained_exactly_once_over_kills() {
    let mut stage = Stage::open().await;
    let kills = kills();
    for kill in 1..=kills {
        stage.work().await;
        stage.die(kill).await;
    }
    stage.finish(kills).await;
}

fn kills() -> usize {
    // Read by the test alone, never by the daemon.
    std::env::var("PRISM_KILLS").map_or(KILLS, |text| text.parse().expect("PRISM_KILLS is a number"))
}

struct Stage {
    home: Home,
    life: Arc<Life>,
    ledger: Arc<Ledger>,
    players: JoinSet<()>,
    started: Vec<Daemon>,
}

impl Stage {
    async fn open() -> Self {
        let (home, port) = (Home::new(), free_port());
        fs::write(home.file("prism.toml"), format!("port = {port}\n[mesh]\ndesktop = false\n"))
            .expect("the home can be written to");
        let (life, ledger) = (Arc::new(Life::new(AGENTS)), Arc::<Ledger>::default());
        let mut stage = Self { home, life, ledger, players: JoinSet::new(), started: Vec::new() };
        stage.start();
        stage.is_back(0).await;
        let token = fs::read_to_string(stage.home.file("http-mcp-token")).expect("the daemon has made its token");
        let client = Client::new(Place::Tcp(port), "/mcp", Some(token.trim().to_owned()));
        for number in 0..AGENTS {
            let door = [Door::Hub, Door::Own, Door::Modern, Door::Script][number % 4];
            let mode = if number < 8 { Mode::Cursor } else { Mode::Plain };
            let player = Player::start(number, door, mode, &client, stage.life.clone(), stage.ledger.clone()).await;
            if door == Door::Hub {
                stage.players.spawn(player.ears());
            }
            stage.players.spawn(player.play());
        }
        stage
    }

    async fn work(&mut self) {
        self.life.go();
        let (life, until) = (self.life.clone(), self.life.counts().0 + ANSWERS + below(ANSWERS));
        self.until("more answers", || life.counts().0 >= until).await;
    }

    async fn die(&mut self, kill: usize) {
        let mut dead = registered(&self.home).expect("a daemon runs");
        self.kill(dead).await;
        self.start();
        if kill.is_multiple_of(KILLED_AT_START) {
            let (home, before) = (self.home.clone(), dead);
            self.until("the next daemon starts", || starting(&home).is_some_and(|pid| pid != before)).await;
            dead = starting(&self.home).expect("it was there a moment ago");
            self.kill(dead).await;
            self.start();
        }
        self.is_back(dead).await;
        // A kill counts only if everybody got an answer from the daemon after it.
        let (life, before) = (self.life.clone(), self.life.answers());
        self.until("everybody goes on", || life.answers().iter().zip(&before).all(|(now, before)| now > before)).await;
    }

    async fn kill(&mut self, pid: u32) {
        self.life.killing();
        process::signal(pid, Signal::KILL);
        let daemon = self.started.iter_mut().find(|daemon| daemon.pid() == pid).expect("we have started it");
        daemon.ended().await;
    }

    fn start(&mut self) {
        self.started.push(Launch::prism(vec!["serve".to_owned()]).home(&self.home).begin());
    }

    async fn is_back(&mut self, before: u32) {
        let home = self.home.clone();
        self.until("a daemon listens", || registered(&home).is_some_and(|pid| pid != before)).await;
        self.life.back();
    }

    /// Has everybody drain and reply until nothing is left, and looks at the books.
    async fn finish(&mut self, kills: usize) {
        self.life.rest();
        let (life, ledger) = (self.life.clone(), self.ledger.clone());
        let before = life.answers();
        // Each has begun anew since then, so nobody sends any more.
        let rests = move || life.answers().iter().zip(&before).all(|(now, before)| *now > before + 1);
        self.until("all is drained", || rests() && ledger.is_settled()).await;
        self.players.shutdown().await;
        let books = self.ledger.0.lock().unwrap();
        let asked = books.sent.values().filter(|(_, asks)| *asks).count();
        let mut twice = 0;
        for (id, (agent, _)) in &books.sent {
            let times = books.drained.get(id).copied().unwrap_or_default();
            assert!(times > 0, "{id} for agent {agent} was lost");
            assert!(times == 1 || Mode::of(*agent) == Mode::Plain, "{id} was drained {times} times by agent {agent}");
            twice += times - 1;
        }
        assert_eq!(books.drained.len(), books.sent.len(), "nothing was drained that nobody has sent");
        let store = prism_store::Store::open(&self.home.path().join("prism.db")).unwrap();
        let open: Vec<String> = store.open_obligations().unwrap().iter().map(|owed| format!("{owed:?}")).collect();
        assert!(open.is_empty(), "every question is answered and every word was heard: {open:#?}");
        let filter =
            ObligationFilter { state: Some("done".to_owned()), limit: u32::MAX, ..ObligationFilter::default() };
        let done = store.obligations(&filter).unwrap().len();
        assert_eq!(done, books.sent.len(), "each signal made one obligation, and each is done");
        let Books { sent, replies, redelivered, repeated, .. } = &*books;
        println!(
            "{kills} kills: {} signals acknowledged ({replies} replies to {asked} questions and tasks), {repeated} calls \
             repeated, {redelivered} given again, {twice} seen twice by clients without a cursor, 0 lost, {done} \
             obligations done",
            sent.len(),
        );
        assert_eq!(*replies as usize, asked);
        assert!(*repeated > 0, "the daemon was killed while calls were in flight");
    }

    /// Waits, and fails at once if an agent has found something wrong.
    async fn until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        until(what, async || {
            if let Some(Err(ended)) = self.players.try_join_next() {
                resume_unwind(ended.into_panic());
            }
            condition()
        })
        .await;
    }
}

impl Ledger {
    fn sent(&self, id: &str, to: usize, asks: bool) {
        self.0.lock().unwrap().sent.insert(id.to_owned(), (to, asks));
    }

    fn replied(&self) {
        self.0.lock().unwrap().replies += 1;
    }

    fn repeated(&self) {
        self.0.lock().unwrap().repeated += 1;
    }

    /// Notes that an agent was given a signal. Returns how often it had it before.
    fn drained(&self, id: &str, redelivered: bool) -> u64 {
        let mut books = self.0.lock().unwrap();
        books.redelivered += u64::from(redelivered);
        let times = books.drained.entry(id.to_owned()).or_default();
        *times += 1;
        *times - 1
    }

    /// Whether all that was sent was drained, and all that was asked replied to.
    fn is_settled(&self) -> bool {
        let books = self.0.lock().unwrap();
        let asked = books.sent.values().filter(|(_, asks)| *asks).count();
        books.sent.keys().all(|id| books.drained.contains_key(id)) && books.replies as usize == asked
    }
}

/// What is said to an agent of that number.
fn name(number: usize) -> String {
    format!("agent-{number}")
}

fn question(to: usize, id: &str, asks: bool) -> serde_json::Value {
    let kind = match (asks, below(2)) {
        (true, 0) => "Question",
        (true, _) => "TaskAssigned",
        (false, 0) => "StatusUpdate",
        (false, _) => "Acknowledgment",
    };
    json!({"to": name(to), "type": kind, "body": format!("for {to}: {id}"), "signal_id": id})
}
