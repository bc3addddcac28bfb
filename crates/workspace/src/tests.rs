//! The memory as its callers see it, on real files.

mod context;
mod keeping;
mod seed;

use std::{fs, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::*;

/// A workspace and a home of their own.
struct Desk {
    root: TempDir,
    home: TempDir,
    memory: WorkspaceMemory,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let (root, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let memory = WorkspaceMemory::new(Some(root.path()), home.path());
        let desk = Self { root, home, memory };
        for (path, text) in files {
            desk.write(path, text);
        }
        desk
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn context(&self, context: ContextQuery) -> Value {
        self.memory.context(&context, &mut quiet).unwrap()
    }

    fn search(&self, query: &str) -> Vec<String> {
        let search = Search { query: query.to_owned(), ..Search::default() };
        paths(&self.memory.search(&search, &mut quiet).unwrap()["results"])
    }

    fn remember(&self, note: NewNote) -> String {
        let answer = self.memory.remember(&note, &mut quiet).unwrap();
        answer["_meta"]["document_path"].as_str().unwrap().to_owned()
    }

    fn index_file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.home.path().join(FOLDER)).unwrap().flatten().map(|entry| entry.path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "db")).unwrap()
    }
}

fn quiet(_: IndexProgress) {}

fn note(title: &str, text: &str) -> NewNote {
    NewNote { title: title.to_owned(), text: text.to_owned(), ..NewNote::default() }
}

fn domain(domain: &str) -> NoteScope {
    NoteScope { domain: Some(domain.to_owned()), ..NoteScope::default() }
}

fn paths(entries: &Value) -> Vec<String> {
    let path = |entry: &Value| entry["_meta"]["document_path"].as_str().unwrap().to_owned();
    entries.as_array().unwrap().iter().map(path).collect()
}
