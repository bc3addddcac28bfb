//! Where a request to the hub goes: to a member, under the member's own names; home; or nowhere.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use prism_core::{
    mcp::{
        MemberNames, Method,
        names::{split_name, split_uri},
    },
    wire::{ByteSpan, Members, Message, MessageKind, members::JsonString},
};

use super::{Hub, HubMember, HubView, HubViewer, tools};

/// Who answers a request, and the request as that one is to see it.
pub enum HubTarget {
    /// Prism itself, like any server.
    Home(Message),
    /// A member, and the names that what it answers is to have.
    Member(Arc<HubMember>, Message, Option<MemberNames>),
    /// The hub: all that its members list.
    List(Method),
    /// The hub: tools that fit a query.
    Find(tools::FindToolsInput),
    /// Prism itself, and every member that the session is at.
    Level(Message),
    Nobody {
        code: i32,
        why: String,
    },
}

impl Hub {
    pub async fn way(self: &Arc<Self>, seen: HubViewer<'_>, message: Message) -> HubTarget {
        let MessageKind::Request(method) = message.kind() else { return HubTarget::Home(message) };
        match method {
            Method::ToolsCall => self.way_of_tool(seen, message).await,
            Method::PromptsGet => self.way_of_name(seen, Method::PromptsList, message).await,
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                self.way_of_resource(seen, message).await
            }
            Method::Complete => self.way_of_completion(seen, message).await,
            Method::SetLevel => HubTarget::Level(message),
            list if list.is_list() => match message.params_text().and_then(Members::read) {
                Some(params) if params.get("cursor").is_some_and(|cursor| cursor != "null") => {
                    HubTarget::Nobody { code: -32602, why: "unknown cursor: the hub's lists have one page".to_owned() }
                }
                _ => HubTarget::List(list),
            },
            _ => HubTarget::Home(message),
        }
    }

    async fn way_of_tool(self: &Arc<Self>, seen: HubViewer<'_>, message: Message) -> HubTarget {
        let message = match message.string(message.params().name).as_deref() {
            Some(tools::FIND) => {
                return match tools::FindToolsInput::read(&message) {
                    Ok(find) => HubTarget::Find(find),
                    Err(why) => HubTarget::Nobody { code: -32602, why },
                };
            }
            Some(tools::CALL) => match tools::called(&message) {
                Ok(call) => call,
                Err(why) => return HubTarget::Nobody { code: -32602, why },
            },
            _ => message,
        };
        self.way_of_name(seen, Method::ToolsList, message).await
    }

    async fn way_of_name(self: &Arc<Self>, seen: HubViewer<'_>, list: Method, message: Message) -> HubTarget {
        // One without a name is for somebody to complain about.
        let Some(span) = message.params().name else { return HubTarget::Home(message) };
        let Some(shown) = message.string(Some(span)).map(Cow::into_owned) else { return HubTarget::Home(message) };
        let found = match list == Method::ToolsList && !seen.view.permits(&shown) {
            true => None,
            false => self.owner_of_name(seen, list, &shown).await,
        };
        match found {
            Some((member, own)) => Self::under(seen.view, member, &message, span, &shown, &own),
            None => {
                let what = if list == Method::ToolsList { "tool" } else { "prompt" };
                HubTarget::Nobody { code: -32602, why: format!("unknown {what}: {shown}") }
            }
        }
    }

    async fn way_of_resource(self: &Arc<Self>, seen: HubViewer<'_>, message: Message) -> HubTarget {
        let Some(span) = message.params().uri else { return HubTarget::Home(message) };
        let Some(shown) = message.string(Some(span)).map(Cow::into_owned) else { return HubTarget::Home(message) };
        match self.owner_of_uri(seen, &shown).await {
            Some((member, own)) => Self::under(seen.view, member, &message, span, &shown, &own),
            None => HubTarget::Nobody { code: -32002, why: format!("unknown resource: {shown}") },
        }
    }

    async fn way_of_completion(self: &Arc<Self>, seen: HubViewer<'_>, message: Message) -> HubTarget {
        let told = async {
            let whole = std::str::from_utf8(message.bytes()).ok()?;
            let mut top = Members::read(whole)?;
            let mut params = Members::read(message.params_text()?)?;
            let mut reference = Members::read(params.get("ref")?)?;
            let is_prompt = reference.says("type", "ref/prompt");
            let shown = reference.string(if is_prompt { "name" } else { "uri" })?.into_owned();
            let (member, own) = match is_prompt {
                true => self.owner_of_name(seen, Method::PromptsList, &shown).await?,
                false => self.owner_of_uri(seen, &shown).await?,
            };
            reference.set(if is_prompt { "name" } else { "uri" }, JsonString(&own).to_string());
            let reference = reference.to_string();
            params.set("ref", reference);
            let params = params.to_string();
            top.set("params", params);
            Some((member, Message::parse(Bytes::from(top.to_string())).ok()?))
        };
        match told.await {
            Some((member, message)) if member.is_home() => HubTarget::Home(message),
            Some((member, message)) => {
                let names = seen.view.names(&member);
                HubTarget::Member(member, message, names)
            }
            None => {
                HubTarget::Nobody { code: -32602, why: "`ref` names no prompt or resource of the hub's".to_owned() }
            }
        }
    }

    /// The message to whom it is for, under that one's own name for a thing.
    fn under(
        view: &HubView,
        member: Arc<HubMember>,
        message: &Message,
        span: ByteSpan,
        shown: &str,
        own: &str,
    ) -> HubTarget {
        let message = if shown == own { message.clone() } else { message.with(span, &JsonString(own).to_string()) };
        if member.is_home() {
            return HubTarget::Home(message);
        }
        let names = view.names_for(&member, shown);
        HubTarget::Member(member, message, names)
    }

    /// Whose tool or prompt this is, and what it is called there.
    pub(super) async fn owner_of_name(
        self: &Arc<Self>,
        seen: HubViewer<'_>,
        list: Method,
        shown: &str,
    ) -> Option<(Arc<HubMember>, String)> {
        let could_be = |member: &&Arc<HubMember>| {
            member.own && shown.strip_prefix(member.name()).is_some_and(|rest| rest.starts_with('_'))
        };
        // Prism's own are known without asking anybody else.
        if let Some(own) = seen.view.members().iter().find(could_be)
            && let [Ok(items)] = &self.gather(std::slice::from_ref(own), seen.audience, list).await[..]
            && items.iter().any(|item| *item.name == *shown)
        {
            return Some((own.clone(), shown.to_owned()));
        }
        let prefixed = split_name(shown).and_then(|(slug, rest)| Some((named(seen.view, slug)?, rest.to_owned())));
        if let Some(sole) = sole(seen.view).filter(|_| !seen.view.has_prefixes()) {
            // Only one that is called like one of Prism's own has a prefix.
            let alike = |(member, rest): &(Arc<HubMember>, String)| seen.view.is_anothers(member, list, rest);
            return Some(prefixed.filter(alike).unwrap_or((sole, shown.to_owned())));
        }
        // One without a prefix, and one that was cut to measure, leads back by the list only.
        if (!seen.view.has_prefixes() || shown.len() == self.plan().settings.longest_name)
            && let Some(found) = self.found(seen, list, shown).await
        {
            return Some(found);
        }
        prefixed
    }

    /// Whose a name is, by what everybody's server lists, or else by what the session's own do.
    async fn found(
        self: &Arc<Self>,
        seen: HubViewer<'_>,
        list: Method,
        shown: &str,
    ) -> Option<(Arc<HubMember>, String)> {
        let all = self.merged(HubViewer { session: None, ..seen }, list).await.find(shown);
        match seen.session {
            Some(_) if all.is_none() => self.merged(seen, list).await.find(shown),
            _ => all,
        }
    }

    pub async fn owner_of_uri(self: &Arc<Self>, seen: HubViewer<'_>, shown: &str) -> Option<(Arc<HubMember>, String)> {
        let is_own = |member: &&Arc<HubMember>| {
            member.own && shown.strip_prefix(member.name()).is_some_and(|rest| rest.starts_with("://"))
        };
        if let Some(own) = seen.view.members().iter().find(is_own) {
            return Some((own.clone(), shown.to_owned()));
        }
        if let Some((slug, rest)) = split_uri(shown) {
            return Some((named(seen.view, slug)?, rest.to_owned()));
        }
        if seen.view.has_prefixes() {
            return None;
        }
        if let Some(sole) = sole(seen.view) {
            return Some((sole, shown.to_owned()));
        }
        if let Some(found) = self.merged(seen, Method::ResourcesList).await.find(shown) {
            return Some(found);
        }
        let templates = self.merged(seen, Method::ResourcesTemplatesList).await;
        let literal = |template: &str| template.split('{').next().unwrap_or_default().len();
        let fitting = templates.items.iter().filter(|(template, _)| shown.starts_with(&template[..literal(template)]));
        let (template, _) = fitting.max_by_key(|(template, _)| literal(template))?;
        templates.find(template).map(|(member, _)| (member, shown.to_owned()))
    }
}

/// The member that names begin with this of.
fn named(view: &HubView, slug: &str) -> Option<Arc<HubMember>> {
    view.members().iter().find(|member| !member.own && member.names.slug() == slug).cloned()
}

/// The one member that is not Prism itself, if there is one only.
fn sole(view: &HubView) -> Option<Arc<HubMember>> {
    let mut others = view.members().iter().filter(|member| !member.own);
    others.next().filter(|_| others.next().is_none()).cloned()
}
