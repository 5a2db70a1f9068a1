//! The result tables as plain rows.
//!
//! Each table is defined once, here: the struct *is* the schema, and its fields, in order, are the
//! columns of the Parquet and CSV files. `Option` marks a column that may be null: not evaluated
//! or not meaningful, never "zero". Of a run that failed, nothing is known that was to be measured: those
//! columns are null in files, so that no mean takes them for zeros.

mod cell;
mod text;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use cell::Cell;
pub use text::Text;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text.
    Text,
    /// Unsigned 64-bit whole numbers: counts, bytes, seeds, indices.
    Count,
    /// 64-bit floating-point numbers.
    Real,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name, `snake_case`.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether null is allowed.
    pub nullable: bool,
    /// What it says, in the words of its documentation, line by line.
    pub about: &'static [&'static str],
}

/// The cells of one column, top to bottom.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Text, never null. Shared, because millions of rows say the same few words.
    Text(Vec<Text>),
    /// Whole numbers.
    Count(Vec<Option<u64>>),
    /// Floating-point numbers.
    Real(Vec<Option<f64>>),
}

impl Values {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(cells) => cells.len(),
            Self::Count(cells) => cells.len(),
            Self::Real(cells) => cells.len(),
        }
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why columns do not make up a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// Not every column was given, or columns differ in length.
    #[error("column `{column}` has {found} rows where {expected} were expected")]
    Length {
        /// The column.
        column: &'static str,
        /// Its number of cells; 0 if it is absent.
        found: usize,
        /// Number of cells of the first column.
        expected: usize,
    },
    /// A null or a value of another kind where this column allows none.
    #[error("column `{column}`, row {row}: a {wanted} is needed and none is there")]
    Cell {
        /// The column.
        column: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// What the column holds.
        wanted: &'static str,
    },
}

/// A row of one of the result tables.
pub trait Row: Sized + Clone {
    /// The table's name, and its files' without the extension.
    const TABLE: &'static str;
    /// The columns, in the order of the files.
    const COLUMNS: &'static [ColumnSpec];

    /// The columns' cells, in the order of [`Self::COLUMNS`].
    fn to_columns(rows: &[Self]) -> Vec<Values>;

    /// Rows from columns in the order of [`Self::COLUMNS`].
    ///
    /// # Errors
    /// A column is missing, is shorter than others, holds another kind or a null it must not.
    fn from_columns(columns: &[Values]) -> Result<Vec<Self>, RowError>;

    /// The number in the named column; `None` for null, for text and for a name that is no column.
    fn number(&self, column: &str) -> Option<f64>;

    /// Whether this row has nothing to say in the named column, whatever its field holds: it is null in files.
    fn unknown(&self, _column: &str) -> bool {
        false
    }
}

