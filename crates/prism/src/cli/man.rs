//! `prism man`: the manual pages, made from what `--help` says.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use clap_mangen::roff::{Roff, roman};

use super::{add::is_program, help, say};
use prism_config::Env;

/// Show the manual page, or write all of them into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism man
  prism man service install
  prism man > prism.1                        the source of the page
  prism man --dir ~/.local/share/man/man1    then man prism, man prism-install")]
pub struct ManArgs {
    /// The command whose page is meant, as in `service install`; Prism itself if left out
    command: Vec<String>,
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        // A page about `help` would have nothing to say.
        let mut whole = help::command().disable_help_subcommand(true);
        whole.build();
        if let Some(folder) = &self.dir {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let written = write_all(&whole, folder)?;
            say::line(&format!("wrote {written} pages into {}", folder.display()));
            return Ok(());
        }
        let mut command = &whole;
        for word in &self.command {
            let Some(found) = command.find_subcommand(word).filter(|found| !found.is_hide_set()) else {
                bail!("there is no command `prism {}`\n  fix: prism --help lists them", self.command.join(" "));
            };
            command = found;
        }
        let page = page(command)?;
        if !io::stdout().is_terminal() {
            say::text(&page);
        } else if !is_program("man", None, env) || !show(&page) {
            // The source of a page is for nobody's eyes; this says the same.
            say::text(&command.clone().render_long_help().to_string());
        }
        Ok(())
    }
}

/// Gives a page to `man`, which knows the terminal and the pager. Returns whether that went well.
fn show(page: &str) -> bool {
    let Ok(mut man) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut stdin) = man.stdin.take() {
        // Who quits the pager early has read enough.
        let _ = stdin.write_all(page.as_bytes());
    }
    man.wait().is_ok_and(|status| status.success())
}

/// Writes the page of a command and those of its commands; returns how many.
fn write_all(command: &clap::Command, folder: &Path) -> anyhow::Result<usize> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    let mut written = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        written += write_all(below, folder)?;
    }
    Ok(written)
}

/// Returns the source of a command's page.
fn page(command: &clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    let source = concat!("prism ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone()).manual("Prism").source(source);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if let Some(examples) = command.get_after_help() {
        section(&examples.to_string()).to_writer(&mut page)?;
    }
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The examples, line by line: what is to be typed must not be filled up to the margin.
fn section(text: &str) -> Roff {
    let (examples, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples.lines().filter_map(|line| line.strip_prefix("  ")) {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    if !rest.is_empty() {
        roff.control("PP", []).text([roman(rest)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path) -> usize {
        let mut whole = help::command().disable_help_subcommand(true);
        whole.build();
        write_all(&whole, folder).unwrap()
    }

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let folder = tempfile::tempdir().unwrap();
        let count = written(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), count);
        assert!(!folder.path().join("prism-help.1").exists());
        let page = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page("prism.1").contains("prism\\-install(1)"));
        assert!(page("prism-install.1").contains("\nprism install cursor claude\\-code\n"));
        assert!(page("prism-service-install.1").contains("dry\\-run"));
        for entry in fs::read_dir(folder.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(page(&name).contains("\n.SH NAME\n"), "{name}");
        }
    }

    #[test]
    fn man_has_nothing_to_object_to() {
        if !is_program("man", None, &Env::process()) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let shown = Command::new("man").args(["--warnings", "-l"]).arg(&path).output().unwrap();
            assert!(shown.status.success() && shown.stderr.is_empty(), "{}: {shown:?}", path.display());
        }
    }
}
