//! What an approval is bound to.

use ring::digest::{Context, SHA256};

/// SHA-256 over parts, none of which can be taken for a piece of its neighbour.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_part_ends_counts() {
        assert_ne!(sha256(&[b"ab", b"c"]), sha256(&[b"a", b"bc"]));
        assert_ne!(sha256(&[b"a", b""]), sha256(&[b"a"]));
        assert_eq!(sha256(&[b"a", b"b"]), sha256(&[b"a", b"b"]));
    }
}
