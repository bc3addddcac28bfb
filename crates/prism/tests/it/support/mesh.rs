//! A daemon that is only its mesh, and does what the test says: for what a real one does seldom, or not to order. It is
//! found as a real one is, by its registration and its token.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use prism_config::registration::Registration;
use prism_os::clock::now_rfc3339;
use prism_os::process::ProcessIdentity;
use serde_json::{Value, json};

use super::{
    Home, Launch,
    upstream::{Asked, Flow, Upstream},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub(crate) struct FakeMesh {
    upstream: Upstream,
    home: Home,
}

impl FakeMesh {
    pub(crate) async fn start() -> Self {
        let home = Home::new();
        let token = home.path().join("http-mcp-token");
        fs::write(&token, TOKEN).expect("the home can be written to");
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        let fake = Self { upstream: Upstream::start().await, home };
        fake.register();
        fake
    }

    fn register(&self) {
        let ours = ProcessIdentity::this_process();
        let url = self.upstream.at("");
        let registration = Registration {
            port: url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a URL with a port"),
            url,
            pid: ours.pid,
            version: "0.1.0".to_owned(),
            started_at: now_rfc3339(),
            socket: None,
            process_started: ours.start_ticks,
            log: None,
            arguments: vec!["serve".to_owned()],
            folder: PathBuf::from("/"),
            supervisor: None,
        };
        registration.write(self.home.path()).expect("the home can be written to");
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// A command that finds this daemon.
    pub(crate) fn prism(&self, words: &[&str]) -> Launch {
        Launch::prism(words.iter().map(|word| (*word).to_owned()).collect()).home(&self.home)
    }

    /// The next request, which has to be this one: a verb, or a path that is asked for.
    pub(crate) async fn asked(&mut self, what: &str) -> Asked {
        loop {
            let asked = self.upstream.next().await;
            if asked.path == "/healthz" {
                asked.json(200, &json!({"status": "alive"})).await;
                continue;
            }
            assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {TOKEN}")), "{}", asked.path);
            let path = asked.path.strip_prefix("/prism/mesh").unwrap_or(&asked.path);
            assert_eq!(path.trim_start_matches('/'), what, "{} {}", asked.path, asked.body);
            return asked;
        }
    }

    /// Answers the next request, which has to be this one. Returns what was asked.
    pub(crate) async fn answer(&mut self, what: &str, result: Value) -> Value {
        let asked = self.asked(what).await;
        let arguments = asked.body.clone();
        asked.json(200, &result).await;
        arguments
    }

    /// Checks that nothing was asked that the test did not take.
    pub(crate) fn asked_nothing_more(&mut self) {
        self.upstream.asked_nothing_more();
    }

    /// Goes away with every connection, as a daemon that is killed.
    pub(crate) async fn go(&mut self) {
        self.upstream.go().await;
    }

    pub(crate) fn come(&mut self) {
        self.upstream.come();
    }
}

/// Tells of something that happened.
pub(crate) async fn happened(stream: &Flow, name: &str, data: &Value) {
    stream.push(&format!("event: {name}\ndata: {data}\n\n")).await;
}
