//! Random lives of a mailbox against a model that is a plain list, with clients that lose answers and daemons that
//! start anew.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Send {
        to: usize,
        rings: bool,
        ends_on_drain: bool,
        ttl: Option<i64>,
        size: usize,
    },
    /// The last one once more.
    Repeat,
    Drain {
        client: usize,
        limit: u32,
        max_bytes: usize,
        arrives: bool,
    },
    /// To the newest that has arrived.
    Reply {
        client: usize,
    },
    Recall {
        of_newest: usize,
    },
    Expire {
        limit: u32,
    },
    Settle {
        client: usize,
    },
    Trim {
        keep: u32,
        age: i64,
        limit: u32,
    },
    Restart,
    Pass {
        time: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = prop::option::weighted(0.3, 1..15_i64);
    prop_oneof![
        8 => (0..2_usize, prop::bool::weighted(0.8), any::<bool>(), ttl, 0..30_usize)
            .prop_map(|(to, rings, ends_on_drain, ttl, size)| Step::Send { to, rings, ends_on_drain, ttl, size }),
        1 => Just(Step::Repeat),
        6 => (0..2_usize, 1..5_u32, 10..60_usize, prop::bool::weighted(0.7))
            .prop_map(|(client, limit, max_bytes, arrives)| Step::Drain { client, limit, max_bytes, arrives }),
        1 => (0..2_usize).prop_map(|client| Step::Reply { client }),
        1 => (0..6_usize).prop_map(|of_newest| Step::Recall { of_newest }),
        1 => (1..4_u32).prop_map(|limit| Step::Expire { limit }),
        1 => (0..2_usize).prop_map(|client| Step::Settle { client }),
        1 => (0..4_u32, 0..20_i64, 1..4_u32).prop_map(|(keep, age, limit)| Step::Trim { keep, age, limit }),
        1 => Just(Step::Restart),
        2 => (1..8_i64).prop_map(|time| Step::Pass { time }),
    ]
}

/// What the model knows of a signal.
#[derive(Clone, Debug)]
struct Known {
    sent: NewSignal,
    stage: u8,
    drained: bool,
    recalled: bool,
    expired: bool,
    redelivered: bool,
    replied: bool,
}

impl Known {
    fn dead(&self, now: i64) -> bool {
        self.sent.expires_at_us.is_some_and(|at| at <= now)
    }

    fn state(&self) -> &'static str {
        match (&self.sent.obligation, self) {
            (_, Self { replied: true, .. }) => "done",
            (_, Self { recalled: true, .. }) => "recalled",
            (_, Self { expired: true, .. }) => "expired",
            (Some(obligation), Self { drained: true, .. }) if obligation.ends_on_drain => "done",
            (_, Self { drained: true, .. }) => "heard",
            _ => "open",
        }
    }

    fn owed(&self) -> bool {
        self.sent.obligation.is_some() && matches!(self.state(), "open" | "heard")
    }
}

/// One that drains. It remembers every copy that has arrived, and whether that was marked.
#[derive(Default)]
struct Client {
    holds_cursor: bool,
    cursor: i64,
    arrived: BTreeMap<i64, Vec<bool>>,
    /// Given, and not arrived.
    lost: Vec<i64>,
}

struct World {
    home: TempDir,
    store: Store,
    known: BTreeMap<i64, Known>,
    newest: i64,
    now: i64,
    next_id: u128,
    clients: [Client; 2],
}

const AGENTS: [&str; 2] = ["holds", "forgets"];

