//! Where a word is made of several, so that each can be found: `getContext` by `context`, and a Chinese sentence by
//! two of its characters. Underscores, slashes and dots need nothing: the tokenizer splits at them.
//!
//! A seam is a character of no width that the tokenizer takes for a separator. Texts are stored with their seams and
//! queries get them too, so that both are split alike; what is shown has none.

const SEAM: char = '\u{200b}';

/// Returns a text with its seams.
pub(crate) fn seamed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    let mut before = ' ';
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if is_seam(before, c, rest.as_str()) {
            out.push(SEAM);
        }
        out.push(c);
        before = c;
    }
    out
}

/// Returns a text without its seams.
pub(crate) fn seamless(text: &str) -> String {
    text.replace(SEAM, "")
}

/// Returns the words of a seamed text that have a seam, each as one word, parted by blanks: who remembers `getContext`
/// as `getcontext` finds it too.
pub(crate) fn whole_words(seamed: &str) -> String {
    let of_word = |c: char| c.is_alphanumeric() || c == SEAM;
    let mut words: Vec<&str> = seamed
        .split(|c| !of_word(c))
        // Of a run of characters that need no blanks between words the whole is not a word.
        .filter(|word| word.contains(SEAM) && !word.contains(stands_alone))
        .collect();
    words.sort_unstable();
    words.dedup();
    words.iter().map(|word| seamless(word)).collect::<Vec<_>>().join(" ")
}

fn is_seam(before: char, c: char, rest: &str) -> bool {
    if c.is_ascii_lowercase() || !c.is_alphanumeric() || !before.is_alphanumeric() {
        return !c.is_ascii() && stands_alone(c) && before.is_alphanumeric();
    }
    if stands_alone(before) || stands_alone(c) {
        return true;
    }
    if !c.is_uppercase() {
        return false;
    }
    let mut rest = rest.chars();
    let next_is_lower = rest.next().is_some_and(char::is_lowercase);
    if before.is_lowercase() {
        return true;
    }
    // `HTTPServer` and `utf8Parser`, but not the plural in `URLs`.
    let plural = next_is_lower && !rest.next().is_some_and(char::is_alphanumeric) && before.is_uppercase();
    next_is_lower && !plural
}

/// Whether this is of a script that puts no blanks between words; each of its characters counts as a word.
fn stands_alone(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1780..=0x17ff // Khmer
        | 0x3040..=0x30ff // Hiragana, Katakana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff // Han
        | 0xac00..=0xd7af // Hangul
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> String {
        seamed(text).replace(SEAM, "|")
    }

    #[test]
    fn a_word_is_split_where_a_reader_sees_two() {
        assert_eq!(parts("getContextFor HTTPServer utf8Parser"), "get|Context|For HTTP|Server utf8|Parser");
        assert_eq!(
            parts("plain snake_case SCREAMING_CASE URLs 3D B2B W-01"),
            "plain snake_case SCREAMING_CASE URLs 3D B2B W-01"
        );
        assert_eq!(parts("日本語 ab語"), "日|本|語 ab|語");
        assert_eq!(parts("éÉcole"), "é|École");
    }

    #[test]
    fn words_that_are_split_are_kept_whole_too() {
        assert_eq!(whole_words(&seamed("a getContext b/getContext HTTPServer 日本")), "HTTPServer getContext");
    }
}
