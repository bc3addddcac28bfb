//! The lane `supply`: what is compiled in from elsewhere, and every place where we vouch for memory ourselves.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, ensure};

use crate::{
    Place,
    process::{self, Show},
    say::say,
    test::Verdict,
};

/// How long the database of advisories may take to come. Where nothing is fetched it does not come at all.
const FETCHED_WITHIN: Duration = Duration::from_secs(60);
const INSTALLED_WITHIN: Duration = Duration::from_secs(1500);
const CHECKED_WITHIN: Duration = Duration::from_secs(120);

/// How far above an `unsafe` its reason may stand, in lines.
const NEAR: usize = 14;

pub(crate) fn lane(place: &Place) -> anyhow::Result<Verdict> {
    let places = unsafe_places(&place.root.join("crates"))?;
    places.iter().for_each(say);
    say(format_args!("{} places say unsafe, all with a reason", places.len()));
    let is_there = || {
        let mut command = place.cargo(&["deny", "--version"]);
        command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    };
    if !is_there() {
        // Unoptimised it is there in a third of the time, and looks as fast.
        say("installing cargo-deny: cargo install cargo-deny --locked --debug");
        let installed = process::run(
            place.cargo(&["install", "cargo-deny", "--locked", "--debug", "--quiet"]),
            INSTALLED_WITHIN,
            Show::Nothing,
            || (),
        )?;
        if !is_there() {
            let why = installed.stderr.trim().lines().last().unwrap_or("it says nothing").to_owned();
            return Ok(Verdict::Skipped(format!("cargo install cargo-deny --locked: {why}")));
        }
    }
    let deny = |what: &[&str], within| {
        process::run(
            place.cargo(&[&["deny", "--locked", "--log-level", "error"], what].concat()),
            within,
            Show::Nothing,
            || (),
        )
    };
    let checked = deny(&["check", "--hide-inclusion-graph", "bans", "licenses", "sources"], CHECKED_WITHIN)?;
    say(checked.stdout.trim());
    ensure!(checked.status.success(), "cargo deny check:\n{}", checked.stderr.trim());
    // It is a repository of its own, which not every machine may fetch.
    if !deny(&["fetch", "db"], FETCHED_WITHIN).is_ok_and(|fetched| fetched.status.success()) {
        return Ok(Verdict::PassedBut("advisories not looked at: their database cannot be had here".to_owned()));
    }
    let advised = deny(&["check", "--disable-fetch", "advisories"], CHECKED_WITHIN)?;
    ensure!(advised.status.success(), "cargo deny check advisories:\n{}", advised.stderr.trim());
    Ok(Verdict::Passed)
}

/// Every `unsafe` of ours outside of tests, with the reason that stands by it.
fn unsafe_places(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut places = Vec::new();
    for file in sources(folder)? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            if code.starts_with("//")
                || !(code.contains("unsafe {") || code.contains("unsafe impl") || code.contains("unsafe fn"))
            {
                continue;
            }
            let reason = lines[at.saturating_sub(NEAR)..at]
                .iter()
                .rev()
                .find_map(|line| line.split_once("reason = \"")?.1.split('"').next());
            let name = file.strip_prefix(folder).unwrap_or(&file).display();
            let reason = reason
                .with_context(|| format!("{name}:{}: unsafe without `#[expect(unsafe_code, reason = …)]`", at + 1))?;
            places.push(format!("unsafe  {name}:{:<5} {reason}", at + 1));
        }
    }
    Ok(places)
}

fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "tests" | "target" | "fuzz") {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "testing.rs" {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unsafe_of_ours_has_its_reason() {
        let places = unsafe_places(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap();
        assert!(places.len() > 5 && places.iter().all(|place| place.contains("os/src")), "{places:#?}");
    }
}
