//! The daemon is not there: who waits for it, for how long, and who is told that it does not come. Who is only
//! listening waits for as long as it takes, and is no reason to start a daemon that somebody has stopped.

use std::time::{Duration, Instant};

use super::{
    INTERRUPTED, MAX_RESUMES, RETRY, ShimAction, ShimMachine, Ticket,
    flight::{OutboundKind, OutboundState, ShimMessage, backoff},
    session::SessionBarrier,
};

/// Attempts to start the daemon that may fail one after the other, before those who wait are told why.
const MAX_STARTS: u32 = 4;
/// Times that a note is sent again. It is not answered, so nobody would miss it but the server.
const MAX_REPEATS: u32 = 3;

#[derive(Debug)]
pub(super) struct Outage {
    phase: OutagePhase,
    tries: u32,
    errors: u32,
    /// Why the last attempt to reach it failed.
    why: String,
    /// Somebody was told of it.
    said: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum OutagePhase {
    Starting,
    /// The next attempt is not due yet.
    Pausing(Instant),
    /// It is said to run; nobody has heard from it yet.
    Started,
}

// === impl Outage ===

impl Outage {
    pub(super) fn starting() -> Self {
        Self { phase: OutagePhase::Starting, tries: 0, errors: 0, why: String::new(), said: false }
    }

    pub(super) fn lets_through(&self) -> bool {
        self.phase == OutagePhase::Started
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            OutagePhase::Pausing(until) => Some(until),
            OutagePhase::Starting | OutagePhase::Started => None,
        }
    }
}

// === impl ShimMachine ===

impl ShimMachine {
    /// The daemon runs, or does not, and why.
    pub(in crate::shim) fn handle_started(&mut self, started: Result<(), String>, now: Instant) {
        let Some(outage) = &mut self.outage else { return };
        outage.tries += 1;
        match started {
            Ok(()) => {
                (outage.phase, outage.errors) = (OutagePhase::Started, 0);
                self.wake();
            }
            Err(why) => {
                outage.errors += 1;
                outage.why = why;
                outage.phase = OutagePhase::Pausing(now + backoff(outage.tries));
                if outage.errors >= MAX_STARTS {
                    let why = self.outage.take().map(|outage| outage.why);
                    for ticket in self.tickets(|flight| flight.state != OutboundState::Sent && !flight.is_patient()) {
                        self.give_up(ticket, why.as_deref());
                    }
                }
            }
        }
        self.release(now);
    }

    pub(super) fn start(&mut self) {
        self.outage.get_or_insert_with(Outage::starting).phase = OutagePhase::Starting;
        self.actions.push_back(ShimAction::Start);
    }

    /// Somebody is there.
    pub(super) fn heard(&mut self) {
        // A daemon that was killed may not have come to write down the last that was set.
        if self.gate == SessionBarrier::Open && self.lane.session.is_some() && std::mem::take(&mut self.broken) {
            self.set_again();
        }
        let Some(outage) = self.outage.take() else { return };
        if outage.said {
            self.actions.push_back(ShimAction::Say("the daemon answers again".to_owned()));
        }
        self.wake();
    }

    /// Lets those try again at once who had stopped expecting anything soon.
    fn wake(&mut self) {
        for ticket in self.tickets(|flight| flight.is_patient() && matches!(flight.state, OutboundState::Later(_))) {
            self.again(ticket);
        }
    }

    /// Marks the time from which on the daemon keeps a message waiting.
    pub(super) fn trouble(&mut self, ticket: Ticket, now: Instant) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.troubled.get_or_insert(now);
        }
    }

    /// Sends a message again when the daemon is back, and sees to it that it comes back.
    pub(super) fn wait_for_daemon(&mut self, ticket: Ticket, now: Instant) {
        self.trouble(ticket, now);
        self.again(ticket);
        match &mut self.outage {
            None => self.start(),
            Some(outage) if outage.phase == OutagePhase::Started => {
                outage.phase = OutagePhase::Pausing(now + backoff(outage.tries));
            }
            Some(_) => {}
        }
    }

    /// There was no connection.
    pub(super) fn unsent(&mut self, ticket: Ticket, why: &str, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        self.broken = true;
        if flight.cancelled {
            self.flights.remove(&ticket);
        } else if flight.is_patient() {
            self.later(ticket, Duration::ZERO, now);
        } else {
            self.wait_for_daemon(ticket, now);
            if let Some(outage) = &mut self.outage {
                outage.why = why.to_owned();
                if !std::mem::replace(&mut outage.said, true) {
                    self.actions.push_back(ShimAction::Say("the daemon does not answer; it is started".to_owned()));
                }
            }
        }
    }

    /// It was sent, and its response ended without an answer.
    pub(super) fn ended(&mut self, ticket: Ticket, after: Option<String>, retry: Option<Duration>, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        let modern = flight.is_modern();
        if flight.cancelled {
            self.flights.remove(&ticket);
            return;
        }
        self.broken = true;
        if let Some(after) = after.filter(|_| !modern) {
            flight.cursor = Some(after);
        }
        match flight.what {
            _ if flight.is_patient() => self.later(ticket, retry.unwrap_or(RETRY), now),
            OutboundKind::Request if flight.cursor.is_some() && flight.failures < MAX_RESUMES => {
                self.trouble(ticket, now);
                self.later(ticket, retry.unwrap_or(RETRY), now);
            }
            OutboundKind::Request if flight.cursor.is_some() => self.stream_lost(ticket, now),
            OutboundKind::Request if flight.may_repeat() => self.wait_for_daemon(ticket, now),
            OutboundKind::Request => self.fail(ticket, INTERRUPTED, "daemon_restarted"),
            OutboundKind::Own(own @ ShimMessage::Replay) => self.own_answered(ticket, own, None),
            _ if flight.failures < MAX_REPEATS => {
                flight.failures += 1;
                self.wait_for_daemon(ticket, now);
            }
            OutboundKind::Own(own) => self.own_answered(ticket, own, None),
            _ => self.not_taken(ticket),
        }
    }

    /// The daemon does not come.
    pub(super) fn give_up(&mut self, ticket: Ticket, why: Option<&str>) {
        let Some(flight) = self.flights.get(&ticket) else { return };
        let known = self.outage.as_ref().map(|outage| outage.why.clone()).filter(|why| !why.is_empty());
        let why = why.map(str::to_owned).or(known).unwrap_or_else(|| "it does not answer".to_owned());
        let why = why.trim_end_matches('.').replace('\n', " ");
        let what = flight.what;
        if what == OutboundKind::Request {
            let text = format!("the Prism daemon cannot be reached: {why}; to see what is wrong, type: prism serve");
            return self.fail(ticket, &text, "daemon_unreachable");
        }
        self.flights.remove(&ticket);
        if self.gate.is_of(ticket) {
            self.gate = SessionBarrier::Open;
        }
    }
}
