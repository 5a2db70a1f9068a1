//! Tables of projections.

use serde::{Deserialize, Serialize};

use super::field::{Field, Values};
use super::table::{ColumnSpec, Rest, Row, RowError, height, spec, table};

table! {
    /// What a cell would send, hold and take, from its plan alone (`grapevine project --out`).
    ProjectionRow = "projection" {
        /// Name of the experiment.
        experiment: String,
        /// Name of the cell: the sweep's values, if any, and the strategy's label.
        cell: String,
        /// The strategy's label.
        strategy: String,
        /// Name of the data set.
        dataset: String,
        /// Number of workers.
        workers: u64,
        /// Seed of the partition: the experiment's first.
        seed: u64,
        /// Epochs of the whole training.
        epochs: u64,
        /// `exact`, or `at most` where it depends on how the training goes.
        bound: String,
        /// What is assumed of a graph that is known in numbers alone; empty for one that is held.
        assumed: Option<String>,
        /// Rows that cross the boundary in one exact exchange: (node, receiving worker) pairs.
        boundary_rows: Option<u64>,
        /// Lower end of the payload, where the cut is known by a fit, or of a published graph its
        /// size alone; null elsewhere.
        payload_bytes_low: Option<u64>,
        /// Upper end of it.
        payload_bytes_high: Option<u64>,
        /// Lower end of the virtual time, there; null elsewhere.
        simulated_seconds_low: Option<f64>,
        /// Upper end of it.
        simulated_seconds_high: Option<f64>,
        /// Messages sent.
        messages: u64,
        /// All encoded values sent, without framing.
        payload_bytes: u64,
        /// All that the links carry: payload with framing.
        wire_bytes: u64,
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
        /// Virtual time when the last worker ends.
        simulated_seconds: f64,
        /// Virtual time of a mean epoch without its set-up.
        epoch_seconds: Option<f64>,
        /// Mean over workers of the time of what is done once, or now and then between epochs.
        setup_seconds: Option<f64>,
        /// Mean over workers of the time they compute.
        compute_seconds: f64,
        /// Mean over workers of the time in which a message from or to them is in flight.
        communication_seconds: f64,
        /// The part of it in which they do nothing but wait.
        exposed_communication_seconds: f64,
        /// Mean over workers of the time in which they wait for others that have not begun to send.
        waiting_seconds: f64,
        /// Virtual time of all machines together, in hours: of one with several workers once.
        machine_hours: f64,
        /// What the worker holds whose device is the fullest; null where the plan does not say.
        memory_bytes: Option<u64>,
        /// The memory of that device; null where its profile states none.
        device_memory_bytes: Option<u64>,
        /// Lower end of what that worker holds, where the payload has ends; null elsewhere.
        memory_bytes_low: Option<u64>,
        /// Upper end of it.
        memory_bytes_high: Option<u64>,
        /// What a worker holds at most while all evaluate the model, each its own nodes; null where
        /// the plan does not say.
        evaluation_memory_bytes: Option<u64>,
    }
}

table! {
    /// A measure of a cell, projected and trained (`grapevine project --beside`).
    BesideRow = "beside" {
        /// Name of the cell, as it is projected.
        cell: String,
        /// The strategy's label.
        strategy: String,
        /// What is measured: a column of `runs`, or `node_data_bytes`.
        measure: String,
        /// What the runs had, mean over seeds.
        trained: f64,
        /// What the plan says.
        projected: f64,
        /// How far that is from the other, as a share of it; null where that is nothing.
        error: Option<f64>,
    }
}
