//! What experiment files say about gradients.

use serde::Deserialize;

use super::super::codec_choice::name_or_table;
use super::super::schedule::HIGHEST_RATIO;
use crate::digits::counted;
use crate::sim::Setting;
use crate::strategies::OptionError;

/// How parameter gradients become the step that all workers take. The default is an all-reduce of
/// all gradients in each step.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Read")]
pub struct Gradients {
    /// How they are encoded.
    pub codec: GradientCodec,
    /// Whether what a codec leaves out is added to what it is given next.
    pub feedback: bool,
    /// Steps from one sum to the next; after the last step of a training there is one in any case.
    pub every: usize,
    /// What is summed.
    pub average: Average,
}

/// What workers average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Average {
    /// Their gradients: models are the same at all times. With several steps to a sum, the mean of
    /// their gradients is that of one step of all workers, and models stay as they are until then
    /// (as under `no_sync` of PyTorch's DDP).
    #[default]
    Gradients,
    /// Their models, each of which has taken steps of its own (local SGD: Stich, ICLR 2019). What
    /// travels is the change since the last average, through the codec (Basu et al.,
    /// *Qsparse-local-SGD*, `NeurIPS` 2019).
    Models,
}

/// How what is summed travels. Of `n` values and `P` workers, bytes that a worker sends:
///
/// | kind | bytes |
/// |---|---|
/// | `identity` | those of the all-reduce; around a ring 2(P−1)/P · 4n |
/// | `random_k` | the same of ⌊n/ratio⌋ values |
/// | `top_k` | (P−1) messages with as many entries and places as 4n/ratio bytes hold |
/// | `qsgd` | 2(P−1)/P · (n·bits/8 + 4 a bucket), bits = 1 + ⌈log₂(levels + 1)⌉ |
/// | `sign` | 2(P−1)/P · (n/8 + 4 a chunk) |
/// | `f16`, `bf16` | 2(P−1)/P · 2n |
/// | `power_sgd` | the all-reduce of rank · (rows + columns) values a matrix, and of vectors |
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
// Braces, because serde lets unknown keys pass in variants without.
pub enum GradientCodec {
    /// As they are.
    Identity {},
    /// The largest entries of all.
    TopK {
        /// Bytes of plain floats over those of a message.
        #[serde(default = "hundred")]
        ratio: f64,
    },
    /// A share of the entries, drawn anew for each sum, the same on all workers.
    RandomK {
        /// Entries over those that travel.
        #[serde(default = "hundred")]
        ratio: f64,
    },
    /// Levels of a bucket's length, rounded at random.
    Qsgd {
        /// The highest level.
        #[serde(default = "seven")]
        levels: u32,
        /// Entries of a bucket.
        #[serde(default = "bucket")]
        bucket: usize,
    },
    /// Signs, of which the majority wins: votes weigh as much as the gradient they are from.
    Sign {},
    /// Two factors of each matrix.
    PowerSgd {
        /// Columns of a factor.
        #[serde(default = "four")]
        rank: usize,
    },
    /// Half-precision floats.
    F16 {},
    /// The upper halves of floats.
    Bf16 {},
}

impl Default for GradientCodec {
    fn default() -> Self {
        Self::Identity {}
    }
}

const fn hundred() -> f64 {
    100.0
}

/// Four bits an entry with its sign.
const fn seven() -> u32 {
    7
}

/// That of the paper's experiments with four bits.
const fn bucket() -> usize {
    512
}

const fn four() -> usize {
    4
}

const fn one() -> usize {
    1
}

/// The keys as they stand in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(default, deserialize_with = "name_or_table")]
    codec: GradientCodec,
    feedback: Option<bool>,
    #[serde(default = "one")]
    every: usize,
    #[serde(default)]
    average: Average,
}

impl GradientCodec {
    /// Whether what it leaves out is added to what follows, unless the file says.
    const fn feeds_back(self) -> bool {
        matches!(
            self,
            Self::TopK { .. } | Self::RandomK { .. } | Self::Sign {} | Self::PowerSgd { .. }
        )
    }

    fn check(self) -> Result<(), String> {
        match self {
            Self::TopK { ratio } | Self::RandomK { ratio }
                if !(1.0..=HIGHEST_RATIO).contains(&ratio) =>
            {
                Err(format!(
                    "`codec.ratio` must be a number from 1 to {HIGHEST_RATIO}"
                ))
            }
            Self::Qsgd { levels, .. } if !(1..1 << 16).contains(&levels) => {
                Err("`codec.levels` must be a number from 1 to 65535".to_owned())
            }
            Self::Qsgd { bucket: 0, .. } => {
                Err("`codec.bucket` must be at least 1, not 0".to_owned())
            }
            Self::PowerSgd { rank } if !(1..1 << 16).contains(&rank) => {
                Err("`codec.rank` must be a number from 1 to 65535".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl TryFrom<Read> for Gradients {
    type Error = String;

    fn try_from(read: Read) -> Result<Self, String> {
        let codec = read.codec;
        codec.check()?;
        if read.every == 0 {
            return Err("`every` must be at least 1, not 0".to_owned());
        }
        match (read.feedback, codec) {
            (Some(true), GradientCodec::Identity {}) => {
                return Err(
                    "`feedback` adds what a codec left out, and without `codec` nothing is: name \
                     one, or leave this out"
                        .to_owned(),
                );
            }
            (Some(true), GradientCodec::Qsgd { .. }) => {
                return Err(
                    "`feedback` does not go with qsgd: its rounding can lose more than \
                            there is, and what was fed back would grow from step to step"
                        .to_owned(),
                );
            }
            _ => {}
        }
        Ok(Self {
            codec,
            feedback: read.feedback.unwrap_or(codec.feeds_back()),
            every: read.every,
            average: read.average,
        })
    }
}

impl Default for Gradients {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl Gradients {
    /// All of them, as they are, in every step.
    pub const PLAIN: Self = Self {
        codec: GradientCodec::Identity {},
        feedback: false,
        every: 1,
        average: Average::Gradients,
    };

    /// Whether all gradients are summed in every step, as they are.
    pub(crate) fn are_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// Whether they can be summed layer by layer during the backward pass, if that is asked for.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_overlap(&self, overlap: bool) -> Result<(), OptionError> {
        if !overlap || self.are_plain() {
            return Ok(());
        }
        Err(OptionError::key(
            "overlap",
            "sums the gradients of a layer while those of the layers below are not there yet, and `gradients` asks for all of \
             them at once, or not in every step: leave out one of the two",
        ))
    }

    /// What to know where workers sum nothing before the last of all their steps.
    pub(crate) fn note(&self, setting: &Setting, steps: usize) -> Option<String> {
        let every = self.every;
        (every > 1 && every >= steps && setting.workers() > 1).then(|| {
            let steps = counted(steps as u64, "step");
            format!(
                "its workers agree at the end alone: gradients.every = {every}, and it takes {steps}"
            )
        })
    }

    /// Whether there is a sum after this step of so many.
    pub(super) const fn sums_after(&self, step: usize, steps: usize) -> bool {
        (step + 1).is_multiple_of(self.every) || step + 1 == steps
    }
}
