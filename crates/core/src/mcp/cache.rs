//! Lists and resources that a server lets us keep, for as long as it says (mcp-eras 2.11, 5.11).

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::hello::ClientClass;
use crate::wire::{Members, Method};

/// Answers that are kept at a time, and their bytes. Beyond it the one that is good for the shortest time goes.
const MAX_ENTRIES: usize = 256;
const MAX_BYTES: usize = 8 << 20;
/// The longest that anything is kept, whatever a server says.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// What a request asks for: two with the same key get the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub method: Method,
    /// The parameters without `_meta`, as they were written.
    params: Box<str>,
    /// What the client can answer, where the server hears that with the request: some offer more to who can do more.
    class: ClientClass,
}

/// Whose answer it is. Today everybody who has the token is one and the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Principal(pub u64);

#[derive(Debug, Default)]
pub struct ResponseCache {
    /// A private answer has its owner in the key; a public one has none.
    entries: HashMap<(CacheKey, Option<Principal>), CachedResult>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedResult {
    result: Box<str>,
    until: Instant,
}

/// How long an answer may be kept, and by whom it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    pub ttl: Duration,
    pub public: bool,
}

impl CacheKey {
    /// The key of a request; `None` if its answer is never kept.
    pub fn of(method: Method, params: Option<&str>) -> Option<Self> {
        if !method.is_cacheable() || method == Method::Discover {
            return None;
        }
        let mut members = match params {
            Some(text) => Members::read(text)?,
            None => Members::default(),
        };
        // An answer to a question is part of what is asked, and its answer nobody else's.
        if members.get("inputResponses").is_some() || members.get("requestState").is_some() {
            return None;
        }
        members.remove("_meta");
        Some(Self { method, params: members.to_string().into(), class: ClientClass::NONE })
    }

    /// Whether a change makes the answer to it untrue.
    pub fn changes_with(&self, change: Method) -> bool {
        match change {
            Method::ToolsChanged => self.method == Method::ToolsList,
            Method::PromptsChanged => self.method == Method::PromptsList,
            Method::ResourcesChanged => {
                matches!(self.method, Method::ResourcesList | Method::ResourcesTemplatesList | Method::ResourcesRead)
            }
            // A sub-resource may be named, and the text of a URI may be written in more than one way: all reads go.
            Method::ResourceUpdated => self.method == Method::ResourcesRead,
            _ => false,
        }
    }

    /// The same, asked by a client that can do this much.
    #[must_use]
    pub fn by(self, class: ClientClass) -> Self {
        Self { class, ..self }
    }
}

impl CacheHint {
    /// What a modern server says of its result.
    pub fn read(result: &str) -> Option<Self> {
        let members = Members::read(result)?;
        if members.string("resultType").is_some_and(|kind| kind != "complete") {
            return None;
        }
        let ttl = members.get("ttlMs")?.parse().ok().map(Duration::from_millis)?;
        Some(Self {
            ttl: ttl.min(LONGEST),
            public: members.string("cacheScope").is_some_and(|scope| scope == "public"),
        })
    }
}

impl ResponseCache {
    /// A result that is still good, and how long it will be.
    pub fn get(&self, key: &CacheKey, principal: Principal, now: Instant) -> Option<(&str, Duration)> {
        let found = [None, Some(principal)].into_iter().find_map(|owner| self.entries.get(&(key.clone(), owner)));
        let CachedResult { result, until } = found.filter(|entry| entry.until > now)?;
        Some((result, until.saturating_duration_since(now)))
    }

