//! `prism completions`: what a shell needs to complete our command line.

use clap_complete::Shell;

use super::{help, say};

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism completions bash > ~/.local/share/bash-completion/completions/prism
  prism completions zsh > \"${fpath[1]}/_prism\"
  prism completions fish > ~/.config/fish/completions/prism.fish
  prism completions elvish >> ~/.config/elvish/rc.elv
  prism completions powershell >> $PROFILE

Start a new shell after that.")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub fn run(self) {
        say::text(&script(self.shell));
    }
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "prism", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_learns_the_commands_and_the_names_of_the_surfaces() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in ["install", "doctor", "detach"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            // clap tells the others nothing of what a positional argument can be.
            if matches!(shell, Shell::Bash | Shell::Zsh) {
                assert!(script.contains("claude-code"), "{shell}");
            }
        }
    }

    #[test]
    fn bash_can_read_what_is_for_bash() {
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(script(Shell::Bash).as_bytes()).unwrap();
        let ended = bash.wait_with_output().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    }
}
