//! Editors' configs that lead nowhere: to an old port, with an old token, or to a program that is gone. Where they are and
//! how they are read is `prism_install`, so every surface that `prism install` knows is looked at.

use std::{collections::BTreeSet, path::Path};

use prism_os::program::{self, ProgramLookupError};
use serde_json::Value;

use super::{DoctorContext, Finding};
use crate::cli::configs::is_there;
use prism_config::{Env, home::TOKEN_FILE};
use prism_install::{
    ChangeRecords, InstallError,
    entry::{self, EntryMarks},
    found::{self, PrismEntry},
    surface::{Surface, SurfaceScope},
};

/// What a surface's entry for Prism says, and how it is written anew.
struct SurfaceEntry {
    surface: Surface,
    found: PrismEntry,
    fix: String,
}

/// What an entry is compared with. What is not known is not compared.
struct ExpectedEntry<'a> {
    base: Option<&'a str>,
    token: Option<&'a str>,
    home: &'a Path,
}

pub(super) fn check(patient: &DoctorContext) -> Vec<Finding> {
    let token = std::fs::read_to_string(patient.home.join(TOKEN_FILE)).ok();
    let token = token.as_deref().map(str::trim).filter(|_| patient.env.var("PRISM_API_KEY").is_none());
    let base = patient.status.as_ref().map(|status| status.daemon.url.as_str());
    let right = ExpectedEntry { base, token, home: &patient.home };
    let (entries, mut findings) = entries(patient, &right);
    findings.extend(entries.iter().map(|entry| judge(entry, &right, patient.env)));
    if findings.is_empty() {
        let fix = match Surface::ALL.into_iter().any(|surface| is_there(surface, patient.env)) {
            true => "prism install --all",
            false => "prism install cursor, or another one that `prism install --help` names",
        };
        return vec![Finding::note("editors", "none knows of Prism yet", fix)];
    }
    findings
}

