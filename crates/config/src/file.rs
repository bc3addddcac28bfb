//! Config files on disk: where they lie, how they are read, and how they are changed without losing anything.
//! What the text means is `raw.rs`.
//!
//! A file is never written in place. The new text stands complete in a file beside it, has been read back as a
//! config, and only then takes the old one's name; whoever starts meanwhile reads the old file or the new one.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use prism_os::clock::now_rfc3339;
use toml_edit::DocumentMut;

use super::{
    Config, ConfigError, DestinationConfig, Env, Flags, Origin, SourceLocation,
    mcp_json::{self, ConfigWarning},
    raw::RawConfig,
    secret,
    trust::{TrustStatus, TrustStore, UntrustedFile},
};

/// The name of the file, in the folder where one works and in Prism's home.
pub const NAME: &str = "prism.toml";

/// Where a config may lie, in the order in which it is looked for.
#[derive(Clone, Debug)]
pub struct ConfigPaths {
    /// What `--config` named; then nothing else is looked at.
    pub explicit: Option<PathBuf>,
    /// The folder one works in. Empty means the process's own, and keeps messages short.
    pub here: PathBuf,
    /// Prism's home.
    pub home: PathBuf,
}

/// A config, and where it came from.
#[derive(Debug)]
pub struct LoadedConfig {
    pub config: Config,
    /// `None`: there is no file, and everything is at its default.
    pub file: Option<PathBuf>,
    /// What was left out of the JSON files, and why.
    pub warnings: Vec<ConfigWarning>,
    /// Files that do not count as they are, as the person has not seen that.
    pub untrusted: Vec<UntrustedFile>,
    /// What no agent may touch: the files that it comes from, or would come from, and those that its secrets are in.
    pub guarded: Vec<PathBuf>,
}

/// What it is worth that a file was named on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplicitTrust {
    /// Somebody has just done that, and means what the file says now.
    Now,
    /// That was some time ago: only what was seen counts.
    Before,
}

/// Reads config files as far as they count.
struct ConfigReader {
    trust: TrustStore,
    named: ExplicitTrust,
    untrusted: Vec<UntrustedFile>,
}

/// A config file while it is being changed. Holds a lock, so two `prism add` at once both find their place.
#[derive(Debug)]
pub struct ConfigDraft {
    /// The text, with its comments, to be changed.
    pub document: DocumentMut,
    path: PathBuf,
    before: String,
    written: Config,
    mode: u32,
    /// What is to be told of it once it is saved, if it counted before: that what the person has it say, the person has seen.
    seen_as: Option<(TrustStore, PathBuf)>,
    counts: bool,
    _lock: File,
}

/// Loads the config that a daemon would run on which is started here and now.
pub fn load(
    places: &ConfigPaths,
    json_files: &[PathBuf],
    flags: &Flags,
    env: &Env,
) -> Result<LoadedConfig, ConfigError> {
    load_as(places, json_files, flags, env, ExplicitTrust::Now)
}

/// Loads it as `named` says. What the person has not seen counts as it was seen, or not at all.
pub fn load_as(
    places: &ConfigPaths,
    json_files: &[PathBuf],
    flags: &Flags,
    env: &Env,
    named: ExplicitTrust,
) -> Result<LoadedConfig, ConfigError> {
    let mut reader = ConfigReader::new(places, named);
    let (file, raw) = match reader.config(places)? {
        Some((path, text)) => (Some(path.clone()), RawConfig::parse(&path, &text)?),
        None => (None, RawConfig::default()),
    };
    let mut config = raw.config(env, flags)?;
    let exposed = file.as_deref().and_then(|file| exposed(file, &config));
    let mut warnings = Vec::new();
    for path in json_files {
        let Some(text) = reader.text(path, true)? else { continue };
        let import = mcp_json::parse(path, &text, env)?;
        warnings.extend(import.warnings);
        for (name, destination) in import.destinations {
            if config.destinations.contains_key(&name) {
                let reason = "is skipped: an earlier file has a server of that name".to_owned();
                warnings.push(ConfigWarning { file: path.clone(), name, reason });
                continue;
            }
            let (max_sessions, max_memory) = (config.max_sessions, config.max_memory);
            let inherit_env = config.inherit_env.clone();
            let destination = DestinationConfig { max_sessions, max_memory, inherit_env, ..destination };
            config.destinations.insert(name, destination);
        }
    }
    // Only now: a profile may name the servers of an editor's file too.
    let left_out: Vec<&str> = warnings.iter().map(|warning| warning.name.as_str()).collect();
    raw.check_profiles(&config, &left_out)?;
    warnings.extend(exposed);
    if config.workspace.is_none() {
        config.workspace = file.as_deref().and_then(|file| places.project(file));
    }
    let guarded =
        places.candidates().into_iter().chain(json_files.to_vec()).chain(secret_files(&config, env)).collect();
    Ok(LoadedConfig { config, file, warnings, untrusted: reader.untrusted, guarded })
}

