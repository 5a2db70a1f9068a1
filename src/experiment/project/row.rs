//! A projection as rows of tables.

use super::Projection;
use crate::experiment::rows::{Measured, ProjectionRow, RunRow};
use crate::net::TrafficKind;

impl Projection {
    /// Payload of some kinds.
    pub(crate) fn payload_of(&self, wanted: impl Fn(TrafficKind) -> bool) -> u64 {
        let kinds = self.bytes_by_kind.iter();
        let wanted = kinds.filter(|(kind, _)| wanted(**kind));
        wanted.map(|(_, bytes)| bytes).sum()
    }

    /// Its row of the table.
    pub(crate) fn row(&self, experiment: &str) -> ProjectionRow {
        let sent = self.run.measured.unwrap_or_default();
        let ends_of_memory = self.between.and_then(|ends| ends.memory_bytes);
        ProjectionRow {
            experiment: experiment.to_owned(),
            cell: self.cell.clone(),
            strategy: self.strategy.clone(),
            dataset: self.dataset.clone(),
            workers: self.workers as u64,
            seed: self.seed,
            epochs: self.epochs as u64,
            bound: if self.exact { "exact" } else { "at most" }.to_owned(),
            assumed: self.assumed.clone(),
            boundary_rows: Some(self.boundary_rows),
            payload_bytes_low: self.between.map(|ends| ends.payload_bytes.0),
            payload_bytes_high: self.between.map(|ends| ends.payload_bytes.1),
            simulated_seconds_low: self.between.map(|ends| ends.simulated_seconds.0),
            simulated_seconds_high: self.between.map(|ends| ends.simulated_seconds.1),
            messages: self.messages,
            payload_bytes: self.payload_bytes,
            wire_bytes: self.wire_bytes,
            feature_bytes: sent.feature_bytes,
            activation_bytes: sent.activation_bytes,
            activation_gradient_bytes: sent.activation_gradient_bytes,
            parameter_gradient_bytes: sent.parameter_gradient_bytes,
            parameter_bytes: sent.parameter_bytes,
            repartition_bytes: sent.repartition_bytes,
            sample_bytes: sent.sample_bytes,
            control_bytes: sent.control_bytes,
            simulated_seconds: self.simulated_seconds,
            epoch_seconds: Some(self.epoch_seconds),
            setup_seconds: Some(self.setup_seconds),
            compute_seconds: self.compute_seconds,
            communication_seconds: self.communication_seconds,
            exposed_communication_seconds: self.exposed_communication_seconds,
            waiting_seconds: self.waiting_seconds,
            machine_hours: self.machine_hours,
            memory_bytes: self.memory_bytes,
            evaluation_memory_bytes: self.evaluation_memory_bytes,
            device_memory_bytes: self.device_memory_bytes,
            memory_bytes_low: ends_of_memory.map(|ends| ends.0),
            memory_bytes_high: ends_of_memory.map(|ends| ends.1),
        }
    }

    /// As a run of its cell, of which `blank` says what it was to be. What only a training knows is
    /// missing. Memory is what the worker that needs most holds.
    pub(super) fn as_run(&self, blank: RunRow) -> RunRow {
        RunRow {
            measured: Some(Measured {
                payload_bytes: self.payload_bytes,
                wire_bytes: self.wire_bytes,
                both_ends_bytes: 2 * self.payload_bytes,
                messages: self.messages,
                simulated_seconds: self.simulated_seconds,
                compute_seconds: self.compute_seconds,
                communication_seconds: self.communication_seconds,
                exposed_communication_seconds: self.exposed_communication_seconds,
                waiting_seconds: Some(self.waiting_seconds),
                peak_memory_bytes: self.memory_bytes.unwrap_or(0),
                ..Measured::default().with_payload(|kind| self.payload_of(|other| other == kind))
            }),
            ..blank
        }
    }
}
