//! A server that runs in a sandbox (`sandbox` of a destination): it serves as any other, and what it tries otherwise leads nowhere.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, Daemon, Home, Launch, destination, process, skipped, until};

/// A person's home with Prism's in another place, and a daemon.
struct House {
    person: TempDir,
    home: Home,
    config: String,
    daemon: Daemon,
}

/// A server whose one tool runs a script, and which has its last word on disk. Scripts and what they print go as
/// hexadecimal digits, so that Perl needs no module for them.
const SHELL: &str = r#"
    $| = 1;
    while (my $line = <STDIN>) {
        my ($id) = $line =~ /"id":\s*(\d+|"[^"]*")/ or next;
        my $result = '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}';
        if ($line =~ /"method":\s*"initialize"/) {
            $result = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}';
        } elsif ($line =~ /"script":\s*"([0-9a-f]*)"/) {
            open(my $shell, "-|", "sh", "-c", "exec 2>/dev/null </dev/null\n" . pack("H*", $1)) or die $!;
            local $/;
            $result = '{"content":[{"type":"text","text":"' . unpack("H*", scalar <$shell>) . '"}]}';
        }
        print qq({"jsonrpc":"2.0","id":$id,"result":$result}\n);
    }
    open(my $end, ">", "$ENV{HOME}/ended");
    print $end "by itself";
"#;

/// That server as a destination with these settings.
fn shell(settings: &str) -> String {
    format!(
        "login_path = false\n[destination.shell]\ncommand = {:?}\nera = \"legacy\"\n{settings}\n",
        ["perl", "-e", SHELL]
    )
}

