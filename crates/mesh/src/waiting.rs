//! Waiting for a bell: the long poll of agents (`prism_signals_wait`) and of the programs that their surfaces start
//! (`POST /prism/mesh/wait`). A wait takes nothing: what it tells of is there until the drain, whatever becomes of the
//! connection that it was told on.

use std::{sync::Arc, time::Duration};

use prism_api::mesh::{NoBell, WaitArguments, WaitEnded};
use prism_core::mesh::{Name, PERSON, WakePath};
use prism_mcp::kit::ServerCall;
use tokio::time::{Instant, interval, sleep_until};
use uuid::Uuid;

use super::{
    Mesh, MeshCaller, MeshError, MeshErrorCode, MeshState,
    polls::{PollEnd, PollOwner, path},
    who::CallerClaim,
};
use crate::wake::PollKind;

/// How long a wait lasts where nothing else is said, and at most, by what the surface was seen to bear (measured: Codex cuts a
/// call off at 300 s whatever it is told, Claude Code never while it hears of progress).
const USUAL: Duration = Duration::from_secs(50);
const LONGEST_OF: [(&str, Duration); 3] = [
    ("claude_code", Duration::from_secs(24 * 3600)),
    ("codex", Duration::from_secs(280)),
    ("script", Duration::from_secs(24 * 3600)),
];
/// How often a client hears that its wait goes on.
const PROGRESS: Duration = Duration::from_secs(10);

/// A poll that is open. Dropped, as when its client has left, it is closed.
struct PollGuard {
    mesh: Arc<Mesh>,
    number: u64,
}

impl Mesh {
    pub async fn wait(
        self: &Arc<Self>,
        caller: &MeshCaller,
        arguments: WaitArguments,
        call: Option<&ServerCall>,
    ) -> Result<WaitEnded, MeshError> {
        let (kind, asked, agent) = self.asked_for(caller, &arguments)?;
        let (longest, usual) = self.longest(caller, agent.as_ref(), kind);
        let within = arguments.timeout_s.map_or(usual, |seconds| Duration::from_secs(seconds).min(longest));
        if let (PollKind::Hook, true) = (kind, within.is_zero()) {
            // It looks in at the end of a turn, and must not take the place of one that waits.
            let bell =
                agent.as_ref().and_then(|agent| self.act(|state, now| state.core.look_in(agent, WakePath::Hook, now)));
            return Ok(bell.map_or_else(
                || WaitEnded { waited_s: Some(0), ..without_bell(NoBell::Timeout) },
                |bell| self.rung(agent.as_ref(), &bell.to_string()),
            ));
        }
        let opened = self.act(|state, now| {
            let (number, ended) = state.polls.open(kind, asked, agent.clone())?;
            let at_once = agent.as_ref().and_then(|agent| match kind {
                PollKind::Tool => state.core.wait(agent, now),
                _ => {
                    state.core.open(agent, path(kind), now);
                    None
                }
            });
            Some((number, ended, at_once))
        });
        let Some((number, ended, at_once)) = opened else {
            return Err(MeshError::new(MeshErrorCode::Busy, "too many programs wait for bells; try again in a while"));
        };
        let _held = PollGuard { mesh: self.clone(), number };
        if let Some(bell) = at_once {
            return Ok(self.rung(agent.as_ref(), &bell.to_string()));
        }
        let (began, mut tick) = (Instant::now(), interval(PROGRESS));
        tick.tick().await;
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                ended = &mut ended => return Ok(match ended {
                    Ok(PollEnd::Bell(bell)) => self.rung(Some(&bell.agent), &bell.text),
                    Ok(PollEnd::Stopping) => {
                        let next = "Prism is being restarted. Call prism_signals_wait again to go on waiting.";
                        WaitEnded { next: Some(next.to_owned()), ..without_bell(NoBell::Restarting) }
                    }
                    Ok(PollEnd::Superseded) => without_bell(NoBell::Superseded),
                    Ok(PollEnd::Wrapped) | Err(_) => without_bell(NoBell::Wrapped),
                }),
                () = sleep_until(began + within) => {
                    return Ok(WaitEnded {
                        waited_s: Some(within.as_secs()),
                        next: Some("No signal yet. Call prism_signals_wait again to go on waiting.".to_owned()),
                        ..without_bell(NoBell::Timeout)
                    });
                }
                _ = tick.tick() => {
                    if let Some(call) = call {
                        call.progress(began.elapsed().as_secs(), Some(within.as_secs()), "waiting for signals");
                    }
                    if let Some(agent) = &agent {
                        let now = self.now();
                        self.state().core.seen(agent, now);
                    }
                }
            }
        }
    }

    /// Returns the bell that a verb's result is to carry, if any: other tools' results have it put to them at the door.
    pub(super) fn bell_for(&self, caller: &MeshCaller, agent: &Name) -> Option<String> {
        let is_client = matches!(caller, MeshCaller::Client(_));
        let bell = is_client.then(|| self.act(|state, now| state.core.piggyback(agent, now))).flatten();
        bell.map(|bell| bell.to_string())
    }

    /// Ends all waits: the daemon stops, and whoever waits comes back to the next one.
    pub fn stop(&self) {
        self.state().polls.stop();
    }

    fn rung(&self, agent: Option<&Name>, text: &str) -> WaitEnded {
        let pending = agent.map_or(0, |agent| self.state().core.bell(agent).map_or(0, |bell| bell.pending()));
        let next = "Call prism_signals_pending now; when you have dealt with it, call prism_signals_wait again.";
        WaitEnded {
            bell: true,
            agent: agent.map(ToString::to_string),
            text: Some(text.to_owned()),
            pending: Some(pending),
            next: Some(next.to_owned()),
            ..WaitEnded::default()
        }
    }

    /// Whose bell is waited for, and by what.
    fn asked_for(
        &self,
        caller: &MeshCaller,
        arguments: &WaitArguments,
    ) -> Result<(PollKind, PollOwner, Option<Name>), MeshError> {
        let kind = match (caller, arguments.hook.as_deref()) {
            (MeshCaller::Client(_), _) | (_, None) => PollKind::Tool,
            (_, Some("acp")) => PollKind::Acp,
            (_, Some("channel")) => PollKind::Channel,
            (_, Some(_)) => PollKind::Hook,
        };
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let named = claim.session.is_some() || claim.agent.is_some() || matches!(caller, MeshCaller::Client(_));
        if let Some(surface) = arguments.surface.as_ref().filter(|_| !named) {
            let asked = PollOwner::Surface {
                surface: surface.clone(),
                workspace: arguments.workspace.clone(),
                session: arguments.surface_session.clone(),
            };
            let state = self.state();
            let agent = state.core.names().find(|agent| state.fits(&asked, agent)).cloned();
            return Ok((kind, asked, agent));
        }
        if let Some(instance) = arguments.instance.as_ref().filter(|_| !named) {
            let instance = Uuid::try_parse(instance).map_err(|_| MeshError::bad("`instance` is no UUID"))?.as_u128();
            let agent = self.state().by_instance.get(&instance).cloned();
            return Ok((kind, PollOwner::Instance(instance), agent));
        }
        let agent = self.about(caller, claim)?;
        if *agent == *PERSON {
            return Err(MeshError::bad(
                "say whose bell to wait for: `agent`, `session`, or `surface` with `workspace`",
            ));
        }
        Ok((kind, PollOwner::Agent(agent.clone()), Some(agent)))
    }

    fn longest(&self, caller: &MeshCaller, agent: Option<&Name>, kind: PollKind) -> (Duration, Duration) {
        let surface = match caller {
            MeshCaller::Script | MeshCaller::Person => "script".to_owned(),
            MeshCaller::Client(_) => {
                let state = self.state();
                agent
                    .and_then(|agent| state.core.window(agent))
                    .map(|window| window.surface.to_string())
                    .unwrap_or_default()
            }
        };
        let known = LONGEST_OF.into_iter().find(|(name, _)| *name == surface).map(|(_, longest)| longest);
        let longest = known.unwrap_or(USUAL);
        // Whoever can wait for long had better do: each wait that ends in vain costs a turn.
        let usual = if kind == PollKind::Tool && !matches!(caller, MeshCaller::Client(_)) { USUAL } else { longest };
        (longest, usual)
    }
}

