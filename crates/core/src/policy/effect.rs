//! What an action will do to files, as whoever prepared it has worked out, and what is to be made of that: done, shown to the person
//! first, or refused. All that changes files names its effects, and this is the one place that looks them up (R-05 … R-07).

use std::sync::Arc;

use super::{
    Code, Refusal, Risk, VerbSpec,
    guarded::{self, GuardPolicy, GuardedPath},
};

/// One thing that becomes another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A text becomes another; `None` where there is none, or it is not known.
    Text { path: String, at: TextLocation, before: Option<Arc<str>>, after: Option<Arc<str>> },
    /// Something comes to be, goes, or moves under this name.
    Name { path: String, what: EffectTarget },
    /// Something is lost that cannot be had again.
    Loss { what: String, whose: LossOwner },
}

/// Where a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLocation {
    /// Open: nobody runs it until it is saved.
    Buffer,
    Disk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectTarget {
    File,
    /// With all that is in it.
    Folder,
    /// A folder with nothing in it yet.
    NewFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossOwner {
    /// The holder's, who knows what it throws away.
    Own,
    Others,
}

/// The guarded part of a text that a person has seen, so that they are not asked a second time when it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewedText {
    pub path: String,
    pub part: String,
}

/// Decides about what an action does. Returns why the person is to see it first: nothing, if they are not. `seen` says whether
/// they have allowed this very part already.
pub fn weigh(
    action: &VerbSpec,
    effects: Option<&[Effect]>,
    confirms_changes: bool,
    mut seen: impl FnMut(&ReviewedText) -> bool,
) -> Result<Vec<String>, Refusal> {
    let Some(effects) = effects else {
        // Whoever forgets to say what it changes must not get around the question.
        let is_dark = action.risk == Risk::Changes;
        return Ok(is_dark.then(|| "what this changes is not known beforehand".to_owned()).into_iter().collect());
    };
    let mut because = Vec::new();
    for effect in effects {
        let why = match effect {
            Effect::Loss { whose: LossOwner::Own, .. } if !confirms_changes => None,
            Effect::Loss { what, .. } => Some(what.clone()),
            Effect::Text { path, at, before, after } => match guarded_text(path, (before, after))? {
                Some((row, part)) => {
                    let is_seen = *at == TextLocation::Disk && part.as_ref().is_some_and(&mut seen);
                    (!is_seen).then(|| format!("{path}: {}", row.why))
                }
                None if *at == TextLocation::Disk && empties(before, after) => Some(format!("{path} is emptied")),
                None => None,
            },
            Effect::Name { path, what } => {
                let row =
                    if *what == EffectTarget::Folder { guarded::guard_beneath(path) } else { guarded::guard_of(path) };
                row.map(|row| refuse_closed(row, path)).transpose()?;
                row.filter(|_| *what != EffectTarget::NewFolder).map(|row| format!("{path}: {}", row.why))
            }
        };
        because.extend(why.filter(|why| !because.contains(why)));
    }
    Ok(because)
}

/// What a person has seen who has allowed these effects: of texts that are only open, as they are saved later.
pub fn seen_of(effects: &[Effect]) -> Vec<ReviewedText> {
    let part = |effect: &Effect| match effect {
        Effect::Text { path, at: TextLocation::Buffer, before, after } => guarded_text(path, (before, after)).ok()??.1,
        _ => None,
    };
    effects.iter().filter_map(part).collect()
}

type Texts<'a> = (&'a Option<Arc<str>>, &'a Option<Arc<str>>);

/// The row that a change of a text falls under, and the part that is guarded as it will be.
fn guarded_text(
    path: &str,
    (before, after): Texts<'_>,
) -> Result<Option<(&'static GuardedPath, Option<ReviewedText>)>, Refusal> {
    let Some(row) = guarded::guard_of(path) else { return Ok(None) };
    refuse_closed(row, path)?;
    let part = after.as_deref().map(|after| row.part(after));
    // Where nothing was, or nobody knows what, all of it is new.
    if part.is_some() && before.as_deref().map(|before| row.part(before)) == part {
        return Ok(None);
    }
    let seen = part.map(|part| ReviewedText { path: path.to_owned(), part: part.into_owned() });
    Ok(Some((row, seen)))
}

fn refuse_closed(row: &GuardedPath, path: &str) -> Result<(), Refusal> {
    match row.guard {
        GuardPolicy::Shown => Ok(()),
        GuardPolicy::Closed { instead } => {
            let why = format!("{path:?} is closed to file verbs: {}; {instead}", row.why);
            Err(Refusal::new(Code::Forbidden, why))
        }
    }
}

