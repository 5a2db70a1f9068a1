//! The options of strategies that differ in what becomes of boundary rows: each takes some of them,
//! and has defaults of its own.

use serde::Deserialize;

use super::options::at_least_one;
use super::{
    Bound, BoundaryShare, ExchangePoint, Gradients, Keeping, Repartition, RowExchange, Staleness,
    When,
};
use crate::strategies::{OptionError, OptionInfo, options};

/// All that an experiment file may say beside the codec.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    rows: Option<Rows>,
    share: Option<f64>,
    late: Option<bool>,
    smoothing: Smoothing,
    gamma: Option<f32>,
    fresh_every: Option<usize>,
    bound: Option<usize>,
    threshold: Option<f64>,
    cache_features: Option<bool>,
    exchange: Option<ExchangePoint>,
    overlap: bool,
    gradients: Gradients,
    repartition_every: Option<usize>,
}

/// Which rows cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rows {
    #[default]
    All,
    Blocks,
    None,
}

/// What is used as a running mean of what came late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Smoothing {
    #[default]
    None,
    Features,
    Gradients,
    Both,
}

/// The keys of how rows are encoded.
const CODEC_KEYS: [&str; 6] = [
    "codec",
    "ratio",
    "schedule",
    "rescale",
    "measure_error",
    "compress_last",
];

impl RowExchange {
    /// This with what a table says; `known` are the options that the strategy has.
    ///
    /// # Errors
    /// What is unknown, of the wrong type, out of range, does nothing, or does not go together.
    pub fn read(self, table: &toml::Table, known: &[OptionInfo]) -> Result<Self, OptionError> {
        let unknown = |key: &&String| known.iter().all(|option| option.name != **key);
        if let Some(key) = table.keys().find(unknown) {
            let names: Vec<String> = known.iter().map(|o| format!("`{}`", o.name)).collect();
            let names = names.join(", ");
            let what = format!("unknown field `{key}`, expected one of {names}");
            return Err(OptionError::key(key, what));
        }
        let (mut compression, others) = self.compression.clone().read(table, &CODEC_KEYS)?;
        compression.can_compress_last = known.iter().any(|option| option.name == "compress_last");
        let read: Options = options(&others)?;
        let compression = compression.sending(
            read.cache_features
                .unwrap_or(self.compression.cache_features),
            read.exchange.unwrap_or(self.compression.exchange),
        );
        // What does not go with a threshold is refused before anything else.
        let kept = read.kept(self.when.kept)?;
        let exchange = Self {
            crosses: self.crosses && read.rows != Some(Rows::None),
            share: share(read.share)?.or(self.share),
            when: When {
                gradients_overlap: read.overlap,
                features_ahead: read.overlap,
                staleness: read.staleness(self.when.staleness, compression.cache_features)?,
                kept,
                blocks: read
                    .rows
                    .map_or(self.when.blocks, |rows| rows == Rows::Blocks),
                gradients: read.gradients,
                repartition: Repartition {
                    every: read.repartition_every,
                },
            },
            compression,
        };
        if read.rows == Some(Rows::None) {
            nothing_else(table)?;
        }
        exchange.check()?;
        Ok(exchange)
    }

    /// Whether all of it goes together.
    fn check(&self) -> Result<(), OptionError> {
        let When {
            staleness,
            blocks,
            gradients,
            repartition,
            ..
        } = self.when;
        gradients.check_overlap(self.when.gradients_overlap)?;
        let refuse = |key, what: &str| Err(OptionError::key(key, what));
        if self.share.is_some() && staleness.is_some() {
            return refuse(
                "late",
                "does not go with a share of the boundary: what came late would be rows of the last draw, and the edges those of this \
                 one; leave out one of the two",
            );
        }
        if self.share.is_some() && blocks {
            return refuse(
                "rows",
                "does not go with a share of the boundary: with \"blocks\" all rows of a worker cross, and not a part of those that are \
                 read; leave out one of the two",
            );
        }
        self.check_kept()?;
        at_least_one("repartition_every", repartition.every)?;
        match repartition.every {
            Some(1) if staleness.is_some_and(|late| late.fresh_every.is_none()) => {
                return refuse(
                    "repartition_every",
                    "must be at least 2 with `late`: what is sent in an epoch is used in the next one with the same parts, and there is none",
                );
            }
            _ => {}
        }
        if let Some(late) = staleness.filter(|late| late.fresh_every.is_some()) {
            if late.rows.is_some() || late.gradients.is_some() {
                return refuse(
                    "fresh_every",
                    "does not go with `smoothing`: a running mean of fresh rows is not fresh; leave out one of the two",
                );
            }
            if self.compression.remembers() {
                return refuse(
                    "codec",
                    "takes the difference from what the same rows were an epoch ago, and the epoch after a fresh one reads the same \
                     message again: choose another",
                );
            }
        }
        if self.share.is_some() && self.compression.remembers() {
            return refuse(
                "codec",
                "takes the difference from what the same rows were an epoch ago, and here other rows cross in each: choose another",
            );
        }
        let smooths = staleness.is_some_and(|late| late.rows.is_some());
        let compression = &self.compression;
        if smooths && !compression.cache_features && compression.codec.is_some() {
            return refuse(
                "cache_features",
                "must be true with a codec and smoothing of features: what a mean of compressed features holds cannot be planned",
            );
        }
        Ok(())
    }
}

