//! What the ways are tried on: a person with a home folder, a project, and programs that run and listen; their daemon, started as
//! carelessly as can be, with a key in its session, an open file and secrets in its environment.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{MetadataExt, PermissionsExt, chown, symlink},
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{Outcome, Outcomes};
use crate::support::{Home, Launch, gate::Gate, prism, process};

/// Nothing of whoever runs the tests.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How many ways there are.
const WAYS: usize = 30;

/// What stands in the person's files, memory, keys and variables.
const SECRET: &str = "7ad51c0e96f04d3b8e1f";

const AS_IT_WAS: &str = "as it was\n";

/// Beneath the home folder.
const FILES: [&str; 4] =
    ["documents/letter", ".npm/_npx/1/index.js", ".cache/uv/wheel.py", ".cargo/registry/src/build.rs"];

/// Beneath the granted folder: what the person's own tools run.
const RUN_BY_TOOLS: [&str; 3] = [".git/hooks/post-commit", ".git/config", ".vscode/tasks.json"];

/// What starts the daemon, and the script outside: with an open file and a key in the session, both of the person's.
const CARELESSLY: &str =
    "exec 7<\"$HOME/.ssh/id_ed25519\"; exec perl \"$WAYS/keyed.pl\" \"$WAYS_SECRET\" \"$0\" \"$@\"";

/// Whom a setuid program makes of root: for root, becoming root is nothing gained.
const ORDINARY: u32 = 65_533;

pub(super) struct World {
    pub(super) gate: Gate,
    home: Home,
    /// The script and what it is told, to read.
    folder: Home,
    variables: Vec<(&'static str, String)>,
    /// The config of the repository.
    config: String,
}

/// What is laid out for one try.
pub(super) struct Prey<'a> {
    world: &'a World,
    sockets: Vec<(&'static str, UnixListener)>,
    listener: TcpListener,
    segment: PathBuf,
    neighbour: Child,
    /// What the neighbour says of itself.
    said: BTreeMap<String, String>,
    limited: String,
}

/// Returns a folder of programs, to be all of PATH, in which bubblewrap is not.
pub(super) fn tools_without_bubblewrap() -> TempDir {
    let tools = tempfile::tempdir().unwrap();
    for name in ["sh", "make", "perl", "python3", "git"] {
        let found = USUAL_PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
        symlink(found.unwrap_or_else(|| panic!("the tests need {name}")), tools.path().join(name)).unwrap();
    }
    tools
}

impl World {
    pub(super) async fn begin(path: &str) -> Self {
        let (home, folder, project) = (Home::new(), Home::new(), Home::new());
        for (name, text) in [
            ("ways.pl", include_str!("ways.pl")),
            ("neighbour.pl", include_str!("neighbour.pl")),
            ("keyed.pl", include_str!("keyed.pl")),
            ("server.py", include_str!("../../../../editor/src/lsp/tests/server.py")),
        ] {
            fs::write(folder.file(name), text).unwrap();
        }
        write(&home.path().join(".ssh/id_ed25519"), SECRET);
        let run = home.file("run");
        fs::create_dir(&run).unwrap();
        let variables = vec![
            ("PATH", path.to_owned()),
            ("HOME", home.path().to_str().unwrap().to_owned()),
            ("WAYS", folder.path().to_str().unwrap().to_owned()),
            ("WAYS_SECRET", SECRET.to_owned()),
            ("MCP_TOKEN", SECRET.repeat(2)),
            ("SSH_AUTH_SOCK", home.file("agent.sock")),
            ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={run}/bus")),
            ("DOCKER_HOST", format!("unix://{run}/docker.sock")),
            ("DISPLAY", ":0".to_owned()),
            ("WAYLAND_DISPLAY", "wayland-0".to_owned()),
            ("XDG_RUNTIME_DIR", run),
        ];
        let settings = format!(
            "login_path = false\n[gate]\nrate_limit = 1000\n[editor]\nreadable = [{0:?}]\n\
             [editor.servers]\nmarkdown = [\"sh\", {1:?}]\n\
             [destination.ways]\ncommand = [\"sh\", {2:?}]\nera = \"legacy\"\n\
             [destination.ways.sandbox]\nfolders = [{3:?}]\nreadable = [{0:?}, {4:?}]\nnetwork = \"none\"\n",
            folder.path(),
            folder.file("language-server.sh"),
            folder.file("mcp-server.sh"),
            project.path(),
            prism(),
        );
        let launch = Launch::serve(&settings).shell(CARELESSLY);
        let launch = variables.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let gate = Gate::start_by(launch, project).await;
        let mut world = Self { gate, home, folder, variables, config: String::new() };
        world.git(&["init", "-q", "-b", "main"]);
        world.git(&["config", "user.name", "A Person"]);
        world.git(&["config", "user.email", "person@example.com"]);
        world.config = fs::read_to_string(world.gate.path(".git/config")).unwrap();
        for folder in ["den", "mount"] {
            fs::create_dir(world.gate.path(folder)).unwrap();
        }
        world
    }

