//! Which of the daemon's variables a child gets to see. Not all of them: a shell is full of keys for other things, and a
//! server that anybody may have published has no use for those.

use std::ffi::OsStr;

/// What a child inherits of the daemon's environment, beside what its destination names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnvInheritance {
    /// What programs need to run at all, and to find their own.
    #[default]
    Allowed,
    /// Everything but Prism's own secrets.
    All,
    /// What is allowed, and these: names, or beginnings of names with a `*`.
    Also(Vec<String>),
}

/// Prism's own secrets. No child gets them, whatever it is to inherit.
pub const OWN_SECRETS: [&str; 2] = ["PRISM_API_KEY", "MCP_TOKEN"];

/// What every child inherits: none of it is a secret, and without it programs do not find their home, their network or
/// themselves.
const ALLOWED: &[&str] = &[
    // The user and the machine.
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LD_LIBRARY_PATH",
    "LOCALE_ARCHIVE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "XDG_*",
    // The screen, and what else the session offers.
    "COLORTERM",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "NO_COLOR",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    // Proxies: some programs know the names in capitals only, some in small letters only.
    "ALL_PROXY",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "ftp_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // Certificates of one's own.
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    // Where languages and their version managers live.
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "COREPACK_HOME",
    "DENO_DIR",
    "DENO_INSTALL_ROOT",
    "DOTNET_ROOT",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOPATH",
    "GOROOT",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "JAVA_HOME",
    "MISE_DATA_DIR",
    "MISE_SHELL",
    "NIX_PATH",
    "NIX_PROFILES",
    "NVM_BIN",
    "NVM_DIR",
    "N_PREFIX",
    "PIPX_BIN_DIR",
    "PIPX_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_BIN_DIR",
    "UV_TOOL_DIR",
    "VOLTA_HOME",
    // Where packages come from.
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_cache",
    "npm_config_prefix",
    "npm_config_registry",
    "npm_config_userconfig",
    // What servers often drive.
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "KUBECONFIG",
    "PLAYWRIGHT_BROWSERS_PATH",
    "PUPPETEER_EXECUTABLE_PATH",
];

// === impl EnvInheritance ===

impl EnvInheritance {
    /// Tells whether a child with this setting sees a variable of the daemon's.
    #[must_use]
    pub fn takes(&self, variable: &OsStr) -> bool {
        // A name that is not UTF-8 is on no list.
        let Some(name) = variable.to_str() else {
            return *self == Self::All;
        };
        if OWN_SECRETS.contains(&name) {
            return false;
        }
        let allowed = || ALLOWED.iter().any(|pattern| fits(name, pattern));
        match self {
            Self::All => true,
            Self::Allowed => allowed(),
            Self::Also(patterns) => allowed() || patterns.iter().any(|pattern| fits(name, pattern)),
        }
    }
}

/// Checks a name, or the beginning of one.
pub(super) fn is_pattern(pattern: &str) -> bool {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(inherit: &EnvInheritance, name: &str) -> bool {
        inherit.takes(OsStr::new(name))
    }

    #[test]
    fn what_programs_need_is_inherited_and_what_may_be_a_secret_is_not() {
        for name in ["PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR", "https_proxy", "NVM_DIR", "DOCKER_HOST"] {
            assert!(takes(&EnvInheritance::Allowed, name), "{name}");
        }
        for name in
            ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "PRISM_API_KEY", "PRISM_HOME", "LC", "path"]
        {
            assert!(!takes(&EnvInheritance::Allowed, name), "{name}");
        }
    }

    #[test]
    fn nothing_that_is_allowed_sounds_like_a_secret() {
        for name in ALLOWED {
            assert!(is_pattern(name), "{name}");
            let sounds = ["TOKEN", "KEY", "SECRET", "PASSW", "AUTHORIZATION"].iter().any(|word| name.contains(word));
            assert!(!sounds, "{name}");
        }
    }

    #[test]
    fn more_can_be_named_one_by_one_or_by_their_beginning() {
        let also = EnvInheritance::Also(["MINE", "AWS_*", "PRISM_*"].map(str::to_owned).into());
        for name in ["MINE", "AWS_PROFILE", "PATH", "PRISM_HOME"] {
            assert!(takes(&also, name), "{name}");
        }
        for name in ["MINE_TOO", "GITHUB_TOKEN", "PRISM_API_KEY"] {
            assert!(!takes(&also, name), "{name}");
        }
    }

    #[test]
    fn all_is_all_but_our_own_secrets() {
        use std::os::unix::ffi::OsStrExt;
        assert!(takes(&EnvInheritance::All, "ANYTHING"));
        // M1: nor the one that decides what agents may do.
        for name in ["PRISM_API_KEY", "MCP_TOKEN"] {
            assert!(
                !takes(&EnvInheritance::All, name) && !takes(&EnvInheritance::Also(vec![name.to_owned()]), name),
                "{name}"
            );
        }
        assert!(EnvInheritance::All.takes(OsStr::from_bytes(b"\xff")));
        assert!(!EnvInheritance::Allowed.takes(OsStr::from_bytes(b"\xff")));
    }
}
