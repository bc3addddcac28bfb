//! Payloads told to a client of an older revision, or of the other era, without losing what can be kept (mcp-eras 2.14,
//! 3 and 5.7). Who is told what, and when, is decided elsewhere: here JSON text comes in and JSON text goes out.
//!
//! An edit is a function from text to `Option<String>`, and `None` means "as it is". An object is taken apart only on
//! the way down to a change; what is carried along is never decoded, so its numbers, escapes and order stay as written.
//! What is malformed is left alone: it is the server's word, and the client may say so.

use std::borrow::Cow;

use serde_json::Value;

use super::era::{Era, Revision};
use crate::wire::{
    Members, Method,
    members::{array, each, edited, items, one_or_each},
};

/// What only results of the modern era have at their top. One TypeScript SDK refuses an empty result that is not empty.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The keys of `_meta` that only the modern era gives a meaning.
const MODERN_META: [&str; 6] = [
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A session as far as payloads are concerned: what its client can read, and which era its server writes.
#[derive(Clone, Copy)]
struct Pair {
    revision: Revision,
    era: Era,
}

/// Content blocks on their way to an older client.
struct Blocks {
    revision: Revision,
    /// How many were given an address of ours, so that each has another.
    sounds: usize,
}

/// Returns the result of `method` as a session at `revision` may see it; `None`: as it is. `era` is what the server
/// speaks.
pub fn result_for(revision: Revision, era: Era, method: Method, result: &str) -> Option<String> {
    let pair = Pair { revision, era };
    let old = revision < Revision::V2025_06_18;
    let concerned = match method {
        // A list is often asked for, and large. A server that escapes a letter of this name gains nothing by it.
        Method::ToolsList => old || result.contains("\"taskSupport\""),
        Method::ToolsCall | Method::PromptsGet => old,
        _ => false,
    };
    if era == Era::Legacy && !concerned {
        return None;
    }
    edited(result, |result| {
        if era == Era::Modern {
            result.remove_all(&MODERN_MEMBERS);
            result.strip("_meta", &MODERN_META);
        }
        let mut blocks = Blocks { revision, sounds: 0 };
        match method {
            Method::ToolsList => result.edit("tools", |tools| each(tools, |tool| pair.tool(tool))),
            Method::ToolsCall => {
                result.edit("content", |content| blocks.all(content));
                pair.drop_unreadable_structure(result);
            }
            Method::PromptsGet => result.edit("messages", |messages| {
                each(messages, |message| {
                    edited(message, |message| message.edit("content", |content| blocks.all(content)))
                })
            }),
            _ => {}
        }
    })
}

/// Returns the parameters of a server's question as a session at `revision` may see them; `Ok(None)`: as they are.
///
/// # Errors
/// It cannot be expressed there. The text says why, for the -32602 to the server.
pub fn question_for(revision: Revision, method: Method, params: &str) -> Result<Option<String>, &'static str> {
    if method == Method::Elicit && revision < Revision::V2025_06_18 {
        return Err("the client's protocol revision has no elicitation");
    }
    let Some(mut params) = Members::read(params) else { return Ok(None) };
    // The client's `tasks` were not shown to the server, so an answer in the shape of a task has nowhere to go.
    params.remove_all(&["task"]);
    match method {
        Method::Elicit if revision < Revision::V2025_11_25 => plain_form(&mut params)?,
        Method::Sample if revision < Revision::V2025_11_25 => plain_sampling(revision, &mut params)?,
        _ => {}
    }
    Ok(params.if_changed())
}

/// Returns the parameters of a legacy server's question as those of an input request of the modern era (5.7 A2);
/// `None`: as they are.
pub fn question_to_modern(params: &str) -> Option<String> {
    edited(params, |params| {
        params.remove_all(&["elicitationId", "task"]);
        params.strip("_meta", &["progressToken"]);
    })
}

