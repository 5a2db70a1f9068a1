//! Boundary rows through a codec, at a ratio that may change with the epoch: the options that all
//! strategies share that exchange rows.

use std::sync::Arc;

use serde::Deserialize;

use super::{CodecChoice, EpochExchange, ExchangePoint, Feedback, HIGHEST_RATIO, Schedule, Wire};
use crate::model::{ModelSpec, RowForm};
use crate::net::{Codec, CodecKey, DifferenceMemory, Gauge, HeldRows, Watched, Watcher, Way};
use crate::sim::{Decision, Restoring, Saved, Saving, Setting, SimError};
use crate::strategies::{OptionError, options};

/// How boundary rows are compressed.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is an option
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
    /// Whether rows cross before or after a layer's product.
    pub exchange: ExchangePoint,
    /// Whether the rows of the last layer are compressed too. VARCO's code sends them whole.
    pub compress_last: bool,
    /// Whether that is an option of the strategy, for messages.
    pub can_compress_last: bool,
    /// The option by which compression was asked for, if by any, for messages.
    pub asked_by: Option<&'static str>,
}

/// How rows travel in each epoch of a training: compression that fits its setting.
#[derive(Clone, Debug)]
pub struct RowWires {
    pub(crate) compression: Compression,
    /// In which form the rows of each layer cross.
    forms: Vec<RowForm>,
    epochs: usize,
    mini_batch: bool,
    seed: u64,
}

/// What one worker's codecs keep from epoch to epoch.
#[derive(Clone, Debug, Default)]
pub struct CodecState {
    /// What difference coding remembers.
    memory: Arc<DifferenceMemory>,
    /// Where compression errors are measured; nowhere if they are not.
    gauge: Option<Arc<Gauge>>,
}

impl CodecState {
    /// Where compression errors are measured, if they are.
    pub const fn gauge(&self) -> Option<&Arc<Gauge>> {
        self.gauge.as_ref()
    }

    /// Lets go of what difference coding remembers: other rows cross from now on.
    pub(super) fn forget(&self) {
        self.memory.remember(Vec::new());
    }
}

/// What is measured is taken in each epoch, so that nothing of it is left at its end.
impl Saved for CodecState {
    fn save(&self, into: &mut Saving) {
        let rows = self.memory.held_rows();
        let places: Vec<_> = rows.iter().map(|rows| rows.place).collect();
        into.put(&places);
        into.lists(rows.iter().map(|rows| &rows.values[..]));
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        let places: Vec<_> = from.saved().take()?;
        let rows = places.into_iter().zip(from.saved().lists()?);
        let rows = rows.map(|(place, values)| HeldRows { place, values });
        self.memory.remember(rows.collect());
        Ok(())
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
    compress_last: Option<bool>,
}

impl Compression {
    /// Rows as they are, the features in every epoch.
    pub const fn none() -> Self {
        Self {
            codec: None,
            schedule: Schedule::Constant(1.0),
            rescale: false,
            measure_error: false,
            cache_features: false,
            exchange: ExchangePoint::Input,
            compress_last: false,
            can_compress_last: false,
            asked_by: None,
        }
    }

    /// The options of strategies that compress on request, and a table of the others. Without
    /// `codec` rows travel as they are; with one that follows a ratio, at 8 unless something else
    /// is said.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn on_request(table: &toml::Table) -> Result<(Self, toml::Table), OptionError> {
        let keys = ["codec", "ratio", "schedule", "rescale", "measure_error"];
        Self::if_asked().read(table, &keys)
    }

    /// Rows as they are; at a ratio of 8 where a codec is asked for, unless something else is said.
    pub fn if_asked() -> Self {
        Self {
            schedule: Schedule::Constant(8.0),
            ..Self::none()
        }
    }

    /// This with the options of a table that are among `keys`, and a table of the others.
    ///
    /// # Errors
    /// What is of the wrong type, out of range, or does nothing.
    pub fn read(
        self,
        table: &toml::Table,
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
        let given = |key: &&str| mine.contains_key(*key);
        let compression = Self {
            asked_by: ["codec", "ratio", "schedule"].into_iter().find(given),
            codec,
            schedule: ratio.or(read.schedule).unwrap_or(self.schedule),
            rescale: read.rescale,
            measure_error: read.measure_error,
            compress_last: read.compress_last.unwrap_or(self.compress_last),
            ..self
        };
        compression.check(["ratio", "schedule"].into_iter().find(given))?;
        Ok((compression, others))
    }

