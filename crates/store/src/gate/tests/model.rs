//! Random lives of a few requests, grants and confirmations, many steps at once and with restarts, against a model that
//! is plain maps. Whatever the store says and shows is what the model does.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Ask { id: u128, ttl: i64 },
    Tell { id: u128 },
    Approve { id: u128, grant: u128, ttl: i64 },
    Deny { id: u128 },
    Claim { id: u128, right: bool },
    Narrow { parent: u128, grant: u128 },
    Use { grant: u128 },
    Revoke { grant: u128 },
    ExpireRequests,
    ExpireGrants,
    Question { id: u128, digest: u128, ttl: i64 },
    Answer { id: u128, digest: u128, allow: bool, uses: i64, ttl: Option<i64> },
    Withdraw { id: u128 },
    TakeApproval { digest: u128 },
    ExpireConfirmations,
}

#[derive(Clone, Debug, PartialEq)]
enum Said {
    Done,
    Refused,
    Yes(bool),
    Added(AddRequestResult),
    Ids(Vec<u128>),
    Taken(Option<u128>),
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 1..4_u128;
    let grant = || 11..16_u128;
    let digest = || 70..72_u128;
    let ttl = || 1..12_i64;
    let until = prop::option::of(1..6_i64);
    prop_oneof![
        4 => (id(), ttl()).prop_map(|(id, ttl)| Step::Ask { id, ttl }),
        1 => id().prop_map(|id| Step::Tell { id }),
        4 => (id(), grant(), ttl()).prop_map(|(id, grant, ttl)| Step::Approve { id, grant, ttl }),
        1 => id().prop_map(|id| Step::Deny { id }),
        3 => (id(), prop::bool::weighted(0.8)).prop_map(|(id, right)| Step::Claim { id, right }),
        3 => (grant(), grant()).prop_map(|(parent, grant)| Step::Narrow { parent, grant }),
        1 => grant().prop_map(|grant| Step::Use { grant }),
        1 => grant().prop_map(|grant| Step::Revoke { grant }),
        1 => Just(Step::ExpireRequests),
        1 => Just(Step::ExpireGrants),
        3 => (id(), digest(), ttl()).prop_map(|(id, digest, ttl)| Step::Question { id, digest, ttl }),
        4 => (id(), digest(), prop::bool::weighted(0.8), 1..3_i64, until)
            .prop_map(|(id, digest, allow, uses, ttl)| Step::Answer { id, digest, allow, uses, ttl }),
        1 => id().prop_map(|id| Step::Withdraw { id }),
        4 => digest().prop_map(|digest| Step::TakeApproval { digest }),
        1 => Just(Step::ExpireConfirmations),
    ]
}

/// Steps that are under way at once, what passes before them, and whether the daemon starts anew after them.
fn rounds() -> impl Strategy<Value = Vec<(i64, Vec<Step>, bool)>> {
    prop::collection::vec((0..4_i64, prop::collection::vec(step(), 1..10), prop::bool::weighted(0.1)), 1..12)
}

const MAX_OPEN: u32 = 2;

#[derive(Default)]
struct Model {
    requests: BTreeMap<u128, RequestRow>,
    grants: BTreeMap<u128, GrantRow>,
    tokens: BTreeMap<[u8; 32], u128>,
    confirmations: BTreeMap<u128, ConfirmationRow>,
}

/// The token of a claim is another one at each try.
fn claimed_token(id: u128, at: usize) -> [u8; 32] {
    hash(1000 * id + at as u128)
}

fn new_request(id: u128, ttl: i64, now: i64) -> RequestRow {
    let state = "REQUESTED".to_owned();
    RequestRow { state, created_at_us: now, expires_at_us: now + ttl, ..asked(id, "a") }
}

fn new_grant(grant: u128, parent: Option<u128>, ttl: i64, now: i64) -> GrantRow {
    GrantRow { created_at_us: now, expires_at_us: now + ttl, ..granted(grant, parent) }
}

