//! What goes wrong on a link, and the JSON-RPC errors that say so. HTTP statuses are the affair of `daemon::serve`.

use std::time::Duration;

/// Why a call has no answer of the server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The server's process ended while it worked on the call.
    Exited,
    /// The server's process was ended, by us, while it worked on the call.
    Ended {
        why: String,
    },
    /// The connection to the server broke before the answer, and nothing can be asked for again.
    Cut,
    /// The server cannot be started, or does not stay up.
    Unavailable {
        why: String,
    },
    /// The same, in a whole sentence of somebody who knows more of it.
    DoesNotStart {
        said: String,
    },
    /// The server was reached, and does not take what it is sent.
    Refused {
        why: String,
    },
    /// No answer in time; which time that was is the setting's name.
    Timeout {
        after: Duration,
        setting: &'static str,
    },
    TooLarge {
        limit: usize,
    },
    /// The server does not read its input.
    Stuck,
    SessionEnded,
    /// Nobody was there to hear of the call any more, and so it was cancelled.
    Deserted,
    /// The daemon stops. Its sessions go on with the next one.
    Stopping,
    /// The server was ended to be started with other settings.
    Replaced,
}

/// Why an input was not taken at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRefusal {
    UnknownSession,
    /// `Last-Event-ID` names no event of this session, or one that is forgotten.
    UnknownEvent,
    /// The session has too many calls waiting.
    Busy,
    /// The server does not read its input.
    Stuck,
    /// The link is shutting down.
    Closed,
}

impl CallFault {
    /// The JSON-RPC error for a call with this id.
    pub fn body(&self, id: Option<&str>) -> String {
        error_body(id, -32603, &self.message(), Some(self.reason()))
    }

    pub fn reason(&self) -> &'static str {
        match self {
            Self::Exited | Self::Ended { .. } | Self::Cut | Self::Replaced => "upstream_exited",
            Self::Unavailable { .. } | Self::DoesNotStart { .. } | Self::Refused { .. } | Self::Stuck => {
                "upstream_unavailable"
            }
            Self::Timeout { .. } => "upstream_timeout",
            Self::TooLarge { .. } => "upstream_answer_too_large",
            Self::SessionEnded => "session_ended",
            Self::Deserted => "client_gone",
            Self::Stopping => "daemon_stopping",
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::Exited => "the MCP server's process ended while it worked on this call; it is being restarted, call \
                             again (its stderr is in Prism's log)"
                .to_owned(),
            Self::Ended { why } => format!("{why}. It is being restarted, call again"),
            Self::Cut => "the connection to the MCP server broke before its answer; whether the call was carried out \
                          is not known, call again if that is safe"
                .to_owned(),
            Self::Unavailable { why } => format!("the MCP server cannot be reached: {why}"),
            Self::DoesNotStart { said } => said.clone(),
            Self::Refused { why } => format!("the MCP server refuses: {why}"),
            Self::Timeout { after, setting } => {
                let other = match *setting {
                    "request_timeout" => {
                        ", or use a client that takes `text/event-stream`: its calls go on until `max_request_time`"
                    }
                    _ => "",
                };
                format!(
                    "no answer within `{setting}` ({after:?}); the server was told to cancel. Raise the setting for \
                     slower tools{other}"
                )
            }
            Self::TooLarge { limit } => {
                format!(
                    "the server's answer is over `max_message_bytes` ({limit} bytes); raise the setting or ask for less"
                )
            }
            Self::Stuck => {
                "the MCP server does not read its input; restart it, or look at its stderr in Prism's log".to_owned()
            }
            Self::SessionEnded => "the session has ended; initialize again".to_owned(),
            Self::Deserted => "nobody read this call's stream for a while, so it was cancelled; call again".to_owned(),
            Self::Stopping => {
                "Prism was stopped while this call ran; whether the call was carried out is not known. The \
                               session goes on when Prism is back (`prism serve --detach`)"
                    .to_owned()
            }
            Self::Replaced => "the MCP server was started anew, with its changed settings, while it worked on this \
                               call; call again"
                .to_owned(),
        }
    }
}

impl std::fmt::Display for CallFault {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

/// A JSON-RPC error. The id is left out where it is not known: the schemas make it optional, never null.
pub fn error_body(id: Option<&str>, code: i32, message: &str, reason: Option<&str>) -> String {
    let message = serde_json::Value::from(message);
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let data = reason.map(|reason| format!(r#","data":{{"reason":"{reason}"}}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":{message}{data}}}}}"#)
}
