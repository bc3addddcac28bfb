//! The first of what was found, by path: as much as an answer holds. Whoever walks finds things in no order, and the answer is
//! the same all the same.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// At most so many things, each in a file or being one.
#[derive(Debug)]
pub(crate) struct BestPaths<T> {
    found: BTreeMap<TreeOrder, Vec<T>>,
    limit: usize,
    total: usize,
    /// Whether anything was found that the answer does not hold.
    is_over: bool,
}

/// Paths in the order of a tree: what is in a folder stands right behind it.
#[derive(Debug, PartialEq, Eq)]
struct TreeOrder(PathBuf);

impl<T> BestPaths<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { found: BTreeMap::new(), limit, total: 0, is_over: false }
    }

    /// Tells whether nothing at a path, or beneath it, is wanted any more.
    pub(crate) fn is_beyond(&self, path: &Path) -> bool {
        self.is_over && self.found.last_key_value().is_none_or(|(last, _)| in_order(path, &last.0).is_gt())
    }

    /// Takes in what was found at a path, and whether there is more there than that.
    pub(crate) fn insert(&mut self, path: &Path, things: Vec<T>, is_cut: bool) {
        if self.is_beyond(path) {
            return;
        }
        self.is_over |= is_cut;
        self.total += things.len();
        self.found.insert(TreeOrder(path.to_owned()), things);
        if self.total > self.limit {
            self.is_over = true;
        }
        while let Some(last) = self.found.last_entry() {
            if self.total - last.get().len() < self.limit {
                break;
            }
            self.total -= last.remove().len();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What was found, in order, and no more than asked for.
    pub(crate) fn into_found(self) -> Vec<(PathBuf, Vec<T>)> {
        let mut left = self.limit;
        let cut = |(path, mut things): (TreeOrder, Vec<T>)| {
            things.truncate(left);
            left -= things.len();
            (path.0, things)
        };
        self.found.into_iter().map(cut).filter(|(_, things)| !things.is_empty()).collect()
    }
}

fn in_order(one: &Path, other: &Path) -> Ordering {
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    one.as_os_str().as_bytes().iter().map(rank).cmp(other.as_os_str().as_bytes().iter().map(rank))
}

impl Ord for TreeOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        in_order(&self.0, &other.0)
    }
}

impl PartialOrd for TreeOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_whatever_order_they_come_in() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let paths = ["a", "a/b", "a-b", "c"];
            let mut best = BestPaths::new(3);
            for i in order {
                best.insert(Path::new(paths[i]), vec![i], false);
            }
            assert!(best.is_over() && best.is_beyond(Path::new("c/d")) && !best.is_beyond(Path::new("a/b")));
            let found: Vec<_> = best.into_found().into_iter().map(|(_, things)| things[0]).collect();
            assert_eq!(found, [0, 1, 2]);
        }
    }

    #[test]
    fn a_file_with_more_than_fits_is_cut() {
        let mut best = BestPaths::new(3);
        best.insert(Path::new("b"), vec![1, 2, 3], false);
        assert!(!best.is_over());
        best.insert(Path::new("a"), vec![0], false);
        assert!(best.is_over());
        best.insert(Path::new("A"), vec![9], true);
        best.insert(Path::new("B"), vec![8], false);
        assert_eq!(best.into_found(), [("A".into(), vec![9]), ("B".into(), vec![8]), ("a".into(), vec![0])]);
        let mut best = BestPaths::new(2);
        best.insert(Path::new("a"), vec![1, 2], true);
        assert!(best.is_over() && best.is_beyond(Path::new("b")));
        assert_eq!(best.into_found(), [("a".into(), vec![1, 2])]);
        let mut best = BestPaths::new(3);
        best.insert(Path::new("b"), vec![1, 2, 3], false);
        best.insert(Path::new("a"), vec![0], false);
        assert_eq!(best.into_found(), [("a".into(), vec![0]), ("b".into(), vec![1, 2])]);
    }
}
