//! What a run leaves behind: one record per epoch, and the sums.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::engine::EngineResults;
use super::kernel::WorkerTimes;
use super::plan::Decision;
use super::trace::Trace;
use crate::net::{CodingError, Lane, Ledger, Seconds};

/// One evaluation by the metric of the data, and the validation loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Of the training nodes; null where nothing can be said, as without any.
    pub train: Option<f64>,
    /// Of the validation nodes.
    pub validation: Option<f64>,
    /// Of the test nodes.
    pub test: Option<f64>,
    /// Mean loss of the validation nodes.
    pub validation_loss: Option<f64>,
}

impl Scores {
    /// As they are shared between workers; one that does not exist is not a number.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        [self.train, self.validation, self.test, self.validation_loss]
            .iter()
            // To the bit, for all workers have to decide the same by them.
            .flat_map(|score| score.unwrap_or(f64::NAN).to_le_bytes())
            .collect()
    }

    /// What [`Self::to_bytes`] made.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let score = |i: usize| {
            let score = words.get(i).map(|word| f64::from_le_bytes(*word));
            score.filter(|score| !score.is_nan())
        };
        Self {
            train: score(0),
            validation: score(1),
            test: score(2),
            validation_loss: score(3),
        }
    }
}

/// What a worker says at the end of an epoch. Fields that several workers fill are combined as
/// stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// This worker's share of the training loss; summed.
    pub loss: f64,
    /// Scores of the model after this epoch, none when it was not evaluated. Worker 0's are
    /// recorded; the others may say none.
    pub scores: Option<Scores>,
    /// How many times smaller than uncompressed the exchanged rows are; the same on every worker.
    pub compression_ratio: Option<f64>,
    /// What this worker's messages lost forward in compression, if that was measured; summed.
    pub coding_error: Option<CodingError>,
    /// Mean share of a training node's neighbourhood that the worker sees; averaged over the
    /// workers that say.
    pub coverage: Option<f64>,
    /// Weight of this worker's gradient; mean and standard deviation over the workers that say are
    /// recorded.
    pub weight: Option<f64>,
}

/// One epoch of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochRecord {
    /// Number of the epoch, from 0.
    pub epoch: usize,
    /// Virtual time when the last worker ended it.
    pub simulated: Seconds,
    /// Real time of training until then, evaluation excluded.
    pub measured: Duration,
    /// Training loss before the last step of the epoch.
    pub loss: f64,
    /// Scores after it, if evaluated.
    pub scores: Option<Scores>,
    /// See [`EpochReport`].
    pub compression_ratio: Option<f64>,
    /// Σ‖x̃ − x‖² / Σ‖x‖² of the rows sent forward, over all workers.
    pub compression_error: Option<f64>,
    /// See [`EpochReport`].
    pub coverage: Option<f64>,
    /// Mean over workers.
    pub weight_mean: Option<f64>,
    /// Unbiased standard deviation over workers.
    pub weight_sd: Option<f64>,
}

/// Called with every finished epoch.
pub type Observer = Arc<dyn Fn(&EpochRecord) + Send + Sync>;

/// The results of one cell and seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One record per epoch, complete and in order.
    pub epochs: Vec<EpochRecord>,
    /// Every message.
    pub ledger: Ledger,
    /// What messages lost in compression, by epoch and lane, where it was measured.
    pub coding_errors: BTreeMap<(usize, Lane), CodingError>,
    /// What was decided on the way, by the epoch for which.
    pub decisions: BTreeMap<usize, Decision>,
    /// Each worker's account of time.
    pub times: Vec<WorkerTimes>,
    /// What the workers did in the first epochs, where that was asked for.
    pub timeline: Trace,
    /// Number of parameters that were trained.
    pub parameters: usize,
    /// Real time of training, evaluation excluded.
    pub measured: Duration,
    /// Real time inside model computation: forward, backward, optimiser and evaluation. Since it
    /// went on, of a run that goes on from a checkpoint.
    pub model: Duration,
    /// Largest resident size of the process during the run; 0 where the system does not say.
    pub peak_memory_bytes: u64,
}

impl Outcome {
    /// The first epoch with the highest validation score.
    pub fn best(&self) -> Option<(usize, Scores)> {
        let mut best: Option<(usize, Scores)> = None;
        for record in &self.epochs {
            let Some(scores) = record.scores else {
                continue;
            };
            // Strictly more, so that the first of equals stays. `None` is less than any score.
            if best.is_none_or(|(_, so_far)| scores.validation > so_far.validation) {
                best = Some((record.epoch, scores));
            }
        }
        best
    }

