//! What of a file is guarded, where agents change the rest of it all day: a dependency is added in the same file that says what is
//! run at an install. What is not understood is guarded whole.

use std::borrow::Cow;

use crate::policy::canonical::Json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardedPart {
    Whole,
    /// An object's members but these.
    AllBut(&'static [&'static str]),
    /// Lines that have one of these words in them, in small letters; or a backslash, which can spell any of them.
    Lines(&'static [&'static str]),
}

impl GuardedPart {
    pub(super) fn of<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::Whole => Cow::Borrowed(text),
            Self::AllBut(harmless) => members(text, harmless).map_or(Cow::Borrowed(text), Cow::Owned),
            Self::Lines(words) => {
                let guards = |line: &&str| {
                    let line = line.to_lowercase();
                    line.contains('\\') || words.iter().any(|word| line.contains(word))
                };
                let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).filter(guards).collect();
                Cow::Owned(lines.join("\n"))
            }
        }
    }
}

fn members(text: &str, harmless: &[&str]) -> Option<String> {
    // One that some readers would understand otherwise is none: a member that is there twice, say.
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let Json::Object(mut members) = Json::read(text).ok()? else { return None };
    members.retain(|(name, _)| !harmless.contains(&&**name));
    Some(Json::Object(members).canonical())
}
