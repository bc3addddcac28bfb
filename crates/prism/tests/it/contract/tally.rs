//! What came of the cases: printed, and as `target/contract/RUNTIME.json`; all runtimes side by side are in `table.md` there.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
};

use prism_core::policy::VerbSpec;
use serde::{Deserialize, Serialize};

use super::case::Case;

/// What came of one case.
pub(super) enum Outcome {
    Kept,
    /// By the built-in editor, in a folder whose runtime does not have the verb.
    KeptBesideIt,
    Skipped(String),
    Broken(String),
}

#[derive(Default, Deserialize, Serialize)]
pub(super) struct Tally {
    runtime: String,
    rows: BTreeMap<String, Row>,
    notes: Vec<String>,
}

#[derive(Default, Deserialize, Serialize)]
struct Row {
    kept: usize,
    by_the_built_in: usize,
    skipped: usize,
    broken: usize,
}

/// How the runtimes stand in the table, if they were there.
const COLUMNS: &[&str] = &["built-in", "plugin", "vscode-1.99.3", "vscode-1.139.1", "neovim"];

impl Tally {
    pub(super) fn new(runtime: &str) -> Self {
        Self { runtime: runtime.to_owned(), ..Self::default() }
    }

    pub(super) fn add(&mut self, case: &Case, outcome: Outcome) {
        let row = self.rows.entry(case.verb.clone()).or_default();
        match outcome {
            Outcome::Kept => row.kept += 1,
            Outcome::KeptBesideIt => row.by_the_built_in += 1,
            Outcome::Skipped(why) => {
                row.skipped += 1;
                self.notes.push(format!("skipped {}: {}: {why}", case.verb, case.name));
            }
            Outcome::Broken(why) => {
                row.broken += 1;
                self.notes.push(format!("BROKEN  {}: {}: {why}", case.verb, case.name));
            }
        }
    }

    /// Prints a row for each verb, writes it down, and fails if a case was not kept.
    pub(super) fn report(&self) {
        let mut table = format!(
            "\n| verb | {}: kept | by the built-in one | skipped | broken |\n|---|---|---|---|---|\n",
            self.runtime
        );
        for (verb, row) in self.in_order() {
            let _ = writeln!(
                table,
                "| {verb} | {} | {} | {} | {} |",
                row.kept, row.by_the_built_in, row.skipped, row.broken
            );
        }
        let sum = |of: fn(&Row) -> usize| self.rows.values().map(of).sum::<usize>();
        let (kept, beside, broken) = (sum(|row| row.kept), sum(|row| row.by_the_built_in), sum(|row| row.broken));
        let all = kept + beside + broken;
        let _ = writeln!(
            table,
            "{}\ncontract: {}: {}/{all} cases kept, {beside} of them by the built-in one, {} skipped",
            self.notes.join("\n"),
            self.runtime,
            kept + beside,
            sum(|row| row.skipped),
        );
        let _ = std::io::stdout().write_all(table.as_bytes());
        // Some cases are no row of the table.
        if std::env::var_os("PRISM_CONTRACT_ONLY").is_none() {
            self.write_down();
        }
        assert_eq!(broken, 0, "{table}");
    }

    fn in_order(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        VerbSpec::all().filter_map(|action| Some((action.verb, self.rows.get(action.verb)?)))
    }

    fn write_down(&self) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("contract");
        fs::create_dir_all(&folder).expect("the folder can be made");
        // The next runtime writes the table only when this one has.
        let lock = File::create(folder.join(".lock")).expect("the lock can be made");
        lock.lock().expect("the lock can be had");
        let text = serde_json::to_string_pretty(self).expect("it is plain data");
        fs::write(folder.join(format!("{}.json", self.runtime)), text).expect("it can be written");
        let known = COLUMNS.iter().filter_map(|runtime| {
            let text = fs::read_to_string(folder.join(format!("{runtime}.json"))).ok()?;
            serde_json::from_str::<Self>(&text).ok()
        });
        fs::write(folder.join("table.md"), side_by_side(&known.collect::<Vec<_>>())).expect("it can be written");
    }
}

fn side_by_side(tallies: &[Tally]) -> String {
    let names: Vec<&str> = tallies.iter().map(|tally| tally.runtime.as_str()).collect();
    let mut table = format!(
        "Cases that were kept, of each verb by each runtime. (n): by the built-in editor, in that runtime's folder. \
         -n: skipped, see the notes in RUNTIME.json. !n: broken.\n\n| verb | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for action in VerbSpec::all() {
        let cells: Vec<String> = tallies
            .iter()
            .map(|tally| tally.rows.get(action.verb).map_or_else(|| "".to_owned(), ToString::to_string))
            .collect();
        let _ = writeln!(table, "| {} | {} |", action.verb, cells.join(" | "));
    }
    table
}

// === impl Row ===

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            (self.kept, self.kept.to_string()),
            (self.by_the_built_in, format!("({})", self.by_the_built_in)),
            (self.skipped, format!("-{}", self.skipped)),
            (self.broken, format!("!{}", self.broken)),
        ];
        let told: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
        f.write_str(&told.join(" "))
    }
}
