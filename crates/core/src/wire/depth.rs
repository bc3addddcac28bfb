//! How deep a JSON text nests, without reading it. What only passes through is scanned and never built, so it costs us no stack,
//! but whoever it is for may build it: a reader that recurses dies of a thousand levels, and its other clients with it.

/// serde_json reads no deeper, so nobody has ever sent more to a server or a client in Rust.
pub const MAX_DEPTH: usize = 128;

/// Whether arrays and objects lie in each other deeper than that.
#[must_use]
pub fn is_too_deep(text: &[u8]) -> bool {
    // Most texts have fewer brackets than that in all.
    if text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    // L9
    #[test]
    fn brackets_in_each_other_are_counted_and_no_others() {
        assert!(!is_too_deep(nested(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(is_too_deep(format!(r#"["\\",{}]"#, nested(MAX_DEPTH)).as_bytes()));
        let beside = format!("[{}]", vec!["{\"a\":[]}"; MAX_DEPTH].join(","));
        let written = format!(r#"["\"{}",{}]"#, "[{".repeat(MAX_DEPTH), nested(MAX_DEPTH - 1));
        for text in [beside, written] {
            assert!(!is_too_deep(text.as_bytes()), "{text}");
        }
    }
}