/// Whether a text is destroyed by writing nothing over it.
fn empties(before: &Option<Arc<str>>, after: &Option<Arc<str>>) -> bool {
    let is_blank = |text: &Arc<str>| text.trim().is_empty();
    before.as_ref().is_some_and(|before| !is_blank(before)) && after.as_ref().is_some_and(is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, at: TextLocation, before: Option<&str>, after: Option<&str>) -> Effect {
        Effect::Text { path: path.to_owned(), at, before: before.map(Into::into), after: after.map(Into::into) }
    }

    fn name(path: &str, what: EffectTarget) -> Effect {
        Effect::Name { path: path.to_owned(), what }
    }

    fn weighed(verb: &str, effects: &[Effect]) -> Result<usize, Code> {
        let action = VerbSpec::named(verb).unwrap();
        weigh(action, Some(effects), false, |_| false).map(|because| because.len()).map_err(|refusal| refusal.code)
    }

    // R-05
    #[test]
    fn what_a_tool_alone_writes_is_refused_and_what_tools_run_is_shown() {
        for (effect, expected) in [
            (text("/p/.git/config", TextLocation::Disk, None, Some("x")), Err(Code::Forbidden)),
            (text("/p/.git/config", TextLocation::Buffer, Some("x"), Some("x")), Err(Code::Forbidden)),
            (name("/p/.git/hooks", EffectTarget::NewFolder), Err(Code::Forbidden)),
            (name("/p/.git", EffectTarget::Folder), Err(Code::Forbidden)),
            (text("/p/.envrc", TextLocation::Buffer, Some("a"), Some("b")), Ok(1)),
            (text("/p/.envrc", TextLocation::Disk, Some("a"), None), Ok(1)),
            (text("/p/.envrc", TextLocation::Disk, Some("a"), Some("a")), Ok(0)),
            (name("/p/.envrc", EffectTarget::File), Ok(1)),
            (name("/p/.config", EffectTarget::Folder), Ok(1)),
            (name("/p/.vscode", EffectTarget::NewFolder), Ok(0)),
            (text("/p/a.rs", TextLocation::Disk, Some("a"), Some("b")), Ok(0)),
            (name("/p/a.rs", EffectTarget::File), Ok(0)),
        ] {
            assert_eq!(weighed("write_file", std::slice::from_ref(&effect)), expected, "{effect:?}");
        }
    }

    // R-06
    #[test]
    fn what_is_lost_is_shown_however_it_is_spelled() {
        let disk = |before, after| text("/p/a", TextLocation::Disk, before, after);
        assert_eq!(weighed("write_file", &[disk(Some("a"), Some(" \n"))]), Ok(1));
        assert_eq!(weighed("write_file", &[disk(Some(" "), Some(""))]), Ok(0), "there was nothing");
        assert_eq!(
            weighed("edit_buffer", &[text("/p/a", TextLocation::Buffer, Some("a"), Some(""))]),
            Ok(0),
            "until it is saved"
        );
        let loss = |whose| Effect::Loss { what: "x".to_owned(), whose };
        assert_eq!(weighed("close_buffer", &[loss(LossOwner::Others), loss(LossOwner::Others)]), Ok(1), "said once");
        assert_eq!(weighed("close_buffer", &[loss(LossOwner::Own)]), Ok(0));
        let careful = weigh(VerbSpec::named("close_buffer").unwrap(), Some(&[loss(LossOwner::Own)]), true, |_| false);
        assert_eq!(careful.map(|because| because.len()), Ok(1));
    }

    // R-05
    #[test]
    fn who_does_not_say_what_it_changes_is_shown() {
        for action in VerbSpec::all() {
            let because = weigh(action, None, false, |_| false).unwrap();
            assert_eq!(because.len(), usize::from(action.risk == Risk::Changes), "{}", action.verb);
        }
    }

    // R-05: one change is one question.
    #[test]
    fn what_was_seen_when_it_was_edited_is_not_shown_again_when_it_is_saved() {
        let (old, new) = (r#"{"scripts": {}}"#, r#"{"scripts": {"test": "sh x"}}"#);
        let later = r#"{"scripts": {"test": "sh x"}, "version": "2"}"#;
        let edit = [text("/p/package.json", TextLocation::Buffer, Some(old), Some(new))];
        let seen = seen_of(&edit);
        assert_eq!(seen.len(), 1);
        let action = VerbSpec::named("save_buffer").unwrap();
        let asked = |effects: &[Effect]| weigh(action, Some(effects), false, |part| seen.contains(part)).unwrap().len();
        assert_eq!(asked(&[text("/p/package.json", TextLocation::Disk, Some(old), Some(later))]), 0);
        assert_eq!(asked(&[text("/p/b/package.json", TextLocation::Disk, Some(old), Some(new))]), 1, "another file");
        let other = r#"{"scripts": {"test": "sh y"}}"#;
        assert_eq!(asked(&[text("/p/package.json", TextLocation::Disk, Some(old), Some(other))]), 1);
        assert_eq!(asked(&edit), 1, "an edit is not a save");
        assert!(seen_of(&[text("/p/a", TextLocation::Buffer, None, Some("x"))]).is_empty());
    }
}
