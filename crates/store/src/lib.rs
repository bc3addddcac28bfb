//! What Prism remembers: the one database file, its schema and its writer; and the index of notes, a file of its own.
//! Only this crate writes SQL; what the rows mean is decided elsewhere.

pub mod audit;
mod audit_head;
mod checkpoint;
mod connection;
mod era;
pub mod gate;
mod ids;
mod listed;
pub mod memory;
pub mod mesh;
mod quiet;
mod reader;
mod schema;
mod session;
mod split;
mod store;
mod tool_index;
mod writer;

pub use audit_head::audit_head_at;
pub use connection::{StoreOpenError, StoreReadError};
pub use era::{LearnedEra, eras_at};
pub use listed::StoredList;
pub use quiet::QuietServer;
pub use session::{SessionUpdate, StoredEvent, StoredSession};
pub use store::Store;
pub use tool_index::{ToolIndex, ToolIndexError, ToolText};
pub use writer::StoreWriteError;
