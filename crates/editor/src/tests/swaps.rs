//! Names that are swapped all the time while a verb is at work: a folder with a link to the outside.

use std::{
    os::{fd::AsRawFd, unix::fs::symlink},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::*;

/// At least so many, and then until both what was meant and what was not has been met.
const TRIES: usize = 10_000;

/// A child needs milliseconds.
const COMMANDS: usize = 300;

/// Long enough for that on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// `way` is a folder with a file in it, and a moment later a link to the outside.
struct Swapped {
    place: Place,
    /// The folder itself, however it is called.
    real: fs::File,
    is_over: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    swapper: Option<JoinHandle<()>>,
}

impl Swapped {
    fn new() -> Self {
        Self::at(Place::new())
    }

    fn at(place: Place) -> Self {
        let (way, away) = (place.path("way"), place.path("away"));
        fs::create_dir(&way).unwrap();
        fs::write(way.join("secret"), "inside").unwrap();
        let real = fs::File::open(&way).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, swaps) = (is_over.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = swaps.clone();
        let swapper = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                fs::rename(&way, &away).unwrap();
                // Relative, so that nothing but the rule for ways beneath is in its way.
                symlink("../outside", &way).unwrap();
                fs::remove_file(&way).unwrap();
                fs::rename(&away, &way).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { place, real, is_over, swaps, swapper: Some(swapper) }
    }

    /// Gives orders until enough were done and enough refused.
    async fn order(&self, tries: usize, verb: &str, args: &Value, check: impl Fn(&Value)) {
        let began = Instant::now();
        let (mut done, mut refused) = (0, 0);
        while done + refused < tries || done == 0 || refused == 0 {
            match self.place.run(verb, args.clone()).await {
                Ok(answer) => {
                    check(&answer);
                    done += 1;
                }
                Err(_) => refused += 1,
            }
            assert!(began.elapsed() < PATIENCE, "{verb}: {done} done, {refused} refused");
        }
        self.place.assert_untouched();
    }

    /// The file in the folder itself.
    fn inside(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/secret", self.real.as_raw_fd()))
    }
}

impl Drop for Swapped {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(swapper) = self.swapper.take() {
            // It may have met a name that a test has left, and that test says more.
            let _ = swapper.join();
        }
    }
}

//
#[tokio::test]
async fn nothing_outside_is_read_while_names_are_swapped() {
    let swapped = Swapped::new();
    let args = json!({ "path": "way/secret" });
    swapped.order(TRIES, "open_file", &args, |answer| assert_eq!(answer["content"], "inside")).await;
    let is_inside = |answer: &Value| assert!(!answer.to_string().contains("outside"), "{answer}");
    swapped.order(TRIES / 10, "explore_tree", &json!({ "path": "way" }), is_inside).await;
}

//
#[tokio::test]
async fn nothing_outside_is_written_while_names_are_swapped() {
    let swapped = Swapped::new();
    let args = json!({ "path": "way/secret", "content": "inside" });
    swapped.order(TRIES, "write_file", &args, |_| {}).await;
    assert_eq!(fs::read_to_string(swapped.inside()).unwrap(), "inside");
}

//
#[tokio::test]
async fn nothing_outside_is_deleted_while_names_are_swapped() {
    let swapped = Swapped::new();
    let args = json!({ "path": "way/secret" });
    swapped.order(TRIES, "delete_file", &args, |_| fs::write(swapped.inside(), "inside").unwrap()).await;
}

//
#[tokio::test]
async fn nothing_is_renamed_out_or_in_while_names_are_swapped() {
    let swapped = Swapped::new();
    let taken = swapped.place.path("taken");
    let args = json!({ "path": "way/secret", "new_path": "taken" });
    let back = |_: &Value| {
        assert_eq!(fs::read_to_string(&taken).unwrap(), "inside");
        fs::rename(&taken, swapped.inside()).unwrap();
    };
    swapped.order(TRIES, "rename_file", &args, back).await;

    swapped.place.write("lure", "lure");
    let (args, lure) = (json!({ "path": "lure", "new_path": "way/lure" }), swapped.place.path("lure"));
    let back = |_: &Value| fs::rename(swapped.inside().with_file_name("lure"), &lure).unwrap();
    swapped.order(TRIES, "rename_file", &args, back).await;
}

//
#[tokio::test]
async fn no_command_starts_outside_while_names_are_swapped() {
    // A fence around a closed folder is made of the names that lie beside it at that moment, and these come and go.
    let swapped = Swapped::at(Place::roomy());
    let args = json!({ "command": ["cat", "secret"], "cwd": "way" });
    swapped.order(COMMANDS, "exec_command", &args, |answer| assert_eq!(answer["stdout"], "inside")).await;
}

//
#[tokio::test(flavor = "multi_thread")]
async fn no_walk_leads_out_through_a_folder_that_is_swapped() {
    let swapped = Swapped::new();
    // A walk meets a folder or a link, and lists either; what it says of it must be about the inside.
    let mut met = [0, 0];
    let began = Instant::now();
    for (verb, args) in [
        ("find_in_project", json!({ "text": "granted" })),
        ("regex_search", json!({ "pattern": "inside|granted", "hidden": true, "ignored": true })),
        ("search_files", json!({ "pattern": "**/secret" })),
    ] {
        let mut walks = 0;
        let first = swapped.swaps.load(Ordering::Relaxed);
        while walks < TRIES / 50 || swapped.swaps.load(Ordering::Relaxed) - first < TRIES {
            walks += 1;
            let answer = swapped.place.run(verb, args.clone()).await.unwrap();
            for found in answer["matches"].as_array().into_iter().flatten() {
                assert_eq!(found["line_text"], "inside", "{verb}: {answer}");
                met[0] += 1;
            }
            met[1] += answer["entries"].as_array().map_or(0, Vec::len);
            assert!(began.elapsed() < PATIENCE);
        }
    }
    assert!(met[0] > 0 && met[1] > 0, "{met:?}");
    swapped.place.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_removed_and_made_meanwhile_do_not_disturb_a_search() {
    let place = Place::new();
    let (stays, goes) = (place.path("stays"), place.path("goes"));
    fs::write(&stays, "needle").unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let swapper = thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            fs::create_dir_all(goes.join("deep")).unwrap();
            fs::write(goes.join("deep/file"), "needle").unwrap();
            fs::remove_dir_all(&goes).unwrap();
        }
    });
    let mut found = [0; 3];
    let began = Instant::now();
    while found.iter().sum::<usize>() < 1_000 || found[1] == 0 || found[2] == 0 {
        let answer = place.run("find_in_project", json!({ "text": "needle" })).await.unwrap();
        assert_eq!(answer["is_complete"], true);
        found[answer["matches"].as_array().unwrap().len()] += 1;
        assert!(began.elapsed() < PATIENCE, "{found:?}");
    }
    is_over.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(found[0], 0);
}