fn new_answer(id: u128, digest: u128, allow: bool, uses: i64, ttl: Option<i64>, now: i64) -> ConfirmationAnswer {
    ConfirmationAnswer { uses, until_us: ttl.map(|ttl| now + ttl), at_us: now, ..answer(id, digest, allow) }
}

impl Model {
    fn take(&mut self, step: Step, at: usize, now: i64) -> Said {
        match step {
            Step::Ask { id, ttl } => {
                let open = self.requests.values().filter(|request| OPEN.contains(&&*request.state)).count();
                if open >= MAX_OPEN as usize {
                    return Said::Added(AddRequestResult::TooManyOfAgent);
                }
                if self.requests.contains_key(&id) {
                    return Said::Refused;
                }
                self.requests.insert(id, new_request(id, ttl, now));
                Said::Added(AddRequestResult::Added)
            }
            Step::Tell { id } => Said::Yes(self.step(id, &["REQUESTED"], "PENDING", None)),
            Step::Deny { id } => Said::Yes(self.step(id, &OPEN, "DENIED", Some("no"))),
            Step::Approve { id, grant, ttl } => {
                let Some(request) = self.requests.get_mut(&id) else { return Said::Yes(false) };
                if !OPEN.contains(&&*request.state) || request.expires_at_us <= now {
                    return Said::Yes(false);
                }
                if self.grants.contains_key(&grant) {
                    return Said::Refused;
                }
                request.state = "APPROVED".to_owned();
                request.decided_at_us = Some(now);
                request.decided_by = Some("me".to_owned());
                request.grant_id = Some(grant);
                self.grants.insert(grant, GrantRow { request_id: Some(id), ..new_grant(grant, None, ttl, now) });
                self.tokens.insert(hash(grant), grant);
                Said::Yes(true)
            }
            Step::Claim { id, right } => {
                let alive = |grant: &u128| self.grants[grant].ended_at_us.is_none();
                match self.requests.get_mut(&id) {
                    Some(RequestRow { claimed: claimed @ false, grant_id: Some(grant), .. })
                        if right && alive(grant) =>
                    {
                        *claimed = true;
                        self.tokens.insert(claimed_token(id, at), *grant);
                        Said::Yes(true)
                    }
                    _ => Said::Yes(false),
                }
            }
            Step::Narrow { parent, grant } => match self.grants.get(&parent) {
                Some(above) if above.ended_at_us.is_none() => {
                    if self.grants.contains_key(&grant) {
                        return Said::Refused;
                    }
                    let child =
                        GrantRow { expires_at_us: above.expires_at_us, ..new_grant(grant, Some(parent), 0, now) };
                    self.grants.insert(grant, child);
                    self.tokens.insert(hash(grant), grant);
                    Said::Yes(true)
                }
                _ => Said::Yes(false),
            },
            Step::Use { grant } => {
                if let Some(used) = self.grants.get_mut(&grant).filter(|used| used.state == "APPROVED") {
                    used.state = "ACTIVE".to_owned();
                    self.follow(grant, "ACTIVE");
                }
                Said::Done
            }
            Step::Revoke { grant } => Said::Ids(self.end(&[grant], "REVOKED", now)),
            Step::ExpireGrants => {
                let over: Vec<u128> =
                    self.grants.values().filter(|grant| grant.expires_at_us <= now).map(|grant| grant.id).collect();
                Said::Ids(self.end(&over, "EXPIRED", now))
            }
            Step::ExpireRequests => {
                let is_over =
                    |request: &&mut RequestRow| OPEN.contains(&&*request.state) && request.expires_at_us <= now;
                let over = self.requests.values_mut().filter(is_over);
                Said::Ids(over.map(|request| (request.state = "EXPIRED".to_owned(), request.id).1).collect())
            }
            Step::Question { id, digest, ttl } => {
                if self.confirmations.contains_key(&id) {
                    return Said::Refused;
                }
                let new = ConfirmationRow { created_at_us: now, expires_at_us: now + ttl, ..question(id, digest) };
                self.confirmations.insert(id, new);
                Said::Done
            }
            Step::Answer { id, digest, allow, uses, ttl } => {
                let Some(asked) = self.confirmations.get_mut(&id) else { return Said::Yes(false) };
                let may = asked.state == "waiting" || allow && asked.state == "expired";
                if !may || asked.digest != hash(digest) {
                    return Said::Yes(false);
                }
                let answer = new_answer(id, digest, allow, uses, ttl, now);
                asked.state = if allow { "allowed" } else { "denied" }.to_owned();
                asked.decided_at_us = Some(now);
                asked.decided_by = Some(answer.by);
                asked.reason = answer.reason;
                asked.uses_left = if allow { uses } else { 0 };
                asked.until_us = answer.until_us.filter(|_| allow);
                Said::Yes(true)
            }
            Step::Withdraw { id } => match self.confirmations.get_mut(&id) {
                Some(asked) if asked.state == "waiting" => {
                    asked.state = "withdrawn".to_owned();
                    asked.decided_at_us = Some(now);
                    Said::Ids(vec![id])
                }
                _ => Said::Ids(vec![]),
            },
            Step::TakeApproval { digest } => {
                let counts = |asked: &&mut ConfirmationRow| {
                    asked.state == "allowed"
                        && asked.digest == hash(digest)
                        && asked.uses_left > 0
                        && asked.until_us.is_none_or(|until| until > now)
                };
                let allowed = self.confirmations.values_mut().filter(counts);
                let taken = allowed.min_by_key(|asked| (asked.until_us.unwrap_or(i64::MAX), asked.id));
                Said::Taken(taken.map(|asked| (asked.uses_left -= 1, asked.id).1))
            }
            Step::ExpireConfirmations => {
                let is_over = |asked: &&mut ConfirmationRow| asked.state == "waiting" && asked.expires_at_us <= now;
                let over = self.confirmations.values_mut().filter(is_over);
                Said::Ids(over.map(|asked| (asked.state = "expired".to_owned(), asked.id).1).collect())
            }
        }
    }

