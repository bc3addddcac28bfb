//! The MCP servers that are built into the binary, one module each, and the kit that they are made with.

pub mod demo;
pub mod editor;
pub mod kit;
pub mod prism;
pub mod workspace;
