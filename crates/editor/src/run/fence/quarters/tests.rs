//! Who may move in, and with what. What it is like to live there is tried with a daemon.

use tempfile::TempDir;

use super::*;
use crate::tests::{environment, inner};

struct Place {
    _folder: TempDir,
    real: PathBuf,
    quarters: Arc<ServerSandboxes>,
}

impl Place {
    /// With a home folder, Prism's own in there, and something to work on.
    fn new(env: BTreeMap<OsString, OsString>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        for name in ["home/.prism/secret", "home/work/.git", "elsewhere"] {
            fs::create_dir_all(real.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(real.join("elsewhere"), real.join("home/link")).unwrap();
        let settings = EditorSettings { home: Some(real.join("home")), inner: inner(), ..EditorSettings::default() };
        let prism = real.join("home/.prism");
        let quarters = ServerSandboxes::new(&settings, env, prism.join("children"), vec![prism]);
        Self { _folder: folder, real, quarters }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.real.join(name)
    }

    /// Why a server with these does not move in.
    fn refused(&self, folders: &[PathBuf], readable: &[PathBuf], cwd: Option<&Path>) -> String {
        let lodger = SandboxRequest { cwd, folders, readable, ..lodger() };
        self.quarters.assign(&lodger, &BTreeMap::new()).unwrap_err().to_string()
    }
}

fn lodger<'a>() -> SandboxRequest<'a> {
    let (cwd, folders, readable): (_, &[PathBuf], &[PathBuf]) = (None, &[], &[]);
    SandboxRequest { name: "files", program: "npx", cwd, folders, readable, network: NetworkAccess::All }
}

#[test]
fn what_no_server_is_to_have_is_refused_with_what_to_do() {
    let place = Place::new(BTreeMap::new());
    for (name, said) in [
        ("home", "and your home folder with it; name the folders in there that it needs"),
        ("home/..", "and your home folder with it"),
        ("home/.prism", "which is Prism's own, with its secrets"),
        ("home/.prism/secret", "which is Prism's own, with its secrets"),
        ("home/none", "cannot be opened: No such file or directory"),
    ] {
        let path = [place.path(name)];
        for error in [place.refused(&path, &[], None), place.refused(&[], &path, None)] {
            assert!(error.contains(said) && error.contains(&path[0].display().to_string()), "{name}: {error}");
        }
    }
    let link = [place.path("home/link")];
    for error in
        [place.refused(&link, &[], None), place.refused(&[], &link, None), place.refused(&[], &[], Some(&link[0]))]
    {
        let fix = format!("through a link; write {} in its place", place.path("elsewhere").display());
        assert!(error.contains(&fix), "{error}");
    }
    let error = place.refused(&[], &[], Some(&place.path("home/.prism/secret")));
    assert!(error.contains("which is Prism's own"), "{error}");
    let file = place.path("elsewhere/token");
    fs::write(&file, "secret").unwrap();
    place.quarters.close_files(std::slice::from_ref(&file));
    let error = place.refused(&[], &[file], None);
    assert!(error.contains("which is Prism's own"), "{error}");
}

#[test]
fn without_a_sandbox_nobody_moves_in() {
    let place = Place::new(BTreeMap::new());
    let error = place.refused(&[place.path("home/work")], &[], None);
    assert!(error.contains("install the package `bubblewrap`. Or take `sandbox` out of its settings"), "{error}");
    assert!(!place.path("home/.prism/children").exists());
}

#[test]
fn a_home_lasts_and_temporary_files_do_not() {
    let mut env = environment();
    let place = Place::new(env.clone());
    let folders = [place.path("home/work")];
    fs::write(place.path("elsewhere/ca.pem"), "").unwrap();
    env.insert("SSL_CERT_FILE".into(), place.path("elsewhere/ca.pem").into());
    env.insert("SSL_CERT_DIR".into(), place.path("home").into());
    let lodging = match place.quarters.assign(&SandboxRequest { folders: &folders, ..lodger() }, &env) {
        Ok(lodging) => lodging,
        Err(error) if error.to_string().contains("is not installed") => {
            return crate::tests::skipped(&error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    assert!(lodging.fence.read.contains(&place.path("elsewhere/ca.pem")));
    assert!(!lodging.fence.read.contains(&place.path("home")));
    let room = lodging.fence.room.unwrap();
    let (home, temporary) = (room.home.unwrap(), room.temporary);
    assert_eq!((home.seems, lodging.cwd), (place.path("home"), place.path("home")));
    assert_eq!(home.lies, place.path("home/.prism/children/files/home"));
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o777;
    for path in [&home.lies, &temporary, &place.path("home/.prism/children/files")] {
        assert_eq!(mode(path), 0o700, "{path:?}");
    }
    // Nothing of the person's caches: they are for whoever runs outside.
    let is_cache = |path: &PathBuf| path.ends_with(".npm/_cacache") || path.ends_with(".cache/pip");
    assert!(!lodging.fence.read.iter().any(is_cache));

    fs::write(home.lies.join("kept"), "").unwrap();
    fs::write(temporary.join("gone"), "").unwrap();
    place.quarters.assign(&lodger(), &env).unwrap();
    assert!(temporary.join("gone").exists(), "another one of that server may be using it");
    let next = ServerSandboxes::new(
        &EditorSettings { home: Some(place.path("home")), inner: inner(), ..EditorSettings::default() },
        env.clone(),
        place.path("home/.prism/children"),
        Vec::new(),
    );
    next.assign(&lodger(), &env).unwrap();
    assert!(home.lies.join("kept").exists() && temporary.is_dir() && !temporary.join("gone").exists());
}

#[test]
fn where_it_starts_is_open_for_reading_unless_that_is_all_of_home() {
    let env = environment();
    let place = Place::new(env.clone());
    for (cwd, is_open) in [("home/work", true), ("home", false), ("", false)] {
        let cwd = place.path(cwd);
        let lodging = match place.quarters.assign(&SandboxRequest { cwd: Some(&cwd), ..lodger() }, &env) {
            Ok(lodging) => lodging,
            Err(error) if error.to_string().contains("is not installed") => {
                return crate::tests::skipped(&error.to_string());
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!((lodging.fence.read.contains(&cwd), lodging.cwd), (is_open, cwd));
    }
}

// H1
#[test]
fn what_leads_out_is_not_in_the_environment() {
    let place = Place::new(BTreeMap::new());
    let inside = place.path("home/.uv").into_os_string();
    let given: BTreeMap<OsString, OsString> = [
        ("PATH", "/usr/bin".into()),
        ("SSH_AUTH_SOCK", "/tmp/agent".into()),
        ("DOCKER_HOST", "unix:///tmp/docker".into()),
        ("XDG_RUNTIME_DIR", "/run/user/1".into()),
        ("PRISM_HOME", "/home/me/.prism".into()),
        ("TMPDIR", "/var/tmp/me".into()),
        ("NPM_CONFIG_CACHE", "/var/cache/npm".into()),
        ("UV_CACHE_DIR", inside.clone()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into();
    let left = place.quarters.variables(given);
    let names: Vec<&str> = left.keys().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(names, ["PATH", "TEMP", "TMP", "TMPDIR", "UV_CACHE_DIR", "UV_TOOL_DIR"]);
    assert_eq!((&left[&OsString::from("TMPDIR")], &left[&OsString::from("UV_CACHE_DIR")]), (&"/tmp".into(), &inside));
}