impl RowExchange {
    /// Whether what is used again goes with the rest.
    fn check_kept(&self) -> Result<(), OptionError> {
        let refuse = |what: &str| Err(OptionError::key("bound", what));
        let Some(keeping) = self.when.kept else {
            return Ok(());
        };
        if self.share.is_some() {
            return refuse(
                "does not go with a share of the boundary: what is used again would be rows of another draw; leave out one of the two",
            );
        }
        if self.when.staleness.is_some() {
            return refuse(
                "does not go with `late`: rows are used again, or an epoch after they were sent; leave out one of the two",
            );
        }
        if self.compression.remembers() {
            return refuse(
                "does not go with a codec that takes the difference from what the same rows were an epoch ago: a message that is used \
                 again is read again; choose another",
            );
        }
        if keeping.threshold.is_some() && self.compression.codec.is_some() {
            return Err(OptionError::key(
                "threshold",
                "does not go with a codec: rows and the gradients of the same rows are sent in epochs of their own, and their entries \
                 would be those of two draws; leave out one of the two",
            ));
        }
        Ok(())
    }
}

impl Options {
    /// What is kept, given what is where nothing is said.
    fn kept(&self, default: Option<Keeping>) -> Result<Option<Keeping>, OptionError> {
        let refuse = |what: &str| Err(OptionError::key("threshold", what));
        match self.threshold {
            Some(threshold) if !(threshold >= 0.0 && threshold.is_finite()) => {
                return refuse("must be a number of at least 0");
            }
            Some(_) if self.bound.is_none() && default.is_none() => {
                return refuse("is of what is used again: add `bound`");
            }
            _ => {}
        }
        let bound = self.bound.map(Bound);
        let bound = bound.or(default.map(|keeping| keeping.bound));
        let threshold = self.threshold;
        // Nothing has changed just after it was sent, so that nobody sends in two epochs in a row.
        if threshold.is_some_and(|threshold| threshold > 0.0)
            && bound.is_some_and(|bound| bound.0 < 2)
        {
            return refuse(
                "does nothing with a `bound` below 2: rows are sent as soon as they may be; raise `bound`, or leave `threshold` out",
            );
        }
        Ok(bound.map(|bound| Keeping { bound, threshold }))
    }

    /// What comes late, given what does where nothing is said.
    fn staleness(
        &self,
        default: Option<Staleness>,
        cache_features: bool,
    ) -> Result<Option<Staleness>, OptionError> {
        let late = self.late.unwrap_or(default.is_some());
        let refuse = |key, what: &str| Err(OptionError::key(key, what));
        if !late && self.smoothing != Smoothing::None {
            return refuse("smoothing", "is of what comes late: add `late = true`");
        }
        if let Some(gamma) = self.gamma {
            if !(0.0..1.0).contains(&gamma) {
                return refuse("gamma", "must be a number of at least 0 and below 1");
            }
            if self.smoothing == Smoothing::None {
                return refuse(
                    "gamma",
                    "does nothing without smoothing: leave it out, or say what to smooth",
                );
            }
        }
        if self.fresh_every.is_some() && !late {
            return refuse("fresh_every", "is of what comes late: add `late = true`");
        }
        at_least_one("fresh_every", self.fresh_every)?;
        let gamma = Some(self.gamma.unwrap_or(0.95));
        let (rows, gradients) = match self.smoothing {
            Smoothing::None => (None, None),
            Smoothing::Features => (gamma, None),
            Smoothing::Gradients => (None, gamma),
            Smoothing::Both => (gamma, gamma),
        };
        Ok(late.then_some(Staleness {
            rows,
            gradients,
            features: !cache_features,
            fresh_every: self
                .fresh_every
                .or(default.and_then(|late| late.fresh_every)),
        }))
    }
}

fn share(share: Option<f64>) -> Result<Option<BoundaryShare>, OptionError> {
    match share {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(OptionError::key("share", "must be a number from 0 to 1"))
        }
        share => Ok(share.map(BoundaryShare)),
    }
}

/// Where no rows cross, nothing can be said of them.
fn nothing_else(table: &toml::Table) -> Result<(), OptionError> {
    let goes = ["rows", "overlap", "gradients", "repartition_every"];
    let Some(key) = table.keys().find(|key| !goes.contains(&key.as_str())) else {
        return Ok(());
    };
    let what = "says what becomes of rows that cross, and with `rows = \"none\"` none do: leave out one of the two";
    Err(OptionError::key(key, what))
}
