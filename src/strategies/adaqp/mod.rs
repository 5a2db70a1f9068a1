//! `adaqp`: boundary rows and their gradients in few bits, rounded at random, as in `AdaQP` (Wan, Zhao and Wu, `MLSys` 2023).
//!
//! As `full`, but each row that crosses, of every layer and in both directions, is quantised to 2, 4 or 8 bits an entry ([`QuantiseRows`]): levels from its smallest to
//! its largest entry, stochastic rounding, a zero point and a step of 2 bytes each. Unbiased; an entry's variance is at most a quarter of a step
//! squared, and a sixth on average. How many bits a row gets is
//!
//! * the same for all (`bits = 2`, `4` or `8`),
//! * drawn for each message (`"random"`): a third of the rows each, so that bytes are known in advance, where the authors draw each row alone,
//! * or assigned (`"adaptive"`): 8 at first; at the end of every `assign_every` epochs all workers tell each other, with an all-reduce (`control`), how far the entries of each
//!   group of rows spread, and so derive the same assignment, which minimises variance and time ([`assign`]). It is used until the next one.
//!
//! A message of `r` rows of width `n` takes `4r + ⌈n Σ b / 8⌉` bytes, so an epoch about `V·b/32 + 4` a row; features are resent in every epoch unless they are cached, whole. With
//! `G` groups an adaptive epoch before an assignment has one all-reduce of `G` floats more; `plan` states 8 bits for all rows, the most it can be, and the rest
//! after each epoch.
//!
//! Evidence, in the authors' code: the quantiser but for the direction in which its two parameters are rounded, the three ways to choose bits, `λ`, the cycle and the
//! group size; features resent. Simplified here: groups are of rows one after another, not sorted by variance; spreads are those of the last epoch of a cycle, not summed over
//! it, and not weighted by how readers weigh a row; every worker solves for itself what their worker 0 does; [`assign`] says what the time is. The
//! overlap of inner nodes' computing with communication, which is the paper's other half, is not here.

pub mod assign;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use self::assign::{Groups, Traced};
use super::fixed::CACHE_FEATURES;
use super::full::{OVERLAP, plain_wire};
use super::parts::{EpochExchange, Overlap, Sums, Wire, exchange_traffic, partition_parallel};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::{Bits, Codec, CodecKey, QuantiseRows, ROW_BITS, RowBits, Traffic};
use crate::sim::{EpochRecord, SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "adaqp",
        paper: "Wan, Zhao and Wu, Adaptive Message Quantization and Parallelization for Distributed Full-graph GNN Training (MLSys 2023)",
        sends: "boundary rows of every layer and their gradients in 2, 4 or 8 bits an entry; now and then how far they spread; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: &[
            OptionInfo {
                name: "bits",
                default: "adaptive",
                meaning: "Bits an entry: 2, 4 or 8 for all; random, a third of the rows each; or adaptive (the schemes of the authors' code, whose configurations choose adaptive).",
            },
            OptionInfo {
                name: "assign_every",
                default: "50",
                meaning: "Epochs between two assignments of adaptive bits; 8 bits until the first (50 and 8 in the authors' configuration for ogbn-products).",
            },
            OptionInfo {
                name: "lambda",
                default: "0.5",
                meaning: "Weight of variance against time in the assignment, 0 to 1 (0.5 in the authors' configurations).",
            },
            OptionInfo {
                name: "group",
                default: "100",
                meaning: "Rows of a message that are assigned bits together (100 in the authors' configuration for Reddit, 1000 and 2000 in others).",
            },
            CACHE_FEATURES,
            OVERLAP,
        ],
    },
    build,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    bits: Option<toml::Value>,
    assign_every: Option<usize>,
    lambda: Option<f64>,
    group: Option<usize>,
    #[serde(default)]
    cache_features: bool,
    #[serde(default)]
    overlap: bool,
}

/// When and how bits are assigned.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    every: usize,
    lambda: f64,
    group: usize,
}

