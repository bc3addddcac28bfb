//! Prism as a client of its own destinations: one request, one answer, without a session.

use bytes::Bytes;
use prism_core::{
    mcp::{
        Accepts, Answer, Ask, Era, Fault, Method, Refusal,
        hello::OWN_INFO,
        link::StreamKey,
        modern::{self, Caller, Envelope, Filter},
    },
    wire::{Message, text},
};
use tokio::sync::oneshot;

use crate::{
    admitted::Admitted,
    drive::{Audience, Command, Destination, Entry, Head, LinkHandle, outlet::Reader},
};

const ACCEPTS: Accepts = Accepts { json: true, events: false, by_method: false };

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// The server answered with an error.
    Error { code: i64, message: String },
    /// It could not be asked.
    Fault(String),
}

/// The answer to a request of ours, made as clients of an audience would, whose `result` is there.
pub(crate) async fn request(
    destination: &Destination,
    audience: Audience,
    method: Method,
    params: &str,
) -> Result<Message, NoResult> {
    // Where calls of the modern era run may turn out with the first of them.
    let movable = audience.era == Era::Modern && destination.speaks().modern.is_none();
    match ask(destination, audience, method, params, movable).await? {
        Head::Elsewhere(_) => told(ask(destination, audience, method, params, false).await?),
        head => told(head),
    }
}

/// Asks where the clients of that audience are: one server is enough for all of them, and for us.
async fn ask(
    destination: &Destination,
    audience: Audience,
    method: Method,
    params: &str,
    movable: bool,
) -> Result<Head, NoResult> {
    let class = audience.class;
    let own = parse(modern::own_request(0, method, params, Caller { class, ..Caller::OWN }))?;
    let ask = own.asking(|message| Ask {
        message,
        envelope: Envelope { class, level: None, info: OWN_INFO.into(), tasks: false },
        headers: Vec::new(),
        accepts: ACCEPTS,
        names: None,
        ticket: 0,
        resumes: None,
        evicts: false,
        movable,
        fetch: true,
    });
    send(&destination.list_link(audience), |reply| Command::Ask { ask, carried: None, reply }).await
}

fn told(head: Head) -> Result<Message, NoResult> {
    match head {
        Head::Answer(Answer::Message(body) | Answer::Error { body, .. }) => result(Bytes::from(body.to_vec())),
        Head::Answer(Answer::Fault { fault, .. }) => Err(NoResult::Fault(why(&fault))),
        Head::Refused(refusal) => Err(NoResult::Fault(refused(refusal))),
        _ => Err(NoResult::Fault("it cannot be asked now".to_owned())),
    }
}

/// The same, in the name of a session of the legacy era.
pub(super) async fn request_as(session: &Entry, method: Method, params: &str) -> Result<Message, NoResult> {
    let message = parse(text::request(0, method, params))?;
    match send(&session.link, |reply| Command::Fetch { key: session.key(), message, reply }).await? {
        Head::Answer(Answer::Message(body)) => result(Bytes::from(body.to_vec())),
        _ => Err(NoResult::Fault("it cannot be asked now".to_owned())),
    }
}

async fn send(link: &LinkHandle, command: impl FnOnce(oneshot::Sender<Head>) -> Command) -> Result<Head, NoResult> {
    let gone = || NoResult::Fault("it is being stopped".to_owned());
    let (reply, head) = oneshot::channel();
    link.commands.send(command(reply)).await.map_err(|_| gone())?;
    head.await.map_err(|_| gone())
}

/// Finds out whether a destination can be reached, and so which era it speaks; if not, says why.
pub(crate) async fn reach(destination: &Destination, audience: Audience) -> Result<(), String> {
    match request(destination, audience, Method::Discover, "{}").await {
        Ok(_) | Err(NoResult::Error { .. }) => Ok(()),
        Err(NoResult::Fault(why)) => Err(why),
    }
}

/// A stream of changes: whose it is, and its events.
pub(super) type Listen = (LinkHandle, StreamKey, Reader);

/// Listens for changes of a server's lists; `None` if it is not let.
pub(super) async fn listen(link: LinkHandle) -> Option<Listen> {
    let filter = Filter { tools: true, prompts: true, resources: true, uris: Vec::new() };
    let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
    let message = parse(modern::own_request(0, Method::Listen, &params, Caller::OWN)).ok()?.into_message();
    let (reply, head) = oneshot::channel();
    let attend = Command::Attend { message, filter: Box::new(filter), by_method: false, names: None, reply };
    link.commands.send(attend).await.ok()?;
    match head.await.ok()? {
        Head::Stream(stream, reader) => Some((link, stream, reader)),
        _ => None,
    }
}

fn result(body: Bytes) -> Result<Message, NoResult> {
    let message = Message::parse(body).map_err(|error| NoResult::Fault(error.to_string()))?;
    let Some(error) = message.error_span().map(|span| message.text(span)) else { return Ok(message) };
    #[derive(serde::Deserialize)]
    struct Said {
        code: i64,
        #[serde(default)]
        message: String,
    }
    let said: Said = serde_json::from_str(error).unwrap_or(Said { code: 0, message: String::new() });
    Err(NoResult::Error { code: said.code, message: said.message })
}

/// What went wrong, in a few words: they stand beside others' in one answer.
fn why(fault: &Fault) -> String {
    match fault {
        Fault::Unavailable { why } | Fault::DoesNotStart { said: why } | Fault::Refused { why } => why.clone(),
        fault => fault.message(),
    }
}

fn refused(refusal: Refusal) -> String {
    match refusal {
        Refusal::Busy => "too many calls wait for it".to_owned(),
        Refusal::Stuck => "it does not read its input".to_owned(),
        _ => "it is being stopped".to_owned(),
    }
}

/// A message of Prism's own. It calls no tool.
fn parse(text: String) -> Result<Admitted, NoResult> {
    let message = Message::parse(Bytes::from(text)).map_err(|error| NoResult::Fault(error.to_string()))?;
    Admitted::no_tool(message).ok_or_else(|| NoResult::Fault("Prism calls no tools by itself".to_owned()))
}
