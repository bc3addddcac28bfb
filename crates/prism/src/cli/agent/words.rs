//! What was typed, as a verb and its arguments: typed by the verb's table, and checked as far as that helps a person. The
//! daemon checks it all again.

use std::io::{self, Read};

use anyhow::{Context, anyhow};
use prism_editor::verbs::{self, ArgKind, VerbArg, VerbDoc};
use serde_json::{Map, Value, json};

use crate::cli::call::arguments;
use prism_config::raw;

/// The most that is read from stdin for one argument.
const MAX_STDIN: u64 = 16 << 20;

/// What is typed into a session: a verb, and arguments as `key=value`.
pub(super) fn understood(verb: &str, words: &[String]) -> anyhow::Result<(&'static VerbDoc, Map<String, Value>)> {
    let verb = named(verb)?;
    let words = words.iter().enumerate().map(|(i, word)| written(verb, i, word)).collect::<anyhow::Result<Vec<_>>>()?;
    let stdin = match words.iter().any(|word| word == "-") {
        true => Some(stdin()?),
        false => None,
    };
    let read = arguments::read(&verb.schema(), &words, stdin.as_deref());
    let read = read.map_err(|why| {
        let why = why.replacen("the tool", verb.name, 1);
        anyhow!("{why}\n  fix: prism agent verbs {}", verb.name)
    })?;
    match read {
        Value::Object(args) if verb.args.is_empty() && !args.is_empty() => {
            Err(anyhow!("{} takes no arguments\n  fix: prism agent run {}", verb.name, verb.name))
        }
        Value::Object(args) => Ok((verb, args)),
        _ => Ok((verb, Map::new())),
    }
}

/// The verb of that name, or the one that was probably meant.
pub(super) fn named(name: &str) -> anyhow::Result<&'static VerbDoc> {
    verbs::named(name).ok_or_else(|| {
        let near = raw::nearest(name, verbs::all().map(|verb| verb.name));
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        anyhow!("there is no verb {name:?}{near}\n  fix: prism agent verbs lists them")
    })
}

/// A word with what only a person writes put into JSON: places, text from stdin, and what a verb is about without its
/// name.
fn written(verb: &VerbDoc, i: usize, word: &str) -> anyhow::Result<String> {
    let Some((key, text)) = word.split_once('=') else {
        let is_text = |arg: &&VerbArg| matches!(arg.kind, ArgKind::Text | ArgKind::Command);
        let first = verb.args.iter().filter(is_text).find(|arg| arg.is_required || arg.name == "path");
        return Ok(match first {
            Some(first) if i == 0 && word != "-" => return written(verb, i, &format!("{}={word}", first.name)),
            _ => word.to_owned(),
        });
    };
    let Some(arg) = verb.arg(key) else { return Ok(word.to_owned()) };
    let value = match arg.kind {
        ArgKind::Position => place(text),
        ArgKind::Range => {
            text.split_once('-').and_then(|(start, end)| Some(json!({"start": place(start)?, "end": place(end)?})))
        }
        // A line for the shell is one, whatever commas it has; a list of words begins like one.
        ArgKind::Command if !text.starts_with(['[', '@']) => Some(text.into()),
        ArgKind::Text if text == "-" && holds_text(arg) => Some(stdin()?.into()),
        _ => None,
    };
    Ok(value.map_or_else(|| word.to_owned(), |value| format!("{key}:={value}")))
}

/// Whether an argument is a text that may well be long.
fn holds_text(arg: &VerbArg) -> bool {
    ["content", "new_text", "old_text", "input", "message"].contains(&arg.name)
}

/// `4:8` as a position: line and character from zero.
fn place(text: &str) -> Option<Value> {
    let (line, character) = text.split_once(':')?;
    let (line, character): (u32, u32) = (line.trim().parse().ok()?, character.trim().parse().ok()?);
    Some(json!({"line": line, "character": character}))
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().lock().take(MAX_STDIN + 1).read_to_string(&mut text).context("stdin is no UTF-8 text")?;
    if text.len() as u64 > MAX_STDIN {
        return Err(anyhow!("stdin has more than {MAX_STDIN} bytes"));
    }
    Ok(text)
}