/// Returns the parameters of a modern server's input request as those of a real request to a session at `revision`
/// (5.7 B1); `Ok(None)`: as they are. `elicitation_id` is what an elicitation by URL is to be known by.
///
/// # Errors
/// As of [`question_for`].
pub fn question_to_legacy(
    revision: Revision,
    method: Method,
    params: &str,
    elicitation_id: &str,
) -> Result<Option<String>, &'static str> {
    let pair = Pair { revision, era: Era::Modern };
    let changed = edited(params, |params| match method {
        Method::Elicit if params.says("mode", "url") => params.set("elicitationId", quoted(elicitation_id)),
        // Tools and their results reach the client's model this way too, with the same limits as in `result_for`.
        Method::Sample => {
            params.edit("tools", |tools| each(tools, |tool| pair.tool(tool)));
            params.edit("messages", |messages| {
                each(messages, |message| {
                    edited(message, |message| {
                        message.edit("content", |content| one_or_each(content, |block| pair.tool_result(block)));
                    })
                })
            });
        }
        _ => {}
    });
    let levelled = question_for(revision, method, changed.as_deref().unwrap_or(params))?;
    Ok(levelled.or(changed))
}

/// Returns a modern server's `error` as a legacy session may see it (section 3); `None`: as it is. `uri` is what
/// `resources/read` asked for.
pub fn error_to_legacy(method: Method, uri: Option<&str>, error: &str) -> Option<String> {
    let mut members = Members::read(error)?;
    match code(&members)? {
        INVALID_PARAMS if method == Method::ResourcesRead => {
            let uri = uri?;
            if Members::read(members.get("data")?)?.says("uri", uri) {
                members.set("code", RESOURCE_NOT_FOUND.to_string());
            }
            members.if_changed()
        }
        // HeaderMismatch, MissingRequiredClientCapability, UnsupportedProtocolVersion: between the server and us. The
        // original holds the capabilities that were missing.
        -32022..=-32020 => Some(as_internal_error(&members, error)),
        _ => None,
    }
}

/// Returns a legacy server's `error` as a modern client may see it (section 3); `None`: as it is.
pub fn error_to_modern(error: &str) -> Option<String> {
    let mut members = Members::read(error)?;
    match code(&members)? {
        RESOURCE_NOT_FOUND => {
            members.set("code", INVALID_PARAMS.to_string());
            members.if_changed()
        }
        // The modern revision reserves these. What it defines among them a legacy server cannot have meant, and a
        // -32042 that comes here is one that `url_elicitations` could not read.
        -32099..=-32020 => Some(as_internal_error(&members, error)),
        _ => None,
    }
}

/// Returns the parameters of the input requests that an error -32042 stands for (5.7 A7); `None` if it is no such
/// error, or one that names nothing to visit.
pub fn url_elicitations(error: &str) -> Option<Vec<String>> {
    let error = Members::read(error)?;
    if code(&error)? != URL_ELICITATION_REQUIRED {
        return None;
    }
    let data = Members::read(error.get("data")?)?;
    let list = items(data.get("elicitations")?)?;
    // All or nothing: a client that is shown a part would come back, only to be refused again.
    let params = list.into_iter().map(|params| {
        let mut members = Members::read(params)?;
        members.string("url")?;
        match members.get("mode") {
            None => members.set("mode", quoted("url")),
            Some(_) if members.says("mode", "url") => {}
            Some(_) => return None,
        }
        let params = members.to_string();
        Some(question_to_modern(&params).unwrap_or(params))
    });
    params.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

/// Levels a form down to 2025-06-18, which knows neither modes, nor titles in `oneOf`, nor more than one choice.
fn plain_form(params: &mut Members) -> Result<(), &'static str> {
    match params.string("mode").as_deref() {
        Some("form") => params.remove_all(&["mode"]),
        Some("url") => return Err("the client's protocol revision has no elicitation by URL"),
        Some(_) => return Err("the client's protocol revision has no elicitation modes"),
        None => {}
    }
    let mut many = false;
    params.edit("requestedSchema", |schema| {
        edited(schema, |schema| {
            schema.edit("properties", |fields| {
                edited(fields, |fields| {
                    fields.edit_all(|field| {
                        let field = Members::read(field)?;
                        many |= field.says("type", "array");
                        named_choices(field)
                    });
                })
            });
        })
    });
    if many { Err("the client's protocol revision has no form fields with several choices") } else { Ok(()) }
}

