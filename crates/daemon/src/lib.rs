//! The one place where everything is wired: `lifecycle` is a daemon from its start to its end, `running`
//! puts it together and takes it apart, `reload` has it go on with
//! another config, `serve` answers, `console` is the page where a person decides, `own_server` is Prism as an MCP server.

pub mod console;
pub mod lifecycle;
pub mod own_server;
pub mod reload;
pub mod running;
pub mod serve;
