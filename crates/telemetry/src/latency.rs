//! How long things took: a histogram of atomics, and what half and all but one in a hundred of them took.
//!
//! The one of `prometheus_client` has a lock and keeps its buckets to itself; `/status` and `/metrics` must say the same.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};

/// Upper bounds of the buckets, in seconds: from a local tool's answer to the default timeout.
const BOUNDS: [f64; 12] = [0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, Default)]
pub(super) struct Latency(Arc<LatencyCounts>);

#[derive(Debug, Default)]
struct LatencyCounts {
    /// By bucket; the last has no bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Latency {
    pub(super) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.0.buckets[bucket].fetch_add(1, Relaxed);
        self.0.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// How long all of them took together.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_nanos(self.0.nanos.load(Relaxed))
    }

    /// The time in seconds within which this part of all was done: as Prometheus's `histogram_quantile` has it, on the
    /// line between the bounds of its bucket. `None` while there was nothing.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        let counts = self.counts();
        #[expect(clippy::cast_precision_loss, reason = "an estimate between two bounds")]
        let counts = counts.map(|count| count as f64);
        let total: f64 = counts.iter().sum();
        if total == 0.0 {
            return None;
        }
        let rank = part * total;
        let (mut below, mut lower) = (0.0, 0.0);
        for (count, bound) in counts.iter().zip(BOUNDS) {
            if *count > 0.0 && below + count >= rank {
                return Some(lower + (bound - lower) * ((rank - below) / count));
            }
            (below, lower) = (below + count, bound);
        }
        // Longer than any bound: all that can be said.
        Some(lower)
    }

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.0.buckets.each_ref().map(|bucket| bucket.load(Relaxed))
    }
}

impl TypedMetric for Latency {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Latency {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.counts();
        let bounds = BOUNDS.into_iter().chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let sum = Duration::from_nanos(self.0.nanos.load(Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(u64, usize)]) -> Latency {
        let latency = Latency::default();
        for (micros, count) in times {
            (0..*count).for_each(|_| latency.observe(Duration::from_micros(*micros)));
        }
        latency
    }

    #[test]
    fn nothing_took_no_time_at_all() {
        assert_eq!(Latency::default().quantile(0.5), None);
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let latency = of(&[(300, 90), (700_000, 10)]);
        let within = |part, low, high| {
            let found = latency.quantile(part).unwrap();
            assert!((low..=high).contains(&found), "{part}: {found}");
        };
        within(0.5, 0.0002, 0.0005);
        within(0.9, 0.0002, 0.0005);
        within(0.99, 0.5, 1.0);
        assert_eq!(latency.count(), 100);
    }

    #[test]
    fn what_took_longer_than_any_bound_is_at_the_last() {
        assert_eq!(of(&[(31_000_000, 3)]).quantile(0.5), Some(30.0));
    }
}
