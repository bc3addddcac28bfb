//! What a transcript says must have come, held against what came; and that nothing is left in the end.

use std::time::Duration;

use super::{LinkHoldings, Stage, UpstreamKind, fits, full};

impl Stage {
    pub(super) fn expect(&mut self, who: &str, what: &str) {
        let heard = self.heard.get_mut(who).and_then(|heard| {
            // Sessions that end together end in any order.
            let at = heard.iter().position(|heard| heard == what).filter(|_| what.starts_with("ended "));
            heard.remove(at.unwrap_or_default())
        });
        let heard = heard.unwrap_or_else(|| panic!("{:?}: nothing came, but there is {:?}", self.line, self.heard));
        let (sign, wanted) = what.split_once(' ').unwrap_or((what, ""));
        let plain = match (sign, heard.split_once('{')) {
            // The event's id only counts where it is written.
            ("~", Some((before, json))) if wanted.starts_with('{') && !before.contains('@') => format!("~ {{{json}"),
            _ => heard.clone(),
        };
        let at_json = what.find('{').unwrap_or(what.len());
        let wanted = format!("{}{}", &what[..at_json], full(&what[at_json..]));
        let mut names = self.names.clone();
        assert!(fits(&wanted, &plain, &mut names), "{:?}:\n   wanted {wanted}\n   heard  {heard}", self.line);
        self.names = names;
    }

    pub(super) fn assert(&mut self, what: &str) {
        if let Some(eras) = what.strip_prefix("speaks ") {
            assert_eq!(self.link.speaks.name().unwrap_or("unknown"), eras, "{:?}", self.line);
            return;
        }
        let held = self.link.holdings();
        let (count, of) = what.split_once(' ').unwrap_or((what, ""));
        let is = match of {
            "in flight" => held.calls,
            "exchanges" => held.exchanges,
            "held" => held.held,
            "sessions" => held.sessions,
            "watches" => held.watches,
            "questions" => held.questions,
            "parked" => held.parked,
            "aliases" => held.aliases,
            "listens" => held.listens,
            "beats" => std::mem::take(&mut self.beats),
            "bytes kept at most" => held.events_bytes.max(count.parse().unwrap()),
            _ => {
                assert!(count == "over" || count == "alive", "{:?}: cannot count {of:?}", self.line);
                return assert_eq!(self.link.is_over(), count == "over", "{:?}", self.line);
            }
        };
        assert_eq!(is.to_string(), count, "{:?}", self.line);
    }

    /// Everybody leaves, and time passes.
    pub(super) fn clean_up(&mut self) {
        for key in self.sessions.values().copied().collect::<Vec<_>>() {
            self.link.close(key, self.now);
            self.act();
        }
        for id in self.posts.keys().copied().collect::<Vec<_>>() {
            self.posts.remove(&id);
            self.link.handle_left(id, self.now);
            self.act();
        }
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            let Some((_, key)) = self.streams.remove(&stream) else { continue };
            self.link.handle_stream_gone(key, stream, 0, self.now);
            self.act();
        }
        self.pass(Duration::from_secs(30 * 60));
        assert_eq!(self.link.holdings(), LinkHoldings::default(), "nothing is left");
        assert_eq!(self.link.poll_timeout(), None, "and nothing to wait for");
        assert!(self.streams.is_empty() && !self.link.is_parked(self.now));
        // Over HTTP there is nothing to stop where the server was out of reach.
        assert!(self.child.is_none() || self.settings.wire == UpstreamKind::Http);
    }

    pub(super) fn all_is_said(&self) {
        let unsaid: Vec<_> = self.heard.iter().filter(|(_, heard)| !heard.is_empty()).collect();
        assert!(unsaid.is_empty(), "before {:?}, and the transcript does not say so: {unsaid:#?}", self.line);
    }
}
