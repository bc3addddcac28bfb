//! How long calls took lately, destination by destination: a sample every few seconds, drawn as a line.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use maud::{Markup, html};

use super::words::millis;

/// How often a sample is taken.
pub const EVERY: Duration = Duration::from_secs(5);
/// Samples of one destination: five minutes of them. Beyond it the oldest goes.
const MAX_SAMPLES: usize = 60;

/// The samples of all destinations.
#[derive(Debug, Default)]
pub struct LatencyTrends(Mutex<TrendSamples>);

#[derive(Debug, Default)]
struct TrendSamples {
    last: Option<Instant>,
    of: BTreeMap<String, TrendLine>,
}

/// One destination's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendLine {
    /// What was counted up to the last sample.
    seen: CallTotals,
    /// How long a call took on average, in milliseconds; `None` where there was none.
    points: VecDeque<Option<f64>>,
}

/// Calls since the daemon was started, and how long they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    pub calls: u64,
    pub took: Duration,
}

impl LatencyTrends {
    /// Takes a sample, if it is time. What is not named any more is forgotten.
    pub fn sample(&self, now: Instant, counted: impl FnOnce() -> Vec<(String, CallTotals)>) {
        let mut samples = self.samples();
        if samples.last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            return;
        }
        samples.last = Some(now);
        let mut before = std::mem::take(&mut samples.of);
        for (name, counted) in counted() {
            // The first look tells where we are, not what happened.
            let line = before.remove(&name).map(|line| line.next(counted));
            samples.of.insert(name, line.unwrap_or(TrendLine { seen: counted, points: VecDeque::new() }));
        }
    }

    pub fn of(&self, name: &str) -> TrendLine {
        self.samples().of.get(name).cloned().unwrap_or_default()
    }

    fn samples(&self) -> MutexGuard<'_, TrendSamples> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrendLine {
    fn next(mut self, counted: CallTotals) -> Self {
        let calls = counted.calls.saturating_sub(self.seen.calls);
        let took = counted.took.saturating_sub(self.seen.took);
        #[expect(clippy::cast_precision_loss, reason = "an average, as people read it")]
        let average = (calls > 0).then(|| took.as_secs_f64() * 1e3 / calls as f64);
        if self.points.len() >= MAX_SAMPLES {
            self.points.pop_front();
        }
        self.points.push_back(average);
        self.seen = counted;
        self
    }

    /// The line, drawn: time to the right, the last five minutes; slower is higher.
    pub fn drawn(&self) -> Markup {
        let known: Vec<f64> = self.points.iter().copied().flatten().collect();
        let top = known.iter().copied().fold(0.0, f64::max);
        let label = match known.last() {
            Some(last) => format!("Calls of the last five minutes: {} lately, {} at most", millis(*last), millis(top)),
            None => "No calls in the last five minutes".to_owned(),
        };
        let (lines, dots) = self.strokes(top);
        html! {
            svg.spark viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                path.base d=(format!("M0 {BASE}H{WIDTH}")) {}
                @if !lines.is_empty() { path.line d=(lines) {} }
                @if !dots.is_empty() { path.dots d=(dots) {} }
            }
        }
    }

    /// Where there were calls without a pause, a line; where one stands alone, a dot.
    fn strokes(&self, top: f64) -> (String, String) {
        let (mut lines, mut dots) = (String::new(), String::new());
        let first = MAX_SAMPLES - self.points.len();
        let points: Vec<Option<(f64, f64)>> = self
            .points
            .iter()
            .enumerate()
            .map(|(at, value)| {
                #[expect(clippy::cast_precision_loss, reason = "at most sixty")]
                let x = (first + at) as f64 * WIDTH / (MAX_SAMPLES - 1) as f64;
                value.map(|value| (x, BASE - value / top.max(1e-9) * (BASE - 3.0)))
            })
            .collect();
        for run in points.split(Option::is_none) {
            match run {
                [] => {}
                [Some((x, y))] => _ = write!(dots, "M{x:.1} {y:.1}h.01"),
                run => {
                    for (at, (x, y)) in run.iter().flatten().enumerate() {
                        _ = write!(lines, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
                    }
                }
            }
        }
        (lines, dots)
    }
}

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;
/// Where nothing took no time.
const BASE: f64 = 38.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: u64, ms: u64) -> CallTotals {
        CallTotals { calls, took: Duration::from_millis(ms) }
    }

    #[test]
    fn a_sample_is_what_happened_since_the_last_and_there_are_never_many() {
        let (trend, start) = (LatencyTrends::default(), Instant::now());
        let sample = |at: u32, what: CallTotals| trend.sample(start + EVERY * at, || vec![("a".to_owned(), what)]);
        sample(0, counted(5, 100));
        assert_eq!(trend.of("a").points, []);
        sample(1, counted(7, 140));
        sample(2, counted(7, 140));
        assert_eq!(trend.of("a").points, [Some(20.0), None]);
        trend.sample(start + EVERY * 2, || unreachable!("it is not time yet"));
        for at in 3..200 {
            sample(at, counted(7 + u64::from(at), 140));
        }
        assert_eq!(trend.of("a").points.len(), MAX_SAMPLES);
        trend.sample(start + EVERY * 300, Vec::new);
        assert_eq!(trend.of("a"), TrendLine::default());
    }

    #[test]
    fn a_line_stays_within_its_box() {
        let line = TrendLine { seen: CallTotals::default(), points: [Some(1.0), Some(4.0), None, Some(2.0)].into() };
        let drawn = line.drawn().into_string();
        assert!(drawn.contains("2.0 ms lately, 4.0 ms at most"), "{drawn}");
        let (lines, dots) = line.strokes(4.0);
        assert_eq!(lines, "M227.8 29.2L231.9 3.0");
        assert_eq!(dots, "M240.0 20.5h.01");
        assert!(TrendLine::default().drawn().into_string().contains("No calls"));
    }
}
