//! What all pages share: the frame around them, and the pieces that they are made of.

use maud::{DOCTYPE, Markup, html};
use prism_core::unseen::{TextPiece, pieces};
use serde_json::{Value, json};

use super::{
    assets::{ICON, SCRIPT, STYLE},
    login,
    words::Moment,
};

/// The pages, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsolePage {
    Requests,
    Grants,
    Confirmations,
    Audit,
    Destinations,
    Signals,
}

/// What waits for the person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    pub requests: usize,
    pub confirmations: usize,
    /// Replies that agents owe for longer than was agreed.
    pub overdue: usize,
}

// === impl ConsolePage ===

impl ConsolePage {
    pub const ALL: [Self; 6] =
        [Self::Requests, Self::Grants, Self::Confirmations, Self::Audit, Self::Destinations, Self::Signals];

    /// What it is called in a path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Grants => "grants",
            Self::Confirmations => "confirmations",
            Self::Audit => "audit",
            Self::Destinations => "destinations",
            Self::Signals => "signals",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.name() == name)
    }

    fn title(self) -> &'static str {
        match self {
            Self::Requests => "Requests",
            Self::Grants => "Grants",
            Self::Confirmations => "Confirmations",
            Self::Audit => "Audit",
            Self::Destinations => "Servers",
            Self::Signals => "Signals",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Requests => "Agents that ask for access. Nothing is granted until you decide.",
            Self::Grants => "Who may do what right now, for how long, and what they did last.",
            Self::Confirmations => "Single steps that wait for your word. What you see is exactly what runs.",
            Self::Audit => "Every decision and every action, in a chain that shows if a line was changed.",
            Self::Destinations => "The MCP servers behind Prism, and how they are doing.",
            Self::Signals => "What agents tell each other, what they owe, and how their bells ring.",
        }
    }

    /// Its icon: the lines of a 16 by 16 drawing.
    fn icon(self) -> &'static str {
        match self {
            Self::Requests => "M2 8.500h3.500l1 2h3l1-2H14M2 8.500 3.700 3h8.600L14 8.500V13H2z",
            Self::Grants => {
                "M10.500 2a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM8 8l-6 6m2-2 1.500 1.500M6 10l1.500 1.500"
            }
            Self::Confirmations => {
                "M8 1.500 13.500 4v4c0 3.200-2.300 5.500-5.500 6.500C4.800 13.500 2.500 11.200 2.500 8V4zM5.500 8l1.800 1.800L10.700 6.300"
            }
            Self::Audit => "M3.500 2h9v12h-9zM6 5.500h4M6 8h4M6 10.500h2.500",
            Self::Destinations => "M2.500 2.500h11v4.500h-11zM2.500 9h11v4.500h-11zM5 4.750h.01M5 11.250h.01",
            Self::Signals => {
                "M8 2a4 4 0 0 0-4 4c0 4-1.500 5-1.500 5h11S12 10 12 6a4 4 0 0 0-4-4zM6.700 13.500a1.500 1.500 0 0 0 2.600 0"
            }
        }
    }
}

// === impl PendingCounts ===

impl PendingCounts {
    /// The numbers that stand beside the pages' names.
    pub fn by_page(self) -> Value {
        json!({"requests": self.requests, "confirmations": self.confirmations, "signals": self.overdue})
    }
}

/// What everybody is shown at a page's address: the frame with nothing in it, and what is said to whoever has no session.
/// Whose browser it is is not known yet, so there is nothing in it that is worth reading (H3).
pub fn shell(page: ConsolePage) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (head(&format!("Prism · {}", page.title())))
                meta name="prism-page" content=(page.name());
            }
            body {
                a.skip href="#main" { "Skip to content" }
                div.frame {
                    header.side {
                        a.brand href="/console/requests" { (mark()) span { "Prism" } }
                        nav aria-label="Pages" {
                            @for one in ConsolePage::ALL {
                                a.tab href={ "/console/" (one.name()) } aria-current=[(one == page).then_some("page")] {
                                    (icon(one.icon()))
                                    span { (one.title()) }
                                    b.count data-count=(one.name()) hidden { "0" span.sr { " waiting" } }
                                }
                            }
                        }
                        div.foot {
                            p #live .live data-state="connecting" role="status" { span.dot {} span.word { "Connecting…" } }
                            button.quiet type="button" data-keys aria-haspopup="dialog" { "Keys " kbd { "?" } }
                            button.quiet type="button" data-post="/console/logout" data-then="/console/login" { "Log out" }
                        }
                    }
                    main #main tabindex="-1" data-page=(page.name()) {
                        div.head data-key="head" {
                            h1 { (page.title()) }
                            p { (page.about()) }
                        }
                        noscript { p { "The console needs JavaScript, which is off in this browser." } }
                    }
                }
                div #closed .sheet hidden {
                    div.brand { (mark()) span { "Prism" } }
                    (login::closed())
                }
                div #say .sr role="status" aria-live="polite" {}
                div #toast role="alert" hidden {}
                dialog #dialog aria-labelledby="dialog-title" {}
                (keys())
            }
        }
    }
}

/// What is inside `main`: the piece that is fetched once there is a session, and again when something has changed.
pub fn part(page: ConsolePage, content: &Markup, waiting: PendingCounts, now: Moment) -> Markup {
    html! {
        main data-now=(now.0) data-waiting=(waiting.by_page()) {
            div.head data-key="head" {
                h1 { (page.title()) }
                p { (page.about()) }
            }
            (content)
        }
    }
}

