//! An experiment's claims, judged by what is projected.

use super::{Projection, extremes};
use crate::experiment::claims::{ClaimSpec, judge};
use crate::experiment::config::Experiment;
use crate::experiment::rows::{ClaimRow, ClaimVerdict, RunRow};
use crate::experiment::statistics::Statistics;
use crate::sim::Timing;

/// What a worker holds, by the name that it has in `runs`.
const MEMORY: &str = "peak_memory_bytes";
/// Measures with the time of computing in them.
const OF_COMPUTING: [&str; 5] = [
    "simulated_seconds",
    "compute_seconds",
    "exposed_communication_seconds",
    "waiting_seconds",
    "seconds_to_target",
];

/// What comes of the claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Verdicts {
    /// Those that a plan has something to say about.
    pub claims: Vec<ClaimRow>,
    /// The others, by id: a training alone knows accuracies.
    pub left_out: Vec<String>,
}

/// Whether a projection charges for computing.
fn models_compute(experiment: &Experiment, projection: &Projection) -> bool {
    let mut cells = experiment.cells().iter();
    let cell = cells.find(|cell| cell.name == projection.cell);
    cell.is_none_or(|cell| matches!(cell.settings.compute.timing, Timing::Modelled(_)))
}

/// Judges the claims. A projection is one number and no sample, so that a verdict needs no seeds;
/// where it lies between two ends, it has to be the same everywhere between them.
pub(crate) fn verdicts(experiment: &Experiment, projections: &[Projection]) -> Verdicts {
    let statistics = Statistics {
        minimum_seeds: 1,
        looks: None,
        ..experiment.statistics.clone()
    };
    let judged = |of: &dyn Fn(&Projection) -> RunRow| -> Vec<ClaimRow> {
        let claim = |claim: &ClaimSpec| {
            // Of some strategies nobody knows what they hold, and how long it takes to compute is
            // known where it is modelled.
            let known = |one: &&Projection| match claim.measure.as_str() {
                MEMORY => one.memory_bytes.is_some(),
                measure => !OF_COMPUTING.contains(&measure) || models_compute(experiment, one),
            };
            let runs: Vec<RunRow> = projections.iter().filter(known).map(of).collect();
            judge(std::slice::from_ref(claim), &runs, &statistics)
        };
        experiment.claims.iter().flat_map(claim).collect()
    };
    let at = |end: usize| {
        judged(&|projection| {
            let ends = projection.ends.as_ref();
            ends.map_or(&projection.run, |ends| &ends[end]).clone()
        })
    };
    let fitted = projections
        .iter()
        .any(|projection| projection.ends.is_some());
    let ends = fitted.then(|| [at(0), at(1)]);
    let mut found = Verdicts::default();
    for (place, mut row) in judged(&|projection| projection.run.clone())
        .into_iter()
        .enumerate()
    {
        if row.measured.is_none() {
            found.left_out.push(row.id);
            continue;
        }
        // There are no seeds, and nothing is left to chance.
        (row.p_value, row.p_adjusted, row.seeds) = (None, None, 0);
        if let Some([low, high]) = &ends {
            let ends = [&low[place], &high[place]];
            let values = [ends[0].measured, row.measured, ends[1].measured];
            // Too few at one end and too many at the other: between them it may be right.
            let mut crossed = false;
            if let [Some(one), Some(middle), Some(other)] = values {
                // What is measured of a cache, or of a quotient, may be most in the middle.
                let (low, high) = extremes([one, middle, other], f64::total_cmp);
                (row.low, row.high) = (Some(low), Some(high));
                let claim = experiment.claims.iter().find(|claim| claim.id == row.id);
                crossed = claim.is_some_and(|claim| claim.lies_between(low, high));
            }
            if crossed || ends.iter().any(|end| end.verdict != row.verdict) {
                row.verdict = ClaimVerdict::Inconclusive;
            }
        }
        found.claims.push(row);
    }
    found
}