/// The files that secrets are in.
fn secret_files(config: &Config, env: &Env) -> Vec<PathBuf> {
    let variables =
        config.destinations.values().flat_map(|one| one.env.values()).map(|value| secret::of_variable(value));
    let headers = config.destinations.values().flat_map(|one| &one.http).flat_map(|http| http.headers.values());
    let contacts = config.mesh.secrets.values().map(|value| secret::of_variable(value));
    let all = variables.chain(headers.map(|value| secret::of_header(value))).chain(contacts);
    all.flatten().filter_map(|reference| reference.file(env)).collect()
}

/// Warns of a secret that is written out in a file that others can read.
fn exposed(file: &Path, config: &Config) -> Option<ConfigWarning> {
    let mode = fs::metadata(file).ok()?.permissions().mode();
    if mode & 0o044 == 0 {
        return None;
    }
    config.destinations.values().find_map(|destination| {
        let written_out = |name: &str, reference: Option<_>| reference.is_none() && secret::sounds_secret(name);
        let variable = destination.env.iter().find(|(name, value)| written_out(name, secret::of_variable(value)));
        let headers = destination.http.iter().flat_map(|http| &http.headers);
        let header = headers.into_iter().find(|(name, value)| written_out(name, secret::of_header(value)));
        let (name, _) = variable.or(header)?;
        let reason = format!(
            "has a secret ({name}) written out, and others can read the file\n  \
             fix: chmod 600 {}; or write env:NAME, file:PATH or keyring:SERVICE/ACCOUNT in its place",
            file.display()
        );
        Some(ConfigWarning { file: file.to_owned(), name: destination.name.clone(), reason })
    })
}

/// Loads what the config says by itself, as far as it counts: no environment, no flags. `None`: there is none.
pub fn load_counting(places: &ConfigPaths) -> Result<Option<Config>, ConfigError> {
    let found = ConfigReader::new(places, ExplicitTrust::Now).config(places)?;
    found.map(|(path, text)| RawConfig::parse(&path, &text)?.written()).transpose()
}

/// Returns the files that were found and do not count as they are.
pub fn unseen(places: &ConfigPaths) -> Result<Vec<UntrustedFile>, ConfigError> {
    let mut reader = ConfigReader::new(places, ExplicitTrust::Now);
    reader.config(places)?;
    Ok(reader.untrusted)
}

/// Notes for the files that a daemon is started with that the person means what they say: those that are named on the
/// command line, and a link in Prism's home to elsewhere. Those that are not named `Now` only if they were never seen.
/// Returns the files that were seen as something else.
pub fn mean(places: &ConfigPaths, json_files: &[PathBuf], named: ExplicitTrust) -> Result<Vec<PathBuf>, ConfigError> {
    let trust = TrustStore::of(&places.home);
    let cannot = |source| ConfigError::Trust { path: trust.file(), source };
    let mut changed = Vec::new();
    let mut files: Vec<(PathBuf, ExplicitTrust)> =
        places.explicit.iter().chain(json_files).map(|file| (file.clone(), named)).collect();
    files.push((places.home.join(NAME), ExplicitTrust::Before));
    for (path, named) in files {
        // What is not there or cannot be read is refused where it is loaded.
        let Ok(text) = read(&path) else { continue };
        match trust.standing(&path, &text).map_err(cannot)? {
            TrustStatus::Own | TrustStatus::Seen => continue,
            TrustStatus::Changed(_) if named == ExplicitTrust::Before => continue,
            TrustStatus::Changed(_) => changed.push(path.clone()),
            TrustStatus::Unknown => {}
        }
        trust.see(&path, &text, now_rfc3339()).map_err(cannot)?;
    }
    Ok(changed)
}

