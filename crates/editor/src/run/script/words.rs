//! What a command names that it runs: by the words that are given, or that a shell would make of a line.

use std::path::{Path, PathBuf};

use crate::shown::GivenCommand;

/// Programs that run what a file says that is named among their arguments.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "nu",
    "pwsh",
    "source",
    ".",
    "node",
    "nodejs",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "ruby",
    "perl",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "julia",
    "tclsh",
    "expect",
    "osascript",
    "groovy",
    "awk",
    "gawk",
    "sed",
    "gdb",
    "ocaml",
    "elixir",
    "escript",
    "racket",
    "guile",
    "java",
    "uvx",
    "pipx",
];

/// Programs that run another one, which comes behind them.
const WRAPPERS: &[&str] = &[
    "then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec", "command", "builtin", "nohup", "env",
    "sudo", "doas", "nice", "ionice", "setsid", "stdbuf", "xargs", "timeout", "unshare", "strace", "script", "uv",
    "poetry", "pipenv", "run",
];

/// Programs that run what a file of theirs says, and the names that it may have.
const OWN_FILES: &[(&str, &[&str])] = &[
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
    ("rake", &["Rakefile", "rakefile"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("ant", &["build.xml"]),
    ("cmake", &["CMakeLists.txt"]),
    ("invoke", &["tasks.py"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
];

/// How deep lines may be in lines.
const MAX_DEPTH: usize = 4;

/// The files that a command may run, wherever they would be. Whether they are there is not looked at.
pub(super) fn named(command: &GivenCommand, cwd: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let mut cwd = cwd.to_owned();
    match command {
        GivenCommand::List(words) => of_words(words, &mut cwd, 0, &mut named),
        GivenCommand::Shell(line) => of_line(line, &mut cwd, 0, &mut named),
    }
    named
}

fn of_line(line: &str, cwd: &mut PathBuf, depth: usize, named: &mut Vec<PathBuf>) {
    if depth < MAX_DEPTH {
        commands(line).iter().for_each(|words| of_words(words, cwd, depth + 1, named));
    }
}

fn of_words(words: &[String], cwd: &mut PathBuf, depth: usize, named: &mut Vec<PathBuf>) {
    let Some(begin) = words.iter().position(|word| !is_before(word)) else { return };
    let (program, args) = (&words[begin], &words[begin + 1..]);
    let name = program.rsplit('/').next().unwrap_or_default();
    if program.contains('/') {
        named.push(cwd.join(program));
    }
    if name == "cd" {
        if let Some(folder) = args.iter().find(|word| !word.starts_with('-')) {
            *cwd = cwd.join(folder);
        }
        return;
    }
    if name == "eval" {
        return of_line(&args.join(" "), cwd, depth, named);
    }
    // What `find` or the like is to run is a command of its own.
    if let Some(at) = args.iter().position(|word| word.starts_with("-exec")) {
        of_words(&args[at + 1..], cwd, depth, named);
    }
    let mut folder = cwd.clone();
    for pair in args.windows(2) {
        if matches!(pair[0].as_str(), "-C" | "--directory" | "--prefix" | "--cwd") {
            folder = cwd.join(&pair[1]);
        }
    }
    for (_, files) in OWN_FILES.iter().filter(|(own, _)| *own == name) {
        named.extend(files.iter().map(|file| folder.join(file)));
        // One that is named instead.
        named.extend(args.iter().filter(|word| !word.starts_with('-')).map(|word| folder.join(word)));
    }
    if is_interpreter(name) {
        of_interpreter(args, cwd, depth, named);
    }
}

fn of_interpreter(args: &[String], cwd: &mut PathBuf, depth: usize, named: &mut Vec<PathBuf>) {
    for (at, word) in args.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| args[at].as_str());
        match (before, word.split_once('=')) {
            // A line of its own: `sh -c`, `bash -lc`.
            (flag, _) if flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c') => {
                of_line(word, cwd, depth, named);
            }
            ("-m", _) => {
                let module = word.replace('.', "/");
                named.extend([format!("{module}.py"), format!("{module}/__main__.py")].map(|file| cwd.join(file)));
            }
            (_, Some((flag, file))) if flag.starts_with('-') => named.push(cwd.join(file)),
            _ if !word.starts_with('-') => named.push(cwd.join(word)),
            _ => {}
        }
    }
}

fn is_interpreter(name: &str) -> bool {
    // `python3.12`, `lua5.4`
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain) || matches!(plain, "python" | "pypy")
}

