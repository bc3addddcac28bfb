//! get_errors. Diagnostics are told with the version that they are about: servers need time, and an empty list must not look
//! like "no errors" before anybody has looked. Servers that can be asked for them are asked; of others it is waited for.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use prism_core::policy::Refusal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    client::LspClient,
    conversation::LspFault,
    known::{Diagnosed, ServerFacts},
    site::{Ability, Site, ready},
};
use crate::{
    args::Args,
    lsp::LspContext,
    prepared::{Doing, Work},
    progress::ProgressSink,
    shown::ActionPreview,
};

/// How long is waited for diagnostics of the text as it is, if nothing else is said, and at most.
const USUAL_WAIT: u64 = 10_000;
const LONGEST_WAIT: u64 = 60_000;

/// What preparations and the answer itself may take beyond the wait.
const REST: Duration = Duration::from_secs(10);

/// Diagnostics of all files in one answer. Of more the answer says that it is not complete.
const MAX_TOLD: usize = 5_000;

const DIAGNOSTIC: Ability =
    Ability { capability: "diagnosticProvider", method: "textDocument/diagnostic", what: "tell errors" };

pub(crate) fn errors(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.maybe_text("path")?;
        let wait = Duration::from_millis(args.number("wait_ms", 0, LONGEST_WAIT)?.unwrap_or(USUAL_WAIT));
        args.done()?;
        let Some(path) = path else {
            let work = Work::task(move |_| async move { Ok(all(&context, Instant::now() + wait).await) });
            return Ok((ActionPreview::plain("Look at the errors of all projects"), work.within(wait + REST)));
        };
        let site = Site::open(context, path).await?;
        let title = format!("Look at the errors of {}", site.path().display());
        let work = Work::task(move |progress| async move { of_file(&site, Instant::now() + wait, &progress).await });
        Ok((ActionPreview::plain(title), work.within(wait + REST)))
    })
}

async fn of_file(site: &Site, until: Instant, progress: &ProgressSink) -> Result<Value, Refusal> {
    let mut has_died = false;
    let client = loop {
        let client = site.client().await?;
        match fetch(site, &client, until, progress).await {
            Err(LspFault::Gone(_)) if !has_died => has_died = true,
            // Whatever is known by now is told, with what it is about.
            Ok(()) | Err(LspFault::TimedOut) => break client,
            Err(fault) => return Err(site.refusal(fault, Some(DIAGNOSTIC))),
        }
    };
    let version = site.snapshot().version;
    let (diagnosed, is_busy, note) =
        client.known.read(|facts| (facts.of(site.path()), facts.busy_with().is_some(), facts.note()));
    let analyzed = diagnosed.as_ref().and_then(|diagnosed| diagnosed.version);
    let is_cut = diagnosed.as_ref().is_some_and(|diagnosed| diagnosed.is_cut);
    let diagnostics: Vec<Value> = diagnosed.iter().flat_map(diagnostics_json).collect();
    Ok(json!({
        "diagnostics": diagnostics,
        "version": version,
        "analyzed_version": analyzed,
        "is_complete": analyzed == Some(version) && !is_busy && !is_cut && client.sees_all(),
        "server": site.server_json(&client),
        "note": note,
    }))
}

/// Brings what is known of the file up to its text, as far as that goes until then.
pub(super) async fn fetch(
    site: &Site,
    client: &LspClient,
    until: Instant,
    progress: &ProgressSink,
) -> Result<(), LspFault> {
    ready(client, until).await?;
    let is_asked = |facts: &ServerFacts| facts.offers(DIAGNOSTIC.capability, DIAGNOSTIC.method);
    loop {
        // Some servers say only after a while that they want to be asked.
        if client.known.read(is_asked) {
            return pull(site, client, until, progress).await;
        }
        let version = site.snapshot().version;
        let number = client.freshen(site.documents(client), site.path().to_owned(), until).await?;
        say(client, progress);
        let heard = |facts: &ServerFacts| match facts.phase.end() {
            Some(reason) => Some(Err(LspFault::Gone(reason.to_owned()))),
            None if is_asked(facts) => Some(Ok(false)),
            None if facts.pushed_number(site.path()) >= Some(number) && facts.busy_with().is_none() => Some(Ok(true)),
            None => None,
        };
        let has_told = client.known.wait(until, heard).await.unwrap_or(Err(LspFault::TimedOut))?;
        if has_told {
            client.has_told();
        }
        if has_told && site.snapshot().version == version {
            return Ok(());
        }
    }
}

