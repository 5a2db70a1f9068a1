//! What training decides on its way, which its plan cannot know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::net::{Bits, RowBits, Way};

/// For each layer and way of its rows, which workers send in an epoch.
pub type Broadcasts = BTreeMap<(u32, Way), Vec<bool>>;

/// What the training decided for an epoch. It is recorded in the table of decisions, so that a plan
/// made afterwards is exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Decision {
    /// The compression ratio of the epoch.
    Ratio(f64),
    /// The bits of the rows of every message, for this epoch and those after it.
    Bits(RowBits),
    /// The bits of the rows that each worker reads, for this epoch and those after it.
    ReaderBits(Vec<Bits>),
    /// Who sends rows and gradients in the epoch, of those who may skip it.
    Broadcasts(Broadcasts),
}
