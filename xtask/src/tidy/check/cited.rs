//! What is cited is there: requirements, findings, sections and pages. A citation that leads nowhere is worse than none, as it stands in
//! the very comments that say why.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    super::{
        Finding,
        source::{comments, words},
        tree::{File, Tree},
    },
    error,
};

const REQUIREMENTS: &str = "docs/requirements.md";
const FINDINGS: &str = "docs/findings.md";
const PROTOCOL: &str = "docs/mcp-eras.md";
const STYLE: &str = "docs/style.md";
const MAP: &str = "ARCHITECTURE.md";
const LIST: &str = "xtask/src/checks/list.txt";

/// The families of numbers that are written with a dash, and those of the attacks, without one.
const DASHED: &str = "ABDEMNRSW";
const ATTACKS: &str = "CHLM";

/// Its table has a number in each row.
const ATTACKED: &str = "xtask/src/attacks.rs";

/// Phrases that only those understand who took part in a piece of work.
const PROCESS: [&str; 3] = ["must show", "house style", "../shared/"];

pub(super) fn numbers(tree: &Tree) -> Vec<Finding> {
    let numbered: Vec<(&File, usize, &str)> = [REQUIREMENTS, FINDINGS]
        .iter()
        .filter_map(|path| tree.file(path))
        .flat_map(|file| first_cells(file).map(move |(at, cell)| (file, at, cell)))
        .filter(|(_, _, cell)| is_dashed(cell) || is_attack(cell))
        .collect();
    let known: BTreeSet<&str> = numbered.iter().map(|(_, _, number)| *number).collect();
    let mut seen = BTreeSet::new();
    let twice = numbered.iter().filter(|(_, _, number)| !seen.insert(*number));
    let mut findings: Vec<Finding> =
        twice.map(|(file, at, number)| error(file, *at, format!("{number} a second time"))).collect();
    for file in tree.files.iter().filter(|file| is_ours(file)) {
        let text = prose(file);
        let is_rust = file.path.ends_with(".rs");
        let cited = tokens(&text).filter(|(_, word)| is_dashed(word) || (is_rust && is_attack(word)));
        let unknown = cited.filter(|(_, number)| !known.contains(number));
        findings.extend(unknown.map(|(at, number)| error(file, at, format!("{number} is in no page of docs/"))));
    }
    findings
}

pub(super) fn sections(tree: &Tree) -> Vec<Finding> {
    let protocol = tree.file(PROTOCOL).map(headings).unwrap_or_default();
    let style = tree.file(STYLE).map(headings).unwrap_or_default();
    let cells = |file: &File| first_cells(file).map(|(_, cell)| cell.to_owned()).collect::<BTreeSet<_>>();
    let invariants = tree.file(MAP).map(cells).unwrap_or_default();
    let list = tree.file(LIST).map(|file| file.text.as_str()).unwrap_or_default();
    let checks: BTreeSet<String> = list.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    let kinds = [
        ("mcp-eras ", &protocol, PROTOCOL),
        ("style ", &style, STYLE),
        ("Style ", &style, STYLE),
        ("invariant ", &invariants, MAP),
        ("check ", &checks, LIST),
        ("Check ", &checks, LIST),
    ];
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let text = prose(file);
        for (name, known, page) in kinds {
            for at in words(&text, name.trim_end()).filter(|at| text[*at..].starts_with(name)) {
                let unknown = listed(&text[at + name.len()..]).filter(|number| !known.contains(*number));
                findings.extend(unknown.map(|number| error(file, at, format!("{page} has no {number}"))));
            }
        }
    }
    findings
}

pub(super) fn pages(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_ours(file)) {
        let text = prose(file);
        let named = tokens(&text).filter(|(_, word)| word.starts_with("docs/") && word.ends_with(".md"));
        // A link is looked at below.
        let missing = named.filter(|(at, path)| !text[..*at].ends_with("](") && tree.file(path).is_none());
        findings.extend(missing.map(|(at, path)| error(file, at, format!("there is no {path}"))));
        if file.path.ends_with(".md") {
            findings.extend(links(file).filter_map(|(at, target)| {
                let why = dead(tree, file, target)?;
                Some(error(file, at, why))
            }));
        }
    }
    findings
}