    /// With the features sent once, whole, or not, and the exchange of a layer at another point.
    pub fn sending(self, cache_features: bool, exchange: ExchangePoint) -> Self {
        Self {
            cache_features,
            exchange,
            ..self
        }
    }

    /// Whether codec and schedule go together; `given` is the key by which a ratio was asked for,
    /// if one was.
    ///
    /// # Errors
    /// What does not.
    fn check(&self, given: Option<&str>) -> Result<(), OptionError> {
        let Some(codec) = &self.codec else {
            return Ok(());
        };
        codec.check(self.rescale)?;
        self.schedule.check()?;
        match given {
            Some(key) if !codec.follows_ratio() => Err(OptionError::key(
                key,
                "does nothing for this codec, which has a cost of its own: leave it out, or make the codec second of a composition",
            )),
            _ => Ok(()),
        }
    }

    /// Fits it to a training of so many epochs.
    ///
    /// # Errors
    /// If nothing is left to compress, as neither the last layer's rows nor cached features are and
    /// a ratio of 1 asks for nothing; if the codec does not go with mini-batches; or if the data
    /// lack what the schedule looks at.
    pub fn fit(&self, setting: &Setting, epochs: usize) -> Result<RowWires, OptionError> {
        let layers = setting.model.layers();
        if let Some(codec) = &self.codec {
            codec.check_batches(setting.batches.is_some())?;
            let asks = !codec.follows_ratio() || self.schedule.is_more_than_one();
            let whole = usize::from(!self.compress_last) + usize::from(self.cache_features);
            if asks && layers <= whole {
                return Err(self.nothing_left());
            }
            let looks = self.schedule.needs_validation();
            // Those of shards were found when they were opened.
            let unknown = setting.shards.is_none() && setting.scored().split.validation.is_empty();
            if looks && unknown {
                let what =
                    "adaptive-validation needs validation nodes, and the data set's split has none";
                return Err(OptionError::key("schedule", what));
            }
        }
        Ok(RowWires {
            compression: self.clone(),
            forms: self.exchange.forms(setting, self.cache_features),
            epochs,
            mini_batch: setting.batches.is_some(),
            seed: setting.seed,
        })
    }

    /// What is wrong where features and the last layer's rows are all there is, and travel whole.
    fn nothing_left(&self) -> OptionError {
        let mut whole = Vec::new();
        let mut advice = vec!["a model of more layers"];
        if self.cache_features {
            whole.push("cached features");
            advice.push("`cache_features = false`");
        }
        if !self.compress_last {
            whole.push("the rows of the last layer");
            // Not every strategy has that option.
            advice.extend(self.can_compress_last.then_some("`compress_last = true`"));
        }
        let message = format!(
            "nothing to compress: {} travel whole. Take {}",
            whole.join(" and "),
            advice.join(", or ")
        );
        match self.asked_by {
            Some(key) => OptionError::key(key, format!("has {message}")),
            None => OptionError::whole(format!("there is {message}")),
        }
    }

    /// Whether the codec takes the difference from what was sent before.
    pub fn remembers(&self) -> bool {
        self.codec.as_ref().is_some_and(CodecChoice::remembers)
    }

    /// Whether what is sent depends on how the training goes.
    pub const fn is_adaptive(&self) -> bool {
        self.codec.is_some() && self.schedule.is_adaptive()
    }
}

impl RowWires {
    /// The layers and ways of rows that are made anew in each epoch: all but features that cross as
    /// they are.
    pub fn lanes(&self) -> impl Iterator<Item = (u32, Way)> + use<> {
        let first = u32::from(self.forms.first() == Some(&RowForm::Input));
        let layers = first..self.forms.len() as u32;
        layers.flat_map(|layer| [Way::Forward, Way::Back].map(|way| (layer, way)))
    }

    /// The ratio of an epoch, after what the epochs before it showed.
    pub(crate) fn ratio_at(&self, epoch: usize, seen: &[Feedback]) -> f64 {
        self.compression.schedule.ratio(epoch, self.epochs, seen)
    }

    /// The ratio that a plan takes for an epoch: what was decided, or the least there can be.
    pub(crate) fn planned_ratio(&self, epoch: usize, decided: Option<&Decision>) -> f64 {
        match decided {
            Some(Decision::Ratio(ratio)) => *ratio,
            _ => self.compression.schedule.least_ratio(epoch, self.epochs),
        }
    }

