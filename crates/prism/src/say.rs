//! The only place that writes to a person's terminal. What is written there is decided by the subcommands.
//!
//! Names and commands come from files that anybody may have written, a cloned repository among them; so control
//! characters are shown, not sent, and colour is added here, after that.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use prism_core::{shell::command_line, unseen};

use prism_config::{DestinationConfig, Env, secret, trust::UntrustedFile};

/// What is worth a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Yellow,
    Green,
    Dim,
}

/// Writes text and a line end to stdout.
pub fn line(text: &str) {
    write(io::stdout().lock(), &format!("{}\n", shown(text)));
}

/// Writes text and a line end to stdout, and fails when nobody reads there any more. For who would else write for ever.
pub(crate) fn try_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(format!("{}\n", shown(text)).as_bytes())?;
    stdout.flush()
}

/// Writes a line to stdout, some of whose parts are in colour on a terminal.
pub(crate) fn parts(parts: &[(&str, Option<Colour>)]) {
    let terminal = io::stdout().is_terminal();
    let one = |(text, colour): &(&str, Option<Colour>)| match colour {
        Some(colour) => painted(&shown(text), *colour, terminal),
        None => shown(text).into_owned(),
    };
    let line: String = parts.iter().map(one).collect();
    write(io::stdout().lock(), &format!("{line}\n"));
}

/// A line of parts, each with its colour.
pub(crate) type Line = Vec<(String, Option<Colour>)>;

/// Writes such a line to stdout, in colour on a terminal.
pub(crate) fn coloured(line: &Line) {
    let terminal = io::stdout().is_terminal();
    write(io::stdout().lock(), &format!("{}\n", drawn(line, terminal).trim_end()));
}

/// Writes such a line to stderr: to the person one talks with, whoever reads the result.
pub(crate) fn told(line: &Line) {
    let terminal = io::stderr().is_terminal();
    write(io::stderr().lock(), &format!("{}\n", drawn(line, terminal).trim_end()));
}

fn drawn(line: &Line, terminal: bool) -> String {
    let one = |(text, colour): &(String, Option<Colour>)| match colour {
        Some(colour) => painted(&shown(text), *colour, terminal),
        None => shown(text).into_owned(),
    };
    line.iter().map(one).collect()
}

/// The whole terminal, to be drawn on again and again. Dropping it gives back what was there.
pub(crate) struct FullScreen(());

impl FullScreen {
    pub(crate) fn enter() -> Self {
        // The other screen, without a cursor.
        write(io::stdout().lock(), "\x1b[?1049h\x1b[?25l");
        Self(())
    }

    /// Shows these lines and nothing else. What does not fit below is not shown.
    pub(crate) fn draw(&self, lines: &[Line]) {
        let height = prism_os::terminal::height().unwrap_or(usize::MAX);
        let mut frame = "\x1b[H".to_owned();
        for (place, line) in lines.iter().take(height).enumerate() {
            frame.push_str(if place == 0 { "" } else { "\r\n" });
            frame.push_str(&drawn(line, true));
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        write(io::stdout().lock(), &frame);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        write(io::stdout().lock(), "\x1b[?25h\x1b[?1049l");
    }
}

/// Writes what a server said to stdout: to a terminal as text that cannot do anything there, else byte for byte.
pub(crate) fn text(text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match io::stdout().is_terminal() {
        true => write(io::stdout().lock(), &format!("{}{end}", shown(text))),
        false => write(io::stdout().lock(), &format!("{text}{end}")),
    }
}

/// Writes text that is many lines to stdout, and fails when nobody reads there any more: to a terminal as text that cannot
/// do anything there, else byte for byte.
pub(crate) fn try_text(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.is_terminal() {
        true => stdout.write_all(shown(&String::from_utf8_lossy(text)).as_bytes())?,
        false => stdout.write_all(text)?,
    }
    stdout.flush()
}

/// Writes a line to stderr: beside the result, not part of it.
pub(crate) fn note(text: &str) {
    write(io::stderr().lock(), &format!("{}\n", shown(text)));
}

/// Where a talk with a person is written. Whoever does so hides what a terminal would act on.
pub(crate) fn terminal() -> impl Write {
    io::stderr()
}

/// Draws a line on stderr that the next one replaces, or takes it away. Only on a terminal.
pub(crate) fn status(text: Option<&str>) {
    static DRAWN: AtomicBool = AtomicBool::new(false);
    if !io::stderr().is_terminal() || Env::process().var("TERM").is_some_and(|term| term == "dumb") {
        return;
    }
    if !DRAWN.swap(text.is_some(), Ordering::Relaxed) && text.is_none() {
        return;
    }
    let text: String = shown(text.unwrap_or_default()).chars().filter(|c| *c != '\n').take(STATUS_WIDTH).collect();
    write(io::stderr().lock(), &format!("\r\x1b[2K{text}"));
}

/// Draws the beginning of a line that a person is to type, on stdout.
pub(crate) fn prompt(text: &str) {
    write(io::stdout().lock(), &painted(text, Colour::Dim, io::stdout().is_terminal()));
}

/// Letters of a status line: one that wrapped could not be taken away again.
const STATUS_WIDTH: usize = 78;

/// Writes a warning to stderr: something is not as it should be, and the work goes on.
pub fn warning(text: &str) {
    let label = painted("warning:", Colour::Yellow, io::stderr().is_terminal());
    write(io::stderr().lock(), &format!("{label} {}\n", shown(text)));
}

/// Writes an error and its causes to stderr. The exit code is the caller's.
pub fn error(error: &anyhow::Error) {
    let label = painted("error:", Colour::Red, io::stderr().is_terminal());
    let mut text = format!("{label} {}\n", shown(&error.to_string()));
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because: {}\n", shown(&cause.to_string())));
    }
    write(io::stderr().lock(), &text);
}

