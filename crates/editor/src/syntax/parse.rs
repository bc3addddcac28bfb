//! A text parsed, within bounds: some texts make a grammar try without end.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use tree_sitter::{ParseOptions, Parser, Tree};

use super::grammar::LoadedGrammar;

/// How long a text is parsed at most. A text of the largest size takes less than a second.
pub(super) const MAX_TIME: Duration = Duration::from_secs(5);

/// Returns the tree; `None` if it took too long, or nobody waits for it any more.
pub(super) fn parse(known: &LoadedGrammar, text: &str, is_over: &dyn Fn() -> bool) -> Option<Tree> {
    let began = Instant::now();
    let mut parser = Parser::new();
    parser.set_language(&known.grammar).ok()?;
    let mut check = |_: &_| match is_over() || began.elapsed() > MAX_TIME {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = ParseOptions::new().progress_callback(&mut check);
    parser.parse_with_options(&mut |byte, _| text.as_bytes().get(byte..).unwrap_or_default(), None, Some(options))
}
