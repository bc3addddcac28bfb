//! Thirty ways out of the fence, each tried from every place where something runs in it (S-26): none leads
//! out of a sandbox, and where there is landlock alone the person was told of those that do before anything ran. That each can
//! lead out shows the same script outside of any fence. What it does is in `ways.pl`; whom it does it to, in `world`.

mod places;
mod world;

use std::collections::BTreeMap;

use self::{
    places::{Place, Tried},
    world::World,
};
use crate::support::{
    seen::{line, seen},
    skipped,
};

/// Ways that landlock alone does not close, each with the words that name it to the person who is asked.
const OPEN_WITHOUT_A_SANDBOX: [(&str, &str); 10] = [
    ("write a cache that tools run from", "the caches of your tools"),
    ("connect to a port of this computer", "the network and programs that listen there"),
    ("connect to Prism", "the network and programs that listen there"),
    ("write to another terminal", "your other terminals"),
    ("shared memory in /dev/shm", "memory that programs share"),
    ("shared memory and queues of System V", "memory that programs share"),
    ("kill or stop another process", "end your other programs (before Linux 6.12)"),
    ("change the mode of a file", "the modes of your files"),
    ("write hooks and tasks that are there", "hooks and settings that your tools run"),
    ("leave something running", "leave something running that outlives the grant"),
];

/// What came of each way, in the order of the script.
type Outcomes = Vec<(String, Outcome)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Out,
    Held,
    /// Nothing of the script's came to run there.
    NotRun,
}

// S-26
#[tokio::test]
async fn thirty_ways_lead_out_of_no_place() {
    if std::process::Command::new("bwrap").arg("--version").output().is_err() {
        skipped("thirty_ways_lead_out_of_no_place", "install the package bubblewrap");
        return;
    }
    let world = World::begin(world::USUAL_PATH).await;
    let (mut columns, mut questions) = (Vec::new(), 0);
    for place in Place::ALL {
        let Tried { outcomes, asked } = world.try_from(place).await;
        questions += asked.len();
        // A command is shown whatever is around it; the rest asks nobody.
        let expected = usize::from(matches!(place, Place::Terminal | Place::Command));
        assert_eq!(asked.len(), expected, "{}: {asked:?}", place.name());
        columns.push((place.name(), outcomes));
    }
    let outside = world.try_outside();
    let led_out = columns.iter().flat_map(|(place, outcomes)| led_out(place, outcomes)).collect::<Vec<_>>();
    columns.insert(0, ("outside", outside));
    print(&columns);
    let (_, outside) = &columns[0];
    let closed_anyway: Vec<_> = outside.iter().filter(|(_, outcome)| *outcome != Outcome::Out).collect();
    assert!(closed_anyway.len() < 4, "on this machine these prove nothing: {closed_anyway:?}");
    assert_eq!(led_out, [""; 0]);
    let built = world.gate.audited("build_project", "ok").await;
    let tried: usize = columns[1..].iter().map(|(_, outcomes)| outcomes.len()).sum();
    seen(format!("{} of {tried} lead out", led_out.len()), format!("asked {questions} times"), line(&built));
    world.end().await;
}

// S-24, S-26
#[tokio::test]
async fn without_a_sandbox_the_person_is_told_first_of_each_way_that_is_open() {
    let tools = world::tools_without_bubblewrap();
    let world = World::begin(tools.path().to_str().unwrap()).await;
    let open: BTreeMap<&str, &str> = OPEN_WITHOUT_A_SANDBOX.into();
    let (mut columns, mut unsaid, mut questions) = (Vec::new(), Vec::new(), 0);
    for place in Place::ALL.into_iter().filter(|place| !matches!(place, Place::McpServer | Place::GitHook)) {
        let Tried { outcomes, asked } = world.try_from(place).await;
        questions += asked.len();
        let told = asked.first().unwrap_or_else(|| panic!("{}: nobody was asked", place.name()))["shown"]["because"]
            .to_string();
        assert!(told.contains("bubblewrap is not installed"), "{told}");
        let is_said = |way: &str| open.get(way).is_some_and(|words| told.contains(words));
        let out = outcomes.iter().filter(|(way, outcome)| *outcome == Outcome::Out && !is_said(way));
        unsaid.extend(out.map(|(way, _)| format!("{}: {way}", place.name())));
        columns.push((place.name(), outcomes));
    }
    world.starts_no_mcp_server().await;
    print(&columns);
    assert_eq!(unsaid, [""; 0], "open, and nobody was told");
    let built = world.gate.audited("build_project", "ok").await;
    let open: usize = columns.iter().map(|(place, outcomes)| led_out(place, outcomes).len()).sum();
    seen(format!("{open} are open, all of them named"), format!("asked {questions} times, first"), line(&built));
    world.end().await;
}

fn led_out(place: &str, outcomes: &Outcomes) -> Vec<String> {
    let out = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Out);
    out.map(|(way, _)| format!("{place}: {way}")).collect()
}

/// Prints a row for each way and a column for each place, to whoever looks; the lane `attacks` does.
fn print(columns: &[(&str, Outcomes)]) {
    use std::io::Write;
    let (_, ways) = &columns[0];
    let heads: String = columns.iter().map(|(place, _)| format!("  {place}")).collect();
    let widest = ways.iter().map(|(way, _)| way.len()).max().unwrap_or_default();
    let mut lines = vec![format!("{:widest$}   {heads}", "")];
    for (number, (way, _)) in ways.iter().enumerate() {
        let cells = columns.iter().map(|(place, outcomes)| {
            let outcome = match outcomes[number].1 {
                Outcome::Out => "OUT",
                Outcome::Held => "held",
                Outcome::NotRun => "not run",
            };
            format!("  {outcome:width$}", width = place.len())
        });
        lines.push(format!("{:2} {way:widest$}{}", number + 1, cells.collect::<String>()));
    }
    for (place, outcomes) in columns {
        let count = led_out(place, outcomes).len();
        lines.push(format!("{place}: {count} of {} lead out", outcomes.len()));
    }
    let text: String = lines.iter().map(|line| format!("ways: {}\n", line.trim_end())).collect();
    let _ = std::io::stdout().write_all(text.as_bytes());
}
