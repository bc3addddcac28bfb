//! `load mesh-scale`: what a page of a drain costs, over HTTP and over MCP, while thousands of signals wait for a thousand
//! agents; and what they cost in memory, with them waiting, without them, and the next time.

use std::{path::Path, time::Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{
    agents::{BODY, Disk, quantile, written},
    client::{Client, Target},
    kib_in,
};

/// What the commit of a page's drain writes, about.
const PAGE_BYTES: usize = 128 << 10;
/// Connections that signals are sent on.
const SENDERS: usize = 16;
/// The part of all signals that waits for one agent, and for another.
const DEEP: f64 = 0.25;

pub(super) struct Plan<'a> {
    pub(super) agents: usize,
    pub(super) signals: usize,
    pub(super) times: usize,
    pub(super) pid: u32,
    pub(super) dir: &'a Path,
}

/// How a drain is asked for.
enum Way {
    Http(Client),
    Mcp(Client, Option<String>),
}

/// Pages that were drained: how long each took, in microseconds, and what was in them.
#[derive(Default)]
struct Pages {
    took: Vec<u32>,
    signals: usize,
}

pub(super) async fn mesh_scale(target: Target, plan: Plan<'_>) -> anyhow::Result<()> {
    let rss = || kib_in(format!("/proc/{}/status", plan.pid), "VmRSS:").context("VmRSS");
    let bare = rss()?;
    let sessions = start(&target, plan.agents).await?;
    let before = rss()?;
    let mut mcp = target.client();
    let session = mcp.open().await?;
    let mut ways = [Way::Http(target.at("/prism/mesh/pending").client()), Way::Mcp(mcp, session)];
    let mut pages = [Pages::default(), Pages::default()];
    let (mut with, mut after) = (Vec::new(), Vec::new());
    let began = written(&target, plan.pid).await?;
    let disk = Disk::measure(plan.dir, PAGE_BYTES);
    for _ in 0..plan.times {
        send(&target, &plan).await?;
        with.push(rss()?);
        for (n, session) in sessions.iter().enumerate() {
            let way = n % 2;
            drain(&mut ways[way], session, &mut pages[way]).await?;
        }
        after.push(rss()?);
    }
    let ended = written(&target, plan.pid).await?;
    let disk = disk.end()?;
    let drained: usize = pages.iter().map(|pages| pages.signals).sum();
    let [http, mcp] = pages.map(Pages::figures);
    let slowest = |figure: &str| http[figure].as_u64().max(mcp[figure].as_u64());
    let figures = json!({
        "agents": plan.agents, "signals": plan.signals, "drained": drained,
        "p50_us": slowest("p50_us"), "p99_us": slowest("p99_us"), "max_us": slowest("max_us"),
        "http": http, "mcp": mcp, "disk": disk, "bytes_per_commit": ended.bytes_per_commit(&began),
        "rss_bare_kib": bare, "rss_before_kib": before, "rss_with_kib": with, "rss_after_kib": after,
    });
    println!("{figures}");
    if drained != plan.signals * plan.times {
        bail!("{drained} of {} signals were drained", plan.signals * plan.times)
    }
    Ok(())
}

/// Registers agents and returns their sessions.
async fn start(target: &Target, agents: usize) -> anyhow::Result<Vec<String>> {
    let mut client = target.at("/prism/mesh/start").client();
    let mut sessions = Vec::with_capacity(agents);
    for n in 0..agents {
        let started = client.verb(json!({"agent": format!("agent-{n}"), "surface": "load"})).await?;
        sessions.push(started["session"].as_str().context("no session")?.to_owned());
    }
    Ok(sessions)
}

/// Sends all signals: many to two of the agents, and the others to all in turn.
async fn send(target: &Target, plan: &Plan<'_>) -> anyhow::Result<()> {
    let deep = (plan.signals as f64 * DEEP) as usize;
    let to = |n: usize| if n < 2 * deep { n % 2 } else { n % plan.agents };
    // The token alone says nothing in anybody's name.
    let mut sender = target.at("/prism/mesh/start").client();
    let sender = sender.verb(json!({"agent": "sender", "surface": "load"})).await?["session"].clone();
    let mut senders = Vec::new();
    for first in 0..SENDERS {
        let sender = sender.clone();
        let mut client = target.at("/prism/mesh/send").client();
        let recipients: Vec<usize> = (first..plan.signals).step_by(SENDERS).map(to).collect();
        senders.push(tokio::spawn(async move {
            for recipient in recipients {
                let body = format!("{:.<BODY$}", "");
                let to = format!("agent-{recipient}");
                client.verb(json!({"session": sender, "to": to, "type": "StatusUpdate", "body": body})).await?;
            }
            anyhow::Ok(())
        }));
    }
    for sender in senders {
        sender.await??;
    }
    Ok(())
}

/// Drains all that waits for an agent, a page at a time.
async fn drain(way: &mut Way, session: &str, pages: &mut Pages) -> anyhow::Result<()> {
    loop {
        let begun = Instant::now();
        let page = match way {
            Way::Http(client) => client.verb(json!({"session": session})).await?,
            Way::Mcp(client, mcp) => {
                client.tool(mcp.as_deref(), "prism_signals_pending", json!({"session": session})).await?
            }
        };
        pages.took.push(begun.elapsed().as_micros() as u32);
        pages.signals += page["signals"].as_array().map_or(0, Vec::len);
        if page["remaining"] == json!(0) {
            return Ok(());
        }
    }
}

impl Pages {
    fn figures(mut self) -> Value {
        self.took.sort_unstable();
        let at = |part| quantile(&self.took, part);
        json!({"pages": self.took.len(), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0)})
    }
}
