//! Prism's hooks in the programs that have such: what is written where, and how it is known again. What a hook does when
//! it runs is in `prism::cli`.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    ConfigFile, InstallError,
    change::{ChangeState, FileChange, is_contained, undo},
    document::{ConfigLanguage, ConfigText, Container},
    jsonc::EmptyObjectRule,
    node::ConfigNode,
    record::{ChangePurpose, ChangeRecords, RecordedEdit},
    surface::Surface,
};

/// How long a program waits for a hook that only asks something, in seconds.
const ASKS_S: u64 = 10;
/// How long one that waits for the bell may wait: a week, after which the end of the next turn arms another.
const WAITS_S: u64 = 7 * 24 * 60 * 60;

/// Plans Prism's hooks in a surface's file. `command` is how `prism` is started there, as a shell reads it.
pub fn install(
    surface: Surface,
    path: PathBuf,
    command: &str,
    loop_limit: u64,
    records: &ChangeRecords,
) -> Result<FileChange, InstallError> {
    let file = ConfigFile::open(&path)?;
    let in_file = |source| InstallError::Edit { path: path.clone(), source };
    let mut after = file.text().to_owned();
    let mut edits = Vec::new();
    let mut state = ChangeState::Unchanged;
    // Cursor reads no file that does not say which version it is.
    let versioned = ConfigText::new(ConfigLanguage::Json, &after).value().map_err(in_file)?.get("version").is_some();
    if surface == Surface::Cursor && !versioned {
        after = ConfigText::new(ConfigLanguage::Json, &after)
            .insert(&[], "version", &ConfigNode::Other(1.into()))
            .map_err(in_file)?;
        edits.push(RecordedEdit::Added { container: Vec::new(), name: "version".to_owned() });
        state = ChangeState::Added;
    }
    for (event, node) in hooks(surface, command, loop_limit) {
        let list = list(event);
        let text = ConfigText::new(ConfigLanguage::Json, &after);
        let found = text.items(&list).map_err(in_file)?;
        let known = found.iter().find(|item| is_ours(item));
        if known.is_some_and(|known| is_contained(&node, known)) {
            continue;
        }
        state = if known.is_some() { ChangeState::Updated } else { ChangeState::Added };
        after = text.put_item(&list, &node, is_ours).map_err(in_file)?;
        edits.push(RecordedEdit::Hooked { list });
    }
    match state {
        ChangeState::Unchanged => Ok(FileChange::nothing(file)),
        state => {
            let name = Some(surface.name());
            FileChange::edited_in(
                ConfigLanguage::Json,
                file,
                after,
                state,
                ChangePurpose::Install,
                name,
                edits,
                records,
            )
        }
    }
}

/// Plans that Prism's hooks go.
pub fn uninstall(surface: Surface, path: PathBuf, records: &ChangeRecords) -> Result<FileChange, InstallError> {
    if let Some(record) = records.find(ChangePurpose::Install, &path) {
        return undo(record);
    }
    let file = ConfigFile::open(&path)?;
    let mut after = file.text().to_owned();
    for (event, _) in hooks(surface, "", 0).into_iter().rev() {
        let gone = ConfigText::new(ConfigLanguage::Json, &after).remove_items(
            &list(event),
            is_ours,
            EmptyObjectRule::GoesIfOurs,
        );
        after = gone.map_err(|source| InstallError::Edit { path: path.clone(), source })?;
    }
    match after == file.text() {
        true => Ok(FileChange::nothing(file)),
        false => FileChange::removed(file, after),
    }
}

/// Whether an element of a list of hooks is ours: it runs `prism wait --hook`, and nothing else.
pub(super) fn is_ours(item: &Value) -> bool {
    let ours = |hook: &Value| hook["command"].as_str().is_some_and(is_our_command);
    match item.get("hooks").and_then(Value::as_array) {
        Some(hooks) => !hooks.is_empty() && hooks.iter().all(ours),
        None => ours(item),
    }
}

fn is_our_command(command: &str) -> bool {
    let Some((program, _)) = command.split_once(" wait --hook ") else { return false };
    let program = program.trim_end_matches('\'').rsplit(['/', ' ', '\'']).next();
    program == Some("prism")
}

fn list(event: &str) -> Container {
    vec!["hooks".to_owned(), event.to_owned()]
}

/// The hooks of a surface: the event, and the element of its list.
fn hooks(surface: Surface, command: &str, loop_limit: u64) -> Vec<(&'static str, ConfigNode)> {
    let run = |hook: &str| ("command", ConfigNode::Text(format!("{command} wait --hook {hook}")));
    let number = |number: u64| ConfigNode::Other(number.into());
    let yes = || ConfigNode::Other(true.into());
    let asks =
        |hook: &str| ConfigNode::table([("type", ConfigNode::text("command")), run(hook), ("timeout", number(ASKS_S))]);
    let waits = |hook: &str| {
        ConfigNode::table([
            ("type", ConfigNode::text("command")),
            run(hook),
            ("async", yes()),
            ("asyncRewake", yes()),
            ("timeout", number(WAITS_S)),
        ])
    };
    let group = |hooks: Vec<ConfigNode>| ConfigNode::table([("hooks", ConfigNode::Items(hooks))]);
    match surface {
        Surface::ClaudeCode => vec![
            ("SessionStart", group(vec![asks("claude-start"), waits("claude-rewake")])),
            ("Stop", group(vec![waits("claude-rewake"), asks("claude-stop")])),
        ],
        Surface::Codex => {
            vec![("SessionStart", group(vec![asks("codex-start")])), ("Stop", group(vec![asks("codex-stop")]))]
        }
        Surface::Cursor => {
            let stop = [run("cursor-stop"), ("timeout", number(ASKS_S)), ("loop_limit", number(loop_limit))];
            vec![("stop", ConfigNode::table(stop))]
        }
        _ => Vec::new(),
    }
}
