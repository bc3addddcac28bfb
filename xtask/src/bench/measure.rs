//! What is measured, what was promised, and how the two compare.

use std::{fmt, thread, time::Duration};

use serde_json::{Value, json};

use super::rig::{Behind, MCP, Rig, Running, Side, open_files};
use crate::process::{cpu_us, rss_kib};

/// Sessions of `many`, each with two sockets.
const MANY: usize = 5000;

/// Files a side or the load needs beside the sockets of its sessions.
const SPARE_FILES: usize = 200;

/// Destinations behind the hub, and what each of them lists.
const HUB_DESTINATIONS: usize = 20;
const HUB_TOOLS: usize = 20;

const MODERN: &str = "2026-07-28";

pub(super) struct Measure {
    pub(super) name: &'static str,
    kind: Kind,
    /// Which of the load's figures is compared.
    figure: &'static str,
    unit: &'static str,
    promise: Promise,
}

enum Kind {
    /// `load call` with these arguments, on a bridge with those options.
    Call(&'static [&'static str], &'static [&'static str]),
    /// `load call` with these arguments, in front of an HTTP server; the other side is a plain reverse proxy.
    Proxied(&'static [&'static str]),
    /// `load LIST_OR_CALL` on the hub and on the URL of one of its destinations, with the arguments of each.
    Hub(&'static str, &'static [&'static str], &'static [&'static str]),
    /// `load call` with these arguments on two destinations of one daemon: one has rules for its tools, of which none is
    /// for the call, and the other has none.
    Gated(&'static [&'static str]),
    Idle,
    Many,
    Fanout,
    First,
    Rest,
    /// `load NAME` on agents of a daemon's mesh, that often at most; the other side is the bare disk under its store.
    Mesh(&'static str, usize),
    /// `audit WRITE_OR_VERIFY`, that often at most; the other side is the bare disk.
    Audit(&'static str, usize),
    /// `editor NAME` on a daemon, that often at most; the other side is the disk, ripgrep or a language server.
    Editor(&'static str, &'static str, usize),
    /// `editor NAME` on a daemon, that often at most; the other side is one without fences.
    Sandbox(&'static str, usize),
}

/// What the ratio to the floor must be, or the figure itself.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    None,
    AtLeast(f64),
    AtMost(f64),
    /// The figure itself, as it was promised to people and not to a machine.
    Below(f64),
    Above(f64),
    /// How much more it may be than the other's.
    MoreBy(f64),
    /// That the sessions open at all.
    Opens,
}

/// The figures of both sides in one round.
#[derive(Clone)]
struct Round {
    floor: Value,
    bridge: Value,
}

pub(super) struct Report {
    measure: &'static Measure,
    rounds: Vec<Round>,
    /// What went wrong; a measure with a fault is missed whatever its figures.
    faults: Vec<String>,
    /// Why it was not measured at all.
    skipped: Option<String>,
}

pub(super) const MEASURES: &[Measure] = &[
    call("call1", &["--conns", "1"], "p50_us", "us", Promise::AtMost(1.3)),
    call("call16", &["--conns", "16"], "rps", "/s", Promise::AtLeast(0.8)),
    call("call64", &["--conns", "64"], "rps", "/s", Promise::None),
    call("sess16", &["--conns", "16", "--sessions"], "rps", "/s", Promise::None),
    call("modern16", &["--conns", "16", "--revision", MODERN], "rps", "/s", Promise::AtLeast(0.75)),
    call("notify", &["--conns", "16", "--notify", "1"], "rps", "/s", Promise::AtLeast(0.7)),
    Measure {
        name: "big",
        kind: Kind::Call(&["--conns", "4", "--answer", "500000"], &["--max-message-bytes", "4194304"]),
        figure: "MBps",
        unit: "MB/s",
        promise: Promise::AtLeast(0.8),
    },
    other("proxy16", Kind::Proxied(&["--conns", "16"]), "rps", "/s", Promise::AtLeast(0.8)),
    other("hublist", Kind::Hub("list", &["--tools", "400"], &["--tools", "20"]), "p50_us", "us", Promise::AtMost(2.0)),
    other("hubcall", Kind::Hub("call", &["--tool", "d1__echo"], &[]), "rps", "/s", Promise::AtLeast(0.9)),
    other("gated", Kind::Gated(&["--conns", "16"]), "rps", "/s", Promise::AtLeast(0.95)),
    other("idle", Kind::Idle, "kib_per_session", "KiB", Promise::AtMost(1.25)),
    other("many", Kind::Many, "sessions", "open", Promise::Opens),
    other("fanout", Kind::Fanout, "all_heard_us_median", "us", Promise::AtMost(2.0)),
    other("signal", Kind::Mesh("signal", 3), "p99_us", "us", Promise::Below(5000.0)),
    other("mesh-scale", Kind::Mesh("mesh-scale", 1), "p99_us", "us", Promise::Below(5000.0)),
    other("audit", Kind::Audit("write", 3), "lines_per_s", "/s", Promise::Above(5000.0)),
    other("audit-verify", Kind::Audit("verify", 1), "seconds", "s", Promise::Below(5.0)),
    other("open", Kind::Editor("open", "disk", 3), "p99_us", "us", Promise::Below(2000.0)),
    other("find", Kind::Editor("find", "rg", 3), "ms", "ms", Promise::AtMost(1.2)),
    other("tree", Kind::Editor("tree", "rg", 1), "ms", "ms", Promise::Below(200.0)),
    other("edit-event", Kind::Editor("edit-event", "disk", 3), "p99_us", "us", Promise::Below(5000.0)),
    other("diagnostics", Kind::Editor("diagnostics", "lsp", 3), "ms", "ms", Promise::AtMost(1.2)),
    other("sandbox", Kind::Sandbox("true", 3), "ms", "ms", Promise::MoreBy(15.0)),
    other("sandbox-work", Kind::Sandbox("cargo-test", 1), "ms", "ms", Promise::AtMost(1.05)),
    other("first", Kind::First, "first_call_ms", "ms", Promise::None),
    other("rest", Kind::Rest, "rss_kib", "KiB", Promise::None),
];

const fn call(
    name: &'static str,
    load: &'static [&'static str],
    figure: &'static str,
    unit: &'static str,
    promise: Promise,
) -> Measure {
    Measure { name, kind: Kind::Call(load, &[]), figure, unit, promise }
}

const fn other(name: &'static str, kind: Kind, figure: &'static str, unit: &'static str, promise: Promise) -> Measure {
    Measure { name, kind, figure, unit, promise }
}

// === impl Measure ===

impl Measure {
    pub(super) fn run(&'static self, rig: &Rig) -> anyhow::Result<Report> {
        let mut report = Report { measure: self, rounds: Vec::new(), faults: Vec::new(), skipped: None };
        let rounds = rig.options.rounds;
        match self.kind {
            Kind::Call(load, extra) => calls(rig, Behind::Child, load, extra, &mut report)?,
            Kind::Proxied(load) => {
                if rig.options.bridge.as_ref().is_some_and(|words| !words.iter().any(|w| w.contains("{upstream}"))) {
                    report.skipped = Some("--bridge has no {upstream}".to_owned());
                } else {
                    calls(rig, Behind::Server(&rig.echo_http()?), load, &[], &mut report)?;
                }
            }
            Kind::Hub(..) if rig.options.bridge.is_some() => {
                report.skipped = Some("--bridge has no hub".to_owned());
            }
            Kind::Hub(kind, hub, direct) => at_hub(rig, kind, hub, direct, &mut report)?,
            Kind::Gated(_) if rig.options.bridge.is_some() => {
                report.skipped = Some("--bridge has no rules".to_owned());
            }
            Kind::Gated(load) => gated(rig, load, &mut report)?,
            Kind::Idle => {
                let sessions = rig.options.sessions.to_string();
                fresh(rig, rounds, &mut report, |running| idle(running, &sessions))?;
            }
            Kind::Many => match open_files() {
                Some(limit) if limit < 2 * MANY + SPARE_FILES => {
                    let needed = 2 * MANY + SPARE_FILES;
                    report.skipped =
                        Some(format!("{limit} open files are allowed here, {needed} needed: raise `ulimit -n`"));
                }
                _ => fresh(rig, 1, &mut report, |running| idle(running, &MANY.to_string()))?,
            },
            Kind::Fanout => {
                let sessions = rig.options.sessions.to_string();
                let load =
                    |running: &Running| running.load("fanout", &["--sessions", &sessions], Duration::from_secs(180));
                fresh(rig, rounds, &mut report, load)?;
            }
            Kind::First => {
                for round in 0..rounds + 2 {
                    report.add(round, |side| rig.first(side))?;
                }
            }
            Kind::Rest => fresh(rig, 1, &mut report, rest)?,
            Kind::Mesh(..) if rig.options.bridge.is_some() => {
                report.skipped = Some("--bridge has no mesh".to_owned());
            }
            Kind::Mesh(load, most) => {
                for _ in 0..rounds.min(most) {
                    report.rounds.push(meshed(rig, load)?);
                }
            }
            Kind::Audit(..) if rig.options.bridge.is_some() => {
                report.skipped = Some("--bridge has no audit log".to_owned());
            }
            Kind::Audit(act, most) => {
                for _ in 0..rounds.min(most) {
                    let mut figures = rig.audit(act)?;
                    report.rounds.push(Round { floor: figures["disk"].take(), bridge: figures });
                }
            }
            Kind::Editor(..) | Kind::Sandbox(..) if rig.options.bridge.is_some() => {
                report.skipped = Some("--bridge has no editor".to_owned());
            }
            Kind::Editor(act, _, most) | Kind::Sandbox(act, most) => {
                for _ in 0..rounds.min(most) {
                    let mut figures = edited(rig, act, self.wants_bubblewrap())?;
                    report.skipped = figures["skipped"].as_str().map(str::to_owned);
                    report.rounds.push(Round { floor: figures["floor"].take(), bridge: figures });
                }
            }
        }
        report.judge_rounds();
        Ok(report)
    }

    /// Whether ripgrep is run beside it.
    pub(super) fn wants_ripgrep(&self) -> bool {
        matches!(self.kind, Kind::Editor(_, "rg", _))
    }

    /// Whether what is run on one side is in a sandbox.
    pub(super) fn wants_bubblewrap(&self) -> bool {
        matches!(self.kind, Kind::Sandbox(..))
    }

    /// What the side is called that Prism is held against.
    fn name_of(&self, side: Side) -> &'static str {
        match (side, &self.kind) {
            (Side::Floor, Kind::Proxied(_)) => "proxy",
            (Side::Floor, Kind::Hub(..)) => "direct",
            (Side::Floor, Kind::Gated(_)) => "free",
            (Side::Floor, Kind::Mesh(..) | Kind::Audit(..)) => "disk",
            (Side::Floor, Kind::Editor(_, other, _)) => other,
            (Side::Floor, Kind::Sandbox(..)) => "bare",
            _ => side.name(),
        }
    }
}

/// Rounds on two sides that stay up: the one that is not measured rests.
fn calls(rig: &Rig, behind: Behind<'_>, load: &[&str], extra: &[&str], report: &mut Report) -> anyhow::Result<()> {
    let (floor, bridge) = (rig.start(Side::Floor, behind, extra)?, rig.start(Side::Bridge, behind, extra)?);
    warm_and_full(rig, report, |side, secs| {
        let running = if side == Side::Floor { &floor } else { &bridge };
        metered(running, MCP, "call", &[load, &["--secs", secs]].concat())
    })?;
    for (side, running) in [(Side::Floor, floor), (Side::Bridge, bridge)] {
        let name = report.measure.name_of(side);
        report.faults.extend(running.stop().into_iter().map(|wrong| format!("{name}: {wrong}")));
    }
    Ok(())
}

/// Rounds on one daemon: its hub, and the URL of one of the destinations that the hub shows.
fn at_hub(rig: &Rig, kind: &str, hub: &[&str], direct: &[&str], report: &mut Report) -> anyhow::Result<()> {
    let daemon = rig.hub(HUB_DESTINATIONS, HUB_TOOLS)?;
    warm_and_full(rig, report, |side, secs| {
        let (path, load) = if side == Side::Floor { ("/d1/mcp", direct) } else { (MCP, hub) };
        metered(&daemon, path, kind, &[load, &["--secs", secs]].concat())
    })?;
    report.faults.extend(daemon.stop());
    Ok(())
}

/// Rounds on one daemon: a destination with rules, and one without.
fn gated(rig: &Rig, load: &[&str], report: &mut Report) -> anyhow::Result<()> {
    let daemon = rig.gated()?;
    warm_and_full(rig, report, |side, secs| {
        let path = if side == Side::Floor { "/d1/mcp" } else { "/d2/mcp" };
        metered(&daemon, path, "call", &[load, &["--secs", secs]].concat())
    })?;
    report.faults.extend(daemon.stop());
    Ok(())
}

/// Runs the load and adds what a call cost the side itself.
fn metered(running: &Running, path: &str, kind: &str, arguments: &[&str]) -> anyhow::Result<Value> {
    let before = cpu_us(running.pid());
    let mut figures = running.load_at(path, kind, arguments, running.limit())?;
    if let Some(calls) = figures["calls"].as_f64().filter(|calls| *calls > 0.0) {
        figures["cpu_us"] = json!(((cpu_us(running.pid()) - before) / calls * 10.0).round() / 10.0);
    }
    Ok(figures)
}

/// A second on each side that does not count, then the rounds.
fn warm_and_full(
    rig: &Rig,
    report: &mut Report,
    run: impl Fn(Side, &str) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    for side in Side::in_round(0) {
        run(side, "1")?;
    }
    let secs = rig.options.secs.to_string();
    for round in 0..rig.options.rounds {
        report.add(round, |side| run(side, &secs))?;
    }
    Ok(())
}

/// Rounds that each start both sides anew, one after the other: what they hold is what is measured.
fn fresh(
    rig: &Rig,
    rounds: usize,
    report: &mut Report,
    load: impl Fn(&Running) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    for round in 0..rounds {
        report.add(round, |side| {
            let running = rig.start(side, Behind::Child, &[])?;
            let mut figures = load(&running)?;
            figures["left"] = json!(running.stop());
            Ok(figures)
        })?;
    }
    Ok(())
}

fn idle(running: &Running, sessions: &str) -> anyhow::Result<Value> {
    let pid = running.pid().to_string();
    running.load("idle", &["--sessions", sessions, "--pid", &pid], Duration::from_secs(240))
}

/// A load on the mesh of a daemon, and on the bare disk right after it.
fn meshed(rig: &Rig, load: &str) -> anyhow::Result<Round> {
    let daemon = rig.hub(1, 1)?;
    let (pid, home) = (daemon.pid().to_string(), daemon.home().to_string_lossy().into_owned());
    let mut figures = daemon.load(load, &["--pid", &pid, "--dir", &home], Duration::from_secs(300))?;
    figures["left"] = json!(daemon.stop());
    Ok(Round { floor: figures["disk"].take(), bridge: figures })
}

/// A load on the editor of a daemon, or on that of two, of which the other keeps no fences.
fn edited(rig: &Rig, act: &str, is_beside_unfenced: bool) -> anyhow::Result<Value> {
    let daemon = rig.editor()?;
    let other = if is_beside_unfenced { Some(rig.unfenced()?) } else { None };
    let mut figures = daemon.edit(act, other.as_ref(), Duration::from_secs(180))?;
    let left: Vec<String> = other.into_iter().chain([daemon]).flat_map(Running::stop).collect();
    figures["left"] = json!(left);
    Ok(figures)
}

/// Memory after one call, at rest.
fn rest(running: &Running) -> anyhow::Result<Value> {
    let mut figures = running.load("call", &["--conns", "1", "--secs", "0.05"], Duration::from_secs(30))?;
    thread::sleep(Duration::from_secs(2));
    figures["rss_kib"] = json!(rss_kib(running.pid()));
    Ok(figures)
}

// === impl Promise ===

impl Promise {
    /// What is not known keeps no promise; a figure that was promised by itself needs nothing beside it.
    fn is_kept(self, ratio: Option<f64>, figure: Option<f64>, more: Option<f64>) -> bool {
        match self {
            Self::None => ratio.is_some() && figure.is_some(),
            Self::AtLeast(least) => ratio.is_some_and(|ratio| ratio >= least),
            Self::AtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Self::Below(most) => figure.is_some_and(|figure| figure < most),
            Self::Above(least) => figure.is_some_and(|figure| figure >= least),
            Self::MoreBy(most) => more.is_some_and(|more| more <= most),
            Self::Opens => ratio.is_some_and(|ratio| ratio >= 1.0),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::AtLeast(least) => f.pad(&format!(">= {least:.2}")),
            Self::AtMost(most) => f.pad(&format!("<= {most:.2}")),
            Self::Below(most) => f.pad(&format!("< {most:.0}")),
            Self::Above(least) => f.pad(&format!("{least:.0} up")),
            Self::MoreBy(most) => f.pad(&format!("+ <= {most:.0}")),
            Self::Opens => f.pad("all open"),
        }
    }
}

// === impl Report ===

impl Report {
    /// Adds a round: `run` on both sides, back to back.
    fn add(&mut self, round: usize, mut run: impl FnMut(Side) -> anyhow::Result<Value>) -> anyhow::Result<()> {
        let (mut floor, mut bridge) = (Value::Null, Value::Null);
        for side in Side::in_round(round) {
            match side {
                Side::Floor => floor = run(side)?,
                Side::Bridge => bridge = run(side)?,
            }
        }
        self.rounds.push(Round { floor, bridge });
        Ok(())
    }

    /// Collects what went wrong inside the rounds.
    fn judge_rounds(&mut self) {
        for round in &self.rounds {
            for (side, figures) in [(Side::Floor, &round.floor), (Side::Bridge, &round.bridge)] {
                let left = figures["left"].as_array().into_iter().flatten();
                let wrong = left.chain(Some(&figures["failed"])).filter_map(Value::as_str);
                self.faults.extend(wrong.map(|wrong| format!("{}: {wrong}", self.measure.name_of(side))));
            }
            let notes = &round.bridge["notes"];
            if let (Some(sent), heard) = (notes["sent"].as_u64(), heard(notes))
                && sent != heard
            {
                self.faults.push(format!("{heard} of {sent} notes heard"));
            }
        }
        self.faults.dedup();
    }

    pub(super) fn is_kept(&self) -> bool {
        let figure = self.middle(Side::Bridge, self.measure.figure);
        self.skipped.is_some()
            || self.faults.is_empty() && self.measure.promise.is_kept(self.ratio(), figure, self.more())
    }

    /// Median over the rounds of bridge - floor.
    fn more(&self) -> Option<f64> {
        let figure = |side: &Value| side[self.measure.figure].as_f64();
        median(self.rounds.iter().filter_map(|round| Some(figure(&round.bridge)? - figure(&round.floor)?)))
    }

    /// Median over the rounds of bridge / floor.
    fn ratio(&self) -> Option<f64> {
        let figure = |side: &Value| side[self.measure.figure].as_f64();
        let ratios = self.rounds.iter().filter_map(|round| Some(figure(&round.bridge)? / figure(&round.floor)?));
        median(ratios.filter(|ratio| ratio.is_finite()))
    }

    fn middle(&self, side: Side, figure: &str) -> Option<f64> {
        let of = |round: &Round| {
            if side == Side::Floor { round.floor[figure].as_f64() } else { round.bridge[figure].as_f64() }
        };
        median(self.rounds.iter().filter_map(of))
    }

    fn verdict(&self) -> &'static str {
        match (&self.skipped, self.is_kept(), self.measure.promise) {
            (Some(_), ..) => "skipped",
            (None, false, _) => "MISSED",
            (None, true, Promise::None) => "-",
            (None, true, _) => "ok",
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let measure = self.measure;
        let rounds: Vec<Value> =
            self.rounds.iter().map(|round| json!({"floor": round.floor, "prism": round.bridge})).collect();
        json!({
            "measure": measure.name,
            "against": measure.name_of(Side::Floor),
            "figure": measure.figure,
            "prism": self.middle(Side::Bridge, measure.figure),
            "floor": self.middle(Side::Floor, measure.figure),
            "ratio": self.ratio(),
            "promise": measure.promise.to_string(),
            "verdict": self.verdict(),
            "faults": self.faults,
            "skipped": self.skipped,
            "rounds": rounds,
        })
    }

    /// What helps to understand the figure, where there is more.
    fn aside(&self) -> Option<String> {
        let pair = |figure: &str| Some((self.middle(Side::Bridge, figure)?, self.middle(Side::Floor, figure)?));
        match self.measure.kind {
            Kind::Call(..) | Kind::Proxied(_) | Kind::Hub(..) | Kind::Gated(_) => {
                let (cpu, floor_cpu) = pair("cpu_us")?;
                let (p99, floor_p99) = pair("p99_us")?;
                let floor = self.measure.name_of(Side::Floor);
                Some(format!("cpu {cpu:.1} us a call ({floor} {floor_cpu:.1}), p99 {p99:.0} us ({floor_p99:.0})"))
            }
            Kind::Many => {
                let (kib, floor_kib) = pair("kib_per_session")?;
                Some(format!("{kib:.1} KiB a session (floor {floor_kib:.1})"))
            }
            Kind::Mesh("signal", _) => {
                let of = |figure: &str| self.middle(Side::Bridge, figure);
                Some(format!(
                    "from the send's return; with the send and its commit p50 {:.0} us (bare disk {:.0}), p99 {:.0} us, worst \
                     {:.0} us; {:.2} commits a signal, {:.0} of {:.0} coalesced",
                    of("call_p50_us")?,
                    self.middle(Side::Floor, "p50_us")?,
                    of("call_p99_us")?,
                    of("call_max_us")?,
                    of("commits_per_signal")?,
                    of("coalesced")?,
                    of("signals")?,
                ))
            }
            Kind::Mesh(..) => {
                let figures = &self.rounds.last()?.bridge;
                let of = |way: &str| {
                    let figures = &figures[way];
                    format!("{way} p99 {} us, worst {} us", figures["p99_us"], figures["max_us"])
                };
                Some(format!(
                    "{}; {}; {} signals and {} agents: {} KiB before, {} with, {} after",
                    of("http"),
                    of("mcp"),
                    figures["signals"],
                    figures["agents"],
                    figures["rss_before_kib"],
                    figures["rss_with_kib"],
                    figures["rss_after_kib"],
                ))
            }
            Kind::Audit("write", _) => {
                let of = |figure: &str| self.middle(Side::Bridge, figure);
                let (p50, p99, bytes) = (of("p50_us")?, of("p99_us")?, of("line_bytes")?);
                Some(format!("{} writers, {bytes:.0} bytes a line, p50 {p50:.0} us, p99 {p99:.0} us", of("writers")?))
            }
            Kind::Audit(..) => {
                let figures = &self.rounds.last()?.bridge;
                Some(format!("{} lines, {} MB, {} files", figures["lines"], figures["mb"], figures["files"]))
            }
            Kind::Editor("open" | "edit-event", ..) => {
                let of = |figure: &str| self.middle(Side::Bridge, figure);
                let floor = self.middle(Side::Floor, "p50_us")?;
                Some(format!(
                    "p50 {:.0} us, worst {:.0} us of {:.0}; a line of the audit log on the bare disk takes {floor:.0}",
                    of("p50_us")?,
                    of("max_us")?,
                    of("count")?
                ))
            }
            Kind::Editor("tree", ..) => {
                let figures = &self.rounds.last()?.bridge;
                Some(format!("{} entries told of {} files", figures["entries"], figures["files"]))
            }
            Kind::Sandbox("true", _) => {
                let (p90, bare) = pair("p90_ms")?;
                Some(format!("{:.1} ms more; p90 {p90:.1} ms (bare {bare:.1})", self.more()?))
            }
            Kind::Sandbox(..) => Some(format!("{:.0} ms more a run", self.more()?)),
            Kind::Editor(..) | Kind::Idle | Kind::Fanout | Kind::First | Kind::Rest => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measure { name, figure, unit, promise, .. } = self.measure;
        let number = |value: Option<f64>| match value {
            Some(value) if value < 1000.0 && value.fract() != 0.0 => format!("{value:.1}"),
            Some(value) => format!("{value:.0}"),
            None => "?".to_owned(),
        };
        let (prism, floor) = (number(self.middle(Side::Bridge, figure)), number(self.middle(Side::Floor, figure)));
        let ratio = self.ratio().map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.2}"));
        let other = self.measure.name_of(Side::Floor);
        write!(f, "{name:<8} prism {prism:>7} {unit:<4}  {other} {floor:>7} {unit:<4}  ratio {ratio:>5}  ")?;
        write!(f, "promise {promise:<8}  {:<8}", self.verdict())?;
        let notes = self.rounds.last().map(|round| &round.bridge["notes"]).filter(|notes| notes["sent"].is_u64());
        let notes = notes.map(|notes| format!("notes {} of {}", heard(notes), notes["sent"]));
        let faults = (!self.faults.is_empty()).then(|| self.faults.join("; "));
        let asides: Vec<String> = [notes, self.aside(), self.skipped.clone(), faults].into_iter().flatten().collect();
        f.write_str(&asides.join("; "))
    }
}

/// Notes that arrived, on whichever stream.
fn heard(notes: &Value) -> u64 {
    notes["on_post"].as_u64().unwrap_or(0) + notes["on_get"].as_u64().unwrap_or(0)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests;