impl House {
    /// `None` where there is no bubblewrap; then the test is skipped by its name. `PERSON` in the config is the person's home.
    async fn open(config: &str) -> Option<Self> {
        if std::process::Command::new("bwrap").arg("--version").output().is_err() {
            skipped(std::thread::current().name().unwrap_or_default(), "install the package bubblewrap");
            return None;
        }
        let (person, home) = (tempfile::tempdir().unwrap(), Home::new());
        for (name, text) in [
            (".ssh/id_ed25519", "key"),
            ("notes/file", "note"),
            ("notes/.git/config", "settings"),
            ("project/file", "source"),
            ("models/file", "model"),
        ] {
            let file = person.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let config = config.replace("PERSON", person.path().canonicalize().unwrap().to_str().unwrap());
        let daemon = launch(&config, &person, &home).start().await;
        Some(Self { person, home, config, daemon })
    }

    async fn open_again(self) -> Self {
        let Self { person, home, config, daemon } = self;
        daemon.stop().await;
        let daemon = launch(&config, &person, &home).start().await;
        Self { person, home, config, daemon }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.person.path().canonicalize().unwrap().join(name)
    }

    async fn client(&self) -> Client {
        self.daemon.client_at("/shell/mcp").initialize().await
    }

    /// What a script prints that the server runs.
    async fn run(&self, script: &str) -> String {
        run(&self.client().await, script).await
    }

    async fn status(&self, name: &str) -> Value {
        let status = self.daemon.client_at("/status").request(Method::GET).send().await.json().await;
        let all = status["destinations"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap().clone()
    }

    /// What is on disk of the server's own.
    fn own(&self, name: &str) -> PathBuf {
        self.home.path().join("children/shell").join(name)
    }
}

fn launch(config: &str, person: &TempDir, home: &Home) -> Launch {
    let variables = [
        ("SSH_AUTH_SOCK", "/tmp/ssh-agent"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/tmp/bus"),
        ("DOCKER_HOST", "unix:///tmp/docker"),
        ("DISPLAY", ":0"),
        ("XDG_RUNTIME_DIR", "/tmp"),
    ];
    let launch = Launch::serve(config).home(home).env("HOME", person.path().canonicalize().unwrap().to_str().unwrap());
    variables.into_iter().fold(launch, |launch, (name, value)| launch.env(name, value))
}

async fn run(client: &Client, script: &str) -> String {
    let hex: String = script.bytes().map(|byte| format!("{byte:02x}")).collect();
    let said = client.text("run", json!({ "script": hex })).await;
    let bytes = (0..said.len() / 2).map(|at| u8::from_str_radix(&said[2 * at..2 * at + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

#[tokio::test]
async fn a_server_in_a_sandbox_serves_as_any_other_and_its_program_may_lie_anywhere() {
    let Some(house) = House::open(&destination("demo", &[], "sandbox = true")).await else { return };
    let client = house.daemon.client_at("/demo/mcp").initialize().await;
    assert_eq!(client.text("echo", json!({"text": "to and fro"})).await, "to and fro");
    assert!(client.child().await < 10, "it counts its own processes only");
    let status = house.status("demo").await;
    assert_eq!((&status["sandboxed"], &status["state"]), (&json!(true), &json!("up")), "{status}");
    let pid = u32::try_from(status["links"][0]["pid"].as_u64().unwrap()).unwrap();
    assert!(process::is_alive(pid) && status["memory_bytes"].as_u64().unwrap() > 1 << 20, "{status}");
    let named =
        Launch::prism(["list"].map(str::to_owned).to_vec()).config(&house.config).home(&house.home).output().await;
    assert!(named.contains("(sandboxed)"), "{named}");
    let listed = ["list", "--json"].map(str::to_owned).to_vec();
    let listed = Launch::prism(listed).config(&house.config).home(&house.home).output().await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["sandbox"], json!({"folders": [], "readable": [], "network": "all"}));
}

#[tokio::test]
async fn nothing_of_the_persons_is_read_or_written_and_nothing_leads_there() {
    let Some(house) = House::open(&shell("sandbox = true")).await else { return };
    let prism = house.home.path().canonicalize().unwrap();
    let attack = format!(
        "cat ~/.ssh/id_ed25519 ~/notes/file {person}/project/file {prism}/management-token {prism}/http-mcp-token {prism}/it.toml
        ls {prism}; echo x >{person}/project/new; echo x >/usr/new; echo x >{prism}/new; mkdir -p ~/notes; echo x >~/notes/file
        env | grep -E 'SSH_|DBUS|DOCKER|DISPLAY|XDG_RUNTIME|PRISM'; ls /run; kill -9 {daemon}; cat /proc/{daemon}/environ
        echo $TMPDIR; pwd",
        person = house.person.path().display(),
        prism = prism.display(),
        daemon = house.daemon.pid(),
    );
    assert_eq!(
        house.run(&attack).await,
        format!("/tmp\n{}\n", house.path("").display().to_string().trim_end_matches('/'))
    );
    assert_eq!(fs::read_to_string(house.path("notes/file")).unwrap(), "note");
    assert!(!house.path("project/new").exists() && !prism.join("new").exists());
}

#[tokio::test]
async fn its_home_lasts_its_temporary_files_do_not_and_it_ends_by_itself() {
    let Some(house) = House::open(&shell("sandbox = true")).await else { return };
    let said = house
        .run("mkdir -p ~/.cache && echo kept >~/.cache/file; echo x >/tmp/gone; cat ~/.cache/file; ls /tmp/gone")
        .await;
    assert_eq!(said, "kept\n/tmp/gone\n");
    assert_eq!(fs::read_to_string(house.own("home/.cache/file")).unwrap(), "kept\n");
    assert!(!house.path(".cache").exists());
    // Another daemon's time: what is left is cleared away, and the rest is there.
    let house = house.open_again().await;
    assert_eq!(house.run("cat ~/.cache/file ~/ended; ls /tmp/gone").await, "kept\nby itself");
    assert!(house.own("tmp").exists() && !house.own("tmp/gone").exists());
}

#[tokio::test]
async fn folders_are_written_readable_ones_are_read_and_what_tools_run_by_themselves_stays_as_it_is() {
    let room = "cwd = \"PERSON/project\"\n[destination.shell.sandbox]\nfolders = [\"PERSON/notes\"]\nreadable = [\"PERSON/models\"]";
    let Some(house) = House::open(&shell(room)).await else { return };
    let said = house
        .run(
            "cat file ~/models/file ~/notes/file; echo; echo new >~/notes/file; echo new >~/notes/made
            echo x >file; echo x >~/models/file; echo x >~/notes/.git/config; cat ~/notes/.git/config; pwd",
        )
        .await;
    assert_eq!(said, format!("sourcemodelnote\nsettings{}\n", house.path("project").display()));
    for (name, text) in [
        ("notes/file", "new\n"),
        ("notes/made", "new\n"),
        ("notes/.git/config", "settings"),
        ("project/file", "source"),
        ("models/file", "model"),
    ] {
        assert_eq!(fs::read_to_string(house.path(name)).unwrap(), text, "{name}");
    }
}

// S-17
#[tokio::test]
async fn the_network_is_what_was_said_and_never_the_daemon_and_a_change_starts_it_anew() {
    let network = |which: &str| shell(&format!("[destination.shell.sandbox]\nnetwork = \"{which}\""));
    let Some(house) = House::open(&network("all")).await else { return };
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [theirs.local_addr().unwrap().port(), house.daemon.port()];
    let dial = format!(
        "perl -MIO::Socket::INET -e 'for (@ARGV) {{ print(IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", \
         PeerPort => $_) ? \"reached\\n\" : \"refused\\n\") }}' {} {}",
        ports[0], ports[1]
    );
    let client = house.client().await;
    assert_eq!(run(&client, &dial).await, "reached\nrefused\n");
    // As editors do it.
    let beside = house.home.file("it.toml.new");
    fs::write(&beside, network("none")).unwrap();
    fs::rename(beside, house.home.file("it.toml")).unwrap();
    until("the config is taken over", async || house.daemon.stderr().contains("Took over the changed config")).await;
    assert_eq!(run(&client, &dial).await, "refused\nrefused\n");
}

#[tokio::test]
async fn nothing_of_it_outlives_a_daemon_that_is_killed() {
    let Some(mut house) = House::open(&shell("sandbox = true")).await else { return };
    let script = "env -i setsid sleep 3600 >/dev/null & (setsid sleep 3600 >/dev/null &) & echo begun";
    assert_eq!(house.run(script).await, "begun\n");
    let living = || process::with_descendants(&house.daemon.children());
    // What is around it, the first inside, the server, and what that has started.
    until("they run", async || living().len() >= 5).await;
    let all = living();
    house.daemon.kill().await;
    until("all of it is gone", async || all.iter().all(|pid| !process::is_alive(*pid))).await;
}

// The ceiling counts also who has left the group.
#[tokio::test]
async fn who_leaves_the_group_is_held_to_the_ceiling_all_the_same() {
    let Some(house) = House::open(&shell("sandbox = true\nmax_memory = \"100MiB\"")).await else { return };
    let client = house.client().await;
    let hold = "setsid perl -e '$x = \"x\" x (200 << 20); sleep' >/dev/null & wait";
    let hex: String = hold.bytes().map(|byte| format!("{byte:02x}")).collect();
    let reply = client.call("run", json!({ "script": hex })).await;
    let (status, body) = (reply.status, reply.answer().await);
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 503 && message.starts_with("the server used more than max_memory = 100 MiB"), "{status} {body}");
    assert_eq!(run(&client, "echo next").await, "next\n");
}

#[tokio::test]
async fn without_bubblewrap_it_does_not_start_and_the_package_is_named() {
    let tools = tempfile::tempdir().unwrap();
    for name in ["sh", "perl"] {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        let real = found.iter().find(|path| path.exists()).expect("the tests need sh and perl");
        std::os::unix::fs::symlink(real, tools.path().join(name)).unwrap();
    }
    let (home, path) = (Home::new(), tools.path().to_str().unwrap());
    let config = shell("sandbox = true");
    let daemon = Launch::serve(&config).home(&home).env("PATH", path).start().await;
    let reply = daemon.client_at("/shell/mcp").say_hello().await;
    let (status, body) = (reply.status, reply.answer().await);
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 503 && message.contains("there is none: bubblewrap is not installed"), "{status} {body}");
    assert!(message.contains("install the package `bubblewrap`"), "{message}");
    assert!(daemon.children().is_empty() && !home.path().join("children").exists());

    let arguments = ["doctor", "--json", "--no-calls"].map(str::to_owned).to_vec();
    let doctor =
        Launch::prism(arguments).config(&config).home(&home).env("PATH", path).env("SHELL", "/bin/sh").end().await;
    let found: Value = serde_json::from_str(&doctor.stdout).unwrap_or_else(|_| panic!("{doctor:?}"));
    let wrong = found.as_array().unwrap().iter().find(|one| one["what"] == "shell" && one["verdict"] == "wrong");
    let wrong = wrong.unwrap_or_else(|| panic!("{found}"));
    assert!(wrong["said"].as_str().unwrap().contains("bubblewrap is not installed"), "{wrong}");
    assert!(wrong["fix"].as_str().unwrap().contains("install the package `bubblewrap`"), "{wrong}");
}

#[tokio::test]
async fn what_cannot_be_in_it_is_named_with_what_to_type() {
    let config = [
        "login_path = false\n[destination.absent]\ncommand = [\"PERSON/link/tool\"]\nsandbox = true\n",
        "[destination.none]\ncommand = [\"perl\"]\nsandbox = { folders = [\"PERSON/none\"] }\n",
        "[destination.all]\ncommand = [\"perl\"]\nsandbox = { readable = [\"PERSON\"] }\n",
    ]
    .concat();
    let Some(house) = House::open(&config).await else { return };
    fs::create_dir(house.path("tools")).unwrap();
    fs::write(house.path("tools/tool"), "#!/usr/bin/perl\n").unwrap();
    fs::write(house.path("tools/interpreted"), format!("#!{}\n", house.path("tools/tool").display())).unwrap();
    for name in ["tool", "interpreted"] {
        fs::set_permissions(house.path("tools").join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    fs::create_dir(house.path("link")).unwrap();
    std::os::unix::fs::symlink(house.path("tools/interpreted"), house.path("link/tool")).unwrap();
    let why = async |name: &str| {
        let reply = house.daemon.client_at(&format!("/{name}/mcp")).say_hello().await;
        let (status, body) = (reply.status, reply.answer().await);
        assert_eq!(status, 503, "{body}");
        body["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let said = why("absent").await;
    let fix = format!("Type: readable = [{:?}] below [destination.absent.sandbox]", house.path("tools"));
    assert!(said.contains("is not in its sandbox, or what it is run by is not") && said.contains(&fix), "{said}");
    let said = why("none").await;
    assert!(said.contains("which cannot be opened: No such file or directory"), "{said}");
    let said = why("all").await;
    assert!(said.contains("and your home folder with it; name the folders in there that it needs"), "{said}");
}
