//! What a client of the hub's sees: which members, and their lists as one.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
    sync::{Arc, Mutex, atomic::Ordering},
};

use bytes::Bytes;
use prism_core::{
    mcp::{
        Era, MemberNames, Method, Revision,
        hello::OWN_INFO,
        modern,
        names::{self, split_name, split_uri},
        payload,
    },
    wire::{Message, members::JsonString},
};

use super::{Hub, HubMember, HubSession, MAX_VIEWS, lists::Listed, tools};
use crate::drive::{Audience, destination::lock};
use prism_config::HubMode;

/// What `_meta` of a list says of the members that are not in it.
const UNAVAILABLE: &str = "prism/unavailable";

/// A part of the hub, under the names that its clients know.
pub struct HubView {
    /// The query that it was asked for with.
    asked: String,
    members: Vec<Arc<HubMember>>,
    prefix: bool,
    search: bool,
    /// Patterns of the tools that are in it; none: all.
    tools: Vec<String>,
    merged: Mutex<HashMap<(Method, Audience), Arc<MergedList>>>,
}

/// Who looks, and what at: without a session everybody of an audience sees the same.
#[derive(Clone, Copy)]
pub struct HubViewer<'a> {
    pub view: &'a Arc<HubView>,
    pub session: Option<&'a HubSession>,
    pub audience: Audience,
}

/// The lists of all members as one.
pub(super) struct MergedList {
    /// The hub's count of changes when it was put together.
    pub(super) changes: u64,
    /// What is shown, in order: the name, and all that is said of it.
    pub(super) items: Vec<(String, String)>,
    /// Whose it is, and what it is called there.
    index: HashMap<String, (Arc<HubMember>, Box<str>)>,
    unavailable: Vec<(String, String)>,
    /// As it is told to clients of each kind, under the id 0.
    told: Mutex<HashMap<Option<Revision>, Message>>,
    pub(super) search: tools::ViewToolIndex,
}

/// A query that names no view.
#[derive(Debug)]
pub struct UnknownViewError {
    pub why: String,
}

impl Hub {
    /// The view that a URL's query asks for: `only=a,b`, `profile=NAME`, `mode=search`, `prefix=false`.
    pub fn view(&self, query: Option<&str>) -> Result<Arc<HubView>, UnknownViewError> {
        let wanted = ["only", "profile", "mode", "prefix"];
        let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let asked: Vec<(&str, &str)> = pairs.filter(|(name, _)| wanted.contains(name)).collect();
        let key = asked.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        if let Some(view) = lock(&self.views).get(&key) {
            return Ok(view.clone());
        }
        let view = Arc::new(self.make_view(key.clone(), &asked)?);
        let mut views = lock(&self.views);
        if views.len() < MAX_VIEWS {
            views.insert(key, view.clone());
        }
        Ok(view)
    }

    fn make_view(&self, key: String, asked: &[(&str, &str)]) -> Result<HubView, UnknownViewError> {
        let plan = self.plan();
        let value = |wanted: &str| asked.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let profile = match value("profile") {
            None => None,
            Some(name) => Some(plan.profiles.get(name).ok_or_else(|| {
                let known: Vec<&str> = plan.profiles.keys().map(String::as_str).collect();
                UnknownViewError { why: format!("there is no profile {name:?}; known: {}", listed(&known)) }
            })?),
        };
        let of_profile = profile.and_then(|profile| profile.only.clone());
        let only = value("only")
            .map(|only| only.replace("%2C", ",").replace("%2c", ",").split(',').map(str::to_owned).collect());
        let only: Option<Vec<String>> = only.or(of_profile);
        let known: Vec<&str> = plan.members.iter().map(|member| member.name()).collect();
        if let Some(stranger) = only.iter().flatten().find(|name| !known.contains(&name.as_str())) {
            return Err(UnknownViewError {
                why: format!("there is no server {stranger:?}; known: {}", listed(&known)),
            });
        }
        let except = profile.map(|profile| &profile.except[..]).unwrap_or_default();
        let shown = |member: &&Arc<HubMember>| match &only {
            // Prism itself is always there: it is who answers.
            _ if member.number == 0 => true,
            Some(only) => only.iter().any(|name| name == member.name()),
            None => !except.iter().any(|name| name == member.name()),
        };
        let mode = match value("mode") {
            None => profile.and_then(|profile| profile.mode).unwrap_or(plan.settings.mode),
            Some("list") => HubMode::List,
            Some("search") => HubMode::Search,
            Some(other) => {
                return Err(UnknownViewError { why: format!("there is no mode {other:?}; known: list, search") });
            }
        };
        let prefix = match value("prefix") {
            None => profile.and_then(|profile| profile.prefix).unwrap_or(plan.settings.prefix),
            Some("true") => true,
            Some("false") => false,
            Some(other) => return Err(UnknownViewError { why: format!("prefix is true or false, not {other:?}") }),
        };
        Ok(HubView {
            asked: key,
            members: plan.members.iter().filter(shown).cloned().collect(),
            prefix,
            search: mode == HubMode::Search,
            tools: profile.map(|profile| profile.tools.clone()).unwrap_or_default(),
            merged: Mutex::default(),
        })
    }

