//! Keeps an eye on the config's files, and has the daemon go on with what they say (D-09).

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use tokio::time::{MissedTickBehavior, interval};

use crate::serve::DaemonService;
use prism_config::file::LoadedConfig;

/// How often the files are looked at. Looking asks the kernel for a few numbers, works on every filesystem, through
/// links, and for a file that is not there yet; being told would do none of that.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Where the config comes from, and how it is read.
pub struct ConfigReloader {
    /// The files that it may be in, whether they are there or not.
    files: Vec<PathBuf>,
    load: Box<dyn Fn() -> Result<LoadedConfig> + Send + Sync>,
    in_effect: Looks,
}

/// By what a change is noticed: size, time and identity of each file that is there.
type Looks = Vec<Option<(u64, Option<SystemTime>, u64)>>;

impl ConfigReloader {
    /// What is read from the files after this is called is what they look like now, or newer.
    pub fn new(files: Vec<PathBuf>, load: impl Fn() -> Result<LoadedConfig> + Send + Sync + 'static) -> Self {
        let in_effect = look(&files);
        Self { files, load: Box::new(load), in_effect }
    }

    /// Reads the config.
    pub fn load(&self) -> Result<LoadedConfig> {
        (self.load)()
    }

    /// Goes on for as long as the daemon does.
    pub async fn watch(mut self, front: Arc<DaemonService>) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = look(&self.files);
        loop {
            ticks.tick().await;
            let now = look(&self.files);
            // Twice the same: whoever writes it is done.
            if now == last && now != self.in_effect {
                self.reload(&front).await;
                self.in_effect.clone_from(&now);
            }
            last = now;
        }
    }

    async fn reload(&self, front: &DaemonService) {
        let outcome = match self.load() {
            Ok(loaded) => {
                front.guard_files(&loaded.guarded);
                front
                    .reload(loaded.config, loaded.file.as_deref(), &loaded.untrusted)
                    .await
                    .map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            front.about().kept_old_config(&format!("{error:#}"));
        }
    }
}

fn look(files: &[PathBuf]) -> Looks {
    let look = |file: &PathBuf| fs::metadata(file).ok().map(|data| (data.len(), data.modified().ok(), data.ino()));
    files.iter().map(look).collect()
}
