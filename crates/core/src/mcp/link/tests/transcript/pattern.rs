//! What a transcript's texts stand for: times, names, and any text.

use std::{collections::HashMap, time::Duration};

pub(super) fn duration(text: &str) -> Duration {
    let at = text.find(char::is_alphabetic).expect("a unit");
    let number: u64 = text[..at].parse().unwrap();
    match &text[at..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(60 * number),
        "h" => Duration::from_secs(60 * 60 * number),
        unit => panic!("no unit {unit:?}"),
    }
}

/// Whether a text is what a pattern says, and what its names stand for.
pub(super) fn fits(pattern: &str, text: &str, names: &mut HashMap<String, String>) -> bool {
    let Some(at) = pattern.find(['…', '$']) else { return pattern == text };
    let Some(text) = text.strip_prefix(&pattern[..at]) else { return false };
    if let Some(rest) = pattern[at..].strip_prefix('…') {
        return rest.is_empty()
            || (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| {
                let mut tried = names.clone();
                let fit = fits(rest, &text[at..], &mut tried);
                if fit {
                    *names = tried;
                }
                fit
            });
    }
    let (name, rest) = split_name(&pattern[at + 1..]);
    let number = match names.get(name) {
        Some(bound) => bound.clone(),
        None => text.chars().take_while(char::is_ascii_digit).collect(),
    };
    let Some(text) = text.strip_prefix(&number).filter(|_| !number.is_empty()) else { return false };
    names.insert(name.to_owned(), number);
    fits(rest, text, names)
}

/// A name, and what follows it.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()))
}
