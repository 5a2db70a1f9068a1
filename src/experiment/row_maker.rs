//! From the outcome of a run to its rows in the tables.

use std::collections::BTreeMap;

use super::config::Cell;
use super::decisions::rows_of;
use super::prepare::Fitted;
use super::rows::{
    Activity, DecisionRow, EpochRow, Measured, RunRow, Text, TimelineRow, TrafficRow,
};
use crate::net::{Count, Seconds, TrafficKind};
use crate::sim::{Outcome, SimError, TrainingConfig};

/// Makes the rows of one run.
pub(super) struct RowMaker<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// What was to be run.
    pub cell: &'a Cell,
    /// What it was run with.
    pub fitted: &'a Fitted,
}

/// What a run had reached when: of the columns of `runs`, those that follow from its rows of
/// `epochs`, which are in order.
pub(super) fn milestones(training: &TrainingConfig, epochs: &[EpochRow]) -> Measured {
    let target = training.target_accuracy.and_then(|target| {
        let reached = |epoch: &&EpochRow| epoch.val_accuracy.is_some_and(|it| it >= target);
        epochs.iter().find(reached)
    });
    // The first of the best, as for the whole run.
    let best = |within: &dyn Fn(&EpochRow) -> bool| {
        let evaluated = epochs.iter().filter(|epoch| within(epoch));
        let evaluated = evaluated.filter(|epoch| epoch.val_accuracy.is_some());
        evaluated
            .reduce(|best, epoch| {
                if epoch.val_accuracy > best.val_accuracy {
                    epoch
                } else {
                    best
                }
            })?
            .test_accuracy
    };
    let (bytes, seconds) = (training.byte_budget, training.time_budget);
    let lost = |epoch: &&EpochRow| epoch.train_loss.is_some_and(|loss| !loss.is_finite());
    Measured {
        diverged_at: epochs.iter().find(lost).map(|epoch| epoch.epoch),
        seconds_to_target: target.map(|epoch| epoch.simulated_seconds),
        bytes_to_target: target.map(|epoch| epoch.payload_bytes),
        accuracy_at_byte_budget: bytes
            .and_then(|bytes| best(&|epoch| epoch.payload_bytes <= bytes.0)),
        accuracy_at_time_budget: seconds
            .and_then(|seconds| best(&|epoch| epoch.simulated_seconds <= seconds.0)),
        ..Measured::default()
    }
}

