//! Configs that wait for the person to see them. They are only shown here: who looks into a browser may have been led there,
//! and the files are on the person's own machine, where `prism trust` shows the same and asks.

use maud::{Markup, html};

use super::{
    diff::diff,
    page::{prose, visible},
};
use prism_config::trust::UntrustedFile;
use prism_install::diff as changes;

/// The notices, above the page; nothing if nothing waits.
pub fn notices(waiting: &[UntrustedFile]) -> Markup {
    html! {
        @for one in waiting {
            section.trouble role="alert" data-key="untrusted" {
                b { "A config waits for you to see it" }
                p { (prose(&one.why())) "; in a terminal: " code { (visible(&one.fix())) } }
                (diff(&difference(one), &one.path.display().to_string()))
            }
        }
    }
}

/// What is new in it, for browsers and editors. Secrets are not shown: both keep what they have seen.
pub fn difference(one: &UntrustedFile) -> String {
    changes::text(&changes::lines(&one.path, one.seen.as_deref(), Some(&one.text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // C1
    #[test]
    fn a_config_that_was_not_seen_is_shown_with_its_difference_and_what_to_type() {
        let one = UntrustedFile {
            path: "/project/prism.toml".into(),
            text: "[server.evil]\ncommand = [\"sh\", \"-c\", \"<b>\u{202e}x\"]\nenv = { API_KEY = \"hidden\" }\n"
                .to_owned(),
            seen: Some("[server.good]\n".to_owned()),
        };
        let shown = notices(&[one]).into_string();
        for part in ["prism trust /project/prism.toml", "[server.evil]", "[server.good]", "U+202E", "&lt;b&gt;"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("hidden"), "{shown}");
        assert_eq!(notices(&[]).into_string(), "");
    }
}
