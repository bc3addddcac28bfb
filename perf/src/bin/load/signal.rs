//! `load signal`: how long a signal takes from `prism_signal_send` to the bell on its recipient's stream, while many agents
//! send each other signals at a steady rate, whatever the daemon does. Each drains when its bell rings.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    task::JoinSet,
    time::{sleep, sleep_until},
};

use super::{
    agents::{BODY, Disk, quantile, written},
    client::{Client, Target, count},
};

/// What a bell on a stream of the legacy era is known by.
const BELL: &str = "notifications/resources/updated";
/// Bells of one agent that wait for its drain. One waits at a time, and one more may have come meanwhile.
const MAX_BELLS: usize = 64;
/// How long the last signals may take to be drained.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time that does not count.
const WARM: Duration = Duration::from_secs(3);

pub(super) struct Plan<'a> {
    pub(super) agents: usize,
    /// Signals a second, of all agents together.
    pub(super) rate: f64,
    pub(super) secs: f64,
    pub(super) pid: u32,
    pub(super) dir: &'a Path,
}

/// What became of one signal.
#[derive(Clone, Copy, Debug)]
struct Fate {
    begun: Instant,
    returned: Option<Instant>,
    /// It was read.
    drained: u32,
    /// When the bell came that was for this one. Those that it was for as well have none.
    rang: Option<Instant>,
}

struct Agent {
    name: String,
    session: String,
    sender: AsyncMutex<Client>,
}

type Fates = Arc<Mutex<Vec<Fate>>>;

fn lock(fates: &Mutex<Vec<Fate>>) -> MutexGuard<'_, Vec<Fate>> {
    fates.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) async fn signal(target: Target, plan: Plan<'_>) -> anyhow::Result<()> {
    let fates: Fates = Arc::default();
    let mut agents = Vec::with_capacity(plan.agents);
    for n in 0..plan.agents {
        agents.push(Arc::new(enter(&target, format!("agent-{n}"), fates.clone()).await?));
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut sends = JoinSet::new();
    let cold = written(&target, plan.pid).await?;
    let start = Instant::now();
    let (mut due, mut before, mut first, mut late) = (start, None, 0, Duration::ZERO);
    while start.elapsed().as_secs_f64() < WARM.as_secs_f64() + plan.secs {
        sleep_until(due.into()).await;
        late = late.max(due.elapsed());
        if before.is_none() && start.elapsed() >= WARM {
            let warm = written(&target, plan.pid).await?;
            before = Some((warm, Disk::measure(plan.dir, warm.bytes_per_commit(&cold))));
            (first, late, due) = (lock(&fates).len(), Duration::ZERO, Instant::now());
        }
        let from = dice.below(agents.len());
        let to = (from + 1 + dice.below(agents.len() - 1)) % agents.len();
        let (sender, to) = (agents[from].clone(), agents[to].name.clone());
        let fates = fates.clone();
        sends.spawn(async move { send(&sender, &to, &fates).await });
        // As people and programs send: each without regard to the others.
        due += Duration::from_secs_f64(-(1.0 - dice.part()).ln() / plan.rate);
    }
    let took = start.elapsed().saturating_sub(WARM);
    let faults: Vec<anyhow::Error> = sends.join_all().await.into_iter().filter_map(Result::err).collect();
    let last = Instant::now();
    while lock(&fates).iter().any(|fate| fate.drained == 0) && last.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
    }
    let (before, disk) = before.context("it ended before it was warm")?;
    let after = written(&target, plan.pid).await?;
    let fates = lock(&fates)[first..].to_vec();
    let mut figures = figures(&fates, took.as_secs_f64());
    let commits = after.commits - before.commits;
    figures["commits_per_signal"] = json!((commits as f64 / fates.len() as f64 * 100.0).round() / 100.0);
    figures["bytes_per_commit"] = after.bytes_per_commit(&before).into();
    figures["disk"] = disk.end()?;
    figures["latest_send_us"] = json!(late.as_micros() as u64);
    figures["fault"] = json!(faults.first().map(|fault| format!("{fault:#}")));
    println!("{figures}");
    let lost = fates.iter().filter(|fate| fate.drained == 0).count();
    let doubled = fates.iter().filter(|fate| fate.drained > 1).count();
    if faults.len() + lost + doubled > 0 {
        bail!("{} signals failed, {lost} were lost, {doubled} came twice", faults.len())
    }
    Ok(())
}

