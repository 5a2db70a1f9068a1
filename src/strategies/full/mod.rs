//! `full`: exact partition-parallel training, the baseline of all others.
//!
//! Every epoch and layer, each worker sends the rows of its boundary nodes to the workers that need them, and receives the gradients of
//! those rows back; parameter gradients are summed by all-reduce. The result is that of one device. With `B` boundary rows over
//! ordered pairs of workers, widths `d_l` and `L` layers, an epoch moves `4B Σ_{l<L} d_l` bytes forward and
//! `4B Σ_{1≤l<L} d_l` back; features never change, so by default they are sent in the first epoch only (as DGCL, SAR and the code of BNS-GCN
//! and `PipeGCN` do).
//!
//! In mini-batches the workers sample together. For each layer, from the last down, a worker draws neighbours for the rows that it has to compute and asks
//! the owners of those it lacks for them, with 4 bytes a row (`sample`); these compute them, draw for them in turn, and send them forward and get their
//! gradients back as boundary rows otherwise. By default a feature row that came once is kept. A step with `r_l` rows asked for at layer `l` moves `4 Σ_l r_l`
//! bytes of ids, `4 Σ_{l<L} r_l d_l` forward and `4 Σ_{1≤l<L} r_l d_l` back, and one sum of parameter gradients.

use std::sync::Arc;

use serde::Deserialize;

use super::parts::{Compression, RowExchange, Wire};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::net::{CodecKey, Identity};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "full",
        paper: "exact partition-parallel training (as in CAGNET, SC'20; DGCL, EuroSys'21; SAR, MLSys'22)",
        sends: "boundary rows of every layer forward, their gradients back, every epoch; parameter gradients; in mini-batches the sampled rows in place of all, and their ids",
        options: &[
            OptionInfo {
                name: "cache_features",
                default: "true",
                meaning: "Send the constant input features in the first epoch only, as the code of BNS-GCN and PipeGCN does; in mini-batches, when a row is first needed.",
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

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    let compression = Compression::none().caching(options.cache_features);
    let all = RowExchange::new(compression, options.overlap, *context);
    Ok(Box::new(all))
}

/// A wire that changes nothing.
#[must_use]
pub fn plain_wire() -> Wire {
    Wire {
        codec: Arc::new(Identity),
        key: CodecKey::new(0, 0, 0),
    }
}
