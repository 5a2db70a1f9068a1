//! `ecgraph`: boundary rows in few bits, made good where they are read by what was predicted of
//! them, and gradients in few bits with their errors fed back, as in EC-Graph (Song, Gu, Qi, Wang
//! and Yu, *EC-Graph: A Distributed Graph Neural Network System with Error-Compensated
//! Compression*, ICDE 2022).
//!
//! Forward (the requesting end's compensation): every `period`-th epoch, the first among them, rows
//! travel whole. Both ends keep them, `H_T`, and how much they changed in an epoch since the time
//! before, `M = (H_T − H_{T−period})/period`. In the epochs between, the owner knows what a reader
//! would predict, `H_T + (t − T) M`, and quantises the rows besides. For each row it says which is
//! nearest to it by the sum of absolute differences: what was quantised, what is predicted, or the
//! mean of both; that is what the reader takes. Back (the responding end's compensation): a worker
//! adds to the gradient of a row what quantising lost of it in the epoch before: `g + δ` travels,
//! and `δ` is then what it lost.
//!
//! With `B` boundary rows over ordered pairs of workers and `b` bits, an epoch with whole rows
//! moves `4B d_l` bytes forward in each layer `1 ≤ l < L`, one between `4B + B d_l b/8 + B/4`, of
//! which the last are two bits a row that say which; back go `4B + B d_l b/8`. All are rounded up
//! by message. Features do not change, and come once, `4B d_0`. Biased, by less the steadier rows
//! move.
//!
//! Evidence: the two compensations are in the abstract and the paper's third section, and so is the
//! quantiser, whose buckets decode as their middles; that their ends are bfloat16s is ours.
//! Rounding at random in place of that would leave out more than it sends of one bit, and so never
//! end. Not here: the Bit-Tuner, which changes `b` in training.

mod codec;

use std::sync::Arc;

use serde::Deserialize;

use super::parts::options::{EXCHANGE_INPUT, GRADIENTS, OVERLAP_GRADIENTS};
use super::parts::plan::{ExchangePlanner, Sending};
use super::parts::{EpochExchange, ExchangePoint, Gradients, When, Wire, partition_parallel};
use super::{OptionError, OptionInfo, Registration, Strategy, StrategyInfo, Training, options};
use crate::model::RowForm;
use crate::net::{Bits, Buckets, CodecKey};
use crate::sim::{Planner, Setting, SimError, Worker};
use codec::{Compensated, Memory};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "ecgraph",
        paper: "Song, Gu, Qi, Wang and Yu, EC-Graph: A Distributed Graph Neural Network System with Error-Compensated Compression (ICDE 2022)",
        sends: "boundary rows of every layer in few bits, whole now and then, and their gradients in few bits; all features once; parameter gradients",
        options: &[
            OptionInfo {
                name: "bits",
                default: "2",
                meaning: "Bits an entry, of rows and of their gradients: 1, 2, 4 or 8 (ours; the paper's Bit-Tuner moves among them).",
            },
            OptionInfo {
                name: "period",
                default: "10",
                meaning: "Epochs from one to the next in which rows travel whole, the first among them; between them they are predicted. 1 for whole rows in all (ours).",
            },
            EXCHANGE_INPUT,
            OVERLAP_GRADIENTS,
            GRADIENTS,
        ],
    },
    read,
};

/// The options, which are all there is to the strategy.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EcGraph {
    bits: u32,
    period: u64,
    exchange: ExchangePoint,
    overlap: bool,
    gradients: Gradients,
}

impl Default for EcGraph {
    fn default() -> Self {
        Self {
            bits: 2,
            period: 10,
            exchange: ExchangePoint::Input,
            overlap: false,
            gradients: Gradients::PLAIN,
        }
    }
}

impl EcGraph {
    /// How many bits an entry has, if there can be so many.
    fn row_bits(self) -> Option<Bits> {
        Bits::ALL.into_iter().find(|bits| bits.count() == self.bits)
    }
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let read: EcGraph = options(table)?;
    if read.row_bits().is_none() {
        return Err(OptionError::key("bits", "must be 1, 2, 4 or 8"));
    }
    if read.period == 0 {
        return Err(OptionError::key("period", "must be at least 1"));
    }
    read.gradients.check_overlap(read.overlap)?;
    Ok(Box::new(read))
}

impl Strategy for EcGraph {
    fn plans_from_counts(&self, batches: bool) -> bool {
        !batches
    }

    fn trains_from_shards(&self, batches: bool) -> bool {
        !batches
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        if setting.model.layers() < 2 {
            return Err(OptionError::key(
                "bits",
                "has nothing to compress: features travel whole. Take a model of more layers",
            ));
        }
        Ok(Box::new(Fitted {
            options: *self,
            forms: self.exchange.forms(setting, true),
            setting: Arc::clone(setting),
        }))
    }
}

/// The strategy in its setting.
#[derive(Clone)]
struct Fitted {
    options: EcGraph,
    /// In which form the rows of each layer cross.
    forms: Vec<RowForm>,
    setting: Arc<Setting>,
}

impl Fitted {
    /// What travels in an epoch, through what one worker remembers.
    fn exchange(&self, epoch: usize, memory: &Arc<Memory>) -> EpochExchange {
        let bits = self.options.row_bits().unwrap_or(Bits::Two); // others were refused
        let wire = |layer: usize| Wire {
            codec: Arc::new(Compensated {
                buckets: Buckets(bits),
                period: self.options.period,
                memory: Arc::clone(memory),
            }),
            key: CodecKey::new(self.setting.seed, layer as u32, epoch as u64),
            form: self.forms[layer],
        };
        let layers = 0..self.forms.len();
        EpochExchange {
            wires: layers
                .map(|layer| match layer {
                    0 => (epoch == 0).then(Wire::plain),
                    _ => Some(wire(layer)),
                })
                .collect(),
            keeps_features: true,
            // In the other epochs rows travel whole.
            compression_ratio: (!(epoch as u64).is_multiple_of(self.options.period))
                .then(|| 32.0 / f64::from(bits.count())),
            ..EpochExchange::default()
        }
    }

    fn when(&self) -> When {
        When {
            gradients_overlap: self.options.overlap,
            gradients: self.options.gradients,
            ..When::default()
        }
    }
}

impl Training for Fitted {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let (fitted, memory) = (self.clone(), Arc::default());
        let sending = Sending {
            keeps_features: true,
            exchange: Box::new(move |epoch, _| fitted.exchange(epoch, &memory)),
        };
        Box::new(ExchangePlanner::new(
            &self.setting,
            Some(sending),
            self.when(),
        ))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let memory = Arc::default();
        let sent = |epoch: usize, _: &[_]| self.exchange(epoch, &memory);
        partition_parallel(worker, Some(&sent), self.when())
    }
}
