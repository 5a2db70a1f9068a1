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
//! With `tune`, the Bit-Tuner, each worker has bits of its own for the rows that it reads: when it
//! took the prediction for more than half of them, what was quantised is too coarse, and the next
//! epoch has twice the bits; when for less than a fifth, half. All workers sum up how often, two
//! numbers for each (`control`). Gradients keep `b` bits.
//!
//! Evidence, in the authors' code (`songzhen-neu/ecgraph`): both compensations, the tuner with its
//! bounds. Theirs differs in what it sends. Rows that are predicted have no quantised values in its
//! messages, so that their length shows only when they are made; here they have. With whole rows it
//! sends their change too, as many bytes again, which the reader works out here. Per reader and
//! period of T epochs, theirs moves `8d + (T − 1)(1/4 + (1 − p) d b/8)` bytes of a row of which a
//! share p of the epochs predicts, here `4d + (T − 1)(4 + 1/4 + d b/8)`: with d = 64, T = 10 and
//! two bits 658 − 144 p there and 438 here, and the number of each row besides, 2 to 4 bytes, which
//! here both ends know. Whole rows travel there in epochs 0, T − 1, 2T − 1, …
//! The ends of its buckets are those of all rows, here of each, as bfloat16s. Rounding at random
//! would leave out more than it sends of one bit, and so never end.
//!
//! Exact zeros have a number of their own, as there, and no bucket of two bits and more has both
//! signs, as is meant there. Bits of gradients are an option apart there, 4 by default. Back, a
//! reader there pulls the gradient of its neighbours' outputs, of the columns of the layer above,
//! and multiplies itself; here the sum for a row travels, of the layer's own columns. Errors are
//! kept there by node, for all readers, and a change is over T − 1 epochs.

mod codec;
mod tuner;

use std::sync::Arc;

use super::parts::options::{EXCHANGE_INPUT, GRADIENTS, OVERLAP_GRADIENTS, option_struct};
use super::parts::plan::{ExchangePlanner, Sending};
use super::parts::{
    EpochExchange, Exchange, ExchangePoint, Feedback, Gradients, When, Wire, partition_parallel,
};
use super::{
    NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo, Training, options,
};
use crate::graph::PartCounts;
use crate::model::RowForm;
use crate::net::{Bits, Buckets, CodecKey, Tally};
use crate::sim::{Decision, Planner, Restoring, Saving, Setting, SimError, Worker};
use codec::{Compensated, Memory};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "ecgraph",
        paper: "Song, Gu, Qi, Wang and Yu, EC-Graph: A Distributed Graph Neural Network System with Error-Compensated Compression (ICDE 2022)",
        sends: "boundary rows of every layer in few bits, whole now and then, and their gradients in few bits; all features once; parameter gradients",
        options: EcGraph::INFO,
    },
    read,
};

option_struct! {
    /// The options, which are all there is to the strategy.
    #[derive(Clone, Copy, Debug)]
    struct EcGraph {
        bits: u32 = 2, "Bits an entry, of rows and of their gradients: 1, 2, 4 or 8 (the authors' defaults are 2 for rows and 4 for gradients).";
        period: u64 = 10, "Epochs from one to the next in which rows travel whole, the first among them; between them they are predicted. 1 for whole rows in all (ours).";
        tune: bool = false, "Each worker's rows get twice or half the bits after an epoch in which it took the prediction for more than half or less than a fifth of them (the Bit-Tuner; off in the authors' code too).";
        exchange: ExchangePoint = ExchangePoint::Input, EXCHANGE_INPUT;
        overlap: bool = false, OVERLAP_GRADIENTS;
        gradients: Gradients = Gradients::PLAIN, GRADIENTS;
    }
}

impl EcGraph {
    /// How many bits an entry has, if there can be so many.
    fn row_bits(self) -> Option<Bits> {
        Bits::ALL.into_iter().find(|bits| bits.count() == self.bits)
    }

    /// Whether rows travel whole in an epoch.
    const fn sends_whole(self, epoch: usize) -> bool {
        (epoch as u64).is_multiple_of(self.period)
    }
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let read: EcGraph = options(table)?;
    if read.row_bits().is_none() {
        return Err(OptionError::key("bits", "must be 1, 2, 4 or 8"));
    }
    if read.period == 0 {
        return Err(OptionError::key("period", "must be at least 1, not 0"));
    }
    if read.tune && read.period == 1 {
        let message = "does nothing with `period = 1`: all rows travel whole, and none is predicted; leave out one of the two";
        return Err(OptionError::key("tune", message));
    }
    read.gradients.check_overlap(read.overlap)?;
    Ok(Box::new(read))
}

