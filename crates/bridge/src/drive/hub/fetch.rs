//! Prism as a client of its own destinations: one request, one answer, without a session.

use bytes::Bytes;
use prism_core::{
    mcp::{
        AcceptedFormats, CallFault, Era, LinkAnswer, LinkRefusal, Method, ModernCall,
        hello::OWN_INFO,
        link::StreamKey,
        modern::{self, ClientMeta, ListenFilter, OwnClientMeta},
    },
    wire::{Message, text},
};
use tokio::sync::oneshot;

use crate::{
    admitted::Admitted,
    drive::{Audience, Destination, LinkCommand, LinkHandle, ReplyHead, SessionEntry, outlet::OutletReader},
};

const ACCEPTS: AcceptedFormats = AcceptedFormats { json: true, events: false, by_method: false };

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum FetchError {
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
) -> Result<Message, FetchError> {
    // Where calls of the modern era run may turn out with the first of them.
    let movable = audience.era == Era::Modern && destination.speaks().modern.is_none();
    match ask(destination, audience, method, params, movable).await? {
        ReplyHead::Elsewhere(_) => told(ask(destination, audience, method, params, false).await?),
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
) -> Result<ReplyHead, FetchError> {
    let class = audience.class;
    let own = parse(modern::own_request(0, method, params, OwnClientMeta { class, ..OwnClientMeta::OWN }))?;
    let ask = own.asking(|message| ModernCall {
        message,
        envelope: ClientMeta { class, level: None, info: OWN_INFO.into(), tasks: false },
        headers: Vec::new(),
        accepts: ACCEPTS,
        names: None,
        ticket: 0,
        resumes: None,
        evicts: false,
        movable,
        fetch: true,
    });
    send(&destination.list_link(audience), |reply| LinkCommand::Ask { ask, carried: None, reply }).await
}

fn told(head: ReplyHead) -> Result<Message, FetchError> {
    match head {
        ReplyHead::Answer(LinkAnswer::Message(body) | LinkAnswer::Error { body, .. }) => {
            result(Bytes::from(body.to_vec()))
        }
        ReplyHead::Answer(LinkAnswer::Fault { fault, .. }) => Err(FetchError::Fault(why(&fault))),
        ReplyHead::Refused(refusal) => Err(FetchError::Fault(refused(refusal))),
        _ => Err(FetchError::Fault("it cannot be asked now".to_owned())),
    }
}

/// The same, in the name of a session of the legacy era.
pub(super) async fn request_as(session: &SessionEntry, method: Method, params: &str) -> Result<Message, FetchError> {
    let message = parse(text::request(0, method, params))?;
    match send(&session.link, |reply| LinkCommand::Fetch { key: session.key(), message, reply }).await? {
        ReplyHead::Answer(LinkAnswer::Message(body)) => result(Bytes::from(body.to_vec())),
        _ => Err(FetchError::Fault("it cannot be asked now".to_owned())),
    }
}

async fn send(
    link: &LinkHandle,
    command: impl FnOnce(oneshot::Sender<ReplyHead>) -> LinkCommand,
) -> Result<ReplyHead, FetchError> {
    let gone = || FetchError::Fault("it is being stopped".to_owned());
    let (reply, head) = oneshot::channel();
    link.commands.send(command(reply)).await.map_err(|_| gone())?;
    head.await.map_err(|_| gone())
}

/// Finds out whether a destination can be reached, and so which era it speaks; if not, says why.
pub(crate) async fn reach(destination: &Destination, audience: Audience) -> Result<(), String> {
    match request(destination, audience, Method::Discover, "{}").await {
        Ok(_) | Err(FetchError::Error { .. }) => Ok(()),
        Err(FetchError::Fault(why)) => Err(why),
    }
}

/// A stream of changes: whose it is, and its events.
pub(super) type Listen = (LinkHandle, StreamKey, OutletReader);

/// Listens for changes of a server's lists; `None` if it is not let.
pub(super) async fn listen(link: LinkHandle) -> Option<Listen> {
    let filter = ListenFilter { tools: true, prompts: true, resources: true, uris: Vec::new() };
    let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
    let message = parse(modern::own_request(0, Method::Listen, &params, OwnClientMeta::OWN)).ok()?.into_message();
    let (reply, head) = oneshot::channel();
    let attend = LinkCommand::Attend { message, filter: Box::new(filter), by_method: false, names: None, reply };
    link.commands.send(attend).await.ok()?;
    match head.await.ok()? {
        ReplyHead::Stream(stream, reader) => Some((link, stream, reader)),
        _ => None,
    }
}

fn result(body: Bytes) -> Result<Message, FetchError> {
    let message = Message::parse(body).map_err(|error| FetchError::Fault(error.to_string()))?;
    let Some(error) = message.error_span().map(|span| message.text(span)) else { return Ok(message) };
    #[derive(serde::Deserialize)]
    struct ErrorObject {
        code: i64,
        #[serde(default)]
        message: String,
    }
    let said: ErrorObject = serde_json::from_str(error).unwrap_or(ErrorObject { code: 0, message: String::new() });
    Err(FetchError::Error { code: said.code, message: said.message })
}

/// What went wrong, in a few words: they stand beside others' in one answer.
fn why(fault: &CallFault) -> String {
    match fault {
        CallFault::Unavailable { why } | CallFault::DoesNotStart { said: why } | CallFault::Refused { why } => {
            why.clone()
        }
        fault => fault.message(),
    }
}

fn refused(refusal: LinkRefusal) -> String {
    match refusal {
        LinkRefusal::Busy => "too many calls wait for it".to_owned(),
        LinkRefusal::Stuck => "it does not read its input".to_owned(),
        _ => "it is being stopped".to_owned(),
    }
}

/// A message of Prism's own. It calls no tool.
fn parse(text: String) -> Result<Admitted, FetchError> {
    let message = Message::parse(Bytes::from(text)).map_err(|error| FetchError::Fault(error.to_string()))?;
    Admitted::no_tool(message).ok_or_else(|| FetchError::Fault("Prism calls no tools by itself".to_owned()))
}