    fn step(&mut self, id: u128, from: &[&str], to: &str, because: Option<&str>) -> bool {
        match self.requests.get_mut(&id) {
            Some(request) if from.contains(&&*request.state) => {
                request.state = to.to_owned();
                request.denied_because = because.map(str::to_owned);
                true
            }
            _ => false,
        }
    }

    fn follow(&mut self, grant: u128, state: &str) {
        let of_grant = self.requests.values_mut().filter(|request| request.grant_id == Some(grant));
        of_grant.for_each(|request| request.state = state.to_owned());
    }

    fn end(&mut self, tops: &[u128], state: &str, now: i64) -> Vec<u128> {
        let mut branch = tops.to_vec();
        let mut ended = Vec::new();
        while let Some(id) = branch.pop() {
            let Some(grant) = self.grants.get_mut(&id) else { continue };
            if grant.ended_at_us.is_none() {
                (grant.state, grant.ended_at_us) = (state.to_owned(), Some(now));
                self.follow(id, state);
                ended.push(id);
            }
            branch.extend(self.grants.values().filter(|grant| grant.parent == Some(id)).map(|grant| grant.id));
        }
        ended.sort_unstable();
        ended.dedup();
        ended
    }
}

async fn take(store: Store, step: Step, at: usize, now: i64, expires_with: i64) -> Said {
    let sorted = |mut ids: Vec<u128>| {
        ids.sort_unstable();
        Said::Ids(ids)
    };
    let said = match step {
        Step::Ask { id, ttl } => store.add_request(new_request(id, ttl, now), MAX_OPEN, 100).await.map(Said::Added),
        Step::Tell { id } => {
            store.step_request(id, &["REQUESTED"], "PENDING", RequestPatch::default()).await.map(Said::Yes)
        }
        Step::Deny { id } => {
            let patch = RequestPatch { denied_because: Some("no".to_owned()), ..RequestPatch::default() };
            store.step_request(id, &OPEN, "DENIED", patch).await.map(Said::Yes)
        }
        Step::Approve { id, grant, ttl } => {
            let new = new_grant(grant, None, ttl, now);
            store.approve(id, now, "me".to_owned(), new, Some(hash(grant))).await.map(Said::Yes)
        }
        Step::Claim { id, right } => {
            store.claim(id, hash(id + u128::from(!right)), claimed_token(id, at)).await.map(Said::Yes)
        }
        Step::Narrow { parent, grant } => {
            let child = GrantRow { expires_at_us: expires_with, ..new_grant(grant, Some(parent), 0, now) };
            store.add_grant(child, hash(grant)).await.map(Said::Yes)
        }
        Step::Use { grant } => store.activate_grant(grant).await.map(|()| Said::Done),
        Step::Revoke { grant } => store.end_grants(vec![grant], "REVOKED", now).await.map(sorted),
        Step::ExpireGrants => store.expire_grants(now).await.map(sorted),
        Step::ExpireRequests => store.expire_requests(now).await.map(sorted),
        Step::Question { id, digest, ttl } => {
            let new = ConfirmationRow { created_at_us: now, expires_at_us: now + ttl, ..question(id, digest) };
            store.add_confirmation(new).await.map(|()| Said::Done)
        }
        Step::Answer { id, digest, allow, uses, ttl } => {
            store.decide_confirmation(new_answer(id, digest, allow, uses, ttl, now)).await.map(Said::Yes)
        }
        Step::Withdraw { id } => store.end_confirmations(vec![id], "withdrawn", now).await.map(sorted),
        Step::TakeApproval { digest } => store.use_approval(hash(digest), now).await.map(Said::Taken),
        Step::ExpireConfirmations => store.expire_confirmations(now).await.map(sorted),
    };
    said.unwrap_or(Said::Refused)
}

