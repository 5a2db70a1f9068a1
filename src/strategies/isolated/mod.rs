//! `isolated`: workers that never look across the cut.
//!
//! Cut edges are dropped and degrees counted within a part; only parameter gradients are summed. An
//! epoch moves the bytes of one all-reduce a step and nothing else; mini-batches sample within a
//! part. This is DistGNN's mode `0c`, the "no communication" baseline of VARCO, and what Grappa
//! would be without repartitioning and weights.

use super::parts::options::{GRADIENTS, OVERLAP_GRADIENTS};
use super::parts::{Compression, RowExchange};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "isolated",
        paper: "no communication of node data (mode 0c of DistGNN, SC'21)",
        sends: "parameter gradients only; edges across the cut are dropped",
        options: &[OVERLAP_GRADIENTS, GRADIENTS],
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange {
        crosses: false,
        ..RowExchange::new(Compression::none())
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
