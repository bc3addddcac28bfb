//! The folder that `prism add` writes down for a command with a path from here.

use super::*;

#[test]
fn a_path_from_here_is_kept_by_the_folder_it_was_typed_in() {
    let desk = Desk::new(None);
    let here = desk.here().canonicalize().unwrap();
    let report = desk.add("files -- cat -u .").unwrap();
    let written = fs::read_to_string(desk.here().join("home/prism.toml")).unwrap();
    let cwd = format!("cwd = {:?}\n", here.to_str().unwrap());
    assert_eq!(written, format!("[server.files]\ncommand = [\"cat\", \"-u\", \".\"]\n{cwd}"));
    let said = format!("  folder   {} (so that \".\" keeps meaning this folder; change with --cwd)\n", here.display());
    assert!(report.text.contains(&said), "{}", report.text);
    assert_eq!(report.warnings, [""; 0]);

    // Nothing is from here, or somebody said from where.
    desk.add("plain -- cat docs").unwrap();
    desk.add("elsewhere --cwd /tmp -- cat .").unwrap();
    desk.add("home --cwd ~/x -- cat ./x").unwrap();
    let written = file::load_written(&desk.here().join("home/prism.toml")).unwrap();
    let cwd = |name: &str| written.destinations[name].cwd.as_ref().map(|cwd| cwd.to_str().unwrap().to_owned());
    assert_eq!((cwd("plain"), cwd("elsewhere"), cwd("home")), (None, Some("/tmp".into()), Some("~/x".into())));
}

#[test]
fn a_projects_own_file_can_be_cloned_to_elsewhere() {
    let desk = Desk::new(Some(""));
    let report = desk.add("files -- ./serve --root=./data").unwrap();
    assert_eq!(desk.text(), "[server.files]\ncommand = [\"./serve\", \"--root=./data\"]\ncwd = \".\"\n");
    assert!(report.text.contains(&format!("  folder   {} (so that", desk.here().display())), "{}", report.text);
    assert!(report.warnings[0].contains("\"./serve\" was not found"), "{:?}", report.warnings);
    // It is looked for there, and not where this process happens to be.
    let program = desk.here().join("serve");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let report = desk.add("files --force -- ./serve").unwrap();
    assert_eq!(report.warnings, [""; 0]);
    assert!(report.text.contains(&format!("--cwd {} --", desk.here().display())), "{}", report.text);

    // From a folder below, by the name of the file.
    let below = desk.here().join("docs");
    fs::create_dir(&below).unwrap();
    let line = format!("docs --config {} -- cat .", desk.file().display());
    parse::<AddArgs>(&line).unwrap().apply(&below, &desk.env).unwrap();
    assert!(desk.text().ends_with("[server.docs]\ncommand = [\"cat\", \".\"]\ncwd = \"docs\"\n"), "{}", desk.text());
}