    /// The person at their repository.
    pub(super) fn git(&self, words: &[&str]) {
        let mut git = self.command("git");
        let ended = git.args(words).output().expect("git is needed for these tests");
        assert!(ended.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }

    /// A program that is started as the daemon is, in the project.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("PRISM_HOME", self.gate.daemon.home().path()).current_dir(self.gate.project());
        command.stdin(Stdio::null());
        command
    }

    /// The line for a shell that tries the ways, and leaves what they say in the granted folder.
    pub(super) fn line(&self, place: &str) -> String {
        format!("perl {} >{}", self.folder.file("ways.pl"), self.said(place))
    }

    pub(super) fn said(&self, place: &str) -> String {
        self.gate.path(&format!("said-{}", place.replace(' ', "-")))
    }

    /// Whether the script has come to its end there.
    pub(super) fn is_through(&self, place: &str) -> bool {
        fs::read_to_string(self.said(place)).is_ok_and(|said| said.ends_with("end\n"))
    }

    /// In how many places the script has been started.
    pub(super) fn ran(&self) -> usize {
        let files = fs::read_dir(self.gate.project()).unwrap().flatten();
        files.filter(|file| file.file_name().as_encoded_bytes().starts_with(b"said-")).count()
    }

    /// A file that is there to read wherever something runs.
    pub(super) fn readable(&self, name: &str) -> String {
        self.folder.file(name)
    }