impl RowMaker<'_> {
    /// The row of a run of which nothing is known but what it was to be.
    pub(super) fn blank(&self) -> RunRow {
        let (cell, setting) = (self.cell, &self.fitted.setting);
        let settings = &cell.settings;
        let asked = &self.fitted.needs.partition;
        RunRow {
            experiment: self.experiment.to_owned(),
            cell: cell.name.clone(),
            strategy: cell.strategy.label.clone(),
            dataset: setting.dataset.name.clone(),
            model: lower_name(&settings.model.kind),
            layers: setting.model.layers() as u64,
            hidden: settings.model.hidden as u64,
            // As the strategy wanted it, which may be another than that of [partition].
            partitioner: lower_name(&asked.method),
            workers: setting.workers() as u64,
            network: settings.network.name(),
            engine: setting.engine.name().to_owned(),
            backend: lower_name(&settings.device.backend),
            // There is room for one here. The manifest lists all of them.
            device: setting.devices[0].description.clone(),
            seed: setting.seed,
            epochs: self.fitted.training.epochs() as u64,
            parameters: None,
            edge_cut: setting.edge_cut() as u64,
            partition_seconds: Some(setting.partitioning.as_secs_f64()),
            boundary_rows: setting.counts.boundary_rows() as u64,
            measured: None,
            status: RunRow::OK.to_owned(),
            strategy_kind: Some(cell.strategy.kind.clone()),
            metric: Some(setting.dataset.metric),
            epoch_kind: Some(self.fitted.training.epoch_kind()),
            // A worker with a shard of its own knows no test nodes but its own.
            largest_class: match &setting.shards {
                None => setting.scored().largest_class(),
                Some(_) => None,
            },
            sweep: cell.sweep.clone(),
        }
    }

    pub(super) fn failed(&self, error: &SimError) -> RunRow {
        RunRow {
            status: format!("failed: {error}"),
            ..self.blank()
        }
    }

    /// The row of a run with these rows of epochs.
    pub(super) fn run(&self, outcome: &Outcome, epochs: &[EpochRow]) -> RunRow {
        let ledger = outcome.ledger.traffic();
        let total = ledger.total(&self.fitted.setting.framing);
        let best = outcome.best();
        // From rows, not from records: `verify` finds the same from the table.
        let until = milestones(&self.fitted.setting.training, epochs);
        let measured = Measured {
            best_epoch: best.map(|(epoch, _)| epoch as u64),
            val_accuracy: best.and_then(|(_, scores)| scores.validation),
            test_accuracy: best.and_then(|(_, scores)| scores.test),
            payload_bytes: total.payload.0,
            wire_bytes: total.wire.0,
            both_ends_bytes: 2 * total.payload.0,
            messages: total.messages,
            simulated_seconds: outcome.simulated().0,
            compute_seconds: outcome.mean_time(|times| times.compute).0,
            communication_seconds: outcome.mean_time(|times| times.communication).0,
            exposed_communication_seconds: outcome.mean_time(|times| times.exposed).0,
            waiting_seconds: Some(outcome.mean_time(|times| times.waiting).0),
            measured_seconds: outcome.measured.as_secs_f64(),
            peak_memory_bytes: outcome.peak_memory_bytes,
            ..until.with_payload(|kind| ledger.payload_of(kind).0)
        };
        RunRow {
            parameters: Some(outcome.parameters as u64),
            measured: Some(measured),
            ..self.blank()
        }
    }

    /// Bytes sent up to and including each epoch.
    fn cumulative(&self, outcome: &Outcome) -> Vec<Count> {
        let mut sum = Count::default();
        (0..self.fitted.training.epochs())
            .map(|epoch| {
                if let Some(traffic) = outcome.ledger.epoch(epoch) {
                    sum += traffic.total(&self.fitted.setting.framing);
                }
                sum
            })
            .collect()
    }

    pub(super) fn epochs(&self, outcome: &Outcome) -> Vec<EpochRow> {
        // Records of an outcome are complete and in order, so that their places are the numbers of
        // their epochs.
        let so_far = self.cumulative(outcome);
        let (cell, seed) = (self.cell, self.fitted.setting.seed);
        outcome
            .epochs
            .iter()
            .zip(so_far)
            .map(|(record, sent)| EpochRow {
                experiment: self.experiment.to_owned(),
                cell: cell.name.clone(),
                strategy: cell.strategy.label.clone(),
                seed,
                epoch: record.epoch as u64,
                simulated_seconds: record.simulated.0,
                measured_seconds: record.measured.as_secs_f64(),
                payload_bytes: sent.payload.0,
                wire_bytes: sent.wire.0,
                train_loss: Some(record.loss),
                train_accuracy: record.scores.and_then(|scores| scores.train),
                val_accuracy: record.scores.and_then(|scores| scores.validation),
                test_accuracy: record.scores.and_then(|scores| scores.test),
                val_loss: record.scores.and_then(|scores| scores.validation_loss),
                compression_ratio: record.compression_ratio,
                coverage: record.coverage,
                weight_mean: record.weight_mean,
                weight_sd: record.weight_sd,
                compression_error: record.compression_error,
                metric: Some(self.fitted.setting.dataset.metric),
            })
            .collect()
    }

    pub(super) fn traffic(&self, outcome: &Outcome) -> Vec<TrafficRow> {
        let cell = Text::from(self.cell.name.clone());
        let mut rows = Vec::new();
        for (epoch, traffic) in outcome.ledger.iter() {
            for (lane, count) in traffic.by_lane(&self.fitted.setting.framing) {
                rows.push(TrafficRow {
                    cell: cell.clone(),
                    seed: self.fitted.setting.seed,
                    epoch: epoch as u64,
                    layer: u64::from(lane.layer),
                    from: u64::from(lane.from),
                    to: u64::from(lane.to),
                    kind: lane.kind,
                    messages: count.messages,
                    payload_bytes: count.payload.0,
                    wire_bytes: count.wire.0,
                    compression_error: outcome
                        .coding_errors
                        .get(&(epoch, lane))
                        .map(|error| error.relative()),
                });
            }
        }
        rows
    }

    /// What the training decided.
    pub(super) fn decisions(&self, outcome: &Outcome) -> Vec<DecisionRow> {
        let blank = || DecisionRow {
            cell: self.cell.name.clone(),
            strategy: self.cell.strategy.label.clone(),
            seed: self.fitted.setting.seed,
            ..DecisionRow::default()
        };
        let all = outcome.decisions.iter();
        all.flat_map(|(&epoch, decision)| rows_of(epoch, decision, &blank))
            .collect()
    }

    /// What each worker did, in order of time, by worker and what it is.
    pub(super) fn timeline(&self, outcome: &Outcome) -> Vec<TimelineRow> {
        let row = |worker: usize, epoch: usize, span: Stretch| TimelineRow {
            cell: self.cell.name.clone(),
            strategy: self.cell.strategy.label.clone(),
            seed: self.fitted.setting.seed,
            epoch: epoch as u64,
            worker: worker as u64,
            start_seconds: span.0.0,
            end_seconds: span.1.0,
            ..TimelineRow::default()
        };
        let mut rows: Vec<TimelineRow> = (outcome.timeline.spans().iter())
            .map(|span| TimelineRow {
                activity: span.doing.into(),
                ..row(span.worker, span.epoch, (span.start, span.end))
            })
            .collect();
        let mut sends: BTreeMap<(usize, usize, TrafficKind), Vec<Stretch>> = BTreeMap::new();
        for flight in outcome.timeline.flights() {
            let key = (flight.lane.from as usize, flight.epoch, flight.lane.kind);
            let stretches = sends.entry(key).or_default();
            stretches.push((flight.start, flight.end));
        }
        for ((worker, epoch, kind), stretches) in sends {
            rows.extend(union(stretches).into_iter().map(|stretch| TimelineRow {
                activity: Activity::Send,
                kind: Some(kind),
                ..row(worker, epoch, stretch)
            }));
        }
        rows.sort_by(|a, b| {
            (a.worker.cmp(&b.worker))
                .then(a.start_seconds.total_cmp(&b.start_seconds))
                .then(a.end_seconds.total_cmp(&b.end_seconds))
        });
        rows
    }
}