    /// Virtual time when the last worker ended.
    pub fn simulated(&self) -> Seconds {
        self.times
            .iter()
            .map(|t| t.clock)
            .fold(Seconds::ZERO, Seconds::max)
    }

    /// A mean over workers.
    pub fn mean_time(&self, of: impl Fn(&WorkerTimes) -> Seconds) -> Seconds {
        let sum: f64 = self.times.iter().map(|times| of(times).0).sum();
        Seconds(sum / self.times.len().max(1) as f64)
    }
}

/// What one worker says at the end of one epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    rank: usize,
    epoch: usize,
    said: EpochReport,
    /// The worker's clock.
    clock: f64,
    /// Real time of training, evaluation excluded; kept by the process of worker 0 alone.
    measured: Duration,
}

/// Hands a report on, where workers are processes, and returns those that are to be recorded here.
pub(super) type Relay = Box<dyn FnMut(Report) -> Vec<Report> + Send>;

/// Gathers what the workers say.
pub(super) struct Recorder {
    epochs: Vec<EpochRecord>,
    /// By epoch: what each worker has reported, by rank so that sums do not depend on who came
    /// first.
    waiting: Vec<BTreeMap<usize, Report>>,
    workers: usize,
    started: Instant,
    /// Real time of training before that, of a run that goes on.
    before: Duration,
    /// What since the start is no part of the training.
    pub(super) beside: Stopwatch,
    /// Computing of the model.
    pub(super) model: Stopwatch,
    parameters: usize,
    coding_errors: BTreeMap<(usize, Lane), CodingError>,
    observer: Observer,
    relay: Option<Relay>,
}

/// Real time in which at least one worker did something: several may at once.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    workers: usize,
    since: Option<Instant>,
    ended: Duration,
}

impl Stopwatch {
    /// A worker begins.
    pub(super) fn enter(&mut self) {
        self.workers += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    /// A worker ends.
    pub(super) fn leave(&mut self) {
        self.workers -= 1;
        if self.workers == 0 {
            self.ended = self.total();
            self.since = None;
        }
    }

    /// Forgets what was until now.
    fn restart(&mut self) {
        self.ended = Duration::ZERO;
        self.since = self.since.map(|_| Instant::now());
    }

    fn total(&self) -> Duration {
        let since = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.ended + since
    }
}

impl Recorder {
    pub(super) fn new(workers: usize, observer: Observer, relay: Option<Relay>) -> Self {
        Self {
            epochs: Vec::new(),
            waiting: Vec::new(),
            workers,
            started: Instant::now(),
            before: Duration::ZERO,
            beside: Stopwatch::default(),
            model: Stopwatch::default(),
            parameters: 0,
            coding_errors: BTreeMap::new(),
            observer,
            relay,
        }
    }

    /// A worker begins to evaluate, which is computing of the model and no part of the training.
    pub(super) fn enter_evaluation(&mut self) {
        self.model.enter();
        self.beside.enter();
    }

    pub(super) fn leave_evaluation(&mut self) {
        self.model.leave();
        self.beside.leave();
    }

    /// Something took so long that is no part of the training, one worker after another.
    pub(super) fn pause(&mut self, took: Duration) {
        self.beside.ended += took;
    }

    /// Real time of training so far.
    pub(super) fn measured(&self) -> Duration {
        self.before + self.started.elapsed().saturating_sub(self.beside.total())
    }

    /// Goes on after so much real time of training; what it took to come to this point is no part
    /// of it.
    pub(super) fn go_on_after(&mut self, measured: Duration) {
        self.before = measured;
        self.started = Instant::now();
        self.beside.restart();
    }

    /// What the messages of a worker lost in compression so far.
    pub(super) fn coding_errors_of(&self, rank: usize) -> Vec<((usize, Lane), CodingError)> {
        let all = self.coding_errors.iter();
        let own = all.filter(|((_, lane), _)| lane.from as usize == rank);
        own.map(|(at, error)| (*at, *error)).collect()
    }

    pub(super) const fn set_parameters(&mut self, parameters: usize) {
        self.parameters = parameters;
    }

    pub(super) fn add_coding_error(&mut self, epoch: usize, lane: Lane, error: CodingError) {
        let so_far = self.coding_errors.entry((epoch, lane)).or_default();
        *so_far = so_far.plus(error);
    }

    /// Takes what a worker of this process says; that, with the time at which it did.
    pub(super) fn report(
        &mut self,
        rank: usize,
        epoch: usize,
        report: EpochReport,
        clock: Seconds,
    ) -> Report {
        let measured = self.measured();
        let report = Report {
            rank,
            epoch,
            said: report,
            clock: clock.0,
            // Clocks of processes began at different times, so that only one of them can be used.
            measured: if rank == 0 || self.relay.is_none() {
                measured
            } else {
                Duration::ZERO
            },
        };
        self.hear(report.clone());
        report
    }