/// A choice of one, from `oneOf` of `const` and `title` to `enum` and `enumNames`.
fn named_choices(mut field: Members) -> Option<String> {
    if !field.says("type", "string") {
        return None;
    }
    let mut values = Vec::new();
    let mut names = Vec::new();
    for choice in items(field.get("oneOf")?)? {
        let choice = Members::read(choice)?;
        let value = choice.get("const").filter(|value| is_string(value))?.to_owned();
        // The two lists are read side by side, so a choice without a title is called by its value.
        names.push(choice.get("title").filter(|title| is_string(title)).unwrap_or(&value).to_owned());
        values.push(value);
    }
    field.remove_all(&["oneOf", "enum", "enumNames"]);
    field.set("enum", array(&values));
    field.set("enumNames", array(&names));
    field.if_changed()
}

/// Levels a request for sampling down to before 2025-11-25: no tools, and one block in a message.
fn plain_sampling(revision: Revision, params: &mut Members) -> Result<(), &'static str> {
    // `null` is how some servers write "none".
    if ["tools", "toolChoice"].iter().any(|name| params.get(name).is_some_and(|value| value != "null")) {
        return Err("the client's protocol revision has no tools in sampling");
    }
    let mut refused = Ok(());
    params.edit("messages", |messages| {
        let list = items(messages)?;
        let mut plain: Vec<Cow<str>> = Vec::with_capacity(list.len());
        let mut changed = false;
        for message in list {
            match plain_messages(revision, message) {
                Ok(None) => plain.push(Cow::Borrowed(message)),
                Ok(Some(several)) => {
                    plain.extend(several.into_iter().map(Cow::Owned));
                    changed = true;
                }
                Err(why) => {
                    refused = Err(why);
                    return None;
                }
            }
        }
        changed.then(|| array(&plain))
    });
    refused
}

/// One message of sampling as one message for each of its blocks; `None`: as it is.
fn plain_messages(revision: Revision, message: &str) -> Result<Option<Vec<String>>, &'static str> {
    let Some(mut message) = Members::read(message) else { return Ok(None) };
    let Some(content) = message.get("content").map(str::to_owned) else { return Ok(None) };
    let several = items(&content);
    for block in several.as_deref().unwrap_or(&[&content]) {
        let Some(block) = Members::read(block) else { return Ok(None) };
        match block.string("type").as_deref() {
            Some("text" | "image") | None => {}
            Some("audio") if revision >= Revision::V2025_03_26 => {}
            // Not even an embedded resource is allowed here, so there is no substitute as there is in results.
            Some("audio") => return Err("the client's protocol revision has no audio in sampling"),
            Some(_) => return Err("the client's protocol revision has no such content in sampling"),
        }
    }
    let role = message.get("role").unwrap_or_default().to_owned();
    // What is repeated for every block must be short, or a small question becomes a large one.
    let (Some(blocks), true) = (several, ["user", "assistant"].iter().any(|known| message.says("role", known))) else {
        return Ok(None);
    };
    let messages = blocks.into_iter().enumerate().map(|(i, block)| match i {
        // `_meta`, and what we do not know, goes with the first.
        0 => {
            message.set("content", block.to_owned());
            message.to_string()
        }
        _ => format!(r#"{{"role":{role},"content":{block}}}"#),
    });
    Ok(Some(messages.collect()))
}

// === impl Pair ===

impl Pair {
    /// Whether a `structuredContent` or an `outputSchema` can pass. Before the modern era both are about objects, so a
    /// legacy server's need no look.
    fn reads_structure(self, is_object: impl FnOnce() -> bool) -> bool {
        self.revision >= Revision::V2025_06_18 && (self.era == Era::Legacy || is_object())
    }

    /// A tool of `tools/list`.
    fn tool(self, tool: &str) -> Option<String> {
        edited(tool, |tool| {
            // Tasks are not bridged: a client that reads this would ask for one.
            tool.strip("execution", &["taskSupport"]);
            let is_object = |schema| Members::read(schema).is_some_and(|schema| schema.says("type", "object"));
            if tool.get("outputSchema").is_some_and(|schema| !self.reads_structure(|| is_object(schema))) {
                tool.remove_all(&["outputSchema"]);
            }
        })
    }

    /// A block that may be the result of a tool the client's model called.
    fn tool_result(self, block: &str) -> Option<String> {
        edited(block, |block| {
            if block.says("type", "tool_result") {
                self.drop_unreadable_structure(block);
            }
        })
    }

