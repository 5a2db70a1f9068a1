//! Seeds until a claim is decided, with the chance of a wrong verdict kept.

use serde::{Deserialize, Serialize};

/// `seeds = { first = 3, most = 30 }`: claims are judged after the first seeds, and those that are
/// left open again after more, up to the most.
///
/// When there is a look is fixed in advance: after `first` seeds, and after `most`, half of them, a
/// quarter and so on, as far as these are half as many again as the first. Each look has a share of
/// the level, its share of new seeds among `most`: a spending function linear in the number of
/// seeds (Lan and `DeMets`, *Discrete sequential boundaries for clinical trials*, Biometrika 70,
/// 1983). A p-value is divided by the share of its look, and the least of all looks counts. By
/// Bonferroni's inequality that is a p-value, whatever the looks have to do with each other and
/// whenever one stops: their joint distribution, which is not known of a worst setting or few
/// seeds, is not needed. It is the price of the looks that no more of the level is used.
///
/// # Example
/// ```
/// use grapevine::experiment::statistics::Looks;
///
/// let looks = Looks { first: 3, most: 30 };
/// assert_eq!(looks.counts(), [3, 8, 15, 30]);
/// assert_eq!(looks.share(3), 0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looks {
    /// Seeds that every cell has.
    pub first: usize,
    /// Seeds that a cell has at most.
    pub most: usize,
}

impl Looks {
    /// Numbers of seeds at the looks, ascending.
    pub fn counts(self) -> Vec<usize> {
        let mut counts = vec![self.most];
        let mut half = self.most.div_ceil(2);
        while 2 * half >= 3 * self.first && half < counts[counts.len() - 1] {
            counts.push(half);
            half = half.div_ceil(2);
        }
        if self.first < self.most {
            counts.push(self.first);
        }
        counts.reverse();
        counts
    }

    /// The share of the level that a look has, counted from 0; the shares sum to 1.
    pub fn share(self, look: usize) -> f64 {
        let counts = self.counts();
        let before = if look == 0 { 0 } else { counts[look - 1] };
        (counts[look] - before) as f64 / self.most as f64
    }

    /// Whether it makes sense where a verdict needs so many seeds.
    ///
    /// # Errors
    /// The key that does not, and the rest of a sentence about it.
    pub(crate) fn check(self, minimum_seeds: usize) -> Result<(), (&'static str, String)> {
        let least = minimum_seeds.max(2);
        if self.first < least {
            let what = format!(
                "must be {least} or more, not {}: a look at fewer decides nothing (statistics.minimum_seeds)",
                self.first
            );
            return Err(("first", what));
        }
        if self.most < self.first {
            let what = format!(
                "must be `first` or more, and {} is less than {}",
                self.most, self.first
            );
            return Err(("most", what));
        }
        if self.most > MOST {
            return Err(("most", format!("must be {MOST} or less, not {}", self.most)));
        }
        Ok(())
    }
}

/// More seeds than this are no plan.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_double_up_to_the_most_and_their_shares_make_up_the_level() {
        let counts = |first, most| Looks { first, most }.counts();
        assert_eq!(counts(3, 30), [3, 8, 15, 30]);
        assert_eq!(counts(3, 10), [3, 5, 10]);
        assert_eq!(counts(5, 20), [5, 10, 20]);
        assert_eq!(counts(3, 4), [3, 4]);
        assert_eq!(counts(4, 4), [4]);
        for first in 2..12 {
            for most in first..60 {
                let looks = Looks { first, most };
                let counts = looks.counts();
                assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
                assert_eq!((counts[0], counts[counts.len() - 1]), (first, most));
                let sum: f64 = (0..counts.len()).map(|look| looks.share(look)).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{counts:?}");
            }
        }
    }

    #[test]
    fn looks_that_decide_nothing_are_refused() {
        let check = |first, most| Looks { first, most }.check(3).map_err(|(key, _)| key);
        assert_eq!(check(3, 30), Ok(()));
        assert_eq!(check(2, 30), Err("first"));
        assert_eq!(check(5, 4), Err("most"));
        assert_eq!(check(5, 40_000), Err("most"));
        assert!(Looks { first: 1, most: 9 }.check(1).is_err());
    }
}
