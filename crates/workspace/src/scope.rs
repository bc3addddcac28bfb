//! A scope, as a caller names it: a workspace, a domain in it, a repository in that. Each may be left out.

use super::{
    MemoryView, WorkspaceError,
    layout::{is_folder, is_name, topic},
};

/// What a caller said. Nothing said is the whole workspace.
#[derive(Clone, Debug, Default)]
pub struct NoteScope {
    pub workspace: Option<String>,
    pub domain: Option<String>,
    pub repository: Option<String>,
}

/// A scope of one workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedScope {
    pub(super) workspace: String,
    /// Empty: all of the workspace.
    pub(super) domain: String,
    /// Empty: all of the domain.
    pub(super) repository: String,
}

/// Places that have notes: workspace, domain, repository, topic, and how many.
pub(super) type Places = Vec<([String; 4], u32)>;

impl NoteScope {
    /// Finds a scope that is there.
    pub(super) fn find(&self, view: &MemoryView<'_>) -> Result<ResolvedScope, WorkspaceError> {
        let places = self.places(view)?;
        let place = self.place(view, &places)?;
        let below = |domain: &str, repository: &str| {
            let mut bases = view.layout.of_workspace(&place.workspace);
            bases.any(|base| is_folder(&view.root.join(base.scope(domain, repository))))
        };
        let (domain, repository) = (place.domain.as_str(), place.repository.as_str());
        let has_notes = |d: &str, r: &str| {
            places.iter().any(|([w, domain, repository, _], _)| {
                *w == place.workspace && domain == d && (r.is_empty() || repository == r)
            })
        };
        if !domain.is_empty() && !has_notes(domain, "") && !below(domain, "") {
            let known = names(&places, &place.workspace, |[_, domain, _, _]| domain);
            return Err(WorkspaceError::Unknown { what: "domain", name: domain.to_owned(), known });
        }
        if !repository.is_empty() && !has_notes(domain, repository) && !below(domain, repository) {
            let in_domain: Places = places.iter().filter(|(place, _)| place[1] == domain).cloned().collect();
            let known = names(&in_domain, &place.workspace, |[_, _, repository, _]| repository);
            return Err(WorkspaceError::Unknown { what: "repository", name: repository.to_owned(), known });
        }
        Ok(place)
    }

    /// Finds the place of a scope that may be new.
    pub(super) fn find_or_new(&self, view: &MemoryView<'_>) -> Result<ResolvedScope, WorkspaceError> {
        self.place(view, &self.places(view)?)
    }

    /// The places that there are, if they matter.
    fn places(&self, view: &MemoryView<'_>) -> Result<Places, WorkspaceError> {
        let whole = self.domain.is_none() && self.repository.is_none();
        Ok(if whole { Places::new() } else { view.index.places()? })
    }

    fn place(&self, view: &MemoryView<'_>, places: &Places) -> Result<ResolvedScope, WorkspaceError> {
        for (argument, name) in [("domain", &self.domain), ("repository", &self.repository)] {
            let Some(name) = name else { continue };
            if !is_name(name) || topic(name).is_some() {
                return Err(WorkspaceError::argument(
                    argument,
                    format!("is {name:?}, which is not the name of one folder"),
                ));
            }
        }
        let workspaces = view.layout.workspaces();
        let workspace = match (&self.workspace, workspaces.as_slice()) {
            (Some(name), _) if workspaces.contains(&name.as_str()) => name.clone(),
            (Some(name), _) => {
                let known = workspaces.join(", ");
                return Err(WorkspaceError::Unknown { what: "workspace", name: name.clone(), known });
            }
            (None, [only]) => (*only).to_owned(),
            (None, _) => return Err(WorkspaceError::WhichWorkspace { known: workspaces.join(", ") }),
        };
        let repository = self.repository.clone().unwrap_or_default();
        let domain = match &self.domain {
            Some(domain) => domain.clone(),
            None if repository.is_empty() => String::new(),
            None => domain_of(places, &workspace, &repository)?,
        };
        Ok(ResolvedScope { workspace, domain, repository })
    }
}

/// Finds the domain of a repository that was named alone.
fn domain_of(places: &Places, workspace: &str, repository: &str) -> Result<String, WorkspaceError> {
    let holds = |([w, _, r, _], _): &&([String; 4], u32)| w == workspace && r == repository;
    let mut domains: Vec<&str> = places.iter().filter(holds).map(|([_, domain, ..], _)| domain.as_str()).collect();
    domains.dedup();
    match domains.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(WorkspaceError::Unknown {
            what: "repository",
            name: repository.to_owned(),
            known: names(places, workspace, |[_, _, repository, _]| repository),
        }),
        several => Err(WorkspaceError::argument(
            "repository",
            format!("is in several domains; add `domain`: {}", several.join(", ")),
        )),
    }
}

fn names(places: &Places, workspace: &str, part: fn(&[String; 4]) -> &String) -> String {
    let of_workspace = places.iter().filter(|([w, ..], _)| w == workspace);
    let mut names: Vec<&str> = of_workspace.map(|(place, _)| part(place).as_str()).filter(|n| !n.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

// === impl ResolvedScope ===

impl ResolvedScope {
    /// Returns `domain/repository`, or less.
    pub(super) fn shown(&self) -> String {
        shown(&self.domain, &self.repository)
    }
}

/// Returns `domain/repository`, or less.
pub(super) fn shown(domain: &str, repository: &str) -> String {
    [domain, repository].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}
