//! Which files and folders the usual fence allows.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{CacheAccess, Usual};
use crate::settings::EditorSettings;

/// Of the system, to read and execute. Not all of `/dev`, as a disk is there too; not `/var`, `/run`, `/srv`, as services keep
/// their data there.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/home/linuxbrew/.linuxbrew",
    "/run/current-system",
    "/run/wrappers",
    // Where `/etc/resolv.conf` leads to.
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/var/lib/alternatives",
    "/var/cache/fontconfig",
];

/// Devices, to read and to write.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
];

/// Of the home folder, to read and execute. What is not here is not for others: keys, tokens, histories, mail.
const TOOLCHAINS: &[&str] = &[
    ".rustup",
    ".nvm",
    ".fnm",
    ".volta",
    ".asdf",
    ".mise",
    ".pyenv",
    ".virtualenvs",
    ".conda/envs",
    ".conda/pkgs",
    "anaconda3",
    "mambaforge",
    "micromamba",
    "miniconda3",
    "miniforge3",
    ".rbenv",
    ".sdkman",
    ".bun",
    ".deno",
    ".nix-profile",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/state/nix",
    ".local/share/fnm",
    ".local/share/hatch",
    ".local/share/mamba",
    ".local/share/mise",
    ".local/share/pdm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenv",
    ".local/share/virtualenvs",
    ".gitconfig",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".config/go",
    ".npm-global",
    ".yarn",
    "node_modules",
    "go",
];

/// Of cargo's own folder, to read; its token lies beside.
const CARGO: &[&str] = &["bin", "env", "config", "config.toml", ".crates.toml", ".crates2.json"];

/// Of cargo's own folder, to write.
const CARGO_CACHES: &[&str] = &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];

/// Of the home folder, to write.
const CACHES: &[&str] = &[".npm/_cacache", ".npm/_npx", ".npm/_logs", ".npm/_prebuilds", "go/pkg"];

/// Of `.cache`, to write. Others keep tokens and what they have seen of the network there.
const IN_CACHE: &[&str] = &[
    "Cypress",
    "bazelisk",
    "black",
    "bun",
    "ccache",
    "clangd",
    "deno",
    "esbuild",
    "fontconfig",
    "go-build",
    "golangci-lint",
    "gopls",
    "jedi",
    "mesa_shader_cache",
    "ms-playwright",
    "mypy",
    "node",
    "node-gyp",
    "pip",
    "pnpm",
    "pre-commit",
    "puppeteer",
    "pylint",
    "pypoetry",
    "pyright-python",
    "ruff",
    "rust-analyzer",
    "sccache",
    "turbo",
    "typescript",
    "uv",
    "yarn",
    "zig",
];

/// Of the home folder, what a sandbox reads of the person's caches: what was downloaded, and nothing that a program looks for to run
/// it. What is unpacked or built from it is the holder's own. npm writes its index anew when it only looks something up, and finds
/// nothing where it cannot.
const READ_CACHES: &[(&str, CacheAccess)] = &[
    (".npm/_cacache/content-v2", CacheAccess::Grows),
    (".npm/_cacache/index-v5", CacheAccess::IsWritten),
    (".cache/ms-playwright", CacheAccess::IsRead),
    (".cache/pip", CacheAccess::IsRead),
];

/// The same of cargo's own folder.
const CARGO_READ_CACHES: &[&str] = &["registry/index", "registry/cache", "git/db"];

/// Variables that say where a toolchain is, if it is not in its usual place.
const PLACES: &[&str] = &[
    "RUSTUP_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "MAMBA_ROOT_PREFIX",
    "WORKON_HOME",
    "NVM_DIR",
    "FNM_DIR",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "GOROOT",
];

/// What marks the folder of a Python environment, whose `bin` is on PATH.
const ENVIRONMENTS: [&str; 2] = ["pyvenv.cfg", "conda-meta"];

/// Bytes of a `pyvenv.cfg`; it has a few lines.
const MAX_VENV: u64 = 1 << 14;

