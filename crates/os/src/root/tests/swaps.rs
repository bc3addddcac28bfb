//! Names that are swapped all the time while something is done with them: a folder with a link to the outside, and a
//! file with one.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// At least so many, and then until both what was meant and what was not has been met.
const TRIES: usize = 10_000;

/// Long enough for that on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does something again and again while somebody else swaps names. It returns whether it was done; both must happen, or
/// nothing was swapped.
fn while_swapped(yard: &Yard, swap: impl Fn() + Sync, mut act: impl FnMut() -> bool) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap();
            }
        });
        let began = Instant::now();
        let (mut done, mut refused) = (0, 0);
        // A panic must not leave the other thread, which is waited for, swapping.
        let met = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while done + refused < TRIES || done == 0 || refused == 0 {
                *if act() { &mut done } else { &mut refused } += 1;
                assert!(began.elapsed() < PATIENCE, "{done} done, {refused} refused");
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
        met.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    yard.assert_untouched("swapped");
}

/// `way` is a folder with a file in it, and a moment later a link to the outside.
struct SwappedFolder {
    yard: Yard,
    /// The folder itself, however it is called.
    real: FolderHandle,
}

impl SwappedFolder {
    fn new() -> Self {
        let yard = Yard::new();
        fs::create_dir(yard.granted.join("way")).unwrap();
        // Relative, so that nothing but the rule for ways beneath is in its way.
        symlink("../outside", yard.granted.join("lure")).unwrap();
        yard.write("way/secret", "inside");
        let real = yard.root.beneath(Path::new("way")).unwrap();
        Self { yard, real }
    }

    fn run(&self, act: impl FnMut() -> bool) {
        let (way, lure) = (self.yard.granted.join("way"), self.yard.granted.join("lure"));
        let swap = || renameat_with(CWD, &way, CWD, &lure, RenameFlags::EXCHANGE).unwrap();
        while_swapped(&self.yard, swap, act);
    }

    fn spot(&self) -> Option<Spot> {
        self.yard.root.spot(Path::new("way/secret")).ok()
    }

    fn inside(&self) -> Spot {
        self.real.spot(Path::new("secret")).unwrap()
    }
}

//
#[test]
fn nothing_outside_is_read_through_a_folder_that_is_swapped() {
    let swapped = SwappedFolder::new();
    for path in ["way/secret", "way/../way/secret"] {
        swapped.run(|| match swapped.yard.read(path) {
            Ok(text) => {
                assert_eq!(text, "inside");
                true
            }
            Err(_) => false,
        });
    }
}

//
#[test]
fn nothing_outside_is_written_through_a_folder_that_is_swapped() {
    let swapped = SwappedFolder::new();
    swapped.run(|| {
        let Some(spot) = swapped.spot() else { return false };
        let (_, found) = spot.open_file().unwrap();
        spot.replace(b"inside", &found).unwrap();
        true
    });
    swapped.run(|| {
        let Ok(spot) = swapped.yard.root.spot(Path::new("way/new")) else { return false };
        spot.create(b"inside").unwrap();
        spot.remove(FileKind::File).unwrap();
        true
    });
}

//
#[test]
fn nothing_outside_is_deleted_through_a_folder_that_is_swapped() {
    let swapped = SwappedFolder::new();
    swapped.run(|| {
        let Some(spot) = swapped.spot() else { return false };
        spot.remove(FileKind::File).unwrap();
        swapped.inside().create(b"inside").unwrap();
        true
    });
}

//
#[test]
fn nothing_is_renamed_through_a_folder_that_is_swapped() {
    let swapped = SwappedFolder::new();
    let taken = swapped.yard.spot("taken");
    swapped.run(|| {
        let Some(spot) = swapped.spot() else { return false };
        spot.rename(&taken, RenameMode::Refuse).unwrap();
        assert_eq!(swapped.yard.text("taken"), "inside");
        // And back, through the name that is swapped if it leads there.
        let back = swapped.spot().unwrap_or_else(|| swapped.inside());
        taken.rename(&back, RenameMode::Refuse).unwrap();
        true
    });
}

//
#[test]
fn no_command_starts_in_a_folder_that_is_swapped() {
    let swapped = SwappedFolder::new();
    // A child takes its time, so the folder that it would start in is asked in its place, as the kernel has it.
    let inside = [swapped.yard.granted.join("way"), swapped.yard.granted.join("lure")];
    swapped.run(|| {
        let Ok(folder) = swapped.yard.root.beneath(Path::new("way")) else { return false };
        let work_dir = folder.dir_for_command().unwrap();
        let entered = fs::read_link(work_dir.path()).unwrap();
        assert!(inside.contains(&entered), "{}", entered.display());
        true
    });
}

//
#[test]
fn nothing_outside_is_reached_through_a_file_that_is_swapped() {
    type Act = fn(&Yard) -> bool;
    let acts: [(&str, Act); 5] = [
        ("read", |yard| match yard.read("file") {
            Ok(text) => {
                assert_eq!(text, "inside");
                true
            }
            Err(_) => false,
        }),
        ("read the name itself", |yard| match yard.spot("file").open_file() {
            Ok((file, _)) => {
                assert_eq!(io::read_to_string(file).unwrap(), "inside");
                true
            }
            Err(_) => false,
        }),
        ("replace", |yard| {
            let spot = yard.spot("file");
            let Ok((_, found)) = spot.open_file() else { return false };
            spot.replace(b"inside", &found).is_ok()
        }),
        ("delete", |yard| {
            let spot = yard.spot("file");
            let Ok(Some(found)) = spot.look() else { return false };
            found.kind == FileKind::File && spot.remove(found.kind).is_ok()
        }),
        ("rename", |yard| {
            let spot = yard.spot("file");
            let Ok(Some(found)) = spot.look() else { return false };
            found.kind == FileKind::File && spot.rename(&yard.spot("taken"), RenameMode::Replace).is_ok()
        }),
    ];
    for (how, act) in acts {
        let yard = Yard::new();
        let name = |name: &str| yard.granted.join(name);
        let swap = || {
            symlink("../outside/secret", name("next-link")).unwrap();
            fs::rename(name("next-link"), name("file")).unwrap();
            fs::write(name("next-file"), "inside").unwrap();
            fs::rename(name("next-file"), name("file")).unwrap();
        };
        while_swapped(&yard, swap, || act(&yard));
        yard.assert_untouched(how);
    }
}
