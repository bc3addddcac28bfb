//! What one server's things are called among those of others: the names of the hub (B-27).
//!
//! A tool or prompt is `server__name`, a resource `hub://server/uri`. Both lead back to what the server itself says, and
//! no two servers' can be the same: what stands before the first `__` holds none and does not end in `_`.

use std::sync::Arc;

use crate::wire::{
    Members, Message, Method,
    envelope::unquoted,
    members::{self, JsonString, each, edited, one_or_each},
    splice::around,
};

const SCHEME: &str = "hub://";
const SEPARATOR: &str = "__";
/// The longest server's part of a name, so that most of a name is left to what it names.
const MAX_SLUG: usize = 24;
/// Hexadecimal digits that stand for what was cut off.
const DIGITS: usize = 8;

/// One server's names among others'. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberNames {
    slug: Arc<str>,
}

impl MemberNames {
    /// The names of a server that is called so; `taken` are the names that others have already.
    pub fn new(server: &str, taken: &[Self]) -> Self {
        let fits = |slug: &str| {
            !slug.is_empty()
                && slug.len() <= MAX_SLUG
                && !slug.contains(SEPARATOR)
                && !slug.ends_with('_')
                && slug.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
                && taken.iter().all(|other| *other.slug != *slug)
        };
        let mut slug = server.to_owned();
        let mut salt = 0;
        while !fits(&slug) {
            let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let kept: String = server.chars().map(clean).take(MAX_SLUG - DIGITS - 1).collect();
            slug = format!("{kept}-{:08x}", hash(server, salt));
            salt += 1;
        }
        Self { slug: slug.into() }
    }

    /// What stands before the name.
    pub fn slug(&self) -> &str {
        &self.slug
    }

    /// A tool's or prompt's name, no longer than that. Too long a one ends in a number made from all of it: which one it
    /// is, only a list of the names can tell.
    pub fn name(&self, name: &str, longest: usize) -> String {
        let whole = format!("{}{SEPARATOR}{name}", self.slug);
        if whole.len() <= longest {
            return whole;
        }
        let mut end = longest.saturating_sub(DIGITS + 1);
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        // Padded, so that by its length alone a name can be told to have been cut.
        let room = longest - DIGITS - end;
        format!("{}{}{:08x}", &whole[..end], "_".repeat(room), hash(&whole, 0))
    }

    pub fn uri(&self, uri: &str) -> String {
        format!("{SCHEME}{}/{uri}", self.slug)
    }

    // --- Messages ---

    /// A result whose URIs are those of the hub; `None` if it has none.
    pub fn result(&self, method: Method, result: &str) -> Option<String> {
        if !matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
            || memchr::memmem::find(result.as_bytes(), b"\"uri\"").is_none()
        {
            return None;
        }
        edited(result, |result| match method {
            Method::ToolsCall => result.edit("content", |content| each(content, |block| self.block(block))),
            Method::ResourcesRead => result.edit("contents", |contents| each(contents, |item| self.with_uri(item))),
            _ => result.edit("messages", |messages| {
                let block = |content: &str| one_or_each(content, |block| self.block(block));
                each(messages, |message| edited(message, |message| message.edit("content", block)))
            }),
        })
    }

    /// An item of a list, under the hub's name, which comes first.
    pub fn item(&self, method: Method, ListItem { name, text }: &ListItem, longest: usize) -> (String, String) {
        let shown = match method {
            Method::ToolsList | Method::PromptsList => self.name(name, longest),
            _ => self.uri(name),
        };
        let told = edited(text, |item| {
            if let Some((_, member)) = listed(method) {
                item.set(member, JsonString(&shown).to_string());
            }
            item.edit("_meta", |meta| self.page(meta));
        });
        let told = told.unwrap_or_else(|| text.to_string());
        (shown, told)
    }

    /// A note that a resource has changed, under the hub's name for it.
    pub fn updated(&self, note: &Message) -> Option<Vec<u8>> {
        let span = note.params().uri?;
        let uri = self.quoted(note.text(span))?;
        Some(around(note, span, &uri).concat())
    }

