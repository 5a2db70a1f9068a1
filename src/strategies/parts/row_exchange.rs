//! Strategies that differ in what becomes of boundary rows alone: how they are encoded, which of
//! them cross, and when they are used.

use std::sync::Arc;

use super::plan::{ExchangePlanner, Sending};
use super::{
    Bound, BoundaryShare, CodecChoice, CodecState, Compression, EpochExchange, Exchange,
    ExchangePoint, Gradients, RowWires, Schedule, Staleness, When, partition_parallel_with,
};
use crate::graph::PartitionSpec;
use crate::sim::{Planner, Setting, SimError, Worker};
use crate::strategies::{BatchUse, Needs, OptionError, Strategy, Training};

/// What becomes of boundary rows.
#[derive(Clone)]
pub struct RowExchange {
    /// Whether any cross; if not, cut edges are dropped.
    pub crosses: bool,
    /// Whether all rows of a worker cross to all others, and not those that they read.
    pub blocks: bool,
    /// Through which codec they go, at which ratio by epoch.
    pub compression: Compression,
    /// The share of the boundary that crosses, if not all does.
    pub share: Option<BoundaryShare>,
    /// How rows that are used an epoch late are smoothed, if they are.
    pub staleness: Option<Staleness>,
    /// How old rows may become that are used again, if they are.
    pub kept: Option<Bound>,
    /// Whether gradients, and what is known in advance of features, travel while the workers
    /// compute.
    pub overlap: bool,
    /// How parameter gradients are summed.
    pub gradients: Gradients,
}

impl RowExchange {
    /// All rows, at once, and all gradients, as they are.
    pub const fn new(compression: Compression) -> Self {
        Self {
            crosses: true,
            blocks: false,
            compression,
            share: None,
            staleness: None,
            kept: None,
            overlap: false,
            gradients: Gradients::PLAIN,
        }
    }

    /// All rows through a codec, by default random columns, at the ratio of a schedule; where they
    /// are narrower, and features in every epoch.
    pub fn compressed(schedule: Schedule) -> Self {
        let compression = Compression {
            codec: Some(CodecChoice::default()),
            schedule,
            ..Compression::none()
        };
        Self::new(compression.sending(false, ExchangePoint::Narrower))
    }
}

impl Strategy for RowExchange {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        let whole = self.share.is_some() || self.staleness.is_some();
        let whole = whole || self.kept.is_some() || self.blocks;
        let batches = if whole {
            BatchUse::Never
        } else {
            BatchUse::Possible
        };
        Ok(Needs::of(asked.clone(), batches))
    }

    fn plans_from_counts(&self, batches: bool) -> bool {
        !batches
    }

    fn trains_from_shards(&self, batches: bool) -> bool {
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
            kept,
            blocks,
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
            kept,
            blocks,
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
        let sending = self.exchange.crosses.then_some(sending);
        Box::new(ExchangePlanner::new(&self.setting, sending, self.when()))
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
        let sent: Option<Exchange<'_>> = self.exchange.crosses.then_some(&sent);
        partition_parallel_with(worker, sent, self.when(), &mut &state)
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}
