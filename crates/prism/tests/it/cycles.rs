//! The daemon is killed under load again and again, and started again: by its service, or by the shim of a client. Its
//! 32 clients go on with the sessions they have, what was not in flight is neither lost nor done twice, and nothing
//! grows (D-09, B-25).

mod callers;
pub(crate) mod life;
mod measure;
mod stdio;

use std::{fs, net::TcpListener, panic::resume_unwind, sync::Arc};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::{
    callers::{Caller, Kind},
    life::{Life, below},
    measure::{Measure, Trend},
};
use crate::support::{
    Client, Daemon, Home, Launch, NEWEST, Place, demo, process,
    shim::{Shim, registered},
    until,
};

/// How often the daemon is killed. `cargo xtask test survival` says 50.
const CYCLES: usize = 5;
/// The sessions: on one child that they share, at the hub, on a child of their own each, and through `prism stdio`.
const SHARING: usize = 14;
const AT_HUB: usize = 8;
const ALONE: usize = 4;
const SHIMS: usize = 6;
const SESSIONS: usize = SHARING + AT_HUB + ALONE + SHIMS;
/// The servers and what they start: `d` is shared by all who share; `e` is only behind the hub, and has a helper.
const SHARED_CHILDREN: usize = 3;
/// At least so many answers, and up to as many more, come between a start and the next kill.
const ANSWERS: u64 = 64;
/// In every fifth cycle the daemon that is just starting is killed as well; in every third only a shim starts it.
const KILLED_AT_START: usize = 5;
const STARTED_BY_SHIM: usize = 3;

// D-07, D-09
#[tokio::test]
async fn sessions_go_on_through_kills_under_load_and_nothing_grows() {
    let mut stage = Stage::open().await;
    let sessions = stage.stored();
    let mut trend = Trend::default();
    for cycle in 1..=cycles() {
        stage.work().await;
        stage.die(cycle).await;
        stage.rest().await;
        trend.add(stage.measure().await);
        assert_eq!(stage.stored(), sessions, "the sessions are the same: nobody had to begin anew");
    }
    stage.finish().await;
    let (answered, lost) = stage.life.counts();
    trend.report(&format!("{} kills, {SESSIONS} sessions, {answered} answers, {lost} lost in flight", trend.len()));
    assert!(lost > 0, "the daemon was killed while calls were in flight");
    trend.check();
}

fn cycles() -> usize {
    // Read by the test alone, never by the daemon.
    std::env::var("PRISM_CYCLES").map_or(CYCLES, |text| text.parse().expect("PRISM_CYCLES is a number"))
}

/// A home, its daemon, whoever it is by now, and its clients.
struct Stage {
    home: Home,
    life: Arc<Life>,
    clients: JoinSet<()>,
    shims: Vec<u32>,
    record: String,
    /// What the service has started. Dropping one ends what it left behind, which is the next daemon's to do.
    started: Vec<Daemon>,
}

impl Stage {
    async fn open() -> Self {
        let home = Home::new();
        let (port, record) = (free_port(), home.file("record"));
        let server = demo(&["--record", &record]);
        // One starts something that does not end with it, nor with its stdin: that is left to the next daemon to end.
        let careless = format!("setsid sleep 600 </dev/null >/dev/null 2>&1 & exec {}", server.join(" "));
        let careless = ["sh", "-c", &careless].map(str::to_owned).to_vec();
        let entry = |name, command| format!("[destination.{name}]\ncommand = {command:?}\nmax_sessions = 100\n");
        let config = format!("port = {port}\n{}{}", entry("d", server), entry("e", careless));
        fs::write(home.file("prism.toml"), config).expect("the home can be written to");
        let life = Arc::new(Life::new(SESSIONS));
        let mut stage = Self { home, life, clients: JoinSet::new(), shims: Vec::new(), record, started: Vec::new() };
        stage.start_by_service();
        stage.is_back(0).await;
        stage.admit(port).await;
        stage
    }

    /// All sessions are opened before the first kill: whether one that is just being opened survives is another matter.
    async fn admit(&mut self, port: u16) {
        let token = fs::read_to_string(self.home.file("http-mcp-token")).expect("the daemon has made its token");
        let client = |path| Client::new(Place::Tcp(port), path, Some(token.trim().to_owned()));
        let kinds = [(Kind::Sharing, SHARING), (Kind::Hub, AT_HUB), (Kind::Alone, ALONE)];
        let kinds = kinds.into_iter().flat_map(|(kind, count)| (0..count).map(move |_| kind));
        for (number, kind) in kinds.enumerate() {
            let (path, capabilities) = match kind {
                Kind::Sharing => ("/d/mcp", json!({})),
                Kind::Hub => ("/mcp", json!({})),
                Kind::Alone => ("/d/mcp", json!({"sampling": {}})),
            };
            let client = client(path).initialize_as(NEWEST, capabilities).await;
            let caller = Arc::new(Caller::new(number, kind, client, self.life.clone()));
            self.clients.spawn(caller.clone().listen());
            self.clients.spawn(caller.work());
        }
        for number in SESSIONS - SHIMS..SESSIONS {
            let (arguments, prefix): (&[&str], _) = if number % 2 == 0 { (&["d"], "") } else { (&[], "e__") };
            let (shim, stdout) = Shim::spawn(&self.home, arguments);
            self.shims.push(shim.pid());
            let client = stdio::Caller::open(number, prefix, shim, stdout, self.life.clone()).await;
            self.clients.spawn(client.work());
        }
    }

