//! `desktop`: a notice on the person's screen, by `notify-send`. The last rung: it wakes no agent, it tells the one who can.

#[cfg(test)]
mod tests;

use std::{path::Path as FilePath, sync::Arc};

use prism_core::mesh::WakePath;

use super::{
    AgentFacts, ContactAddress, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, WakeSettings,
    Why, program::WakeProgram,
};

pub(super) struct DesktopAdapter {
    allowed: bool,
    notify_send: WakeProgram,
}

// === impl DesktopAdapter ===

impl DesktopAdapter {
    pub(super) fn new(allowed: &WakeSettings) -> Self {
        Self { allowed: allowed.desktop, notify_send: WakeProgram::new("notify-send", &allowed.env) }
    }

    /// Whether there is a screen to show anything on, as far as can be seen without showing anything.
    fn screen(&self) -> Result<(), Why> {
        if !self.notify_send.is_there() {
            return Err("there is no notify-send on the daemon's PATH: install libnotify-bin (or libnotify)".into());
        }
        let runtime = self.notify_send.var("XDG_RUNTIME_DIR");
        let bus = runtime.is_some_and(|folder| FilePath::new(folder).join("bus").exists());
        if bus || self.notify_send.var("DBUS_SESSION_BUS_ADDRESS").is_some() {
            Ok(())
        } else {
            Err("the daemon has no session bus: start it from within the desktop, or with prism service install".into())
        }
    }
}

impl WakeAdapter for DesktopAdapter {
    fn path(&self) -> WakePath {
        WakePath::Desktop
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        self.allowed.then(|| WakeContact::new(agent, ContactAddress::Person))
    }

    fn probe<'a>(&'a self, _contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async {
            match self.screen() {
                Ok(()) => ProbeOutcome::There,
                Err(why) => ProbeOutcome::Absent(why),
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async {
            if contact.to != ContactAddress::Person {
                return RingOutcome::misled();
            }
            if let Err(why) = self.screen() {
                return RingOutcome::Uncaptured(why);
            }
            let title = format!("Prism: {} has a signal", bell.agent);
            // Bodies are markup.
            let body = format!("{} from {}. prism mesh shows who waits for whom.", bell.kind, bell.sender);
            let body = body.replace('&', "&amp;").replace('<', "&lt;");
            let words = ["--app-name=Prism", "--icon=dialog-information", "--", &title, &body];
            match self.notify_send.run(words.map(str::to_owned).to_vec()).await {
                Ok(_) => RingOutcome::Rang,
                Err(why) => RingOutcome::SendFailed(format!("{why}: try notify-send hello in a terminal").into()),
            }
        })
    }
}
