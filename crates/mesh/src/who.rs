//! Who calls a verb. Over MCP the door says it; a client that has neither a session nor a shim has to name its agent session,
//! and so has a script. Who has the management secret is the person, and may name an agent.

use std::collections::HashMap;

use prism_core::mesh::{Name, PERSON, Window, name};
use uuid::Uuid;

use super::{Mesh, MeshError, MeshErrorCode, MeshState};
use prism_mcp::kit::CallerMark;

/// Where a verb's call came from.
#[derive(Clone, Debug)]
pub enum MeshCaller {
    /// A client of ours, as the door has it.
    Client(CallerMark),
    /// A program that has the clients' token, by HTTP. It is nobody, but for who shows its session.
    Script,
    /// One that has the management secret: the person, and whomever they speak for.
    Person,
}

/// What the arguments of a verb say of who calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallerClaim<'a> {
    pub(super) session: Option<&'a str>,
    pub(super) agent: Option<&'a str>,
}

impl Mesh {
    /// The agent that calls: one with a live window, and for the person any name that is known.
    pub(super) fn who(&self, caller: &MeshCaller, claim: CallerClaim<'_>) -> Result<Name, MeshError> {
        let now = self.now();
        let mut state = self.state();
        let agent = state.claimed(caller, claim)?;
        state.core.seen(&agent, now);
        Ok(agent)
    }

    /// The same for what takes nothing and says nothing in anybody's name: whoever has the token may name whom it is about.
    pub(super) fn about(&self, caller: &MeshCaller, claim: CallerClaim<'_>) -> Result<Name, MeshError> {
        match caller {
            MeshCaller::Script => self.who(&MeshCaller::Person, claim),
            MeshCaller::Client(_) | MeshCaller::Person => self.who(caller, claim),
        }
    }

    /// The agent that a client is, if it is one.
    pub fn agent_of(&self, caller: &MeshCaller) -> Option<String> {
        let MeshCaller::Client(mark) = caller else { return None };
        self.state().of_client(mark).map(|name| name.to_string())
    }
}

impl MeshState {
    fn claimed(&self, caller: &MeshCaller, claim: CallerClaim<'_>) -> Result<Name, MeshError> {
        let known = match caller {
            MeshCaller::Client(mark) => self.of_client(mark),
            MeshCaller::Script | MeshCaller::Person => None,
        };
        if let Some(session) = claim.session {
            let named = self.of_session(session)?;
            // A window is one agent, whatever it has read of others; who is none yet may bring the session that it had.
            return match known.filter(|known| *known != named) {
                Some(known) => Err(MeshError::new(
                    MeshErrorCode::NotYours,
                    format!("that session is another agent's; leave `session` out: this window is {known}"),
                )),
                None => Ok(named),
            };
        }
        let known = match (caller, claim.agent) {
            (MeshCaller::Client(_), _) => known,
            (MeshCaller::Script, _) => {
                return Err(MeshError::new(
                    MeshErrorCode::NotYours,
                    "the clients' token is nobody's name: give the `session` that prism_start returned; or show the \
                     management secret, as `prism signal` does, to act for the person or an agent",
                ));
            }
            (MeshCaller::Person, Some(agent)) => {
                let agent = name(agent)?;
                return if self.core.is_known(&agent) { Ok(agent) } else { Err(self.unknown(&agent)) };
            }
            (MeshCaller::Person, None) => Some(PERSON.into()),
        };
        let displaced = match caller {
            MeshCaller::Client(mark) => self.displaced(mark),
            MeshCaller::Script | MeshCaller::Person => None,
        };
        if let (None, Some(name)) = (&known, displaced) {
            return Err(MeshError::new(
                MeshErrorCode::NotStarted,
                format!(
                    "another window has started as {name} since, so this one is {name} no more, and its signals go there; \
                     call prism_start under a name of your own, and tell the person if nobody was to take this one"
                ),
            ));
        }
        known.ok_or_else(|| {
            MeshError::new(
                MeshErrorCode::NotStarted,
                "nobody knows who you are yet: call prism_start first, and if this is said again, give the `session` \
                 that it returned with every call",
            )
        })
    }

    /// The agent that a client is, by its MCP session or its shim.
    pub(super) fn of_client(&self, mark: &CallerMark) -> Option<Name> {
        self.of_ids(mark.session, mark.instance)
    }

    /// The agent that a client was until another took its name. (M6)
    fn displaced(&self, mark: &CallerMark) -> Option<&Name> {
        [mark.session, mark.instance].into_iter().flatten().find_map(|id| self.displaced.get(&id.as_u128()))
    }

    pub(super) fn of_ids(&self, session: Option<Uuid>, instance: Option<Uuid>) -> Option<Name> {
        let of = |id: Option<Uuid>, among: &HashMap<u128, Name>| id.and_then(|id| among.get(&id.as_u128()).cloned());
        of(session, &self.by_mcp).or_else(|| of(instance, &self.by_instance))
    }

    /// The agent whose live window that session is.
    pub(super) fn of_session(&self, session: &str) -> Result<Name, MeshError> {
        let id = Uuid::try_parse(session.trim())
            .map_err(|_| MeshError::bad("`session` is the id that prism_start returned, a UUID"))?
            .as_u128();
        let live = |agent: &&Name| {
            let window = self.core.window(agent);
            window.is_some_and(|window: &Window| window.session == id && window.wrapped.is_none())
        };
        self.core.agent_of(id).filter(live).cloned().ok_or_else(|| {
            MeshError::new(
                MeshErrorCode::UnknownSession,
                "that session has ended: it was wrapped, or another window has started under the same name; call \
                 prism_start to go on",
            )
        })
    }

    pub(super) fn unknown(&self, agent: &str) -> MeshError {
        let known: Vec<&str> = self.core.names().map(|name| &**name).take(20).collect();
        let known = if known.is_empty() { "none has started yet".to_owned() } else { known.join(", ") };
        MeshError::new(
            MeshErrorCode::UnknownAgent,
            format!("there is no agent {agent:?}; known: {known} (and {PERSON})"),
        )
    }
}
