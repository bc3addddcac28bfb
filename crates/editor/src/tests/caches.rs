//! Caches of the person's, as those have them who work in a sandbox, with a network and without.

use prism_os::sandbox::NetworkAccess;

use super::*;

/// A home folder with caches, and who works with it.
struct Cached {
    home: tempfile::TempDir,
    place: Place,
}

const INDEX: &str = ".npm/_cacache/index-v5/ab/cd/entry";
const CONTENT: &str = ".npm/_cacache/content-v2/sha512/ab/content";
const MODULE: &str = "go/pkg/mod/cache/download/nest/@v/list";

impl Cached {
    /// `None` where there is no sandbox: then the test is skipped by its name.
    fn new() -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        for name in [INDEX, CONTENT, MODULE] {
            fs::create_dir_all(home.path().join(name).parent().unwrap()).unwrap();
            fs::write(home.path().join(name), "the person's\n").unwrap();
        }
        let settings =
            EditorSettings { home: Some(home.path().to_owned()), inner: inner(), ..EditorSettings::default() };
        let place = Place::with(settings, "prism");
        match place.runtime.lacks_sandbox() {
            None => Some(Self { home, place }),
            Some(why) => {
                skipped(&why);
                None
            }
        }
    }

    /// Runs a line of shell in the person's home folder, and returns what it prints.
    async fn run(&self, id: u128, network: NetworkAccess, script: &str) -> String {
        let line = format!("cd {} && {{ {script}; }} 2>&1", self.home.path().display());
        let order = self.place.order("exec_command", &json!({ "command": line }));
        let order = VerbOrder { holder: GrantHolder { id, network, ..GrantHolder::default() }, ..order };
        let answer = self.place.runtime.prepare(order).await.unwrap().run(ProgressSink::unseen()).await.unwrap();
        assert_eq!(answer["fence"]["network"], network.name());
        answer["stdout"].as_str().unwrap().to_owned()
    }

    fn assert_untouched(&self) {
        for name in [INDEX, CONTENT, MODULE] {
            assert_eq!(fs::read_to_string(self.home.path().join(name)).unwrap(), "the person's\n", "{name}");
        }
    }
}

// What npm looks up it writes anew, and finds nothing where it cannot: `npx` of a package that is cached. (S-23)
#[tokio::test]
async fn an_index_that_is_written_on_reading_is_a_copy_of_the_holders_own() {
    let Some(cached) = Cached::new() else { return };
    let said = cached.run(1, NetworkAccess::Own, &format!("echo one >>{INDEX} && cat {INDEX} {CONTENT}")).await;
    assert_eq!(said, "the person's\none\nthe person's\n");
    let said = cached.run(1, NetworkAccess::Own, &format!("cat {INDEX}; echo one >>{CONTENT} || echo no")).await;
    assert!(said.starts_with("the person's\none\n") && said.ends_with("no\n"), "{said}");
    assert_eq!(
        cached.run(2, NetworkAccess::Own, &format!("cat {INDEX}")).await,
        "the person's\n",
        "another holder's is its own"
    );
    cached.assert_untouched();
}

#[tokio::test]
async fn who_has_a_network_adds_to_copies_of_what_was_fetched() {
    let Some(cached) = Cached::new() else { return };
    let add = format!("echo one >>{CONTENT} && cat {CONTENT} && mkdir -p .npm/_cacache/tmp");
    assert_eq!(cached.run(1, NetworkAccess::All, &add).await, "the person's\none\n");
    // cargo and npm try for a minute what cannot be had, and then the command's time is over before they say why.
    let tries = "echo \"[$CARGO_NET_RETRY$npm_config_fetch_retries$PIP_RETRIES]\"";
    assert_eq!(cached.run(1, NetworkAccess::All, tries).await, "[]\n");
    assert_eq!(cached.run(2, NetworkAccess::Own, tries).await, "[001]\n");
    let module = "cd $GOMODCACHE/cache/download/nest/@v && echo one >>list && cat list";
    assert_eq!(cached.run(1, NetworkAccess::All, module).await, "the person's\none\n");
    let without = format!("cat {MODULE} && echo \"[$GOMODCACHE]\"");
    assert_eq!(cached.run(2, NetworkAccess::Own, &without).await, "the person's\n[]\n");
    cached.assert_untouched();
}