    /// The answer to a list's request, for a client of this revision; `None` is the modern one.
    pub async fn listing(
        self: &Arc<Self>,
        seen: HubViewer<'_>,
        list: Method,
        revision: Option<Revision>,
    ) -> Option<Message> {
        let merged = self.merged(seen, list).await;
        if let Some(told) = lock(&merged.told).get(&revision) {
            return Some(told.clone());
        }
        let result = match seen.view.search && list == Method::ToolsList {
            true => MergedList { items: tools::definitions(), ..merged.bare() }.tell(list, revision)?,
            false => merged.tell(list, revision)?,
        };
        let told = Message::parse(Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#))).ok()?;
        lock(&merged.told).insert(revision, told.clone());
        Some(told)
    }

    /// All that a client's members list.
    pub(super) async fn merged(
        self: &Arc<Self>,
        HubViewer { view, session, audience }: HubViewer<'_>,
        list: Method,
    ) -> Arc<MergedList> {
        let changes = self.changes.load(Ordering::Relaxed);
        let own = session.map(HubSession::own_parts).unwrap_or_default();
        let longest = self.plan().settings.longest_name;
        if !own.is_empty() {
            // Where the client has a server of its own, what counts is what that one lists.
            let (mut all, theirs) =
                tokio::join!(self.gather(&view.members, audience, list), self.gather_own(&own, list));
            for (number, listed) in theirs {
                if let Some(at) = view.members.iter().position(|member| member.number == number) {
                    all[at] = listed;
                }
            }
            return Arc::new(view.merge(list, all, changes, longest));
        }
        let all = match self.gathered(&view.members, audience, list) {
            Some(all) => {
                if let Some(merged) =
                    lock(&view.merged).get(&(list, audience)).filter(|merged| merged.changes == changes)
                {
                    return merged.clone();
                }
                all
            }
            None => self.gather(&view.members, audience, list).await,
        };
        let merged = Arc::new(view.merge(list, all, changes, longest));
        lock(&view.merged).insert((list, audience), merged.clone());
        merged
    }
}

impl HubView {
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The same without members, but for Prism itself.
    pub(super) fn bare(&self) -> Self {
        Self {
            asked: self.asked.clone(),
            members: self.members.iter().filter(|member| member.is_home()).cloned().collect(),
            prefix: self.prefix,
            search: self.search,
            tools: self.tools.clone(),
            merged: Mutex::default(),
        }
    }

    /// The names that this view has for a member's things, where they are not the member's own.
    pub fn names(&self, member: &HubMember) -> Option<MemberNames> {
        (self.prefix && !member.own).then(|| member.names.clone())
    }

    /// The names for an answer to a client that has asked for this URI, or name: one that has called a resource by the
    /// hub's name for it hears of it under that.
    pub fn names_for(&self, member: &HubMember, shown: &str) -> Option<MemberNames> {
        let by_hubs = || split_uri(shown).filter(|_| !member.own).map(|_| member.names.clone());
        self.names(member).or_else(by_hubs)
    }

    pub fn shows(&self, member: &HubMember) -> bool {
        self.members.iter().any(|shown| shown.number == member.number)
    }

    pub fn members(&self) -> &[Arc<HubMember>] {
        &self.members
    }

    pub(super) fn has_prefixes(&self) -> bool {
        self.prefix
    }

