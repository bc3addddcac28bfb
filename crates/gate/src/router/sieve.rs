//! What of an editor's words an agent may read. An editor has more open than a grant is about: whatever in a result is about
//! a file outside of the granted folders is taken out here, whoever sent it.

use std::path::Path;

use prism_core::policy::{Code, GrantRoot, Refusal};
use prism_editor::protocol::as_path;
use serde_json::{Map, Value};

/// Whether a path is in one of the folders, by its name.
pub(super) fn is_granted(roots: &[GrantRoot], path: &Path) -> bool {
    roots.iter().any(|root| path.starts_with(root.to_string()))
}

/// Takes out of a result what is about other folders. A result that is itself about one is refused.
pub(super) fn sifted(mut result: Value, roots: &[GrantRoot]) -> Result<Value, Refusal> {
    if sift(&mut result, roots) {
        return Ok(result);
    }
    Err(Refusal::new(Code::OutsideRoot, "what the editor shows there is in none of the granted folders"))
}

/// Returns whether the value may stay.
fn sift(value: &mut Value, roots: &[GrantRoot]) -> bool {
    match value {
        Value::Array(all) => {
            all.retain_mut(|one| sift(one, roots));
            true
        }
        Value::Object(members) => {
            if !members.values().any(is_compound) && !members.contains_key("path") {
                return true;
            }
            let is_outside = is_outside(members, roots);
            // Where something is defined may be told; what stands there may not.
            if is_outside && members.contains_key("is_granted") {
                members.retain(|name, _| matches!(name.as_str(), "path" | "range"));
                members.insert("is_granted".to_owned(), false.into());
                return true;
            }
            if is_outside {
                return false;
            }
            if members.contains_key("is_granted") {
                members.insert("is_granted".to_owned(), true.into());
            }
            members.retain(|_, one| !is_compound(one) || sift(one, roots));
            true
        }
        _ => true,
    }
}

fn is_compound(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn is_outside(members: &Map<String, Value>, roots: &[GrantRoot]) -> bool {
    let path = |name: &str| members.get(name).and_then(Value::as_str);
    let named = ["path", "new_path", "cwd", "root"].into_iter().filter_map(path);
    // A relative name is one beneath the folder that was asked about.
    let mut absolute = named.filter(|path| path.starts_with('/') || path.contains("://"));
    absolute.any(|path| !as_path(path).is_some_and(|path| is_granted(roots, &path)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sifted_in(result: Value) -> Result<Value, Code> {
        sifted(result, &[GrantRoot::new("/w").unwrap()]).map_err(|refusal| refusal.code)
    }

    //
    #[test]
    fn what_is_about_another_folder_is_taken_out() {
        let result = json!({"buffers": [
            {"path": "/w/a", "version": 1},
            {"path": "/w2/secret", "version": 1},
            {"path": "/w/../etc/passwd"},
            {"path": "vscode-scm://git/x"},
            {"path": "file:///w/b"},
            {"path": "/home/me/.ssh/id", "text": "key"},
        ], "ui": true, "active": {"path": "/etc/passwd", "text": "root"}, "n": [1, [2]]});
        let expected =
            json!({"buffers": [{"path": "/w/a", "version": 1}, {"path": "file:///w/b"}], "ui": true, "n": [1, [2]]});
        assert_eq!(sifted_in(result), Ok(expected));
        assert_eq!(sifted_in(json!({"path": "/etc/passwd", "content": "root"})), Err(Code::OutsideRoot));
        assert_eq!(sifted_in(json!({"path": "src/a.rs"})), Ok(json!({"path": "src/a.rs"})));
    }

    #[test]
    fn where_something_is_defined_is_told_but_not_what_stands_there() {
        let result = json!({"locations": [
            {"path": "/usr/lib/std.rs", "range": {}, "line_text": "pub fn", "is_granted": true},
            {"path": "/w/a.rs", "range": {}, "line_text": "fn a", "is_granted": false},
        ]});
        let expected = json!({"locations": [
            {"path": "/usr/lib/std.rs", "range": {}, "is_granted": false},
            {"path": "/w/a.rs", "range": {}, "line_text": "fn a", "is_granted": true},
        ]});
        assert_eq!(sifted_in(result), Ok(expected));
    }
}
