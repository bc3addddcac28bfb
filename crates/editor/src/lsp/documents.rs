//! Which texts a server has, and how it is told of others. The buffers' versions are ours; towards a server each text has a
//! number of its own that fits what LSP has for it.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;

use super::{message, uri};

/// A text as it is in its buffer.
#[derive(Clone, Debug)]
pub(crate) struct LspDocument {
    pub(crate) path: PathBuf,
    /// LSP's name of its language.
    pub(crate) language: &'static str,
    pub(crate) version: u64,
    pub(crate) text: Arc<str>,
}

/// The texts that one server has open.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<PathBuf, OpenDocument>,
    last_number: i32,
    /// Counts what the server was told that may have changed what it thinks of any text.
    news: u64,
}

#[derive(Debug)]
struct OpenDocument {
    version: u64,
    /// The numbers that it was sent under, and the versions they stand for; the last is what the server has.
    numbers: VecDeque<(i32, u64)>,
    /// The news when it was last sent.
    news: u64,
}

/// Texts that a server has open. For a further one the one that was sent longest ago is closed.
const MAX_OPEN: usize = 256;

/// Numbers that are remembered of a text. What a server says of an older one is about no text that anybody remembers.
const MAX_NUMBERS: usize = 32;

impl Documents {
    /// Has the server hold the text as it is in the buffer, or as a later one that it was sent already.
    pub(crate) fn sync(&mut self, out: &mut Vec<u8>, document: &LspDocument) {
        let uri = uri::of(&document.path);
        if let Some(open) = self.open.get_mut(&document.path) {
            // A version never comes twice and only grows, so an older one is a text that has been overtaken.
            if document.version <= open.version {
                return;
            }
            self.last_number += 1;
            self.news += 1;
            open.is_now(self.last_number, document.version, self.news);
            let text = json!({ "uri": uri, "version": self.last_number });
            let params = json!({ "textDocument": text, "contentChanges": [{ "text": &*document.text }] });
            return message::tell(out, "textDocument/didChange", &params);
        }
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.number()).map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                self.close(out, &oldest);
            }
        }
        self.last_number += 1;
        self.news += 1;
        let mut open = OpenDocument { version: 0, numbers: VecDeque::new(), news: 0 };
        open.is_now(self.last_number, document.version, self.news);
        self.open.insert(document.path.clone(), open);
        let language = document.language;
        let item = json!({ "uri": uri, "languageId": language, "version": self.last_number, "text": &*document.text });
        message::tell(out, "textDocument/didOpen", &json!({ "textDocument": item }));
    }

    /// Has the server look at a text again if it has heard of anything else since: under a new number it has to say what it
    /// thinks of it by now. For servers that cannot be asked.
    pub(crate) fn freshen(&mut self, out: &mut Vec<u8>, document: &LspDocument) {
        let Some(open) = self.open.get_mut(&document.path) else { return };
        if open.news == self.news || open.version != document.version {
            return;
        }
        self.last_number += 1;
        open.is_now(self.last_number, document.version, self.news);
        let text = json!({ "uri": uri::of(&document.path), "version": self.last_number });
        // The last is clangd's: it does nothing for a text that is the same.
        let params = json!({
            "textDocument": text, "contentChanges": [{ "text": &*document.text }], "forceRebuild": true,
        });
        message::tell(out, "textDocument/didChange", &params);
    }

    /// The server was told of something else.
    pub(crate) fn has_news(&mut self) {
        self.news += 1;
    }

    /// Returns whether it was open.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>, path: &Path) -> bool {
        let was_open = self.open.remove(path).is_some();
        if was_open {
            self.news += 1;
            message::tell(out, "textDocument/didClose", &json!({ "textDocument": { "uri": uri::of(path) } }));
        }
        was_open
    }

    /// The texts, with the numbers that they have now.
    pub(crate) fn numbers(&self) -> BTreeMap<PathBuf, i32> {
        self.open.iter().map(|(path, open)| (path.clone(), open.number())).collect()
    }

    /// The version of the text that the server has.
    pub(crate) fn version(&self, path: &Path) -> Option<u64> {
        self.open.get(path).map(|open| open.version)
    }

    /// The number of the text that the server has.
    pub(crate) fn number(&self, path: &Path) -> Option<i32> {
        self.open.get(path).map(OpenDocument::number)
    }

    /// The version that a number stands for.
    pub(crate) fn version_of(&self, path: &Path, number: i64) -> Option<u64> {
        let numbers = &self.open.get(path)?.numbers;
        numbers.iter().find(|(known, _)| i64::from(*known) == number).map(|(_, version)| *version)
    }
}

impl OpenDocument {
    fn is_now(&mut self, number: i32, version: u64, news: u64) {
        self.news = news;
        if self.numbers.len() == MAX_NUMBERS {
            self.numbers.pop_front();
        }
        self.numbers.push_back((number, version));
        self.version = version;
    }

    fn number(&self) -> i32 {
        self.numbers.back().map_or(0, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(version: u64) -> LspDocument {
        LspDocument { path: "/a.rs".into(), language: "rust", version, text: format!("{version}").into() }
    }

    fn sent(out: &mut Vec<u8>) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(out)).unwrap();
        let bodies = text.split("Content-Length: ").skip(1).map(|frame| frame.split_once("\r\n\r\n").unwrap().1);
        let method = |body: &str| {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            body["method"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned()
        };
        bodies.map(method).collect()
    }

    #[test]
    fn a_text_is_sent_once_and_never_an_older_one_after_a_newer() {
        let (mut documents, mut out) = (Documents::default(), Vec::new());
        for version in [5, 5, 9, 7, 9] {
            documents.sync(&mut out, &text(version));
        }
        assert_eq!(sent(&mut out), ["didOpen", "didChange"]);
        let path = Path::new("/a.rs");
        assert_eq!((documents.version(path), documents.version_of(path, 1)), (Some(9), Some(5)));
        assert_eq!((documents.version_of(path, 2), documents.version_of(path, 3)), (Some(9), None));
        assert!(documents.close(&mut out, path) && !documents.close(&mut out, path));
        documents.sync(&mut out, &text(11));
        assert_eq!(sent(&mut out), ["didClose", "didOpen"]);
        assert_eq!(
            documents.version_of(path, 2),
            None,
            "what it says of the text before is about no text that is open"
        );
    }

    #[test]
    fn a_text_is_sent_again_only_if_there_was_other_news() {
        let (mut documents, mut out) = (Documents::default(), Vec::new());
        documents.sync(&mut out, &text(5));
        documents.freshen(&mut out, &text(5));
        assert_eq!(sent(&mut out), ["didOpen"]);
        documents.sync(&mut out, &LspDocument { path: "/b.rs".into(), ..text(6) });
        documents.freshen(&mut out, &text(5));
        documents.freshen(&mut out, &text(5));
        assert_eq!(sent(&mut out), ["didOpen", "didChange"]);
        assert_eq!(documents.version_of(Path::new("/a.rs"), 3), Some(5));
    }

    #[test]
    fn texts_that_are_open_are_bounded() {
        let (mut documents, mut out) = (Documents::default(), Vec::new());
        for i in 0..=MAX_OPEN {
            documents.sync(&mut out, &LspDocument { path: format!("/{i}").into(), ..text(i as u64 + 1) });
        }
        assert_eq!(documents.open.len(), MAX_OPEN);
        assert_eq!(documents.version(Path::new("/0")), None, "the oldest is closed");
        assert!(sent(&mut out).contains(&"didClose".to_owned()));
    }
}
