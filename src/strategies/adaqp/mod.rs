//! `adaqp`: boundary rows and their gradients in few bits, rounded at random, as in `AdaQP` (Wan,
//! Zhao and Wu, `MLSys` 2023).
//!
//! As `full`, but each row that crosses, of every layer and in both directions, is quantised to 2,
//! 4 or 8 bits an entry ([`QuantiseRows`]): levels from its smallest to its largest entry,
//! stochastic rounding, a zero point and a step of 2 bytes each. Unbiased; an entry's variance is
//! at most a quarter of a step squared, and a sixth on average. How many bits a row gets is
//!
//! * the same for all (`bits = 2`, `4` or `8`),
//! * drawn for each message (`"random"`): a third of the rows each, so that bytes are known in
//!   advance, where the authors draw each row alone,
//! * or assigned (`"adaptive"`): 8 at first; at the end of every `assign_every` epochs, a fifth of
//!   all as in each of the authors' configurations (`AdaQP/config/*.yaml`: 50 of 250, 100 of 500,
//!   200 of 1000, 240 of 1200), all workers tell each other, with an all-reduce (`control`), how
//!   far the entries of each group of rows spread, and so derive the same assignment, which
//!   minimises variance and time ([`assign`]). It is used until the next one.
//!
//! Rows cross as the layer's input, unless `exchange` says otherwise: the authors' layers gather
//! before their product (`AdaQP/model/distGCN.py` and `distSAGE.py` of raywan-110/AdaQP). A message
//! of `r` rows of width `n` takes `4r + ⌈n Σ b / 8⌉` bytes, so an epoch about `V·b/32 + 4` a row;
//! features are resent in every epoch unless they are cached, whole. With `G` groups an adaptive
//! epoch before an assignment has one all-reduce of `G` floats more; The plan has 8 bits for all
//! rows, the most it can be, until bits are decided.
//!
//! Evidence, in the authors' code: the quantiser but for the direction in which its two parameters
//! are rounded, the three ways to choose bits, `λ`, the cycle and the group size; features resent.
//! Simplified here: groups are of rows one after another, so that they differ little and most get 4
//! bits (`group = 1` tells rows apart, for a number each in that all-reduce). Theirs sorts rows by
//! variance and then adds up by the numbers from before, so that its groups are as good as drawn.
//! Back, the sum for a row of others travels; there an owner sends the gradient of its output.
//! Spreads are those of the last epoch of a cycle, not summed over it, and not weighted by how
//! readers weigh a row; every worker solves for itself what their worker 0 does; [`assign`] says
//! what the time is. The overlap of inner nodes' computing with communication, which is the paper's
//! other half, is not here.

pub(super) mod assign;

use std::sync::Arc;

use self::assign::{Groups, Spreads};
use super::parts::options::{
    CACHE_FEATURES, EXCHANGE_INPUT, GRADIENTS, OVERLAP, at_least_one, option_struct,
};
use super::parts::plan::{ExchangePlanner, Sending};
use super::parts::{
    CodecChoice, Compression, EpochExchange, Exchange, ExchangePoint, Feedback, Gradients,
    RowExchange, When, Wire, partition_parallel,
};
use super::{
    NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo, Training, options,
};
use crate::model::RowForm;
use crate::net::{Bits, Codec, CodecKey, QuantiseRows, ROW_BITS, RowBits, Tally, Watched};
use crate::sim::{Decision, Planner, Restoring, Saving, Setting, SimError, Worker};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "adaqp",
        paper: "Wan, Zhao and Wu, Adaptive Message Quantization and Parallelization for Distributed Full-graph GNN Training (MLSys 2023)",
        sends: "boundary rows of every layer and their gradients in 2, 4 or 8 bits an entry; now and then how far they spread; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: AdaQp::INFO,
    },
    read,
};

option_struct! {
    #[derive(Clone, Debug)]
    struct AdaQp {
        bits: Option<toml::Value> = None, "adaptive", "Bits an entry: 2, 4 or 8 for all; random, a third of the rows each; or adaptive (the schemes of the authors' code, whose configurations choose adaptive).";
        assign_every: Option<usize> = None, "a fifth of the epochs", "Epochs between two assignments of adaptive bits; 8 bits until the first (a fifth and 8 in all of the authors' configurations).";
        lambda: Option<f64> = None, "0.5", "Weight of variance against time in the assignment, 0 to 1 (0.5 in the authors' configurations).";
        group: Option<usize> = None, "100", "Rows of a message that are assigned bits together (100 in the authors' configuration for Reddit, 500 to 2000 in others).";
        cache_features: bool = false, CACHE_FEATURES;
        exchange: ExchangePoint = ExchangePoint::Input, EXCHANGE_INPUT;
        overlap: bool = false, OVERLAP;
        gradients: Gradients = Gradients::PLAIN, GRADIENTS;
    }
}

