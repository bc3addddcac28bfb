//! Which program serves which language, where its projects begin, and what it is told so that it runs nothing of the project
//! unasked.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};

use super::proof::ProgramCheck;
use crate::{language::SourceLanguage, settings::EditorSettings};

/// A server that is known by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerKind {
    pub(crate) name: &'static str,
    languages: &'static [SourceLanguage],
    command: &'static [&'static str],
    /// Files whose folder is a project of these languages.
    pub(crate) markers: &'static [&'static str],
    /// Where this stands in the first marker, the project goes up to there.
    pub(crate) wide: Option<&'static str>,
    /// Whether it tells when it has loaded everything (`experimental/serverStatus`).
    pub(crate) tells_quiet: bool,
    /// Whether it is told of changed files and does not look for itself. So it never reads a file before that was looked at
    /// here (`project_trust.rs`).
    pub(crate) leaves_watching: bool,
    /// How it is seen whether a program of this name can work.
    pub(super) look: ProgramCheck,
    install: &'static str,
}

/// A server that is looked for where nothing is configured.
#[derive(Clone, Copy, Debug)]
pub struct DefaultLanguageServer {
    /// The first of its languages, by LSP's name.
    pub language: &'static str,
    pub program: &'static str,
    kind: &'static ServerKind,
}

/// What serves a language here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerChoice {
    /// The program with its whole path, and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) kind: &'static ServerKind,
}

const KINDS: &[ServerKind] = &[
    ServerKind {
        name: "rust-analyzer",
        languages: &[SourceLanguage::Rust],
        command: &["rust-analyzer"],
        markers: &["Cargo.toml", "rust-project.json"],
        wide: Some("[workspace]"),
        tells_quiet: true,
        leaves_watching: true,
        look: ProgramCheck::Version { words: &["--version"], least: 0 },
        install: "install it with `rustup component add rust-analyzer rust-src`",
    },
    ServerKind {
        name: "pyright",
        languages: &[SourceLanguage::Python],
        command: &["pyright-langserver", "--stdio"],
        markers: &["pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt"],
        wide: None,
        tells_quiet: false,
        leaves_watching: false,
        look: ProgramCheck::Start,
        install: "install it with `npm install --global pyright`",
    },
    ServerKind {
        name: "typescript",
        languages: &[SourceLanguage::TypeScript, SourceLanguage::Tsx, SourceLanguage::JavaScript],
        command: &["tsc", "--lsp", "--stdio"],
        markers: &["tsconfig.json", "jsconfig.json", "package.json"],
        wide: None,
        tells_quiet: false,
        leaves_watching: false,
        look: ProgramCheck::Version { words: &["--version"], least: 7 },
        install: "install TypeScript 7 or newer with `npm install --global typescript`",
    },
    ServerKind {
        name: "clangd",
        languages: &[SourceLanguage::C, SourceLanguage::Cpp],
        // So that it sees the buffers of headers, too.
        command: &["clangd", "--use-dirty-headers"],
        markers: &["compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "Makefile"],
        wide: None,
        tells_quiet: false,
        leaves_watching: false,
        look: ProgramCheck::Version { words: &["--version"], least: 13 },
        install: "install the package `clangd`, 13 or newer",
    },
    ServerKind {
        name: "gopls",
        languages: &[SourceLanguage::Go],
        command: &["gopls"],
        markers: &["go.mod", "go.work"],
        wide: None,
        tells_quiet: false,
        leaves_watching: false,
        look: ProgramCheck::Version { words: &["version"], least: 0 },
        install: "install it with `go install golang.org/x/tools/gopls@latest`",
    },
];

/// For what a person has configured for a language that none of the above is for.
static OTHER: ServerKind = ServerKind {
    name: "configured",
    languages: &[],
    command: &[],
    markers: &[".git"],
    wide: None,
    tells_quiet: false,
    leaves_watching: false,
    look: ProgramCheck::Start,
    install: "see `[editor.servers]`",
};

/// Returns the servers that are looked for where nothing is configured.
pub fn usual_servers() -> impl Iterator<Item = DefaultLanguageServer> {
    KINDS.iter().filter_map(|kind| {
        Some(DefaultLanguageServer { language: kind.languages.first()?.id(), program: kind.command.first()?, kind })
    })
}

/// Finds the server of a language: the configured one, or the usual one on PATH. Programs that lie in the granted folder
/// (`reach`) are the project's code, and run only where that is allowed.
pub(crate) fn choose(
    language: SourceLanguage,
    settings: &EditorSettings,
    env: &BTreeMap<OsString, OsString>,
    reach: &Path,
    project: &Path,
    prove: &dyn Fn(&ServerKind, &Path) -> Result<(), String>,
) -> Result<ServerChoice, Refusal> {
    let id = language.id();
    let unsupported = |message: String| Refusal::new(Code::Unsupported, message);
    let usual = kind_of(language);
    let (words, kind): (Vec<String>, _) = match (settings.servers.get(id), usual) {
        (Some(words), _) if words.is_empty() => {
            return Err(unsupported(format!("`[editor.servers]` says that there is no language server for {id}")));
        }
        (Some(words), usual) => (words.clone(), usual.unwrap_or(&OTHER)),
        (None, Some(kind)) => (kind.command.iter().map(|word| (*word).to_owned()).collect(), kind),
        (None, None) => {
            let message = format!("no language server is known for {id}; name one in `[editor.servers]`");
            return Err(unsupported(message));
        }
    };
    let Some((program, arguments)) = words.split_first() else {
        return Err(unsupported(format!("`[editor.servers]` has no program for {id}")));
    };
    // A person's own program under another name takes words of its own.
    let is_usual = Path::new(program).file_name() == kind.command.first().map(OsStr::new);
    let prove = |path: &Path| if is_usual { prove(kind, path) } else { Ok(()) };
    let found = find(program, settings, env, reach, project, &prove).map_err(|broken| {
        let next = if settings.servers.contains_key(id) { "correct `[editor.servers]`" } else { kind.install };
        unsupported(match broken {
            None => format!("the language server for {id}, {program:?}, was not found on PATH; {next}"),
            Some((path, why)) => {
                format!("the language server for {id} is not installed: {} cannot work ({why}); {next}", path.display())
            }
        })
    })?;
    let command = [found].into_iter().chain(arguments.iter().cloned()).collect();
    Ok(ServerChoice { command, kind })
}

/// The usual server of a language.
pub(crate) fn kind_of(language: SourceLanguage) -> Option<&'static ServerKind> {
    KINDS.iter().find(|kind| kind.languages.contains(&language))
}

