//! What has to be said of projections, in sentences.

use super::{Projection, Verdicts};
use crate::experiment::config::Experiment;
use crate::experiment::rows::distinct;
use crate::experiment::uneven::note_on_steps;

/// What a reader of projections has to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Notes {
    /// What numbers say less than they seem to.
    pub limits: Vec<String>,
    /// What is assumed of the graphs, each once.
    pub assumed: Vec<String>,
}

/// Up to so many workers, random parts of a graph are nearly alike.
const EVEN_WORKERS: usize = 16;

/// The notes on these projections, of which some cells were skipped for these reasons.
pub(crate) fn notes(
    experiment: &Experiment,
    projections: &[Projection],
    verdicts: &Verdicts,
    skipped: Vec<String>,
) -> Notes {
    let mut limits = skipped;
    if projections
        .iter()
        .any(|projection| projection.compute_seconds == 0.0)
    {
        limits.push(
            "Computing is measured where it is done, and counts as nothing here: time is that of the network alone. Name a \
             device in compute.timing, such as { profile = \"t4\" }."
                .to_owned(),
        );
    }
    let steps = projections
        .iter()
        .map(|one| (one.strategy.as_str(), one.steps));
    limits.extend(note_on_steps(steps));
    let own = projections.iter().flat_map(|one| {
        let said = |note| format!("{}: {note}.", one.strategy);
        one.notes.iter().map(said)
    });
    limits.extend(distinct(own));
    limits.extend(experiment.note_on_nvlink());
    limits.extend(experiment.note_on_server());
    if projections.iter().any(|projection| !projection.exact) {
        limits.push(
            "≤ is the most it can be: what is sent depends on how the training goes.".to_owned(),
        );
    }
    if (projections.iter()).any(|projection| projection.memory_bytes.is_some()) {
        limits.push(
            "Memory is the most that a worker holds while it trains and, where that is more, while all evaluate the model; in the settings \
             of docs/scale.md within 15 % of what processes had allocated."
                .to_owned(),
        );
    }
    let average = |one: &Projection| {
        let of_numbers = one.assumed.is_some() && one.memory_bytes.is_some();
        of_numbers && one.workers > EVEN_WORKERS
    };
    if projections.iter().any(average) {
        limits.push(format!(
            "Of a graph known in numbers, over more than {EVEN_WORKERS} workers it is that of the average worker: of small graphs the fullest \
             one held up to 1.7 times as much."
        ));
    }
    if projections
        .iter()
        .any(|projection| projection.validated.is_some())
    {
        limits.push(
            "The last column has the largest errors of a strategy where it was trained, too: in the runs beside it, or in those of \
             experiments/scale/validate.toml, of GraphSAGE on R-MAT graphs of 2^11 to 2^16 nodes among 16 workers; times are held \
             to those with the same columns on the same network and device alone. A dash stands where nothing like it was trained (docs/scale.md)."
                .to_owned(),
        );
    }
    let too_large = projections.iter().filter(|one| one.fits == Some(false));
    let too_large = distinct(too_large.map(|one| one.strategy.as_str()));
    if !too_large.is_empty() {
        limits.push(format!(
            "A worker's memory is too small for {}: times, and verdicts on them, are those of one with more.",
            too_large.join(", ")
        ));
    }
    if !verdicts.left_out.is_empty() {
        let claims = verdicts.left_out.join(", ");
        limits.push(format!(
            "A plan says nothing about the claims {claims}: a training does."
        ));
    }
    let assumed = projections.iter().map(|projection| {
        let assumed = projection.assumed.as_ref();
        // Expected values are those of no single partition, so that seeds do not matter.
        assumed.map_or_else(
            || held(&experiment.seeds),
            |assumed| format!("{}: {assumed}.", projection.dataset),
        )
    });
    Notes {
        limits,
        assumed: distinct(assumed),
    }
}

/// How graphs that are held are cut.
fn held(seeds: &[u64]) -> String {
    let first = seeds.first().copied().unwrap_or(0);
    let others = match seeds.len() {
        0 | 1 => String::new(),
        all => format!(", the first of {all}: others may cut them in other ways"),
    };
    format!("Graphs that are held are partitioned with seed {first}{others}.")
}
