//! The ways around the fence that were found, tried again by a build that nobody is asked about, over a real socket to a real
//! daemon. What is refused by the sandbox itself, call by call, is tried in `os`.

use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::MetadataExt, net::UnixListener},
    path::Path,
};

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder, SETTINGS, answer},
    process,
    seen::{line, seen, told},
    skipped, until,
};

/// A daemon whose environment leads to the person's own, with a holder of a grant that may build.
struct Siege {
    gate: Gate,
    grant: String,
    holder: Holder,
    /// What the agent was told last.
    heard: String,
}

impl Siege {
    /// `None` where there is no bubblewrap; then the test is skipped by its name.
    async fn begin(scopes: &[&str]) -> Option<Self> {
        if std::process::Command::new("bwrap").arg("--version").output().is_err() {
            skipped(std::thread::current().name().unwrap_or_default(), "install the package bubblewrap");
            return None;
        }
        let variables = [
            ("SSH_AUTH_SOCK", "/tmp/ssh-agent"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/tmp/bus"),
            ("DOCKER_HOST", "unix:///tmp/docker"),
            ("DISPLAY", ":0"),
            ("XDG_RUNTIME_DIR", "/tmp"),
        ];
        let gate = Gate::start_in(SETTINGS, &variables.map(|(name, value)| (name, value.to_owned()))).await;
        let granted = gate.approve(&gate.ask("builder", scopes).await, json!({})).await;
        let holder = gate.hold(&granted).await;
        Some(Self { gate, grant: granted.id, holder, heard: String::new() })
    }

    /// Writes what a build runs.
    fn plant(&self, script: &str) {
        fs::write(self.gate.path("attack.sh"), script).unwrap();
        fs::write(self.gate.path("Makefile"), "all:\n\t@sh attack.sh\n").unwrap();
    }

    /// Has it built, and returns what it printed. Nobody is asked.
    async fn build(&mut self, script: &str) -> String {
        self.plant(script);
        let built = self.holder.does("build_project", json!({"tool": "make"})).await;
        assert_eq!(built["status"], "ok", "{built}");
        assert_eq!(built["data"]["fence"]["enforced"], "sandbox", "{built}");
        self.heard = told(&built);
        built["data"]["stdout"].as_str().unwrap_or_default().to_owned()
    }

    /// Says what was seen of it: it is on record, and nobody was asked.
    async fn seen(&self, result: &str) {
        let person = self.gate.person_saw().await;
        assert_eq!(person, "not asked");
        seen(&self.heard, person, line(&self.gate.audited("build_project", result).await));
    }

    /// What lives in the granted folder.
    fn living(&self) -> Vec<u32> {
        process::working_in(Path::new(&self.gate.project()))
    }

    async fn is_quiet(&self) {
        until("nothing of the grant runs", async || self.living().is_empty()).await;
    }
}

/// Leaves what has left its session, its parent and its environment, and does not end by itself.
const SURVIVORS: &str = "env -i setsid sh -c 'while sleep 0.05; do echo still >>here; done' &
    (setsid sh -c 'sleep 3600 & sleep 3600' &) &
    nohup sleep 3600 >/dev/null 2>&1 &
    perl -e 'fork and exit; setpgrp; fork and exit; %ENV = (); sleep 3600' &
    (trap '' TERM HUP INT; sleep 3600) &
    until [ -s here ]; do :; done; echo begun >begun\n";

// H1
#[tokio::test]
async fn h1_no_socket_of_the_persons_is_reached_and_none_is_named() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let home = siege.gate.daemon.home().path().to_owned();
    let listeners =
        [home.join("agent.sock"), siege.gate.path("dev.sock").into()].map(|path| UnixListener::bind(path).unwrap());
    let connect = |path: &str| {
        format!(
            "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
                print(connect($s, pack_sockaddr_un(\"{path}\")) ? \"reached\\n\" : \"refused\\n\")'\n"
        )
    };
    let paths = [home.join("agent.sock"), home.join("prism.sock"), siege.gate.path("dev.sock").into()];
    let script: String = paths.iter().map(|path| connect(path.to_str().unwrap())).collect();
    let said = siege.build(&(script + "env | grep -E 'SSH_|DBUS|DOCKER|DISPLAY|XDG_RUNTIME|PRISM_HOME' ; true")).await;
    assert_eq!(said.trim_end(), "refused\nrefused\nrefused");
    for listener in listeners {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
    siege.seen("ok").await;
}

// H2
#[tokio::test]
async fn h2_no_cache_that_the_persons_tools_run_from_is_written() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let home = siege.gate.daemon.home().path().to_owned();
    let cached = [
        ".npm/_npx/1/index.js",
        ".npm/_cacache/index",
        ".cargo/registry/src/lib.rs",
        ".cache/uv/wheel",
        ".cache/pre-commit/hook",
    ];
    for name in cached {
        let file = home.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "as it was").unwrap();
    }
    let script: String = cached
        .iter()
        .map(|name| format!("mkdir -p ~/{name}.d; echo evil >~/{name}; echo evil >~/{name}.new\n"))
        .collect();
    siege.build(&format!("{script}true")).await;
    for name in cached {
        assert_eq!(fs::read_to_string(home.join(name)).unwrap(), "as it was", "{name}");
        assert!(!home.join(format!("{name}.new")).exists() && !home.join(format!("{name}.d")).exists(), "{name}");
    }
    siege.seen("ok").await;
}

// H4
#[tokio::test]
async fn h4_the_daemon_is_neither_limited_nor_slowed_nor_ended() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let pid = siege.gate.daemon.pid();
    let state = || {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        (limits, stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned())
    };
    let before = state();
    let script = format!(
        "prlimit --pid {pid} --nofile=10:10; prlimit --pid {pid} --cpu=0:0; renice 19 -p {pid}; taskset -p 1 {pid}
        kill -STOP {pid}; kill -9 {pid}; kill -9 -1 & cat /proc/{pid}/environ; true"
    );
    siege.build(&format!("({script}); true")).await;
    assert_eq!(state(), before);
    siege.seen("ok").await;
    assert_eq!(siege.gate.as_person("/mcp/revoke", json!({"session_id": siege.grant})).await.0, 200);
}

// H5
#[tokio::test]
async fn h5_nothing_outlives_a_build() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    siege.build(SURVIVORS).await;
    siege.is_quiet().await;
    let size = || fs::metadata(siege.gate.path("here")).unwrap().len();
    let before = size();
    assert!(siege.living().is_empty());
    assert_eq!(size(), before);
    siege.seen("ok").await;
}