macro_rules! table {
    (
        $(#[$about:meta])*
        $row:ident = $table:literal $(but $unknown:path)? { $( $(#[doc = $doc:literal])* $field:ident: $cell:ty, )* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $row {
            $( $(#[doc = $doc])* pub $field: $cell, )*
        }

        impl Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [ColumnSpec] = &[$(ColumnSpec {
                name: stringify!($field),
                kind: <$cell as Cell>::KIND,
                nullable: <$cell as Cell>::NULLABLE,
                about: &[$($doc),*],
            },)*];

            fn to_columns(rows: &[Self]) -> Vec<Values> {
                vec![$( <$cell as Cell>::collect(rows.iter().map(|row| {
                    (!row.unknown(stringify!($field))).then_some(&row.$field)
                })), )*]
            }

            fn from_columns(columns: &[Values]) -> Result<Vec<Self>, RowError> {
                let expected = columns.first().map_or(0, Values::len);
                for (index, column) in Self::COLUMNS.iter().enumerate() {
                    let found = columns.get(index).map_or(0, Values::len);
                    if found != expected {
                        return Err(RowError::Length { column: column.name, found, expected });
                    }
                }
                (0..expected)
                    .map(|row| {
                        let mut rest = columns.iter();
                        let mut missing = Vec::new();
                        let read = Self {
                            $( $field: rest
                                .next()
                                .and_then(|values| <$cell as Cell>::at(values, row))
                                .unwrap_or_else(|| {
                                    missing.push((stringify!($field), <$cell as Cell>::WANTED));
                                    Default::default()
                                }), )*
                        };
                        match missing.into_iter().find(|(column, _)| !read.unknown(column)) {
                            None => Ok(read),
                            Some((column, wanted)) => Err(RowError::Cell { column, row, wanted }),
                        }
                    })
                    .collect()
            }

            fn number(&self, column: &str) -> Option<f64> {
                match column {
                    _ if self.unknown(column) => None,
                    $( stringify!($field) => self.$field.number(), )*
                    _ => None,
                }
            }

            $( fn unknown(&self, column: &str) -> bool {
                $unknown(self, column)
            } )?
        }
    };
}

table! {
    /// One cell and seed. Byte columns of the eight kinds sum to `payload_bytes`. Of a run that failed, what was to be measured is null.
    RunRow = "runs" but RunRow::unmeasured {
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
        /// Name of the network: its preset, `wan (changed)` if its links were overridden, or `custom`.
        network: String,
        /// What carried out the run: `simulated` in one process, or `mpi` on one process per worker.
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
        parameters: u64,
        /// Undirected edges whose two ends are on different workers.
        edge_cut: u64,
        /// Time on the clock of the emulating machine for cutting the graph, boundary plan included; no part of any other time; null in
        /// tables of earlier versions.
        partition_seconds: Option<f64>,
        /// Rows that cross the boundary in one exact exchange: (node, receiving worker) pairs.
        boundary_rows: u64,
        /// Epoch of the highest validation accuracy.
        best_epoch: Option<u64>,
        /// Validation accuracy at `best_epoch`, in 0 to 1.
        val_accuracy: Option<f64>,
        /// Test accuracy at `best_epoch`, in 0 to 1.
        test_accuracy: Option<f64>,
        /// First epoch whose training loss is no number; null where there is none, and in tables of earlier versions. Accuracies
        /// are then those of an epoch before, and decide no claim.
        diverged_at: Option<u64>,
        /// All encoded values sent, without framing.
        payload_bytes: u64,
        /// All that the links carried: payload with framing.
        wire_bytes: u64,
        /// Payload counted at both ends, what every worker sent and what it received, as the counter of RETEXO's authors does:
        /// twice `payload_bytes`, because every message here has one sender and one receiver and none is lost. For comparing with
        /// figures counted that way; everything else counts a message once, where it is sent.
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
        /// Time of the run on the workers' clocks: virtual with the simulated engine; with `mpi` that of the computing and the
        /// communication calls, as measured.
        simulated_seconds: f64,
        /// The part of it in computation, mean over workers.
        compute_seconds: f64,
        /// The part of it with communication under way, mean over workers.
        communication_seconds: f64,
        /// Communication that computation did not hide, mean over workers.
        exposed_communication_seconds: f64,
        /// Time on the clock of the machine that emulated the run.
        measured_seconds: f64,
        /// `simulated_seconds` until the target accuracy; null if it was not reached or not set.
        seconds_to_target: Option<f64>,
        /// Payload sent until the target accuracy; null if it was not reached or not set.
        bytes_to_target: Option<u64>,
        /// Test accuracy at the epoch of highest validation accuracy among those that ended with no more payload sent than
        /// `training.byte_budget`; null without a budget, or if no epoch was evaluated within it.
        accuracy_at_byte_budget: Option<f64>,
        /// The same within `training.time_budget` seconds of the run.
        accuracy_at_time_budget: Option<f64>,
        /// Peak resident memory of the emulating process.
        peak_memory_bytes: u64,
        /// `ok`, or `failed: ` and why.
        status: String,
    }
}

impl RunRow {
    /// The `status` of a run that finished.
    pub const OK: &'static str = "ok";

    /// Whether the run finished.
    pub fn is_ok(&self) -> bool {
        self.status == Self::OK
    }

    /// Whether the column is what was to be measured in a run that failed.
    fn unmeasured(&self, column: &str) -> bool {
        let measured = || {
            let place = |name| Self::COLUMNS.iter().position(|of| of.name == name);
            let (first, last) = (place("best_epoch"), place("status"));
            column == "parameters" || (first..last).contains(&place(column))
        };
        !self.is_ok() && measured()
    }

    /// Features, activations and their gradients: the payload that grows with the graph's cut.
    pub fn node_data_bytes(&self) -> u64 {
        self.feature_bytes + self.activation_bytes + self.activation_gradient_bytes
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
        /// Training accuracy, in 0 to 1.
        train_accuracy: Option<f64>,
        /// Validation accuracy, in 0 to 1; null where not evaluated.
        val_accuracy: Option<f64>,
        /// Test accuracy, in 0 to 1; null where not evaluated.
        test_accuracy: Option<f64>,
        /// Mean cross-entropy of the validation nodes; null where not evaluated.
        val_loss: Option<f64>,
        /// Ratio asked of the codec; not bytes saved, for what travels whole is left out. Null for strategies that do not compress.
        compression_ratio: Option<f64>,
        /// Share of training nodes' neighbourhoods seen, the mean over workers that have such nodes; null where not meaningful.
        coverage: Option<f64>,
        /// Mean of the gradient weights of workers that have training nodes; null where not meaningful.
        weight_mean: Option<f64>,
        /// Standard deviation of the gradient weights; null where not meaningful.
        weight_sd: Option<f64>,
        /// Σ‖x̃ − x‖² / Σ‖x‖² of the rows sent forward, decoded and as they were; null where not measured.
        compression_error: Option<f64>,
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
        kind: Text,
        /// Number of messages.
        messages: u64,
        /// Encoded values, without framing.
        payload_bytes: u64,
        /// Payload with framing.
        wire_bytes: u64,
        /// Σ‖x̃ − x‖² / Σ‖x‖² of the rows of these messages, decoded and as they were; null where not measured.
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
        verdict: String,
        /// The published value, as its source prints it; empty if the experiment file gives none.
        paper: String,
        /// Seeds that were measured.
        seeds: u64,
        /// Those among them that never reached the target, so that a bound alone is known.
        censored: u64,
        /// Two-sided p-value of the verdict by itself; null without enough seeds, or anything to measure.
        p_value: Option<f64>,
        /// The same, corrected for all claims of the family; it decides.
        p_adjusted: Option<f64>,
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
        activity: String,
        /// What is sent; empty for the rest.
        kind: String,
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
        /// `ratio` (of compression) or `bits` (of the values of a group of rows).
        decision: String,
        /// What the message carries; empty for a ratio, which is that of all.
        kind: String,
        /// Layer whose input or gradient the message carries; null for a ratio.
        layer: Option<u64>,
        /// Sending worker; null for a ratio.
        from: Option<u64>,
        /// Receiving worker; null for a ratio.
        to: Option<u64>,
        /// Number of the group of rows in the message; null for a ratio.
        group: Option<u64>,
        /// Rows of a group, of which the last of a message may have fewer; null for a ratio.
        rows: Option<u64>,
        /// What was decided.
        value: f64,
    }
}

impl DecisionRow {
    /// A compression ratio.
    pub const RATIO: &'static str = "ratio";
    /// Bits of a group of rows.
    pub const BITS: &'static str = "bits";
}

impl ClaimRow {
    /// The condition is met.
    pub const REPRODUCED: &'static str = "reproduced";
    /// The condition is broken.
    pub const NOT_REPRODUCED: &'static str = "not reproduced";
    /// Neither can be said.
    pub const INCONCLUSIVE: &'static str = "inconclusive";
}

#[cfg(test)]
mod tests;
