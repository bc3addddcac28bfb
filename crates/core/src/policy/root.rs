//! The folders of a grant, by name. What lies in them is found by opening it (`prism_os::root`), never by comparing names;
//! here is only what can be said of a name: that it is one, and that one is written below another.

use std::fmt;

/// The longest name of a folder.
const MAX_LENGTH: usize = 4096;

/// A folder of a grant: one that a person has approved, and the way down from it that its holder has kept to. The way is
/// walked without leaving the approved folder, whatever links lie on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantRoot {
    /// Absolute, without `.`, `..` or doubled slashes.
    base: String,
    /// Relative, in the same form; empty for the folder itself.
    beneath: String,
}

/// Why a name is not that of a folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootNameError {
    #[error("a root is an absolute path, and {0:?} is none")]
    Relative(String),
    #[error("{0:?} has `..` in it; name the folder itself")]
    Upwards(String),
    #[error("a root is at most {MAX_LENGTH} bytes long and has no NUL in it")]
    Unusable,
}

// === impl GrantRoot ===

impl GrantRoot {
    /// A folder as an agent asks for it, or a person approves it.
    pub fn new(path: &str) -> Result<Self, RootNameError> {
        if path.len() > MAX_LENGTH || path.contains('\0') {
            return Err(RootNameError::Unusable);
        }
        if !path.starts_with('/') {
            return Err(RootNameError::Relative(path.to_owned()));
        }
        let parts = parts(path).ok_or_else(|| RootNameError::Upwards(path.to_owned()))?;
        Ok(Self { base: format!("/{}", parts.join("/")), beneath: String::new() })
    }

    /// As it was kept.
    pub fn kept(base: &str, beneath: &str) -> Result<Self, RootNameError> {
        let base = Self::new(base)?;
        let parts = parts(beneath).ok_or_else(|| RootNameError::Upwards(beneath.to_owned()))?;
        Ok(Self { beneath: parts.join("/"), ..base })
    }

    /// The folder that was approved.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The way down from it.
    pub fn beneath(&self) -> &str {
        &self.beneath
    }

    /// Whether a path is written below it, or is it: for telling of what was reached by handle before.
    pub fn is_above(&self, path: &str) -> bool {
        below(path, &self.base).is_some_and(|rest| below(rest, &self.beneath).is_some())
    }

    /// The same folder as its holder may narrow it to; `None` if that is not written below it.
    pub fn narrowed_to(&self, path: &str) -> Option<Self> {
        let wanted = Self::new(path).ok()?;
        let beneath = below(&wanted.base, &self.base)?;
        below(beneath, &self.beneath)?;
        Some(Self { base: self.base.clone(), beneath: beneath.to_owned() })
    }
}

impl fmt::Display for GrantRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.base.as_str(), self.beneath.as_str()) {
            (base, "") => f.write_str(base),
            ("/", beneath) => write!(f, "/{beneath}"),
            (base, beneath) => write!(f, "{base}/{beneath}"),
        }
    }
}

/// The parts of a path; `None` if it leads upwards.
fn parts(path: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (!parts.contains(&"..")).then_some(parts)
}

/// What of a path is below a folder; `None` if it is not.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() || folder == "/" {
        return Some(path.trim_start_matches('/'));
    }
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_by_whole_names() {
        for (base, beneath, path, is_above) in [
            ("/p", "", "/p", true),
            ("/p", "", "/p/a", true),
            ("/p", "", "/pa", false),
            ("/p", "q", "/p/q/r", true),
            ("/p", "q", "/p/qr", false),
            ("/p", "q", "/p", false),
            ("/", "", "/p", true),
            ("/", "p", "/p", true),
            ("/p", "", "p", false),
        ] {
            assert_eq!(GrantRoot::kept(base, beneath).unwrap().is_above(path), is_above, "{base} {beneath} {path}");
        }
    }

    #[test]
    fn a_root_is_an_absolute_path_that_leads_down() {
        assert_eq!(GrantRoot::new("//home/./a//").unwrap().to_string(), "/home/a");
        assert_eq!(GrantRoot::new("/").unwrap().to_string(), "/");
        for wrong in ["", "a", "./a", "~", "/a/../b", "/..", "/a\0"] {
            assert!(GrantRoot::new(wrong).is_err(), "{wrong:?}");
        }
        assert!(GrantRoot::new(&"/a".repeat(MAX_LENGTH)).is_err());
    }

    // A-08
    #[test]
    fn a_root_is_narrowed_to_what_is_written_below_it_only() {
        let root = GrantRoot::new("/home/a").unwrap();
        let narrowed = |path: &str| root.narrowed_to(path).map(|root| (root.base, root.beneath));
        let kept = |beneath: &str| Some(("/home/a".to_owned(), beneath.to_owned()));
        assert_eq!(narrowed("/home/a"), kept(""));
        assert_eq!(narrowed("/home/a/b//c"), kept("b/c"));
        for outside in ["/home", "/home/ab", "/home/a/../b", "/home/b", "/", "home/a/b", "/HOME/a/b"] {
            assert_eq!(narrowed(outside), None, "{outside}");
        }
        let deeper = root.narrowed_to("/home/a/b").unwrap();
        assert_eq!(deeper.narrowed_to("/home/a/b/c").unwrap().to_string(), "/home/a/b/c");
        assert_eq!(deeper.narrowed_to("/home/a/bc"), None);
        assert_eq!(deeper.narrowed_to("/home/a"), None);
        assert_eq!(GrantRoot::new("/").unwrap().narrowed_to("/etc").unwrap().to_string(), "/etc");
    }
}