/// The bits of all rows, until others are assigned.
const UNTIL_ASSIGNED: RowBits = RowBits::Uniform(Bits::Eight);

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let read: AdaQp = options(table)?;
    let refuse = |key, what: &str| Err(OptionError::key(key, what));
    let text = read.bits.as_ref().map(toml::Value::as_str);
    let bits = match (&read.bits, text) {
        (None, _) | (_, Some(Some("adaptive"))) => None,
        (_, Some(Some("random"))) => Some(RowBits::Random),
        (Some(value), _) => {
            let is = |bits: &Bits| value.as_integer() == Some(i64::from(bits.count()));
            let Some(bits) = ROW_BITS.into_iter().find(is) else {
                return refuse("bits", "must be 2, 4, 8, \"random\" or \"adaptive\"");
            };
            Some(RowBits::Uniform(bits))
        }
    };
    let given = [
        ("assign_every", read.assign_every.is_some()),
        ("lambda", read.lambda.is_some()),
        ("group", read.group.is_some()),
    ];
    if let Some((key, _)) = given.iter().find(|(_, given)| *given && bits.is_some()) {
        return refuse(
            key,
            "does nothing unless bits are \"adaptive\": leave it out",
        );
    }
    at_least_one("assign_every", read.assign_every)?;
    at_least_one("group", read.group)?;
    if !(0.0..=1.0).contains(&read.lambda()) {
        return refuse("lambda", "must be a number from 0 to 1");
    }
    read.gradients.check_overlap(read.overlap)?;
    let Some(bits) = bits else {
        return Ok(Box::new(read));
    };
    // What is the same for all rows, or drawn, is one of the codecs that rows go through.
    let compression = Compression {
        codec: Some(CodecChoice::quantise_rows(bits)),
        compress_last: true,
        ..Compression::none().sending(read.cache_features, read.exchange)
    };
    let when = When {
        features_ahead: read.overlap,
        ..read.when()
    };
    Ok(Box::new(RowExchange {
        when,
        ..RowExchange::new(compression)
    }))
}

impl AdaQp {
    fn lambda(&self) -> f64 {
        self.lambda.unwrap_or(0.5)
    }

    fn when(&self) -> When {
        When {
            gradients_overlap: self.overlap,
            gradients: self.gradients,
            ..When::default()
        }
    }
}

impl Strategy for AdaQp {
    fn plans_from(&self, batches: bool) -> PlansFrom {
        PlansFrom {
            law: batches,
            others: NeedsOfOthers::of_rows(batches),
            ..PlansFrom::default()
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        if self.cache_features && setting.model.layers() < 2 {
            return Err(OptionError::whole(
                "there is nothing to compress: cached features travel whole. Take a model of more layers, or `cache_features = false`",
            ));
        }
        Ok(Box::new(Assigned {
            forms: self.exchange.forms(setting, self.cache_features),
            options: self.clone(),
            setting: Arc::clone(setting),
        }))
    }
}

/// The options in their setting, which is what planner and program share.
#[derive(Clone)]
struct Assigned {
    options: AdaQp,
    /// In which form the rows of each layer cross.
    forms: Vec<RowForm>,
    setting: Arc<Setting>,
}

impl Assigned {
    /// What travels in one epoch with these bits.
    fn exchange(&self, bits: &RowBits, spreads: Option<&Spreads>, epoch: usize) -> EpochExchange {
        let setting = &self.setting;
        let cache_features = self.options.cache_features;
        let mut codec: Arc<dyn Codec> = Arc::new(QuantiseRows { bits: bits.clone() });
        if let Some(spreads) = spreads.cloned() {
            let watcher = Arc::new(spreads);
            codec = Arc::new(Watched { codec, watcher });
        }
        let wire = |layer: usize| {
            if layer == 0 && cache_features {
                return (epoch == 0).then(Wire::plain);
            }
            let key = CodecKey::new(setting.seed, layer as u32, epoch as u64);
            let codec = Arc::clone(&codec);
            let form = self.forms[layer];
            Some(Wire { codec, key, form })
        };
        EpochExchange {
            wires: (0..setting.model.layers()).map(wire).collect(),
            keeps_features: cache_features,
            tally: spreads.map(|spreads| Arc::clone(&spreads.tally)),
            ..EpochExchange::default()
        }
    }