    /// A block that links to a resource, or holds one.
    fn block(&self, block: &str) -> Option<String> {
        let members = Members::read(block)?;
        match &*members.string("type")? {
            "resource_link" => self.with_uri(block),
            "resource" => edited(block, |block| block.edit("resource", |resource| self.with_uri(resource))),
            _ => None,
        }
    }

    /// The `_meta` of a tool that has a page to show: by the extension for apps, in its two spellings, and as one client
    /// had it before.
    fn page(&self, meta: &str) -> Option<String> {
        edited(meta, |meta| {
            meta.edit("ui", |ui| edited(ui, |ui| ui.edit("resourceUri", |uri| self.quoted(uri))));
            for name in ["ui/resourceUri", "openai/outputTemplate"] {
                meta.edit(name, |uri| self.quoted(uri));
            }
        })
    }

    fn with_uri(&self, object: &str) -> Option<String> {
        edited(object, |object| object.edit("uri", |uri| self.quoted(uri)))
    }

    /// A URI, both as they are written in JSON.
    fn quoted(&self, uri: &str) -> Option<String> {
        Some(JsonString(&self.uri(&unquoted(uri)?)).to_string())
    }
}

/// An item of a list: what the server calls it, and all that it says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    pub name: Box<str>,
    pub text: Box<str>,
}

/// The items of a list, but for those that have no name; `None` if it is none.
pub fn items(method: Method, result: &str) -> Option<Vec<ListItem>> {
    let (list, member) = listed(method)?;
    let result = Members::read(result)?;
    let named = members::items(result.get(list)?)?.into_iter().filter_map(|item| {
        let members = Members::read(item)?;
        let name = members.string(member)?.into();
        Some(ListItem { name, text: item.into() })
    });
    Some(named.collect())
}

