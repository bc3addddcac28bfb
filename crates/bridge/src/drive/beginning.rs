//! How a child is started with what it is given, and what is said where that does not work.

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use prism_os::{
    child::{Child, ChildSpec, SpawnError},
    program,
};
use tokio::task::spawn_blocking;

use super::{ceiling::MemoryLimit, destination::DestinationState, environment::LaunchEnv};

/// What a link goes on with that wants its server started.
pub enum PreparedStart {
    /// What the server is given.
    Given(LaunchEnv),
    /// It runs already. A sandbox takes longer to start than a link may take for anything.
    Begun(StartedChild),
}

/// A child that nobody speaks to yet. Dropping it ends it.
pub struct StartedChild {
    pub(super) child: Child,
    pub(super) ceiling: Option<MemoryLimit>,
}

/// Looks up what the server is given, and starts it if it is to live in a sandbox.
pub(super) async fn provide(shared: Arc<DestinationState>) -> Result<PreparedStart, String> {
    let given = shared.environment.clone().given(shared.config.clone()).await.map_err(|error| error.to_string())?;
    if given.lodging.is_none() {
        return Ok(PreparedStart::Given(given));
    }
    let begun = spawn_blocking(move || begin(&shared, &given)).await;
    begun.unwrap_or_else(|error| Err(error.to_string())).map(PreparedStart::Begun)
}

/// Starts it. Blocks: for a millisecond, and for one in a sandbox until that stands.
pub(super) fn begin(shared: &DestinationState, given: &LaunchEnv) -> Result<StartedChild, String> {
    let config = &shared.config;
    let cwd = match &given.lodging {
        Some(lodging) => Some(lodging.cwd.as_path()),
        None => config.cwd.as_deref(),
    };
    let ceiling = config.max_memory.map(|bytes| MemoryLimit::of(&config.name, bytes));
    let spec = ChildSpec {
        command: &config.command,
        env: &given.variables,
        cwd,
        cgroup: ceiling.as_ref().and_then(|ceiling| ceiling.cgroup.as_ref()),
        fence: given.lodging.as_ref().map(|lodging| &lodging.fence),
    };
    match Child::spawn(&spec, &shared.owner) {
        Ok(child) => Ok(StartedChild { child, ceiling }),
        Err(error) => Err(told(shared, given, &error)),
    }
}

/// The kernel has few words for it; we may have better ones.
fn told(shared: &DestinationState, given: &LaunchEnv, error: &SpawnError) -> String {
    let config = &shared.config;
    let path = given.variables.get(OsStr::new("PATH")).map(OsString::as_os_str).unwrap_or_default();
    let wanted = config.command.first().map(String::as_str).unwrap_or_default();
    let is_folder_there = config.cwd.as_deref().is_none_or(Path::is_dir);
    match (program::find(wanted, config.cwd.as_deref(), path), error.source()) {
        (Err(absent), _) if is_folder_there => format!("{absent}. Type: {}", absent.fix()),
        (Ok(program), _) if given.lodging.is_some() && is_missing(error) => {
            // Where it really is: a link alone would lead nowhere in there, too.
            let real = program.canonicalize().unwrap_or(program);
            let folder = real.parent().map(PathBuf::from).unwrap_or_default();
            format!(
                "its program {} is not in its sandbox, or what it is run by is not. Type: readable = [{folder:?}] \
                 below [{}.sandbox]",
                real.display(),
                config.key()
            )
        }
        (_, Some(source)) => format!("{error}: {source}"),
        (_, None) => error.to_string(),
    }
}

fn is_missing(error: &SpawnError) -> bool {
    match error {
        SpawnError::NotFound { .. } => true,
        SpawnError::Exec { source, .. } => source.kind() == ErrorKind::NotFound,
        SpawnError::NoCommand | SpawnError::Cwd { .. } => false,
    }
}
