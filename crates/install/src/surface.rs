//! The programs that agents live in: where each keeps its servers, and in which words. One table; whoever adds a
//! program adds an arm to every `match` here.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    InstallError,
    document::{ConfigLanguage, Container},
};
use prism_config::Env;

/// A program that MCP servers can be written into the config of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Cursor,
    ClaudeCode,
    ClaudeDesktop,
    VsCode,
    Void,
    Windsurf,
    Zed,
    Codex,
    GeminiCli,
    OpenCode,
}

/// Whose config it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceScope<'a> {
    User,
    /// The project in a folder; its config is likely to be committed.
    Project(&'a Path),
}

// === impl Surface ===

impl Surface {
    pub const ALL: [Self; 10] = [
        Self::Cursor,
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::VsCode,
        Self::Void,
        Self::Windsurf,
        Self::Zed,
        Self::Codex,
        Self::GeminiCli,
        Self::OpenCode,
    ];

    /// Returns it as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cursor => "cursor",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Void => "void",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::OpenCode => "opencode",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }

    /// Returns it as people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cursor => "Cursor",
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Void => "Void",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::OpenCode => "OpenCode",
        }
    }

    pub fn language(self) -> ConfigLanguage {
        match self {
            Self::Codex => ConfigLanguage::Toml,
            _ => ConfigLanguage::Json,
        }
    }

    /// Returns whether it can be given a URL and a token. Claude Desktop reads only commands from its file; Void reads
    /// URLs, but sends none of the headers that stand beside them.
    pub fn speaks_http(self) -> bool {
        !matches!(self, Self::ClaudeDesktop | Self::Void)
    }

    /// Returns where its servers stand, given what the file says.
    pub fn container(self, file: &Value) -> Container {
        let path: &[&str] = match self {
            Self::VsCode => &["servers"],
            Self::Zed => &["context_servers"],
            Self::Codex => &["mcp_servers"],
            Self::OpenCode if is_second_version(file) => &["mcp", "servers"],
            Self::OpenCode => &["mcp"],
            _ => &["mcpServers"],
        };
        path.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Returns its config file.
    pub fn file(self, scope: SurfaceScope<'_>, env: &Env) -> Result<PathBuf, InstallError> {
        match scope {
            SurfaceScope::User => self.user_file(env),
            SurfaceScope::Project(folder) => {
                let place = match self {
                    Self::Cursor => ".cursor/mcp.json",
                    Self::ClaudeCode => ".mcp.json",
                    Self::VsCode => ".vscode/mcp.json",
                    Self::Zed => ".zed/settings.json",
                    Self::Codex => ".codex/config.toml",
                    Self::GeminiCli => ".gemini/settings.json",
                    Self::OpenCode => return Ok(open_code_file(folder)),
                    Self::ClaudeDesktop | Self::Void | Self::Windsurf => {
                        return Err(InstallError::NoProject { title: self.title(), name: self.name() });
                    }
                };
                Ok(folder.join(place))
            }
        }
    }

    /// Returns the file with its hooks, which is never the one with its servers.
    pub fn hooks_file(self, scope: SurfaceScope<'_>, env: &Env) -> Result<PathBuf, InstallError> {
        let (name, project) = match self {
            Self::ClaudeCode => ("settings.json", ".claude"),
            Self::Codex => ("hooks.json", ".codex"),
            Self::Cursor => ("hooks.json", ".cursor"),
            _ => return Err(InstallError::NoHooks { title: self.title() }),
        };
        let folder = match (scope, self) {
            (SurfaceScope::Project(folder), _) => folder.join(project),
            // Here the variable stands for ~/.claude, and for the servers' file it stands for ~.
            (SurfaceScope::User, Self::ClaudeCode) => match env.var("CLAUDE_CONFIG_DIR") {
                Some(folder) => PathBuf::from(folder),
                None => home(env)?.join(project),
            },
            (SurfaceScope::User, Self::Codex) => match env.var("CODEX_HOME") {
                Some(folder) => PathBuf::from(folder),
                None => home(env)?.join(project),
            },
            (SurfaceScope::User, _) => home(env)?.join(project),
        };
        Ok(folder.join(name))
    }

    /// Returns what a person does so that the program runs its hooks.
    pub fn next_for_hooks(self) -> &'static str {
        match self {
            Self::ClaudeCode => "start claude anew; /hooks lists them",
            Self::Codex => "start codex anew and trust them under /hooks; it runs none before",
            _ => "Cursor reads the file at once; see its Settings > Hooks",
        }
    }

    fn user_file(self, env: &Env) -> Result<PathBuf, InstallError> {
        let home = home(env)?;
        let under = |variable: &str, default: PathBuf| env.var(variable).map_or(default, PathBuf::from);
        Ok(match self {
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::ClaudeCode => under("CLAUDE_CONFIG_DIR", home).join(".claude.json"),
            Self::ClaudeDesktop => support(env, &home).join("Claude/claude_desktop_config.json"),
            Self::VsCode => support(env, &home).join("Code/User/mcp.json"),
            Self::Void => home.join(".void-editor/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => zed_folder(env, &home).join("settings.json"),
            Self::Codex => under("CODEX_HOME", home.join(".codex")).join("config.toml"),
            Self::GeminiCli => under("GEMINI_CLI_HOME", home).join(".gemini/settings.json"),
            Self::OpenCode => match env.var("OPENCODE_CONFIG") {
                Some(file) => file.into(),
                None => open_code_file(&config_home(env, &home).join("opencode")),
            },
        })
    }

    /// Returns files and folders that are there where the program has ever run.
    pub fn marks(self, env: &Env) -> Vec<PathBuf> {
        let (Ok(file), Ok(home)) = (self.user_file(env), home(env)) else {
            return Vec::new();
        };
        let folder = file.parent().map(Path::to_owned);
        match self {
            // Its file lies in the home folder itself.
            Self::ClaudeCode => vec![file, home.join(".claude")],
            Self::VsCode => vec![support(env, &home).join("Code")],
            _ => folder.into_iter().collect(),
        }
    }

    /// Returns what it is called on a command line.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::ClaudeCode => &["claude"],
            Self::ClaudeDesktop => &["claude-desktop"],
            Self::VsCode => &["code"],
            Self::Void => &["void"],
            Self::Windsurf => &["windsurf"],
            Self::Zed => &["zed", "zeditor"],
            Self::Codex => &["codex"],
            Self::GeminiCli => &["gemini"],
            Self::OpenCode => &["opencode"],
        }
    }

    /// Returns the commands that can install our extension, each with the name of its application on macOS. VSCodium and
    /// code-server are VS Code under other names, and are not told apart from it.
    pub fn extension_programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::VsCode => &[("code", "Visual Studio Code"), ("codium", "VSCodium"), ("code-server", "code-server")],
            Self::Cursor => &[("cursor", "Cursor")],
            Self::Void => &[("void", "Void")],
            _ => &[],
        }
    }

    /// Returns what a person does so that the program reads its config.
    pub fn next(self) -> &'static str {
        match self {
            Self::Cursor => "restart Cursor, or switch prism on under Settings > MCP",
            Self::ClaudeCode => "start claude anew; /mcp lists prism",
            Self::ClaudeDesktop => "quit Claude Desktop and start it again",
            Self::VsCode => "VS Code asks whether to trust prism; say yes, or run MCP: List Servers",
            Self::Void => "Void reads the file at once; see its Settings > MCP",
            Self::Windsurf => "press Refresh in Windsurf's MCP panel",
            Self::Zed => "Zed reads the file at once",
            Self::Codex => "start codex anew; /mcp lists prism",
            Self::GeminiCli => "start gemini anew; /mcp lists prism",
            Self::OpenCode => "start opencode anew",
        }
    }
}

