//! What there is to be known of the granted folders at a glance: where they are, and what is checked out there.

use std::{io::Read, path::Path};

use prism_core::policy::Refusal;
use prism_os::root::Root;
use serde_json::{Value, json};

use crate::{
    Shown,
    args::Args,
    ground::{Ground, place},
    prepared::Work,
};

pub(crate) fn info(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let path = args.maybe_text("path")?;
    args.done()?;
    let folders = match path {
        Some(path) => vec![(ground.way(&path)?.folder(), path)],
        None => {
            let folder = |root| ground.root(root).and_then(|way| way.folder());
            ground.roots().iter().map(|root| (folder(root), root.to_string())).collect()
        }
    };
    let work = Work::new(move |_| {
        let roots: Vec<Value> = folders.iter().map(|(folder, name)| about(folder.as_ref(), name)).collect();
        Ok(json!({ "roots": roots }))
    });
    Ok((Shown::plain("Look at the granted folders"), work))
}

fn about(folder: Result<&Root, &Refusal>, name: &str) -> Value {
    match folder {
        Ok(folder) => json!({ "path": place(folder, name), "is_there": true, "git": git(folder) }),
        Err(refusal) => json!({ "path": name, "is_there": false, "why": refusal.message, "git": null }),
    }
}

/// What is checked out; nothing where there is no repository, or where it lies out of the granted folder, as that of a linked
/// work tree does.
fn git(folder: &Root) -> Value {
    let Some(head) = first_line(folder, ".git/HEAD") else {
        let is_linked = first_line(folder, ".git").is_some_and(|line| line.starts_with("gitdir: "));
        return if is_linked { json!({ "branch": null, "commit": null }) } else { Value::Null };
    };
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => json!({ "branch": branch, "commit": null }),
        None if is_hash(&head) => json!({ "branch": null, "commit": head }),
        None => Value::Null,
    }
}

/// A file that git keeps one line in is shorter than this.
const MAX_LINE: u64 = 4096;

fn first_line(folder: &Root, path: &str) -> Option<String> {
    let file = folder.open_file(Path::new(path)).ok()?;
    let mut text = String::new();
    file.take(MAX_LINE).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