/// The files whose folder is a project of a language.
pub(crate) fn marks(language: SourceLanguage) -> &'static ServerKind {
    kind_of(language).unwrap_or(&OTHER)
}

/// Languages that a server is known or configured for.
pub(crate) fn languages(settings: &EditorSettings) -> Vec<SourceLanguage> {
    let usual = KINDS.iter().flat_map(|kind| kind.languages).copied();
    let others = [SourceLanguage::Bash, SourceLanguage::Json, SourceLanguage::Toml, SourceLanguage::Markdown];
    usual.chain(others.into_iter().filter(|language| settings.servers.contains_key(language.id()))).collect()
}

/// Finds a program that can work. If there is none: the first one that cannot, and why.
fn find(
    program: &str,
    settings: &EditorSettings,
    env: &BTreeMap<OsString, OsString>,
    reach: &Path,
    project: &Path,
    prove: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<String, Option<(PathBuf, String)>> {
    // Where it is linked to is where its code is; where the link lies, somebody else may have laid it.
    let is_foreign = |path: &Path| settings.runs_project_code || !path.starts_with(reach);
    let places: Vec<PathBuf> = if program.contains('/') {
        vec![PathBuf::from(program)]
    } else {
        let own = settings.runs_project_code.then(|| project.join("node_modules/.bin"));
        let path = env.get(OsStr::new("PATH")).map(|path| path.as_bytes()).unwrap_or_default();
        let listed = path.split(|byte| *byte == b':').map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
        own.into_iter().chain(listed).map(|folder| folder.join(program)).collect()
    };
    let mut broken = None;
    for place in places.into_iter().filter(|place| place.is_absolute() && is_foreign(place)) {
        let outcome = match place.metadata() {
            Ok(found) if !found.is_file() => continue,
            Ok(found) if found.permissions().mode() & 0o111 == 0 => Err("it may not be executed".to_owned()),
            Ok(_) if !place.canonicalize().is_ok_and(|real| is_foreign(&real)) => continue,
            Ok(_) => prove(&place),
            Err(_) if place.is_symlink() => Err("it is a link that leads nowhere".to_owned()),
            Err(_) => continue,
        };
        match (outcome, place.to_str()) {
            (Ok(()), Some(found)) => return Ok(found.to_owned()),
            (Ok(()), None) => {}
            (Err(why), _) => broken = broken.or(Some((place, why))),
        }
    }
    Err(broken)
}

// === impl DefaultLanguageServer ===

impl DefaultLanguageServer {
    /// Finds it as whoever has this environment would, and says of none that can work what helps. Blocks.
    pub fn find(&self, env: &BTreeMap<OsString, OsString>) -> Result<String, String> {
        let (settings, root) = (EditorSettings::default(), Path::new("/"));
        let prove = |path: &Path| self.kind.look.at(path, root, env, None);
        // Nothing is granted here, so nothing is a project's own.
        find(self.program, &settings, env, Path::new("/no-project"), root, &prove).map_err(|broken| match broken {
            None => self.kind.install.to_owned(),
            Some((path, why)) => format!("{} cannot work: {why}; {}", path.display(), self.kind.install),
        })
    }
}

// === impl ServerKind ===

impl ServerKind {
    pub(crate) fn serves(&self, language: SourceLanguage) -> bool {
        self.languages.contains(&language)
    }

    /// What to do if it does not start.
    pub(crate) fn hint(&self) -> &'static str {
        self.install
    }

    /// What it is told when it is greeted, and the same by section for when it asks.
    pub(crate) fn wishes(&self, settings: &EditorSettings) -> (Value, Value) {
        let runs = settings.runs_project_code;
        match self.name {
            "rust-analyzer" => {
                // Of what is off on purpose there is nothing to say; and without a check by the compiler, the experimental ones
                // alone tell of a wrong type.
                let disabled: &[&str] = if runs { &[] } else { &["unresolved-proc-macro", "proc-macro-disabled"] };
                let diagnostics = json!({ "disabled": disabled, "experimental": { "enable": !runs } });
                let options = json!({
                    // These run code of the project's.
                    "cargo": { "buildScripts": { "enable": runs } },
                    "procMacro": { "enable": runs },
                    "checkOnSave": runs,
                    "diagnostics": diagnostics,
                    // Whatever is asked for is computed then; to compute all before makes the first answer come late.
                    "cachePriming": { "enable": false },
                    "files": { "watcher": "client" },
                    "notifications": { "cargoTomlNotFound": false },
                });
                (options.clone(), json!({ "rust-analyzer": options }))
            }
            "pyright" => {
                let analysis = json!({ "diagnosticMode": "openFilesOnly", "autoSearchPaths": true });
                (Value::Null, json!({ "python": { "analysis": analysis }, "pyright": {} }))
            }
            "typescript" => {
                let wishes = json!({
                    "referencesCodeLens": { "enabled": true, "showOnAllFunctions": true },
                    // Another name everywhere, not an alias where it is imported.
                    "preferences": { "useAliasesForRenames": false },
                });
                (Value::Null, json!({ "typescript": wishes, "javascript": wishes, "js/ts": wishes }))
            }
            _ => (Value::Null, Value::Null),
        }
    }

    /// What is added to its environment, which comes before what the project says. Blocks.
    pub(crate) fn additions(
        &self,
        settings: &EditorSettings,
        env: &BTreeMap<OsString, OsString>,
    ) -> Vec<(OsString, OsString)> {
        let fixed: &[(&str, &str)] = match self.name {
            _ if settings.runs_project_code => &[],
            // The project's cargo configuration names programs that cargo would run, and flags that have the compiler load
            // something. An analysis is no reason to fetch anything.
            "rust-analyzer" => &[
                ("CARGO_NET_OFFLINE", "true"),
                ("CARGO_ENCODED_RUSTFLAGS", ""),
                ("RUSTC", "rustc"),
                ("RUSTC_WRAPPER", ""),
                ("RUSTC_WORKSPACE_WRAPPER", ""),
                ("RUSTUP_AUTO_INSTALL", "0"),
            ],
            // `go` would ask git what is checked out, and git the project's configuration what to run for that.
            "gopls" => &[("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=readonly -buildvcs=false"), ("GOPROXY", "off")],
            _ => &[],
        };
        let mut added: Vec<_> = fixed.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        if self.name == "rust-analyzer" && !settings.runs_project_code {
            added.push(("RUSTUP_TOOLCHAIN".into(), toolchain(settings, env).unwrap_or_else(|| "stable".into())));
        }
        added
    }
}

/// Bytes of rustup's settings; they have a few lines.
const MAX_RUSTUP: u64 = 1 << 16;

/// The toolchain that rustup takes where nothing is said. A project could name a folder of its own to take one from
/// (`rust-toolchain.toml`), unless it is named here.
fn toolchain(settings: &EditorSettings, env: &BTreeMap<OsString, OsString>) -> Option<OsString> {
    let named = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    if let Some(named) = named("RUSTUP_TOOLCHAIN") {
        return Some(named.clone());
    }
    let home = named("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(settings.home.as_ref()?.join(".rustup")))?;
    let mut text = String::new();
    File::open(home.join("settings.toml")).ok()?.take(MAX_RUSTUP).read_to_string(&mut text).ok()?;
    let set: toml::Table = text.parse().ok()?;
    set.get("default_toolchain")?.as_str().map(OsString::from)
}