/// From when until when.
type Stretch = (Seconds, Seconds);

/// What at least one of them covers, as disjoint stretches in ascending order.
fn union(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort();
    let mut joined: Vec<Stretch> = Vec::new();
    for (start, end) in stretches {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    // A message without bytes may take no time, and `verify` refuses spans without length.
    joined.retain(|(start, end)| start < end);
    joined
}

/// The name of a unit variant as experiment files write it.
fn lower_name<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Bytes;

    #[test]
    fn milestones_are_the_first_epoch_at_the_target_and_the_best_within_a_budget() {
        let epochs: Vec<EpochRow> = [(0.5, 0.4), (0.8, 0.7), (0.7, 0.9), (0.9, 0.6)]
            .iter()
            .zip(1..)
            .map(|(&(validation, test), epoch)| EpochRow {
                epoch: epoch - 1,
                train_loss: Some([1.0, f64::NAN, f64::INFINITY, 0.5][epoch as usize - 1]),
                val_accuracy: Some(validation),
                test_accuracy: Some(test),
                payload_bytes: 100 * epoch,
                simulated_seconds: epoch as f64,
                ..EpochRow::default()
            })
            .collect();
        let training = TrainingConfig {
            epochs: 4,
            evaluate_every: 1,
            target_accuracy: Some(0.75),
            byte_budget: Some(Bytes(399)),
            time_budget: Some(Seconds(0.5)),
            checkpoint_every: None,
            batch: None,
            score_isolated: true,
            inductive: false,
        };
        let found = milestones(&training, &epochs);
        let expected = Measured {
            diverged_at: Some(1),
            seconds_to_target: Some(2.0),
            bytes_to_target: Some(200),
            accuracy_at_byte_budget: Some(0.7),
            ..Measured::default()
        };
        assert_eq!(found, expected);
    }
}