    /// A setuid program, where those of the system give nothing that is not there already.
    fn setuid(&self) -> String {
        let program = self.folder.file("becomes");
        if !rustix::process::getuid().is_root() {
            return String::new();
        }
        if !fs::exists(&program).unwrap() {
            fs::copy("/bin/sleep", &program).unwrap();
            chown(&program, Some(ORDINARY), None).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        program
    }

    /// Tries the ways outside of any fence.
    pub(super) fn try_outside(&self) -> Outcomes {
        let prey = Prey::laid(self);
        let mut shell = self.command("sh");
        shell.args(["-c", CARELESSLY, "sh", "-c", &self.line("outside")]);
        assert!(shell.status().unwrap().success());
        prey.outcomes("outside", !self.survivors().is_empty())
    }

    /// What was left behind, and is still running.
    pub(super) fn survivors(&self) -> Vec<u32> {
        process::working_in(Path::new(&self.gate.path("den")))
    }

    /// Ends what was left behind, and the daemon.
    pub(super) async fn end(self) {
        self.end_survivors();
        self.gate.daemon.stop().await;
    }

    fn end_survivors(&self) {
        for pid in self.survivors() {
            process::signal_if_there(pid, rustix::process::Signal::KILL);
        }
    }
}

impl<'a> Prey<'a> {
    pub(super) fn laid(world: &'a World) -> Self {
        world.end_survivors();
        for file in FILES.map(|name| world.home.path().join(name)) {
            write(&file, AS_IT_WAS);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let _ = fs::remove_file(world.gate.path("hard"));
        for name in RUN_BY_TOOLS {
            write(Path::new(&world.gate.path(name)), if name == ".git/config" { &world.config } else { AS_IT_WAS });
        }
        let number = world.gate.daemon.pid();
        let (nameless, screen) = (format!("prism-ways-{number}"), format!("/tmp/.X11-unix/X{number}"));
        let by_path = |path: String| {
            let _ = fs::remove_file(&path);
            UnixListener::bind(path).unwrap()
        };
        let by_name = |name: &str| UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        let sockets = vec![
            ("connect to a socket in the home folder", by_path(world.home.file("agent.sock"))),
            ("connect to a socket in the granted folder", by_path(world.gate.path("dev.sock"))),
            ("connect to a socket without a file", by_name(&nameless)),
            ("connect to the screen", by_path(world.home.file("run/wayland-0"))),
            ("connect to the screen", by_name(&screen)),
        ];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let segment = PathBuf::from(format!("/dev/shm/prism-ways-{number}"));
        fs::write(&segment, SECRET).unwrap();
        let mut neighbour = world.command("perl");
        neighbour.args([&world.folder.file("neighbour.pl"), SECRET]).current_dir(world.home.path());
        let mut neighbour = neighbour.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(neighbour.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said: BTreeMap<String, String> = lines
            .take_while(|line| line != "end")
            .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        said.extend(
            [
                ("home", world.home.path().to_str().unwrap().to_owned()),
                ("project", world.gate.project()),
                ("secret", SECRET.to_owned()),
                ("nameless", nameless),
                ("screen", screen),
                ("port", listener.local_addr().unwrap().port().to_string()),
                ("prism_port", world.gate.daemon.port().to_string()),
                ("neighbour", neighbour.id().to_string()),
                ("prism", world.gate.daemon.pid().to_string()),
                ("segment", segment.to_str().unwrap().to_owned()),
                ("setuid", world.setuid()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let targets: String = said.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(world.folder.file("targets"), targets).unwrap();
        let mut prey = Self { world, sockets, listener, segment, neighbour, said, limited: String::new() };
        prey.limited = prey.limits();
        prey
    }

    /// What the script has said, and what shows out here.
    pub(super) fn outcomes(&self, place: &str, survives: bool) -> Outcomes {
        let Ok(said) = fs::read_to_string(self.world.said(place)) else { panic!("{place}: it has not run") };
        let mut outcomes: Outcomes = said
            .lines()
            .filter_map(|line| line.split_once(' ')?.1.split_once(": "))
            .map(|(way, came)| (way.to_owned(), if came == "OUT" { Outcome::Out } else { Outcome::Held }))
            .collect();
        assert!(outcomes.len() == WAYS && said.ends_with("end\n"), "{place}: {said}");
        assert!(said.contains("leave something running: begun"), "{place}: {said}");
        for way in self.seen(survives) {
            let outcome = outcomes.iter_mut().find(|(name, _)| name == way).unwrap_or_else(|| panic!("no way {way}"));
            outcome.1 = Outcome::Out;
        }
        outcomes
    }

    /// The ways that have led out, as it shows out here.
    fn seen(&self, survives: bool) -> Vec<&'static str> {
        let World { home, gate, .. } = self.world;
        let is_changed = |path: &Path, was: &str| fs::read_to_string(path).unwrap() != was;
        let mut seen = Vec::new();
        let mut see = |way, is_seen| seen.extend(Some(way).filter(|_| is_seen));
        let [letter, caches @ ..] = FILES.map(|name| home.path().join(name));
        see("write a file in the home folder", is_changed(&letter, AS_IT_WAS));
        let mode = fs::metadata(&letter).unwrap();
        see("change the mode of a file", mode.mode() & 0o777 != 0o600);
        see("link a file of the home folder", mode.nlink() > 1 || fs::exists(gate.path("hard")).unwrap());
        see("write a cache that tools run from", caches.iter().any(|file| is_changed(file, AS_IT_WAS)));
        let run_by_tools = RUN_BY_TOOLS.iter().any(|name| {
            let was = if *name == ".git/config" { &self.world.config } else { AS_IT_WAS };
            is_changed(Path::new(&gate.path(name)), was)
        });
        see("write hooks and tasks that are there", run_by_tools);
        for (way, socket) in &self.sockets {
            socket.set_nonblocking(true).unwrap();
            see(way, socket.accept().is_ok());
        }
        self.listener.set_nonblocking(true).unwrap();
        see("connect to a port of this computer", self.listener.accept().is_ok());
        see("shared memory in /dev/shm", is_changed(&self.segment, SECRET));
        let is_stopped = self.field("stopped", "stat").contains(") T ");
        see("kill or stop another process", is_stopped || !process::is_alive(self.pid("killed")));
        see("limit or slow another process", self.limits() != self.limited);
        see("leave something running", survives);
        seen
    }

    fn pid(&self, name: &str) -> u32 {
        self.said[name].parse().unwrap()
    }

    fn field(&self, name: &str, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.pid(name))).unwrap_or_default()
    }

    /// The limits of the process that may be limited, its priority and its processors.
    fn limits(&self) -> String {
        let stat = self.field("limited", "stat");
        let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap_or_default();
        let status = self.field("limited", "status");
        let processors = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap_or_default();
        format!("{}{nice} {processors}", self.field("limited", "limits"))
    }
}

impl Drop for Prey<'_> {
    fn drop(&mut self) {
        self.world.end_survivors();
        let _ = fs::remove_file(&self.segment);
        // With its stdin it ends by itself, and takes away what it has made.
        drop(self.neighbour.stdin.take());
        let _ = self.neighbour.wait();
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}
