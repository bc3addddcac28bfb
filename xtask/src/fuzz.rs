//! The lane `fuzz`: each target of `crates/core/fuzz` for a few seconds, enough to notice one that falls over. For a night of it:
//! `PRISM_FUZZ_SECS=3600 cargo xtask test fuzz`.
//!
//! The targets are built by cargo alone, all at once. `cargo fuzz` does no more for them, takes each crate in one piece, and is itself
//! longer in compiling than they are. Its flags are these, so whoever has it may use it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

use crate::{
    Place,
    say::say,
    test::{Verdict, pass, succeeds},
};

const SECS: u32 = 5;

/// What libFuzzer needs to see which way an input has gone. Without a sanitizer a stable toolchain will do, and in a crate without
/// `unsafe` one finds nothing.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "--cfg=fuzzing",
];

pub(crate) fn lane(place: &Place) -> anyhow::Result<Verdict> {
    let folder = place.root.join("crates/core/fuzz");
    let mut compiler = Command::new("c++");
    compiler.arg("--version");
    if !succeeds(compiler) {
        return Ok(Verdict::Skipped("install a C++ compiler (g++ or clang): libFuzzer is built with it".into()));
    }
    let secs = match env::var("PRISM_FUZZ_SECS") {
        Ok(secs) => secs.parse().context("PRISM_FUZZ_SECS is a number of seconds")?,
        Err(_) => SECS,
    };
    let (built, programs) = build(place, &folder)?;
    for target in targets(&folder)? {
        say(format_args!("--- {target}, {secs} s"));
        let [corpus, failed] = ["corpus", "failed"].map(|what| built.join(what).join(&target));
        for folder in [&corpus, &failed] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let mut command = Command::new(programs.join(&target));
        command.arg(format!("-max_total_time={secs}")).arg(format!("-artifact_prefix={}/", failed.display()));
        // What is new goes into the first folder; the seeds are only read.
        command.args([corpus, seeds(&folder, &target)]).current_dir(&built);
        pass(command, &target)?;
    }
    Ok(Verdict::Passed)
}

/// Builds all targets. Returns the folder that is theirs, and the one with the programs.
fn build(place: &Place, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let said = Command::new("rustc").arg("-vV").stdin(Stdio::null()).output().context("cannot start rustc")?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let built = place.target.join("fuzz");
    // With a target named, what runs while it builds has no such flags.
    let mut command = place.cargo(&["build", "--release", "--locked", "--bins", "--target", host]);
    command.current_dir(folder).env("CARGO_TARGET_DIR", &built).env("RUSTFLAGS", FLAGS.join(" "));
    pass(command, "the targets cannot be built")?;
    let programs = built.join(host).join("release");
    Ok((built, programs))
}

fn targets(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder.join("fuzz_targets")).context("cannot list the fuzz targets")?;
    let names = entries.flatten().filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()));
    let mut targets: Vec<String> = names.collect();
    targets.sort();
    ensure!(!targets.is_empty(), "there is no fuzz target");
    Ok(targets)
}

fn seeds(folder: &Path, target: &str) -> PathBuf {
    folder.join("seeds").join(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_few_small_seeds() {
        let folder = crate::place::root().join("crates/core/fuzz");
        for target in targets(&folder).unwrap() {
            let all = fs::read_dir(seeds(&folder, &target)).unwrap().flatten();
            let sizes: Vec<u64> = all.map(|seed| seed.metadata().unwrap().len()).collect();
            assert!(sizes.len() >= 8 && sizes.iter().all(|size| (4..2048).contains(size)), "{target}: {sizes:?}");
        }
    }
}
