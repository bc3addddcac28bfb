//! A project of 50,000 files.

use std::{fs, path::Path};

pub(super) const FILES: usize = 50_000;
pub(super) const NEEDLE: &str = "needle_of_the_bench";

/// Files of a folder, and folders of a folder above.
const IN_FOLDER: usize = 100;
const FOLDERS: usize = 20;
/// Every so many files has the needle once.
const EVERY: usize = 250;

/// Makes it, unless it is there. Returns how many lines have the needle.
pub(super) fn grow(dir: &Path) -> anyhow::Result<usize> {
    let done = dir.join(".grown");
    if !done.exists() {
        let line = "    let answer = question.into_iter().map(|asked| asked.answer()).collect::<Vec<_>>();\n";
        let text = format!("//! A file like many.\n\npub fn answers() {{\n{}}}\n", line.repeat(20));
        for at in 0..FILES {
            let folder = at / IN_FOLDER;
            let folder = dir.join(format!("part-{}/unit-{}", folder / FOLDERS, folder % FOLDERS));
            if at % IN_FOLDER == 0 {
                fs::create_dir_all(&folder)?;
            }
            let needle = if at % EVERY == 0 { format!("// {NEEDLE} {at}\n") } else { String::new() };
            fs::write(folder.join(format!("file-{at}.rs")), format!("{text}{needle}"))?;
        }
        fs::write(done, "")?;
    }
    Ok(FILES / EVERY)
}
