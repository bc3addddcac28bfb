//! What the binaries of the rig share: the echo server itself, without its transport.

pub mod echo;