impl Usual {
    pub(super) fn new(settings: &EditorSettings, env: &BTreeMap<OsString, OsString>, closed: Vec<PathBuf>) -> Self {
        let named = |name: &str| env.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let mut write: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        let (mut caches, mut elsewhere) = (Vec::new(), Vec::new());
        let mut read_caches: Vec<(PathBuf, CacheAccess)> = Vec::new();
        let home = settings.home.as_deref();
        read.extend(PLACES.iter().filter_map(|name| named(name)).filter(|folder| !is_above(folder, home)));
        if let Some(home) = home {
            read.extend(TOOLCHAINS.iter().map(|name| home.join(name)));
            caches.extend(CACHES.iter().map(|name| home.join(name)));
            caches.extend(IN_CACHE.iter().map(|name| home.join(".cache").join(name)));
            read_caches.extend(READ_CACHES.iter().map(|(name, access)| (home.join(name), *access)));
        }
        if let Some(cargo) = named("CARGO_HOME").or_else(|| Some(home?.join(".cargo"))) {
            read.extend(CARGO.iter().map(|name| cargo.join(name)));
            caches.extend(CARGO_CACHES.iter().map(|name| cargo.join(name)));
            read_caches.extend(CARGO_READ_CACHES.iter().map(|name| (cargo.join(name), CacheAccess::Grows)));
            elsewhere.extend(Some(cargo).filter(|cargo| home.is_none_or(|home| !cargo.starts_with(home))));
        }
        elsewhere.extend(named("CARGO_TARGET_DIR"));
        if let Some(go) = named("GOPATH") {
            caches.push(go.join("pkg"));
            read.push(go);
        }
        let in_path = named("GOPATH").or_else(|| Some(home?.join("go"))).map(|go| go.join("pkg/mod"));
        let go_modules = named("GOMODCACHE").or(in_path);
        read_caches.extend(go_modules.clone().map(|modules| (modules, CacheAccess::IsRead)));
        let go_cache = named("GOCACHE").or_else(|| Some(home?.join(".cache/go-build")));
        let lacks_go_cache = !go_cache.as_ref().is_some_and(|cache| cache.is_dir());
        elsewhere.extend(go_cache);
        // What can be called by its name can be executed; a home folder that is on PATH is not opened by that.
        let on_path = env.get(OsStr::new("PATH")).map(std::env::split_paths).into_iter().flatten();
        let on_path: Vec<PathBuf> = on_path.filter(|folder| folder.is_absolute() && !is_above(folder, home)).collect();
        // A Python there needs the rest of its environment, and the one that it was made from.
        let needed = on_path.iter().flat_map(|folder| environment(folder)).filter(|folder| !is_above(folder, home));
        read.extend(needed.collect::<Vec<_>>());
        read.extend(on_path);
        read.extend(settings.readable.iter().cloned());
        write.extend(settings.writable.iter().cloned());
        let home = settings.home.clone();
        Self { read, write, caches, read_caches, elsewhere, home, closed, go_modules, lacks_go_cache }
    }
}

/// The folder of the Python environment that a `bin` is of, and that of the Python which it was made from.
fn environment(bin: &Path) -> Vec<PathBuf> {
    let Some(folder) = bin.parent().filter(|folder| ENVIRONMENTS.iter().any(|mark| folder.join(mark).exists())) else {
        return Vec::new();
    };
    let mut text = String::new();
    let config = File::open(folder.join(ENVIRONMENTS[0]));
    let _ = config.and_then(|file| file.take(MAX_VENV).read_to_string(&mut text));
    let base = text.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "home");
    let base = base.and_then(|(_, bin)| Path::new(bin.trim()).parent()).filter(|base| base.is_absolute());
    [Some(folder), base].into_iter().flatten().map(Path::to_owned).collect()
}

/// Tells whether the home folder is this one, or lies in it.
pub(super) fn is_above(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}