/// Says which files do not count as they are.
pub(crate) fn untrusted(files: &[UntrustedFile]) {
    for file in files {
        warning(&format!("{}\n  fix: {}", file.why(), file.fix()));
    }
}

/// Returns where a destination's server is: its command without secrets, or its URL without the query.
#[must_use]
pub fn server(destination: &DestinationConfig) -> String {
    match &destination.http {
        Some(http) => http.shown_url().to_owned(),
        None => command_line(&secret::without_secrets(&destination.command)),
    }
}

/// A reader that left (`prism list | head -1`) is no error, and a full disk is nothing we could report here.
fn write(mut to: impl Write, text: &str) {
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}

/// Escapes control characters, and letters that turn or hide others. The form is JSON's, so that text which is JSON stays JSON.
fn shown(text: &str) -> Cow<'_, str> {
    // Nothing of it is ASCII but the controls, and most text is.
    let may_hide = |c: char| (c.is_control() && c != '\n' && c != '\t') || unseen::is_unseen(c);
    if !text.contains(may_hide) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = None;
    for c in text.chars() {
        let misleads = unseen::misleads(before.replace(c), c);
        if misleads || (c.is_control() && c != '\n' && c != '\t') {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether this person wants colour at all.
pub fn colour() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| allows_colour(&Env::process()))
}

fn painted(label: &str, colour: Colour, terminal: bool) -> String {
    if !terminal || !self::colour() {
        return label.to_owned();
    }
    let code = match colour {
        Colour::Red => "1;31",
        Colour::Yellow => "1;33",
        Colour::Green => "32",
        Colour::Dim => "2",
    };
    format!("\x1b[{code}m{label}\x1b[0m")
}

/// See no-color.org; a dumb terminal would show the codes as text.
fn allows_colour(env: &Env) -> bool {
    env.var("NO_COLOR").is_none() && env.var("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_json_stays_json() {
        assert_eq!(shown("a\x1b[2Jb\u{9b}\tc\n"), "a\\u001b[2Jb\\u009b\tc\n");
        let hidden = "\u{7f}\u{85}\u{202e}\u{e0041}";
        let json = serde_json::to_string(hidden).unwrap();
        assert_eq!(shown(&json), r#""\u007f\u0085\u202e\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&shown(&json)).unwrap(), hidden);
    }

    // M3: whoever shows it, and wherever it comes from.
    #[test]
    fn letters_that_turn_others_are_shown_and_emoji_stay_whole() {
        assert_eq!(shown("rm \u{202e}fdp.txt a\u{200b}b"), "rm \\u202efdp.txt a\\u200bb");
        assert_eq!(shown("👨\u{200d}👩 ❤\u{fe0f} 日\u{3000}本"), "👨\u{200d}👩 ❤\u{fe0f} 日\u{3000}本");
    }

    #[test]
    fn no_color_and_a_dumb_terminal_turn_colour_off() {
        assert!(allows_colour(&Env::from([("TERM", "xterm")])));
        assert!(allows_colour(&Env::from([("NO_COLOR", "")])));
        assert!(!allows_colour(&Env::from([("NO_COLOR", "1")])));
        assert!(!allows_colour(&Env::from([("TERM", "dumb")])));
        assert_eq!(painted("error:", Colour::Red, false), "error:");
    }
}
