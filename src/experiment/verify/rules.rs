//! What must hold within one run, its epochs and its traffic.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, no_more};
use crate::experiment::rows::{EpochRow, Measured, Row, RunRow, TrafficRow};
use crate::graph::Metric;
use crate::net::TrafficKind;

/// Columns of epochs that never fall, and end at the run's.
const CUMULATIVE: [&str; 4] = [
    "simulated_seconds",
    "measured_seconds",
    "payload_bytes",
    "wire_bytes",
];

/// Messages, payload and wire bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    messages: u64,
    payload: u64,
    wire: u64,
}

impl Sum {
    fn add(&mut self, row: &TrafficRow) {
        // A table on disk may hold any number. A sum that does not fit must be a breach, not a
        // panic.
        self.messages = self.messages.saturating_add(row.messages);
        self.payload = self.payload.saturating_add(row.payload_bytes);
        self.wire = self.wire.saturating_add(row.wire_bytes);
    }
}

impl Checker {
    /// What a row of `runs` says about itself.
    pub(super) fn run(&mut self, row: usize, run: &RunRow, measured: &Measured) {
        let kinds = TrafficKind::ALL.map(|kind| measured.bytes_of(kind));
        let kinds = kinds.into_iter().fold(0, u64::saturating_add);
        self.equal::<RunRow, _>(
            row,
            "payload_bytes",
            measured.payload_bytes,
            "the sum of the kinds",
            kinds,
        );
        self.equal::<RunRow, _>(
            row,
            "both_ends_bytes",
            measured.both_ends_bytes,
            "twice payload_bytes",
            measured.payload_bytes.saturating_mul(2),
        );
        self.framed::<RunRow>(row, measured.payload_bytes, measured.wire_bytes);
        self.share::<RunRow>(row, "val_accuracy", measured.val_accuracy);
        self.share::<RunRow>(row, "test_accuracy", measured.test_accuracy);
        for name in [
            "simulated_seconds",
            "compute_seconds",
            "communication_seconds",
            "exposed_communication_seconds",
            "waiting_seconds",
            "measured_seconds",
        ] {
            let seconds = run.number(name).unwrap_or_default();
            self.ensure::<RunRow>(seconds >= 0.0 && seconds.is_finite(), row, || {
                format!("{name} is {seconds}, not a time")
            });
        }
        let (compute, waiting) = ("compute_seconds", "waiting_seconds");
        let exposed = "exposed_communication_seconds";
        for (parts, whole) in [
            (&[compute, exposed][..], "simulated_seconds"),
            (&[compute, exposed, waiting], "simulated_seconds"),
            (&[exposed], "communication_seconds"),
            (&["seconds_to_target"], "simulated_seconds"),
            (&["bytes_to_target"], "payload_bytes"),
        ] {
            // Null where one of them is.
            let sum: Option<f64> = parts.iter().map(|part| run.number(part)).sum();
            let (Some(sum), Some(limit)) = (sum, run.number(whole)) else {
                continue;
            };
            self.ensure::<RunRow>(no_more(sum, limit), row, || {
                format!("{} {sum} is more than {whole} {limit}", parts.join(" + "))
            });
        }
    }

    /// Framing only adds.
    fn framed<R: Row>(&mut self, row: usize, payload: u64, wire: u64) {
        self.ensure::<R>(wire >= payload, row, || {
            format!("wire_bytes {wire} is less than payload_bytes {payload}")
        });
    }

    /// The epochs of a run are there, in order, and their cumulative columns never fall.
    pub(super) fn epochs(&mut self, row: usize, run: &RunRow, epochs: &[(usize, &EpochRow)]) {
        let count = epochs.len() as u64;
        self.equal::<RunRow, _>(
            row,
            "epochs",
            run.epochs,
            "the number of its rows in epochs",
            count,
        );
        for (expected, &(row, epoch)) in (0..).zip(epochs) {
            self.equal::<EpochRow, _>(row, "epoch", epoch.epoch, "the next one", expected);
            self.equal::<EpochRow, _>(
                row,
                "strategy",
                epoch.strategy.as_str(),
                "that of the run",
                run.strategy.as_str(),
            );
            let name = |metric: Option<Metric>| metric.map_or("none", Metric::name);
            self.equal::<EpochRow, _>(
                row,
                "metric",
                name(epoch.metric),
                "that of the run",
                name(run.metric),
            );
            self.share::<EpochRow>(row, "train_accuracy", epoch.train_accuracy);
            self.share::<EpochRow>(row, "val_accuracy", epoch.val_accuracy);
            self.share::<EpochRow>(row, "test_accuracy", epoch.test_accuracy);
            self.share::<EpochRow>(row, "coverage", epoch.coverage);
            // Not a number where a training diverged.
            self.ensure::<EpochRow>(
                epoch.val_loss.is_none_or(|it| it.is_nan() || it >= 0.0),
                row,
                || {
                    format!(
                        "val_loss is {}, below 0",
                        epoch.val_loss.unwrap_or_default()
                    )
                },
            );
            self.framed::<EpochRow>(row, epoch.payload_bytes, epoch.wire_bytes);
        }
        for pair in epochs.windows(2) {
            let ((_, before), (row, after)) = (pair[0], pair[1]);
            for name in CUMULATIVE {
                let (before, after) = (before.number(name), after.number(name));
                self.ensure::<EpochRow>(before <= after, row, || {
                    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
                    format!("{name} falls from {before} to {after}, though it is cumulative")
                });
            }
        }
        if let Some(&(row, last)) = epochs.last() {
            for name in CUMULATIVE {
                let (at_end, total) = (
                    last.number(name).unwrap_or_default(),
                    run.number(name).unwrap_or_default(),
                );
                // Clocks go on after the last epoch, so that the run's may be more.
                self.ensure::<EpochRow>(no_more(at_end, total), row, || {
                    format!("{name} {at_end} at the last epoch is more than the run's {total}")
                });
            }
        }
    }