/// What is wrong with what is on record, on every page: a person decides by it.
pub fn troubles(troubles: &[String]) -> Markup {
    html! {
        @for (at, why) in troubles.iter().enumerate() {
            p.trouble role="alert" data-key={ "record-" (at) } { b { "Mind: " } (visible(why)) }
        }
    }
}

/// A page that stands alone: the door, and what is said when it is closed.
pub fn alone(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(&format!("Prism · {title}"))) }
            body.alone {
                main #main .sheet {
                    div.brand { (mark()) span { "Prism" } }
                    (content)
                }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="referrer" content="no-referrer";
        title { (title) }
        link rel="icon" type="image/svg+xml" href=(ICON.path());
        link rel="stylesheet" href=(STYLE.path());
        script src=(SCRIPT.path()) defer {}
    }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" {
            path.glass d="M16 5 28 26H4Z" {}
            path.ray d="M1 19 12 16" {}
            path.red d="m20 15 11 1" {}
            path.amber d="m20.6 17.5 10.4 3" {}
            path.green d="m21.5 20 9 5" {}
        }
    }
}

pub fn icon(lines: &str) -> Markup {
    html! { svg.icon viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { path d=(lines) {} } }
}

/// What is said where there is nothing: that this is as it should be, and what would change it.
pub fn empty(page: ConsolePage, what: &str, next: &Markup) -> Markup {
    html! {
        div.empty data-key="empty" {
            (icon(page.icon()))
            p.what { (what) }
            p.next { (next) }
        }
    }
}

/// A command that a person may type.
pub fn typed(command: &str) -> Markup {
    html! { code.typed { (command) } }
}

/// What a state means: the word says it, the colour only helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Notice,
    Bad,
    Quiet,
}

impl Tone {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Notice => "notice",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
        }
    }
}

pub fn state(tone: Tone, word: &str) -> Markup {
    html! { span.state data-tone=(tone.name()) { span.dot {} (word) } }
}

pub fn tag(tone: Tone, word: &str) -> Markup {
    html! { span.tag data-tone=(tone.name()) { (word) } }
}

fn keys() -> Markup {
    let rows = [
        (&["j", "k"][..], "next and previous in a list (arrows do the same)"),
        (&["Enter"][..], "open what is selected"),
        (&["a"][..], "go to Approve or Allow; Enter then does it"),
        (&["d"][..], "deny: say why, then Enter"),
        (&["r"][..], "go to Revoke or Restart; Enter then does it"),
        (&["/"][..], "search the audit"),
        (&["1", "…", "6"][..], "the pages, from Requests to Signals"),
        (&["Esc"][..], "close, or leave a field"),
        (&["?"][..], "this list"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            div.sheet-head {
                h2 #keys-title { "Keys" }
                button.quiet.close type="button" data-close aria-label="Close" { (icon("M4 4l8 8M12 4l-8 8")) }
            }
            dl.keys {
                @for (pressed, does) in rows {
                    div {
                        dt { @for key in pressed { kbd { (key) } } }
                        dd { (does) }
                    }
                }
            }
        }
    }
}

/// Text with a line break where the agent wrote one, and nothing else of it acted upon.
pub fn prose(text: &str) -> Markup {
    html! { @for (at, line) in text.lines().enumerate() { @if at > 0 { br; } (visible(line)) } }
}

/// Text with what a reader could not see made visible: control characters, and those that turn the direction of text
/// around, with which a command can be made to look like another.
pub fn visible(text: &str) -> Markup {
    let code = |letter: char| html! { span.unseen { (format!("U+{:04X}", u32::from(letter))) } };
    html! {
        @for piece in pieces(text) {
            @match piece {
                // A text has one line here, so a second one was not meant to be seen as one.
                TextPiece::Seen(text) => {
                    @for (at, line) in text.split('\n').enumerate() { @if at > 0 { (code('\n')) } (line) }
                }
                TextPiece::Unseen(letter) => { (code(letter)) }
                TextPiece::Blanks(count) => { " " span.unseen { (count) " blanks" } " " }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_seen_is_shown() {
        assert_eq!(visible("a <b>").into_string(), "a &lt;b&gt;");
        let turned = visible("rm \u{202e}fdp.txt\u{1b}[0m").into_string();
        assert_eq!(turned, "rm <span class=\"unseen\">U+202E</span>fdp.txt<span class=\"unseen\">U+001B</span>[0m");
        assert_eq!(visible("a\nb").into_string(), "a<span class=\"unseen\">U+000A</span>b");
        let far = visible(&format!("ls{}rm", " ".repeat(99))).into_string();
        assert_eq!(far, "ls <span class=\"unseen\">99 blanks</span> rm", "L9");
    }

    #[test]
    fn a_part_says_how_many_wait() {
        let waiting = PendingCounts { requests: 2, overdue: 3, ..PendingCounts::default() };
        let part = part(ConsolePage::Requests, &html! {}, waiting, Moment(7)).into_string();
        let said = "data-waiting=\"{&quot;confirmations&quot;:0,&quot;requests&quot;:2,&quot;signals&quot;:3}\"";
        assert!(part.contains(said) && part.contains("data-now=\"7\""), "{part}");
    }

    /// The CSP refuses them, so that they would do nothing; and it must be able to.
    #[test]
    fn no_page_has_inline_script_or_style() {
        let empty = empty(ConsolePage::Audit, "nothing", &html! { (typed("prism console")) });
        let part = part(ConsolePage::Audit, &empty, PendingCounts::default(), Moment(0)).into_string();
        for page in [part, shell(ConsolePage::Audit).into_string(), login::login().into_string()] {
            for inline in [" style=", " onclick=", "<style", "javascript:", "<script>"] {
                assert!(!page.contains(inline), "{inline}");
            }
        }
    }
}
