//! What came of git's verbs as a person would read it, for those who watch.

use serde_json::Value;

/// Entries of a picture. Of more it says how many.
const MAX_LINES: usize = 100;

/// Draws the answer of a verb.
pub(super) fn draw(answer: &Value) -> String {
    if let Some(diff) = answer["diff"].as_str() {
        return diff.to_owned();
    }
    let folder = answer["path"].as_str().unwrap_or_default();
    let mut lines = vec![head(answer)];
    let listed = ["branches", "entries", "files"].into_iter().find_map(|name| answer[name].as_array());
    let listed = listed.map_or(&[][..], Vec::as_slice);
    lines.extend(listed.iter().take(MAX_LINES).map(|one| line(one, folder)));
    if listed.len() > MAX_LINES {
        lines.push(format!("… and {} more", listed.len() - MAX_LINES));
    }
    lines.join("\n")
}

/// What is checked out, and what was committed.
fn head(answer: &Value) -> String {
    let branch = answer["branch"].as_str().unwrap_or("no branch");
    let short = |commit: &str| commit.chars().take(7).collect::<String>();
    match answer["commit"].as_str().map(short) {
        Some(commit) => format!("{branch} {commit}"),
        None => branch.to_owned(),
    }
}

fn line(one: &Value, folder: &str) -> String {
    if let Some(name) = one["name"].as_str() {
        return format!("{} {name}", if one["is_current"] == true { '*' } else { ' ' });
    }
    let path = one["path"].as_str().unwrap_or_default();
    let path = path.strip_prefix(folder).map_or(path, |rest| rest.trim_start_matches('/'));
    match (one["added"].as_u64(), one["removed"].as_u64()) {
        (Some(added), Some(removed)) => format!("  {path} | +{added} -{removed}"),
        _ => {
            let [index, worktree] = ["index", "worktree"].map(|name| one[name].as_str().unwrap_or("-"));
            format!("  {index:<12} {worktree:<12} {path}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_of_a_verb_is_drawn() {
        let entries = json!([{"path": "/w/a.rs", "index": "modified", "worktree": null}]);
        for (answer, expected) in [
            (
                json!({"path": "/w", "branch": "main", "commit": "0123456789", "entries": entries}),
                "main 0123456\n  modified     -            a.rs",
            ),
            (
                json!({"path": "/w", "branch": "main", "commit": "0123456789", "files": [{"path": "/w/b/c", "added": 1, "removed": 2}]}),
                "main 0123456\n  b/c | +1 -2",
            ),
            (
                json!({"path": "/w", "branch": "main", "branches": [{"name": "main", "is_current": true}, {"name": "side"}]}),
                "main\n* main\n  side",
            ),
            (json!({"path": "/w", "diff": "--- a\n+++ b\n"}), "--- a\n+++ b\n"),
        ] {
            assert_eq!(draw(&answer), expected);
        }
    }
}
