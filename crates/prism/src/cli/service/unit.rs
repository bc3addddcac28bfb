//! The files that tell systemd and launchd how to run the daemon. Text only; who writes it where is in `service.rs`.

use std::path::{Path, PathBuf};

use super::{LABEL, LAUNCHD, SYSTEMD};

/// What tells our file from one that somebody has written by hand.
pub(super) const MARK: &str = "Written by `prism service install`";

/// A unit of systemd's user manager.
pub(super) struct SystemdUnit {
    pub(super) program: String,
    /// Of `prism serve`.
    pub(super) flags: Vec<String>,
    /// Prism's home, where it is not the usual one.
    pub(super) home: Option<PathBuf>,
}

/// An agent of launchd's.
pub(super) struct LaunchdAgent {
    pub(super) program: String,
    pub(super) flags: Vec<String>,
    pub(super) home: Option<PathBuf>,
    pub(super) log: PathBuf,
}

/// Tells whether a file of ours is about the daemon of this home; `usual`: of the one that a user has without saying so.
pub(super) fn is_for(text: &str, home: &Path, usual: bool) -> bool {
    if !text.contains("PRISM_HOME") {
        return usual;
    }
    let in_plist = format!("<key>PRISM_HOME</key>\n    <string>{}</string>", in_xml(&home.to_string_lossy()));
    text.contains(&assigned("PRISM_HOME", home)) || text.contains(&in_plist)
}

impl SystemdUnit {
    pub(super) fn text(&self) -> String {
        let mut words = vec![self.program.as_str(), "serve", "--supervised", SYSTEMD];
        words.extend(self.flags.iter().map(String::as_str));
        let command: Vec<String> = words.into_iter().map(quoted).collect();
        let home = self.home.as_ref().map(|home| format!("Environment={}\n", assigned("PRISM_HOME", home)));
        format!(
            "# {MARK}. `prism service uninstall` removes it.
[Unit]
Description=Prism, one daemon between coding agents and MCP servers
# It is started again however often it ends.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={}
{}Restart=always
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=30
# Another daemon of this user runs already.
RestartPreventExitStatus=3
# SIGTERM is for the daemon, which lets calls finish and ends its servers; what is left after that is killed.
KillMode=mixed
TimeoutStopSec=90
# A server that takes too much memory must not take the daemon along.
OOMPolicy=continue
Delegate=memory pids
# No sandbox here: the servers are its children, and what they may do is not for this file to say.

[Install]
WantedBy=default.target
",
            command.join(" "),
            home.unwrap_or_default(),
        )
    }
}

/// A word of a command line as systemd reads it: systemd.service(5), \"Command lines\", and systemd.unit(5), specifiers.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut quoted = escaped(word).replace('$', "$$");
    quoted.insert(0, '"');
    quoted.push('"');
    quoted
}

fn assigned(name: &str, path: &Path) -> String {
    format!("\"{name}={}\"", escaped(&path.to_string_lossy()))
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('%', "%%").replace('\n', r"\n")
}

impl LaunchdAgent {
    pub(super) fn text(&self) -> String {
        let mut words = vec![self.program.as_str(), "serve", "--supervised", LAUNCHD];
        words.extend(self.flags.iter().map(String::as_str));
        let words: String = words.into_iter().map(|word| format!("    <string>{}</string>\n", in_xml(word))).collect();
        let home = self.home.as_ref().map(|home| {
            format!(
                "  <key>EnvironmentVariables</key>\n  <dict>\n    <key>PRISM_HOME</key>\n    <string>{}</string>\n  </dict>\n",
                in_xml(&home.to_string_lossy())
            )
        });
        let log = in_xml(&self.log.to_string_lossy());
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {MARK}. `prism service uninstall` removes it. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
{}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>1</integer>
  <key>ExitTimeOut</key>
  <integer>90</integer>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"#,
            home.unwrap_or_default(),
        )
    }
}

fn in_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-10
    #[test]
    fn a_unit_starts_the_daemon_again_and_lets_it_end_its_servers() {
        let unit = SystemdUnit { program: "/opt/prism/bin/prism".to_owned(), flags: Vec::new(), home: None };
        let text = unit.text();
        for line in [
            "ExecStart=/opt/prism/bin/prism serve --supervised systemd",
            "Restart=always",
            "RestartSec=1",
            "KillMode=mixed",
            "StartLimitIntervalSec=0",
            "WantedBy=default.target",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
        }
        assert!(text.contains(MARK) && !text.contains("Environment="), "{text}");
    }

    // D-10
    #[test]
    fn words_and_folders_of_a_unit_are_escaped() {
        let flags = ["--port", "7421", "--config", "/a b/100%/$x\"y\\z.toml"].map(str::to_owned).to_vec();
        let unit = SystemdUnit { program: "/my tools/prism".to_owned(), flags, home: Some("/h %h".into()) };
        let text = unit.text();
        let command = r#"ExecStart="/my tools/prism" serve --supervised systemd --port 7421 --config "/a b/100%%/$$x\"y\\z.toml""#;
        assert!(text.lines().any(|line| line == command), "{text}");
        assert!(text.lines().any(|line| line == r#"Environment="PRISM_HOME=/h %%h""#), "{text}");
    }

    #[test]
    fn a_file_knows_its_home() {
        let (ours, theirs) = (Path::new("/h &1"), Path::new("/h &12"));
        let unit = |home: Option<&Path>| {
            SystemdUnit { program: "/p".to_owned(), flags: Vec::new(), home: home.map(Path::to_owned) }.text()
        };
        let (program, flags) = ("/p".to_owned(), Vec::new());
        let agent = LaunchdAgent { program, flags, home: Some(ours.to_owned()), log: "/l".into() }.text();
        for text in [unit(Some(ours)), agent] {
            assert!(is_for(&text, ours, false) && !is_for(&text, theirs, true), "{text}");
        }
        assert!(is_for(&unit(None), ours, true) && !is_for(&unit(None), ours, false));
    }

    // D-10
    #[test]
    fn an_agent_of_launchd_is_xml_and_kept_alive() {
        let agent = LaunchdAgent {
            program: "/a&b/prism".to_owned(),
            flags: vec!["--port".to_owned(), "1".to_owned()],
            home: Some("/h<1>".into()),
            log: "/h/prism.log".into(),
        };
        let text = agent.text();
        let words = "    <string>/a&amp;b/prism</string>\n    <string>serve</string>\n    <string>--supervised</string>\n    \
                     <string>launchd</string>\n    <string>--port</string>\n    <string>1</string>\n";
        assert!(text.contains(words), "{text}");
        assert!(
            text.contains("<key>KeepAlive</key>\n  <true/>") && text.contains("<string>/h&lt;1&gt;</string>"),
            "{text}"
        );
        assert_eq!(text.matches("<dict>").count(), text.matches("</dict>").count());
        assert!(text.contains(MARK));
    }
}
