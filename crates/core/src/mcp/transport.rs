//! The ways to speak MCP over HTTP, by name. How they are spoken is in `crates/mcp`.

/// The two ways to speak MCP over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP+SSE of 2024-11-05: one stream for everything that the server says.
    Sse,
    /// One POST per message, of either era.
    StreamableHttp,
}

impl Transport {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 2] = [Self::StreamableHttp, Self::Sse];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::StreamableHttp => "streamable_http",
        }
    }
}
