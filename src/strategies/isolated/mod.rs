//! `isolated`: workers that never look across the cut.
//!
//! Cut edges are dropped and degrees counted within a part; only parameter gradients are summed. An epoch moves the bytes of one
//! all-reduce a step and nothing else; mini-batches sample within a part. This is `DistGNN`'s mode `0c`, the "no communication" baseline of VARCO, and what Grappa would be
//! without repartitioning and weights.

use serde::Deserialize;

use super::parts::{Overlap, model_gradient_traffic, partition_parallel};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::Traffic;
use crate::sim::{SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "isolated",
        paper: "no communication of node data (mode 0c of DistGNN, SC'21)",
        sends: "parameter gradients only; edges across the cut are dropped",
        options: &[OVERLAP],
    },
    build,
};

/// Shared with `bns` and `pipe`.
pub const OVERLAP: OptionInfo = OptionInfo {
    name: "overlap",
    default: "false",
    meaning: "Sum gradients by layer while the layers below go back (as PyTorch DDP does, Li et al., VLDB 2020). Losses are the same up to the order of sums.",
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    overlap: bool,
}

struct Isolated {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    Ok(Box::new(Isolated {
        options: options(table)?,
        context: *context,
    }))
}

impl Strategy for Isolated {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, _epoch: usize) -> Traffic {
        let (kind, workers) = (self.context.all_reduce, boundary.workers());
        model_gradient_traffic(kind, workers, model, self.options.overlap)
            .times(boundary.steps().count())
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let overlap = Overlap {
            gradients: self.options.overlap,
            ..Overlap::default()
        };
        partition_parallel(worker, None, overlap)
    }
}
