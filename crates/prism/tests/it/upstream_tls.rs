//! A server behind TLS, with a certificate of an authority that only these tests know: what `SSL_CERT_FILE` names is
//! trusted, and nothing else.

use std::{fs, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::support::{
    Daemon, Home,
    upstream::{Upstream, calling, fault, got_text, nothing_is_left, root, text},
};

/// Vouches for [`CERTIFICATE`]. Its own key is gone; all three are good until 2126.
pub(crate) const AUTHORITY: &str = include_str!("../../../mcp/src/remote/tests/tls/authority.pem");
/// Of 127.0.0.1 and localhost.
const CERTIFICATE: &str = include_str!("../../../mcp/src/remote/tests/tls/certificate.pem");
const KEY: &str = include_str!("../../../mcp/src/remote/tests/tls/key.pem");

pub(crate) async fn start() -> Upstream {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Upstream::start_tls(TlsAcceptor::from(Arc::new(config))).await
}

/// A daemon that trusts this, and nothing else.
async fn trusting(upstream: &Upstream, authority: &str) -> Daemon {
    let home = Home::new();
    let file = home.file("authority.pem");
    fs::write(&file, authority).unwrap();
    upstream.launch(&[]).home(&home).env("SSL_CERT_FILE", &file).start().await
}

// B-22
#[tokio::test]
async fn a_server_behind_tls_is_reached_with_the_authority_of_the_environment() {
    let mut upstream = start().await;
    assert!(upstream.url().starts_with("https://"));
    let daemon = trusting(&upstream, AUTHORITY).await;
    let client = upstream.initialized(&daemon, "s1").await;
    for n in 0..3 {
        let waiting = calling(&client, "t", json!({}));
        let asked = upstream.asked("tools/call").await;
        let id = asked.id();
        // Either way of answering, through the same connection.
        match n {
            0 => asked.result(text("secret")).await,
            _ => asked.events().result(id, text("secret")).await,
        }
        assert_eq!(got_text(waiting).await, "secret");
    }
    assert_eq!(client.delete().await.status, 204);
    upstream.asked("DELETE").await.status(200).await;
    nothing_is_left(&daemon, "run").await;
}

// B-22
#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let mut upstream = start().await;
    // Some other certificate: it has signed nothing.
    let daemon = trusting(&upstream, CERTIFICATE).await;
    let reply = root(&daemon).say_hello().await;
    assert_eq!(reply.status, 503);
    let why = fault(&reply.json().await, "upstream_unavailable");
    assert!(why.contains("cannot be reached") && why.contains("certificate"), "{why}");
    upstream.asked_nothing_more();
    nothing_is_left(&daemon, "run").await;
}
