//! Rows and gradients that are used an exchange after they were sent, as in `PipeGCN`.
//!
//! ```text
//!   epoch t   ── wait for what was sent in epoch t − 1 ── send ── compute with the former ──▶
//!                                                             while the latter travels
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Wire;
use crate::net::{Inbox, Outbox, TrafficKind};
use crate::sim::{PendingExchange, SimError, Worker};

/// How what arrives late is smoothed: into a running mean, `γ` of what it was and `1 − γ` of what
/// arrived, from zero on and without correction for that. Without `γ` it is used as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Staleness {
    /// `γ` of rows.
    pub rows: Option<f32>,
    /// `γ` of their gradients.
    pub gradients: Option<f32>,
    /// Whether the features are late like the rows of the layers above, instead of exact. Then they
    /// travel in every epoch.
    pub features: bool,
}

/// Whose messages: their kind and layer.
type Tag = (TrafficKind, u32);

/// What one worker's late messages leave from one exchange to the next.
pub(super) struct Delay {
    staleness: Staleness,
    // Cells, because all layers of a pass borrow the same crossing. Maps in order, because workers
    // wait at the end in the order that is planned.
    under_way: RefCell<BTreeMap<Tag, (PendingExchange, Wire)>>,
    /// Of each layer how the rows came that are read now, and so how their gradient goes back.
    read: RefCell<BTreeMap<u32, Wire>>,
    means: RefCell<BTreeMap<Tag, Vec<f32>>>,
}

impl Delay {
    pub const fn new(staleness: Staleness) -> Self {
        Self {
            staleness,
            under_way: RefCell::new(BTreeMap::new()),
            read: RefCell::new(BTreeMap::new()),
            means: RefCell::new(BTreeMap::new()),
        }
    }

    /// Sends, and returns what came of the exchange before this one, with its wire; nothing at
    /// first.
    pub fn exchange(
        &self,
        worker: &mut Worker,
        outbox: Outbox,
        wire: &Wire,
    ) -> Result<(Inbox, Wire), SimError> {
        let tag = (outbox.kind, outbox.layer);
        let before = self.under_way.borrow_mut().remove(&tag);
        let arrived = match before {
            Some((pending, wire)) => (worker.finish_exchange(pending)?, wire),
            None => (Inbox::new(), wire.clone()),
        };
        // Gradients go back by the wire of the rows that are read now, not of those that leave now.
        if tag.0 == TrafficKind::Activation {
            self.read.borrow_mut().insert(tag.1, arrived.1.clone());
        }
        let started = (worker.start_exchange(outbox)?, wire.clone());
        self.under_way.borrow_mut().insert(tag, started);
        Ok(arrived)
    }

    /// How the gradient of the rows of a layer goes back: through the wire that they came through,
    /// in the same entries, whatever wire is that of this epoch. In the first epoch, in which no
    /// rows are there yet, that is `wire`.
    pub fn back(&self, layer: u32, wire: &Wire) -> Wire {
        let read = self.read.borrow();
        read.get(&layer).unwrap_or(wire).clone()
    }

    /// Waits for what is under way, which nobody uses.
    pub fn finish(&self, worker: &mut Worker) -> Result<(), SimError> {
        for (pending, _) in std::mem::take(&mut *self.under_way.borrow_mut()).into_values() {
            worker.finish_exchange(pending)?;
        }
        Ok(())
    }

    /// What is used in place of `values` that arrived.
    pub fn smoothed(&self, tag: Tag, values: Vec<f32>) -> Vec<f32> {
        let gamma = match tag.0 {
            TrafficKind::ActivationGradient => self.staleness.gradients,
            _ => self.staleness.rows,
        };
        let Some(gamma) = gamma else { return values };
        let mut means = self.means.borrow_mut();
        let mean = means.entry(tag).or_default();
        mean.resize(values.len(), 0.0);
        for (mean, value) in mean.iter_mut().zip(values) {
            *mean = gamma * *mean + (1.0 - gamma) * value;
        }
        mean.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Tag = (TrafficKind::Activation, 1);
    const GRADIENTS: Tag = (TrafficKind::ActivationGradient, 1);

    #[test]
    fn a_running_mean_starts_from_zero_and_forgets_by_gamma() {
        let delay = Delay::new(Staleness {
            rows: Some(0.75),
            ..Staleness::default()
        });
        for round in 1..30 {
            // Of equal values, after k of them: the share 1 − γᵏ.
            let expected = 8.0 * (1.0 - 0.75_f32.powi(round));
            let found = delay.smoothed(ROWS, vec![8.0, -8.0]);
            assert!((found[0] - expected).abs() < 1e-5, "{round}: {found:?}");
            assert!((found[0] + found[1]).abs() < 1e-6);
        }
    }

    #[test]
    fn layers_and_ways_have_means_of_their_own_and_only_where_asked() {
        let delay = Delay::new(Staleness {
            gradients: Some(0.5),
            ..Staleness::default()
        });
        assert_eq!(delay.smoothed(ROWS, vec![4.0]), [4.0]);
        assert_eq!(delay.smoothed(GRADIENTS, vec![4.0]), [2.0]);
        let upper = (TrafficKind::ActivationGradient, 2);
        assert_eq!(delay.smoothed(upper, vec![8.0]), [4.0]);
        assert_eq!(delay.smoothed(GRADIENTS, vec![4.0]), [3.0]);
    }
}
