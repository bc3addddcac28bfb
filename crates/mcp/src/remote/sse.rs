//! The stream of HTTP+SSE (2024-11-05): it names the address that messages go to, and then brings everything that the
//! server says. Losing it is losing the connection.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method as Verb, Uri};
use tokio::time::timeout;

use super::{
    Target, address,
    headers::{self, Lane},
    reading::{self, Content, Piece, Reading},
    report::{Lost, Says, Voice},
    stream,
};

/// Opens the stream, and reads it to its end.
pub(super) async fn run(target: Arc<Target>, voice: Voice) {
    let patience = target.patience.endpoint;
    let opened = timeout(patience, open(&target)).await;
    let late = |_| Err(lost(format!("the server named no endpoint within {} s", patience.as_secs())));
    let (mut reading, endpoint) = match opened.unwrap_or_else(late) {
        Ok(opened) => opened,
        Err(lost) => return voice.say(Says::Lost(lost)).await,
    };
    voice.say(Says::Endpoint(endpoint)).await;
    while stream::forward(&mut reading, &voice).await {}
    voice.say(Says::Lost(lost("the server's event stream ended".to_owned()))).await;
}

async fn open(target: &Target) -> Result<(Reading, Uri), Lost> {
    let headers = || headers::of_get(target, &Lane::default(), None);
    let sent = target.send(Verb::GET, &target.url, headers, Bytes::new()).await;
    let (url, response) = sent.map_err(|failure| lost(format!("the event stream did not open: {failure}")))?;
    let status = response.status().as_u16();
    if !response.status().is_success() || reading::content(response.headers()) != Content::Events {
        let why = format!("the server answered {status} and no event stream");
        // An outage says nothing about the transport.
        return Err(Lost { why, refused: !matches!(status, 401 | 403 | 408 | 429 | 500..=599) });
    }
    let mut reading = Reading::new(response.into_body(), target.max_message_bytes());
    let named = match reading.next().await {
        Piece::Event { name, data } if name.as_deref() == Some("endpoint") => data,
        Piece::End => return Err(lost("the event stream ended before it named an endpoint".to_owned())),
        Piece::Event { .. } | Piece::TooLong => {
            return Err(Lost { why: "the event stream begins with no endpoint".to_owned(), refused: true });
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

fn lost(why: String) -> Lost {
    Lost { why, refused: false }
}
