//! How far projections from counts were off where the same was trained.
//!
//! `experiments/scale/validate.toml` trains six strategies on R-MAT graphs of 2¹¹ to 2¹⁶ nodes in
//! random parts, and its projection is held against that. The table beside this file has what came
//! of it; `tests/suite/counts.rs` holds it against the smallest of these sizes.

use crate::experiment::config::Settings;
use crate::sim::Timing;

/// Workers in that file.
const VALIDATED_WORKERS: usize = 16;

/// The largest errors of each kind of strategy, of payload and simulated time, as shares of what
/// was trained.
const ERRORS: &str = include_str!("validated.csv");

/// Whether a setting is of the kind that was trained. More random parts are more unequal than a
/// projection takes them to be, and stand-ins for published graphs have other degrees than these.
pub(crate) fn is_as_validated(settings: &Settings) -> bool {
    let counts = settings.dataset.counts.as_ref();
    let rmat = counts.is_some_and(|counts| counts.rmat.is_some());
    let modelled = matches!(settings.compute.timing, Timing::Modelled(_));
    rmat && modelled && (2..=VALIDATED_WORKERS).contains(&settings.partition.workers)
}

/// The largest errors of payload and simulated time of a kind of strategy, as shares of what was
/// trained; none if it was not among them.
pub(crate) fn validated(kind: &str) -> Option<[f64; 2]> {
    let line = |line: &str| {
        let mut fields = line.split(',');
        let same = fields.next()? == kind;
        let mut error = || fields.next()?.parse::<f64>().ok();
        let errors = [error()?, error()?];
        same.then_some(errors)
    };
    ERRORS.lines().skip(1).find_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategies::Registry;

    #[test]
    fn every_line_is_of_a_strategy_and_within_what_a_projection_promises() {
        let registry = Registry::builtin();
        for line in ERRORS.lines().skip(1) {
            let kind = line.split(',').next().unwrap();
            assert!(registry.names().contains(&kind), "{line}");
            let [payload, time] = validated(kind).unwrap();
            assert!(payload.abs() <= 0.05 && time.abs() <= 0.1, "{line}");
        }
        assert_eq!(ERRORS.lines().count(), 7);
        assert_eq!(validated("kind"), None);
        assert_eq!(validated("varco"), None);
    }
}
