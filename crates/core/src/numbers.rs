//! Maps whose keys are numbers of our own: they count upward, or were drawn at random, so they are their own best hash. Never for
//! numbers that somebody else chooses.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<IdentityHasher>>;
pub type NumberSet<K> = HashSet<K, BuildHasherDefault<IdentityHasher>>;

/// Hashes a number to itself.
#[derive(Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        // The map's buckets come from the low bits, its tags from the high ones.
        self.0 ^ (self.0 << 57)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = (number >> 64) as u64 ^ number as u64;
    }
}
