//! How long all will take, before it begins: what is known of very many workers, and a trial of
//! each strategy.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::Progress;
use super::grid::Job;
use crate::experiment::outlook::Outlook;
use crate::experiment::prepare::Preparation;
use crate::experiment::rows::distinct;
use crate::net::AllReduceChoice;
use crate::sim::{Engine, Observer};
use crate::strategies;

/// Epochs of a trial.
const TRIAL: usize = 2;

/// Trials are made where all epochs are so many times as many.
const SMALL_PART: usize = 50;

/// What is known of the time that all will take, by a trial of two epochs of each strategy: where
/// that is asked for, and where the trials are a small part of the whole.
pub(super) fn outlook(
    engine: &Engine,
    preparation: &mut Preparation<'_>,
    jobs: &[Job<'_>],
    progress: &Arc<dyn Progress>,
) -> Outlook {
    let mut outlook = Outlook::default();
    if engine.processes().is_some() {
        return outlook;
    }
    for note in crowded(jobs) {
        progress.note(&note);
    }
    let mut strategies: Vec<(&Job<'_>, u64)> = Vec::new();
    let mut epochs = 0;
    for job in jobs {
        let label = &job.cell.strategy.label;
        for run in job.runs.iter().filter(|run| !run.kept) {
            outlook.add(&job.cell.name, label, job.epochs);
            epochs += job.epochs;
            let new = |(known, _): &(&Job<'_>, u64)| known.cell.strategy.label != *label;
            // A trial among very many workers would take long itself, and they have a note of their
            // own.
            if ring_seconds(job).is_none() && strategies.iter().all(new) {
                strategies.push((job, run.seed));
            }
        }
    }
    let worth = epochs >= SMALL_PART * TRIAL * strategies.len();
    if !worth || !progress.wants_outlook() {
        return outlook;
    }
    for (job, seed) in strategies {
        if let Some(ends) = tried(preparation, job, seed) {
            outlook.tried(&job.cell.strategy.label, &ends);
        }
    }
    if let Some(left) = outlook.left() {
        progress.outlook(left);
    }
    outlook
}

/// When the epochs of a short training of the cell ended, in seconds; none where it cannot be so
/// short.
fn tried(preparation: &mut Preparation<'_>, job: &Job<'_>, seed: u64) -> Option<Vec<f64>> {
    let mut cell = job.cell.clone();
    cell.settings.training.epochs = TRIAL;
    preparation.turn_to(&cell.settings.dataset, seed);
    // Whatever is wrong shows again in the run itself, which says so.
    let fitted = preparation.fit(&cell, seed).ok()?;
    let begun = Instant::now();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let observer: Observer = {
        let ends = Arc::clone(&ends);
        Arc::new(move |_| {
            let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.push(begun.elapsed().as_secs_f64());
        })
    };
    strategies::run(&*fitted.training, fitted.needs.together, observer).ok()?;
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
    Some(ends.clone())
}

/// Seconds that emulating an epoch takes where very many workers sum gradients around a ring.
fn ring_seconds(job: &Job<'_>) -> Option<f64> {
    const MANY: usize = 192;
    let workers = job.cell.settings.partition.workers;
    let ring = job.cell.settings.network.all_reduce == AllReduceChoice::Ring;
    let counts = ring && !job.together && workers >= MANY;
    counts.then(|| carried(workers))
}

/// Seconds that it takes to carry the messages of a sum around a ring: of P workers each sends
/// 2 (P − 1), and each is carried by itself. By what 256 and 1,024 workers took on two cores of an
/// AMD EPYC (`docs/reliability.md`), to an order of magnitude.
fn carried(workers: usize) -> f64 {
    const EACH: f64 = 8e-6;
    2.0 * workers as f64 * (workers as f64 - 1.0) * EACH
}

/// What to know before very many workers are waited for, once for each number of them.
fn crowded(jobs: &[Job<'_>]) -> Vec<String> {
    distinct(jobs.iter().filter_map(|job| {
        let seconds = ring_seconds(job)?;
        let workers = job.cell.settings.partition.workers;
        let hours = seconds * (job.epochs * job.runs.len()) as f64 / 3600.0;
        Some(format!(
            "{workers} workers around a ring send {} messages for each sum of gradients, which takes some {seconds:.0} s an epoch to \
             emulate, some {hours:.1} h for each cell; network.all_reduce = \"tree\" sends {}",
            2 * workers * (workers - 1),
            2 * (workers - 1)
        ))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_takes_as_long_as_the_page_of_promises_says() {
        let page = include_str!("../../../docs/reliability.md");
        let said = "some eight microseconds each: two million, and seventeen seconds, with 1,024";
        assert!(page.contains(said));
        assert_eq!(carried(1024).round(), 17.0);
    }
}
