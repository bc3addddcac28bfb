//! A plain reverse proxy: `proxy PORT AUTHORITY`. A hyper server, a pooled hyper client, bodies streamed both ways,
//! nothing read. What Prism costs in front of an HTTP server is measured as a ratio to this, in the same run.
use hyper::{Request, Uri, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().expect("usage: proxy PORT AUTHORITY").parse()?;
    let authority: &'static str = args.next().expect("an authority").leak();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        tokio::spawn(async move {
            let service = service_fn(move |mut request: Request<Incoming>| {
                let client = client.clone();
                async move {
                    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
                    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build();
                    *request.uri_mut() = uri.expect("made of parts of a good one");
                    client.request(request).await
                }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
