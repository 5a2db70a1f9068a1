//! The result tables as plain rows.
//!
//! Each table is defined once, here: the struct *is* the schema, and its fields, in order, are the
//! columns of the Parquet and CSV files. `Option` marks a column that may be null: not evaluated
//! or not meaningful, never "zero".

mod field;
mod projected;
mod quantity;
mod run;
mod sweep;
mod table;
mod verdict;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::graph::Metric;
use crate::names::named;
use crate::net::TrafficKind;
use crate::sim::Doing;
use crate::strategies::EpochKind;
use field::Field;
pub use field::{ColumnKind, Values};
pub use projected::{BesideRow, ProjectionRow};
pub use quantity::Quantity;
pub(crate) use run::{OfRun, RunKey, is_nothing, metric_title};
pub use sweep::Sweep;
pub use table::{ColumnSpec, Row, RowError};
use table::{Rest, height, spec, table};
pub use verdict::ClaimVerdict;

/// Text that is cheap to copy: a sweep's table of traffic has millions of rows that say the same
/// few words.
pub type Text = Arc<str>;

/// The items, each once, in the order of their appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for item in items {
        if !known.contains(&item) {
            known.push(item);
        }
    }
    known
}

/// The items by their keys, each key where it appears first.
pub(crate) fn grouped<K: PartialEq, T>(
    items: impl IntoIterator<Item = (K, T)>,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

table! {
    /// One cell and seed. Byte columns of the eight kinds sum to `payload_bytes`. Of a run that
    /// failed, what was to be measured is null.
    RunRow = "runs" {
        /// Name of the experiment.
        experiment: String,
        /// Name of the cell: the sweep's values, if any, and the strategy's label.
        cell: String,
        /// The strategy's label, for example `full` or `fixed(ratio=8)`.
        strategy: String,
        /// Name of the data set.
        dataset: String,
        /// Kind of model.
        model: String,
        /// Number of model layers.
        layers: u64,
        /// Hidden width.
        hidden: u64,
        /// How nodes were assigned to workers.
        partitioner: String,
        /// Number of workers.
        workers: u64,
        /// Name of the network: its preset, `wan (changed)` if its links were overridden, or
        /// `custom`.
        network: String,
        /// What carried out the run: `simulated` in one process, or `mpi` on one process per
        /// worker.
        engine: String,
        /// The tensor backend.
        backend: String,
        /// The device the backend ran on.
        device: String,
        /// Seed of every random stream.
        seed: u64,
        /// Epochs trained.
        epochs: u64,
        /// Number of model parameters.
        parameters: Option<u64>,
        /// Undirected edges whose two ends are on different workers.
        edge_cut: u64,
        /// Time on the clock of the emulating machine for cutting the graph, boundary plan
        /// included; no part of any other time; null in tables of earlier versions.
        partition_seconds: Option<f64>,
        /// Rows that cross the boundary in one exact exchange: (node, receiving worker) pairs.
        boundary_rows: u64,
    =>
    /// What is known of a run that finished.
    Measured {
        /// Epoch of the highest `val_accuracy`.
        best_epoch: Option<u64>,
        /// Validation accuracy, or what `metric` says, at `best_epoch`, in 0 to 1.
        val_accuracy: Option<f64>,
        /// Test accuracy, or what `metric` says, at `best_epoch`, in 0 to 1.
        test_accuracy: Option<f64>,
        /// First epoch whose training loss is no number; null where there is none, and in tables of
        /// earlier versions. Accuracies are then those of an epoch before, and decide no claim.
        diverged_at: Option<u64>,
        /// All encoded values sent, without framing.
        payload_bytes: u64,
        /// Payload with framing: each message once, without what losses have sent again and what
        /// hierarchical exchanges pass on.
        wire_bytes: u64,
        /// Payload counted at both ends, what every worker sent and what it received, as the
        /// counter of RETEXO's authors does: twice `payload_bytes`, because every message here has
        /// one sender and one receiver and none is lost. For comparing with figures counted that
        /// way; everything else counts a message once, where it is sent.
        both_ends_bytes: u64,
        /// Payload of raw node features.
        feature_bytes: u64,
        /// Payload of hidden representations.
        activation_bytes: u64,
        /// Payload of gradients of hidden representations.
        activation_gradient_bytes: u64,
        /// Payload of gradients of model parameters.
        parameter_gradient_bytes: u64,
        /// Payload of model parameters.
        parameter_bytes: u64,
        /// Payload of nodes that change workers.
        repartition_bytes: u64,
        /// Payload of identifiers of sampled nodes.
        sample_bytes: u64,
        /// Payload of scalars and other coordination.
        control_bytes: u64,
        /// Messages sent.
        messages: u64,
        /// Time of the run on the workers' clocks: virtual with the simulated engine; with `mpi`
        /// that of the computing and the communication calls, as measured.
        simulated_seconds: f64,
        /// The part of it in computation, mean over workers.
        compute_seconds: f64,
        /// The part of it with a message from or to the worker under way, mean over workers.
        communication_seconds: f64,
        /// The part of that in which the worker did nothing but wait, mean over workers.
        exposed_communication_seconds: f64,
        /// Time in which a worker waited with no message from or to it under way, since others had
        /// not begun to send, mean over workers; null in tables of earlier versions.
        waiting_seconds: Option<f64>,
        /// Time on the clock of the machine that emulated the run.
        measured_seconds: f64,
        /// `simulated_seconds` until the target accuracy; null if it was not reached or not set.
        seconds_to_target: Option<f64>,
        /// Payload of the epochs up to the evaluation that reached the target accuracy; null if it
        /// was not reached or not set.
        bytes_to_target: Option<u64>,
        /// Test accuracy at the epoch of highest validation accuracy among those that ended with no
        /// more payload sent than `training.byte_budget`; null without a budget, or if no epoch was
        /// evaluated within it.
        accuracy_at_byte_budget: Option<f64>,
        /// The same within `training.time_budget` seconds of the run.
        accuracy_at_time_budget: Option<f64>,
        /// Share of the processors that other programs took before the run; null unless compute is
        /// measured.
        load_before: Option<f64>,
        /// The same during the run.
        load_during: Option<f64>,
        /// How much longer a fixed calculation took around the run than at its best; null unless
        /// compute is measured.
        calibration_spread: Option<f64>,
        /// Peak resident memory of the emulating process.
        peak_memory_bytes: u64,
    }
        /// `ok`, or `failed: ` and why.
        status: String,
        /// The strategy's kind, as experiment files name it; null in tables of earlier versions.
        strategy_kind: Option<String>,
        /// What the columns of accuracy hold: `accuracy`, `roc-auc` or `micro-f1`; null in tables
        /// of earlier versions, which hold accuracy.
        metric: Option<Metric>,
        /// What an epoch of it is: `pass` over all training nodes, `round` between averages of
        /// models, or `sub-model` for a pass of one of several; null in tables of earlier versions.
        epoch_kind: Option<EpochKind>,
        /// Share of the test nodes that are of their largest class: the accuracy of who names it
        /// for all; null where something else is measured or classes are not at hand, and in
        /// tables of earlier versions.
        largest_class: Option<f64>,
        /// The swept keys and their values in this cell, as a JSON object; empty without a sweep.
        sweep: Sweep,
    }
}

table! {
    /// One cell, seed and epoch. Seconds and bytes are cumulative from the start of the run.
    EpochRow = "epochs" {
        /// Name of the experiment.
        experiment: String,
        /// Name of the cell.
        cell: String,
        /// The strategy's label.
        strategy: String,
        /// Seed of every random stream.
        seed: u64,
        /// The epoch, counted from 0.
        epoch: u64,
        /// Time on the workers' clocks at the end of the epoch; see `runs`.
        simulated_seconds: f64,
        /// The emulating machine's time at the end of the epoch.
        measured_seconds: f64,
        /// Payload sent up to the end of the epoch.
        payload_bytes: u64,
        /// Wire bytes up to the end of the epoch.
        wire_bytes: u64,
        /// Mean training loss, weighted where the strategy weights it (`weight_mean` of `grappa`).
        train_loss: Option<f64>,
        /// Training accuracy, or what `metric` says, in 0 to 1.
        train_accuracy: Option<f64>,
        /// Validation accuracy, or what `metric` says, in 0 to 1; null where not evaluated.
        val_accuracy: Option<f64>,
        /// Test accuracy, or what `metric` says, in 0 to 1; null where not evaluated.
        test_accuracy: Option<f64>,
        /// Mean loss of the validation nodes; null where not evaluated.
        val_loss: Option<f64>,
        /// Ratio asked of the codec; not bytes saved, for what travels whole is left out. Null for
        /// strategies that do not compress.
        compression_ratio: Option<f64>,
        /// Share of training nodes' neighbourhoods seen, the mean over workers that have such
        /// nodes; null where not meaningful.
        coverage: Option<f64>,
        /// Mean of the gradient weights of workers that have training nodes; null where not
        /// meaningful.
        weight_mean: Option<f64>,
        /// Standard deviation of the gradient weights; null where not meaningful.
        weight_sd: Option<f64>,
        /// Σ‖x̃ − x‖² / Σ‖x‖² of the rows sent forward, decoded and as they were; null where not
        /// measured.
        compression_error: Option<f64>,
        /// What the columns of accuracy hold, as in `runs`.
        metric: Option<Metric>,
    }
}

table! {
    /// What one worker sent to another: one cell, seed, epoch, layer, direction and kind.
    TrafficRow = "traffic" {
        /// Name of the cell.
        cell: Text,
        /// Seed of every random stream.
        seed: u64,
        /// The epoch, counted from 0.
        epoch: u64,
        /// Model layer whose input (or gradient) travels; 0 for what belongs to no layer.
        layer: u64,
        /// Sending worker.
        from: u64,
        /// Receiving worker.
        to: u64,
        /// What it carries, by its name in the ledger.
        kind: TrafficKind,
        /// Number of messages.
        messages: u64,
        /// Encoded values, without framing.
        payload_bytes: u64,
        /// Payload with framing.
        wire_bytes: u64,
        /// Σ‖x̃ − x‖² / Σ‖x‖² of the rows of these messages, decoded and as they were; null where
        /// not measured.
        compression_error: Option<f64>,
    }
}

table! {
    /// One claim and what came of it.
    ClaimRow = "claims" {
        /// The claim's identifier in the experiment file.
        id: String,
        /// Where the claim is made.
        source: String,
        /// The claim in words.
        statement: String,
        /// The condition that was checked, in words, for example `within 0.01 of full`.
        expected: String,
        /// The measured quantity, mean over seeds; null when there was nothing to measure.
        measured: Option<f64>,
        /// Lower end of the interval; null for a single seed.
        low: Option<f64>,
        /// Upper end of the interval; null for a single seed.
        high: Option<f64>,
        /// "reproduced", "not reproduced" or "inconclusive".
        verdict: ClaimVerdict,
        /// The published value, as its source prints it; empty if the experiment file gives none.
        paper: String,
        /// Seeds that were measured.
        seeds: u64,
        /// Those among them that never reached the target, so that a bound alone is known.
        censored: u64,
        /// Two-sided p-value of the verdict by itself; null without enough seeds, or anything to
        /// measure. Of several looks the least, each divided by its share of the level.
        p_value: Option<f64>,
        /// The same, corrected for all claims of the family; it decides.
        p_adjusted: Option<f64>,
        /// How far from the bound the mean would have to lie for so many seeds of this spread to
        /// tell it with a chance of 80 %.
        detectable: Option<f64>,
        /// Seeds that tell the mean as it is; null where no number of them does.
        seeds_needed: Option<u64>,
        /// Seeds that tell it if what is compared is equal; null as before, and of claims about a
        /// number.
        seeds_if_equal: Option<u64>,
        /// Looks that were taken while seeds were added; null where all cells have the same seeds.
        looks: Option<u64>,
        /// What these looks have of 1 − `level`; null as before.
        level_spent: Option<f64>,
        /// Seeds at the look that decided; null without looks, or where none did.
        decided_after: Option<u64>,
        /// Of claims about an amount of node data: the most bytes that repartitioning moved beside
        /// them in a run; null where it moved none.
        repartition_bytes: Option<f64>,
        /// What `measured`, its interval and `detectable` are: `bytes`, `seconds` or `number` (a
        /// share, a count, or how many times one is the other); empty in tables of earlier
        /// versions.
        quantity: Option<Quantity>,
    }
}

table! {
    /// What one worker did in a stretch of virtual time, for the first seed and the first epochs of
    /// each cell. Only of runs that were traced. Of one worker, spans of computing and waiting do
    /// not overlap, nor do those in which messages of one kind leave it.
    TimelineRow = "timeline" {
        /// Name of the cell, as in `runs`.
        cell: String,
        /// Label of the strategy, as in `runs`.
        strategy: String,
        /// Seed of the run.
        seed: u64,
        /// The epoch it belongs to.
        epoch: u64,
        /// Which worker.
        worker: u64,
        /// `compute`, `wait` (for a message) or `send`.
        activity: Activity,
        /// What is sent; empty for the rest.
        kind: Option<TrafficKind>,
        /// From when, in virtual time.
        start_seconds: f64,
        /// Until when; messages until they have arrived.
        end_seconds: f64,
    }
}

table! {
    /// Something that a training decided on its way, and that what it sent depends on: with these,
    /// the plan of a run is known to the byte. Only of strategies that decide.
    DecisionRow = "decisions" {
        /// Name of the cell, as in `runs`.
        cell: String,
        /// Label of the strategy, as in `runs`.
        strategy: String,
        /// Seed of the run.
        seed: u64,
        /// The first epoch for which it holds: ratios for one, bits until others are decided.
        epoch: u64,
        /// `ratio` (of compression), `bits` (of the values of a group of rows, or of all rows that
        /// a worker reads) or `broadcast` (whether a worker sends its rows of a layer in this
        /// epoch, or their gradients: 1, or 0 where the others use again what it sent before).
        decision: DecisionKind,
        /// What the message carries; empty for a ratio, which is that of all.
        kind: Option<TrafficKind>,
        /// Layer whose input or gradient the message carries; null for all.
        layer: Option<u64>,
        /// Sending worker; null for all.
        from: Option<u64>,
        /// Receiving worker; null for a ratio and for broadcasts.
        to: Option<u64>,
        /// Number of the group of rows in the message; null for others than bits.
        group: Option<u64>,
        /// Rows of a group, of which the last of a message may have fewer; null for others than
        /// bits.
        rows: Option<u64>,
        /// What was decided.
        value: f64,
    }
}

named! {
    /// What a worker does in a span of the timeline.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Activity {
        /// It computes.
        #[default]
        Compute = "compute",
        /// It waits for a message.
        Wait = "wait",
        /// Messages of one kind that it sent are under way.
        Send = "send",
    }
}

impl From<Doing> for Activity {
    fn from(doing: Doing) -> Self {
        match doing {
            Doing::Compute => Self::Compute,
            Doing::Wait => Self::Wait,
        }
    }
}

named! {
    /// What a decision is about.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DecisionKind {
        /// A compression ratio.
        #[default]
        Ratio = "ratio",
        /// Bits of a group of rows.
        Bits = "bits",
        /// Whether a worker sends what it may skip.
        Broadcast = "broadcast",
    }
}

#[cfg(test)]
mod tests;
