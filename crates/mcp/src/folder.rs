//! The folder that a client works in, on its way to us: as a header's value, and as a `file:` URI.

use std::{
    collections::HashSet,
    ffi::OsString,
    fmt::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Folders that are remembered for the daemon's life, so that a request need only point to one. Whoever works in a further
/// one has come from nowhere in particular.
const MAX_FOLDERS: usize = 4096;

static FOLDERS: Mutex<Option<HashSet<&'static Path>>> = Mutex::new(None);

/// The path as a header can carry it.
pub fn escaped(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'!'..=b'~' if *byte != b'%' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// The absolute path that was written so.
pub fn unescaped(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

/// The folder that a root of a client's is; `None` if it is none of this machine's.
pub fn of_uri(uri: &str) -> Option<PathBuf> {
    let place = uri.strip_prefix("file://")?;
    unescaped(place.strip_prefix("localhost").unwrap_or(place))
}

/// The folder that a header names, to be pointed to.
pub fn remembered(text: &str) -> Option<&'static Path> {
    let path = unescaped(text)?;
    let mut known = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(path) = known.get(path.as_path()) {
        return Some(path);
    }
    if known.len() >= MAX_FOLDERS {
        return None;
    }
    let path: &'static Path = Box::leak(path.into_boxed_path());
    known.insert(path);
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_its_way_whatever_it_is_called() {
        for path in ["/", "/a b/ü", "/100%/x", "/line\nbreak"] {
            let (path, text) = (Path::new(path), escaped(Path::new(path)));
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(unescaped(&text).as_deref(), Some(path));
            assert_eq!(remembered(&text), Some(path));
        }
        assert_eq!(of_uri("file:///a%20b"), Some(PathBuf::from("/a b")));
        assert_eq!(of_uri("file://localhost/a"), Some(PathBuf::from("/a")));
        for none in ["relative", "%2", "%zz", ""] {
            assert_eq!(unescaped(none), None, "{none}");
        }
        assert_eq!((of_uri("https://x/a"), of_uri("file://other/a")), (None, None));
    }
}
