//! What those are told who watch what is run.

use std::sync::{Arc, Mutex};

use prism_os::pty::PtySize;
use tokio::{sync::Notify, time::timeout};

use super::{commands::SOON, *};
use crate::{ObservedRun, RunEnding, RunObserver, RunViewer};

/// Writes down all that it is told.
#[derive(Debug, Default)]
struct Notebook {
    noted: Mutex<Vec<Noted>>,
    news: Notify,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Noted {
    /// The verb, the command and the size.
    Begun(&'static str, String, Option<PtySize>),
    Text(String),
    Resized(PtySize),
    Ended(RunEnding),
}

#[derive(Debug)]
struct NotebookPage(Arc<Notebook>);

impl RunObserver for Arc<Notebook> {
    fn begins(&self, run: &ObservedRun<'_>) -> Option<Arc<dyn RunViewer>> {
        assert_eq!(run.holder.name, "one");
        self.note(Noted::Begun(run.verb, run.command.to_owned(), run.size));
        Some(Arc::new(NotebookPage(self.clone())))
    }
}

impl RunViewer for NotebookPage {
    fn printed(&self, text: &str) {
        let mut all = self.0.noted.lock().unwrap();
        match all.last_mut() {
            Some(Noted::Text(before)) => before.push_str(text),
            _ => all.push(Noted::Text(text.to_owned())),
        }
        self.0.news.notify_one();
    }

    fn resized(&self, size: PtySize) {
        self.0.note(Noted::Resized(size));
    }

    fn ended(&self, ending: RunEnding) {
        self.0.note(Noted::Ended(ending));
    }
}

impl Notebook {
    fn of(place: &Place) -> Arc<Self> {
        let notebook = Arc::new(Self::default());
        place.runtime.observe_runs(Arc::new(notebook.clone()));
        notebook
    }

    fn note(&self, noted: Noted) {
        self.noted.lock().unwrap().push(noted);
        self.news.notify_one();
    }

    fn read(&self) -> Vec<Noted> {
        self.noted.lock().unwrap().clone()
    }

    /// Waits until something was noted.
    async fn until(&self, what: impl Fn(&Noted) -> bool) {
        let noted = async {
            while !self.read().iter().any(&what) {
                self.news.notified().await;
            }
        };
        assert!(timeout(SOON, noted).await.is_ok(), "{:?}", self.read());
    }
}

fn begun(verb: &'static str, command: &str) -> Noted {
    Noted::Begun(verb, command.to_owned(), None)
}

fn ended(exit_code: i32) -> Noted {
    Noted::Ended(RunEnding { exit_code: Some(exit_code), ..RunEnding::default() })
}

#[tokio::test]
async fn a_command_is_seen_as_it_prints_in_whole_letters_and_as_at_a_terminal() {
    let place = Place::roomy();
    let notebook = Notebook::of(&place);
    // One letter in two writes, and one that never comes to its end.
    let command = r"printf '\033[32mone\033[0m\n\303'; sleep 0.2; printf '\274\ntwo\303'; exit 3";
    place.run("exec_command", json!({ "command": command })).await.unwrap();
    let printed = Noted::Text("\x1b[32mone\x1b[0m\r\nü\r\ntwo\u{fffd}".to_owned());
    assert_eq!(notebook.read(), [begun("exec_command", command), printed, ended(3)]);
}

#[tokio::test]
async fn how_a_run_ends_is_said_also_if_nobody_waits_for_it() {
    let place = Place::roomy();
    let notebook = Notebook::of(&place);
    place.run("exec_command", json!({ "command": "sleep 100", "timeout_ms": 100 })).await.unwrap();
    let late = RunEnding { exit_code: None, signal: Some(9), note: Some("its time was over".to_owned()) };
    assert_eq!(notebook.read().last(), Some(&Noted::Ended(late)));
    let prepared = place.prepare("exec_command", json!({ "command": "echo begun; sleep 100" })).await.unwrap();
    tokio::select! {
        _ = prepared.run(ProgressSink::unseen()) => panic!("it sleeps"),
        () = notebook.until(|noted| *noted == Noted::Text("begun\r\n".to_owned())) => {}
    }
    let given_up = RunEnding { note: Some("it was given up".to_owned()), ..RunEnding::default() };
    assert_eq!(notebook.read().last(), Some(&Noted::Ended(given_up)));
}

#[tokio::test]
async fn a_terminal_is_seen_as_it_is_drawn() {
    let place = Place::roomy();
    let notebook = Notebook::of(&place);
    let args = json!({ "command": ["cat"], "rows": 10, "cols": 40 });
    let terminal = place.run("open_terminal", args).await.unwrap()["terminal"].clone();
    place.run("send_input", json!({ "terminal": terminal, "input": "hi\n" })).await.unwrap();
    notebook.until(|noted| *noted == Noted::Text("hi\r\nhi\r\n".to_owned())).await;
    place.run("send_input", json!({ "terminal": terminal, "rows": 20, "cols": 50 })).await.unwrap();
    place.run("send_input", json!({ "terminal": terminal, "close": true })).await.unwrap();
    let size = |rows, cols| PtySize { rows, cols };
    let killed = RunEnding { signal: Some(9), ..RunEnding::default() };
    let [begun, _, rest @ ..] = &notebook.read()[..] else { panic!("it has begun") };
    assert_eq!(*begun, Noted::Begun("open_terminal", "cat".to_owned(), Some(size(10, 40))));
    assert_eq!(*rest, [Noted::Resized(size(20, 50)), Noted::Ended(killed)]);
}

#[tokio::test]
async fn git_shows_what_came_of_it() {
    let place = Place::roomy();
    let notebook = Notebook::of(&place);
    let init =
        std::process::Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(&place.granted).status();
    assert!(init.unwrap().success());
    place.write("a.txt", "a\n");
    place.run("git_status", json!({})).await.unwrap();
    assert!(place.run("git_commit", json!({ "message": "Nothing" })).await.is_err(), "nothing is staged");
    let noted = notebook.read();
    let [shown, Noted::Text(text), over] = &noted[..] else { panic!("{noted:?}") };
    assert_eq!((shown, over), (&begun("git_status", "git status"), &ended(0)));
    assert!(text.starts_with("main\r\n") && text.contains("untracked") && text.ends_with("\r\n"), "{text:?}");
}
