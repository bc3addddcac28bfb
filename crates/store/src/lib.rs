//! What Prism remembers: the one database file, its schema and its writer. Only this crate writes SQL; what the
//! rows mean is decided elsewhere.

mod era;
mod quiet;
mod schema;
mod store;
mod writer;

pub use era::{LearnedEra, eras_at};
pub use quiet::Quiet;
pub use store::{OpenError, ReadError, Store};
pub use writer::WriteError;
