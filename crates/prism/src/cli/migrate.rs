//! `prism migrate`: rewrites entries that speak HTTP+SSE, the transport of the protocol's first revision, to Streamable
//! HTTP in the configs of other programs (W-05).

use std::{process::ExitCode, sync::Arc, time::Duration};

use tokio::{runtime, time::timeout};

use super::{
    configs::{FileOutcome, InstallContext, SurfaceArgs},
    reach,
    tools::NullObserver,
};
use prism_config::{Env, HttpConfig};
use prism_install::{
    ChangePurpose, ConfigFile, InstallError,
    migrate::{self, ConfigMigration, MigrationScope},
    surface::Surface,
};
use prism_mcp::client::{ClientError, QuestionHandler, RevisionChoice};

/// Rewrite SSE entries in other programs' configs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism migrate --dry-run
  prism migrate cursor --all
  prism migrate --undo")]
pub struct MigrateArgs {
    #[command(flatten)]
    surfaces: SurfaceArgs,
    /// Entries that lead to other servers, too, if those answer at /mcp
    #[arg(long)]
    all: bool,
    /// Put everything back as it was before
    #[arg(long, conflicts_with = "all")]
    undo: bool,
}

/// How long another server may take to greet us.
const PATIENCE: Duration = Duration::from_secs(5);

impl MigrateArgs {
    /// Migrates, or undoes it.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let place = InstallContext::find(env)?;
        if self.undo {
            return Ok(self.surfaces.undo(ChangePurpose::Migrate, "migration", &place));
        }
        let mut outcomes = Vec::new();
        let mut changed = false;
        for surface in self.surfaces.named_or_all() {
            match self.plan(surface, &place, env) {
                Ok(Some(ConfigMigration { change, changed: names, kept })) => {
                    changed |= !names.is_empty();
                    let kept = kept.into_iter().map(|(name, reason)| format!("{name} stays: it {reason}"));
                    let lines: Vec<String> = kept.collect();
                    let verb = if self.surfaces.dry_run { "would be rewritten" } else { "rewritten" };
                    let outcome =
                        FileOutcome::of(Some(surface), Ok(change), &self.surfaces, &place.records, |change| {
                            let mut text = format!("{} ({})", surface.title(), change.file.path.display());
                            if !names.is_empty() {
                                text.push_str(&format!("\n  {verb}: {}", names.join(", ")));
                            }
                            lines.iter().for_each(|line| text.push_str(&format!("\n  {line}")));
                            text
                        });
                    outcomes.push(outcome.with("rewritten", names));
                }
                Ok(None) => {}
                Err(error) => outcomes.push(FileOutcome::failed(Some(surface), error.into())),
            }
        }
        let closing = match (outcomes.is_empty(), changed, self.surfaces.dry_run) {
            (true, ..) => vec!["no config has an SSE entry".to_owned()],
            (false, true, false) => vec!["undo: prism migrate --undo".to_owned()],
            _ => Vec::new(),
        };
        Ok(self.surfaces.report(&outcomes, &closing))
    }

    fn plan(
        &self,
        surface: Surface,
        place: &InstallContext,
        env: &Env,
    ) -> Result<Option<ConfigMigration>, InstallError> {
        let path = match self.surfaces.file(surface, place, env) {
            Err(InstallError::NoProject { .. }) if self.surfaces.named().is_empty() => return Ok(None),
            path => path?,
        };
        let reach = MigrationScope { daemon: &place.url, ask: self.all.then_some(&ask) };
        migrate::plan(surface, ConfigFile::open(&path)?, reach, &place.records)
    }
}

/// Asks a server whether it speaks Streamable HTTP, by a real handshake.
fn ask(http: HttpConfig) -> Result<(), String> {
    let greeting = async {
        let opening =
            reach::open(http, RevisionChoice::Auto, PATIENCE, QuestionHandler::Decline, Arc::new(NullObserver));
        let late = |_| Err(ClientError::Timeout { what: "answer".to_owned(), after: PATIENCE });
        match timeout(PATIENCE, opening).await.unwrap_or_else(late) {
            Ok(client) => {
                client.close().await;
                Ok(())
            }
            // It is there, and wants to know who we are; the program that the entry belongs to can tell.
            Err(ClientError::Unauthorized { .. }) => Ok(()),
            Err(fault) => Err(fault.to_string()),
        }
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(greeting)
}
