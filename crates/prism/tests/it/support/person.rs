//! The person at a daemon: has the management secret, looks at what waits, and decides.

use std::fs;

use hyper::Method;
use serde_json::{Value, json};

use super::{Client, Daemon, until};

pub(crate) struct Person(Client);

impl Daemon {
    pub(crate) fn person(&self) -> Person {
        let file = self.home().path().join("management-token");
        let secret = fs::read_to_string(file).expect("a daemon that listens has made its secret").trim().to_owned();
        Person(Client::new(self.place(), "/mcp/confirmations", Some(secret)))
    }

    /// The lines of the audit log so far.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.home().path().join("audit/audit.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for a line of the audit log in which these members say this.
    pub(crate) async fn audited(&self, members: &Value) -> Value {
        let fits = |line: &Value| {
            members.as_object().into_iter().flatten().all(|(name, value)| match name.split_once('.') {
                Some((outer, inner)) => line[outer][inner] == *value,
                None => line[name] == *value,
            })
        };
        let mut found = None;
        until(&format!("the log has {members}"), async || {
            found = self.audit().into_iter().find(fits);
            found.is_some()
        })
        .await;
        found.expect("it is there")
    }
}

impl Person {
    /// All that waits.
    pub(crate) async fn waiting(&self) -> Vec<Value> {
        let reply = self.0.request(Method::GET).send().await;
        let status = reply.status;
        let mut listed = reply.json().await;
        assert_eq!(status, 200, "{listed}");
        let Value::Array(all) = listed["confirmations"].take() else { panic!("no list: {listed}") };
        all.into_iter().filter(|one| one["state"] == "waiting").collect()
    }

    /// Waits for a question.
    pub(crate) async fn asked(&self) -> Value {
        let mut asked = None;
        until("a question waits", async || {
            asked = self.waiting().await.pop();
            asked.is_some()
        })
        .await;
        asked.expect("it waits")
    }

    /// Waits until nothing waits.
    pub(crate) async fn nothing_waits(&self) {
        until("nothing waits", async || self.waiting().await.is_empty()).await;
    }

    pub(crate) async fn decide(&self, asked: &Value, allow: bool, more: Value) {
        let mut answer = json!({
            "confirmation_id": asked["confirmation_id"], "digest": asked["digest"], "allow": allow,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            answer[name] = value.clone();
        }
        let reply = self.0.at("/mcp/confirm").post(&answer).await;
        let status = reply.status;
        let body = reply.text().await;
        assert_eq!(status, 200, "{body}");
    }

    pub(crate) async fn allow(&self, asked: &Value) {
        self.decide(asked, true, json!({})).await;
    }

    pub(crate) async fn deny(&self, asked: &Value, reason: &str) {
        self.decide(asked, false, json!({"reason": reason})).await;
    }
}
