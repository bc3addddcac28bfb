//! Many refusals of one kind in a row: a few are told each, of the rest how many there were.

use std::collections::HashMap;

/// Who is counted apart. Beyond it all others are counted together.
const MAX_COUNTED: usize = 1000;

/// How often each was refused what, lately.
#[derive(Debug, Default)]
pub(super) struct RefusalCounts(HashMap<(String, String), RefusalCount>);

#[derive(Clone, Copy, Debug, Default)]
struct RefusalCount {
    refused: u64,
    told: u64,
}

/// What was not told yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UntoldRefusals {
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) refused: u64,
}

impl RefusalCounts {
    /// Counts a refusal; returns the count where it is to be told: the first ones, then at 10, 100, 1,000 and so on.
    pub(super) fn refused(&mut self, actor: &str, action: &str) -> Option<u64> {
        let mut who = (actor.to_owned(), action.to_owned());
        if self.0.len() >= MAX_COUNTED && !self.0.contains_key(&who) {
            who = ("others".to_owned(), "any".to_owned());
        }
        let count = self.0.entry(who).or_default();
        count.refused += 1;
        let tells = count.refused <= 3 || is_power_of_ten(count.refused);
        tells.then(|| {
            count.told = count.refused;
            count.refused
        })
    }

    /// Begins anew, as time has passed. Returns those of whom more were refused than was told.
    pub(super) fn calm_down(&mut self) -> Vec<UntoldRefusals> {
        let rest = self.0.drain().filter(|(_, count)| count.refused > count.told);
        rest.map(|((actor, action), count)| UntoldRefusals { actor, action, refused: count.refused }).collect()
    }
}

fn is_power_of_ten(count: u64) -> bool {
    std::iter::successors(Some(10u64), |ten| ten.checked_mul(10))
        .take_while(|ten| *ten <= count)
        .any(|ten| ten == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_refusals_are_a_handful_of_lines_and_their_number() {
        let mut flood = RefusalCounts::default();
        let told: Vec<u64> = (0..9_995).filter_map(|_| flood.refused("a", "ask")).collect();
        assert_eq!(told, [1, 2, 3, 10, 100, 1000]);
        assert_eq!(flood.refused("b", "ask"), Some(1), "one does not hide another");
        let rest = UntoldRefusals { actor: "a".to_owned(), action: "ask".to_owned(), refused: 9_995 };
        assert_eq!(flood.calm_down(), [rest], "of the other all was told");
        assert_eq!(flood.calm_down(), []);
    }

    #[test]
    fn those_who_are_counted_are_bounded() {
        let mut flood = RefusalCounts::default();
        for number in 0..10 * MAX_COUNTED {
            flood.refused(&number.to_string(), "ask");
        }
        assert!(flood.0.len() <= MAX_COUNTED + 1);
    }
}
