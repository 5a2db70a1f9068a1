//! What a worker has done up to a checkpoint, as far as it does not follow from the plan.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::net::{CodingError, Lane, Outbox};
use crate::sim::Decision;
use crate::sim::record::Report;

/// One worker's past.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Past {
    /// Epochs that are over.
    pub epochs: usize,
    /// How long each piece of computing took on this machine, in nanoseconds; none where that is
    /// modelled, and so in the plan.
    pub took: Vec<u64>,
    /// What it said at the end of each epoch.
    pub reports: Vec<Report>,
    /// What was decided, by epoch.
    pub decisions: BTreeMap<usize, Decision>,
    /// What its messages lost in compression, by epoch and lane.
    pub coding_errors: Vec<((usize, Lane), CodingError)>,
    /// Exchanges that it has started.
    pub exchanges: u64,
    /// Those that are under way, by number: what this worker sent in them.
    pub under_way: BTreeMap<u64, Outbox>,
    /// Clock and ledger of a worker that is a process.
    pub account: Vec<u8>,
    /// Real time of training so far.
    pub measured: Duration,
    /// Collectives that are under way.
    #[serde(skip)]
    pub collectives: usize,
}
