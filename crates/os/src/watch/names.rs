//! Which names change in some folders (inotify). A folder is watched by its handle, so it is the very folder that was opened,
//! whatever has become of its name.

use std::{
    ffi::{OsStr, OsString},
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};
use tokio::io::{Interest, unix::AsyncFd};

/// Folders that are watched, and what the kernel has to say of them.
#[derive(Debug)]
pub(super) struct NameWatch(AsyncFd<OwnedFd>);

/// A folder that is watched.
pub(super) type Watched = i32;

/// Something that happened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameEvent {
    /// By a name in a folder; a move has a number that both its ends bear.
    Name { folder: Watched, name: OsString, is_written: bool, moved: Option<(MoveEnd, u32)> },
    /// A folder is watched no longer.
    Gone(Watched),
    /// More happened than the kernel could keep.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveEnd {
    From,
    To,
}

/// Notes that are read at once; more than that is as good as lost.
const MAX_NOTES: usize = 100_000;

impl NameWatch {
    /// To be called in a runtime.
    #[expect(unsafe_code, reason = "the descriptor must stay open, which tokio cannot see")]
    pub(super) fn new() -> io::Result<Self> {
        let kernel = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // SAFETY: the descriptor is our own and stays open, and the same one, until it is dropped with the `AsyncFd`.
        let registered = unsafe { AsyncFd::register_with_interest(kernel, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Watches a folder. One that is watched already is the same one again.
    pub(super) fn add(&self, folder: impl AsFd) -> io::Result<Watched> {
        let events = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVE
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        // The one way to name a handle; the kernel goes straight to what it is open on.
        let handle = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        Ok(inotify::add_watch(self.0.get_ref(), handle, events)?)
    }

    pub(super) fn remove(&self, folder: Watched) {
        let _ = inotify::remove_watch(self.0.get_ref(), folder);
    }

    /// Waits until there is something to be read. Nothing is lost if it is dropped.
    pub(super) async fn wait(&self) -> io::Result<()> {
        // What came before is read in any case, and what comes after wakes again.
        self.0.readable().await?.clear_ready();
        Ok(())
    }

    /// Reads all that has happened.
    pub(super) fn read(&self) -> Vec<NameEvent> {
        let mut room = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(self.0.get_ref().as_fd(), &mut room);
        let mut notes = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => return notes,
                Err(_) => {
                    notes.push(NameEvent::Lost);
                    return notes;
                }
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                notes.push(NameEvent::Lost);
            } else if what.contains(ReadFlags::IGNORED) {
                notes.push(NameEvent::Gone(event.wd()));
            } else if let Some(name) = event.file_name() {
                let moved = match () {
                    () if what.contains(ReadFlags::MOVED_FROM) => Some((MoveEnd::From, event.cookie())),
                    () if what.contains(ReadFlags::MOVED_TO) => Some((MoveEnd::To, event.cookie())),
                    () => None,
                };
                let is_written = what.intersects(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO);
                let name = OsStr::from_bytes(name.to_bytes()).to_owned();
                if notes.len() < MAX_NOTES {
                    notes.push(NameEvent::Name { folder: event.wd(), name, is_written, moved });
                } else {
                    notes.truncate(MAX_NOTES);
                    notes.push(NameEvent::Lost);
                }
            }
        }
    }
}
