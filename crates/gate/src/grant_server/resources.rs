//! What is open, as resources: each buffer with its text, and what is wrong in it. Reading one is an action like any other, so
//! scope, root, limit and log are those of the verb.

use prism_core::policy::{Code, GrantScope};
use serde_json::{Map, Value, json};

use super::{
    EditorGrant,
    uri::{self, ResourceAspect},
};
use crate::GateError;
use prism_mcp::kit::{CallFailure, Resources, ServerCall};

/// The resources of one grant.
pub(super) struct BufferResources(pub(super) EditorGrant);

impl Resources for BufferResources {
    const LIST_CHANGES: bool = true;

    async fn list(&self, call: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        if !self.0.may(GrantScope::ReadBuffers) {
            return Ok(Vec::new());
        }
        let listed = self.0.act("get_buffers", Map::new(), call).await;
        let listed = listed.map_err(|trouble| refused("", &trouble))?;
        let buffers = listed["buffers"].as_array().into_iter().flatten();
        Ok(buffers.flat_map(|buffer| self.entries(buffer)).collect())
    }

    fn templates(&self) -> Vec<Value> {
        let template = |about, name: &str, what: &str| {
            let uri = uri::of(about, "").to_owned() + "{+path}";
            json!({"uriTemplate": uri, "name": name, "description": what})
        };
        let mut all = Vec::new();
        if self.0.may(GrantScope::ReadFiles) {
            all.push(template(ResourceAspect::Text, "text", "A text, as it is in the editor; path is absolute."));
        }
        if self.0.may(GrantScope::DetectErrors) {
            all.push(template(
                ResourceAspect::Diagnostics,
                "diagnostics",
                "Errors and warnings in a text; path is absolute.",
            ));
        }
        all
    }

    async fn read(&self, uri: &str, call: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        let (about, path) = uri::read(uri).ok_or_else(|| CallFailure::no_resource(uri))?;
        let verb = match about {
            ResourceAspect::Text => "open_file",
            ResourceAspect::Diagnostics => "get_errors",
        };
        let args = Map::from_iter([("path".to_owned(), Value::from(path))]);
        let read = self.0.act(verb, args, call).await.map_err(|trouble| refused(uri, &trouble))?;
        Ok(vec![match about {
            ResourceAspect::Text => text(uri, &read),
            ResourceAspect::Diagnostics => json!({
                "uri": uri, "mimeType": "application/json", "text": read.to_string(),
                "_meta": {"prism/version": read["version"], "prism/analyzed_version": read["analyzed_version"]},
            }),
        }])
    }

    fn can_watch(&self, uri: &str) -> bool {
        let Some((about, path)) = uri::read(uri) else { return false };
        let may = match about {
            ResourceAspect::Text => self.0.may(GrantScope::ReadBuffers) || self.0.may(GrantScope::MonitorState),
            ResourceAspect::Diagnostics => self.0.may(GrantScope::DetectErrors),
        };
        may && self.0.held.grant().roots.iter().any(|root| root.is_above(&path))
    }
}

impl BufferResources {
    /// What there is of a buffer.
    fn entries(&self, buffer: &Value) -> Vec<Value> {
        let path = buffer["path"].as_str().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let meta = json!({
            "prism/version": buffer["version"], "prism/is_dirty": buffer["is_dirty"], "prism/language": buffer["language"],
        });
        let mut all = Vec::new();
        if self.0.may(GrantScope::ReadFiles) {
            let uri = uri::of(ResourceAspect::Text, path);
            all.push(json!({"uri": uri, "name": name, "mimeType": "text/plain", "_meta": meta}));
        }
        if self.0.may(GrantScope::DetectErrors) {
            let (uri, name) = (uri::of(ResourceAspect::Diagnostics, path), format!("{name}: errors and warnings"));
            all.push(json!({"uri": uri, "name": name, "mimeType": "application/json"}));
        }
        all
    }
}

fn text(uri: &str, read: &Value) -> Value {
    let meta = json!({
        "prism/version": read["version"], "prism/digest": read["digest"], "prism/is_dirty": read["is_dirty"],
        "prism/language": read["language"],
    });
    match read["encoding"].as_str() {
        Some("base64") => {
            json!({"uri": uri, "mimeType": "application/octet-stream", "blob": read["content"], "_meta": meta})
        }
        _ => json!({"uri": uri, "mimeType": "text/plain", "text": read["content"], "_meta": meta}),
    }
}

fn refused(uri: &str, trouble: &GateError) -> CallFailure {
    match trouble.code {
        code if code == Code::NotFound.name() => CallFailure::no_resource(uri),
        _ => CallFailure::invalid(trouble.message.clone()).with_data(json!(trouble.told())),
    }
}
