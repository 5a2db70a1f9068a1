//! What `full`, `fixed`, `varco`, `bns` and `pipe` are: the shared training loop, told what becomes of boundary rows on their way.

use serde::Deserialize;

use super::{
    BoundaryShare, CodecChoice, CodecState, Compression, EpochExchange, Late, Overlap, Schedule,
    error_traffic, exchange_traffic, partition_parallel,
};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::Traffic;
use crate::sim::{EpochRecord, Setting, SimError, Worker};
use crate::strategies::{Context, OptionError, Strategy, options};

/// Exact training but for what happens to boundary rows, and their gradients, on the way.
#[derive(Clone, Debug)]
pub struct RowExchange {
    /// How they are compressed.
    pub compression: Compression,
    /// Which share of them crosses, if not all do.
    pub share: Option<BoundaryShare>,
    /// How they are used an epoch late, if they are.
    pub late: Option<Late>,
    /// Whether messages travel while the workers compute.
    pub overlap: bool,
    /// What the experiment says.
    pub context: Context,
}

/// What [`RowExchange::compressed`] takes besides the codec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    cache_features: bool,
    #[serde(default)]
    overlap: bool,
}

impl RowExchange {
    /// All rows, at once.
    #[must_use]
    pub const fn new(compression: Compression, overlap: bool, context: Context) -> Self {
        Self {
            compression,
            share: None,
            late: None,
            overlap,
            context,
        }
    }

    /// All rows through a codec, by default random columns, at the ratio that `schedule` says unless the table does under `key`.
    ///
    /// # Errors
    /// What is of the wrong type, out of range, or does nothing.
    pub fn compressed(
        table: &toml::Table,
        context: &Context,
        key: &str,
        schedule: Schedule,
    ) -> Result<Self, OptionError> {
        let default = Compression {
            codec: Some(CodecChoice::default()),
            schedule,
            ..Compression::none()
        };
        let keys = ["codec", key, "rescale", "measure_error"];
        let (compression, table) = default.read(table, context, &keys)?;
        let options: Options = options(&table)?;
        let compression = compression.caching(options.cache_features);
        compression.check_layers(context)?;
        Ok(Self::new(compression, options.overlap, *context))
    }

    fn exchange(&self, ratio: f64, seed: u64, epoch: usize, state: &CodecState) -> EpochExchange {
        EpochExchange {
            share: self.share,
            ..self
                .compression
                .exchange(&self.context, ratio, seed, epoch, state)
        }
    }

    fn traffic(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        epoch: usize,
        ratio: f64,
    ) -> Traffic {
        // What is drawn and remembered does not change how many bytes it takes.
        let sent = self.exchange(ratio, 0, epoch, &CodecState::default());
        let all_reduce = self.context.all_reduce;
        let mut traffic = exchange_traffic(all_reduce, boundary, model, epoch, &sent, self.overlap);
        if sent.shares_error {
            traffic.merge(&error_traffic(all_reduce, boundary.workers()));
        }
        traffic
    }
}

impl Strategy for RowExchange {
    fn trains_in_batches(&self) -> bool {
        self.share.is_none() && self.late.is_none()
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let schedule = &self.compression.schedule;
        let ratio = schedule.least_ratio(epoch, self.context.epochs);
        self.traffic(boundary, model, epoch, ratio)
    }

    fn plans_exactly(&self) -> bool {
        !self.compression.is_adaptive()
    }

    fn plan_after(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        record: &EpochRecord,
    ) -> Traffic {
        let ratio = self.compression.ratio_of(record, self.context.epochs);
        self.traffic(boundary, model, record.epoch, ratio)
    }

    fn suits(&self, setting: &Setting) -> Result<(), OptionError> {
        self.compression.suits(setting)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let seed = worker.setting().seed;
        let state = self.compression.state();
        let ahead = self.overlap || self.late.is_some();
        partition_parallel(
            worker,
            Some(&|epoch, seen| {
                let ratio = self.compression.ratio_at(&self.context, epoch, seen);
                self.exchange(ratio, seed, epoch, &state)
            }),
            Overlap {
                gradients: self.overlap,
                // A share of the boundary is drawn by the epoch.
                features: ahead && self.share.is_none() && !self.compression.is_adaptive(),
                late: self.late,
            },
        )
    }
}
