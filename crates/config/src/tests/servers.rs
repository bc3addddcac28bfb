//! The two words for a server's table: `[server.NAME]`, and `[destination.NAME]`, which goes on working.

use super::*;

const SERVER: &str = "[server.files]\ncommand = [\"x\"]\n";

#[test]
fn servers_by_the_older_word_and_by_the_newer_one_are_one_set() {
    let old = SERVER.replace("server", "destination");
    let (new, old) = (config(SERVER).unwrap(), config(&old).unwrap());
    assert_eq!(new.destinations["files"].key().to_string(), "server.files");
    assert_eq!(old.destinations["files"].key().to_string(), "destination.files");
    let plain =
        |config: &Config| DestinationConfig { table: ServerTable::Server, ..config.destinations["files"].clone() };
    assert_eq!(plain(&new), plain(&old), "the word is all that they differ in");

    let both = config(
        "[destination.z]\ncommand = [\"z\"]\n[server.m]\nurl = \"http://localhost/mcp\"\n[destination.a]\ncommand = [\"a\"]\n\
         [profile.web]\nonly = [\"a\", \"m\"]\n",
    );
    let keys: Vec<String> = both.unwrap().destinations.values().map(|one| one.key().to_string()).collect();
    assert_eq!(keys, ["destination.a", "server.m", "destination.z"]);
}

#[test]
fn one_name_by_both_words_is_refused_and_both_places_are_named() {
    refused(
        &format!("{SERVER}[destination.files.tools]\ndeny = [\"*\"]"),
        "prism.toml:3:14: server \"files\" is there twice: as [destination.files] here, and as [server.files] at \
         prism.toml:1:9\n  [destination.files.tools]\n  fix: if that is one server, write [server.files] here too, and \
         each setting once; if they are two, call this one [destination.files-2], for example",
    );
    refused(
        &format!("port = 1\ndestination = {{ files = {{ command = [\"y\"] }} }}\n{SERVER}"),
        "prism.toml:3:9: server \"files\" is there twice: as [server.files] here, and as [destination.files] at \
         prism.toml:2:17\n  [server.files]\n  fix: if that is one server, write [destination.files] here too, and each \
         setting once; if they are two, call this one [server.files-2], for example",
    );
}

#[test]
fn messages_name_the_word_that_stands_in_the_file() {
    for (wrong, said) in [
        ("cwd = 3", "prism.toml:3:7: WORD.files.cwd is 3"),
        ("type = \"sse\"", "WORD.files.type is \"sse\", and there is a command"),
        ("env = { A = 1 }", "WORD.files.env.A is not a text"),
        ("tools = { deny = 1 }", "WORD.files.tools.deny is 1"),
        ("tools = { dny = 1 }", "fix: did you mean \"deny\"?"),
        ("tools = { xxxxxxxx = 1 }", "fix: the keys of [WORD.NAME.tools] are allow"),
        ("sandbox = \"yes\"", "WORD.files.sandbox is \"yes\""),
        ("sandbox = { xxxxxxxx = 1 }", "fix: the keys of [WORD.NAME.sandbox] are folders"),
        ("port = 1", "put it above the first [WORD.NAME] line"),
        ("tools = 1", "as in [WORD.files.tools] and below it"),
        ("[hub]\nhub = 1", "put it above the first line in [brackets]"),
        ("[profile.a]\nonly = [\"nope\"]", "which is no server"),
        ("hub = false\n[profile.a]\nonly = [\"files\"]", "take hub = false out of [WORD.files]"),
    ] {
        for word in ServerTable::ALL {
            let word = word.as_str();
            let text = format!("{}{wrong}\n", SERVER.replace("server", word));
            let checked = RawConfig::parse(Path::new("prism.toml"), &text)
                .and_then(|raw| raw.check_profiles(&raw.config(&Env::default(), &Flags::default())?, &[]));
            let error = checked.unwrap_err().to_string();
            assert!(error.contains(&said.replace("WORD", word)), "{text}{error}");
        }
    }
}