    /// Whether a tool is in it, by the name that it is shown under.
    pub(super) fn permits(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// Whether a name that a member gives to something of its own is one that leads to another, or to Prism itself: calls
    /// that are meant for that one, with all that is in them, must not come to whoever lists such a name. (M2)
    pub(super) fn is_anothers(&self, member: &HubMember, list: Method, name: &str) -> bool {
        let is_uri = matches!(list, Method::ResourcesList | Method::ResourcesTemplatesList);
        let (slug, mark) = match is_uri {
            true => (split_uri(name).map(|(slug, _)| slug), "://"),
            false => (split_name(name).map(|(slug, _)| slug), "_"),
        };
        !member.own
            && self.members.iter().any(|other| match other.own {
                true => name.strip_prefix(other.name()).is_some_and(|rest| rest.starts_with(mark)),
                false => other.number != member.number && slug == Some(other.names.slug()),
            })
    }

    fn merge(&self, list: Method, all: Vec<Listed>, changes: u64, longest: usize) -> MergedList {
        let mut merged = MergedList { changes, ..MergedList::empty() };
        let mut seen = HashSet::new();
        let twice: HashSet<&str> = match self.prefix {
            true => HashSet::new(),
            false => all
                .iter()
                .flatten()
                .flat_map(|items| items.iter())
                .map(|i| &*i.name)
                .filter(|name| !seen.insert(*name))
                .collect(),
        };
        for (member, listed) in self.members.iter().zip(&all) {
            let items = match listed {
                Ok(items) => items,
                Err(why) => {
                    merged.unavailable.push((member.name().to_owned(), why.clone()));
                    continue;
                }
            };
            for item in items.iter() {
                let squats = self.is_anothers(member, list, &item.name);
                if squats && !self.prefix {
                    member.squats(&item.name);
                }
                let plain = member.own || (!self.prefix && !squats && !twice.contains(&*item.name));
                let (shown, text) = match plain {
                    true => (item.name.to_string(), item.text.to_string()),
                    false => member.names.item(list, item, longest),
                };
                // Two of one name would be one too many for a client; the first one has it.
                if (list == Method::ToolsList && !self.permits(&shown)) || merged.index.contains_key(&shown) {
                    continue;
                }
                merged.index.insert(shown.clone(), (member.clone(), item.name.clone()));
                merged.items.push((shown, text));
            }
        }
        merged
    }
}

impl MergedList {
    fn empty() -> Self {
        let (items, index, unavailable) = (Vec::new(), HashMap::new(), Vec::new());
        Self { changes: 0, items, index, unavailable, told: Mutex::default(), search: tools::ViewToolIndex::default() }
    }

    /// All of it but the items.
    fn bare(&self) -> Self {
        Self { unavailable: self.unavailable.clone(), ..Self::empty() }
    }

    /// Whose this is, and what it is called there.
    pub(super) fn find(&self, shown: &str) -> Option<(Arc<HubMember>, String)> {
        self.index.get(shown).map(|(member, own)| (member.clone(), own.to_string()))
    }

    fn tell(&self, list: Method, revision: Option<Revision>) -> Option<String> {
        let (member, _) = names::listed(list)?;
        let texts: Vec<&str> = self.items.iter().map(|(_, text)| &**text).collect();
        let mut out = match revision {
            Some(_) => String::from("{"),
            None => format!(r#"{{"resultType":"complete","ttlMs":{},"cacheScope":"private","#, modern::LIST_TTL_MS),
        };
        let _ = write!(out, r#""{member}":[{}]"#, texts.join(","));
        let mut meta = Vec::new();
        if revision.is_none() {
            meta.push(format!(r#""{}":{OWN_INFO}"#, modern::SERVER_INFO));
        }
        if !self.unavailable.is_empty() {
            let all = self
                .unavailable
                .iter()
                .map(|(name, why)| format!(r#"{{"destination":{},"why":{}}}"#, JsonString(name), JsonString(why)));
            meta.push(format!(r#""{UNAVAILABLE}":[{}]"#, all.collect::<Vec<_>>().join(",")));
        }
        if !meta.is_empty() {
            let _ = write!(out, r#","_meta":{{{}}}"#, meta.join(","));
        }
        out.push('}');
        Some(match revision {
            Some(revision) => payload::result_for(revision, Era::Modern, list, &out).unwrap_or(out),
            None => out,
        })
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.len() >= last.len() && left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, does) in [
            ("a__*", "a__b", true),
            ("a__*", "b__a__", false),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(fits(pattern, name), does, "{pattern} {name}");
        }
    }
}
