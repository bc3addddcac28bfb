//! The bytes on the wire: envelopes, frames, and edits in place.

pub mod depth;
pub mod envelope;
pub mod frame;
pub mod members;
pub mod method;
pub mod splice;
pub mod sse;
pub mod text;

pub use envelope::{ByteSpan, EnvelopeError, Message, MessageKind};
pub use frame::{Frame, LineSplitter};
pub use members::Members;
pub use method::Method;
pub use splice::ByteChain;
