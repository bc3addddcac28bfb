//! Prism's entry as it stands in a config now. Nothing is changed here.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    ConfigFile, InstallError,
    document::{ConfigText, lookup},
    entry::{EntryMarks, NAME},
    record::{ChangePurpose, ChangeRecords},
    surface::Surface,
};

/// An entry named as ours is.
#[derive(Debug)]
pub struct PrismEntry {
    pub path: PathBuf,
    pub value: Value,
    /// Whether `prism install` would replace it: it was written by us, or leads to us.
    pub ours: bool,
}

/// Looks for Prism's entry in a surface's config.
pub fn find(
    surface: Surface,
    path: &Path,
    marks: &EntryMarks,
    records: &ChangeRecords,
) -> Result<Option<PrismEntry>, InstallError> {
    let file = ConfigFile::open(path)?;
    if file.text.is_none() {
        return Ok(None);
    }
    let text = ConfigText::new(surface.language(), file.text());
    let whole = text.value().map_err(|source| InstallError::Edit { path: path.to_owned(), source })?;
    let Some(value) = lookup(&whole, &surface.container(&whole)).and_then(|servers| servers.get(NAME)) else {
        return Ok(None);
    };
    let ours = marks.are_on(value) || records.find(ChangePurpose::Install, path).is_some();
    Ok(Some(PrismEntry { path: path.to_owned(), value: value.clone(), ours }))
}
