//! MCP as it is spoken, in every revision: `kit` is what servers of our own are made with, `client` asks a server, `remote`
//! is how servers over HTTP are reached, `folder` how a client's folder is written on its way. What is bridged to whom, and
//! who may what, is decided elsewhere.

pub mod client;
pub mod folder;
pub mod kit;
pub mod remote;
