//! What is remembered of an extension that we installed, beside the records of changed files: an editor's own list does not
//! say who put a thing there, and only what we put there is ours to remove.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::{InstallError, record::hash, surface::Surface};
use prism_config::file::{replace, replace_bytes};

/// Where packages lie, below Prism's home.
const PACKAGES: &str = "extensions";

/// An extension that we installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledExtension {
    /// The surface's name.
    surface: String,
    /// The editor's command; none if it was not found, and the package waits for the person.
    pub program: Option<PathBuf>,
    pub version: String,
    /// Of the package's bytes. While Prism is built, the version stays and they do not.
    digest: String,
}

/// The folder of what is remembered, and the one of packages.
#[derive(Clone, Debug)]
pub struct ExtensionStore {
    records: PathBuf,
    packages: PathBuf,
}

// === impl InstalledExtension ===

impl InstalledExtension {
    pub fn new(surface: Surface, program: Option<&Path>, package: &[u8]) -> Self {
        Self {
            surface: surface.name().to_owned(),
            program: program.map(Path::to_owned),
            version: VERSION.to_owned(),
            digest: digest(&SHA256, package).as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    fn file_name(&self) -> String {
        let place = self.program.as_ref().map_or(self.surface.as_bytes(), |path| path.as_os_str().as_encoded_bytes());
        format!("extension-{}-{:016x}.json", self.surface, hash(place))
    }
}

// === impl ExtensionStore ===

impl ExtensionStore {
    pub fn new(home: &Path) -> Self {
        Self { records: home.join("installed"), packages: home.join(PACKAGES) }
    }

    /// Returns what is remembered of a surface.
    pub fn all(&self, surface: Surface) -> Vec<InstalledExtension> {
        let mut all: Vec<InstalledExtension> =
            self.everything().filter(|kept| kept.surface == surface.name()).collect();
        all.sort_by(|a, b| a.program.cmp(&b.program));
        all
    }

    fn everything(&self) -> impl Iterator<Item = InstalledExtension> {
        let entries = fs::read_dir(&self.records).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("extension-"));
        ours.filter_map(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok())
    }

    pub fn keep(&self, kept: &InstalledExtension) -> Result<(), InstallError> {
        let written = (|| {
            make(&self.records)?;
            let text = serde_json::to_string_pretty(kept).map_err(io::Error::other)?;
            replace(&self.records.join(kept.file_name()), &text, 0o600)
        })();
        written.map_err(|source| InstallError::Record { path: self.records.clone(), source })
    }

    /// Forgets one. A package goes with the last who waits for it.
    pub fn forget(&self, kept: &InstalledExtension) {
        let _ = fs::remove_file(self.records.join(kept.file_name()));
        let _ = fs::remove_dir(&self.records);
        if self.everything().all(|kept| kept.program.is_some()) {
            self.clear();
        }
    }

    pub fn package(&self) -> PathBuf {
        self.packages.join(format!("prism-{VERSION}.vsix"))
    }

    /// Puts the package where an editor, or a person, can take it from.
    pub fn put(&self, package: &[u8]) -> Result<PathBuf, InstallError> {
        let path = self.package();
        let written = make(&self.packages).and_then(|()| replace_bytes(&path, package, 0o600));
        written.map(|()| path.clone()).map_err(|source| InstallError::Write { path, source })
    }

    /// Returns whether the very package lies there.
    pub fn has(&self, package: &[u8]) -> bool {
        fs::read(self.package()).is_ok_and(|there| there == package)
    }

    /// Removes the packages, those of older versions too.
    pub fn clear(&self) {
        for entry in fs::read_dir(&self.packages).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|ending| ending == "vsix") {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(&self.packages);
    }
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
