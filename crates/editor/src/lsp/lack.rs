//! What rust-analyzer says that it could not load, and what of its words is still true then. Without the standard library or
//! the packages that a project depends on it answers all the same, and what it cannot find looks like an error of the
//! project's.

use serde_json::Value;

/// What stands in the status that it tells, and what that means to who asks.
const LACKS: [(&str, &str); 4] = [
    (
        "can't load standard library",
        "rust-analyzer finds no sources of the standard library, so all but syntax errors are left out; type `rustup component \
         add rust-src`, then restart it with manage_plugins",
    ),
    (
        "Failed to read Cargo metadata with dependencies for sysroot of",
        "rust-analyzer cannot load the standard library: packages that it is made of are not in cargo's cache, and nothing is \
         fetched for an analysis, so all but syntax errors are left out; type `RUSTC_BOOTSTRAP=1 cargo fetch --locked \
         --manifest-path \"$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.toml\"`, then restart it with \
         manage_plugins",
    ),
    (
        "Failed to read Cargo metadata with dependencies for `",
        "rust-analyzer cannot load the packages that this project depends on: nothing is fetched for an analysis, so all but \
         syntax errors are left out; type `cargo fetch` in the project, then restart it with manage_plugins",
    ),
    (
        "Failed to load workspaces",
        "rust-analyzer cannot load this project, so all but syntax errors are left out; `cargo metadata` in the project says \
         why",
    ),
];

/// What a server lacks by its own words.
pub(super) fn of(status: &str) -> Vec<&'static str> {
    LACKS.iter().filter(|(sign, _)| status.contains(sign)).map(|(_, note)| *note).collect()
}

/// Whether it can know this of a text although it lacks something: how it is written, or what the compiler has said.
pub(super) fn is_certain(item: &Value) -> bool {
    item["source"] != "rust-analyzer" || item["code"] == "syntax-error"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // in rust-analyzer 1.95's words.
    #[test]
    fn a_status_tells_what_is_lacking_and_what_to_type() {
        let sources = "Workspace `/p/Cargo.toml` has sysroot errors: can't load standard library from sysroot\n/t\n(discovered \
                       via `rustc --print sysroot`)\ntry installing `rust-src` the same way you installed `rustc`";
        assert!(of(sources)[0].contains("`rustup component add rust-src`"));
        let std =
            "Failed to read Cargo metadata with dependencies for sysroot of `/p/Cargo.toml`: `cargo metadata` exited";
        assert!(matches!(&of(std)[..], [note] if note.contains("cargo fetch --locked")));
        let own = "Failed to read Cargo metadata with dependencies for `/p/Cargo.toml`: `cargo metadata` exited";
        assert!(matches!(&of(own)[..], [note] if note.contains("`cargo fetch`")));
        assert!(of("Failed to run build scripts of some packages.").is_empty() && of("").is_empty());
    }

    #[test]
    fn what_the_text_alone_shows_stays_certain() {
        let item = |source: &str, code: &str| json!({ "source": source, "code": code });
        assert!(is_certain(&item("rust-analyzer", "syntax-error")) && is_certain(&item("rustc", "E0599")));
        assert!(!is_certain(&item("rust-analyzer", "E0599")));
    }
}
