//! Strategies that differ in what becomes of boundary rows alone: how they are encoded, which of
//! them cross, and when they are used.

use std::sync::Arc;

use serde::Deserialize;

use super::plan::{ExchangePlanner, Sending};
use super::{
    BoundaryShare, CodecChoice, CodecState, Compression, EpochExchange, ExchangePoint, Gradients,
    RowWires, Schedule, Staleness, When, partition_parallel,
};
use crate::graph::PartitionSpec;
use crate::sim::{Planner, Setting, SimError, Worker};
use crate::strategies::{BatchUse, Needs, OptionError, Strategy, Training, options};

/// What becomes of boundary rows.
#[derive(Clone)]
pub struct RowExchange {
    /// Through which codec they go, at which ratio by epoch.
    pub compression: Compression,
    /// The share of the boundary that crosses, if not all does.
    pub share: Option<BoundaryShare>,
    /// How rows that are used an epoch late are smoothed, if they are.
    pub staleness: Option<Staleness>,
    /// Whether gradients, and what is known in advance of features, travel while the workers
    /// compute.
    pub overlap: bool,
    /// How parameter gradients are summed.
    pub gradients: Gradients,
}

/// What [`RowExchange::compressed`] takes besides the codec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    cache_features: bool,
    #[serde(default = "narrower")]
    exchange: ExchangePoint,
    #[serde(default)]
    overlap: bool,
    #[serde(default)]
    gradients: Gradients,
}

const fn narrower() -> ExchangePoint {
    ExchangePoint::Narrower
}

impl RowExchange {
    /// All rows, at once.
    ///
    /// # Errors
    /// If gradients cannot be summed so while the workers compute.
    pub fn new(
        compression: Compression,
        overlap: bool,
        gradients: Gradients,
    ) -> Result<Self, OptionError> {
        gradients.check_overlap(overlap)?;
        Ok(Self {
            compression,
            share: None,
            staleness: None,
            overlap,
            gradients,
        })
    }

    /// All rows through a codec, by default random columns, at the ratio that `schedule` says
    /// unless the table does under `key`; where they are narrower, unless the table says otherwise.
    ///
    /// # Errors
    /// What is of the wrong type, out of range, or does nothing.
    pub fn compressed(
        table: &toml::Table,
        key: &str,
        schedule: Schedule,
    ) -> Result<Self, OptionError> {
        let default = Compression {
            codec: Some(CodecChoice::default()),
            schedule,
            ..Compression::none()
        };
        let keys = ["codec", key, "rescale", "measure_error"];
        let (compression, table) = default.read(table, &keys)?;
        let options: Options = options(&table)?;
        let compression = compression.sending(options.cache_features, options.exchange);
        Self::new(compression, options.overlap, options.gradients)
    }
}

impl Strategy for RowExchange {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        let batches = match (self.share, self.staleness) {
            (None, None) => BatchUse::Possible,
            _ => BatchUse::Never,
        };
        Ok(Needs::of(asked.clone(), batches))
    }

    fn plans_from_counts(&self, batches: bool) -> bool {
        !batches
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(RowTraining {
            wires: self.compression.fit(setting, setting.training.epochs)?,
            exchange: self.clone(),
            setting: Arc::clone(setting),
        }))
    }
}

struct RowTraining {
    wires: RowWires,
    exchange: RowExchange,
    setting: Arc<Setting>,
}

impl RowTraining {
    fn when(&self) -> When {
        let RowExchange {
            share,
            staleness,
            overlap,
            gradients,
            ..
        } = self.exchange;
        When {
            gradients_overlap: overlap,
            // A share of the boundary is drawn by the epoch.
            features_ahead: overlap
                && share.is_none()
                && staleness.is_none()
                && !self.wires.is_adaptive(),
            staleness,
            gradients,
        }
    }
}

/// What travels in an epoch at a ratio.
fn exchange(
    wires: &RowWires,
    share: Option<BoundaryShare>,
    ratio: f64,
    epoch: usize,
    state: &CodecState,
) -> EpochExchange {
    EpochExchange {
        share,
        ..wires.exchange(ratio, epoch, state)
    }
}

impl Training for RowTraining {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let (wires, share) = (self.wires.clone(), self.exchange.share);
        let state = wires.state();
        let sending = Sending {
            keeps_features: wires.keeps_features(),
            exchange: Box::new(move |epoch, decided| {
                let ratio = wires.planned_ratio(epoch, decided);
                exchange(&wires, share, ratio, epoch, &state)
            }),
        };
        let planner = ExchangePlanner::new(&self.setting, Some(sending), self.when());
        Box::new(planner)
    }

    fn plans_exactly(&self) -> bool {
        !self.wires.is_adaptive()
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let state = self.wires.state();
        let sent = |epoch: usize, seen: &[_]| {
            let ratio = self.wires.ratio_at(epoch, seen);
            exchange(&self.wires, self.exchange.share, ratio, epoch, &state)
        };
        partition_parallel(worker, Some(&sent), self.when())
    }
}