    /// Fresh spreads of all groups, if this is an epoch from which the next assignment is made, and
    /// there are any.
    fn spreads(&self, epoch: usize) -> Option<Spreads> {
        let epochs = self.setting.training.epochs;
        let every = self.options.assign_every.unwrap_or((epochs / 5).max(1));
        let next = epoch + 1;
        if !next.is_multiple_of(every) || next >= epochs {
            return None;
        }
        let groups = self.groups()?;
        let tally = Arc::new(Tally::new(groups.count()));
        Some(Spreads { groups, tally })
    }

    /// The groups of all messages that are quantised, if there are any.
    fn groups(&self) -> Option<Arc<Groups>> {
        let size = self.options.group.unwrap_or(100);
        let layers = usize::from(self.options.cache_features)..self.forms.len();
        let first = usize::from(self.forms[0] == RowForm::Input);
        let groups = Groups::new(&self.setting.counts, layers, first, size);
        (groups.count() > 0).then(|| Arc::new(groups))
    }

    fn compression_ratio(&self, bits: &RowBits) -> Option<f64> {
        if let RowBits::Uniform(bits) = bits {
            return Some(32.0 / f64::from(bits.count()));
        }
        let width = |(layer, form): (usize, &RowForm)| self.setting.model.layer(layer).width(*form);
        let widths: Vec<usize> = self.forms.iter().enumerate().map(width).collect();
        let mean = self.groups()?.mean_bits(bits, &widths)?;
        Some(32.0 / mean)
    }
}

impl Training for Assigned {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let fitted = self.clone();
        let mut bits = UNTIL_ASSIGNED;
        let sending = Sending {
            keeps_features: fitted.options.cache_features,
            exchange: Box::new(move |epoch, decided| {
                if let Some(Decision::Bits(assigned)) = decided {
                    bits = assigned.clone();
                }
                fitted.exchange(&bits, fitted.spreads(epoch).as_ref(), epoch)
            }),
        };
        let planner = ExchangePlanner::new(&self.setting, Some(sending), self.options.when());
        Box::new(planner)
    }

    fn notes(&self) -> Vec<String> {
        let late = self.options.gradients.note(&self.setting, self.epochs());
        late.into_iter().collect()
    }

    fn plans_exactly(&self) -> bool {
        false
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut rows = Rows {
            fitted: self,
            bits: UNTIL_ASSIGNED,
            before: None,
        };
        partition_parallel(worker, Some(&mut rows), self.options.when())
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What travels, by what a worker remembers.
struct Rows<'a> {
    fitted: &'a Assigned,
    bits: RowBits,
    /// Spreads of the epoch before, over all workers.
    before: Option<Spreads>,
}

impl Exchange for Rows<'_> {
    fn at(&mut self, epoch: usize, _: &[Feedback]) -> EpochExchange {
        let fitted = self.fitted;
        let mut decided = None;
        if let Some(spreads) = self.before.take() {
            let (values, lambda) = (spreads.tally.values(), fitted.options.lambda());
            self.bits = spreads.groups.assign(&values, lambda);
            decided = Some(Decision::Bits(self.bits.clone()));
        }
        self.before = fitted.spreads(epoch);
        EpochExchange {
            compression_ratio: fitted.compression_ratio(&self.bits),
            decided,
            ..fitted.exchange(&self.bits, self.before.as_ref(), epoch)
        }
    }

    fn save(&self, into: &mut Saving) {
        into.put(&self.bits);
        let before = self.before.as_ref();
        into.put(&before.map(|spreads| spreads.tally.values()));
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.bits = from.saved().take()?;
        let values: Option<Vec<f32>> = from.saved().take()?;
        let before = values.zip(self.fitted.groups());
        self.before = before.map(|(values, groups)| Spreads {
            groups,
            tally: Tally::of(values),
        });
        Ok(())
    }
}
