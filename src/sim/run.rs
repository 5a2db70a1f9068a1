//! One cell and seed from its setting to its outcome.

use std::sync::{Arc, Mutex, PoisonError};

use super::engine::{Cluster, run_workers};
use super::record::Recorder;
use super::{Engine, Observer, Outcome, Setting, SimError, Worker};

/// Runs a worker's program on every worker, on the engine of the setting. Where workers are processes, this one runs its own part, and the
/// outcome is complete on process 0 alone.
///
/// # Errors
/// The first error of any worker.
pub fn simulate<P>(
    setting: &Arc<Setting>,
    observer: Observer,
    program: P,
) -> Result<Outcome, SimError>
where
    P: Fn(&mut Worker) -> Result<(), SimError> + Sync,
{
    run(setting, observer, setting.workers(), program)
}

/// Runs the program on worker 0 alone, which plays all of them with [`Worker::carry`] and [`Worker::compute_together`]: for
/// thousands of workers whose replicas are equal, and are so held once. In simulation only.
///
/// # Errors
/// The error of the program.
pub fn simulate_together<P>(
    setting: &Arc<Setting>,
    observer: Observer,
    program: P,
) -> Result<Outcome, SimError>
where
    P: Fn(&mut Worker) -> Result<(), SimError> + Sync,
{
    run(setting, observer, 1, program)
}

fn run<P>(
    setting: &Arc<Setting>,
    observer: Observer,
    actors: usize,
    program: P,
) -> Result<Outcome, SimError>
where
    P: Fn(&mut Worker) -> Result<(), SimError> + Sync,
{
    memory::reset_peak();
    let relay = match &setting.engine {
        Engine::Simulated => None,
        Engine::Mpi(processes) => Some(processes.relay()),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(actors, observer, relay)));
    let one = |communicator| {
        let mut worker = Worker::new(Arc::clone(setting), communicator, Arc::clone(&recorder));
        program(&mut worker)
    };
    let results = match &setting.engine {
        Engine::Simulated => {
            let cluster = Cluster {
                topology: Arc::clone(&setting.topology),
                framing: setting.framing,
                all_reduce: setting.all_reduce,
                exchange: setting.exchange,
                timeline_epochs: setting.timeline_epochs,
            };
            run_workers(&cluster, actors, one)?
        }
        Engine::Mpi(processes) => processes.run(setting.all_reduce, one)?,
    };
    let mut recorder = Arc::into_inner(recorder)
        .ok_or_else(|| SimError::Strategy("a worker outlived its run".to_owned()))?
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Engine::Mpi(processes) = &setting.engine {
        processes.rest(&mut recorder)?;
    }
    let mut outcome = recorder.into_outcome(results, memory::peak());
    if let Engine::Mpi(processes) = &setting.engine {
        outcome = processes.gather(outcome)?;
    }
    if setting.engine.leads() && outcome.epochs.len() != setting.epochs {
        return Err(SimError::Strategy(format!(
            "it reported {} of {} epochs",
            outcome.epochs.len(),
            setting.epochs
        )));
    }
    Ok(outcome)
}

/// The peak resident size of this process, as Linux keeps it.
mod memory {
    use std::fs;

    /// Starts a new peak. Where that is not possible, the peak is that of the process so far.
    pub fn reset_peak() {
        // "5" resets the peak resident size (proc(5)); refused in some containers, which is no reason to stop.
        let _ = fs::write("/proc/self/clear_refs", "5");
    }

    /// Bytes, or 0 where the system does not say.
    pub fn peak() -> u64 {
        fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| {
                let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .map_or(0, |kilobytes| kilobytes * 1024)
    }
}