struct AdaQp {
    /// The bits of all rows, until others are assigned.
    bits: RowBits,
    adaptive: Option<Adaptive>,
    cache_features: bool,
    overlap: bool,
    context: Context,
    /// What worker 0 assigned, by the first epoch it holds for, to state afterwards what was sent.
    assigned: Mutex<BTreeMap<usize, RowBits>>,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    let wrong = || {
        let message = "must be 2, 4, 8, \"random\" or \"adaptive\"";
        OptionError::key("bits", message)
    };
    let (bits, is_adaptive) = match &options.bits {
        None => (RowBits::Uniform(Bits::Eight), true),
        Some(toml::Value::String(text)) => match text.as_str() {
            "adaptive" => (RowBits::Uniform(Bits::Eight), true),
            "random" => (RowBits::Random, false),
            _ => return Err(wrong()),
        },
        Some(toml::Value::Integer(count)) => {
            let is = |bits: &Bits| i64::from(bits.count()) == *count;
            let bits = ROW_BITS.into_iter().find(is).ok_or_else(wrong)?;
            (RowBits::Uniform(bits), false)
        }
        Some(_) => return Err(wrong()),
    };
    let given = [
        ("assign_every", options.assign_every.is_some()),
        ("lambda", options.lambda.is_some()),
        ("group", options.group.is_some()),
    ];
    if let Some((key, _)) = given.iter().find(|(_, given)| *given && !is_adaptive) {
        let message = "does nothing unless bits are \"adaptive\": leave it out";
        return Err(OptionError::key(key, message));
    }
    let adaptive = Adaptive {
        every: options.assign_every.unwrap_or(50),
        lambda: options.lambda.unwrap_or(0.5),
        group: options.group.unwrap_or(100),
    };
    for (key, value) in [("assign_every", adaptive.every), ("group", adaptive.group)] {
        if value == 0 {
            return Err(OptionError::key(key, "must be at least 1"));
        }
    }
    if !(0.0..=1.0).contains(&adaptive.lambda) {
        return Err(OptionError::key("lambda", "must be a number from 0 to 1"));
    }
    Ok(Box::new(AdaQp {
        bits,
        adaptive: is_adaptive.then_some(adaptive),
        cache_features: options.cache_features,
        overlap: options.overlap,
        context: *context,
        assigned: Mutex::default(),
    }))
}

impl AdaQp {
    /// What travels in one epoch with these bits. The spreads of rows are taken down in `trace`, if given.
    fn exchange(
        &self,
        bits: &RowBits,
        trace: Option<(&Arc<Groups>, &Arc<Sums>)>,
        seed: u64,
        epoch: usize,
    ) -> EpochExchange {
        let codec = QuantiseRows { bits: bits.clone() };
        let codec: Arc<dyn Codec> = match trace {
            None => Arc::new(codec),
            Some((groups, spreads)) => Arc::new(Traced {
                codec,
                groups: Arc::clone(groups),
                spreads: Arc::clone(spreads),
            }),
        };
        let wire = |layer: usize| {
            if layer == 0 && self.cache_features {
                // In mini-batches, features that were not needed before come in any epoch.
                return (epoch == 0 || self.context.mini_batch).then(plain_wire);
            }
            #[allow(clippy::cast_possible_truncation)] // layers are few
            let key = CodecKey::new(seed, layer as u32, epoch as u64);
            let codec = Arc::clone(&codec);
            Some(Wire { codec, key })
        };
        EpochExchange {
            wires: (0..self.context.layers).map(wire).collect(),
            keeps_features: self.cache_features,
            sums: trace.map(|(_, spreads)| Arc::clone(spreads)),
            ..EpochExchange::default()
        }
    }

    /// The groups of all messages, if this is an epoch whose spreads the next assignment is made from, and there are any.
    fn traced(&self, boundary: &BoundaryPlan, epoch: usize) -> Option<Arc<Groups>> {
        let Adaptive { every, .. } = self.adaptive?;
        let next = epoch + 1;
        if !next.is_multiple_of(every) || next >= self.context.epochs {
            return None;
        }
        self.groups(boundary)
    }

