//! The console's style, script and icon. Each has a hash of its text in its name, so that a browser may keep it for ever.

/// A file that pages refer to.
#[derive(Debug)]
pub struct Asset {
    stem: &'static str,
    extension: &'static str,
    pub media_type: &'static str,
    pub text: &'static str,
}

pub const STYLE: Asset = Asset::new("console", "css", "text/css; charset=utf-8", include_str!("assets/console.css"));
pub const SCRIPT: Asset =
    Asset::new("console", "js", "text/javascript; charset=utf-8", include_str!("assets/console.js"));
pub const ICON: Asset = Asset::new("prism", "svg", "image/svg+xml", include_str!("assets/prism.svg"));

impl Asset {
    const fn new(stem: &'static str, extension: &'static str, media_type: &'static str, text: &'static str) -> Self {
        Self { stem, extension, media_type, text }
    }

    /// The one with that name, if it is of this build.
    pub fn named(name: &str) -> Option<&'static Self> {
        [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.name() == name)
    }

    pub fn name(&self) -> String {
        format!("{}-{:016x}.{}", self.stem, fingerprint(self.text.as_bytes()), self.extension)
    }

    /// Where it is served.
    pub fn path(&self) -> String {
        format!("/console/assets/{}", self.name())
    }
}

/// FNV-1a: it has to tell one build's file from another's, and guards nothing.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_found_by_the_name_of_this_build_only() {
        assert!(Asset::named(&SCRIPT.name()).is_some_and(|found| found.text == SCRIPT.text));
        assert!(Asset::named("console-0000000000000000.js").is_none());
        assert!(Asset::named("console.js").is_none() && Asset::named("../door.rs").is_none());
    }

    #[test]
    fn another_text_has_another_name() {
        let changed = Asset::new("console", "js", SCRIPT.media_type, "'use strict';");
        assert_ne!(changed.name(), SCRIPT.name());
    }
}