fn check(store: &Store, model: &Model) {
    for id in 0..20 {
        assert_eq!(store.request(id).unwrap().as_ref(), model.requests.get(&id));
        assert_eq!(store.grant(id).unwrap().as_ref(), model.grants.get(&id));
        assert_eq!(store.confirmation(id).unwrap().as_ref(), model.confirmations.get(&id));
    }
    for (token, grant) in &model.tokens {
        assert_eq!(store.grant_of_token(*token).unwrap().as_ref(), model.grants.get(grant));
    }
    let alive = model.grants.values().filter(|grant| grant.ended_at_us.is_none()).count();
    assert_eq!(store.live_grants().unwrap() as usize, alive);
    let waiting = store.confirmations(&ConfirmationFilter { waiting_only: true, limit: 99, grant: None }).unwrap();
    let expected = model.confirmations.values().filter(|asked| asked.state == "waiting").count();
    assert_eq!(waiting.len(), expected);
    let open = store.requests(&RequestFilter { open_only: true, limit: 99, ..RequestFilter::default() }).unwrap();
    assert_eq!(open.len(), model.requests.values().filter(|request| OPEN.contains(&&*request.state)).count());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn the_store_does_what_the_model_does(rounds in rounds()) {
        // One thread that polls tasks in their order: so the order at the writer is the model's, and still they are under
        // way together and share transactions.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = TempDir::new().unwrap();
            let mut store = open(&home);
            let mut model = Model::default();
            let (mut now, mut number) = (10, 0);
            for (passes, steps, restarts) in rounds {
                now += passes;
                let mut under_way = JoinSet::new();
                let mut expected = BTreeMap::new();
                for step in steps {
                    number += 1;
                    let said = model.take(step.clone(), number, now);
                    // A child's time is its parent's, and the parent may be of this very round.
                    let expires_with = match &step {
                        Step::Narrow { parent, .. } => model.grants.get(parent).map_or(0, |grant| grant.expires_at_us),
                        _ => 0,
                    };
                    expected.insert(number, (step.clone(), said));
                    let (store, at) = (store.clone(), number);
                    under_way.spawn(async move { (at, take(store, step, at, now, expires_with).await) });
                }
                while let Some(said) = under_way.join_next().await {
                    let (at, said) = said.unwrap();
                    let (step, expected) = &expected[&at];
                    assert_eq!(&said, expected, "{step:?} at {now}");
                }
                check(&store, &model);
                if restarts {
                    store.close();
                    store = open(&home);
                    check(&store, &model);
                }
            }
        });
    }
}
