//! `prism doctor`: looks at everything that goes wrong in practice, and says of each what to type (D-05).
//!
//! Each check is a function that returns findings; this file runs them in order and shows what they found. None changes
//! anything, so that it can be run by anybody at any time.

mod agents;
mod calls;
mod config;
mod daemon;
mod editors;
mod extensions;
mod finding;
mod home;
mod languages;
mod machine;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use prism_api::status::StatusReport;
use prism_config::{Config, Env, duration, home as prism_home, registration::Registration};

use self::finding::{Finding, FindingVerdict};
use super::{reach, say};

/// Check what goes wrong in practice, and say what to type
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism doctor
  prism doctor --json | jq '.[] | select(.verdict == \"wrong\")'

Exit codes: 0 all is well, 1 something is wrong.")]
pub struct DoctorArgs {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// How long each server may take for a real call
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration)]
    timeout: Duration,
    /// Call no server
    #[arg(long)]
    no_calls: bool,
    /// Config file to check, instead of ./prism.toml or the one in Prism's home
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What the checks need to know, and what one found out for the next.
struct DoctorContext<'a> {
    env: &'a Env,
    home: PathBuf,
    registration: Option<Registration>,
    /// The config, if it can be read.
    config: Option<Config>,
    /// What the daemon says of itself, if it does.
    status: Option<StatusReport>,
}

impl DoctorArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(self.examine(env))
    }

    async fn examine(self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = prism_home::folder(env)?;
        let registration = Registration::read(&home);
        let mut patient = DoctorContext { env, home, registration, config: None, status: None };
        let mut findings = Vec::new();
        let mut found = |more: Vec<Finding>| {
            if !self.json {
                more.iter().for_each(Finding::say);
            }
            findings.extend(more);
        };
        found(home::check(&patient));
        let (config, more) = config::check(self.config.as_deref(), &patient);
        patient.config = config;
        found(more);
        let (status, more) = daemon::check(self.config.as_deref(), &patient).await;
        patient.status = status;
        found(more);
        let lacking = [
            config::check_programs(&patient).await,
            config::check_secrets(&patient).await,
            machine::check_servers(&patient),
        ]
        .concat();
        let ill: Vec<String> = lacking.iter().filter(|one| one.is_wrong()).map(|one| one.what.clone()).collect();
        found(lacking);
        found(editors::check(&patient));
        found(agents::check(&patient));
        found(extensions::check(&patient).await);
        // Before anything is started that would end them.
        found(machine::check(&patient));
        found(languages::check(&patient));
        // What is wrong is said once, where it is known what to type.
        let said = |finding: Finding| match finding.is_wrong() && ill.contains(&finding.what) {
            true => Finding::skipped(&finding.what, "does not answer, for what is said above"),
            false => finding,
        };
        found(calls::check(&self, &patient).await.into_iter().map(said).collect());
        let wrong = findings.iter().filter(|finding| finding.is_wrong()).count();
        if self.json {
            say::text(&serde_json::to_string_pretty(&findings)?);
        } else {
            say::line("");
            say::coloured(&summary(&findings));
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn summary(findings: &[Finding]) -> say::Line {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let things = |count: usize| if count == 1 { "1 thing".to_owned() } else { format!("{count} things") };
    let problems = |count: usize| if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
    match (count(FindingVerdict::Wrong), count(FindingVerdict::Note)) {
        (0, 0) => vec![("All is well.".to_owned(), Some(say::Colour::Green))],
        (0, notes) => vec![(format!("Nothing is wrong; {} to know.", things(notes)), Some(say::Colour::Green))],
        (wrong, _) => vec![
            (format!("{}.", problems(wrong)), Some(say::Colour::Red)),
            (if wrong == 1 { " The fix is below it." } else { " The fix is below each." }.to_owned(), None),
        ],
    }
}