    /// `best_epoch` is where the validation accuracy is highest, and the accuracies are its.
    pub(super) fn best(&mut self, row: usize, run: &Measured, epochs: &[(usize, &EpochRow)]) {
        let highest = epochs
            .iter()
            .filter_map(|(_, epoch)| epoch.val_accuracy)
            .reduce(f64::max);
        let Some(best) = run.best_epoch else {
            let nothing = highest.or(run.val_accuracy).or(run.test_accuracy).is_none();
            self.ensure::<RunRow>(nothing, row, || {
                "best_epoch is missing, though epochs were evaluated".to_owned()
            });
            return;
        };
        let Some((_, epoch)) = epochs.iter().find(|(_, epoch)| epoch.epoch == best) else {
            return self.breach::<RunRow>(row, format!("best_epoch {best} is not in epochs"));
        };
        let show = |value: Option<f64>| value.map_or("null".to_owned(), |value| value.to_string());
        let (validation, own) = ("val_accuracy", "that of best_epoch");
        for (name, found, of, expected) in [
            (validation, run.val_accuracy, own, epoch.val_accuracy),
            ("test_accuracy", run.test_accuracy, own, epoch.test_accuracy),
            (
                validation,
                run.val_accuracy,
                "the highest of its epochs",
                highest,
            ),
        ] {
            self.ensure::<RunRow>(found == expected, row, || {
                format!("{name} is {}, but {of} is {}", show(found), show(expected))
            });
        }
        // Where nothing was evaluated, `None` would equal `None` in the first epoch.
        let mut evaluated = epochs.iter().filter(|_| highest.is_some());
        if let Some((_, first)) = evaluated.find(|(_, epoch)| epoch.val_accuracy == highest) {
            let of = "the first with the highest validation accuracy";
            self.equal::<RunRow, _>(row, "best_epoch", best, of, first.epoch);
        }
    }

    /// The traffic rows add up to the run's columns.
    pub(super) fn traffic(
        &mut self,
        row: usize,
        run: &RunRow,
        measured: &Measured,
        traffic: &[(usize, &TrafficRow)],
    ) {
        let mut total = Sum::default();
        let mut per_kind: BTreeMap<TrafficKind, u64> = BTreeMap::new();
        let mut lanes = BTreeSet::new();
        for &(row, sent) in traffic {
            total.add(sent);
            let sum = per_kind.entry(sent.kind).or_default();
            *sum = sum.saturating_add(sent.payload_bytes);
            self.ensure::<TrafficRow>(
                sent.from < run.workers && sent.to < run.workers && sent.from != sent.to,
                row,
                || {
                    format!(
                        "{} to {} are no two of {} workers",
                        sent.from, sent.to, run.workers
                    )
                },
            );
            self.framed::<TrafficRow>(row, sent.payload_bytes, sent.wire_bytes);
            let lane = (sent.epoch, sent.layer, sent.from, sent.to, sent.kind);
            self.ensure::<TrafficRow>(lanes.insert(lane), row, || {
                "an earlier row has the same cell, seed, epoch, layer, direction and kind"
                    .to_owned()
            });
        }
        for kind in TrafficKind::ALL {
            let sum = per_kind.get(&kind).copied().unwrap_or_default();
            self.equal::<RunRow, _>(
                row,
                &format!("{kind}_bytes"),
                measured.bytes_of(kind),
                "its sum in traffic",
                sum,
            );
        }
        let sum = "the sum in traffic";
        self.equal::<RunRow, _>(row, "messages", measured.messages, sum, total.messages);
        self.equal::<RunRow, _>(row, "wire_bytes", measured.wire_bytes, sum, total.wire);
    }

    /// The cumulative bytes of every epoch are those of the traffic up to it.
    pub(super) fn cumulative(
        &mut self,
        epochs: &[(usize, &EpochRow)],
        traffic: &[(usize, &TrafficRow)],
    ) {
        let mut per_epoch: BTreeMap<u64, Sum> = BTreeMap::new();
        for (_, sent) in traffic {
            per_epoch.entry(sent.epoch).or_default().add(sent);
        }
        let mut sent = per_epoch.into_iter().peekable();
        let (mut payload, mut wire) = (0_u64, 0_u64);
        for &(row, epoch) in epochs {
            while let Some((_, sum)) = sent.next_if(|(at, _)| *at <= epoch.epoch) {
                payload = payload.saturating_add(sum.payload);
                wire = wire.saturating_add(sum.wire);
            }
            let of = "the sum in traffic up to the epoch";
            self.equal::<EpochRow, _>(row, "payload_bytes", epoch.payload_bytes, of, payload);
            self.equal::<EpochRow, _>(row, "wire_bytes", epoch.wire_bytes, of, wire);
        }
        if let (Some((at, _)), Some(&(row, last))) = (sent.next(), epochs.last()) {
            self.breach::<EpochRow>(
                row,
                format!(
                    "epoch {} is the last, but there is traffic of epoch {at}",
                    last.epoch
                ),
            );
        }
    }
}
