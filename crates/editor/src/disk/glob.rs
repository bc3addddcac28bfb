//! Patterns for paths: `*` and `?` within a name, `[a-z]` and `[!a-z]`, `{a,b}`, and `**` for any folders. They are held against
//! names that were listed beneath a granted folder, so no pattern leads anywhere.

/// A pattern that was understood.
#[derive(Debug)]
pub(crate) struct PathGlob {
    alternatives: Vec<Vec<GlobSegment>>,
    /// Without a slash in it, it is about the name alone.
    is_name: bool,
}

/// What stands between slashes.
#[derive(Debug)]
enum GlobSegment {
    AnyFolders,
    Name(Vec<GlobToken>),
}

#[derive(Debug)]
enum GlobToken {
    One(char),
    AnyOne,
    Any,
    Of { ranges: Vec<(char, char)>, is_not: bool },
}

/// The longest pattern, and how many it may stand for with its braces.
const MAX_LENGTH: usize = 1024;
const MAX_ALTERNATIVES: usize = 64;

impl PathGlob {
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() || pattern.len() > MAX_LENGTH {
            return Err(format!("must have 1 to {MAX_LENGTH} bytes"));
        }
        let mut alternatives = Vec::new();
        let mut is_name = true;
        for pattern in expanded(pattern)? {
            let parts: Vec<&str> = pattern.split('/').filter(|part| *part != ".").collect();
            if parts.contains(&"..") || pattern.starts_with('/') {
                return Err("is about names beneath `path`; it cannot lead out of it".to_owned());
            }
            is_name &= parts.len() == 1;
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            alternatives.push(parts.map(GlobSegment::new).collect::<Result<_, _>>()?);
        }
        Ok(Self { alternatives, is_name })
    }

    /// Tells whether a path, relative to the folder that is searched, is one of those that are meant.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path = if self.is_name { path.rsplit('/').next().unwrap_or(path) } else { path };
        let names: Vec<&str> = path.split('/').collect();
        self.alternatives.iter().any(|parts| matches_parts(parts, &names))
    }
}

impl GlobSegment {
    fn new(part: &str) -> Result<Self, String> {
        if part == "**" {
            return Ok(Self::AnyFolders);
        }
        let mut tokens = Vec::new();
        let mut letters = part.chars();
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '*' => GlobToken::Any,
                '?' => GlobToken::AnyOne,
                '\\' => GlobToken::One(letters.next().ok_or("ends in a backslash")?),
                '[' => set(&mut letters)?,
                letter => GlobToken::One(letter),
            });
        }
        Ok(Self::Name(tokens))
    }
}

fn set(letters: &mut std::str::Chars<'_>) -> Result<GlobToken, String> {
    let mut ranges: Vec<(char, char)> = Vec::new();
    let is_not = letters.as_str().starts_with(['!', '^']);
    if is_not {
        letters.next();
    }
    loop {
        let first = letters.next().ok_or("has a `[` without a `]`")?;
        if first == ']' && !ranges.is_empty() {
            return Ok(GlobToken::Of { ranges, is_not });
        }
        let rest = letters.as_str();
        let last = rest.strip_prefix('-').and_then(|rest| rest.chars().next()).filter(|last| *last != ']');
        if last.is_some() {
            letters.nth(1);
        }
        ranges.push((first, last.unwrap_or(first)));
    }
}

/// Replaces braces by all that they stand for.
fn expanded(pattern: &str) -> Result<Vec<String>, String> {
    let mut open = vec![pattern.to_owned()];
    let mut done = Vec::new();
    while let Some(pattern) = open.pop() {
        let Some(close) = pattern.find('}') else {
            if pattern.contains('{') {
                return Err("has a `{` without a `}`".to_owned());
            }
            done.push(pattern);
            continue;
        };
        // The innermost.
        let start = pattern[..close].rfind('{').ok_or("has a `}` without a `{`")?;
        let (before, after) = (&pattern[..start], &pattern[close + 1..]);
        open.extend(pattern[start + 1..close].split(',').map(|middle| format!("{before}{middle}{after}")));
        if open.len() + done.len() > MAX_ALTERNATIVES {
            return Err(format!("stands for more than {MAX_ALTERNATIVES} patterns"));
        }
    }
    Ok(done)
}

/// In a table, so that no pattern takes longer than its length times that of the path.
fn matches_parts(parts: &[GlobSegment], names: &[&str]) -> bool {
    // Whether the parts so far can stand for the first so many names.
    let mut reached = vec![false; names.len() + 1];
    reached[0] = true;
    for part in parts {
        let mut next = vec![false; names.len() + 1];
        match part {
            GlobSegment::AnyFolders => {
                let first = reached.iter().position(|reached| *reached).unwrap_or(next.len());
                next[first..].fill(true);
            }
            GlobSegment::Name(tokens) => {
                for (i, name) in names.iter().enumerate() {
                    next[i + 1] = reached[i] && matches_name(tokens, name);
                }
            }
        }
        reached = next;
    }
    reached[names.len()]
}

fn matches_name(tokens: &[GlobToken], name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    let (mut i, mut j) = (0, 0);
    // Where the last `*` stands, and the first letter that it does not stand for.
    let mut star = None;
    loop {
        match tokens.get(j) {
            Some(GlobToken::Any) => {
                star = Some((j, i));
                j += 1;
                continue;
            }
            Some(token) if letters.get(i).is_some_and(|letter| token.is(*letter)) => {
                (i, j) = (i + 1, j + 1);
                continue;
            }
            None if i == letters.len() => return true,
            _ => {}
        }
        // It stands for one letter more.
        match star {
            Some((at, from)) if from < letters.len() => {
                star = Some((at, from + 1));
                (i, j) = (from + 1, at + 1);
            }
            _ => return false,
        }
    }
}

impl GlobToken {
    fn is(&self, letter: char) -> bool {
        match self {
            Self::One(one) => *one == letter,
            Self::AnyOne => true,
            Self::Any => false,
            Self::Of { ranges, is_not } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)) != *is_not
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_it_means_in_a_shell() {
        for (pattern, path, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/main.rs", true),
            ("*.rs", "main.rst", false),
            ("src/*.rs", "src/main.rs", true),
            ("./src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/a/main.rs", false),
            ("src/*.rs", "lib/src/main.rs", false),
            ("**/*.rs", "main.rs", true),
            ("**/*.rs", "a/b/main.rs", true),
            ("src/**", "src/a/b", true),
            ("src/**/b", "src/b", true),
            ("src/**/b", "src/a/c", false),
            ("**", "a/b", true),
            ("a?c", "abc", true),
            ("a?c", "aßc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[a-]", "-", true),
            ("*.{ts,tsx}", "a.tsx", true),
            ("{a,b{c,d}}.x", "bd.x", true),
            ("{a,b{c,d}}.x", "b.x", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*", ".hidden", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-", false),
            ("", "a", false),
            ("A", "a", false),
        ] {
            let matches = PathGlob::new(pattern).is_ok_and(|glob| glob.matches(path));
            assert_eq!(matches, expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        let many = "{a,b}".repeat(7);
        let long = "a".repeat(MAX_LENGTH + 1);
        for wrong in ["", "../*", "a/../b", "/etc/*", "{..,a}/b", "{/etc,a}", "[a", "{a", "a}", "\\", &many, &long] {
            assert!(PathGlob::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let glob = PathGlob::new(&"*a".repeat(400)).unwrap();
        assert!(!glob.matches(&"a".repeat(250)));
        assert!(!PathGlob::new(&"**/*a/".repeat(100)).unwrap().matches(&"a/".repeat(1000)));
    }
}
