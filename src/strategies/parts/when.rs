//! When what travels is waited for, used and summed.

use super::{Gradients, Keeping, Repartition, Staleness};

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