pub(super) fn process(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let text = prose(file).to_ascii_lowercase();
        let places = PROCESS.iter().flat_map(|phrase| text.match_indices(phrase));
        let issues = words(&text, "issue").map(|at| (at, &text[at..])).filter(|(_, rest)| {
            let number = rest["issue".len()..].trim_start_matches([' ', '#']);
            number.len() < rest.len() - "issue".len() && number.starts_with(|c: char| c.is_ascii_digit())
        });
        let issues = issues.map(|(at, _)| (at, "an issue's number"));
        findings.extend(places.chain(issues).map(|(at, what)| error(file, at, format!("`{what}`"))));
    }
    findings
}

// === helpers ===

/// What a person reads in a file: of Rust the comments, of all else everything.
fn prose(file: &File) -> Cow<'_, str> {
    match file.path.ends_with(".rs") && file.path != ATTACKED {
        true => Cow::Owned(comments(&file.text, &file.bare)),
        false => Cow::Borrowed(&file.text),
    }
}

/// Whether it was written here, and not made or fetched.
fn is_ours(file: &File) -> bool {
    const ENDS: [&str; 12] =
        [".rs", ".md", ".ts", ".js", ".mjs", ".py", ".lua", ".sh", ".toml", ".yml", ".html", ".css"];
    ENDS.iter().any(|end| file.path.ends_with(end)) && !file.path.contains("/dist/")
}

/// The words of a text, with what paths and numbers are written with.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
    text.split(move |c| !is_part(c))
        .map(|word| word.trim_end_matches(['.', '/', '-']))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr().addr() - text.as_ptr().addr(), word))
}

/// As in `B-04`.
fn is_dashed(word: &str) -> bool {
    let mut parts = word.splitn(2, '-');
    let (family, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    family.len() == 1 && DASHED.contains(family) && number.len() == 2 && is_number(number)
}

/// As in `H5`.
fn is_attack(word: &str) -> bool {
    word.is_char_boundary(1) && ATTACKS.contains(&word[..1]) && (2..=3).contains(&word.len()) && is_number(&word[1..])
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The first cell of each row of a page's tables.
fn first_cells(file: &File) -> impl Iterator<Item = (usize, &str)> {
    lines(&file.text).filter_map(|(at, line)| Some((at, line.strip_prefix('|')?.split('|').next()?.trim())))
}

/// The numbers of a page's headings: `5.7` of `### 5.7 Questions`.
fn headings(file: &File) -> BTreeSet<String> {
    let titles = lines(&file.text)
        .filter_map(|(_, line)| line.strip_prefix('#')?.trim_start_matches('#').split_whitespace().next());
    titles.map(|number| number.trim_end_matches('.').to_owned()).collect()
}

/// The numbers at the start of a text: `5.7` and `6` of `5.7 A2, 6: as it is`.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    let is_listed = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    text.split(", ").map_while(move |part| {
        let number = part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).next()?;
        Some(number.trim_end_matches('.')).filter(is_listed)
    })
}

/// The targets of a page's links.
fn links(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text.match_indices("](").filter_map(|(at, open)| {
        let target = file.text[at + open.len()..].split_once(')')?.0;
        Some((at, target)).filter(|(_, target)| !target.contains("://") && !target.contains(char::is_whitespace))
    })
}

/// Why a link leads nowhere, if so.
fn dead(tree: &Tree, file: &File, target: &str) -> Option<String> {
    let (path, title) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { joined(&file.path, path) };
    let Some(page) = tree.file(&path) else {
        // Pictures are no text, and folders no files.
        let is_text = path.ends_with(".md") || path.ends_with(".rs") || path.ends_with(".json");
        return is_text.then(|| format!("there is no {path}"));
    };
    let has_it = title.is_empty() || lines(&page.text).any(|(_, line)| line.starts_with('#') && anchor(line) == title);
    (!has_it).then(|| format!("{path} has no heading #{title}"))
}

/// A path as it is written in a page, from the root.
fn joined(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/').filter(|part| *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The lines of a text with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').map(move |line| (line.as_ptr().addr() - text.as_ptr().addr(), line))
}
