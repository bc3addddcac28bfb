//! Words on the command line that each name one value of a few.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of these values by its name; help and completions list the names.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let known = PossibleValuesParser::new(all.iter().map(|one| name(*one)));
    known.map(move |word| {
        let named = all.iter().copied().find(|one| name(*one) == word);
        named.expect("the parser lets only these names pass")
    })
}
