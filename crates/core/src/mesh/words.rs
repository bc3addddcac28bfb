//! How bells went and who can be woken, in plain words: here and in the console. Programs get the words of the mesh itself.

/// How a bell went on its path.
pub fn result<'w>(path: &str, result: &'w str) -> &'w str {
    match (path, result) {
        ("desktop", "uncaptured") => "cannot show notices",
        (_, "uncaptured") => "nobody took it",
        (_, "filtered") => "no bell (low priority)",
        (_, "coalesced") => "merged with an earlier bell",
        (_, "confirmed") => "read",
        (_, "send-failed") => "failed",
        (_, "unanswered") => "no answer in time",
        (_, other) => other,
    }
}

/// Whether an agent can be woken.
pub fn support(name: &str) -> &str {
    if name == "degraded" { "only at its next tool call" } else { name }
}

#[cfg(test)]
mod tests {
    use crate::mesh::BellOutcome;

    use super::*;

    #[test]
    fn no_result_is_told_in_the_words_of_the_mesh() {
        for outcome in BellOutcome::ALL {
            let told = result("sse", outcome.name());
            assert!(outcome == BellOutcome::Rang || told != outcome.name(), "{told}");
        }
        assert_eq!(result("desktop", "uncaptured"), "cannot show notices");
    }
}
