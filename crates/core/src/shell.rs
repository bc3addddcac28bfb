//! Commands as a person types them into a shell. Nothing here is ever run by one: it is for messages that name the next step.

use std::borrow::Cow;

/// Returns words as one would type them into a shell.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let quoted: Vec<Cow<'_, str>> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_split_or_expand_them() {
        let words = ["npx", "-y", "@scope/x", "two words", "it's", "", "$HOME"].map(str::to_owned);
        assert_eq!(command_line(&words), r"npx -y @scope/x 'two words' 'it'\''s' '' '$HOME'");
    }
}