async fn pull(site: &Site, client: &LspClient, until: Instant, progress: &ProgressSink) -> Result<(), LspFault> {
    let identifier = client.known.read(|facts| facts.option(DIAGNOSTIC.capability, DIAGNOSTIC.method, "identifier"));
    let mut params = json!({ "textDocument": site.document_id() });
    if !identifier.is_null() {
        params["identifier"] = identifier;
    }
    loop {
        let answer = site.ask_once(client, DIAGNOSTIC.method, &params, until).await?;
        let about = client.known.read(|facts| facts.pulled_version(site.path()));
        let is_current = about == Some(site.snapshot().version);
        if is_current && !answer.was_busy {
            return Ok(());
        }
        if is_current {
            // It has answered with what it had loaded; when it has the rest, it is asked again.
            say(client, progress);
            let quiet =
                |facts: &ServerFacts| (facts.busy_with().is_none() || facts.phase.end().is_some()).then_some(());
            client.known.wait(until, quiet).await.ok_or(LspFault::TimedOut)?;
        }
    }
}

fn say(client: &LspClient, progress: &ProgressSink) {
    if let Some(busy) = client.known.read(ServerFacts::busy_with) {
        progress.say(&format!("the language server is busy: {busy}"), None, None);
    }
}

/// All that is known of what was granted. Nothing is started for it.
async fn all(context: &LspContext, until: Instant) -> Value {
    let running = context.state.servers.running();
    let clients: Vec<&Arc<LspClient>> = running.iter().map(|(_, _, client)| client).collect();
    let quiet = |facts: &ServerFacts| (facts.busy_with().is_none() || facts.phase.end().is_some()).then_some(());
    let (mut told_all, mut is_complete, mut names) = (Vec::new(), !clients.is_empty(), Vec::new());
    let mut notes: BTreeSet<String> = BTreeSet::new();
    for (key, kind, client) in &running {
        if !context.roots.holds(&key.folder) {
            // What a wider grant has found out here is this one's too, as far as it is about its files.
            let has_any = client.known.read(|facts| facts.all().any(|file| context.roots.holds(&file.path)));
            if !has_any {
                continue;
            }
        }
        names.push(kind.name);
        is_complete &= client.known.wait(until, quiet).await.is_some();
        is_complete &= client.known.read(|facts| !facts.is_cut) && client.sees_all();
        notes.extend(client.known.read(ServerFacts::note));
        let files: Vec<Diagnosed> = client.known.read(|facts| facts.all().collect());
        for file in files.iter().filter(|file| context.roots.holds(&file.path)) {
            let now = context.state.text.buffers.at(&file.path).map(|buffer| buffer.snapshot().version);
            is_complete &= !file.is_cut && (now.is_none() || now == file.version);
            told_all.extend(diagnostics_json(file));
        }
    }
    is_complete &= told_all.len() <= MAX_TOLD && !names.is_empty();
    told_all.truncate(MAX_TOLD);
    let note = notes.into_iter().reduce(|all, next| format!("{all}; {next}"));
    json!({
        "diagnostics": told_all, "version": null, "analyzed_version": null, "is_complete": is_complete, "server": names,
        "note": note,
    })
}

fn diagnostics_json(file: &Diagnosed) -> impl Iterator<Item = Value> {
    file.items.iter().map(|item| {
        json!({
            "path": file.path,
            "range": item["range"],
            "severity": severity(item),
            "message": item["message"],
            "source": item["source"],
            "code": item["code"],
        })
    })
}

pub(super) fn severity(item: &Value) -> &'static str {
    match item["severity"].as_u64() {
        Some(2) => "warning",
        Some(3) => "information",
        Some(4) => "hint",
        _ => "error",
    }
}
