//! `prism acp -- COMMAND`: between an editor and the agent that it talks to over ACP (the Agent Client Protocol, JSON lines
//! on stdio). Everything passes as it is; when the agent's bell rings, the agent is prompted with it, and the person sees what
//! comes of that in the editor. What is whose turn is decided in `machine`.

pub(crate) mod machine;

use std::{
    io,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use bytes::BytesMut;
use prism_core::wire::LineSplitter;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Stdout},
    net::unix::pipe::{Receiver, Sender},
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};

use self::machine::{AcpAction, AcpMachine};
use crate::say;

/// The longest message, either way. A longer one cannot be passed on.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Bytes that may wait for one side to read them. Beyond it the other side is not read.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;
/// How long an agent may take to end when its editor has gone.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// A bell for an agent, and the ACP session it is in; `None`: whichever was spoken in last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcpBell {
    pub(crate) session: Option<String>,
    pub(crate) text: String,
}

/// Somebody who waits for the bells of sessions as they appear.
pub(crate) trait BellSubscriber {
    /// A session was opened in this folder.
    fn session(&mut self, id: &str, folder: &str);
}

/// Runs until the agent has ended. Returns how.
pub(crate) async fn run(
    command: &[String],
    mut ears: impl BellSubscriber,
    mut bells: mpsc::Receiver<AcpBell>,
) -> io::Result<ExitStatus> {
    let (mut child, to_agent, mut from_agent) = spawn(command)?;
    let mut to_agent = Some(to_agent);
    let (mut from_host, mut to_host) = (tokio::io::stdin(), AcpStdout::default());
    let (mut host_lines, mut agent_lines) =
        (LineSplitter::new(MAX_MESSAGE_BYTES), LineSplitter::new(MAX_MESSAGE_BYTES));
    let mut for_agent = BytesMut::new();
    let mut machine = AcpMachine::default();
    // Since when the editor is gone: then the agent is given a while to end by itself.
    let mut gone: Option<Instant> = None;
    loop {
        while let Some(frame) = host_lines.next_frame() {
            machine.handle_host(frame);
        }
        while let Some(frame) = agent_lines.next_frame() {
            machine.handle_agent(frame);
        }
        while let Some(action) = machine.poll_action() {
            match action {
                AcpAction::ToAgent(line) => push(&mut for_agent, &line),
                AcpAction::ToHost(line) => push(&mut to_host.unwritten, &line),
                AcpAction::Opened { session, folder } => ears.session(&session, &folder),
                AcpAction::Say(text) => say::warning(&text),
            }
        }
        if gone.is_some() && for_agent.is_empty() {
            to_agent = None;
        }
        let reads_host = gone.is_none() && for_agent.len() < MAX_UNWRITTEN_BYTES;
        let reads_agent = gone.is_some() || to_host.unwritten.len() < MAX_UNWRITTEN_BYTES;
        tokio::select! {
            read = from_host.read_buf(host_lines.space()), if reads_host => if read.unwrap_or(0) == 0 {
                // A last line may lack its end.
                host_lines.space().extend_from_slice(b"\n");
                gone = Some(Instant::now());
            },
            read = from_agent.read_buf(agent_lines.space()), if reads_agent => if read.unwrap_or(0) == 0 {
                break;
            },
            written = write(to_agent.as_mut(), &mut for_agent), if !for_agent.is_empty() => if written.is_err() {
                (to_agent, for_agent) = (None, BytesMut::new());
            },
            written = to_host.write(), if to_host.is_busy() => if written.is_err() {
                to_host.unwritten.clear();
                gone = gone.or(Some(Instant::now()));
            },
            Some(bell) = bells.recv(), if gone.is_none() => machine.handle_bell(bell),
            () = sleep_until(gone.unwrap_or_else(Instant::now) + FAREWELL), if gone.is_some() => break,
        }
    }
    drop(to_agent);
    let _ = timeout(FAREWELL, async {
        while to_host.is_busy() {
            to_host.write().await?;
        }
        io::Result::Ok(())
    })
    .await;
    end(&mut child).await
}

/// Stdout, and what nobody has read of it yet.
struct AcpStdout {
    stdout: Stdout,
    unwritten: BytesMut,
    /// Something was given to the system and may not have arrived.
    unflushed: bool,
}

impl Default for AcpStdout {
    fn default() -> Self {
        Self { stdout: tokio::io::stdout(), unwritten: BytesMut::new(), unflushed: false }
    }
}

impl AcpStdout {
    fn is_busy(&self) -> bool {
        self.unflushed || !self.unwritten.is_empty()
    }

    /// Writes what there is. Cancel safe: what is taken out is written.
    async fn write(&mut self) -> io::Result<()> {
        if !self.unwritten.is_empty() {
            self.stdout.write_buf(&mut self.unwritten).await?;
            self.unflushed = true;
        }
        self.stdout.flush().await?;
        self.unflushed = false;
        Ok(())
    }
}

/// Starts the agent. What it says on stderr is for whoever reads ours.
fn spawn(command: &[String]) -> io::Result<(Child, Sender, Receiver)> {
    let [program, arguments @ ..] = command else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take().map(Into::into).map(Sender::from_owned_fd);
    let stdout = child.stdout.take().map(Into::into).map(Receiver::from_owned_fd);
    match (stdin, stdout) {
        (Some(stdin), Some(stdout)) => Ok((child, stdin?, stdout?)),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

async fn write(agent: Option<&mut Sender>, bytes: &mut BytesMut) -> io::Result<()> {
    let agent = agent.ok_or(io::ErrorKind::BrokenPipe)?;
    agent.write_buf(bytes).await.map(|_| ())
}

fn push(out: &mut BytesMut, line: &[u8]) {
    out.extend_from_slice(line);
    out.extend_from_slice(b"\n");
}

/// Waits for an agent whose input has ended, and ends it if it does not.
async fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let until = Instant::now() + FAREWELL;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(LOOK).await;
    }
    child.kill()?;
    child.wait()
}