#[tokio::test]
async fn h5_nothing_outlives_a_revoked_or_expired_grant() {
    for way in ["revoked", "expired"] {
        let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
        if way == "expired" {
            let asked = siege.gate.ask("hasty", &["build:project"]).await;
            let granted = siege.gate.approve(&asked, json!({"ttl_seconds": 3})).await;
            siege.holder = siege.gate.hold(&granted).await;
        }
        siege.plant(&format!("{SURVIVORS} sleep 3600"));
        siege.holder.begins("build_project", json!({"tool": "make"})).await;
        until("they run", async || fs::exists(siege.gate.path("begun")).unwrap()).await;
        assert!(siege.living().len() > 5, "{:?}", siege.living());
        if way == "revoked" {
            let (status, told) = siege.gate.as_person("/mcp/revoke", json!({"session_id": siege.grant})).await;
            assert_eq!(status, 200, "{told}");
        }
        siege.is_quiet().await;
        let code = siege.holder.closed().await;
        assert_eq!(code, if way == "revoked" { 4001 } else { 4000 });
        siege.heard = format!("closed: {code}");
        siege.seen(&format!("error: {way}")).await;
    }
}

#[tokio::test]
async fn h5_nothing_outlives_a_daemon_that_is_killed() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    siege.plant(&format!("{SURVIVORS} sleep 3600"));
    siege.holder.begins("build_project", json!({"tool": "make"})).await;
    until("they run", async || fs::exists(siege.gate.path("begun")).unwrap()).await;
    assert!(siege.living().len() > 5);
    siege.gate.daemon.kill().await;
    siege.is_quiet().await;
    siege.heard = format!("closed: {}", siege.holder.closed().await);
    siege.gate = siege.gate.started_again(SETTINGS).await;
    siege.seen("allowed").await;
}

// H7, M4, M5
#[tokio::test]
async fn h7_no_terminal_no_memory_and_no_limits_are_shared() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let segment = format!("/dev/shm/prism-attack-{}", std::process::id());
    fs::write(&segment, "as it was").unwrap();
    let said = siege
        .build(&format!(
            "ls /dev/pts; cat {segment}; echo evil 2>/dev/null >{segment}; bash -c 'ulimit -u -c -n' | grep -o '[0-9]*$'"
        ))
        .await;
    let kept = fs::read_to_string(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    assert_eq!(kept, "as it was");
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["ptmx", "4096", "0", "1024"]);
    siege.seen("ok").await;
}

// H8
#[tokio::test]
async fn h8_no_mode_of_the_persons_files_is_changed() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let home = siege.gate.daemon.home().path().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode();
    let token = home.join("management-token");
    let before = (mode(&home), mode(&token));
    let said = siege
        .build(&format!(
            "chmod 777 {0}; chmod 644 {0}/management-token; touch {0}/x; cat {0}/management-token; true",
            home.display()
        ))
        .await;
    assert_eq!((mode(&home), mode(&token), said.as_str()), (before.0, before.1, ""));
    assert!(!home.join("x").exists());
    siege.seen("ok").await;
}