/// Loads what a file says by itself: no environment, no flags.
pub fn load_written(path: &Path) -> Result<Config, ConfigError> {
    RawConfig::parse(path, &read(path)?)?.written()
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let bytes = fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ConfigError::NoFile { path: path.to_owned() },
        _ => ConfigError::Read { path: path.to_owned(), source },
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        ConfigError::Syntax {
            at: Origin::File(Box::new(SourceLocation::at_offset(path, &text, valid))),
            problem: "this is not UTF-8".to_owned(),
            fix: Some("save the file as UTF-8".to_owned()),
        }
    })
}

// === impl ConfigReader ===

impl ConfigReader {
    fn new(places: &ConfigPaths, named: ExplicitTrust) -> Self {
        Self { trust: TrustStore::of(&places.home), named, untrusted: Vec::new() }
    }

    /// Returns the first config that counts, and its text.
    fn config(&mut self, places: &ConfigPaths) -> Result<Option<(PathBuf, String)>, ConfigError> {
        if let Some(path) = &places.explicit {
            return Ok(self.text(path, true)?.map(|text| (path.clone(), text)));
        }
        for path in places.candidates() {
            if !exists(&path)? {
                continue;
            }
            if let Some(text) = self.text(&path, false)? {
                return Ok(Some((path, text)));
            }
        }
        Ok(None)
    }

    /// Returns the text of a file as far as it counts. It is read once: what was compared is what is taken.
    fn text(&mut self, path: &Path, is_named: bool) -> Result<Option<String>, ConfigError> {
        let text = read(path)?;
        let standing = self.trust.standing(path, &text);
        let seen = match standing.map_err(|source| ConfigError::Trust { path: self.trust.file(), source })? {
            TrustStatus::Own | TrustStatus::Seen => return Ok(Some(text)),
            _ if is_named && self.named == ExplicitTrust::Now => return Ok(Some(text)),
            // Only the person puts a link into Prism's home.
            TrustStatus::Unknown if self.trust.is_in_home(path) => return Ok(Some(text)),
            TrustStatus::Unknown => None,
            TrustStatus::Changed(seen) => Some(seen.text),
        };
        self.untrusted.push(UntrustedFile { path: super::trust::name_of(path), text, seen: seen.clone() });
        Ok(seen)
    }
}

// === impl ConfigPaths ===