/// The result that lists these: what [`items`] reads.
pub fn result(method: Method, items: &[ListItem]) -> Option<String> {
    let (list, _) = listed(method)?;
    let items: Vec<&str> = items.iter().map(|item| &*item.text).collect();
    Some(format!(r#"{{"{list}":[{}]}}"#, items.join(",")))
}

/// The member that lists something, and the one that names an item of it.
pub fn listed(method: Method) -> Option<(&'static str, &'static str)> {
    match method {
        Method::ToolsList => Some(("tools", "name")),
        Method::PromptsList => Some(("prompts", "name")),
        Method::ResourcesList => Some(("resources", "uri")),
        Method::ResourcesTemplatesList => Some(("resourceTemplates", "uriTemplate")),
        _ => None,
    }
}

/// The server's part of a name, and the rest.
pub fn split_name(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(SEPARATOR)
}

/// The server's part of a URI, and the server's own.
pub fn split_uri(shown: &str) -> Option<(&str, &str)> {
    shown.strip_prefix(SCHEME)?.split_once('/')
}

/// FNV-1a: the same in every build, as what clients have learned must go on to fit.
fn hash(text: &str, salt: u32) -> u32 {
    text.bytes().fold(0x811c_9dc5 ^ salt, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn names(server: &str) -> MemberNames {
        MemberNames::new(server, &[])
    }

    // B-27
    #[test]
    fn a_name_says_whose_it_is_and_leads_back() {
        assert_eq!(names("files").name("read", 64), "files__read");
        assert_eq!(split_name("files__read"), Some(("files", "read")));
        assert_eq!(split_name("a___b"), Some(("a", "_b")));
        assert_eq!(names("files").uri("file:///a?b#c"), "hub://files/file:///a?b#c");
        assert_eq!(split_uri("hub://files/file:///a?b#c"), Some(("files", "file:///a?b#c")));
        assert_eq!(split_uri("file:///a"), None);
    }

    // B-27
    #[test]
    fn a_long_name_is_cut_to_measure_and_stays_its_own() {
        let files = names("files");
        let (one, other) = (files.name(&format!("{}a", "x".repeat(90)), 64), files.name(&"x".repeat(91), 64));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert!(one.starts_with("files__xxx"));
        assert_eq!(files.name(&"é".repeat(60), 64).len(), 64);
        // Where it is short, not even the server's own part has room.
        let (one, other) = (names("destination-one").name("read", 16), names("destination-two").name("read", 16));
        assert_eq!((one.len(), other.len()), (16, 16));
        assert_ne!(one, other);
    }

    // B-27
    #[test]
    fn a_result_is_told_with_the_hubs_uris() {
        let names = names("d");
        let told = |method, result: &str| names.result(method, result);
        assert_eq!(told(Method::ToolsCall, r#"{"content":[{"type":"text","text":"x"}]}"#), None);
        let mixed = r#"{"content":[{"type":"text","text":"\"uri\""},{"type":"resource_link","uri":"a:b","n":1.0},{"type":"resource","resource":{"uri":"c:d","text":"t"}}],"isError":false}"#;
        assert_eq!(
            told(Method::ToolsCall, mixed).unwrap(),
            r#"{"content":[{"type":"text","text":"\"uri\""},{"type":"resource_link","uri":"hub://d/a:b","n":1.0},{"type":"resource","resource":{"uri":"hub://d/c:d","text":"t"}}],"isError":false}"#
        );
        let read = r#"{"contents":[{"uri":"a:b","blob":""}],"ttlMs":1}"#;
        assert_eq!(
            told(Method::ResourcesRead, read).unwrap(),
            r#"{"contents":[{"uri":"hub://d/a:b","blob":""}],"ttlMs":1}"#
        );
        let prompt = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:b"}}},{"role":"user","content":[{"type":"resource_link","uri":"c"}]}]}"#;
        assert_eq!(
            told(Method::PromptsGet, prompt).unwrap(),
            r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"hub://d/a:b"}}},{"role":"user","content":[{"type":"resource_link","uri":"hub://d/c"}]}]}"#
        );
        assert_eq!(told(Method::ToolsList, r#"{"uri":1}"#), None);
    }

    // B-27
    #[test]
    fn a_list_is_told_item_by_item() {
        let told = |method, result| {
            let items = items(method, result).unwrap();
            items.iter().map(|item| names("d").item(method, item, 64)).collect::<Vec<_>>()
        };
        let tools = r#"{"tools":[{"name":"a","x":1.0,"_meta":{"ui":{"resourceUri":"ui://p"},"ui/resourceUri":"ui://p"}},{"no":"name"}]}"#;
        let shown = r#"{"name":"d__a","x":1.0,"_meta":{"ui":{"resourceUri":"hub://d/ui://p"},"ui/resourceUri":"hub://d/ui://p"}}"#;
        assert_eq!(told(Method::ToolsList, tools), [("d__a".to_owned(), shown.to_owned())]);
        let templates = r#"{"resourceTemplates":[{"uriTemplate":"x://{id}"}]}"#;
        assert_eq!(told(Method::ResourcesTemplatesList, templates)[0].1, r#"{"uriTemplate":"hub://d/x://{id}"}"#);
        assert_eq!(items(Method::ToolsList, r#"{"tools":{}}"#), None);
    }

    // B-27
    #[test]
    fn a_note_of_a_change_names_the_hubs_uri() {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","x":1}}"#;
        let note = Message::parse(Bytes::from(note)).unwrap();
        let told = String::from_utf8(names("d").updated(&note).unwrap()).unwrap();
        assert!(told.contains(r#""params":{"uri":"hub://d/a:b","x":1}"#), "{told}");
    }

    proptest! {
        // B-27
        #[test]
        fn no_two_servers_have_a_name_in_common(
            servers in prop::collection::vec("[a-z_ .é-]{0,30}", 1..6), tool in "[a-z_]{1,80}", uri in ".{0,40}",
        ) {
            let mut all: Vec<MemberNames> = Vec::new();
            for server in &servers {
                all.push(MemberNames::new(server, &all));
            }
            for (at, names) in all.iter().enumerate() {
                prop_assert!(all[..at].iter().all(|other| other != names));
                let shown = names.name(&tool, 64);
                prop_assert!(shown.len() <= 64);
                prop_assert_eq!(split_name(&shown).unwrap().0, names.slug());
                if shown.len() < 64 {
                    prop_assert_eq!(split_name(&shown).unwrap().1, &tool);
                }
                let shown = names.uri(&uri);
                prop_assert_eq!(split_uri(&shown), Some((names.slug(), uri.as_str())));
            }
        }
    }
}