impl World {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let clients = [Client { holds_cursor: true, ..Client::default() }, Client::default()];
        Self { store: open(&home), home, known: BTreeMap::new(), newest: 0, now: 100, next_id: 1, clients }
    }

    fn of(&mut self, client: usize) -> impl Iterator<Item = (&i64, &mut Known)> {
        self.known.iter_mut().filter(move |(_, known)| known.sent.recipient == AGENTS[client])
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Send { to, rings, ends_on_drain, ttl, size } => {
                let signal = NewSignal {
                    body: "x".repeat(size),
                    sent_at_us: self.now,
                    expires_at_us: ttl.map(|ttl| self.now + ttl),
                    rings,
                    ..new(self.next_id, AGENTS[to])
                };
                self.send(if rings { owed(signal, ends_on_drain) } else { signal }).await;
            }
            Step::Repeat => {
                let Some((seq, known)) = self.known.last_key_value() else { return };
                let again = send(&self.store, known.sent.clone()).await;
                assert_eq!(again, SendResult::Again { seq: *seq, trace: known.sent.trace });
            }
            Step::Drain { client, limit, max_bytes, arrives } => {
                self.drain(client, limit, max_bytes, arrives).await;
            }
            Step::Reply { client } => {
                let arrived = self.clients[client].arrived.last_key_value().map(|(seq, _)| *seq);
                let Some(known) = arrived.and_then(|seq| self.known.get_mut(&seq)) else { return };
                let closes = Some(known.sent.id);
                known.replied |= known.owed();
                known.stage = if known.stage == stage::GIVEN { stage::OVER } else { known.stage };
                let sender = AGENTS[client].to_owned();
                self.send(NewSignal { closes, sender, sent_at_us: self.now, ..new(self.next_id, "x") }).await;
            }
            Step::Recall { of_newest } => {
                let Some((seq, known)) = self.known.iter_mut().rev().nth(of_newest) else { return };
                let (dead, recipient) = (known.dead(self.now), known.sent.recipient.clone());
                let expected = match known.stage {
                    _ if known.drained || known.redelivered => RecallResult::AlreadyDrained,
                    stage::WAITS if !dead => RecallResult::Done { seq: *seq, recipient, rings: known.sent.rings },
                    _ => RecallResult::AlreadyGone,
                };
                if matches!(expected, RecallResult::Done { .. }) {
                    (known.stage, known.recalled) = (stage::OVER, true);
                }
                assert_eq!(self.store.recall(known.sent.id, &known.sent.sender, self.now).await.unwrap(), expected);
            }
            Step::Expire { limit } => {
                let now = self.now;
                let mut dead: Vec<&mut Known> =
                    self.known.values_mut().filter(|known| known.stage == stage::WAITS && known.dead(now)).collect();
                let expired = self.store.expire(now, limit).await.unwrap();
                assert_eq!(expired.len(), dead.len().min(limit as usize));
                for signal in expired {
                    let known = dead.iter_mut().find(|known| known.sent.id == signal.id).unwrap();
                    (known.stage, known.expired) = (stage::OVER, true);
                }
            }
            Step::Settle { client } => {
                // It can answer for what is before the first that it misses.
                let Client { lost, arrived, .. } = &self.clients[client];
                let missed = lost.iter().filter(|seq| !arrived.contains_key(seq)).min();
                let up_to = missed.map_or(self.newest, |seq| seq - 1);
                settle(&self.store, AGENTS[client], up_to).await;
                for (_, known) in self.of(client).filter(|(seq, known)| **seq <= up_to && known.stage == stage::GIVEN) {
                    known.stage = stage::OVER;
                }
            }
            Step::Trim { keep, age, limit } => self.trim(keep, age, limit).await,
            Step::Restart => self.restart().await,
            Step::Pass { time } => self.now += time,
        }
    }

    async fn send(&mut self, signal: NewSignal) {
        self.next_id += 1;
        self.newest += 1;
        assert_eq!(send(&self.store, signal.clone()).await, SendResult::Accepted { seq: self.newest });
        let (stage, no) = (stage::WAITS, false);
        let known = Known { sent: signal, stage, drained: no, recalled: no, expired: no, redelivered: no, replied: no };
        self.known.insert(self.newest, known);
    }

    /// Returns how many were given.
    async fn drain(&mut self, client: usize, limit: u32, max_bytes: usize, arrives: bool) -> usize {
        let (now, newest) = (self.now, self.newest);
        let after = self.clients[client].holds_cursor.then_some(self.clients[client].cursor);
        let what = DrainRequest { agent: AGENTS[client].to_owned(), after, limit, max_bytes, at_us: now };

        let (mut expected, mut bytes, mut more) = (Vec::new(), 0, false);
        for (seq, known) in self.of(client) {
            if after.is_some_and(|after| *seq <= after) {
                let arrived = known.stage == stage::GIVEN || known.stage == stage::WAITS && known.redelivered;
                if arrived {
                    (known.stage, known.drained) = (stage::OVER, true);
                }
                continue;
            }
            let waits = known.stage == stage::WAITS;
            let gone = known.recalled || known.expired || waits && known.dead(now);
            if gone || !(waits || after.is_some()) || more {
                continue;
            }
            bytes += known.sent.body.len();
            if expected.len() == limit as usize || bytes > max_bytes && !expected.is_empty() {
                more = true;
                continue;
            }
            known.redelivered |= !waits;
            known.drained = true;
            known.stage = known.stage.max(stage::GIVEN);
            expected.push((*seq, known.redelivered));
        }
        let left: Vec<bool> = self
            .of(client)
            .filter(|(_, known)| known.stage == stage::WAITS && !known.dead(now))
            .map(|(_, known)| known.sent.rings)
            .collect();

        let DrainResult::Page(peeked) = self.store.peek(&what).unwrap() else { panic!("{what:?} is right") };
        let given = page(&self.store, what).await;
        let found: Vec<_> = given.signals.iter().map(|signal| (signal.seq, signal.redelivered)).collect();
        assert_eq!((&found, given.more), (&expected, more));
        assert_eq!((given.left, given.newest), (left.len() as u64, newest));
        assert_eq!(given.left_ringing, left.iter().filter(|rings| **rings).count() as u64);
        let shown: Vec<_> = peeked.signals.iter().map(|signal| (signal.seq, signal.redelivered)).collect();
        assert_eq!((shown, peeked.more, peeked.left), (found, given.more, given.left));
        assert_eq!(peeked.left_ringing, given.left_ringing);

        let client = &mut self.clients[client];
        for (seq, redelivered) in expected {
            if arrives {
                client.arrived.entry(seq).or_default().push(redelivered);
                client.cursor = seq;
            } else {
                client.lost.push(seq);
            }
        }
        given.signals.len()
    }

    async fn trim(&mut self, keep: u32, age: i64, limit: u32) {
        let before_us = self.now - age;
        let trim = HistoryTrim { keep_per_agent: Some(keep), before_us: Some(before_us), limit };
        let gone = self.store.trim_history(trim).await.unwrap();
        let kept: Vec<i64> = history(&self.store).into_iter().map(|signal| signal.seq).collect();
        let before = self.known.clone();
        self.known.retain(|seq, _| kept.contains(seq));
        assert_eq!(gone as usize, before.len() - self.known.len());
        // Only what may go, the oldest first, and all of it unless the limit was reached.
        for agent in ["x", AGENTS[0], AGENTS[1]] {
            let over: Vec<_> = before
                .iter()
                .filter(|(_, known)| known.sent.recipient == agent && known.stage == stage::OVER)
                .collect();
            let surplus = over.len().saturating_sub(keep as usize);
            let free: Vec<_> = over.iter().filter(|(_, known)| !known.owed()).collect();
            let old = free.iter().filter(|(_, known)| known.sent.sent_at_us < before_us).count();
            let most = old.max(surplus.min(free.len()));
            let went: Vec<bool> = free.iter().map(|(seq, _)| !self.known.contains_key(seq)).collect();
            let count = went.iter().filter(|went| **went).count();
            assert!(went.is_sorted_by(|a, b| a >= b), "the oldest first: {went:?}");
            assert!(count <= most && (count == most || gone == u64::from(limit)), "{count} of {most}");
        }
        let allowed = |known: &Known| known.stage == stage::OVER && !known.owed();
        assert!(before.iter().all(|(seq, known)| self.known.contains_key(seq) || allowed(known)));
    }

    async fn restart(&mut self) {
        self.store.close();
        self.store = open(&self.home);
        let unsettled = self.store.unsettle_all().await.unwrap();
        let given = self.known.values_mut().filter(|known| known.stage == stage::GIVEN);
        let mut count = 0;
        for known in given {
            (known.stage, known.drained, known.redelivered) = (stage::WAITS, false, true);
            count += 1;
        }
        assert_eq!(unsettled, count);
    }

    /// The whole of the database is what the model says.
    fn compare(&self) {
        let found: Vec<_> = history(&self.store)
            .into_iter()
            .map(|signal| {
                let SignalRow { drained_at_us, recalled_at_us, expired_at_us, .. } = signal;
                let times = [drained_at_us, recalled_at_us, expired_at_us].map(|time| time.is_some());
                (signal.seq, signal.id, times, signal.redelivered)
            })
            .collect();
        let known = self.known.iter().rev();
        let expected: Vec<_> = known
            .map(|(seq, known)| {
                (*seq, known.sent.id, [known.drained, known.recalled, known.expired], known.redelivered)
            })
            .collect();
        assert_eq!(found, expected);

        let all = self.store.obligations(&ObligationFilter { limit: 10_000, ..ObligationFilter::default() }).unwrap();
        let found: Vec<_> = all.iter().map(|obligation| (obligation.signal, obligation.state.as_str())).collect();
        let owed = self.known.values().rev().filter(|known| known.sent.obligation.is_some());
        let expected: Vec<_> = owed.map(|known| (known.sent.id, known.state())).collect();
        assert_eq!(found, expected);
        let open = all.iter().rev().filter(|obligation| obligation.closed_at_us.is_none()).cloned();
        assert_eq!(self.store.open_obligations().unwrap(), open.collect::<Vec<_>>());

        let counts = self.store.pending_counts().unwrap();
        for agent in ["forgets", "holds", "x"] {
            let waiting = self.known.iter().filter(|(_, k)| k.sent.recipient == agent && k.stage == stage::WAITS);
            let waiting: Vec<_> = waiting.collect();
            let ringing: Vec<_> = waiting.iter().filter(|(_, known)| known.sent.rings).collect();
            if waiting.is_empty() {
                assert!(counts.iter().all(|count| count.agent != agent));
                continue;
            }
            let count = counts.iter().find(|count| count.agent == agent).unwrap();
            assert_eq!((count.pending, count.ringing), (waiting.len() as u64, ringing.len() as u64));
            assert_eq!(count.newest, self.newest);
            assert_eq!(count.first_ringing.as_ref().map(|first| first.seq), ringing.first().map(|(seq, _)| **seq));
        }
    }

    /// Everybody gets what there is, and has then got what it should.
    async fn end(&mut self) {
        self.restart().await;
        for client in 0..2 {
            while self.drain(client, 3, 1000, true).await > 0 {}
        }
        self.compare();
        for (seq, known) in &self.known {
            let Some(client) = AGENTS.iter().position(|agent| *agent == known.sent.recipient) else { continue };
            let client = &self.clients[client];
            let copies = client.arrived.get(seq).map_or(0, Vec::len);
            if !(known.recalled || known.expired || known.dead(self.now) && copies == 0) {
                assert!(copies > 0, "{seq} was never given: {known:?}");
            }
        }
        for (seq, copies) in &self.clients[0].arrived {
            assert_eq!(copies.len(), 1, "{seq} arrived more than once at a client that holds its cursor");
        }
        for (seq, copies) in &self.clients[1].arrived {
            assert!(copies[1..].iter().all(|marked| *marked), "{seq} arrived again, unmarked");
        }
    }
}

fn history(store: &Store) -> Vec<SignalRow> {
    store.history(&HistoryQuery { limit: 10_000, ..HistoryQuery::default() }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    // M-12
    #[test]
    fn every_signal_is_given_once_to_who_holds_its_cursor_and_at_least_once_to_who_does_not(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new();
            for step in steps {
                world.take(step).await;
                world.compare();
            }
            world.end().await;
        });
    }
}