    /// Lets the clients work for a while, all of them.
    async fn work(&mut self) {
        self.life.go();
        self.all_go_on("everybody works").await;
        let (life, until) = (self.life.clone(), self.life.counts().0 + ANSWERS + below(ANSWERS));
        self.until("more answers", || life.counts().0 >= until).await;
    }

    /// `kill -9` in the middle of it, and a start.
    async fn die(&mut self, cycle: usize) {
        let mut dead = registered(&self.home).expect("a daemon runs");
        self.kill(dead).await;
        if cycle.is_multiple_of(KILLED_AT_START) {
            self.start_by_service();
            let (home, before) = (self.home.clone(), dead);
            // A shim may be faster than the service; what counts is who got the lock.
            self.until("the next daemon starts", || starting(&home).is_some_and(|pid| pid != before)).await;
            dead = starting(&self.home).expect("it was there a moment ago");
            self.kill(dead).await;
        }
        if !cycle.is_multiple_of(STARTED_BY_SHIM) {
            self.start_by_service();
        }
        self.is_back(dead).await;
        self.all_go_on("everybody goes on").await;
    }

    async fn kill(&mut self, pid: u32) {
        self.life.killing();
        process::signal(pid, Signal::KILL);
        match self.started.iter_mut().find(|daemon| daemon.pid() == pid) {
            Some(daemon) => drop(daemon.ended().await),
            // All of it: a process whose first thread has ended may still have its sockets.
            None => until("the daemon is gone", async || !process::is_there(pid)).await,
        }
    }

    /// What systemd does when the daemon has died. If a shim was faster, the lock says so, and this one ends.
    fn start_by_service(&mut self) {
        self.started.push(Launch::prism(vec!["serve".to_owned()]).home(&self.home).begin());
    }

    async fn is_back(&mut self, before: u32) {
        let home = self.home.clone();
        self.until("a daemon listens", || registered(&home).is_some_and(|pid| pid != before)).await;
        self.life.back();
    }

    async fn all_go_on(&mut self, what: &str) {
        let (life, before) = (self.life.clone(), self.life.answers());
        self.until(what, || life.answers().iter().zip(&before).all(|(now, before)| now > before)).await;
    }

    /// Lets the clients finish what they do, and waits with the next.
    async fn rest(&mut self) {
        let life = self.life.clone();
        life.rest();
        self.until("all calls are done", || life.resting() == SESSIONS).await;
    }

    /// What there is while nothing happens. What a dead daemon has left must be gone by then.
    async fn measure(&mut self) -> Measure {
        let home = self.home.clone();
        let pid = registered(&home).expect("a daemon runs");
        self.until("no orphans are left, and each child is there", || {
            let marked = process::marked(home.path());
            marked.len() == SHARED_CHILDREN + ALONE && marked.iter().all(|marked| marked.owner == pid)
        })
        .await;
        // A daemon that found another one in its place may take a moment to end.
        self.until("nobody is left but one daemon and the shims", || {
            let marked = process::marked(home.path());
            let is_child = |pid: &u32| marked.iter().any(|marked| marked.pid == *pid);
            process::of_home(home.path()).into_iter().filter(|pid| !is_child(pid)).count() == 1 + SHIMS
        })
        .await;
        Measure::take(&home, pid, &self.shims)
    }

    /// Ends the clients. Nothing that they asked for was done twice.
    async fn finish(&mut self) {
        self.clients.shutdown().await;
        let record = fs::read_to_string(&self.record).expect("the servers write down what they are asked");
        let mut asked: Vec<String> = record.lines().filter_map(mark_of).collect();
        let all = asked.len();
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked.len(), all, "a call was made twice");
        let (answered, lost) = self.life.counts();
        let all = all as u64;
        assert!(all >= answered && all <= answered + lost, "{all} calls made, {answered} answered, {lost} lost");
    }

    /// The ids of all sessions that are written down.
    fn stored(&self) -> Vec<u128> {
        let store = prism_store::Store::open(&self.home.path().join("prism.db")).unwrap();
        let mut ids: Vec<u128> = store.sessions().unwrap().iter().map(|session| session.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Waits, and fails at once if a client has found something wrong.
    async fn until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        until(what, async || {
            if let Some(Err(ended)) = self.clients.try_join_next() {
                resume_unwind(ended.into_panic());
            }
            condition()
        })
        .await;
    }
}

/// The daemon that has the lock of a home, whether it listens already or not.
pub(crate) fn starting(home: &Home) -> Option<u32> {
    let text = fs::read(home.path().join("daemon.lock")).ok()?;
    let holder: Value = serde_json::from_slice(&text).ok()?;
    u32::try_from(holder["pid"].as_u64()?).ok().filter(|pid| process::is_alive(*pid))
}

/// The mark of the call that a server was asked for.
fn mark_of(line: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = message["params"]["arguments"]["text"].as_str();
    text.filter(|_| message["method"] == "tools/call").map(str::to_owned)
}

/// A port that the daemon can have after each kill: not one of those that the system gives to whoever connects.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = 10_240 + u16::try_from(below(20_000)).expect("a small number");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
