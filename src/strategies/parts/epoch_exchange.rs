//! What travels in an epoch of a training that exchanges rows, and when.

use std::sync::Arc;

use super::{BoundaryShare, Feedback, Senders, Wire};
use crate::net::{Gauge, Tally, TrafficKind};
use crate::sim::{Decision, Restoring, Saving, SimError};

/// What travels in one epoch.
#[derive(Default)]
pub struct EpochExchange {
    /// For each layer, how its boundary rows travel; `None` for what is not sent in this epoch.
    pub wires: Vec<Option<Wire>>,
    /// How many times smaller than uncompressed the compressed rows are.
    pub compression_ratio: Option<f64>,
    /// Where the wires' codecs measure their errors, if they do.
    pub gauge: Option<Arc<Gauge>>,
    /// Whether every worker needs the error of all workers, for what it sends next.
    pub shares_error: bool,
    /// Whether every worker needs the accuracies of evaluations, for what it sends next.
    pub shares_scores: bool,
    /// In mini-batches, whether features that came in an earlier step are kept and not asked for
    /// again. Then the first wire is there in every epoch. With a share of the boundary, whether
    /// those of all of it are sent and kept: the first layer then reads all of it.
    pub keeps_features: bool,
    /// Numbers of which every worker needs the sum over all workers at the end of the epoch, for
    /// what it sends next.
    pub tally: Option<Arc<Tally>>,
    /// What the training decided for this epoch, if it did.
    pub decided: Option<Decision>,
    /// Who sends rows and gradients, where what came last is kept: of others that is used again.
    pub senders: Senders,
    /// The share of the boundary that crosses, if not all does; with all training nodes at once
    /// only.
    pub share: Option<BoundaryShare>,
}

impl EpochExchange {
    /// Whether the rows of a layer cross after its product.
    pub fn crosses_after_product(&self, layer: usize) -> bool {
        let wire = self.wires.get(layer).and_then(Option::as_ref);
        wire.is_some_and(Wire::takes_product)
    }

    /// The kind of the first layer's rows: features, or their product.
    pub(crate) fn first_rows(&self) -> TrafficKind {
        if self.crosses_after_product(0) {
            TrafficKind::Activation
        } else {
            TrafficKind::Feature
        }
    }

    /// How the features travel, if they do.
    pub fn features(mut self) -> Option<Wire> {
        let wire = self.wires.first_mut()?.take();
        wire.filter(|wire| !wire.takes_product())
    }
}

/// Who says what travels: a function of an epoch's number and of what the epochs before it showed,
/// or one that goes by more than these, which it saves for checkpoints.
pub trait Exchange {
    /// What travels in an epoch. Asked for each once, in their order; and besides, with
    /// [`When::features_ahead`](super::When), for the features of the next one, and of a checkpoint
    /// for the wires of earlier ones.
    fn at(&mut self, epoch: usize, seen: &[Feedback]) -> EpochExchange;

    /// Saves what it goes by beside these two. Default: nothing.
    fn save(&self, _: &mut Saving) {}

    /// Takes back what was saved, also where it has been asked since.
    ///
    /// # Errors
    /// If something else was saved.
    fn restore(&mut self, _: &mut Restoring<'_>) -> Result<(), SimError> {
        Ok(())
    }
}

impl<F: FnMut(usize, &[Feedback]) -> EpochExchange> Exchange for F {
    fn at(&mut self, epoch: usize, seen: &[Feedback]) -> EpochExchange {
        self(epoch, seen)
    }
}
