//! How often: a bucket that fills at a steady rate.

use std::time::Duration;

use crate::Time;

/// Actions that may be done at once, and how fast there come to be more. In actions a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    left: f64,
    at: Time,
}

impl Bucket {
    pub fn full(burst: u32, now: Time) -> Self {
        Self { left: f64::from(burst), at: now }
    }

    /// Takes one action out of it; else returns after how long there will be one.
    pub fn take(&mut self, per_second: u32, burst: u32, now: Time) -> Result<(), Duration> {
        let rate = f64::from(per_second.max(1));
        let gained = now.since(self.at).as_secs_f64() * rate;
        self.left = (self.left + gained).min(f64::from(burst.max(1)));
        self.at = self.at.max(now);
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / rate));
        }
        self.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    //
    #[test]
    fn a_burst_is_let_through_and_then_only_the_rate() {
        let mut bucket = Bucket::full(5, Time(0));
        let mut take = |ms: i64| bucket.take(10, 5, Time(ms * 1000));
        assert_eq!((0..5).filter(|_| take(0).is_ok()).count(), 5);
        assert_eq!(take(0), Err(Duration::from_millis(100)));
        assert!(take(99).is_err() && take(100).is_ok() && take(150).is_err());
        // However long it was left alone, it holds no more than a burst.
        assert_eq!((0..9).filter(|_| take(60_000).is_ok()).count(), 5);
    }

    proptest! {
        // never more than the burst and what the time has brought, whenever it is asked, a clock that jumps included.
        #[test]
        fn it_never_gives_more_than_it_holds(steps in proptest::collection::vec((0i64..400_000, 0u8..20), 1..60)) {
            let (rate, burst) = (10, 20);
            let mut bucket = Bucket::full(burst, Time(0));
            let (mut now, mut taken) = (0, 0u32);
            for (wait, jump) in steps {
                now += wait;
                let seen = if jump == 0 { now - 3_000_000 } else { now };
                taken += u32::from(bucket.take(rate, burst, Time(seen)).is_ok());
                let most = f64::from(burst) + f64::from(rate) * now as f64 / 1e6;
                prop_assert!(f64::from(taken) <= most + 1e-6, "{taken} within {now} us");
            }
        }
    }
}
