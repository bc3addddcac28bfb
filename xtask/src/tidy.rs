//! The invariants, read off the source: what neither the compiler nor clippy can be asked. Runs as a lane
//! (`cargo xtask test tidy`) and as ordinary tests.
//!
//! The checks look at text, not at types, so that they need no build. `tree.rs` blanks out comments,
//! strings and test code first; a check names the view it wants.

mod check;
pub(crate) mod source;
pub(crate) mod tree;

#[cfg(test)]
mod tests;

use anyhow::ensure;

use crate::{Place, say::say, test::Verdict};

use tree::Tree;

/// A rule of the house and how to find who breaks it.
struct Check {
    name: &'static str,
    /// What must hold, and what to do instead.
    rule: &'static str,
    find: fn(&Tree) -> Vec<Finding>,
}

/// One place that breaks a rule, or is about to.
struct Finding {
    path: String,
    line: usize,
    what: String,
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Warning,
    Error,
}

pub(crate) fn lane(place: &Place) -> anyhow::Result<Verdict> {
    let tree = Tree::read(&place.root)?;
    let mut broken = Vec::new();
    for check in check::CHECKS {
        let findings = (check.find)(&tree);
        for finding in &findings {
            say(finding.describe(check));
        }
        let errors = findings.iter().filter(|finding| finding.weight == Weight::Error).count();
        if errors > 0 {
            broken.push(format!("{} ({errors})", check.name));
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join(", "));
    say(format_args!("{} checks on {} files", check::CHECKS.len(), tree.len()));
    Ok(Verdict::Passed)
}

impl Finding {
    fn describe(&self, check: &Check) -> String {
        let weight = match self.weight {
            Weight::Warning => "warning: ",
            Weight::Error => "",
        };
        format!("{}:{}: {weight}{}. {}: {}", self.path, self.line, self.what, check.name, check.rule)
    }
}
