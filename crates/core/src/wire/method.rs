//! The table of methods: their names, and what the bridge must know about each.

/// A method of any revision, or one we do not know and pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Initialize,
    Ping,
    ToolsList,
    ToolsCall,
    ResourcesList,
    ResourcesTemplatesList,
    ResourcesRead,
    ResourcesSubscribe,
    ResourcesUnsubscribe,
    PromptsList,
    PromptsGet,
    Complete,
    SetLevel,
    Sample,
    Elicit,
    RootsList,
    Discover,
    Listen,
    Initialized,
    Cancelled,
    Progress,
    Log,
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    RootsChanged,
    Acknowledged,
    Other,
}

/// Every method with a name, in the order of the enum.
const TABLE: [(Method, &str); 28] = [
    (Method::Initialize, "initialize"),
    (Method::Ping, "ping"),
    (Method::ToolsList, "tools/list"),
    (Method::ToolsCall, "tools/call"),
    (Method::ResourcesList, "resources/list"),
    (Method::ResourcesTemplatesList, "resources/templates/list"),
    (Method::ResourcesRead, "resources/read"),
    (Method::ResourcesSubscribe, "resources/subscribe"),
    (Method::ResourcesUnsubscribe, "resources/unsubscribe"),
    (Method::PromptsList, "prompts/list"),
    (Method::PromptsGet, "prompts/get"),
    (Method::Complete, "completion/complete"),
    (Method::SetLevel, "logging/setLevel"),
    (Method::Sample, "sampling/createMessage"),
    (Method::Elicit, "elicitation/create"),
    (Method::RootsList, "roots/list"),
    (Method::Discover, "server/discover"),
    (Method::Listen, "subscriptions/listen"),
    (Method::Initialized, "notifications/initialized"),
    (Method::Cancelled, "notifications/cancelled"),
    (Method::Progress, "notifications/progress"),
    (Method::Log, "notifications/message"),
    (Method::ToolsChanged, "notifications/tools/list_changed"),
    (Method::PromptsChanged, "notifications/prompts/list_changed"),
    (Method::ResourcesChanged, "notifications/resources/list_changed"),
    (Method::ResourceUpdated, "notifications/resources/updated"),
    (Method::RootsChanged, "notifications/roots/list_changed"),
    (Method::Acknowledged, "notifications/subscriptions/acknowledged"),
];

impl Method {
    /// How many methods there are, `Other` included: the length of a table that is indexed with [`Self::index`].
    pub const COUNT: usize = TABLE.len() + 1;

    pub fn named(name: &str) -> Self {
        TABLE.iter().find(|(_, known)| *known == name).map_or(Self::Other, |(method, _)| *method)
    }

    /// The name on the wire; `other` for one we do not know, so that it can be a metric's label.
    pub fn name(self) -> &'static str {
        TABLE.get(self.index()).map_or("other", |(_, name)| name)
    }

    pub fn index(self) -> usize {
        self as usize
    }

    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(method, _)| *method).chain([Self::Other])
    }

    /// Whether a server may ask its client something on behalf of this call (mcp-eras 5.6).
    pub fn may_ask(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }

    /// Whether it was taken out of the protocol in 2026-07-28.
    pub fn is_legacy_only(self) -> bool {
        matches!(
            self,
            Self::Initialize | Self::Ping | Self::SetLevel | Self::ResourcesSubscribe | Self::ResourcesUnsubscribe
        )
    }

    /// Whether its result carries hints on how long it may be kept (2026-07-28).
    pub fn is_cacheable(self) -> bool {
        matches!(self, Self::Discover | Self::ResourcesRead) || self.is_list()
    }

    pub fn is_list(self) -> bool {
        matches!(self, Self::ToolsList | Self::PromptsList | Self::ResourcesList | Self::ResourcesTemplatesList)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_method() {
        for (at, (method, name)) in TABLE.iter().enumerate() {
            assert_eq!(method.index(), at);
            assert_eq!(Method::named(name), *method);
            assert_eq!(method.name(), *name);
        }
        assert_eq!(Method::named("tools/none"), Method::Other);
        assert_eq!(Method::Other.index(), Method::COUNT - 1);
    }
}
