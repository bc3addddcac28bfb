//! Entries that still speak the transport of the protocol's first revision, HTTP+SSE, in the words of the one that
//! replaced it (W-05).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ChangePurpose, ChangeRecords, ChangeState, ConfigFile, FileChange, InstallError,
    document::{ConfigText, ServerEntry},
    entry::{headers, is_loopback, same_authority},
    record::RecordedEdit,
    surface::Surface,
};
use prism_config::HttpConfig;

/// What becomes of a file's old entries.
pub struct ConfigMigration {
    pub change: FileChange,
    /// Names of the entries that are changed.
    pub changed: Vec<String>,
    /// Those that stay, and why.
    pub kept: Vec<(String, String)>,
}

/// Which entries are meant.
#[derive(Clone, Copy)]
pub struct MigrationScope<'a> {
    /// Those that lead to the daemon at this URL always are: it answers at both paths.
    pub daemon: &'a str,
    /// Others are if there is somebody who asks the server, and it answers.
    pub ask: Option<&'a dyn Fn(HttpConfig) -> Result<(), String>>,
}

/// Plans the change of a file; `None` if it has no old entries.
pub fn plan(
    surface: Surface,
    file: ConfigFile,
    reach: MigrationScope<'_>,
    records: &ChangeRecords,
) -> Result<Option<ConfigMigration>, InstallError> {
    let in_file = |source| InstallError::Edit { path: file.path.clone(), source };
    let language = surface.language();
    let value = ConfigText::new(language, file.text()).value().map_err(in_file)?;
    let container = surface.container(&value);
    let mut after = file.text().to_owned();
    let (mut edits, mut changed, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for entry in ConfigText::new(language, file.text()).entries(&container).map_err(in_file)? {
        let Some(old) = SseEntry::of(surface, &entry) else {
            continue;
        };
        let new_url = match old.new_url(reach) {
            Ok(url) => url,
            Err(reason) => {
                kept.push((entry.name, reason));
                continue;
            }
        };
        let raw = |text: &str| ConfigText::new(language, text).raw(&container, &entry.name);
        let before = raw(&after).map_err(in_file)?.unwrap_or_default();
        after = old.rewritten(surface, &container, &entry.name, &new_url, &after).map_err(in_file)?;
        let new = raw(&after).map_err(in_file)?.unwrap_or_default();
        let (container, name) = (container.clone(), entry.name.clone());
        edits.push(RecordedEdit::Changed { container, name, old: before, new });
        changed.push(entry.name);
    }
    if edits.is_empty() && kept.is_empty() {
        return Ok(None);
    }
    let change = match edits.is_empty() {
        true => FileChange::nothing(file),
        false => FileChange::edited(
            file,
            after,
            ChangeState::Changed,
            ChangePurpose::Migrate,
            Some(surface),
            edits,
            records,
        )?,
    };
    Ok(Some(ConfigMigration { change, changed, kept }))
}

/// What is old about an entry.
struct SseEntry<'e> {
    /// The member that holds the URL.
    field: &'static str,
    url: &'e str,
    /// The member that says `sse`.
    kind: Option<&'static str>,
    /// Those that are written out; what an editor fills in is not known here.
    headers: BTreeMap<String, String>,
}

// === impl SseEntry ===

impl<'e> SseEntry<'e> {
    fn of(surface: Surface, entry: &'e ServerEntry) -> Option<Self> {
        let (field, url) = ["url", "serverUrl", "httpUrl"]
            .into_iter()
            .find_map(|field| Some((field, entry.value.get(field)?.as_str()?)))?;
        let kind = ["type", "transport"]
            .into_iter()
            .find(|member| entry.value.get(member).and_then(Value::as_str) == Some("sse"));
        // Gemini's `url` is the old transport, and `httpUrl` the new one.
        let by_name = surface == Surface::GeminiCli && field == "url" && entry.value.get("type").is_none();
        let is_old = kind.is_some() || split(url).is_some() || by_name;
        is_old.then(|| {
            let headers =
                headers(&entry.value).filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
            Self { field, url, kind, headers: headers.filter(|(_, value)| !value.contains(['$', '{'])).collect() }
        })
    }

    /// Returns where the server is found by the new transport, or why that is not known.
    fn new_url(&self, reach: MigrationScope<'_>) -> Result<String, String> {
        let shown = self.url.split('?').next().unwrap_or_default();
        let url = match split(self.url) {
            Some((base, rest)) => format!("{base}/mcp{rest}"),
            None if shown.ends_with("/mcp") => self.url.to_owned(),
            None => {
                return Err(format!("has the URL {shown}, which does not tell where its Streamable HTTP endpoint is"));
            }
        };
        if is_loopback(self.url) && same_authority(self.url, reach.daemon) {
            return Ok(url);
        }
        let Some(ask) = reach.ask else {
            return Err("leads to another server, which may not speak Streamable HTTP; --all asks it".to_owned());
        };
        match ask(HttpConfig { headers: self.headers.clone(), ..HttpConfig::new(&url) }) {
            Ok(()) => Ok(url),
            Err(why) => Err(format!("does not answer at {}: {why}", url.split('?').next().unwrap_or_default())),
        }
    }

    fn rewritten(
        &self,
        surface: Surface,
        container: &[String],
        name: &str,
        new_url: &str,
        text: &str,
    ) -> Result<String, super::EditError> {
        let language = surface.language();
        let mut text = ConfigText::new(language, text).set(container, name, self.field, new_url)?;
        if let Some(kind) = self.kind {
            let word = if kind == "type" { "http" } else { "streamable-http" };
            text = ConfigText::new(language, &text).set(container, name, kind, word)?;
        } else if surface == Surface::GeminiCli && self.field == "url" {
            text = ConfigText::new(language, &text).rename(container, name, "url", "httpUrl")?;
        }
        Ok(text)
    }
}

/// Splits a URL around a last part of its path that is `/sse`.
fn split(url: &str) -> Option<(&str, &str)> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, rest) = url.split_at(end);
    let base = path.strip_suffix("/sse").or_else(|| path.strip_suffix("/sse/"))?;
    Some((base, rest))
}
