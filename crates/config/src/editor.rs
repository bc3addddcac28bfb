//! Settings of the built-in editor, `[editor]`. Where the user's home is, and which program this is, stands in no file: the
//! daemon adds it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// What the built-in editor may run and reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Editor {
    /// Whether the kernel keeps commands, builds, terminals and language servers to the granted folders.
    pub fence: bool,
    /// What they may read, and write, beside the usual.
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Language servers by LSP's name of the language. No words: none for it. Where nothing is said, the usual ones are
    /// looked for.
    pub servers: BTreeMap<String, Vec<String>>,
    /// Whether language servers may run what the project brings: build scripts, macros, its own compiler.
    pub runs_project_code: bool,
    /// How long a language server that nobody asks is kept.
    pub idle_server: Duration,
    /// Bytes of memory that a run may hold, with all that it starts; three quarters of the machine's if `None`.
    pub max_memory: Option<u64>,
    /// Bytes that the runs of one grant may write outside of the granted folders.
    pub max_scratch: u64,
}

impl Default for Editor {
    fn default() -> Self {
        Self {
            fence: true,
            readable: Vec::new(),
            writable: Vec::new(),
            servers: BTreeMap::new(),
            runs_project_code: false,
            idle_server: Duration::from_secs(600),
            max_memory: None,
            max_scratch: 8 << 30,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use crate::{
        Config, Env, Flags,
        raw::{RawConfig, keys::EDITOR_KEYS},
        tests::{config_in, keys_in},
    };

    use super::*;

    fn read(text: &str) -> Config {
        config_in(text, &Env::from([("HOME", "/home/me")]), &Flags::default()).unwrap()
    }

    fn refused(text: &str) -> String {
        config_in(text, &Env::default(), &Flags::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_setting_has_its_place() {
        let text = r#"
            [editor]
            fence = false
            readable = ["/opt/sdk", "~/data"]
            writable = ["/var/cache/sdk"]
            runs_project_code = true
            idle_server = "1m"
            max_memory = "4GiB"
            max_scratch = "2GiB"
            [editor.servers]
            python = ["pylsp", "-v"]
            go = []
        "#;
        let servers = [("go".to_owned(), vec![]), ("python".to_owned(), vec!["pylsp".to_owned(), "-v".to_owned()])];
        let editor = Editor {
            fence: false,
            readable: vec!["/opt/sdk".into(), "/home/me/data".into()],
            writable: vec!["/var/cache/sdk".into()],
            servers: BTreeMap::from(servers),
            runs_project_code: true,
            idle_server: Duration::from_secs(60),
            max_memory: Some(4 << 30),
            max_scratch: 2 << 30,
        };
        assert_eq!(read(text).editor, editor);
        assert_eq!(read("").editor, Editor::default());
    }

    #[test]
    fn what_is_not_said_keeps_everything_within_the_fence() {
        let editor = Editor::default();
        assert!(editor.fence && !editor.runs_project_code);
        assert_eq!(editor.idle_server, Duration::from_secs(600));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        let error = refused("[editor]\nfence = \"yes\"");
        assert!(error.contains("editor.fence is \"yes\", not true or false"), "{error}");
        let error = refused("[editor]\nreadable = \"/opt\"");
        assert!(error.contains("fix: readable = [\"/opt\"]"), "{error}");
        let error = refused("[editor]\nidle_server = 0");
        assert!(error.contains("editor.idle_server is 0, not longer than nothing"), "{error}");
        let error = refused("[editor.servers]\npyton = [\"pylsp\"]");
        assert!(error.contains("\"pyton\"") && error.contains("did you mean \"python\"?"), "{error}");
        let error = refused("[editor.servers]\npython = \"pylsp -v\"");
        assert!(error.contains("fix: python = [\"pylsp\", \"-v\"]"), "{error}");
        let error = refused("[editor]\nfnce = true");
        assert!(error.contains("did you mean \"fence\"?"), "{error}");
    }

    #[test]
    fn the_environment_can_say_it_too() {
        let read = |env: Env| config_in("", &env, &Flags::default()).unwrap().editor;
        assert!(!read(Env::from([("PRISM_EDITOR_FENCE", "off")])).fence);
        let both = read(Env::from([("PRISM_EDITOR_READABLE", "/a,/b")])).readable;
        assert_eq!(both, [PathBuf::from("/a"), PathBuf::from("/b")]);
    }

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = toml::from_str::<RawConfig>("editor.zzz = 1").unwrap_err();
        assert_eq!(keys_in(error.message()), EDITOR_KEYS);
    }
}