    /// Drops a `structuredContent` that the client cannot read, once a text block holds its JSON.
    fn drop_unreadable_structure(self, result: &mut Members) {
        let Some(structure) = result.get("structuredContent").map(str::to_owned) else { return };
        if self.reads_structure(|| structure.starts_with('{')) {
            return;
        }
        // The modern era may mean `null`; before it, that is how some servers write "none".
        if structure != "null" || self.era == Era::Modern {
            let copy = || Cow::Owned(format!(r#"{{"type":"text","text":{}}}"#, quoted(&structure)));
            match result.get("content") {
                None | Some("null") => result.set("content", array(&[copy()])),
                Some(content) => {
                    // Content of another type has no place for the copy; then better both than neither.
                    let Some(blocks) = items(content) else { return };
                    let value = serde_json::from_str(&structure).ok();
                    if !blocks.iter().any(|block| holds_json(block, &structure, value.as_ref())) {
                        let blocks: Vec<_> = blocks.into_iter().map(Cow::Borrowed).chain([copy()]).collect();
                        result.set("content", array(&blocks));
                    }
                }
            }
        }
        result.remove_all(&["structuredContent"]);
    }
}

/// Whether a block is text, and that text this JSON, however it is laid out. `value` is the same, decoded, unless a
/// number of it is out of range.
fn holds_json(block: &str, json: &str, value: Option<&Value>) -> bool {
    let Some(block) = Members::read(block).filter(|block| block.says("type", "text")) else { return false };
    let Some(text) = block.string("text") else { return false };
    let text = text.trim();
    // Prose is told from JSON by its first letter, most of the time.
    let alike =
        || text.get(..1) == json.get(..1) && value.is_some() && serde_json::from_str(text).ok().as_ref() == value;
    text == json || alike()
}

// === impl Blocks ===

impl Blocks {
    fn all(&mut self, content: &str) -> Option<String> {
        if self.revision >= Revision::V2025_06_18 {
            return None;
        }
        one_or_each(content, |block| self.one(block))
    }

    fn one(&mut self, block: &str) -> Option<String> {
        let members = Members::read(block)?;
        match members.string("type")?.as_ref() {
            "audio" if self.revision < Revision::V2025_03_26 => self.embedded(members),
            "resource_link" => link_as_text(members),
            _ => None,
        }
    }

    /// Sound as an embedded resource, which every revision knows.
    fn embedded(&mut self, mut audio: Members) -> Option<String> {
        let data = audio.get("data").filter(|data| is_string(data))?;
        let kind = audio.get("mimeType").filter(|kind| is_string(kind));
        let kind = kind.map(|kind| format!(r#","mimeType":{kind}"#)).unwrap_or_default();
        self.sounds += 1;
        let resource = format!(r#"{{"uri":"audio://prism/{}"{kind},"blob":{data}}}"#, self.sounds);
        audio.remove_all(&["data", "mimeType"]);
        audio.set("type", quoted("resource"));
        audio.set("resource", resource);
        audio.if_changed()
    }
}

/// A link as text: its name and address, then on lines of their own what else a reader can use.
fn link_as_text(mut link: Members) -> Option<String> {
    // Strings are joined as they were escaped.
    let inside = |name: &str| link.get(name)?.strip_prefix('"')?.strip_suffix('"');
    let uri = inside("uri")?;
    let mut text = inside("name").map_or_else(|| format!("\"{uri}"), |name| format!("\"{name}: {uri}"));
    for more in ["title", "description", "mimeType"].into_iter().filter_map(inside) {
        text.push_str("\\n");
        text.push_str(more);
    }
    text.push('"');
    link.keep(&["type", "annotations", "_meta"]);
    link.set("type", quoted("text"));
    link.set("text", text);
    link.if_changed()
}

/// The code of an error.
fn code(error: &Members) -> Option<i64> {
    error.get("code")?.parse().ok()
}

/// An error as one that every peer knows, the whole of it kept.
fn as_internal_error(error: &Members, original: &str) -> String {
    let message = error.get("message").filter(|message| is_string(message)).unwrap_or("\"Internal error\"");
    format!(r#"{{"code":-32603,"message":{message},"data":{{"original":{original}}}}}"#)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn is_string(json: &str) -> bool {
    json.starts_with('"')
}

#[cfg(test)]
mod tests;
