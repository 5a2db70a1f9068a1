//! What follows from a row of `runs`.

use super::{DecisionRow, EpochRow, Measured, Row, RunRow, TimelineRow, TrafficRow, distinct};
use crate::graph::Metric;
use crate::net::TrafficKind;

/// What the columns of accuracy hold, in words: `accuracy`, or `accuracy or ROC-AUC` where runs
/// differ.
pub(crate) fn metric_title<'a>(runs: impl IntoIterator<Item = &'a RunRow>) -> String {
    let titles = distinct(runs.into_iter().map(|run| run.metric().title()));
    if titles.is_empty() {
        return Metric::default().title().to_owned();
    }
    titles.join(" or ")
}

/// One cell and seed: what rows of the tables belong together by.
pub(crate) type RunKey<'a> = (&'a str, u64);

/// A row that belongs to a run.
pub(crate) trait OfRun: Row {
    /// Which.
    fn key(&self) -> RunKey<'_>;
}

macro_rules! of_run {
    ($($row:ty),*) => {$(
        impl OfRun for $row {
            fn key(&self) -> RunKey<'_> {
                (&self.cell, self.seed)
            }
        }
    )*};
}

of_run!(RunRow, EpochRow, TrafficRow, TimelineRow, DecisionRow);

/// Whether an accuracy is no better than the share of the largest class.
pub(crate) fn is_nothing(reached: f64, largest: f64) -> bool {
    // Forgives what rounding made of both.
    reached <= largest + 1e-9
}

impl RunRow {
    /// What its columns of accuracy hold.
    pub(crate) fn metric(&self) -> Metric {
        self.metric.unwrap_or_default()
    }

    /// The strategy's kind; its label in tables of earlier versions, which have no kinds.
    pub(crate) fn kind(&self) -> &str {
        self.strategy_kind.as_deref().unwrap_or(&self.strategy)
    }

    /// Whether it names classes no better than who names the largest for all nodes; none where that
    /// is not known.
    pub(crate) fn learnt_nothing(&self) -> Option<bool> {
        let (reached, largest) = (self.measured?.test_accuracy?, self.largest_class?);
        Some(is_nothing(reached, largest))
    }

    /// Whether two finished runs are one training under two names: all that is counted and modelled
    /// of them is the same to the bit.
    pub(crate) fn is_training_of(&self, other: &Self) -> bool {
        // What the emulating machine did besides is its own.
        let counted = |measured: Measured| Measured {
            measured_seconds: 0.0,
            load_before: None,
            load_during: None,
            calibration_spread: None,
            peak_memory_bytes: 0,
            ..measured
        };
        match (self.measured, other.measured) {
            // No training takes no time.
            (Some(one), Some(other)) if one.simulated_seconds > 0.0 => {
                counted(one) == counted(other)
            }
            _ => false,
        }
    }

    /// The `status` of a run that finished.
    pub(crate) const OK: &'static str = "ok";

    /// Whether the run finished.
    pub fn is_ok(&self) -> bool {
        self.measured.is_some()
    }

    /// What is known of it, if it finished.
    #[cfg(test)]
    #[allow(clippy::large_types_passed_by_value)] // once a test
    pub(crate) fn finished(measured: Measured) -> Self {
        Self {
            measured: Some(measured),
            status: Self::OK.to_owned(),
            ..Self::default()
        }
    }
}

impl Measured {
    /// The same with this payload of each kind.
    pub(crate) fn with_payload(self, of: impl Fn(TrafficKind) -> u64) -> Self {
        Self {
            feature_bytes: of(TrafficKind::Feature),
            activation_bytes: of(TrafficKind::Activation),
            activation_gradient_bytes: of(TrafficKind::ActivationGradient),
            parameter_gradient_bytes: of(TrafficKind::ParameterGradient),
            parameter_bytes: of(TrafficKind::Parameter),
            repartition_bytes: of(TrafficKind::Repartition),
            sample_bytes: of(TrafficKind::Sample),
            control_bytes: of(TrafficKind::Control),
            ..self
        }
    }

    /// Payload of one kind.
    pub(crate) fn bytes_of(&self, kind: TrafficKind) -> u64 {
        match kind {
            TrafficKind::Feature => self.feature_bytes,
            TrafficKind::Activation => self.activation_bytes,
            TrafficKind::ActivationGradient => self.activation_gradient_bytes,
            TrafficKind::ParameterGradient => self.parameter_gradient_bytes,
            TrafficKind::Parameter => self.parameter_bytes,
            TrafficKind::Repartition => self.repartition_bytes,
            TrafficKind::Sample => self.sample_bytes,
            TrafficKind::Control => self.control_bytes,
        }
    }

    /// Payload of the kinds that are node data, which grows with the graph's cut.
    pub(crate) fn node_data_bytes(&self) -> u64 {
        let kinds = TrafficKind::ALL.into_iter();
        kinds
            .filter(|kind| kind.is_node_data())
            .map(|kind| self.bytes_of(kind))
            .sum()
    }
}