    pub fn put(&mut self, key: CacheKey, principal: Principal, result: &str, hint: CacheHint, now: Instant) {
        if hint.ttl.is_zero() || result.len() > MAX_BYTES / 4 {
            return;
        }
        let owner = (!hint.public).then_some(principal);
        self.bytes += result.len();
        let old = self.entries.insert((key, owner), CachedResult { result: result.into(), until: now + hint.ttl });
        self.bytes -= old.map_or(0, |old| old.result.len());
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some(first) = self.entries.iter().min_by_key(|(_, e)| e.until).map(|(key, _)| key.clone()) else {
                break;
            };
            self.bytes -= self.entries.remove(&first).map_or(0, |old| old.result.len());
        }
    }

    /// Forgets what a change makes untrue.
    pub fn invalidate(&mut self, change: Method) {
        self.entries.retain(|(key, _), entry| {
            let keep = !key.changes_with(change);
            self.bytes -= if keep { 0 } else { entry.result.len() };
            keep
        });
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Principal = Principal(1);
    const B: Principal = Principal(2);

    #[expect(clippy::disallowed_methods, reason = "a test's time starts somewhere, and then stands still")]
    fn start() -> Instant {
        Instant::now()
    }

    fn list() -> CacheKey {
        CacheKey::of(Method::ToolsList, Some(r#"{"_meta":{"x":1}}"#)).unwrap()
    }

    fn hint(ms: u64, public: bool) -> CacheHint {
        CacheHint { ttl: Duration::from_millis(ms), public }
    }

    // checks 119
    #[test]
    fn a_private_answer_stays_with_its_owner_and_a_public_one_is_for_all() {
        let (mut cache, now) = (ResponseCache::default(), start());
        cache.put(list(), A, "{}", hint(1000, false), now);
        assert!(cache.get(&list(), A, now).is_some());
        assert!(cache.get(&list(), B, now).is_none());
        cache.put(list(), A, r#"{"tools":[]}"#, hint(1000, true), now);
        assert_eq!(cache.get(&list(), B, now).unwrap().0, r#"{"tools":[]}"#);
    }

    // checks 119
    #[test]
    fn what_is_left_of_its_time_shrinks_and_then_it_is_gone() {
        let (mut cache, now) = (ResponseCache::default(), start());
        cache.put(list(), A, "{}", hint(1000, false), now);
        let later = now + Duration::from_millis(400);
        assert_eq!(cache.get(&list(), A, later).unwrap().1, Duration::from_millis(600));
        assert!(cache.get(&list(), A, now + Duration::from_millis(1000)).is_none());
        cache.put(list(), A, "{}", hint(0, true), now);
        assert!(cache.get(&list(), B, now).is_none(), "no time is no time");
    }

    // checks 119
    #[test]
    fn a_change_makes_what_it_is_about_untrue_and_nothing_else() {
        let (mut cache, now) = (ResponseCache::default(), start());
        let read = CacheKey::of(Method::ResourcesRead, Some(r#"{"uri":"a"}"#)).unwrap();
        cache.put(list(), A, "{}", hint(1000, false), now);
        cache.put(read.clone(), A, "{}", hint(1000, false), now);
        cache.invalidate(Method::ResourceUpdated);
        assert!(cache.get(&read, A, now).is_none() && cache.get(&list(), A, now).is_some());
        cache.invalidate(Method::PromptsChanged);
        assert!(cache.get(&list(), A, now).is_some());
        cache.invalidate(Method::ToolsChanged);
        assert!(cache.get(&list(), A, now).is_none());
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn a_key_is_what_changes_the_answer() {
        let of = |params: &str| CacheKey::of(Method::ToolsList, Some(params));
        assert_eq!(of(r#"{"_meta":{"progressToken":1}}"#), CacheKey::of(Method::ToolsList, None));
        assert_ne!(of(r#"{"cursor":"1"}"#), of(r#"{"cursor":"2"}"#));
        assert_ne!(of(r#"{"cursor":""}"#), of("{}"), "an empty cursor is a real one");
        assert_eq!(of(r#"{"requestState":"x"}"#), None);
        assert_eq!(CacheKey::of(Method::ToolsCall, Some("{}")), None);
    }

    #[test]
    fn a_server_says_how_long_and_for_whom() {
        assert_eq!(CacheHint::read(r#"{"ttlMs":5,"cacheScope":"public"}"#), Some(hint(5, true)));
        assert_eq!(CacheHint::read(r#"{"ttlMs":5}"#), Some(hint(5, false)));
        assert_eq!(CacheHint::read(r#"{"resultType":"input_required","ttlMs":5}"#), None);
        for none in [r#"{"tools":[]}"#, r#"{"ttlMs":-1}"#, r#"{"ttlMs":"5"}"#, "[]"] {
            assert_eq!(CacheHint::read(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut cache, now) = (ResponseCache::default(), start());
        let large = "x".repeat(MAX_BYTES / 8);
        for n in 0..MAX_ENTRIES as u64 {
            let key = CacheKey::of(Method::ResourcesRead, Some(&format!(r#"{{"uri":"{n}"}}"#))).unwrap();
            cache.put(key, A, &large, hint(1000 + n, false), now);
        }
        assert!(cache.bytes <= MAX_BYTES && cache.entries.len() == 8);
        let newest = CacheKey::of(Method::ResourcesRead, Some(r#"{"uri":"255"}"#)).unwrap();
        assert!(cache.get(&newest, A, now).is_some());
    }
}
