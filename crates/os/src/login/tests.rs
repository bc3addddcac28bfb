use super::*;
use crate::testing::environment;

const LONG: Duration = Duration::from_secs(20);

/// A home with these files, whose shell is asked.
struct Desk(PathBuf);

impl Desk {
    fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("prism-login-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn ask(&self, shell: &Path, patience: Duration) -> Option<String> {
        let mut env = environment();
        env.insert("HOME".into(), self.0.clone().into());
        env.insert("PATH".into(), "/usr/bin:/bin".into());
        path(shell, &env, patience).map(|path| path.into_string().unwrap())
    }

    fn bash(&self) -> Option<String> {
        self.ask(Path::new("/bin/bash"), LONG)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_profile_that_prints_is_heard_out() {
    let profile = "echo Welcome; echo \"$PATH\"; PATH=/opt/own/bin:$PATH";
    let desk = Desk::new("prints", &[(".bash_profile", profile), (".bash_logout", "echo bye")]);
    let path = desk.bash().unwrap();
    assert!(path.starts_with("/opt/own/bin:"), "{path}");
    assert!(!path.contains("Welcome") && !path.contains('\n'), "{path}");
}

#[test]
fn the_files_of_interactive_shells_count_too() {
    // What version managers write there, behind the line that most distributions begin it with.
    let rc = "case $- in *i*) ;; *) return;; esac\nexport PATH=\"$HOME/nvm/bin:$PATH\"";
    let desk = Desk::new("rc", &[(".bash_profile", ". ~/.bashrc"), (".bashrc", rc)]);
    assert!(desk.bash().unwrap().contains("/nvm/bin:"));
}

#[test]
fn a_profile_that_asks_hears_nothing_and_goes_on() {
    let desk = Desk::new("asks", &[(".bash_profile", "read -p 'update? ' answer; PATH=/asked/bin:$PATH")]);
    assert!(desk.bash().unwrap().starts_with("/asked/bin:"));
}

#[test]
fn a_profile_that_hangs_is_left_behind() {
    let desk = Desk::new("hangs", &[(".bash_profile", "sleep 1000")]);
    let began = Instant::now();
    assert_eq!(desk.ask(Path::new("/bin/bash"), Duration::from_millis(500)), None);
    assert!(began.elapsed() < LONG);
}

#[test]
fn a_profile_that_becomes_another_shell_is_asked_as_one_that_is_not_interactive() {
    let profile = "case $- in *i*) exec cat;; esac\nPATH=/plain/bin:$PATH";
    let desk = Desk::new("becomes", &[(".bash_profile", profile)]);
    assert!(desk.bash().unwrap().starts_with("/plain/bin:"));
}

#[test]
fn one_that_leaves_a_job_behind_is_not_waited_for() {
    let desk = Desk::new("job", &[(".bash_profile", "sleep 1000 &\nPATH=/job/bin:$PATH")]);
    let began = Instant::now();
    assert!(desk.bash().unwrap().starts_with("/job/bin:"));
    assert!(began.elapsed() < LONG / 2);
}

#[test]
fn a_shell_that_does_not_understand_has_no_answer() {
    for script in
        ["#!/bin/sh\nexit 2\n", "#!/bin/sh\necho nothing\n", "#!/bin/sh\nprintf __prism_path__no__prism_path__\n"]
    {
        let desk = Desk::new("odd", &[("shell", script)]);
        assert_eq!(desk.ask(&desk.0.join("shell"), LONG), None, "{script}");
    }
}

#[test]
fn each_folder_is_there_once_and_the_first_ones_come_first() {
    let merged = |first: &str, second: &str| merged(OsStr::new(first), OsStr::new(second)).into_string().unwrap();
    assert_eq!(merged("/a:/b:/a", "/c:/b::/d"), "/a:/b:/c:/d");
    assert_eq!(merged("", "/c"), "/c");
    assert_eq!(merged("/a", ""), "/a");
}

#[test]
fn the_shell_is_the_variables_or_the_users() {
    assert_eq!(shell(Some(OsStr::new("/bin/sh"))), Some("/bin/sh".into()));
    let users = "root:x:0:0:root:/root:/bin/bash\nme:x:1000:1000:,,,:/home/me:/usr/bin/fish\nno:x:7:7::/:\n";
    assert_eq!(entry(users, 1000), Some("/usr/bin/fish".into()));
    assert_eq!(entry(users, 7), None);
    assert_eq!(entry(users, 8), None);
    let own = shell(None);
    for odd in ["/usr/sbin/nologin", "/bin/false", "sh", "/no/such/shell", "/etc/passwd"] {
        assert_eq!(shell(Some(OsStr::new(odd))), own, "{odd}");
    }
}
