//! Projects that would have their language server run something. The fence is off in most of them: it would keep programs of
//! the project from being run anyway, and what is shown is that nothing is tried. A server that is not installed is skipped.

use super::*;

const CARGO: &str = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LIB: &str = "pub fn one( ) -> u32 {\n    1\n}\n";

/// A project whose server must not leave a mark.
struct Trap {
    shop: Workshop,
    mark: PathBuf,
}

impl Trap {
    async fn new(language: &str, set: impl FnOnce(&mut EditorSettings)) -> Option<Self> {
        let shop = Workshop::with("pull", set);
        let mark = shop.notes.join("mark");
        shop.has_server(language).await.then_some(Self { shop, mark })
    }

    async fn rust(set: impl FnOnce(&mut EditorSettings)) -> Option<Self> {
        let trap = Self::new("rust", set).await?;
        trap.shop.write("project/Cargo.toml", CARGO);
        trap.shop.write("project/src/lib.rs", LIB);
        Some(trap)
    }

    /// A program of the project's that leaves the mark, and then is the one that it stands for.
    fn program(&self, name: &str, real: &str) -> String {
        let path = self.shop.write(name, &format!("#!/bin/sh\ntouch {}\nexec {real} \"$@\"\n", self.mark.display()));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    async fn errors(&self, name: &str) -> Result<Value, Refusal> {
        self.shop.try_run("get_errors", json!({ "path": name, "wait_ms": 60_000 })).await
    }

    async fn assert_refused(&self, name: &str, file: &str) {
        let refusal = self.errors(name).await.expect_err("it should be refused");
        assert_eq!(refusal.code, Code::Unsupported, "{}", refusal.message);
        let named = text(&self.shop.granted.join(file));
        assert!(
            refusal.message.contains(&named) && refusal.message.contains("`runs_project_code`"),
            "{}",
            refusal.message
        );
        assert!(!self.mark.exists());
    }

    async fn assert_served(&self, name: &str) {
        let answer = self.errors(name).await.unwrap();
        assert_eq!(answer["is_complete"], true, "{answer}");
        self.shop.runtime.close().await;
        assert!(!self.mark.exists());
    }
}

const MAIN: &str = "project/src/lib.rs";

//
#[tokio::test(flavor = "multi_thread")]
async fn projects_whose_files_reach_the_compiler_are_refused() {
    let Some(trap) = Trap::rust(|settings| settings.fence = false).await else { return };
    let library = trap.shop.granted.join("evil.so");
    let source = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) {{ open(\"{}\", O_CREAT, 0600); }}\n",
        trap.mark.display()
    );
    let source = trap.shop.write("evil.c", &source);
    let compiled = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    println!("a library was made: {}", compiled.is_ok_and(|status| status.success()));
    let env = format!("[env]\nLD_PRELOAD = {{ value = {library:?}, force = true }}\n");
    for (file, content) in [
        ("project/.cargo/config.toml", env.as_str()),
        ("project/.cargo/config", env.as_str()),
        // Above the project, up to what was granted.
        (".cargo/config.toml", env.as_str()),
        ("project/.cargo/config.toml", "include = [\"other.toml\"]\n"),
        ("project/.cargo/config.toml", "[registries.a]\ncredential-provider = [\"./evil\"]\n"),
        ("project/.cargo/config.toml", "[env\n"),
        ("project/rust-analyzer.toml", "[rustfmt]\noverrideCommand = [\"./evil\"]\n"),
        ("project/src/rust-analyzer.toml", ""),
        ("project/rust-project.json", "{ \"sysroot\": \"toolchain\", \"crates\": [] }"),
    ] {
        trap.shop.write(file, content);
        trap.assert_refused(MAIN, file).await;
        fs::remove_file(trap.shop.granted.join(file)).unwrap();
    }
    // A link leads cargo where nobody has looked.
    let _ = fs::remove_dir(trap.shop.granted.join("project/.cargo"));
    fs::create_dir(trap.shop.notes.join("elsewhere")).unwrap();
    fs::write(trap.shop.notes.join("elsewhere/config.toml"), &env).unwrap();
    std::os::unix::fs::symlink(trap.shop.notes.join("elsewhere"), trap.shop.granted.join("project/.cargo")).unwrap();
    trap.assert_refused(MAIN, "project/.cargo/config.toml").await;
    fs::remove_file(trap.shop.granted.join("project/.cargo")).unwrap();
    assert_eq!(trap.shop.server("rust").await["restarts"], 0);
    trap.assert_served(MAIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_a_cargo_project_names_are_not_run() {
    for fence in [false, true] {
        let Some(trap) = Trap::rust(|settings| settings.fence = fence).await else { return };
        trap.program("project/toolchain/bin/rustc", "rustc");
        trap.program("project/toolchain/bin/cargo", "cargo");
        let evil = trap.program("project/evil", "rustc");
        let config = format!(
            "[build]\nrustc = {evil:?}\nrustc-wrapper = {evil:?}\nrustc-workspace-wrapper = {evil:?}\n\
             rustflags = [\"-Clinker={evil}\"]\n[alias]\nmetadata = \"run\"\n[target.'cfg(all())']\nrunner = {evil:?}\n"
        );
        trap.shop.write("project/.cargo/config.toml", &config);
        trap.shop.write("project/rust-toolchain.toml", "[toolchain]\npath = \"toolchain\"\n");
        trap.shop.write("project/build.rs", &build_script(&trap));
        trap.assert_served(MAIN).await;
    }
}

fn build_script(trap: &Trap) -> String {
    format!("fn main() {{ std::fs::write({:?}, \"\").unwrap(); }}\n", trap.mark)
}

// The agent that may write and not run plants it while the server runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_planted_later_is_not_heard_of_and_ends_the_server() {
    let Some(trap) = Trap::rust(|settings| settings.fence = false).await else { return };
    let formatted = trap.shop.run("format_code", json!({ "path": MAIN })).await;
    assert_eq!(formatted["is_changed"], true);
    let pid = trap.shop.server("rust").await["pid"].as_u64().unwrap();
    let evil = trap.program("project/evil", "rustfmt");
    for (file, content) in [
        ("project/rust-analyzer.toml", format!("[rustfmt]\noverrideCommand = [{evil:?}]\n")),
        ("project/.cargo/config.toml", format!("[env]\nRUSTC_LOG = {evil:?}\n")),
    ] {
        let args = json!({ "path": file, "content": content, "parents": true });
        trap.shop.run("create_file", args).await;
        let refusal = trap.shop.refused("format_code", json!({ "path": MAIN })).await;
        assert_eq!(refusal.code, Code::Unsupported, "{}", refusal.message);
        assert!(refusal.message.contains(file), "{}", refusal.message);
        until("it has ended", || !is_alive(pid)).await;
        fs::remove_file(trap.shop.granted.join(file)).unwrap();
    }
    // It is served again as soon as nothing of it is left.
    trap.assert_served(MAIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn build_scripts_run_where_a_person_has_said_so() {
    let Some(trap) = Trap::rust(|settings| {
        settings.runs_project_code = true;
        settings.fence = false;
    })
    .await
    else {
        return;
    };
    trap.shop.write("project/build.rs", &build_script(&trap));
    let answer = trap.errors(MAIN).await.unwrap();
    assert_eq!(answer["is_complete"], true, "{answer}");
    assert!(trap.mark.exists());
    trap.shop.runtime.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyright_runs_no_python_of_the_project() {
    let Some(trap) = Trap::new("python", |settings| settings.fence = false).await else { return };
    let mark = format!("open({:?}, \"w\")\n", text(&trap.mark));
    let version = std::process::Command::new(python())
        .args(["-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')"])
        .output()
        .unwrap();
    let packages = format!(".venv/lib/python{}/site-packages", String::from_utf8(version.stdout).unwrap());
    trap.shop.write(&format!("{packages}/evil.pth"), &format!("import os; {mark}"));
    trap.shop.write(&format!("{packages}/sitecustomize.py"), &mark);
    trap.shop.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    fs::create_dir(trap.shop.granted.join(".venv/bin")).unwrap();
    for name in ["python", "python3"] {
        std::os::unix::fs::symlink(python(), trap.shop.granted.join(".venv/bin").join(name)).unwrap();
    }
    for name in ["json.py", "os.py", "sitecustomize.py", "usercustomize.py"] {
        trap.shop.write(name, &mark);
    }
    let own = text(&trap.shop.granted.join(".venv/bin/python"));
    let config = json!({ "venvPath": ".", "venv": ".venv", "pythonPath": own });
    trap.shop.write("pyrightconfig.json", &config.to_string());
    trap.shop.write(".python-version", "../../../..");
    trap.shop.write("main.py", "x: int = 1\n");
    trap.assert_served("main.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tsc_loads_no_plugin_of_the_project() {
    let Some(trap) = Trap::new("typescript", |settings| settings.fence = false).await else { return };
    let evil = format!("require('fs').writeFileSync({:?}, '')\n", text(&trap.mark));
    trap.shop.write("node_modules/evil/index.js", &evil);
    trap.shop.write("node_modules/evil/package.json", "{ \"name\": \"evil\", \"main\": \"index.js\" }");
    trap.shop.write(
        "tsconfig.json",
        "{ \"compilerOptions\": { \"strict\": true, \"types\": [], \"plugins\": [{ \"name\": \"evil\" }] } }",
    );
    trap.shop.write("main.ts", "export const x: number = 1;\n");
    trap.assert_served("main.ts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd_asks_no_compiler_of_the_project() {
    let Some(trap) = Trap::new("cpp", |settings| settings.fence = false).await else { return };
    let evil = trap.program("evil++", "c++");
    let file = trap.shop.write("main.cpp", "int one() { return 1; }\n");
    let command = json!({ "directory": trap.shop.granted, "file": file, "arguments": [evil, "-c", file] });
    trap.shop.write("compile_commands.json", &json!([command]).to_string());
    trap.shop.write(".clangd", &format!("CompileFlags:\n  Compiler: {evil}\n"));
    trap.assert_served("main.cpp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls_runs_no_toolchain_and_no_hook_of_the_project() {
    let Some(trap) = Trap::new("go", |settings| settings.fence = false).await else { return };
    let evil = trap.program("evil", "true");
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(&trap.shop.granted).output().unwrap();
        assert!(done.status.success());
    };
    git(&["init", "-q"]);
    git(&["config", "core.fsmonitor", &evil]);
    trap.shop.write("go.mod", "module demo\n\ngo 1.19\n");
    trap.shop.write("main.go", "package main\n\nfunc main() {}\n");
    trap.assert_served("main.go").await;
}