// A hint before the table, too, and by the nearer word where there are both.
#[test]
fn hints_name_the_word_of_the_file_or_else_the_newer_one() {
    let fix = |text: &str| {
        let error = config(text).unwrap_err().to_string();
        error.split_once("fix: ").expect("it has one").1.to_owned()
    };
    let below = |word: &str| format!("\"command\" belongs to a server: put it below a [{word}.NAME] line");
    assert_eq!(fix("command = [\"x\"]"), below("server"));
    assert_eq!(fix("command = [\"x\"]\n[destination.a]\ncommand = [\"x\"]"), below("destination"));
    assert!(fix("[mcpServers.a]").starts_with("[server.NAME] for each server"));
    assert!(fix("[servers.a]\n[destination.b]\ncommand = [\"x\"]").starts_with("[destination.NAME] for each server"));
    assert_eq!(fix("[servr.a]\ncommand = [\"x\"]"), "did you mean \"server\"?");
    assert_eq!(fix("[destnation.a]\ncommand = [\"x\"]"), "did you mean \"destination\"?");
    let all = fix("xxxxxxxxxxxxxxxxxxxx = 1");
    assert!(all.ends_with("workspace, server, destination"), "{all}");

    let both = format!("[destination.a]\ncommand = [\"a\"]\n{SERVER}");
    assert!(fix(&format!("{both}sandbox = {{ xxxxxxxx = 1 }}")).contains("[server.NAME.sandbox]"));
    assert!(fix(&format!("{both}port = 1")).ends_with("above the first [destination.NAME] line"));
}

#[test]
fn a_table_that_is_none_is_shown_one_by_its_own_word() {
    for (text, example) in [
        ("server = 1", "[server.files]"),
        ("server.a = 1", "[server.files]"),
        ("[destination]\na = 1", "[destination.files]"),
        ("destination = { a = 1 }", "[destination.files]"),
        ("[server]\na = { tools = 1 }", "[server.files.tools]"),
    ] {
        let error = config(text).unwrap_err().to_string();
        assert!(text == "server = 1" || error.contains(&format!("a table, as in {example} and below it")), "{error}");
        assert!(!error.contains("[server") || !text.contains("destination"), "{error}");
    }
}

#[test]
fn a_new_entry_goes_below_the_word_that_the_file_has() {
    let of = |text: &str, name: &str| {
        let document: toml_edit::DocumentMut = text.parse().unwrap();
        ServerTable::of_entry(&document, name).to_string()
    };
    let old = SERVER.replace("server", "destination");
    assert_eq!(of("", "a"), "server");
    assert_eq!(of("port = 1", "a"), "server");
    assert_eq!((of(SERVER, "a"), of(SERVER, "files")), ("server".to_owned(), "server".to_owned()));
    assert_eq!((of(&old, "a"), of(&old, "files")), ("destination".to_owned(), "destination".to_owned()));
    let both = format!("{old}[server.b]\ncommand = [\"b\"]\n");
    assert_eq!((of(&both, "a"), of(&both, "files")), ("server".to_owned(), "destination".to_owned()));
    let mut emptied: toml_edit::DocumentMut = old.parse().unwrap();
    emptied["destination"].as_table_mut().unwrap().remove("files");
    assert_eq!(ServerTable::of_entry(&emptied, "files"), ServerTable::Server, "nothing stands there any more");
}

#[test]
fn a_destination_without_a_server_is_shown_both_kinds() {
    for setting in ["cwd = \"/\"", "type = \"sse\"", "headers = { A = \"b\" }"] {
        refused(
            &format!("port = 1\n[destination.files]\n{setting}"),
            "prism.toml:2:14: server \"files\" has neither a command nor a url\n  [destination.files]\n  \
             fix: command = [\"npx\", \"-y\", \"some-mcp-server\"], or url = \"https://example.com/mcp\"",
        );
    }
}
