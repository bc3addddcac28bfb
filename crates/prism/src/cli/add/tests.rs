//! `prism add`, `list` and `remove` on a real file: what is there before stays, and what goes can come back.

mod folder;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::{Args, FromArgMatches};
use prism_store::Store;

use super::*;
use crate::cli::{list::ListArgs, remove::RemoveArgs};
use prism_bridge::drive::destination::key;
use prism_config::trust::TrustStore;

/// A folder to work in, with a home beside it.
struct Desk {
    folder: tempfile::TempDir,
    env: Env,
}

impl Desk {
    fn new(text: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let env = Env::from([("PRISM_HOME", home.to_str().unwrap()), ("PATH", "/bin:/usr/bin")]);
        let desk = Self { folder, env };
        if let Some(text) = text {
            fs::write(desk.file(), text).unwrap();
        }
        desk
    }

    /// The person has seen what is there.
    fn trusting(self) -> Self {
        let home = self.here().join("home");
        TrustStore::of(&home).see(&self.file(), &self.text(), String::new()).unwrap();
        self
    }

    fn here(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self) -> PathBuf {
        self.here().join("prism.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn add(&self, line: &str) -> anyhow::Result<AddReport> {
        parse::<AddArgs>(line).unwrap().apply(self.here(), &self.env)
    }

    fn list(&self, line: &str) -> anyhow::Result<String> {
        parse::<ListArgs>(line).unwrap().text(self.here(), &self.env)
    }

    fn remove(&self, line: &str) -> anyhow::Result<String> {
        parse::<RemoveArgs>(line).unwrap().apply(self.here(), &self.env)
    }

    /// Checks that a refusal says why, and changes nothing.
    #[track_caller]
    fn refuses_to_add(&self, line: &str, why: &str) {
        let before = self.text();
        let error = format!("{:#}", self.add(line).unwrap_err());
        assert!(error.contains(why), "{error}");
        assert_eq!(self.text(), before);
        assert_eq!(fs::read_dir(self.here()).unwrap().count(), 1, "nothing is left beside the file");
    }
}

fn parse<T: Args + FromArgMatches>(line: &str) -> Result<T, clap::Error> {
    let command = T::augment_args(clap::Command::new("test").no_binary_name(true));
    T::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}

const COMMENTED: &str = "\
# My servers

port = 9 # not the default

# Files of this project
[destination.files]
process = \"shared\" # fine
command = ['npx', \"x\"]

# Search
[destination.search]
command = [\"search\"]
asks = false
# the end
";

#[test]
fn the_first_destination_makes_a_file_at_home_for_its_owner_alone() {
    let desk = Desk::new(None);
    let report = desk.add("files -- cat -u").unwrap();
    let path = desk.here().join("home/prism.toml");
    assert_eq!(fs::read_to_string(&path).unwrap(), "[server.files]\ncommand = [\"cat\", \"-u\"]\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        report.text,
        format!(
            "added files in {}\n  command  cat -u\n  process  shared\n  \
             url      http://127.0.0.1:7420/files/mcp\nnext: prism serve --detach",
            path.display()
        )
    );
    assert_eq!(report.warnings, [""; 0]);
}

#[test]
fn a_new_destination_goes_to_the_end_and_nothing_else_moves() {
    let desk = Desk::new(Some(COMMENTED)).trusting();
    let report = desk
        .add("web --process per_session --env A=b=c --env T=env:NOPE --cwd /tmp --max-sessions 3 -- nosuch it's")
        .unwrap();
    let added = "\n[destination.web]\ncommand = [\"nosuch\", \"it's\"]\nprocess = \"per_session\"\ncwd = \"/tmp\"\n\
                 max_sessions = 3\nenv = { A = \"b=c\", T = \"env:NOPE\" }\n";
    assert_eq!(desk.text(), format!("{COMMENTED}{added}"));
    assert!(report.text.contains("http://127.0.0.1:9/web/mcp"), "{}", report.text);
    assert!(report.warnings[0].contains("\"nosuch\" was not found on PATH"));
    assert!(report.warnings[1].contains("NOPE is not set here"));
}

#[test]
fn the_tables_of_the_hub_stay_where_they_are() {
    const TEXT: &str = "[destination.a]\ncommand = [\"a\"]\nhub = false\n\n# Search\n[hub]\nmode = \"search\"\n\n\
                        [profile.web]\nexcept = [\"web\"]\n\n[workspace]\nroot = \".\"\n# the end\n";
    let desk = Desk::new(Some(TEXT));
    desk.add("web -- cat").unwrap();
    assert_eq!(desk.text(), format!("{TEXT}\n[destination.web]\ncommand = [\"cat\"]\n"));
    let text = desk.remove("web").unwrap();
    assert!(
        text.ends_with("\nnext: take \"web\" out of [profile.web] too, or the daemon will refuse the file"),
        "{text}"
    );
    assert_eq!(desk.text().trim_end(), TEXT.trim_end());
    let text = desk.remove("a").unwrap();
    // Nothing is left of the older word, so `prism add` writes the newer one.
    assert!(text.ends_with("\nand below [server.a]:\n  hub = false"), "{text}");
}

#[test]
fn removing_what_was_added_gives_the_old_file() {
    let desk = Desk::new(Some(COMMENTED));
    desk.add("web -- cat").unwrap();
    desk.remove("web").unwrap();
    // The last comment now closes the file again, behind an empty line.
    assert_eq!(desk.text().trim_end(), COMMENTED.trim_end());
}

#[test]
fn the_undo_of_a_removal_brings_everything_back() {
    let desk = Desk::new(None);
    let line = "web --process per_session --env A=b --cwd /tmp --max-sessions 3 -- cat -u";
    desk.add(line).unwrap();
    let path = desk.here().join("home/prism.toml");
    let before = file::load_written(&path).unwrap();
    let text = desk.remove("web").unwrap();
    assert_eq!(text, format!("removed web from {}\nundo: prism add {line}", path.display()));
    assert!(file::load_written(&path).unwrap().destinations.is_empty());
    desk.add(line).unwrap();
    assert_eq!(file::load_written(&path).unwrap(), before);
}

#[test]
fn removing_takes_the_comment_that_touches_and_names_what_add_cannot_carry() {
    let desk = Desk::new(Some(COMMENTED));
    let text = desk.remove("search").unwrap();
    assert!(
        text.ends_with("undo: prism add search -- search\nand below [destination.search]:\n  asks = false"),
        "{text}"
    );
    assert!(!desk.text().contains("# Search"));
    assert!(desk.text().contains("# Files of this project") && desk.text().ends_with("# the end\n"));
}

#[test]
fn removing_the_first_destination_keeps_the_comment_about_the_file() {
    let desk = Desk::new(Some(
        "# About\n\n# a\n[destination.a]\ncommand = [\"a\"]\n\n# b\n[destination.b]\ncommand = [\"b\"]\n",
    ));
    desk.remove("a").unwrap();
    assert_eq!(desk.text(), "# About\n\n# b\n[destination.b]\ncommand = [\"b\"]\n");
    desk.remove("b").unwrap();
    assert_eq!(desk.text(), "# About\n");
}

#[test]
fn removing_the_only_destination_keeps_the_comment_about_the_file_above_the_hub() {
    let hub = "[profile.web]\nmode = \"list\"\n\n# b\n[hub]\nmode = \"search\"\n";
    let desk = Desk::new(Some(&format!("# About\n\n# a\n[destination.a]\ncommand = [\"a\"]\n\n{hub}")));
    desk.remove("a").unwrap();
    assert_eq!(desk.text(), format!("# About\n\n{hub}"));
}

#[test]
fn a_taken_name_is_refused_unless_forced_and_then_the_old_one_is_shown() {
    let desk = Desk::new(Some(COMMENTED));
    desk.refuses_to_add("files -- cat", "already has a server \"files\"");
    let report = desk.add("files --force -- cat").unwrap();
    assert!(report.text.contains("before: prism add files --process shared -- npx x\n"), "{}", report.text);
    let expected = COMMENTED.replace("process = \"shared\" # fine\n", "").replace("['npx', \"x\"]", "[\"cat\"]");
    assert_eq!(desk.text(), expected);
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let desk = Desk::new(Some(COMMENTED));
    desk.refuses_to_add("my.files -- cat", "call it \"my-files\"");
    desk.refuses_to_add("metrics -- cat", "a path of Prism's own");
    desk.refuses_to_add("web", "fix: prism add web -- npx");
    for line in ["web --process sharde -- x", "web --env A -- x", "web --env =b -- x", "web --max-sessions 0 -- x"] {
        assert!(parse::<AddArgs>(line).is_err(), "{line}");
    }
}

#[test]
fn a_broken_file_is_reported_and_not_overwritten() {
    let desk = Desk::new(Some("port = 1\nprot = 2\n"));
    desk.refuses_to_add("web -- cat", "prism.toml:2:1: unknown key \"prot\"");
    assert!(format!("{:#}", desk.remove("web").unwrap_err()).contains("unknown key"));
    assert!(format!("{:#}", desk.list("").unwrap_err()).contains("unknown key"));
}

#[test]
fn a_file_in_a_folder_that_is_not_there_is_refused() {
    let desk = Desk::new(None);
    let path = desk.here().join("no/prism.toml");
    let error = desk.add(&format!("web --config {} -- cat", path.display())).unwrap_err();
    assert!(format!("{error:#}").contains("cannot read"), "{error:#}");
    let error = desk.remove(&format!("web --config {}", path.display())).unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[test]
fn a_named_file_is_made_and_named_in_the_next_step() {
    let desk = Desk::new(None);
    let path = desk.here().join("other.toml");
    let report = desk.add(&format!("web --config {} -- cat", path.display())).unwrap();
    assert!(report.text.ends_with(&format!("next: prism serve --detach --config {}", path.display())));
    assert!(path.exists());
}

#[test]
fn a_link_stays_a_link_and_the_mode_stays_the_mode() {
    let desk = Desk::new(None);
    let real = desk.here().join("dotfiles.toml");
    fs::write(&real, "# mine\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("dotfiles.toml", desk.file()).unwrap();
    desk.add("web -- cat").unwrap();
    assert!(desk.file().symlink_metadata().unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(desk.text(), "# mine\n\n[server.web]\ncommand = [\"cat\"]\n");
}

#[test]
fn a_comment_without_a_line_end_stays_a_comment() {
    let desk = Desk::new(Some("port = 1\n# end"));
    desk.add("web -- cat").unwrap();
    assert_eq!(desk.text(), "port = 1\n# end\n\n[server.web]\ncommand = [\"cat\"]\n");
}

#[test]
fn windows_line_ends_are_kept() {
    let text = COMMENTED.replace('\n', "\r\n");
    let desk = Desk::new(Some(&text));
    desk.add("web -- cat").unwrap();
    assert_eq!(desk.text(), format!("{text}\r\n[destination.web]\r\ncommand = [\"cat\"]\r\n"));
    desk.remove("files").unwrap();
    assert_eq!(desk.text().matches('\n').count(), desk.text().matches("\r\n").count());
}

#[test]
fn every_way_to_write_a_destination_can_be_added_to_and_removed_from() {
    for text in [
        "destination = { a = { command = [\"a\"] } }\n",
        "[destination]\na = { command = [\"a\"] }\n",
        "[destination]\na.command = [\"a\"]\n",
        "[destination.a]\ncommand = [\"a\"]\n[destination.a.env]\nA = \"b\"\n",
        "[destination.\"a\"]\ncommand = [\"a\"]",
        "# only a comment",
        "destination.a.command = [\"a\"]\n",
        "server = { a = { command = [\"a\"] } }\n",
        "[server]\na.command = [\"a\"]\n",
        "[server.a]\ncommand = [\"a\"]\n[destination.b]\ncommand = [\"b\"]\n",
    ] {
        let desk = Desk::new(Some(text));
        desk.add("web -- cat").unwrap();
        assert_eq!(file::load_written(&desk.file()).unwrap().destinations["web"].command, ["cat"], "{text}");
        desk.add("web --force --env A=b -- dog").unwrap();
        assert_eq!(file::load_written(&desk.file()).unwrap().destinations["web"].env["A"], "b", "{text}");
        desk.remove("web").unwrap();
        for name in ["a", "b"].into_iter().filter(|name| text.contains(&format!("[\"{name}\"]"))) {
            desk.remove(name).unwrap();
        }
        assert!(file::load_written(&desk.file()).unwrap().destinations.is_empty(), "{text}");
    }
}

#[test]
fn additions_at_once_all_find_their_place() {
    let desk = Desk::new(Some(COMMENTED));
    thread::scope(|scope| {
        for i in 0..8 {
            let desk = &desk;
            scope.spawn(move || desk.add(&format!("web{i} -- cat")).unwrap());
        }
    });
    assert_eq!(file::load_written(&desk.file()).unwrap().destinations.len(), 10);
}

#[test]
fn an_unknown_name_lists_the_known_ones_nearest_first() {
    let desk = Desk::new(Some(COMMENTED));
    let error = desk.remove("serach").unwrap_err().to_string();
    assert!(error.ends_with("has no server \"serach\"\n  known: search, files"), "{error}");
    assert_eq!(desk.text(), COMMENTED);
}

#[test]
fn the_list_shows_what_each_is_where_it_is_and_the_file() {
    let text = format!(
        "{COMMENTED}\n[destination.docs]\nurl = \"https://example.com/mcp?key=hunter2\"\nera = \"modern\"\n\
         [destination.old]\nurl = \"http://localhost/sse\"\ntype = \"sse\"\n"
    );
    let desk = Desk::new(Some(&text));
    let file = desk.file();
    assert_eq!(
        desk.list("").unwrap(),
        format!(
            "\
NAME    TYPE   ERA           PROCESS  COMMAND OR URL
docs    http   modern (set)  shared   https://example.com/mcp
files   stdio  auto          shared   npx x
old     sse    auto          shared   http://localhost/sse
search  stdio  auto          shared   search
from {}",
            file.display()
        )
    );
    let rows: serde_json::Value = serde_json::from_str(&desk.list("--json").unwrap()).unwrap();
    let expected = serde_json::json!([
        {"name": "docs", "type": "http", "era": "modern", "era_set": true, "process": "shared",
         "url": "https://example.com/mcp", "file": file},
        {"name": "files", "type": "stdio", "era": "auto", "era_set": false, "process": "shared",
         "command": ["npx", "x"], "file": file},
        {"name": "old", "type": "sse", "era": "auto", "era_set": false, "process": "shared",
         "url": "http://localhost/sse", "file": file},
        {"name": "search", "type": "stdio", "era": "auto", "era_set": false, "process": "shared",
         "command": ["search"], "file": file},
    ]);
    assert_eq!(rows, expected);
}

const ERAS: &str = "\
[destination.fresh]
command = [\"x\"]
[destination.set]
command = [\"x\"]
era = \"legacy\"
[destination.stale]
command = [\"x\"]
[destination.steady]
command = [\"x\"]
[destination.unknown]
command = [\"x\"]
";

/// The eras that a list shows, by name.
fn eras(desk: &Desk) -> Vec<(String, String)> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(&desk.list("--json").unwrap()).unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "name"), text(row, "era"))).collect()
}

#[tokio::test]
async fn the_list_shows_the_eras_that_were_learned_until_they_are_stale() {
    let desk = Desk::new(Some(ERAS));
    let home = desk.here().join("home");
    fs::create_dir(&home).unwrap();
    let store = Store::open(&home.join("prism.db")).unwrap();
    let destinations = file::load_written(&desk.file()).unwrap().destinations;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for (name, era, hours) in [
        ("fresh", "legacy", 23),
        ("set", "modern", 0),
        ("stale", "legacy", 25),
        ("steady", "modern", 25),
        ("unknown", "postmodern", 0),
    ] {
        let at = now - Duration::from_secs(hours * 60 * 60);
        store.remember_era(&key(&destinations[name]), era, at.as_micros() as i64).await.unwrap();
    }
    // Another server under a name that is known: nothing was learned of it.
    store.remember_era("fresh other", "modern", 0).await.unwrap();
    let expected = [("fresh", "legacy"), ("set", "legacy"), ("stale", "auto"), ("steady", "auto"), ("unknown", "auto")]
        .map(|(name, era)| (name.to_owned(), era.to_owned()));
    // While a daemon has it open, and after.
    assert_eq!(eras(&desk), expected);
    store.close();
    assert_eq!(eras(&desk), expected);
    let table = desk.list("").unwrap();
    assert!(
        table.contains("set      stdio  legacy (set)  shared") && table.contains("fresh    stdio  legacy   "),
        "{table}"
    );
}

#[test]
fn a_list_makes_no_database_and_does_without_one_that_is_broken() {
    let desk = Desk::new(Some(ERAS));
    assert!(eras(&desk).iter().all(|(name, era)| era == "auto" || name == "set"));
    assert_eq!(fs::read_dir(desk.here()).unwrap().count(), 1);
    let home = desk.here().join("home");
    fs::create_dir(&home).unwrap();
    assert!(eras(&desk).iter().all(|(name, era)| era == "auto" || name == "set"));
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    fs::write(home.join("prism.db"), "no database ".repeat(1000)).unwrap();
    assert!(eras(&desk).iter().all(|(name, era)| era == "auto" || name == "set"));
}

#[test]
fn a_url_is_added_with_what_was_said_of_it() {
    let desk = Desk::new(Some(COMMENTED)).trusting();
    let report = desk
        .add(
            "docs --url https://example.com/mcp?a=b --type sse --header Authorization=env:NOPE --header X-Key:k=v \
             --era modern --legacy-sse --event-names method --process per_session --max-sessions 3",
        )
        .unwrap();
    let added = "\n[destination.docs]\nurl = \"https://example.com/mcp?a=b\"\ntype = \"sse\"\nera = \"modern\"\n\
                 sse_event_names = \"method\"\nlegacy_sse = true\n\
                 headers = { Authorization = \"env:NOPE\", X-Key = \"k=v\" }\nprocess = \"per_session\"\n\
                 max_sessions = 3\n";
    assert_eq!(desk.text(), format!("{COMMENTED}{added}"));
    assert_eq!(
        report.text,
        format!(
            "added docs in {}\n  server   https://example.com/mcp\n  process  per_session\n  \
             url      http://127.0.0.1:9/docs/mcp\nnext: prism serve --detach",
            desk.file().display()
        )
    );
    assert_eq!(report.warnings, ["NOPE is not set here; it must be where the daemon starts"]);
}

#[test]
fn a_header_may_be_typed_as_curl_wants_it() {
    let desk = Desk::new(None);
    for (typed, name, value) in [
        ("Authorization: Bearer env:T", "Authorization", "Bearer env:T"),
        ("X-A:b", "X-A", "b"),
        ("X-B=c: d", "X-B", "c: d"),
        ("X-C: c=d", "X-C", "c=d"),
        ("X-D:", "X-D", ""),
    ] {
        let command = AddArgs::augment_args(clap::Command::new("test").no_binary_name(true));
        let words = ["docs", "--url", "http://localhost/mcp", "--header", typed, "--force"];
        let add = AddArgs::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap();
        add.apply(desk.here(), &desk.env).unwrap();
        let written = file::load_written(&desk.here().join("home/prism.toml")).unwrap();
        let headers = written.destinations["docs"].http.clone().unwrap().headers;
        assert_eq!(headers.into_iter().collect::<Vec<_>>(), [(name.to_owned(), value.to_owned())], "{typed}");
    }
}

#[test]
fn the_undo_of_a_removed_url_brings_everything_back() {
    for line in [
        "docs --url https://example.com/mcp --header A=env:B --type sse --era auto --event-names method \
         --process shared --max-sessions 3 --legacy-sse",
        "docs --url https://example.com/mcp",
        "docs --era modern --event-names message --legacy-sse -- cat -u",
    ] {
        let desk = Desk::new(None);
        desk.add(line).unwrap();
        let path = desk.here().join("home/prism.toml");
        let before = file::load_written(&path).unwrap();
        let text = desk.remove("docs").unwrap();
        assert_eq!(text, format!("removed docs from {}\nundo: prism add {line}", path.display()));
        desk.add(line).unwrap();
        assert_eq!(file::load_written(&path).unwrap(), before);
    }
}

#[test]
fn the_undo_names_what_cannot_be_typed() {
    let desk = Desk::new(Some(
        "[destination.a]\ncommand = [\"a\"]\ntype = \"stdio\"\nlegacy_sse = false\n\
         [destination.b]\nurl = \"http://b/?x\"\ntype = \"sse\"\nlegacy_sse = false\n",
    ));
    let text = desk.remove("a").unwrap();
    let expected = "undo: prism add a -- a\nand below [destination.a]:\n  type = \"stdio\"\n  legacy_sse = false";
    assert!(text.ends_with(expected), "{text}");
    let text = desk.remove("b").unwrap();
    let expected = "undo: prism add b --url 'http://b/?x' --type sse\nand below [server.b]:\n  legacy_sse = false";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn one_kind_of_destination_replaces_the_other() {
    let desk = Desk::new(Some("[destination.a]\ncommand = [\"a\"]\n[destination.a.env]\nA = \"b\"\n"));
    let report = desk.add("a --force --url http://localhost/mcp --header B=c").unwrap();
    assert!(report.text.contains("before: prism add a --env A=b -- a\n"), "{}", report.text);
    assert_eq!(desk.text(), "[destination.a]\nurl = \"http://localhost/mcp\"\nheaders = { B = \"c\" }\n");
    let report = desk.add("a --force -- cat").unwrap();
    assert!(report.text.contains("before: prism add a --url http://localhost/mcp --header B=c\n"), "{}", report.text);
    assert_eq!(desk.text(), "[destination.a]\ncommand = [\"cat\"]\n");
}

#[test]
fn options_that_do_not_fit_together_are_refused_and_change_nothing() {
    let desk = Desk::new(Some(COMMENTED));
    for (line, why) in [
        (
            "web",
            "there is neither a command nor --url\n  \
             fix: prism add web -- npx -y some-mcp-server, or prism add web --url https://example.com/mcp",
        ),
        ("web --url http://x -- cat", "a command and --url are two servers\n  fix: keep one of the two"),
        (
            "web --type sse -- cat",
            "--type is for --url, and there is a command\n  fix: take it out, or prism add web --url URL",
        ),
        (
            "web --header A=b -- cat",
            "--header is for --url, and there is a command\n  fix: take it out, or prism add web --url URL",
        ),
        (
            "web --url http://x --env A=b",
            "--env is for a command, and there is a --url\n  fix: take it out; a URL is told things by --header",
        ),
        ("web --url http://x --cwd /", "--cwd is for a command, and there is a --url"),
        ("web --url x", "option --url: url is not an absolute http or https URL"),
        ("web --url http://x --header Accept=b", "option --header: Accept belongs to the protocol"),
    ] {
        desk.refuses_to_add(line, why);
    }
    for line in ["web --url", "web --url http://x --type stdio", "web --url http://x --header A", "web --era old -- x"]
    {
        assert!(parse::<AddArgs>(line).is_err(), "{line}");
    }
}

#[test]
fn an_empty_list_says_how_to_add_and_makes_no_folder() {
    let desk = Desk::new(None);
    assert!(desk.list("").unwrap().contains("next: prism add files -- "));
    assert_eq!(desk.list("--json").unwrap(), "[]");
    assert_eq!(fs::read_dir(desk.here()).unwrap().count(), 0);
    fs::write(desk.file(), "port = 1\n").unwrap();
    assert!(desk.list("").unwrap().contains("next: prism add files -- "));
}

#[test]
fn a_variable_that_only_the_daemon_has_stops_neither_list_nor_add() {
    let desk = Desk::new(Some("[destination.a]\ncommand = [\"a\"]\nenv = { T = \"env:NOPE\" }\n"));
    assert!(desk.list("").unwrap().contains("a "));
    desk.add("web -- cat").unwrap();
}

#[test]
fn a_command_given_as_one_word_is_told_apart() {
    let desk = Desk::new(None);
    let mut add: AddArgs = parse("web -- x").unwrap();
    add.target.command = vec!["npx -y x".to_owned()];
    let report = add.apply(desk.here(), &desk.env).unwrap();
    assert!(report.warnings[0].ends_with("fix: give each word by itself: prism add web -- npx -y x"));
}
