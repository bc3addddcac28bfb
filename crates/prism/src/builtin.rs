//! The MCP servers that are built into the binary, one module each.

pub mod demo;
