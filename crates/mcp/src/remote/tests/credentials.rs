//! What opens a server: asked before each request, told of a refusal, and asked once more.

use std::{
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use hyper::header::{AUTHORIZATION, HeaderValue};

use super::*;
use crate::remote::credentials::{AfterRefusal, Credentials, CredentialsRefusal};

/// Tokens, one after the other: the next one is had when the one before it is refused.
struct Tokens {
    left: Mutex<Vec<&'static str>>,
    told: Mutex<Vec<CredentialsRefusal>>,
}

impl Tokens {
    fn new(tokens: &[&'static str]) -> Arc<Self> {
        let left = tokens.iter().rev().copied().collect();
        Arc::new(Self { left: Mutex::new(left), told: Mutex::default() })
    }

    fn told(&self) -> Vec<CredentialsRefusal> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Credentials for Tokens {
    fn headers(&self) -> HeaderMap {
        let token = self.left.lock().unwrap_or_else(PoisonError::into_inner).last().copied();
        let header = token.map(|token| (AUTHORIZATION, HeaderValue::from_static(token)));
        header.into_iter().collect()
    }

    fn refused<'a>(
        &'a self,
        refusal: &'a CredentialsRefusal,
    ) -> Pin<Box<dyn Future<Output = AfterRefusal> + Send + 'a>> {
        Box::pin(async move {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).push(refusal.clone());
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.pop();
            if left.is_empty() { AfterRefusal::GiveUp } else { AfterRefusal::TryAgain }
        })
    }
}

async fn bench(tokens: &Arc<Tokens>) -> Bench {
    let server = Server::start().await;
    let configured = ["Authorization", "X-Tenant"].map(|name| (name.to_owned(), "configured".to_owned()));
    let target = RemoteTarget::new(&server.url, configured.into(), None, LIMIT).unwrap();
    target.opened_by(tokens.clone());
    Bench::with(server, target)
}

fn offered(asked: &Asked) -> &str {
    asked.headers.get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap())
}

const CHALLENGE: [(&str, &str); 1] = [("www-authenticate", r#"Bearer error="invalid_token""#)];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn a_refused_request_is_sent_once_more_with_what_is_better() {
    let tokens = Tokens::new(&["Bearer old", "Bearer new"]);
    let mut bench = bench(&tokens).await;
    bench.remote.send(call(7));
    let first = bench.asked().await;
    assert_eq!(offered(&first), "Bearer old");
    first.answer(401, &CHALLENGE, "").await;
    let second = bench.asked().await;
    assert_eq!((offered(&second), second.body.contains(r#""id":7"#)), ("Bearer new", true));
    assert_eq!(second.headers.get_all(AUTHORIZATION).iter().count(), 1, "what was configured has given way");
    assert_eq!(second.headers["x-tenant"], "configured");
    second.answer(200, &JSON, &result(7)).await;
    assert_eq!(shown(bench.arrival().await), format!("7: {}", result(7)));
    let [told] = &tokens.told()[..] else { panic!("told more than once") };
    assert_eq!((told.status, &told.challenges[0]), (401, &HeaderValue::from_static(CHALLENGE[0].1)));
    assert_eq!(told.offered[AUTHORIZATION], "Bearer old");
}

#[tokio::test]
async fn what_is_refused_again_is_not_offered_a_third_time() {
    let tokens = Tokens::new(&["Bearer one", "Bearer two", "Bearer three"]);
    let mut bench = bench(&tokens).await;
    bench.remote.send(call(7));
    for _ in 0..2 {
        bench.asked().await.answer(401, &CHALLENGE, "").await;
    }
    let RemoteEvent::Failed { id: 7, failure } = bench.arrival().await else { panic!("it did not fail") };
    assert_eq!(failure, RemoteFailure::Unauthorized { status: 401 });
    bench.silence().await;
    assert_eq!(tokens.told().len(), 1);
}

// A 403 without a challenge is the server's last word, and so is any of a server that nothing is known for.
#[tokio::test]
async fn what_no_credentials_can_help_is_told_at_once() {
    let tokens = Tokens::new(&["Bearer one", "Bearer two"]);
    let mut bench = bench(&tokens).await;
    bench.remote.send(call(7));
    bench.asked().await.answer(403, &[], "").await;
    let RemoteEvent::Failed { failure, .. } = bench.arrival().await else { panic!("it did not fail") };
    assert_eq!((failure, tokens.told().len()), (RemoteFailure::Unauthorized { status: 403 }, 0));
}
