//! What travels in an epoch of a training that exchanges rows, and when.

use std::sync::Arc;

use super::{BoundaryShare, Feedback, Gradients, Keeping, Repartition, Senders, Staleness, Wire};
use crate::net::{Gauge, Tally, TrafficKind};
use crate::sim::Decision;

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

/// What travels in an epoch, given its number and what the epochs before it showed.
pub type Exchange<'a> = &'a dyn Fn(usize, &[Feedback]) -> EpochExchange;

/// What travels while the workers compute, and how gradients do. The default is nothing, and all of
/// them in each step: everything is waited for at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct When {
    /// The gradients of a layer are summed while the layers below go back.
    pub gradients_overlap: bool,
    /// The features of an epoch travel during the one before, unless their error is measured or
    /// training is in mini-batches. What is sent must not depend on how the training goes.
    pub features_ahead: bool,
    /// Rows and their gradients travel until the next epoch, where they are used in place of its
    /// own; with all training nodes and the whole boundary at once only. Features are exact unless
    /// it says otherwise. This changes what is trained.
    pub staleness: Option<Staleness>,
    /// Rows and their gradients are kept, and used again in epochs in which their sender sends no
    /// others; with all training nodes at once only. This changes what is trained. Features that
    /// are sent, if they are, are those of the epoch.
    pub kept: Option<Keeping>,
    /// Every worker sends all rows that it owns to all others, and not those that they read; with
    /// all training nodes and the whole boundary at once only.
    pub blocks: bool,
    /// How parameter gradients are summed. Others than plain ones do not overlap.
    pub gradients: Gradients,
    /// When nodes are dealt out anew; with all training nodes at once only.
    pub repartition: Repartition,
}