/// A line as a shell would split it: at blanks, but for what is quoted.
pub(super) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' => {
                let into = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(quoted) => into.push(quoted),
                        None => return Err("a ' is not closed"),
                    }
                }
            }
            '"' => {
                let into = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => match letters.next() {
                            Some('n') => into.push('\n'),
                            Some('t') => into.push('\t'),
                            Some(escaped) => into.push(escaped),
                            None => return Err("a \" is not closed"),
                        },
                        Some(quoted) => into.push(quoted),
                        None => return Err("a \" is not closed"),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next().ok_or("the line ends with a \\")?),
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(verb: &str, words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        understood(verb, &words).map(|(_, args)| Value::Object(args)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_argument_gets_the_type_that_its_verb_wants() {
        assert_eq!(read("open_file", &["path=src/a=b.rs"]), Ok(json!({"path": "src/a=b.rs"})));
        assert_eq!(read("open_file", &["a.rs", "limit=3"]), Ok(json!({"path": "a.rs", "limit": 3})));
        assert_eq!(
            read("goto_definition", &["path=a", "position=4:8", "kind=references"]),
            Ok(json!({"path": "a", "position": {"line": 4, "character": 8}, "kind": "references"}))
        );
        assert_eq!(
            read("apply_quick_fix", &["a", "range=1:0-2:3"]),
            Ok(
                json!({"path": "a", "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 3}}})
            )
        );
        assert_eq!(read("exec_command", &["command=ls -l"]), Ok(json!({"command": "ls -l"})));
        assert_eq!(read("exec_command", &[r#"command=["ls","-l"]"#]), Ok(json!({"command": ["ls", "-l"]})));
        assert_eq!(read("exec_command", &["ls"]), Ok(json!({"command": "ls"})));
        assert_eq!(read("save_buffer", &["a"]), Ok(json!({"path": "a"})));
        assert_eq!(read("git_commit", &["Fix it"]), Ok(json!({"message": "Fix it"})));
        assert_eq!(read("get_buffers", &[]), Ok(json!({})));
        assert_eq!(read("git_add", &["paths=a,b"]), Ok(json!({"paths": ["a", "b"]})));
        let edits = r#"edits=[{"old_text":"a","new_text":"b"}]"#;
        assert_eq!(read("edit_buffer", &["path=a", edits]).unwrap()["edits"][0]["new_text"], "b");
    }

    #[test]
    fn what_is_typed_wrongly_is_named_with_the_next_step() {
        for (verb, words, why) in [
            ("opne_file", &[][..], "did you mean \"open_file\"?"),
            ("open_file", &["paht=a"], "open_file has no argument \"paht\"; did you mean \"path\"?"),
            ("open_file", &[], "missing: path"),
            ("open_file", &["a", "limit=x"], "limit must be a whole number"),
            ("goto_definition", &["a", "position=4"], "position must be a JSON object"),
            ("goto_definition", &["a", "position=4:8", "kind=refs"], "must be one of definition"),
            ("get_buffers", &["a=1"], "takes no arguments"),
        ] {
            let told = read(verb, words).unwrap_err();
            assert!(told.contains(why) && told.contains("\n  fix: prism agent "), "{verb} {words:?}: {told}");
        }
    }

    #[test]
    fn a_line_is_split_as_a_shell_would() {
        let all = |line| split(line).unwrap();
        assert_eq!(all("  a  b=c # and no more"), ["a", "b=c"]);
        assert_eq!(all(r#"x a='b c' d="e \"f\"\n" g\ h '' i#j"#), ["x", "a=b c", "d=e \"f\"\n", "g h", "", "i#j"]);
        assert!(all("  # nothing").is_empty() && all("").is_empty());
        assert!(split("a 'b").is_err() && split("a \"b").is_err() && split("a\\").is_err());
    }
}
