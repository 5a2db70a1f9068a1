//! Boundary rows through a codec, at a ratio that may change with the epoch: the options that all strategies share that exchange rows.

use std::sync::Arc;

use serde::Deserialize;

use super::{CodecChoice, EpochExchange, HIGHEST_RATIO, Schedule, Seen, Wire};
use crate::net::{Codec, CodecKey, DifferenceMemory, Gauge, Measured};
use crate::sim::{EpochRecord, Setting};
use crate::strategies::full::plain_wire;
use crate::strategies::{Context, OptionError, OptionInfo, options};

/// How boundary rows are compressed.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Through which codec; none if rows travel as they are.
    pub codec: Option<CodecChoice>,
    /// How many times smaller than plain floats rows are, by epoch.
    pub schedule: Schedule,
    /// Whether random choices are rescaled, and so unbiased.
    pub rescale: bool,
    /// Whether what is lost is measured, for the tables.
    pub measure_error: bool,
    /// Whether the features are sent once, whole, instead of compressed in every epoch.
    pub cache_features: bool,
}

/// `codec` of strategies that compress on request.
pub const CODEC: OptionInfo = OptionInfo {
    name: "codec",
    default: "none",
    meaning: "Compress the rows that travel, but for the last layer's and cached features, by any codec of `fixed` (see there). Ours: the authors send plain floats.",
};

/// `ratio` of strategies that compress on request.
pub const RATIO: OptionInfo = OptionInfo {
    name: "ratio",
    default: "8",
    meaning: "With a codec that follows one: how many times smaller than plain floats rows are (as `fixed`'s).",
};

/// `schedule` of strategies that compress on request.
pub const SCHEDULE: OptionInfo = OptionInfo {
    name: "schedule",
    default: "none",
    meaning: "In place of ratio: one by epoch, any of `varco`'s (see there).",
};

/// What one worker's codecs keep from epoch to epoch.
#[derive(Debug, Default)]
pub struct CodecState {
    /// What difference coding remembers.
    memory: Arc<DifferenceMemory>,
    /// Where compression errors are measured; nowhere if they are not.
    gauge: Option<Arc<Gauge>>,
}

impl CodecState {
    /// Where compression errors are measured, if they are.
    #[must_use]
    pub const fn gauge(&self) -> Option<&Arc<Gauge>> {
        self.gauge.as_ref()
    }
}

/// As experiment files say it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    codec: Option<CodecChoice>,
    ratio: Option<f64>,
    schedule: Option<Schedule>,
    rescale: bool,
    measure_error: bool,
}

