//! What Prism does, decided without I/O: bytes and times go in, bytes and decisions come out.
//!
//! Nothing here opens a file or a socket, reads a clock or draws a random number (invariant 1), so every machine is
//! tested with transcripts in microseconds. `crates/bridge/src/drive` runs them over real pipes and sockets.

pub mod languages;
pub mod mcp;
pub mod mesh;
pub mod numbers;
pub mod policy;
pub mod shell;
pub mod time;
pub mod unseen;
pub mod wire;

pub use time::Time;
