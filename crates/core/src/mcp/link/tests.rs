//! What a link does, as transcripts: see [`transcript`] for how to read them.

mod calls;
mod cancel;
mod handshake;
mod transcript;

use self::transcript::check;
use crate::wire::frame::tests::sse;