impl ConfigPaths {
    /// Returns the file that is there, or `None` when there is none and none was asked for.
    pub fn find(&self) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(path) = &self.explicit {
            if exists(path)? {
                return Ok(Some(path.clone()));
            }
            return Err(ConfigError::NoFile { path: path.clone() });
        }
        for path in self.candidates() {
            if exists(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns the files that it is looked for in.
    #[must_use]
    pub fn candidates(&self) -> Vec<PathBuf> {
        match &self.explicit {
            Some(path) => vec![path.clone()],
            None => vec![self.here.join(NAME), self.home.join(NAME)],
        }
    }

    /// Returns the folder of the project that a config file belongs to: where it lies, unless that is Prism's home.
    pub fn project(&self, file: &Path) -> Option<PathBuf> {
        let file = std::path::absolute(file).ok()?;
        let real = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let folder = real(folder_of(&file));
        (folder != real(&self.home)).then_some(folder)
    }

    /// Returns the file to write to: the one that would be found, or else the one in Prism's home.
    pub fn target(&self) -> Result<PathBuf, ConfigError> {
        if let Some(path) = &self.explicit {
            return Ok(path.clone());
        }
        Ok(self.find()?.unwrap_or_else(|| self.home.join(NAME)))
    }
}

fn exists(path: &Path) -> Result<bool, ConfigError> {
    path.try_exists().map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

// === impl ConfigDraft ===

impl ConfigDraft {
    /// Opens a file for a change, or begins one that is not there yet. A file that is broken stays as it is. If the person
    /// had seen it as it was, what they have changed here they have seen as well.
    pub fn open(path: &Path, home: &Path) -> Result<Self, ConfigError> {
        let cannot_read = |source| ConfigError::Read { path: path.to_owned(), source };
        let (trust, named) = (TrustStore::of(home), path.to_owned());
        let path = follow(path).map_err(cannot_read)?;
        let folder = folder_of(&path);
        let lock = File::open(folder).map_err(|source| ConfigError::Read { path: folder.to_owned(), source })?;
        // A lock guards against a second `prism add`, not against editors; a filesystem without locks is
        // no reason to refuse the change.
        let _ = lock.lock();

        let (before, mode) = match fs::metadata(&path) {
            Ok(metadata) => (read(&path)?, metadata.permissions().mode() & 0o7777),
            // Its `env` tables may come to hold API keys, so a new one is its owner's alone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), 0o600),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        let written = RawConfig::parse(&path, &before)?.written()?;
        let document =
            before.replace("\r\n", "\n").parse().map_err(|_| ConfigError::Edit { path: path.clone(), source: None })?;
        let standing = trust.standing(&named, &before);
        let standing = standing.map_err(|source| ConfigError::Trust { path: trust.file(), source })?;
        let counts = before.trim().is_empty() || matches!(standing, TrustStatus::Own | TrustStatus::Seen);
        let seen_as = (counts && standing != TrustStatus::Own).then_some((trust, named));
        Ok(Self { document, path, before, written, mode, seen_as, counts, _lock: lock })
    }

    /// Tells whether what is written here counts at once. In a file that the person has never seen it does not: what else
    /// stands there would come with it.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Returns the file itself, behind any links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the file said when it was opened.
    #[must_use]
    pub fn written(&self) -> &Config {
        &self.written
    }

    /// Writes the changed document, if it reads back as the destinations that were meant and nothing else moved.
    pub fn save(self, meant: &BTreeMap<String, DestinationConfig>) -> Result<Config, ConfigError> {
        let text = self.text();
        let config = RawConfig::parse(&self.path, &text)
            .and_then(|raw| raw.written())
            .map_err(|error| ConfigError::Edit { path: self.path.clone(), source: Some(Box::new(error)) })?;
        let expected = Config { destinations: meant.clone(), ..self.written.clone() };
        if config != expected {
            return Err(ConfigError::Edit { path: self.path, source: None });
        }
        replace(&self.path, &text, self.mode).map_err(|source| ConfigError::Write { path: self.path, source })?;
        if let Some((trust, named)) = self.seen_as {
            let seen = trust.see(&named, &text, now_rfc3339());
            seen.map_err(|source| ConfigError::Trust { path: trust.file(), source })?;
        }
        Ok(config)
    }

    /// Returns the document as text, with the line ends that the file had: the document has only `\n`.
    #[must_use]
    pub fn text(&self) -> String {
        let text = self.document.to_string();
        if self.before.contains("\r\n") {
            return text.replace('\n', "\r\n");
        }
        text
    }
}

/// Returns the file at the end of a chain of links, which need not exist. Dotfiles are often links into a
/// repository, and renaming over the link would cut it.
pub fn follow(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 16;
    let mut path = std::path::absolute(path)?;
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

pub fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Puts a text in the place of a file, whole or not at all; it keeps its owner. The caller holds the folder's lock.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    replace_bytes(path, text.as_bytes(), mode)
}

/// The same, of what is no text.
pub fn replace_bytes(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let beside = folder_of(path).join(name);
    // What a killed process left behind. `create_new` below then refuses whatever somebody else puts there.
    let _ = fs::remove_file(&beside);

    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::metadata(path) {
            // Only root can give a file away, and only root needs to: a file in one's own folder is one's own.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
