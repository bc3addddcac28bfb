//! Paths as URIs, and back: `file:///a%20b` for a text, `prism-diagnostics:///a%20b` for what is wrong in it.

use std::fmt::Write;

/// What a resource is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceAspect {
    Text,
    Diagnostics,
}

const FILE: &str = "file://";
const DIAGNOSTICS: &str = "prism-diagnostics://";

/// Returns the URI of an absolute path.
pub(super) fn of(about: ResourceAspect, path: &str) -> String {
    let mut uri = match about {
        ResourceAspect::Text => FILE,
        ResourceAspect::Diagnostics => DIAGNOSTICS,
    }
    .to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// Returns what a URI is about, and the path; `None` if it is none of ours.
pub(super) fn read(uri: &str) -> Option<(ResourceAspect, String)> {
    let of = |scheme: &str, about| uri.strip_prefix(scheme).map(|rest| (about, rest));
    let (about, rest) = of(FILE, ResourceAspect::Text).or_else(|| of(DIAGNOSTICS, ResourceAspect::Diagnostics))?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((&byte, after)) = left.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            left = after;
            continue;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok()?);
        left = &after[2..];
    }
    let path = String::from_utf8(bytes).ok()?;
    (path.starts_with('/') && !path.contains('\0')).then_some((about, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_from_its_uri() {
        for path in ["/a/b.rs", "/a b/ü%.txt", "/a?b#c", "/"] {
            for about in [ResourceAspect::Text, ResourceAspect::Diagnostics] {
                assert_eq!(read(&of(about, path)), Some((about, path.to_owned())), "{path}");
            }
        }
        assert_eq!(of(ResourceAspect::Text, "/a b/ü"), "file:///a%20b/%C3%BC");
        assert_eq!(read("file://localhost/a"), Some((ResourceAspect::Text, "/a".to_owned())));
    }

    #[test]
    fn what_is_no_path_of_this_machine_is_none() {
        for uri in
            ["file://host/a", "file:///a%zz", "file:///a%2", "file:a", "http://a/b", "", "file:///%00", "file:///%ff"]
        {
            assert_eq!(read(uri), None, "{uri}");
        }
    }
}