// H1, S-17
#[tokio::test]
async fn the_network_is_what_was_granted_and_never_the_daemon() {
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port();
    let mut heard = Vec::new();
    for (scopes, expected) in
        [(&["build:project"][..], "refused refused"), (&["build:project", "network:all"], "reached refused")]
    {
        let Some(mut siege) = Siege::begin(scopes).await else { return };
        let own = siege.gate.daemon.port();
        let dial = "perl -MIO::Socket::INET -e 'for (@ARGV) { print(IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $_) ? \"reached\\n\" : \"refused\\n\") }'";
        let said = siege.build(&format!("{dial} {port} {own}")).await;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said, expected);
        heard.push(format!("{}: {said}", scopes.last().unwrap()));
        siege.heard = heard.join(", ");
        siege.seen("ok").await;
    }
}

// C1
#[tokio::test]
async fn c1_a_file_that_prism_reads_its_config_or_a_secret_from_is_for_nobody_in_a_build() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    let file = siege.gate.path("docs-token");
    fs::write(&file, "hunter2").unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = format!(
        "[destination.docs]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = {{ Authorization = \"Bearer file:{file}\" }}\n"
    );
    let settings = format!("{server}{SETTINGS}");
    let home = siege.gate.daemon.home().clone();
    siege.gate.daemon.kill().await;
    siege.gate = siege.gate.started_again(&settings).await;
    assert_eq!(siege.gate.daemon.home().path(), home.path());
    let granted = siege.gate.granted(&["build:project"]).await;
    siege.holder = siege.gate.hold(&granted).await;
    let said = siege.build("cat docs-token; echo evil >docs-token; mv docs-token x; rm -f docs-token; true").await;
    assert_eq!((said.trim(), fs::read_to_string(&file).unwrap().as_str()), ("", "hunter2"));
    siege.seen("ok").await;
}

// C1, R-05
#[tokio::test]
async fn what_the_persons_tools_run_by_themselves_is_for_reading() {
    let Some(mut siege) = Siege::begin(&["build:project"]).await else { return };
    for name in [".git/hooks", ".vscode", ".claude", ".husky"] {
        fs::create_dir_all(siege.gate.path(name)).unwrap();
        fs::write(siege.gate.path(&format!("{name}/file")), "as it was").unwrap();
    }
    siege
        .build(
            "for d in .git .git/hooks .vscode .claude .husky; do
                echo evil >$d/file; echo evil >$d/new; mv $d gone; rm -rf $d; done; true",
        )
        .await;
    for name in [".git/hooks", ".vscode", ".claude", ".husky"] {
        assert_eq!(fs::read_to_string(siege.gate.path(&format!("{name}/file"))).unwrap(), "as it was", "{name}");
        assert!(!Path::new(&siege.gate.path(&format!("{name}/new"))).exists(), "{name}");
    }
    siege.seen("ok").await;
}

// S-24
#[tokio::test]
async fn without_a_sandbox_builds_are_asked_about_each_time_and_language_servers_once() {
    let tools = tempfile::tempdir().unwrap();
    for name in ["sh", "make", "touch", "python3"] {
        let found = ["/usr/bin", "/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(name));
        let real = found.iter().find(|path| path.exists()).expect("the tests need sh, make and python3");
        std::os::unix::fs::symlink(real, tools.path().join(name)).unwrap();
    }
    let server =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../editor/src/lsp/tests/server.py").canonicalize().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let settings = format!(
        "{SETTINGS}[editor]\nreadable = [{:?}]\nwritable = [{:?}]\n[editor.servers]\nmarkdown = [\"python3\", {server:?}, \"push\", {:?}]\n",
        server.parent().unwrap(),
        notes.path(),
        notes.path(),
    );
    let gate = Gate::start_in(&settings, &[("PATH", tools.path().to_str().unwrap().to_owned())]).await;
    fs::write(gate.path("Makefile"), "all:\n\ttouch built\n").unwrap();
    fs::write(gate.path("a.md"), "bad\n").unwrap();
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    for allow in [false, true] {
        let id = holder.begins("build_project", json!({"tool": "make"})).await;
        let shown = gate.confirmation().await;
        let open = shown["shown"]["because"].to_string();
        assert!(open.contains("bubblewrap is not installed") && open.contains("reach the network"), "{shown}");
        assert!(!Path::new(&gate.path("built")).exists());
        answer(&gate, &shown, &shown["digest"], allow).await;
        let told = holder.result(&id).await;
        assert_eq!(
            (&told["status"], Path::new(&gate.path("built")).exists()),
            (&json!(if allow { "ok" } else { "error" }), allow),
            "{told}"
        );
    }
    let id = holder.begins("get_errors", json!({"path": "a.md"})).await;
    let shown = gate.confirmation().await;
    assert_eq!(shown["shown"]["action"], "start_language_servers", "{shown}");
    answer(&gate, &shown, &shown["digest"], true).await;
    assert_eq!(holder.result(&id).await["status"], "ok");
    let told: Value = holder.does("get_errors", json!({"path": "a.md"})).await;
    assert_eq!(told["status"], "ok", "it is asked once: {told}");
}