    fn groups(&self, boundary: &BoundaryPlan) -> Option<Arc<Groups>> {
        let size = self.adaptive?.group;
        let layers = usize::from(self.cache_features)..self.context.layers;
        let groups = Groups::new(boundary, layers, size);
        (groups.count() > 0).then(|| Arc::new(groups))
    }

    fn traffic(
        &self,
        bits: &RowBits,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        epoch: usize,
    ) -> Traffic {
        // What is drawn and taken down does not change how many bytes it takes.
        let groups = self.traced(boundary, epoch);
        let spreads = groups.map(|groups| (Arc::new(Sums::new(groups.count())), groups));
        let trace = spreads.as_ref().map(|(spreads, groups)| (groups, spreads));
        let sent = self.exchange(bits, trace, 0, epoch);
        let (all_reduce, overlap) = (self.context.all_reduce, self.overlap);
        exchange_traffic(all_reduce, boundary, model, epoch, &sent, overlap)
    }
}

impl Strategy for AdaQp {
    fn trains_in_batches(&self) -> bool {
        self.adaptive.is_none()
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        self.traffic(&self.bits, boundary, model, epoch)
    }

    fn plans_exactly(&self) -> bool {
        self.adaptive.is_none()
    }

    fn plan_after(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        record: &EpochRecord,
    ) -> Traffic {
        let assigned = self.assigned.lock();
        let assigned = assigned.unwrap_or_else(PoisonError::into_inner);
        let last = assigned.range(..=record.epoch).next_back();
        let bits = last.map_or(&self.bits, |(_, bits)| bits);
        self.traffic(bits, boundary, model, record.epoch)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let (setting, rank) = (Arc::clone(worker.setting()), worker.rank());
        let (boundary, widths) = (&setting.boundary, &setting.model.widths);
        let remember = |change: &dyn Fn(&mut BTreeMap<usize, RowBits>)| {
            if rank == 0 {
                let assigned = self.assigned.lock();
                change(&mut assigned.unwrap_or_else(PoisonError::into_inner));
            }
        };
        remember(&BTreeMap::clear);
        let bits = RefCell::new(self.bits.clone());
        // Spreads of the epoch before, over all workers.
        let spreads: RefCell<Option<(Arc<Groups>, Arc<Sums>)>> = RefCell::default();
        let exchange = |epoch: usize, _: &[_]| {
            if let (Some((groups, spreads)), Some(adaptive)) = (spreads.take(), self.adaptive) {
                let assigned = groups.assign(&spreads.values(), adaptive.lambda);
                remember(&|all| {
                    all.insert(epoch, assigned.clone());
                });
                bits.replace(assigned);
            }
            let groups = self.traced(boundary, epoch);
            let fresh = groups.map(|groups| {
                let spreads = Arc::new(Sums::new(groups.count()));
                (groups, spreads)
            });
            let trace = fresh.as_ref().map(|(groups, spreads)| (groups, spreads));
            let bits = bits.borrow();
            let mut sent = self.exchange(&bits, trace, setting.seed, epoch);
            sent.compression_ratio = match &*bits {
                RowBits::Uniform(bits) => Some(32.0 / f64::from(bits.count())),
                RowBits::Random => Some(32.0 * 3.0 / 14.0),
                RowBits::Assigned { .. } => self
                    .groups(boundary)
                    .and_then(|groups| groups.mean_bits(&bits, widths))
                    .map(|bits| 32.0 / bits),
            };
            spreads.replace(fresh);
            sent
        };
        let overlap = Overlap {
            gradients: self.overlap,
            features: self.overlap && self.adaptive.is_none(),
            ..Overlap::default()
        };
        partition_parallel(worker, Some(&exchange), overlap)
    }
}