/// The entries for Prism in the configs of this user and of the project one is in, and the configs that are broken.
fn entries(patient: &DoctorContext, right: &ExpectedEntry) -> (Vec<SurfaceEntry>, Vec<Finding>) {
    let url = right.base.map(|base| format!("{base}/mcp"));
    let url = url.or_else(|| patient.config.as_ref().map(|config| config.root_url()));
    let marks = EntryMarks { url: url.unwrap_or_default(), token: right.token.map(str::to_owned) };
    let records = ChangeRecords::new(&patient.home);
    let here = std::env::current_dir().unwrap_or_default();
    let scopes = [(SurfaceScope::User, ""), (SurfaceScope::Project(&here), " --project")];
    let (mut entries, mut broken, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (scope, option) in scopes {
        for surface in Surface::ALL {
            // A project's may be the user's own.
            let Some(path) = surface
                .file(scope, patient.env)
                .ok()
                .filter(|path| path.canonicalize().is_ok_and(|real| seen.insert(real)))
            else {
                continue;
            };
            match found::find(surface, &path, &marks, &records) {
                Ok(Some(found)) => {
                    let force = if found.ours { "" } else { " --force" };
                    let fix = format!("prism install {}{option}{force}", surface.name());
                    entries.push(SurfaceEntry { surface, found, fix });
                }
                Ok(None) => {}
                Err(error) => broken.push(unreadable(surface, &error)),
            }
        }
    }
    (entries, broken)
}

/// A config that its own program cannot read either, or that is not for this user to read.
fn unreadable(surface: Surface, error: &InstallError) -> Finding {
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default().trim_end_matches("; nothing was changed");
    Finding::note(surface.name(), said, format!("mend it, then prism install {}", surface.name()))
}

fn judge(entry: &SurfaceEntry, right: &ExpectedEntry, env: &Env) -> Finding {
    let SurfaceEntry { surface, found: PrismEntry { path, value, .. }, fix } = entry;
    let (surface, file) = (surface.name(), path.display());
    if let Some(url) = entry::url(value) {
        let base = right.base.map(|base| base.trim_end_matches('/'));
        // `localhost` is the same place.
        let told = url.replace("://localhost:", "://127.0.0.1:");
        if base.is_some_and(|base| told != base && !told.starts_with(&format!("{base}/"))) {
            let said = format!("{file} leads to {url}, and the daemon is at {}", base.unwrap_or_default());
            return Finding::wrong(surface, said, fix);
        }
        let bearer = entry::headers(value).find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let bearer = bearer.and_then(|(_, value)| value.as_str());
        let shown = bearer.and_then(|bearer| bearer.strip_prefix("Bearer ")).map(str::trim);
        // One that stands elsewhere (${…}) is that editor's own affair.
        if let (Some(shown), Some(token)) = (shown.filter(|shown| !shown.contains(['$', '{'])), right.token)
            && shown != token
        {
            return Finding::wrong(surface, format!("{file} has another token than the daemon"), fix);
        }
        let said = if base.is_some() { "leads to the daemon" } else { "leads to Prism's port" };
        return Finding::ok(surface, format!("{file} {said}"));
    }
    let words = entry::words(value);
    let Some(program) = words.first() else {
        let said = format!("the entry `prism` in {file} has neither a URL nor a command");
        return Finding::wrong(surface, said, fix);
    };
    if let Err(absent) = program::find(program, None, env.var("PATH").unwrap_or_default()) {
        let is_gone = matches!(absent, ProgramLookupError::NotOnPath { .. } | ProgramLookupError::NoFile { .. });
        // An entry that is written anew leads to a program that is there.
        let fix = if is_gone { fix.clone() } else { format!("{}; or {fix}", absent.fix()) };
        return Finding::wrong(surface, format!("{file} leads nowhere: {absent}"), fix);
    }
    if let Some(other) = home_of(value).filter(|home| *home != right.home) {
        let said =
            format!("{file} leads to the Prism of {}, and this one is {}", other.display(), right.home.display());
        return Finding::note(surface, said, fix);
    }
    Finding::ok(surface, format!("{file} starts {program:?}"))
}

/// The home that the shim is told, if it is.
fn home_of(entry: &Value) -> Option<&Path> {
    ["env", "environment"].iter().find_map(|key| entry.get(key)?.get("PRISM_HOME")?.as_str()).map(Path::new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::doctor::FindingVerdict;

    fn judged(value: Value, base: Option<&str>, token: Option<&str>) -> (FindingVerdict, String) {
        let found = PrismEntry { path: "mcp.json".into(), value, ours: true };
        let entry = SurfaceEntry { surface: Surface::Cursor, found, fix: "prism install cursor".to_owned() };
        let right = ExpectedEntry { base, token, home: Path::new("/home/ann/.prism") };
        let finding = judge(&entry, &right, &Env::from([("PATH", "/bin:/usr/bin")]));
        assert_eq!(finding.fix.is_some(), finding.verdict != FindingVerdict::Ok);
        (finding.verdict, finding.said)
    }

    #[test]
    fn what_leads_to_the_daemon_is_well_and_what_does_not_is_named() {
        let entry = |port: u16| json!({"url": format!("http://localhost:{port}/mcp"), "headers": {"authorization": "Bearer right"}});
        let base = Some("http://127.0.0.1:7411");
        assert_eq!(judged(entry(7411), base, Some("right")).0, FindingVerdict::Ok);
        let (verdict, said) = judged(entry(7412), base, Some("right"));
        assert!(verdict == FindingVerdict::Wrong && said.contains("leads to http://localhost:7412/mcp"), "{said}");
        assert!(
            judged(entry(7411).to_string().replace("7411", "74110").parse::<Value>().unwrap(), base, None)
                .1
                .contains("leads to"),
            "a port that begins the same is another"
        );
        let (verdict, said) = judged(entry(7411), base, Some("other"));
        assert!(verdict == FindingVerdict::Wrong && !said.contains("right"), "no secret is shown: {said}");
        let elsewhere =
            json!({"url": "http://127.0.0.1:7411/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}});
        assert_eq!(judged(elsewhere, base, Some("other")).0, FindingVerdict::Ok);
        assert_eq!(judged(entry(1), None, None).0, FindingVerdict::Ok, "nobody runs that it could be compared with");
    }

    #[test]
    fn a_program_that_is_gone_is_named() {
        assert_eq!(judged(json!({"command": "sh", "args": ["stdio"]}), None, None).0, FindingVerdict::Ok);
        assert_eq!(judged(json!({"command": ["sh", "stdio"]}), None, None).0, FindingVerdict::Ok);
        let gone = judged(json!({"command": "/no/such/prism"}), None, None);
        let said = "mcp.json leads nowhere: its program /no/such/prism does not exist";
        assert_eq!(gone, (FindingVerdict::Wrong, said.to_owned()));
        assert_eq!(judged(json!({}), None, None).0, FindingVerdict::Wrong);
        // there all the same, and only not to be started.
        let folder = tempfile::tempdir().unwrap();
        let shim = folder.path().join("prism");
        std::fs::write(&shim, "").unwrap();
        let (verdict, said) = judged(json!({"command": shim}), None, None);
        assert!(verdict == FindingVerdict::Wrong && said.ends_with("prism is not executable"), "{said}");
    }

    #[test]
    fn a_shim_that_is_told_another_home_is_named() {
        let entry = |key: &str, home: &str| json!({"command": "sh", "args": ["stdio"], key: {"PRISM_HOME": home}});
        assert_eq!(judged(entry("env", "/home/ann/.prism"), None, None).0, FindingVerdict::Ok);
        for key in ["env", "environment"] {
            let (verdict, said) = judged(entry(key, "/srv/prism"), None, None);
            assert!(verdict == FindingVerdict::Note && said.contains("the Prism of /srv/prism"), "{said}");
        }
    }
}
