//! One cell and seed from its setting to its outcome.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::engine::run_workers;
use super::plan::Script;
use super::record::Recorder;
use super::{Checkpoints, Engine, Observer, Outcome, Planner, Setting, SimError, Worker};
use crate::memory;
use crate::net::{Count, Ledger, Traffic};

/// A training: the plan that every worker follows, and how long it is.
pub struct Run {
    /// Makes the plan.
    pub planner: Box<dyn Planner>,
    /// Number of epochs.
    pub epochs: usize,
    /// Whether the program of worker 0 plays all workers, with [`Worker::carry`] and
    /// [`Worker::compute_together`]: for thousands of workers whose replicas are equal, and are so
    /// held once. In simulation only.
    pub together: bool,
    /// Where it goes on after it was killed, if it does.
    pub checkpoints: Option<Checkpoints>,
}

/// Runs a worker's program on every worker, on the engine of the setting. Where workers are
/// processes, this one runs its own part, and the outcome is complete on process 0 alone.
///
/// # Errors
/// The first error of any worker, among them that a program departs from its plan.
pub fn simulate<P>(
    setting: &Arc<Setting>,
    run: Run,
    observer: Observer,
    program: P,
) -> Result<Outcome, SimError>
where
    P: Fn(&mut Worker) -> Result<(), SimError> + Sync,
{
    let epochs = run.epochs;
    let actors = if run.together { 1 } else { setting.workers() };
    // A process holds one worker, which reads its script alone.
    let readers = if setting.engine.processes().is_some() {
        1
    } else {
        actors
    };
    let script = Arc::new(Script::new(
        run.planner,
        readers,
        setting.all_reduce.clone(),
    ));
    // A process trains many cells one after another, and each has a peak of its own.
    memory::reset_peak();
    let relay = match &setting.engine {
        Engine::Simulated => None,
        Engine::Mpi(processes) => Some(processes.relay()),
    };
    let checkpoints = run.checkpoints.map(Arc::new);
    let recorder = Arc::new(Mutex::new(Recorder::new(actors, observer, relay)));
    let one = |communicator| {
        let (setting, recorder) = (Arc::clone(setting), Arc::clone(&recorder));
        let script = Arc::clone(&script);
        let mut worker = Worker::new(setting, epochs, communicator, recorder, script)?
            .with_checkpoints(checkpoints.clone());
        program(&mut worker)?;
        worker.end()
    };
    let results = match &setting.engine {
        Engine::Simulated => run_workers(&setting.cluster(), actors, one)?,
        Engine::Mpi(processes) => processes.run(setting.all_reduce.clone(), one)?,
    };
    // A program only borrows its worker, so that nobody has another reference now. The error stands
    // in for a panic.
    let mut recorder = Arc::into_inner(recorder)
        .ok_or_else(|| SimError::Strategy("a worker outlived its run".to_owned()))?
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Engine::Mpi(processes) = &setting.engine {
        processes.rest(&mut recorder)?;
    }
    let (planned, decisions) = Arc::into_inner(script)
        .ok_or_else(|| SimError::Strategy("a worker outlived its run".to_owned()))?
        .into_parts();
    let mut outcome = recorder.into_outcome(results, memory::peak());
    outcome.decisions = decisions;
    if let Engine::Mpi(processes) = &setting.engine {
        outcome = processes.gather(outcome)?;
    }
    // A program that left the loop early would leave a table that looks complete.
    if setting.engine.leads() && outcome.epochs.len() != epochs {
        return Err(SimError::Strategy(format!(
            "it reported {} of {} epochs",
            outcome.epochs.len(),
            epochs
        )));
    }
    // Process 0 alone has the whole ledger. The others have what they sent.
    if setting.engine.leads() {
        plan_is_ledger(&planned, &outcome)?;
    }
    Ok(outcome)
}

/// Every message that was sent had been planned, and no other.
fn plan_is_ledger(planned: &Ledger, outcome: &Outcome) -> Result<(), SimError> {
    let nothing = Traffic::new();
    // Not the epochs of the records alone: a message counted under a later one is none of theirs.
    let epochs = planned.iter().chain(outcome.ledger.iter());
    let epochs: BTreeSet<usize> = epochs.map(|(epoch, _)| epoch).collect();
    for epoch in epochs {
        let plan = planned.epoch(epoch).unwrap_or(&nothing);
        let ledger = outcome.ledger.epoch(epoch).unwrap_or(&nothing);
        if plan == ledger {
            continue;
        }
        let place = plan.first_difference(ledger).map(|(lane, planned, sent)| {
            let told = |count: Count| format!("{} in {} messages", count.payload, count.messages);
            let (planned, sent) = (told(planned), told(sent));
            // Of equal sums the sizes of messages differ.
            let sizes = if planned == sent {
                ", of other sizes"
            } else {
                ""
            };
            format!(
                ": {} of layer {} from worker {} to {}: {planned} planned, {sent} sent{sizes}",
                lane.kind, lane.layer, lane.from, lane.to
            )
        });
        return Err(SimError::Strategy(format!(
            "what it sent in epoch {epoch} is not what it had planned{}",
            place.unwrap_or_default()
        )));
    }
    Ok(())
}
