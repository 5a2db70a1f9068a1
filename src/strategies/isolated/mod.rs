//! `isolated`: workers that never look across the cut.
//!
//! Cut edges are dropped and degrees counted within a part; only parameter gradients are summed. An
//! epoch moves the bytes of one all-reduce a step and nothing else; mini-batches sample within a
//! part. This is `DistGNN`'s mode `0c`, the "no communication" baseline of VARCO, and what Grappa
//! would be without repartitioning and weights.

use std::sync::Arc;

use serde::Deserialize;

use super::parts::options::{GRADIENTS, OVERLAP_GRADIENTS};
use super::parts::plan::ExchangePlanner;
use super::parts::{Gradients, When, partition_parallel};
use super::{
    BatchUse, Needs, OptionError, Registration, Strategy, StrategyInfo, Training, options,
};
use crate::graph::PartitionSpec;
use crate::sim::{Planner, Setting, SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "isolated",
        paper: "no communication of node data (mode 0c of DistGNN, SC'21)",
        sends: "parameter gradients only; edges across the cut are dropped",
        options: &[OVERLAP_GRADIENTS, GRADIENTS],
    },
    read,
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    overlap: bool,
    #[serde(default)]
    gradients: Gradients,
}

struct Isolated(When);

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    options.gradients.check_overlap(options.overlap)?;
    Ok(Box::new(Isolated(When {
        gradients_overlap: options.overlap,
        gradients: options.gradients,
        ..When::default()
    })))
}

impl Strategy for Isolated {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        Ok(Needs::of(asked.clone(), BatchUse::Possible))
    }

    fn plans_from_counts(&self, batches: bool) -> bool {
        !batches
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(Alone {
            when: self.0,
            setting: Arc::clone(setting),
        }))
    }
}

struct Alone {
    when: When,
    setting: Arc<Setting>,
}

impl Training for Alone {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        Box::new(ExchangePlanner::new(&self.setting, None, self.when))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        partition_parallel(worker, None, self.when)
    }
}
