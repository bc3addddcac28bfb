//! Make, and what it mostly runs: compilers that write `file:line:column: error: …`.

use super::findings::{Diagnostic, Findings, OutputReader, Severity, placed_line};

#[derive(Debug, Default)]
pub(super) struct Make {
    /// The folders that make has gone into: paths are relative to the last.
    folders: Vec<String>,
}

/// Folders within folders that make goes into. Deeper ones are not followed.
const MAX_DEPTH: usize = 64;

impl OutputReader for Make {
    fn line(&mut self, line: &str, found: &mut Findings) {
        if line.starts_with("make") {
            self.make(line, found);
            return;
        }
        let Some((path, start, rest)) = placed_line(line) else { return };
        let words = ["fatal error", "error", "warning", "note"];
        let Some((severity, message)) =
            words.iter().find_map(|word| Some((*word, rest.strip_prefix(word)?.strip_prefix(':')?)))
        else {
            return;
        };
        if severity == "note" {
            return;
        }
        // `-Wunused-variable` stands at the end, in brackets.
        let code = message.rsplit_once(" [").and_then(|(_, code)| code.strip_suffix(']')).map(str::to_owned);
        let path = self.folders.last().map_or_else(|| path.to_owned(), |folder| format!("{folder}/{path}"));
        found.diagnostic(Diagnostic {
            path: if path.contains("//") { path[path.rfind("//").map_or(0, |at| at + 1)..].to_owned() } else { path },
            start,
            severity: Severity::of(severity),
            message: message.trim().to_owned(),
            source: "cc",
            code,
            ..Diagnostic::default()
        });
    }
}

impl Make {
    /// `make[1]: Entering directory '/p/sub'`, `make: *** [Makefile:3: all] Error 1`
    fn make(&mut self, line: &str, found: &mut Findings) {
        let Some((_, said)) = line.split_once(": ") else { return };
        let quoted = |text: &str| Some(text.split_once('\'')?.1.trim_end_matches('\'').to_owned());
        if let Some(folder) = said.strip_prefix("Entering directory ").and_then(quoted) {
            if self.folders.len() < MAX_DEPTH {
                self.folders.push(folder);
            }
        } else if said.starts_with("Leaving directory ") {
            self.folders.pop();
        } else if let Some(stop) = said.strip_prefix("*** ") {
            // A rule that failed has said why before; what is wrong with the Makefile itself is said only here.
            let is_result = stop.starts_with('[') && stop.contains("] Error ");
            if !is_result {
                found.diagnostic(Diagnostic { message: stop.to_owned(), source: "make", ..Diagnostic::default() });
            }
        }
    }
}
