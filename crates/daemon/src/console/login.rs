//! The door's own pages: where a link leads, and what is said to whoever has none.

use maud::{Markup, html};

use super::page::{alone, typed};

/// Where a link leads. Its code is behind the `#`, which browsers send to nobody; the script does.
pub fn login() -> Markup {
    alone(
        "Log in",
        &html! {
            div #login data-login {
                h1 { "Opening the console" }
                p #login-state role="status" { "One moment…" }
                noscript { p { "The console needs JavaScript, which is off in this browser." } }
            }
            div #login-help hidden {
                h1 { "This link opens nothing" }
                p { "A link works once, and within a minute. Get a new one in a terminal:" }
                (command())
            }
            div #login-bare hidden {
                h1 { "Log in" }
                p { "The console is opened from a terminal, so that no other program can:" }
                (command())
            }
            div #login-blocked hidden {
                h1 { "This browser keeps nothing" }
                p {
                    "The console keeps what opens it in the storage of its window, and this browser does not let it. "
                    "Allow site data for this address, and get a new link in a terminal:"
                }
                (command())
            }
        },
    )
}

/// What is said to whoever comes without a session, or with one that is over.
pub fn closed() -> Markup {
    html! {
        h1 { "Your session is over" }
        p {
            "Sessions last eight hours, and end when Prism is started again. One is known to this browser's open windows of the "
            "console only, so a new window needs one of them, or a new link. Nothing you decided is lost. To come back, type "
            "this in a terminal:"
        }
        (command())
    }
}

fn command() -> Markup {
    html! {
        p.command { (typed("prism console")) }
        p.fine { "It opens a new window here. With " (typed("prism console --print")) " it prints the link instead." }
    }
}
