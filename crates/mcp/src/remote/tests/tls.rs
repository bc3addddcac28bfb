//! A server behind TLS, with a certificate of an authority that only the tests know.

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

use super::*;

/// Vouches for [`CERTIFICATE`]. Its own key is gone; all three are good until 2126.
const AUTHORITY: &str = include_str!("tls/authority.pem");
/// Of 127.0.0.1 and localhost.
const CERTIFICATE: &str = include_str!("tls/certificate.pem");
const KEY: &str = include_str!("tls/key.pem");

async fn start() -> Server {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let mut server = Server::start_with(move |socket| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(socket).await.ok() }
    })
    .await;
    server.url = server.url.replace("http:", "https:");
    server
}

fn trusting(url: &str, authorities: &[&str]) -> Arc<RemoteTarget> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    }
    let tls = target::tls().unwrap().with_root_certificates(roots).with_no_client_auth();
    Arc::new(RemoteTarget::with_tls(url.parse().unwrap(), Vec::new(), None, LIMIT, Arc::new(tls)).unwrap())
}

#[tokio::test]
async fn a_server_behind_tls_is_asked() {
    let server = start().await;
    let target = trusting(&server.url, &[AUTHORITY]);
    let mut bench = Bench::with(server, target);
    for id in 1..=3 {
        bench.remote.send(call(id));
        bench.asked().await.json(&result(id)).await;
        assert_eq!(bench.shown().await, format!("{id}: {}", result(id)));
        // The connection goes back to the pool a moment after the answer.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(bench.server.connections(), 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = start().await;
    let target = trusting(&server.url, &[]);
    let mut bench = Bench::with(server, target);
    bench.remote.send(call(7));
    match bench.failure().await {
        (7, RemoteFailure::Unreachable { why }) => assert!(why.contains("certificate"), "{why}"),
        other => panic!("{other:?}"),
    }
}
