//! How many seeds tell a mean from a bound, and how small a difference so many seeds tell.

use statrs::distribution::ContinuousCDF;

use super::sample::t;

/// The chance with which a difference that is there shall be found: what Cohen (*Statistical Power
/// Analysis*, 1988) made the custom.
pub const POWER: f64 = 0.8;

/// More seeds than this are said to be too many.
pub(crate) const MOST_SEEDS: usize = 10_000;

/// The distance from a bound that so many seeds tell with a chance of [`POWER`]: values have this
/// standard deviation, and the one-sided p-value has to be at most `tail`. From Student's
/// distribution shifted by the distance, which is within a seed of the noncentral one (Guenther,
/// *The American Statistician* 35, 1981). Infinite for a single seed.
pub fn detectable(deviation: f64, seeds: usize, tail: f64) -> f64 {
    if seeds < 2 {
        return f64::INFINITY;
    }
    let t = t(seeds as f64 - 1.0);
    let quantiles = t.inverse_cdf(1.0 - tail) + t.inverse_cdf(POWER);
    quantiles * deviation / (seeds as f64).sqrt()
}

/// The least number of seeds that tell a mean at these distances from its two bounds, of which
/// either may fail to be told, and one may be infinitely far; `None` where more than ten thousand
/// are needed, as at no distance at all.
pub(crate) fn seeds_needed(deviation: f64, distances: [f64; 2], tail: f64) -> Option<usize> {
    if deviation == 0.0 {
        return Some(2);
    }
    let missed = |seeds: usize| -> f64 {
        let t = t(seeds as f64 - 1.0);
        let told = t.inverse_cdf(1.0 - tail);
        let missed =
            distances.map(|distance| t.sf(distance * (seeds as f64).sqrt() / deviation - told));
        missed.iter().sum()
    };
    let enough = |seeds: &usize| *seeds > 1 && missed(*seeds) <= 1.0 - POWER;
    if !enough(&MOST_SEEDS) {
        return None;
    }
    // What is missed falls with every seed.
    let (mut few, mut many) = (1, MOST_SEEDS);
    while many - few > 1 {
        let middle = few.midpoint(many);
        if enough(&middle) {
            many = middle;
        } else {
            few = middle;
        }
    }
    Some(many)
}

/// The least p-value of so many values of a coarse measure that are all equal: as if their signs
/// alone were counted.
pub(crate) fn alike_p(seeds: usize) -> f64 {
    0.5_f64.powi(i32::try_from(seeds).unwrap_or(i32::MAX))
}

/// How many of them decide, should they stay equal.
pub(crate) fn alike_seeds(tail: f64) -> usize {
    (-tail.log2()).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a mean with one bound.
    fn one_sided(deviation: f64, distance: f64, tail: f64) -> Option<usize> {
        seeds_needed(deviation, [distance, f64::INFINITY], tail)
    }

    #[test]
    fn numbers_of_seeds_are_those_of_published_tables() {
        // One-sided 5 % and 80 %: 7 … 156 cases for effects from 1 to 0.2 by Cohen's tables and
        // G*Power 3.1; the shifted distribution may ask for one more.
        for (effect, cases) in [(1.0, 8), (0.8, 11), (0.5, 27), (0.2, 156)] {
            let seeds = one_sided(1.0, effect, 0.05).unwrap();
            assert!((cases..=cases + 1).contains(&seeds), "{effect}: {seeds}");
        }
    }

    #[test]
    fn what_is_needed_is_enough_and_one_less_is_not() {
        for (deviation, distance, tail) in
            [(0.02, 0.01, 0.025), (1.0, 3.0, 0.001), (0.3, 0.1, 0.05)]
        {
            let seeds = one_sided(deviation, distance, tail).unwrap();
            assert!(detectable(deviation, seeds, tail) <= distance);
            assert!(detectable(deviation, seeds - 1, tail) > distance);
            // Between two bounds either may be missed; one that is far away asks for nothing.
            let both = |far| seeds_needed(deviation, [distance, far], tail).unwrap();
            assert!(both(distance) > seeds && both(10.0 * distance) == seeds);
        }
        assert_eq!(one_sided(1.0, 0.0, 0.05), None);
        assert_eq!(one_sided(0.0, 0.1, 0.05), Some(2));
        assert_eq!(detectable(1.0, 1, 0.05), f64::INFINITY);
    }

    /// A standard normal value as the sum of twelve uniform ones.
    fn normal(random: &mut impl rand::RngExt) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn so_many_seeds_find_the_difference_as_often_as_promised() {
        use crate::experiment::statistics::{IntervalMethod, Sample};
        use crate::rng::{Purpose, stream};
        let (deviation, distance, tail) = (1.0, 0.9, 0.025);
        let seeds = one_sided(deviation, distance, tail).unwrap();
        let mut random = stream(2, Purpose::Study, 0, 0);
        let mut found = 0;
        for _ in 0..2000 {
            let draw = |_| distance + normal(&mut random);
            let values: Vec<f64> = (0..seeds).map(draw).collect();
            let sample = Sample::of(&values, IntervalMethod::StudentT).unwrap();
            found += usize::from(sample.not_above(0.0) <= tail);
        }
        // 2,000 coins of 80 to 84 %: five standard deviations around it.
        assert!((1500..1760).contains(&found), "{found}");
    }
}
