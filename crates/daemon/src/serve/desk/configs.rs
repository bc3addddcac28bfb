//! Configs that wait for the person to see them, in a picture for an editor (C1). They are only shown, as in the console: who
//! sits in an extension host may be led, and `prism trust` shows the same in a terminal, and asks.

use prism_editor::protocol::UnseenConfig;
use tokio::sync::watch;

use crate::console::untrusted::difference;
use prism_config::trust::UntrustedFile;

/// What waits, as it is shown.
pub(super) struct UnseenConfigs {
    untrusted: watch::Receiver<Vec<UntrustedFile>>,
    shown: Vec<UnseenConfig>,
}

/// The most files that an editor is shown. A daemon reads one config, and those that it was started with; the others are in
/// the console.
const MOST: usize = 8;
/// The most that is shown of one difference, in bytes. What is beyond is cut, which is said: a config of a person's is shorter.
const MAX_SHOWN: usize = 64 << 10;
/// What is said where it is cut.
const CUT: &str = "… cut here; `prism trust` shows all of it\n";

impl UnseenConfigs {
    pub(super) fn of(untrusted: &watch::Receiver<Vec<UntrustedFile>>) -> Self {
        let mut untrusted = untrusted.clone();
        untrusted.mark_changed();
        Self { untrusted, shown: Vec::new() }
    }

    /// What waits now. Differences are made once for each change, and not for each picture: they may take their time.
    pub(super) async fn now(&mut self) -> Vec<UnseenConfig> {
        if self.untrusted.has_changed().unwrap_or(false) {
            let waiting = self.untrusted.borrow_and_update().clone();
            let making = tokio::task::spawn_blocking(move || waiting.iter().take(MOST).map(shown).collect());
            self.shown = making.await.unwrap_or_default();
        }
        self.shown.clone()
    }

    /// Waits until something else waits; `None` if it never will. `now` then has it.
    pub(super) async fn changed(&mut self) -> Option<()> {
        self.untrusted.changed().await.ok()?;
        self.untrusted.mark_changed();
        Some(())
    }
}

fn shown(one: &UntrustedFile) -> UnseenConfig {
    let mut unified = difference(one);
    let is_cut = unified.len() > MAX_SHOWN;
    if is_cut {
        // Whole lines only.
        let end = unified.as_bytes()[..MAX_SHOWN].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        unified.truncate(end);
        unified.push_str(CUT);
    }
    UnseenConfig { path: one.path.display().to_string(), why: one.why(), fix: one.fix(), unified, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen(name: &str, text: String) -> UntrustedFile {
        UntrustedFile { path: format!("/project/{name}").into(), text, seen: Some("port = 1\n".to_owned()) }
    }

    // C1
    #[tokio::test]
    async fn what_waits_is_shown_until_it_does_not_and_its_secrets_never() {
        let (sender, untrusted) = watch::channel(Vec::new());
        let mut configs = UnseenConfigs::of(&untrusted);
        assert_eq!(configs.now().await, []);
        let text = "port = 2\nenv = { API_KEY = \"hunter2\" }\n".to_owned();
        sender.send_replace(vec![unseen("prism.toml", text)]);
        configs.changed().await.unwrap();
        for shown in [configs.now().await, configs.now().await, UnseenConfigs::of(&untrusted).now().await] {
            assert_eq!((shown.len(), shown[0].is_cut), (1, false));
            assert_eq!(shown[0].fix, "prism trust /project/prism.toml");
            assert!(shown[0].unified.contains("\n-port = 1\n+port = 2\n"), "{}", shown[0].unified);
            assert!(!shown[0].unified.contains("hunter2"), "{}", shown[0].unified);
        }
        sender.send_replace(Vec::new());
        configs.changed().await.unwrap();
        assert_eq!(configs.now().await, []);
        drop(sender);
        assert_eq!(configs.changed().await, None);
    }

    // C1, A-09
    #[tokio::test]
    async fn however_much_waits_a_picture_has_little_of_it_and_says_so() {
        let long = |n: usize| unseen(&n.to_string(), format!("# é{n}\n").repeat(100_000));
        let all = [unseen("line", "x".repeat(1 << 20))].into_iter().chain((0..20).map(long)).collect();
        let (_sender, untrusted) = watch::channel(all);
        let shown = UnseenConfigs::of(&untrusted).now().await;
        assert_eq!(shown.len(), MOST);
        for one in shown {
            assert!(one.is_cut && one.unified.ends_with(CUT), "{}", one.path);
            assert!(one.unified.len() <= MAX_SHOWN + CUT.len(), "{}", one.unified.len());
            assert!(one.unified.contains("\n@@ -1 +1"), "{}", one.unified);
        }
    }
}
