//! The console: a web page on the daemon where a person sees what agents ask for, and decides. What is here makes
//! pages out of what others know; who may see them is in `door`, and how they are reached is in `serve/console.rs`.
//!
//! A page is a shell, the same for everybody, and a part that only its session gets (H3). The script fetches the part, keeps
//! it up to date, piece by piece, and sends what the person decides. What agents have written is text on every page, and
//! never markup.

pub mod assets;
pub mod audit;
pub mod confirmations;
pub mod destinations;
pub mod diff;
pub mod door;
pub mod grants;
pub mod login;
pub mod page;
pub mod requests;
pub mod signals;
pub mod trend;
pub mod untrusted;
pub mod words;

use std::sync::atomic::AtomicBool;

use audit::ChainStatus;
use door::ConsoleAccess;
use tokio::sync::watch;
use trend::LatencyTrends;

/// What the console keeps, for the daemon's life.
#[derive(Debug, Default)]
pub struct Console {
    pub door: ConsoleAccess,
    pub trend: LatencyTrends,
    /// What was last found of the audit's chain.
    pub chain: watch::Sender<ChainStatus>,
    /// Whether somebody is at it.
    pub checking: AtomicBool,
}