/// OpenCode 2 has its servers one step further down, and reads the same file.
pub(super) fn is_second_version(file: &Value) -> bool {
    let servers = file.pointer("/mcp/servers").and_then(Value::as_object);
    servers.is_some_and(|servers| !["type", "command", "url"].iter().any(|key| servers.contains_key(*key)))
}

pub(super) fn home(env: &Env) -> Result<PathBuf, InstallError> {
    env.var("HOME").map(PathBuf::from).ok_or(InstallError::NoHome)
}

pub(super) fn config_home(env: &Env, home: &Path) -> PathBuf {
    env.var("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from)
}

/// Where desktop programs keep their settings.
fn support(env: &Env, home: &Path) -> PathBuf {
    match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support"),
        false => config_home(env, home),
    }
}

/// Zed looks at XDG's variables on Linux only.
fn zed_folder(env: &Env, home: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        return home.join(".config/zed");
    }
    match env.var("FLATPAK_XDG_CONFIG_HOME") {
        Some(folder) => Path::new(folder).join("zed"),
        None => config_home(env, home).join("zed"),
    }
}

/// OpenCode reads both names; the one that is there is the one that its owner edits.
fn open_code_file(folder: &Path) -> PathBuf {
    let commented = folder.join("opencode.jsonc");
    match commented.exists() {
        true => commented,
        false => folder.join("opencode.json"),
    }
}