fn without_bell(why: NoBell) -> WaitEnded {
    WaitEnded { why: Some(why), ..WaitEnded::default() }
}

impl MeshState {
    /// Whether a surface's poll can only be for this agent.
    fn fits(&self, asked: &PollOwner, agent: &Name) -> bool {
        let (surface, workspace, session) = match asked {
            PollOwner::Surface { surface, workspace, session } => (surface, workspace, session),
            PollOwner::Instance(instance) => return self.by_instance.get(instance) == Some(agent),
            PollOwner::Agent(named) => return named == agent,
        };
        let of = |agent: &Name| self.core.window(agent).filter(|window| window.wrapped.is_none());
        let Some(window) = of(agent).filter(|window| *window.surface == **surface) else { return false };
        match (session, &window.surface_session) {
            (Some(session), Some(own)) => **own == **session,
            // Known only by where it is: then it must be the only one there.
            (_, None) => {
                let same = |window: &prism_core::mesh::Window| {
                    *window.surface == **surface && window.workspace.as_deref() == workspace.as_deref()
                };
                workspace.is_some()
                    && same(window)
                    && self.core.names().filter(|other| of(other).is_some_and(same)).count() == 1
            }
            (None, Some(_)) => false,
        }
    }

    /// Gives polls that were there before the agent to it. Returns the paths that lead to it by them.
    pub(super) fn attach_polls(&mut self, agent: &Name) -> Vec<WakePath> {
        let mut polls = std::mem::take(&mut self.polls);
        let paths = polls.attach(agent, |asked| self.fits(asked, agent));
        self.polls = polls;
        paths
    }
}

impl Drop for PollGuard {
    fn drop(&mut self) {
        self.mesh.act(|state, now| {
            if let Some((agent, path)) = state.polls.close(self.number) {
                state.core.close(&agent, path, now);
            }
        });
    }
}
