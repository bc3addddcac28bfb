//! Bytes as a life: what clients, server and time do to a link, four bytes a step. The same as the property tests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_core::{mcp, wire};

#[path = "../../src/mcp/link/tests/fake.rs"]
mod fake;
#[path = "../../src/mcp/link/tests/life.rs"]
mod life;
#[path = "../../src/mcp/link/tests/moderns.rs"]
mod moderns;
#[path = "../../src/wire/frame/tests/sse.rs"]
mod sse;
#[path = "../../src/mcp/link/tests/world.rs"]
mod world;

fuzz_target!(|data: &[u8]| life::live(data));