/// Whether a word stands before the program: a variable, a wrapper, its flags and numbers.
fn is_before(word: &str) -> bool {
    let is_variable = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    });
    let is_number = word.starts_with(|letter: char| letter.is_ascii_digit())
        && word.chars().all(|letter| letter.is_ascii_digit() || "smhd.".contains(letter));
    is_variable || is_number || word.starts_with('-') || WRAPPERS.contains(&word)
}

/// The simple commands of a line for the shell, each in its words. Quotes are taken off; what is made of variables is not known.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    // Quotes that a `$(` has interrupted.
    let mut outer = Vec::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let ends = match (quote, letter) {
            (Some('\''), '\'') => {
                quote = None;
                false
            }
            (Some('\''), _) => {
                word.get_or_insert_default().push(letter);
                false
            }
            (_, '\\') => {
                word.get_or_insert_default().extend(letters.next().filter(|next| *next != '\n'));
                false
            }
            (_, '$') if letters.peek() == Some(&'(') => {
                letters.next();
                outer.push(quote.take());
                true
            }
            (Some('"'), '"') => {
                quote = None;
                false
            }
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
                false
            }
            (_, '`') | (None, ';' | '&' | '|' | '\n' | '(' | '{' | '}') => true,
            (None, ')') => {
                quote = outer.pop().flatten();
                true
            }
            (None, '<' | '>' | ' ' | '\t' | '\r') => {
                words.extend(word.take());
                false
            }
            _ => {
                word.get_or_insert_default().push(letter);
                false
            }
        };
        if ends {
            words.extend(word.take());
            all.push(std::mem::take(&mut words));
        }
    }
    words.extend(word);
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Vec<String> {
        let named = named(&GivenCommand::Shell(line.to_owned()), Path::new("/p"));
        named.iter().map(|path| path.display().to_string()).collect()
    }

    // L10
    #[test]
    fn what_a_command_runs_is_found_where_a_person_would_look_for_it() {
        for (line, expected) in [
            ("sh s.sh", "/p/s.sh"),
            ("./s.sh --fast", "/p/./s.sh"),
            ("python3.12 tools/x.py a", "/p/tools/x.py"),
            ("python -m tools.x", "/p/tools/x.py"),
            ("X=1 env -i nice -n 5 timeout 10s bash -eu 's s.sh'", "/p/s s.sh"),
            ("echo a; (cd sub && sh s.sh)", "/p/sub/s.sh"),
            ("true && . ./env.sh", "/p/./env.sh"),
            ("echo \"$(sh s.sh)\" done", "/p/s.sh"),
            ("bash -lc 'sh s.sh'", "/p/s.sh"),
            ("eval \"sh s.sh\"", "/p/s.sh"),
            ("sh < s.sh", "/p/s.sh"),
            ("cat x | xargs sh s.sh", "/p/s.sh"),
            ("find . -exec ./s.sh {} \\;", "/p/./s.sh"),
            ("node --require=./hook.js", "/p/./hook.js"),
            ("if true; then sh s.sh; fi", "/p/s.sh"),
            ("make -C sub all", "/p/sub/Makefile"),
            ("make -f other.mk", "/p/other.mk"),
            ("npm run build", "/p/package.json"),
            ("just deploy", "/p/justfile"),
            ("/p/bin/tool", "/p/bin/tool"),
        ] {
            assert!(shell(line).contains(&expected.to_owned()), "{line}: {:?}", shell(line));
        }
        for line in ["ls -l src", "cat README.md", "git status", "echo 'sh s.sh'", "grep -r sh ."] {
            assert!(shell(line).is_empty(), "{line}: {:?}", shell(line));
        }
        let list = GivenCommand::List(["sh", "s.sh"].map(str::to_owned).to_vec());
        assert_eq!(named(&list, Path::new("/p")), [PathBuf::from("/p/s.sh")]);
    }
}
