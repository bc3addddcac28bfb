//! `load list`: requests a second and latency of tools/list, on one session.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;

use super::{
    Tally,
    client::{PATIENCE, Target, answer_in},
};

/// Asks for the list until all servers are in it, then measures.
pub(super) async fn list(target: Target, conns: usize, secs: f64, tools: usize) -> anyhow::Result<()> {
    let ask = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#);
    let mut first = target.client();
    let session = first.open().await?;
    let begun = Instant::now();
    let whole = loop {
        let body = first.post(session.as_deref(), ask(1)).await?;
        let listed = answer_in(&body).and_then(|v| v["result"]["tools"].as_array().map(Vec::len)).unwrap_or(0);
        if listed >= tools {
            break body.len();
        }
        if begun.elapsed() > PATIENCE {
            bail!("{listed} of {tools} tools after {PATIENCE:?}")
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(secs);
    let mut workers = Vec::new();
    for worker in 0..conns {
        let (mut client, session) = (target.client(), session.clone());
        workers.push(tokio::spawn(async move {
            let mut tally = Tally { latencies: Vec::with_capacity(1 << 16), ..Tally::default() };
            let mut n = 0u64;
            while Instant::now() < end {
                n += 1;
                let id = worker as u64 * 100_000_000 + n;
                let begun = Instant::now();
                let outcome = client.post(session.as_deref(), ask(id)).await;
                let took = begun.elapsed();
                // Full parse of a sample: the load must not be the bottleneck. The others must be as long as the first,
                // which had the shortest id that there is.
                let right = |body: &[u8]| {
                    body.len() >= whole
                        && (n % 64 != 1
                            || answer_in(body).is_some_and(|v| {
                                v["id"] == id && v["result"]["tools"].as_array().is_some_and(|all| all.len() >= tools)
                            }))
                };
                match outcome {
                    Ok(body) if right(&body) => {
                        tally.latencies.push(took.as_micros() as u32);
                        tally.bytes += body.len();
                    }
                    Ok(body) => {
                        tally.wrong(format!("wrong: {}", String::from_utf8_lossy(&body[..body.len().min(300)])))
                    }
                    Err(e) => {
                        tally.wrong(format!("{e:#}"));
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            tally
        }));
    }
    let mut all = Tally::default();
    for worker in workers {
        all.add(worker.await?);
    }
    let mut line = all.figures(start.elapsed().as_secs_f64());
    line["bytes"] = json!(whole);
    println!("{line}");
    if all.faults > 0 {
        bail!("{} wrong answers", all.faults)
    }
    Ok(())
}
