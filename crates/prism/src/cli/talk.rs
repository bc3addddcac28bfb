//! Talking with the person at the terminal: what is to be decided is shown on stderr, and a line is read. What was
//! decided is each command's own affair.

use std::io::{self, BufRead, IsTerminal, Write};

use super::say;

/// The most that is asked for one answer, before it counts as none.
const TRIES: usize = 5;

/// Whether there is a person to talk with.
pub(super) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for one of several answers, by their first letters. `None`: the person went away, or said nothing that fits.
pub(super) fn choose<'a>(question: &str, answers: &[&'a str]) -> io::Result<Option<&'a str>> {
    chosen(question, answers, &mut io::stdin().lock(), &mut say::terminal())
}

/// Asks for a line. `None`: the person went away.
pub(super) fn line(question: &str) -> io::Result<Option<String>> {
    read(question, &mut io::stdin().lock(), &mut say::terminal())
}

fn chosen<'a>(
    question: &str,
    answers: &[&'a str],
    from: &mut impl BufRead,
    to: &mut impl Write,
) -> io::Result<Option<&'a str>> {
    for _ in 0..TRIES {
        let Some(typed) = read(question, from, to)? else { return Ok(None) };
        let typed = typed.to_lowercase();
        let fits = |answer: &&&str| !typed.is_empty() && answer.starts_with(&typed);
        if let Some(answer) = answers.iter().find(fits) {
            return Ok(Some(answer));
        }
        writeln!(to, "  type one of: {}", answers.join(", "))?;
    }
    Ok(None)
}

/// The question is ours; what others have written is shown before it, by those who hide what a terminal would act on.
fn read(question: &str, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<Option<String>> {
    write!(to, "{question} ")?;
    to.flush()?;
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        writeln!(to)?;
        return Ok(None);
    }
    Ok(Some(line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(typed: &str) -> Option<&'static str> {
        chosen("Approve?", &["yes", "no", "deny"], &mut typed.as_bytes(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn only_an_answer_is_one() {
        assert_eq!(answered("y\n"), Some("yes"));
        assert_eq!(answered("what\n\nDENY\n"), Some("deny"));
        // Nothing, the end of the input and nonsense never count as a yes.
        assert_eq!(answered(""), None);
        assert_eq!(answered(&"\n".repeat(9)), None);
        assert_eq!(answered(&"yess\n".repeat(9)), None);
    }
}
