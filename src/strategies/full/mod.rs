//! `full`: exact partition-parallel training, the baseline of all others.
//!
//! Every epoch and layer, each worker sends the rows of its boundary nodes to the workers that need them, and receives the gradients of
//! those rows back; parameter gradients are summed by all-reduce. The result is that of one device. With `B` boundary rows over
//! ordered pairs of workers, widths `d_l` and `L` layers, an epoch moves `4B Σ_{l<L} d_l` bytes forward and
//! `4B Σ_{1≤l<L} d_l` back; features never change, so by default they are sent in the first epoch only (as DGCL, SAR and the code of BNS-GCN
//! and `PipeGCN` do).

use std::sync::Arc;

use serde::Deserialize;

use super::parts::{
    EpochExchange, Overlap, Wire, halo_traffic, model_gradient_traffic, partition_parallel,
};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::{CodecKey, Identity, Traffic};
use crate::sim::{SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "full",
        paper: "exact partition-parallel training (as in CAGNET, SC'20; DGCL, EuroSys'21; SAR, MLSys'22)",
        sends: "boundary rows of every layer forward, their gradients back, every epoch; parameter gradients",
        options: &[
            OptionInfo {
                name: "cache_features",
                default: "true",
                meaning: "Send the constant input features in the first epoch only, as the code of BNS-GCN and PipeGCN does.",
            },
            OVERLAP,
        ],
    },
    build,
};

/// Shared with `fixed` and `varco`.
pub const OVERLAP: OptionInfo = OptionInfo {
    name: "overlap",
    default: "false",
    meaning: "Communicate while computing: gradients are summed by layer during the backward pass (as PyTorch DDP does, Li et al., VLDB 2020), and features that are resent travel during the epoch before, unless what is sent depends on the training. Losses are the same up to the order of sums.",
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "yes")]
    cache_features: bool,
    #[serde(default)]
    overlap: bool,
}

const fn yes() -> bool {
    true
}

struct Full {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    Ok(Box::new(Full {
        options: options(table)?,
        context: *context,
    }))
}

/// A wire that changes nothing.
#[must_use]
pub fn plain_wire() -> Wire {
    Wire {
        codec: Arc::new(Identity),
        key: CodecKey::new(0, 0, 0),
    }
}

impl Full {
    fn wires(&self, epoch: usize) -> Vec<Option<Wire>> {
        (0..self.context.layers)
            .map(|layer| {
                let sent = layer > 0 || epoch == 0 || !self.options.cache_features;
                sent.then(plain_wire)
            })
            .collect()
    }
}

impl Strategy for Full {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let mut traffic = halo_traffic(boundary, model, &self.wires(epoch));
        traffic.merge(&model_gradient_traffic(
            self.context.all_reduce,
            boundary.workers(),
            model,
            self.options.overlap,
        ));
        traffic
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        partition_parallel(
            worker,
            Some(&|epoch, _| EpochExchange {
                wires: self.wires(epoch),
                compression_ratio: None,
                ..EpochExchange::default()
            }),
            Overlap {
                gradients: self.options.overlap,
                features: self.options.overlap,
            },
        )
    }
}
