//! The stream of HTTP+SSE (2024-11-05): it names the address that messages go to, and then brings everything that the
//! server says. Losing it is losing the connection.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method as Verb, Uri};
use tokio::time::timeout;

use super::{
    RemoteTarget, address,
    headers::{self, ProtocolHeaders},
    reading::{self, EventReader, ResponseContent, StreamPiece},
    report::{ReportContent, SseLoss, TaskReporter},
    stream,
};

/// Opens the stream, and reads it to its end.
pub(super) async fn run(target: Arc<RemoteTarget>, voice: TaskReporter) {
    let patience = target.patience.endpoint;
    let opened = timeout(patience, open(&target)).await;
    let late = |_| Err(lost(format!("the server named no endpoint within {} s", patience.as_secs())));
    let (mut reading, endpoint) = match opened.unwrap_or_else(late) {
        Ok(opened) => opened,
        Err(lost) => return voice.say(ReportContent::Lost(lost)).await,
    };
    voice.say(ReportContent::Endpoint(endpoint)).await;
    while stream::forward(&mut reading, &voice).await {}
    voice.say(ReportContent::Lost(lost("the server's event stream ended".to_owned()))).await;
}

async fn open(target: &RemoteTarget) -> Result<(EventReader, Uri), SseLoss> {
    let headers = || headers::of_get(target, &ProtocolHeaders::default(), None);
    let sent = target.send(Verb::GET, &target.url, headers, Bytes::new()).await;
    let (url, response) = sent.map_err(|failure| lost(format!("the event stream did not open: {failure}")))?;
    let status = response.status().as_u16();
    if !response.status().is_success() || reading::content(response.headers()) != ResponseContent::Events {
        let why = format!("the server answered {status} and no event stream");
        // An outage says nothing about the transport.
        return Err(SseLoss { why, refused: !matches!(status, 401 | 403 | 408 | 429 | 500..=599) });
    }
    let mut reading = EventReader::new(response.into_body(), target.max_message_bytes());
    let named = match reading.next().await {
        StreamPiece::Event { name, data } if name.as_deref() == Some("endpoint") => data,
        StreamPiece::End => return Err(lost("the event stream ended before it named an endpoint".to_owned())),
        StreamPiece::Event { .. } | StreamPiece::TooLong => {
            return Err(SseLoss { why: "the event stream begins with no endpoint".to_owned(), refused: true });
        }
    };
    let endpoint = std::str::from_utf8(&named).ok().and_then(|text| address::resolve(&url, text));
    match endpoint {
        // Messages and credentials go there: nobody but the server itself may say where that is.
        Some(endpoint) if address::same_origin(&endpoint, &target.url) => Ok((reading, endpoint)),
        Some(endpoint) => {
            Err(lost(format!("the server's endpoint is of another origin: {}", address::shown(&endpoint))))
        }
        None => Err(lost("the server's endpoint is no URL".to_owned())),
    }
}

fn lost(why: String) -> SseLoss {
    SseLoss { why, refused: false }
}