    /// What to know where a greater ratio is asked for than rows of so few columns have.
    pub(crate) fn note(&self, model: &ModelSpec) -> Option<String> {
        let Compression {
            codec,
            schedule,
            rescale,
            ..
        } = &self.compression;
        let codec = codec.as_ref().filter(|codec| codec.follows_ratio())?;
        let layers = usize::from(self.compression.cache_features)
            ..self.forms.len() - usize::from(!self.compression.compress_last);
        let widths = layers.map(|layer| model.layer(layer).width(self.forms[layer]));
        let columns = widths.max()?;
        // The first is the greatest.
        let asked = schedule.ratio(0, self.epochs, &[]);
        // As many rows as a message may well have, beside which its head is nothing.
        let rows = 1000;
        let bytes = |ratio: f64| {
            let codec = codec.at(ratio, *rescale, &self.state().memory);
            codec.encoded_bytes(rows, columns).0
        };
        let plain = (4 * rows * columns) as f64;
        (asked > 2.0 && bytes(asked) == bytes(asked / 2.0)).then(|| {
            format!(
                "asks for a ratio of {asked}, and rows of at most {columns} columns become no more than {:.1} times smaller",
                plain / bytes(asked).max(1) as f64
            )
        })
    }

    /// A fresh state of one worker.
    pub fn state(&self) -> CodecState {
        let Compression {
            codec, schedule, ..
        } = &self.compression;
        let measures = self.compression.measure_error || schedule.needs_error();
        CodecState {
            gauge: (codec.is_some() && measures).then(Arc::default),
            ..CodecState::default()
        }
    }

    /// How the rows of a layer travel at a `ratio` in a `round` of draws. The last layer's are not
    /// compressed (VARCO's code) unless it is asked for.
    pub fn wire(&self, layer: usize, ratio: f64, round: u64, state: &CodecState) -> Wire {
        let codec = self.compression.codec.as_ref();
        let form = self.forms[layer];
        let compressed = self.compression.compress_last || layer + 1 < self.forms.len();
        let Some(codec) = codec.filter(|_| compressed) else {
            return Wire::plain().of(form);
        };
        let codec = codec.at(ratio, self.compression.rescale, &state.memory);
        let key = CodecKey::new(self.seed, layer as u32, round);
        Wire {
            codec: measured(codec, state.gauge.as_ref()),
            key,
            form,
        }
    }

    /// The ratio of the compressed rows where `asked` is asked for: that, or the codec's own; none
    /// without a codec.
    pub fn ratio(&self, asked: f64) -> Option<f64> {
        Some(self.compression.codec.as_ref()?.ratio(asked))
    }

    /// What travels in one epoch, at a ratio; `begins` says whether nobody has features of others
    /// yet.
    ///
    /// The rows of every layer but the last are compressed, the raw features among them, and those
    /// of the last where that is asked for. The
    /// gradient of a compressed row goes through the same codec; where its entries are drawn, those
    /// are exactly the ones that were sent (VARCO's code).
    pub(crate) fn exchange(
        &self,
        ratio: f64,
        epoch: usize,
        begins: bool,
        state: &CodecState,
    ) -> EpochExchange {
        let keeps_features = self.compression.cache_features;
        let wires = (0..self.forms.len()).map(|layer| {
            if layer == 0 && keeps_features {
                // In mini-batches, features that were not needed before come in any epoch.
                return (begins || self.mini_batch).then(Wire::plain);
            }
            Some(self.wire(layer, ratio, epoch as u64, state))
        });
        let schedule = &self.compression.schedule;
        let adapts = self.compression.codec.is_some();
        EpochExchange {
            wires: wires.collect(),
            compression_ratio: self.ratio(ratio),
            gauge: state.gauge.clone(),
            shares_error: adapts && schedule.needs_error(),
            shares_scores: adapts && schedule.needs_validation(),
            keeps_features,
            decided: self
                .compression
                .is_adaptive()
                .then_some(Decision::Ratio(ratio)),
            ..EpochExchange::default()
        }
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
        Some(gauge) if !codec.is_lossless() => Arc::new(Watched {
            codec,
            watcher: Arc::clone(gauge) as Arc<dyn Watcher>,
        }),
        _ => codec,
    }
}