impl Strategy for EcGraph {
    fn plans_from(&self, batches: bool) -> PlansFrom {
        PlansFrom {
            counts: !batches && !self.tune,
            law: false,
            others: NeedsOfOthers::of_rows(batches),
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        if setting.model.layers() < 2 {
            return Err(OptionError::whole(
                "there is nothing to compress: features travel whole. Take a model of more layers",
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
    fn bits(&self) -> Bits {
        self.options.row_bits().unwrap_or(Bits::Two) // others were refused
    }

    /// What travels in an epoch, through what one worker remembers, with so many bits of the rows
    /// that each worker reads.
    fn exchange(&self, epoch: usize, memory: &Arc<Memory>, readers: &[Bits]) -> EpochExchange {
        let (options, setting) = (self.options, &self.setting);
        let whole = options.sends_whole(epoch);
        // Where nothing is quantised, or no epoch follows, there is nothing to tune by.
        let tunes = options.tune && !whole && epoch + 1 < setting.training.epochs;
        let told = tunes.then(|| Arc::new(Tally::new(2 * setting.workers())));
        let wire = |layer: usize| Wire {
            codec: Arc::new(Compensated {
                buckets: Buckets(self.bits()),
                readers: readers.to_vec(),
                told: told.clone(),
                period: options.period,
                memory: Arc::clone(memory),
            }),
            key: CodecKey::new(setting.seed, layer as u32, epoch as u64),
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
            compression_ratio: (!whole).then(|| 32.0 / self.mean_bits(readers)),
            tally: told.clone(),
            ..EpochExchange::default()
        }
    }

    /// Of an entry of a row that crosses.
    fn mean_bits(&self, readers: &[Bits]) -> f64 {
        let parts = self.setting.counts.parts.iter();
        let rows = parts.clone().map(|part| part.halo).sum::<usize>();
        let bits = |(part, bits): (&PartCounts, &Bits)| part.halo as f64 * f64::from(bits.count());
        match rows {
            0 => f64::from(self.options.bits),
            rows => parts.zip(readers).map(bits).sum::<f64>() / rows as f64,
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
        // Before anything is decided, the most that there can be.
        let most = if self.options.tune {
            Bits::Eight
        } else {
            self.bits()
        };
        let mut readers = vec![most; self.setting.workers()];
        let sending = Sending {
            keeps_features: true,
            exchange: Box::new(move |epoch, decided| {
                if let Some(Decision::ReaderBits(bits)) = decided {
                    readers.clone_from(bits);
                }
                fitted.exchange(epoch, &memory, &readers)
            }),
        };
        Box::new(ExchangePlanner::new(
            &self.setting,
            Some(sending),
            self.when(),
        ))
    }

    fn notes(&self) -> Vec<String> {
        let late = self.options.gradients.note(&self.setting, self.epochs());
        late.into_iter().collect()
    }

    fn plans_exactly(&self) -> bool {
        !self.options.tune
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut rows = Rows {
            fitted: self,
            memory: Arc::default(),
            readers: vec![self.bits(); self.setting.workers()],
            before: None,
        };
        partition_parallel(worker, Some(&mut rows), self.when())
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What travels, by what a worker remembers.
struct Rows<'a> {
    fitted: &'a Fitted,
    memory: Arc<Memory>,
    /// Bits of the rows that each worker reads.
    readers: Vec<Bits>,
    /// What all workers told of the epoch before.
    before: Option<Arc<Tally>>,
}

impl Exchange for Rows<'_> {
    fn at(&mut self, epoch: usize, _: &[Feedback]) -> EpochExchange {
        let mut changed = false;
        if let Some(told) = self.before.take() {
            let now = tuner::tuned(&self.readers, &told.values());
            changed = now != self.readers;
            self.readers = now;
        }
        let tells = self.fitted.options.tune && (changed || epoch == 0);
        let sent = EpochExchange {
            decided: tells.then(|| Decision::ReaderBits(self.readers.clone())),
            ..(self.fitted).exchange(epoch, &self.memory, &self.readers)
        };
        self.before.clone_from(&sent.tally);
        sent
    }

    fn save(&self, into: &mut Saving) {
        self.memory.save(into);
        into.put(&self.readers);
        into.put(&self.before.as_ref().map(|told| told.values()));
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.memory.restore(from)?;
        self.readers = from.saved().take()?;
        let values: Option<Vec<f32>> = from.saved().take()?;
        self.before = values.map(Tally::of);
        Ok(())
    }
}