/// Registers an agent that listens, and drains whenever its bell rings.
async fn enter(target: &Target, name: String, fates: Fates) -> anyhow::Result<Agent> {
    let (mut sender, mut listener, drainer) = (target.client(), target.client(), target.client());
    let session = sender.open().await?.context("no session id")?;
    let stream = listener.listen(Some(&session)).await?;
    sender.tool(Some(&session), "prism_start", json!({"agent": name, "surface": "load"})).await?;
    let (ring, bells) = mpsc::channel(MAX_BELLS);
    tokio::spawn(hear(stream, listener, ring));
    tokio::spawn(drain(drainer, session.clone(), bells, fates));
    Ok(Agent { name, session, sender: AsyncMutex::new(sender) })
}

async fn hear(mut stream: Incoming, _connection: Client, ring: mpsc::Sender<Instant>) {
    while let Some(Ok(frame)) = stream.frame().await {
        let at = Instant::now();
        for _ in 0..frame.data_ref().map_or(0, |data| count(data, BELL)) {
            let _ = ring.try_send(at);
        }
    }
}

/// Takes what waits after every bell. The first of it is what the bell was for: a cycle begins with the first signal that
/// nobody was told of.
async fn drain(mut client: Client, session: String, mut bells: mpsc::Receiver<Instant>, fates: Fates) {
    while let Some(at) = bells.recv().await {
        let mut rang = Some(at);
        loop {
            let Ok(page) = client.tool(Some(&session), "prism_signals_pending", json!({"limit": 200})).await else {
                // What was not read is found missing at the end.
                return;
            };
            let mut fates = lock(&fates);
            for signal in page["signals"].as_array().into_iter().flatten() {
                let number = signal["body"].as_str().and_then(|body| body.split(' ').next()?.parse::<usize>().ok());
                if let Some(fate) = number.and_then(|number| fates.get_mut(number)) {
                    fate.drained += 1;
                    fate.rang = rang.take();
                }
            }
            if page["remaining"] == json!(0) {
                break;
            }
        }
    }
}

async fn send(from: &Agent, to: &str, fates: &Fates) -> anyhow::Result<()> {
    let mut client = from.sender.lock().await;
    let number = {
        let mut fates = lock(fates);
        fates.push(Fate { begun: Instant::now(), returned: None, drained: 0, rang: None });
        fates.len() - 1
    };
    let kind = if number % 2 == 0 { "Question" } else { "StatusUpdate" };
    let arguments = json!({"to": to, "type": kind, "body": format!("{number} {:.<BODY$}", "")});
    let begun = Instant::now();
    client.tool(Some(&from.session), "prism_signal_send", arguments).await?;
    let fate = &mut lock(fates)[number];
    (fate.begun, fate.returned) = (begun, Some(Instant::now()));
    Ok(())
}

fn figures(fates: &[Fate], took: f64) -> Value {
    let us = |to: Instant, from: Instant| match to.checked_duration_since(from) {
        Some(after) => after.as_micros() as i64,
        None => -(from.duration_since(to).as_micros() as i64),
    };
    let sorted = |mut values: Vec<i64>| {
        values.sort_unstable();
        values
    };
    let rang: Vec<&Fate> = fates.iter().filter(|fate| fate.rang.is_some()).collect();
    let bells = sorted(rang.iter().filter_map(|fate| Some(us(fate.rang?, fate.begun))).collect());
    let after = sorted(rang.iter().filter_map(|fate| Some(us(fate.rang?, fate.returned?))).collect());
    let sends = sorted(fates.iter().filter_map(|fate| Some(us(fate.returned?, fate.begun))).collect());
    json!({
        "signals": fates.len(),
        "rate": (fates.len() as f64 / took * 10.0).round() / 10.0,
        "rang": rang.len(),
        "coalesced": fates.len() - rang.len(),
        "p50_us": quantile(&after, 0.5),
        "p99_us": quantile(&after, 0.99),
        "max_us": quantile(&after, 1.0),
        "call_p50_us": quantile(&bells, 0.5),
        "call_p99_us": quantile(&bells, 0.99),
        "call_max_us": quantile(&bells, 1.0),
        "send_p50_us": quantile(&sends, 0.5),
        "send_p99_us": quantile(&sends, 0.99),
    })
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    /// Of [0, 1).
    fn part(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }
}
