//! What a link does, as transcripts (see [`transcript`] for how to read them) and as random lives (see [`life`]).

mod batches;
mod calls;
mod cancel;
mod eras;
mod fake;
mod flights;
mod handshake;
mod idle;
mod keep;
mod levels;
mod life;
mod limits;
mod lines;
mod listens;
mod lives;
mod logs;
mod modern_calls;
mod moderns;
mod parked;
mod parked_questions;
mod parts;
mod pings;
mod plain;
mod questions;
mod restart;
mod ring;
mod rounds;
mod streams;
mod transcript;
mod turns;
mod union;
mod watches;
mod world;

use self::transcript::check;
use crate::wire::frame::tests::sse;
