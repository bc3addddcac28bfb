//! Randomness, from the kernel.

use uuid::{Builder, Uuid};

/// Returns an id that is random from its first digit on, as people name things by how their ids begin; `None` if the system
/// gives no random bytes.
#[must_use]
pub fn random_id() -> Option<Uuid> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(Builder::from_random_bytes(bytes).into_uuid())
}
