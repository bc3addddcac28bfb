//! Prism's extension in editors: whether it is there and as new as this program, and whether a window of the editor is
//! connected. None has to be: the built-in editor does what no other does.

use prism_api::gate::PluginsPage;

use super::{DoctorContext, Finding};
use crate::cli::gate::GateClient;
use prism_install::{
    extension::{VERSION, kept::ExtensionStore, program::EditorProgram},
    surface::Surface,
};

pub(super) async fn check(patient: &DoctorContext<'_>) -> Vec<Finding> {
    let connected = connected(patient).await;
    let mut findings = Vec::new();
    for surface in Surface::ALL.into_iter().filter(|surface| !surface.extension_programs().is_empty()) {
        let windows = connected.as_ref().map(|all| all.iter().filter(|name| is_of(surface, name)).count());
        let programs = EditorProgram::all_of(surface, patient.env);
        findings.extend(programs.iter().map(|program| judge(surface, program, windows)));
        if programs.is_empty() && windows.is_some_and(|windows| windows > 0) {
            findings.push(Finding::ok(surface.name(), format!("its extension runs{}", connection(windows))));
        } else if ExtensionStore::new(&patient.home).all(surface).iter().any(|kept| kept.program.is_none()) {
            let (title, package) = (surface.title(), ExtensionStore::new(&patient.home).package());
            let said = format!("the extension for {title} waits in {}", package.display());
            let fix = format!("in {title}, run Extensions: Install from VSIX…");
            findings.push(Finding::note(surface.name(), said, fix));
        }
    }
    findings
}

/// The editors that are connected, by name; `None` if no daemon can be asked.
async fn connected(patient: &DoctorContext<'_>) -> Option<Vec<String>> {
    patient.status.as_ref()?;
    let gate = GateClient::running(patient.env).ok().flatten()?;
    let PluginsPage { plugins } = gate.get("/mcp/plugins").await.ok()?;
    Some(plugins.into_iter().map(|plugin| plugin.plugin).collect())
}

/// Whether a plugin is a surface's: the extension calls itself as its editor does.
fn is_of(surface: Surface, plugin: &str) -> bool {
    match surface {
        Surface::VsCode => matches!(plugin, "vscode" | "vscodium" | "code-server"),
        surface => plugin == surface.name(),
    }
}

fn judge(surface: Surface, program: &EditorProgram, windows: Option<usize>) -> Finding {
    let (name, shown) = (surface.name(), program.path.display());
    let install = format!("prism install {name}");
    match program.version() {
        Ok(Some(version)) if version == VERSION => {
            Finding::ok(name, format!("{shown} has extension {version}{}", connection(windows)))
        }
        Ok(Some(version)) => {
            let said = format!("{shown} has extension {version}, and this is Prism {VERSION}");
            Finding::note(name, said, format!("{install}; with --force if it came from elsewhere"))
        }
        Ok(None) => Finding::ok(name, format!("{shown} has no extension of Prism; {install} adds it")),
        Err(error) => Finding::skipped(name, error.to_string()),
    }
}

fn connection(windows: Option<usize>) -> String {
    match windows {
        None => String::new(),
        Some(0) => "; no window is connected".to_owned(),
        Some(1) => "; a window is connected".to_owned(),
        Some(windows) => format!("; {windows} windows are connected"),
    }
}
