//! Servers of other programs on this machine: what an agent may name as one, and how it is connected to. Only this
//! machine: a bell, and the secret that opens the door for it, must not leave it because an agent said so.

use std::net::IpAddr;

use hyper::Uri;
use tokio::net::{TcpStream, lookup_host};

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopbackServer {
    host: String,
    port: u16,
    /// What stands before the paths that are asked for; without a slash at its end.
    pub(super) path: String,
}

// === impl LoopbackServer ===

impl LoopbackServer {
    /// Reads an address. The error says what one looks like, and does not repeat it: it may hold a password.
    pub(super) fn parse(url: &str, scheme: &str, example: &str) -> Result<Self, String> {
        let wrong = || format!("must be an address on this machine, as in {example}");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|it| !it.as_str().contains('@')).ok_or_else(wrong)?;
        if uri.scheme_str() != Some(scheme) || uri.query().is_some() {
            return Err(wrong());
        }
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let here = host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match authority.port_u16().filter(|_| here) {
            Some(port) => Ok(Self { host: bare.to_owned(), port, path: uri.path().trim_end_matches('/').to_owned() }),
            None => Err(wrong()),
        }
    }

    /// Connects to it, wherever a name leads: but never off this machine.
    pub(super) async fn connect(&self) -> std::io::Result<TcpStream> {
        let addresses: Vec<_> = lookup_host((self.host.as_str(), self.port)).await?.collect();
        let here: Vec<_> = addresses.into_iter().filter(|address| address.ip().is_loopback()).collect();
        let stream = TcpStream::connect(here.as_slice()).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// As in a `Host` header.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LoopbackServer;

    #[test]
    fn only_this_machine_is_an_address() {
        for good in ["http://127.0.0.1:4096", "http://localhost:1/", "http://[::1]:80/x", "http://127.9.9.9:5"] {
            assert!(LoopbackServer::parse(good, "http", "").is_ok(), "{good}");
        }
        for bad in [
            "http://example.com:80",
            "http://10.0.0.1:80",
            "http://127.0.0.1",
            "http://127.0.0.1.example.com:80",
            "http://localhost.example.com:80",
            "http://user:word@127.0.0.1:80",
            "ws://127.0.0.1:80",
            "http://0.0.0.0:80",
            "http://127.0.0.1:80/?a=b",
            "",
        ] {
            assert!(LoopbackServer::parse(bad, "http", "").is_err(), "{bad}");
        }
    }
}
