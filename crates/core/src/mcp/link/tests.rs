//! What a link does, as transcripts (see [`transcript`] for how to read them) and as random lives (see [`life`]).

mod batches;
mod calls;
mod cancel;
mod fake;
mod handshake;
mod life;
mod limits;
mod lines;
mod lives;
mod logs;
mod questions;
mod restart;
mod streams;
mod transcript;
mod watches;
mod world;

use self::transcript::check;
use crate::wire::frame::tests::sse;
