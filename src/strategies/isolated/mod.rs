//! `isolated`: workers that never look across the cut.
//!
//! Cut edges are dropped and degrees counted within a part; only parameter gradients are summed. An epoch moves the bytes of one
//! all-reduce a step and nothing else; mini-batches sample within a part. This is `DistGNN`'s mode `0c`, the "no communication" baseline of VARCO, and what Grappa would be
//! without repartitioning and weights.

use serde::Deserialize;

use super::parts::{gradient_traffic, partition_parallel};
use super::{Context, OptionError, Registration, Strategy, StrategyInfo, options};
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
        options: &[],
    },
    build,
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {}

struct Isolated {
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let Options {} = options(table)?;
    Ok(Box::new(Isolated { context: *context }))
}

impl Strategy for Isolated {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, _epoch: usize) -> Traffic {
        let (kind, workers) = (self.context.all_reduce, boundary.workers());
        gradient_traffic(kind, workers, model.parameters()).times(boundary.steps().count())
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        partition_parallel(worker, None)
    }
}