    /// Takes what a worker of this process says, or said before the run was stopped.
    pub(super) fn hear(&mut self, report: Report) {
        let reports = match &mut self.relay {
            Some(relay) => relay(report),
            None => vec![report],
        };
        for report in reports {
            self.take(report);
        }
    }

    /// Takes one worker's report; the epoch is complete when all have given theirs.
    pub(super) fn take(&mut self, report: Report) {
        let epoch = report.epoch;
        if self.waiting.len() <= epoch {
            self.waiting.resize_with(epoch + 1, BTreeMap::new);
        }
        let reports = &mut self.waiting[epoch];
        reports.insert(report.rank, report);
        if reports.len() < self.workers {
            return;
        }
        let reports: Vec<Report> = std::mem::take(reports).into_values().collect();
        let mean = |values: Vec<f64>| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let weights: Vec<f64> = reports.iter().filter_map(|r| r.said.weight).collect();
        let weight_mean = mean(weights.clone());
        let weight_sd = weight_mean.filter(|_| weights.len() > 1).map(|mean| {
            let squares: f64 = weights.iter().map(|w| (w - mean) * (w - mean)).sum();
            (squares / (weights.len() - 1) as f64).sqrt()
        });
        let record = EpochRecord {
            epoch,
            simulated: reports
                .iter()
                .map(|report| Seconds(report.clock))
                .fold(Seconds::ZERO, Seconds::max),
            // In one process all read the same clock, and the last reading is the end. Of several
            // processes, those besides worker 0's say zero.
            // A checkpoint has worker 0's reading, and others may have read later: a run that goes
            // on from it goes on no earlier than the epoch before.
            measured: (reports.iter().map(|r| r.measured))
                .chain(self.epochs.last().map(|record| record.measured))
                .max()
                .unwrap_or_default(),
            loss: reports.iter().map(|r| r.said.loss).sum(),
            // Worker 0 evaluates, and is the first by rank. The others may have heard no scores.
            scores: reports[0].said.scores,
            compression_ratio: reports[0].said.compression_ratio,
            compression_error: reports
                .iter()
                .filter_map(|report| report.said.coding_error)
                .reduce(CodingError::plus)
                .map(CodingError::relative),
            coverage: mean(reports.iter().filter_map(|r| r.said.coverage).collect()),
            weight_mean,
            weight_sd,
        };
        // With the recorder locked: an observer hears of one epoch at a time, and holds up whoever
        // reports.
        (self.observer)(&record);
        self.epochs.push(record);
    }

    pub(super) fn into_outcome(
        mut self,
        results: EngineResults,
        peak_memory_bytes: u64,
    ) -> Outcome {
        // Reports of several processes may complete a later epoch first.
        self.epochs.sort_by_key(|record| record.epoch);
        let measured = self.measured();
        Outcome {
            epochs: self.epochs,
            ledger: results.ledger,
            coding_errors: self.coding_errors,
            decisions: BTreeMap::new(),
            times: results.times,
            timeline: results.timeline,
            parameters: self.parameters,
            measured,
            model: self.model.total(),
            peak_memory_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_several_workers_counts_once_and_goes_on_after_a_restart() {
        let mut watch = Stopwatch::default();
        let wait = || std::thread::sleep(Duration::from_millis(20));
        let begun = Instant::now();
        watch.enter();
        watch.enter();
        wait();
        watch.leave();
        wait();
        assert!(watch.total() >= Duration::from_millis(40), "one is inside");
        assert!(watch.total() <= begun.elapsed(), "and not counted twice");
        watch.restart();
        wait();
        watch.leave();
        let total = watch.total();
        assert!(
            total >= Duration::from_millis(20)
                && total + Duration::from_millis(40) <= begun.elapsed()
        );
        wait();
        assert_eq!(watch.total(), total, "nobody is inside");
    }

    #[test]
    fn real_time_does_not_fall_where_a_run_goes_on_from_an_earlier_reading() {
        let mut recorder = Recorder::new(1, Arc::new(|_| ()), None);
        for (epoch, seconds) in [(0, 5), (1, 4), (2, 6)] {
            recorder.take(Report {
                rank: 0,
                epoch,
                clock: 0.0,
                measured: Duration::from_secs(seconds),
                said: EpochReport::default(),
            });
        }
        let measured: Vec<u64> = (recorder.epochs.iter())
            .map(|record| record.measured.as_secs())
            .collect();
        assert_eq!(measured, [5, 5, 6]);
    }
}
