//! Paths as `file:` URIs and back. Servers differ in what they escape; all of it is read, and only what RFC 3986 wants escaped
//! is written so.

use std::{
    ffi::OsString,
    fmt::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

pub(crate) fn of(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

/// Returns the path; `None` for what is no file of this machine.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(rest.len());
    let mut letters = rest.bytes();
    while let Some(byte) = letters.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(letters.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let is_absolute = bytes.first() == Some(&b'/') && !bytes.contains(&0);
    is_absolute.then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_path_comes_back(name in proptest::collection::vec(1_u8..=255, 0..40)) {
            let path_in = Path::new("/").join(OsString::from_vec(name));
            prop_assert_eq!(path(&of(&path_in)), Some(path_in));
        }
    }

    #[test]
    fn uris_are_read_as_servers_write_them() {
        assert_eq!(of(Path::new("/a b/ü.rs")), "file:///a%20b/%C3%BC.rs");
        assert_eq!(path("file:///a/%40types/x.d.ts"), Some("/a/@types/x.d.ts".into()));
        assert_eq!(path("file:///a/@types/x.d.ts"), Some("/a/@types/x.d.ts".into()));
        for other in ["", "untitled:1", "file://host/a", "file:///a%2", "file:///a%00", "bundled:///libs/lib.d.ts"] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
