//! A way to the daemon that can be cut, or go dark: then its sockets stay open, and nothing goes through any more.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::support::{Place, until};

pub(super) struct Relay {
    port: u16,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    to: u16,
    dark: AtomicBool,
    /// Connections so far: that of the stream, and one for each ping that was answered.
    connections: AtomicUsize,
    reset: watch::Sender<bool>,
}

impl Relay {
    pub(super) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (dark, connections) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shared = Arc::new(Shared { to, dark, connections, reset: watch::Sender::new(false) });
        let (mut task, own) = (JoinSet::new(), shared.clone());
        task.spawn(async move {
            let mut relaying = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("it listens");
                relaying.spawn(own.clone().relay(client));
            }
        });
        Self { port, shared, _task: task }
    }

    pub(super) fn place(&self) -> Place {
        Place::Tcp(self.port)
    }

    /// Waits until so many connections were made through it.
    pub(super) async fn until_carried(&self, count: usize) {
        until("pings are answered", async || self.shared.connections.load(SeqCst) >= count).await;
    }

    pub(super) fn go_dark(&self) -> Instant {
        self.shared.dark.store(true, SeqCst);
        Instant::now()
    }

    /// Has all sockets reset, as those of a process that is gone.
    pub(super) fn reset(&self) {
        self.shared.reset.send_replace(true);
    }
}

impl Shared {
    async fn relay(self: Arc<Self>, mut client: TcpStream) {
        if self.dark.load(SeqCst) {
            return pending().await;
        }
        let mut daemon = TcpStream::connect(("127.0.0.1", self.to)).await.expect("the daemon listens");
        self.connections.fetch_add(1, SeqCst);
        let mut reset = self.reset.subscribe();
        let (mut out, mut back) = (vec![0; 16 << 10], vec![0; 16 << 10]);
        loop {
            tokio::select! {
                read = client.read(&mut out) => match read {
                    Ok(count) if count > 0 => self.pass(&mut daemon, &out[..count]).await,
                    _ => return,
                },
                read = daemon.read(&mut back) => match read {
                    Ok(count) if count > 0 => self.pass(&mut client, &back[..count]).await,
                    _ => return,
                },
                _ = reset.changed() => {
                    for socket in [&client, &daemon] {
                        socket.set_zero_linger().expect("a socket has this option");
                    }
                    return;
                }
            }
        }
    }

    async fn pass(&self, to: &mut TcpStream, bytes: &[u8]) {
        if self.dark.load(SeqCst) {
            return pending().await;
        }
        // Who has left hears nothing.
        let _ = to.write_all(bytes).await;
    }
}
