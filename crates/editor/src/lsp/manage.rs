//! manage_plugins, the part that is about language servers: which there are, how they are, and to stop them or start them anew.

use std::path::Path;

use serde_json::{Value, json};

use super::catalogue;
use crate::{
    args::{Args, wrong},
    language::SourceLanguage,
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
};

pub(crate) fn manage(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let what = args.maybe_text("do")?.unwrap_or_else(|| "list".to_owned());
        let language = args.maybe_text("language")?;
        args.done()?;
        if !matches!(what.as_str(), "list" | "stop" | "restart") {
            return Err(wrong(format!("`do` is \"list\", \"stop\" or \"restart\", not {what:?}")));
        }
        let known = catalogue::languages(context.state.servers.settings());
        if let Some(language) = language.as_deref().filter(|asked| !known.iter().any(|known| known.id() == *asked)) {
            let known: Vec<&str> = known.iter().map(|language| language.id()).collect();
            return Err(wrong(format!("`language` is one of {}, not {language:?}", known.join(", "))));
        }
        let title = match &what[..] {
            "list" => "Look at the language servers".to_owned(),
            what => format!("{} the language servers", if what == "stop" { "Cancellation" } else { "Restart" }),
        };
        let only_looks = what == "list";
        let work = Work::task(move |_| async move {
            let servers = &context.state.servers;
            let is_within = |folder: &Path| context.roots.holds(folder);
            if what != "list" {
                let stopped = servers.stop(language.as_deref(), is_within).await;
                if what == "restart" {
                    servers.start_again(&context, stopped).await;
                }
            }
            let mut told = servers.list(is_within);
            let its = context.clone();
            let running: Vec<Value> = told.iter().map(|server| server["language"].clone()).collect();
            let asked = language.clone();
            let others = move |_: &crate::state::Cancellation| Ok(others(&its, &running, asked.as_deref()));
            told.extend(context.state.editor.blocking(others).await?);
            if let Some(language) = &language {
                told.retain(|server| server["language"] == language.as_str());
            }
            Ok(json!({ "servers": told, "plugins": [] }))
        });
        Ok((ActionPreview::plain(title), if only_looks { work.looking() } else { work }))
    })
}

/// The languages, or the one, whose server was not asked anything yet: whether there is one that can work.
fn others(context: &LspContext, running: &[Value], asked: Option<&str>) -> Vec<Value> {
    let Some(root) = context.roots.names().first().map(ToString::to_string) else { return Vec::new() };
    let root = Path::new(&root);
    let idle = catalogue::languages(context.state.servers.settings()).into_iter();
    let is_told = |language: &SourceLanguage| {
        asked.is_none_or(|asked| asked == language.id()) && !running.iter().any(|running| running == language.id())
    };
    let told = idle.filter(is_told).map(|language| {
        let choice = context.state.servers.choose(context, language, root, root);
        let (command, state, why) = match choice {
            Ok(choice) => (Some(choice.command), "not_started", None),
            Err(refusal) => (None, "not_found", Some(refusal.message)),
        };
        json!({
            "language": language.id(), "root": root, "command": command, "state": state, "pid": null, "restarts": 0,
            "why": why,
        })
    });
    told.collect()
}
