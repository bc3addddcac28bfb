//! How the ways to one agent really are: which there are, which of them work, and whether one that works would wake it
//! (M-09). This is the one place that says so; whatever shows it asks here.
//!
//! A path is healthy while somebody is at its other end, its rings ring, and they are heard. It is well again when one is
//! heard, or when what was wrong with it is over: a stream that is back, a server that answers again.

use super::{
    Time, WakePath, WakeSupport,
    path::{PUSHES, Paths},
};

#[derive(Debug, Default)]
pub(super) struct PathHealth {
    open: Paths,
    /// Who looked last found nobody there.
    absent: Paths,
    /// The last ring by it did not ring.
    failing: Paths,
    /// A ring by it rang, and no drain came in time.
    unheard: Paths,
    /// A ring by it was heard.
    proven: Paths,
    /// Rings that are still to be heard, and until when. One of each path at most.
    awaited: Vec<(WakePath, Time)>,
}

impl PathHealth {
    pub(super) fn is_open(&self, path: WakePath) -> bool {
        self.open.has(path)
    }

    pub(super) fn is_healthy(&self, path: WakePath) -> bool {
        self.open.has(path) && !self.absent.has(path) && !self.failing.has(path) && !self.unheard.has(path)
    }

    /// Whether something leads to the agent now.
    pub(super) fn is_reached(&self) -> bool {
        PUSHES.into_iter().any(|path| self.is_healthy(path))
    }

    /// Whether a bell by that path can wake the agent. One down a stream can where the program acts on what comes down it
    /// unasked; one by a channel, of which nobody says whether it is listened to, once one was heard.
    pub(super) fn can_wake(&self, path: WakePath, heeds_stream: bool) -> bool {
        match path {
            WakePath::Sse => heeds_stream,
            WakePath::Channel => self.proven.has(path),
            path => PUSHES.contains(&path),
        }
    }

    /// Whether the agent can be woken.
    pub(super) fn support(&self, heeds_stream: bool) -> WakeSupport {
        match WakePath::ALL.into_iter().any(|path| self.can_wake(path, heeds_stream) && self.is_healthy(path)) {
            true => WakeSupport::Full,
            false => WakeSupport::Degraded,
        }
    }

    /// A path is there, and whatever was wrong with the last one of its kind is not wrong with this.
    pub(super) fn opened(&mut self, path: WakePath) {
        self.open.insert(path);
        for marks in [&mut self.absent, &mut self.failing, &mut self.unheard] {
            marks.remove(path);
        }
    }

    /// A path is known of. Whether it leads to anybody has to be looked at.
    pub(super) fn attached(&mut self, path: WakePath) {
        self.opened(path);
        self.absent.insert(path);
    }

    pub(super) fn closed(&mut self, path: WakePath) {
        self.open.remove(path);
        // Who ends with the bell was told it. What went down another may be lost with it.
        if !path.ends_with_bell() {
            self.awaited.retain(|(awaited, _)| *awaited != path);
        }
    }

    /// Somebody looked whether anybody is there. Returns whether that is so again.
    pub(super) fn looked(&mut self, path: WakePath, there: bool) -> bool {
        let was_absent = self.absent.has(path);
        if there {
            self.absent.remove(path)
        } else {
            self.absent.insert(path)
        }
        there && was_absent && self.open.has(path)
    }

    /// A ring did not ring.
    pub(super) fn failed(&mut self, path: WakePath) {
        self.failing.insert(path);
    }

    /// A ring rang, and is to be heard until then.
    pub(super) fn rang(&mut self, path: WakePath, until: Time) {
        self.failing.remove(path);
        self.absent.remove(path);
        self.awaited.retain(|(awaited, _)| *awaited != path);
        self.awaited.push((path, until));
    }

    /// A ring was heard.
    pub(super) fn confirmed(&mut self, path: WakePath) {
        self.failing.remove(path);
        self.unheard.remove(path);
        self.proven.insert(path);
    }

    /// There is nothing to be heard any more.
    pub(super) fn settled(&mut self) {
        self.awaited.clear();
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.awaited.iter().map(|(_, until)| *until).min()
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        for (path, _) in self.awaited.extract_if(.., |(_, until)| *until <= now) {
            self.unheard.insert(path);
            self.proven.remove(path);
        }
    }
}
