//! The command line as clap knows it, and the page of `prism --help`: the commands by what one wants to do, and the
//! first ones to type. What each command says of itself stands with the command.

use std::fmt::Write;

use clap::CommandFactory;

use super::Cli;

/// The commands, in the order in which a newcomer needs them. Each is in one group; a test sees to it.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Servers", &["add", "list", "remove", "trust", "import", "run"]),
    ("Editors and agents", &["install", "uninstall", "migrate", "stdio"]),
    ("The daemon", &["serve", "status", "doctor", "logs", "stop", "restart", "service"]),
    ("Agents among themselves", &["signal", "signals", "wait", "mesh", "wake", "acp"]),
    (
        "What agents may do",
        &["console", "requests", "approve", "deny", "grants", "revoke", "confirmations", "confirm", "access", "audit"],
    ),
    ("From the shell", &["tools", "call", "probe", "workspace", "agent"]),
    ("More", &["demo-server", "completions", "man", "help"]),
];

const EXAMPLES: &str = "Examples:
  prism add files -- npx -y @modelcontextprotocol/server-filesystem .
  prism install cursor claude-code    write Prism into their configs
  prism serve --detach                start the daemon; then prism status

`prism COMMAND --help` has the options and examples of a command.
`prism` alone is `prism serve`, and takes its options.";

const HELP: &str = "Show the help of a command";

/// Returns the command line with all of its help.
pub(super) fn command() -> clap::Command {
    let command = Cli::command()
        .about("One daemon between every coding agent and every MCP server")
        .override_usage("prism [COMMAND]")
        .after_help(EXAMPLES);
    let groups = groups(&command);
    command.help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{{after-help}}"))
}

fn groups(command: &clap::Command) -> String {
    let heading = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{heading}{title}:{heading:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            // clap adds `help` only later.
            let about = about.map_or_else(|| HELP.to_owned(), ToString::to_string);
            let _ = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
        command.get_subcommands().filter(|one| !one.is_hide_set())
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example_of_itself() {
        for one in visible(&command()).filter(|one| one.get_name() != "help") {
            let examples = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let own = format!("prism {}", one.get_name());
            assert!(examples.starts_with("Examples:\n"), "{own}: {examples:?}");
            assert!(examples.contains(&own), "{own}: {examples:?}");
        }
    }

    #[test]
    fn an_example_is_accepted_by_the_command_line_itself() {
        let mut tried = 0;
        let whole = command();
        let pages = visible(&whole).filter_map(clap::Command::get_after_help).chain(whole.get_after_help());
        for text in pages.map(ToString::to_string) {
            let examples = text.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| plain(line));
            for line in examples {
                // What stands behind two blanks says what it does.
                let typed = line.split("  ").next().unwrap_or_default();
                let words = typed.split_whitespace();
                let parsed = command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{typed}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
                tried += 1;
            }
        }
        assert!(tried > 40, "{tried}");
    }

    /// Whether a shell would only split it at its blanks.
    fn plain(line: &str) -> bool {
        line.starts_with("prism ") && !line.contains(['|', '>', '&', '\'', '"', '$', '@', '\\'])
    }

    #[test]
    fn every_command_is_in_one_group_and_says_what_it_does() {
        let mut command = command();
        command.build();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut known: Vec<&str> = visible(&command).map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
        let shown = command.render_help().to_string();
        for one in visible(&command) {
            let about = one.get_about().filter(|_| one.get_name() != "help");
            let about = about.map_or_else(|| HELP.to_owned(), ToString::to_string);
            assert!(!about.is_empty(), "{}", one.get_name());
            let line = shown.lines().find(|line| line.trim_start().starts_with(&format!("{} ", one.get_name())));
            assert!(
                line.is_some_and(|line| line.ends_with(&about) && line.len() <= 80),
                "{}: {line:?}",
                one.get_name()
            );
        }
    }
}
