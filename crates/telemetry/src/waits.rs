//! How long agents took. They take seconds and minutes, where calls take milliseconds: so there are other buckets than
//! for calls, and what people are shown is not reckoned from them but taken from the last times themselves.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds of the buckets, in seconds: from a wait that ends at once to a task that takes an hour.
const BOUNDS: [f64; 16] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
/// The newest times, of which quantiles are taken. Older ones give way: what is shown is how it is lately.
const MAX_RECENT: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct WaitTimes {
    pub(super) histogram: Histogram,
    count: Arc<AtomicU64>,
    recent: Arc<Mutex<VecDeque<Duration>>>,
}

impl WaitTimes {
    pub(super) fn observe(&self, took: Duration) {
        self.histogram.observe(took.as_secs_f64());
        self.count.fetch_add(1, Relaxed);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == MAX_RECENT {
            recent.pop_front();
        }
        recent.push_back(took);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// The time within which these parts of a hundred of the last ones were done.
    pub(super) fn percentiles<const N: usize>(&self, parts: [usize; N]) -> Option<[Duration; N]> {
        let mut recent: Vec<Duration> =
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        recent.sort_unstable();
        let last = recent.len().checked_sub(1)?;
        Some(parts.map(|part| recent[(recent.len() * part).div_ceil(100).saturating_sub(1).min(last)]))
    }
}

impl Default for WaitTimes {
    fn default() -> Self {
        Self { histogram: Histogram::new(BOUNDS), count: Arc::default(), recent: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> WaitTimes {
        let waits = WaitTimes::default();
        millis.iter().for_each(|ms| waits.observe(Duration::from_millis(*ms)));
        waits
    }

    //
    #[test]
    fn a_percentile_is_a_time_that_was_taken() {
        let half = |millis: &[u64]| of(millis).percentiles([50]).map(|[half]| half.as_millis());
        assert_eq!(half(&[]), None);
        assert_eq!(half(&[1030, 1030]), Some(1030));
        assert_eq!(half(&[540_000]), Some(540_000), "a question may take ten minutes");
        assert_eq!(half(&[3, 1, 2]), Some(2));
        let all: Vec<u64> = (1..=200).collect();
        assert_eq!(of(&all).percentiles([99, 100]).unwrap().map(|time| time.as_millis()), [198, 200]);
    }

    //
    #[test]
    fn old_times_give_way_and_are_counted_all_the_same() {
        let waits = of(&vec![9000; MAX_RECENT]);
        (0..MAX_RECENT).for_each(|_| waits.observe(Duration::from_millis(1)));
        assert_eq!(waits.percentiles([99]), Some([Duration::from_millis(1)]));
        assert_eq!(waits.count(), 2 * MAX_RECENT as u64);
    }
}