impl Compression {
    /// Rows as they are, the features in every epoch.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            codec: None,
            schedule: Schedule::Constant(1.0),
            rescale: false,
            measure_error: false,
            cache_features: false,
        }
    }

    /// The options of strategies that compress on request, and a table of the others. Without `codec` rows travel as they are; with one that
    /// follows a ratio, at 8 unless something else is said.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn on_request(
        table: &toml::Table,
        context: &Context,
    ) -> Result<(Self, toml::Table), OptionError> {
        let default = Self {
            schedule: Schedule::Constant(8.0),
            ..Self::none()
        };
        let keys = ["codec", "ratio", "schedule", "rescale", "measure_error"];
        default.read(table, context, &keys)
    }

    /// This with the options of a table that are among `keys`, and a table of the others.
    ///
    /// # Errors
    /// What is of the wrong type, out of range, or does nothing.
    pub fn read(
        self,
        table: &toml::Table,
        context: &Context,
        keys: &[&str],
    ) -> Result<(Self, toml::Table), OptionError> {
        let (mine, others): (toml::Table, toml::Table) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| keys.contains(&key.as_str()));
        let read: Options = options(&mine)?;
        let codec = read.codec.or(self.codec);
        if let (None, Some(key)) = (&codec, mine.keys().next()) {
            return Err(OptionError::key(
                key,
                "does nothing without `codec`, which says how rows are compressed: add it, or leave this out",
            ));
        }
        if read.ratio.is_some() && read.schedule.is_some() {
            return Err(OptionError::key(
                "ratio",
                "is that of the whole training, and `schedule` one by epoch: leave one out",
            ));
        }
        let ratio = read.ratio.map(constant).transpose()?;
        let compression = Self {
            codec,
            schedule: ratio.or(read.schedule).unwrap_or(self.schedule),
            rescale: read.rescale,
            measure_error: read.measure_error,
            ..self
        };
        let given = ["ratio", "schedule"];
        let given = given.into_iter().find(|key| mine.contains_key(*key));
        compression.check(context, given)?;
        Ok((compression, others))
    }

    /// With the features sent once, whole, or not.
    #[must_use]
    pub fn caching(self, cache_features: bool) -> Self {
        Self {
            cache_features,
            ..self
        }
    }

    /// Whether codec, schedule and the experiment go together; `given` is the key by which a ratio was asked for, if one was.
    ///
    /// # Errors
    /// What does not.
    fn check(&self, context: &Context, given: Option<&str>) -> Result<(), OptionError> {
        let Some(codec) = &self.codec else {
            return Ok(());
        };
        codec.check(self.rescale)?;
        codec.check_batches(context)?;
        self.schedule.check()?;
        match given {
            Some(key) if !codec.follows_ratio() => Err(OptionError::key(
                key,
                "does nothing for this codec, which has a cost of its own: leave it out, or make the codec second of a composition",
            )),
            _ => Ok(()),
        }
    }

    /// Whether anything is left to compress: neither the last layer's rows nor cached features are. A ratio of 1 asks for nothing.
    ///
    /// # Errors
    /// If not.
    pub fn check_layers(&self, context: &Context) -> Result<(), OptionError> {
        let asks = |codec: &CodecChoice| !codec.follows_ratio() || self.schedule.is_more_than_one();
        let compresses = self.codec.as_ref().is_some_and(asks);
        if compresses && context.layers <= 1 + usize::from(self.cache_features) {
            return Err(OptionError::key(
                "codec",
                "has nothing to compress: the rows of the last layer travel whole, and so do cached features. Take a model of more \
                 layers, or `cache_features = false`",
            ));
        }
        Ok(())
    }

    /// Whether the codec takes the difference from what was sent before.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.codec.as_ref().is_some_and(CodecChoice::remembers)
    }

    /// Whether what is sent depends on how the training goes.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.codec.is_some() && self.schedule.is_adaptive()
    }

    /// Whether the data have what the schedule looks at.
    ///
    /// # Errors
    /// If not.
    pub fn suits(&self, setting: &Setting) -> Result<(), OptionError> {
        let needs = self.codec.is_some() && self.schedule.needs_validation();
        if needs && setting.dataset.split.validation.is_empty() {
            let what =
                "adaptive-validation needs validation nodes, and the data set's split has none";
            return Err(OptionError::key("schedule", what));
        }
        Ok(())
    }

    /// The ratio that a recorded epoch had.
    #[must_use]
    pub fn ratio_of(&self, record: &EpochRecord, epochs: usize) -> f64 {
        match record.compression_ratio {
            Some(ratio) if self.is_adaptive() => ratio,
            _ => self.schedule.least_ratio(record.epoch, epochs),
        }
    }

    /// A fresh state of one worker.
    #[must_use]
    pub fn state(&self) -> CodecState {
        let measures = self.measure_error || self.schedule.needs_error();
        CodecState {
            gauge: (self.codec.is_some() && measures).then(Arc::default),
            ..CodecState::default()
        }
    }

    /// How the rows of a layer's input travel at a `ratio`, drawing by `seed` and `round`. The last layer's are never compressed (VARCO's code).
    #[must_use]
    pub fn wire(
        &self,
        context: &Context,
        layer: usize,
        ratio: f64,
        (seed, round): (u64, u64),
        state: &CodecState,
    ) -> Wire {
        let Some(codec) = self.codec.as_ref().filter(|_| layer + 1 < context.layers) else {
            return plain_wire();
        };
        let codec = codec.at(ratio, self.rescale, &state.memory);
        #[allow(clippy::cast_possible_truncation)] // layers are few
        let key = CodecKey::new(seed, layer as u32, round);
        Wire {
            codec: measured(codec, state.gauge.as_ref()),
            key,
        }
    }

    /// The ratio of the compressed rows where `asked` is asked for: that, or the codec's own; none without a codec.
    #[must_use]
    pub fn ratio(&self, asked: f64) -> Option<f64> {
        Some(self.codec.as_ref()?.ratio(asked))
    }

    /// What travels in one epoch, at a ratio.
    ///
    /// The input of every layer but the last is compressed, the raw features among them. The gradient of a compressed row goes through the same
    /// codec; where its entries are drawn, those are exactly the ones that were sent (VARCO's code).
    #[must_use]
    pub fn exchange(
        &self,
        context: &Context,
        ratio: f64,
        seed: u64,
        epoch: usize,
        state: &CodecState,
    ) -> EpochExchange {
        let wires = (0..context.layers)
            .map(|layer| {
                if layer == 0 && self.cache_features {
                    // In mini-batches, features that were not needed before come in any epoch.
                    return (epoch == 0 || context.mini_batch).then(plain_wire);
                }
                Some(self.wire(context, layer, ratio, (seed, epoch as u64), state))
            })
            .collect();
        let adapts = self.codec.is_some();
        EpochExchange {
            wires,
            compression_ratio: self.ratio(ratio),
            gauge: state.gauge.clone(),
            shares_error: adapts && self.schedule.needs_error(),
            shares_scores: adapts && self.schedule.needs_validation(),
            keeps_features: self.cache_features,
            ..EpochExchange::default()
        }
    }

    /// The ratio of an epoch, after what the epochs before it showed.
    #[must_use]
    pub fn ratio_at(&self, context: &Context, epoch: usize, seen: &[Seen]) -> f64 {
        self.schedule.ratio(epoch, context.epochs, seen)
    }
}

/// One ratio throughout.
fn constant(ratio: f64) -> Result<Schedule, OptionError> {
    if !(1.0..=HIGHEST_RATIO).contains(&ratio) {
        let what = format!("must be a number from 1 to {HIGHEST_RATIO}");
        return Err(OptionError::key("ratio", what));
    }
    Ok(Schedule::Constant(ratio))
}

/// Nothing is to be measured where nothing is lost.
fn measured(codec: Arc<dyn Codec>, gauge: Option<&Arc<Gauge>>) -> Arc<dyn Codec> {
    match gauge {
        Some(gauge) if !codec.is_lossless() => Arc::new(Measured {
            codec,
            gauge: Arc::clone(gauge),
        }),
        _ => codec,
    }
}
