//! Builds and tests a project with the tool that it is made for, and reads what the tool says. Which tool that is, is in
//! `tool.rs`; each tool's words are read in a file of its own.

mod cargo;
mod findings;
mod go;
mod make;
mod npm;
mod pytest;
mod tool;

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use findings::{Findings, PathBase, TestCounts};
use prism_core::policy::Refusal;
use serde::Deserialize;
use serde_json::{Value, json};
use tool::{BuildTool, Project};
pub(crate) use tool::{is_mark, tool_of};

use crate::{
    args::{Args, wrong},
    prepared::Work,
    progress::ProgressSink,
    run::observe::{RunEnding, RunView},
    run::{
        RunContext,
        command::{BoundedOutput, EndedCommand, Launch, SLACK, StartedProgram, attend, tell_over},
        fence::FenceReport,
    },
    shown::{ActionPreview, GivenCommand},
};

/// What is wished of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Build,
    Test,
}

/// How long it may take, if nothing else is said, and at most.
const USUAL_TIME: Duration = Duration::from_secs(300);
const LONGEST_TIME: Duration = Duration::from_secs(1800);

/// Bytes of the end of what a tool has printed that an answer has.
const END: usize = 16 << 10;

/// How often somebody who waits is told how far it is.
const TELLING: Duration = Duration::from_millis(100);

pub(crate) fn build(args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    prepare(args, context, Goal::Build)
}

pub(crate) fn test(args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    prepare(args, context, Goal::Test)
}

fn prepare(mut args: Args, context: &RunContext, goal: Goal) -> Result<(ActionPreview, Work), Refusal> {
    let cwd = args.maybe_text("cwd")?;
    let tool = args.maybe_text("tool")?.map(|name| BuildTool::named(&name)).transpose()?;
    let part_name = if goal == Goal::Build { "target" } else { "filter" };
    let part = args.maybe_text(part_name)?;
    let most = LONGEST_TIME.as_millis() as u64;
    let timeout_ms = args.number("timeout_ms", 1, most)?.unwrap_or(USUAL_TIME.as_millis() as u64);
    args.done()?;
    // It is a name for the tool, and must not become one of its options.
    if part.as_deref().is_some_and(|part| part.is_empty() || part.starts_with('-') || part.contains('\0')) {
        return Err(wrong(format!("`{part_name}` must be a name, and cannot begin with `-`")));
    }
    let project = Project::find(&context.roots, cwd.as_deref(), tool)?;
    let (words, env) = project.plan(goal, part.as_deref())?;
    let words = GivenCommand::List(words);
    let launch = Launch::open(context, &words, env, Some(&project.folder))?;
    let shown = launch.shown(words, timeout_ms);
    let patience = Duration::from_millis(timeout_ms);
    let work = Work::task(move |progress| run(launch, project, goal, patience, progress));
    Ok((shown, work.within(patience + SLACK)))
}

/// Runs the tool to its end. Dropping the future kills it, and whatever it has started.
async fn run(
    launch: Launch,
    project: Project,
    goal: Goal,
    patience: Duration,
    progress: ProgressSink,
) -> Result<Value, Refusal> {
    let _turn = launch.turn()?;
    let StartedProgram { what: child, launch, run, around } = launch.child().await?;
    let unsaved = launch.context.state.text.buffers.unsaved_beneath(&launch.cwd);
    let mut fence = FenceReport::of(child.enforced.as_ref());
    let tool = project.tool.name();
    let ending = (goal == Goal::Build).then(|| {
        launch.tell("build_started", json!({ "tool": tool, "command": launch.line() }));
        launch.ending("build_completed", json!({ "tool": tool, "is_ok": false, "errors": 0, "warnings": 0 }))
    });
    progress.say(&launch.line(), None, None);

    let mut found = Findings::default();
    let mut reader = project.tool.reader();
    let mut told = Instant::now();
    let view = launch.view(if goal == Goal::Build { "build_project" } else { "run_tests" }, None);
    let seen = |line: &str| {
        if view.is_seen()
            && let Some(line) = readable(line)
        {
            view.lines(&line);
        }
        reader.line(line, &mut found);
        if told.elapsed() >= TELLING {
            told = Instant::now();
            say(&progress, line, &found, goal);
        }
    };
    let EndedCommand { status, timed_out, over, out, err, duration } =
        attend(child, run, patience, &around.limits, &RunView::unseen(), seen).await;
    view.ended(RunEnding::of(status, timed_out, over.as_ref()));
    reader.end(&mut found);
    drop(around);

    let exit_code = status.code.filter(|_| !timed_out);
    let is_ok = exit_code == Some(0);
    let (stdout, stderr) = (end_of(out), end_of(err));
    if !is_ok {
        fence.add_hint(&[&stdout, &stderr]);
    }
    let base = PathBase { folder: launch.cwd.clone(), root: project.root.clone() };
    let mut answer = json!({
        "tool": tool,
        "command": launch.words(),
        "cwd": launch.cwd,
        "is_ok": is_ok,
        "exit_code": exit_code,
        "signal": status.signal,
        "timed_out": timed_out,
        "diagnostics": found.diagnostics_json(&base),
        "errors": found.errors,
        "warnings": found.warnings,
        "is_complete": found.is_complete(),
        "stdout": stdout,
        "stderr": stderr,
        "duration_ms": duration,
        "fence": fence,
        "unsaved": unsaved,
    });
    tell_over(&mut answer, over.as_ref());
    if let Some(ending) = ending {
        ending.is(json!({ "tool": tool, "is_ok": is_ok, "errors": found.errors, "warnings": found.warnings }));
    } else {
        answer["tests"] = found.tests_json(&base);
        let TestCounts { passed, failed, ignored } = found.counts();
        let data = json!({ "tool": tool, "is_ok": is_ok, "passed": passed, "failed": failed, "ignored": ignored });
        launch.tell("test_results", data);
    }
    Ok(answer)
}

fn say(progress: &ProgressSink, line: &str, found: &Findings, goal: Goal) {
    let (ended, expected) = (found.ended(), found.expected);
    if goal == Goal::Test && ended > 0 {
        let total = (expected >= ended).then_some(expected);
        progress.say(&format!("{ended} tests have ended"), Some(ended), total);
    } else if !line.starts_with('{') && !line.trim().is_empty() {
        progress.say(line.trim(), None, None);
    }
}

/// What a tool says to programs as it would have said it to a person, if it would; other lines are as they are.
fn readable(line: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct MachineLine {
        message: Option<RenderedMessage>,
        #[serde(rename = "Output")]
        output: Option<String>,
    }
    #[derive(Deserialize)]
    struct RenderedMessage {
        rendered: Option<String>,
    }
    if !line.starts_with("{\"") {
        return Some(line.into());
    }
    let Ok(said) = serde_json::from_str::<MachineLine>(line) else { return Some(line.into()) };
    said.message.and_then(|message| message.rendered).or(said.output).map(Cow::from)
}

/// The end of what was printed, without what is for machines and was read already.
fn end_of(output: BoundedOutput) -> String {
    let (text, _) = output.into_text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("{\"")).collect();
    let mut bytes = 0;
    let fits = lines.iter().rev().take_while(|line| {
        bytes += line.len() + 1;
        bytes <= END
    });
    let kept = fits.count();
    let mut end = lines[lines.len() - kept..].join("\n");
    if kept < lines.len() {
        end.insert_str(0, "[…]\n");
    }
    end
}

#[cfg(test)]
mod tests;
