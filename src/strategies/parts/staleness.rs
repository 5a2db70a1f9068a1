//! Rows and gradients that are used an exchange after they were sent, as in `PipeGCN`.
//!
//! ```text
//!   epoch t   ── wait for what was sent in epoch t − 1 ── send ── compute with the former ──▶
//!                                                             while the latter travels
//! ```
//!
//! In a fresh epoch they wait for what they send, and read it again in the epoch after.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Wire;
use super::wire::WireAt;
use crate::net::{Inbox, Outbox, TrafficKind};
use crate::sim::{PendingExchange, Restoring, Saving, SimError, Worker};

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
    /// Every so many epochs, from the first on, workers wait for the rows and gradients of the
    /// epoch itself (Sylvie's bounded staleness); without it they never do.
    pub fresh_every: Option<usize>,
}

impl Staleness {
    /// Whether workers wait in an epoch for what they send in it.
    pub fn is_fresh(&self, epoch: usize) -> bool {
        self.fresh_every
            .is_some_and(|every| epoch.is_multiple_of(every))
    }
}

/// Whose messages: their kind and layer.
type Tag = (TrafficKind, u32);

/// What became of the messages of an exchange.
enum Sent {
    /// They are under way.
    Travels(PendingExchange),
    /// They were waited for.
    Arrived(Inbox),
}

impl Sent {
    fn finish(self, worker: &mut Worker) -> Result<Inbox, SimError> {
        match self {
            Self::Travels(pending) => worker.finish_exchange(pending),
            Self::Arrived(inbox) => Ok(inbox),
        }
    }
}

/// What one worker's late messages leave from one exchange to the next.
pub(super) struct Delay {
    staleness: Staleness,
    // Cells, because all layers of a pass borrow the same crossing. Maps in order, because workers
    // wait at the end in the order that is planned.
    sent: RefCell<BTreeMap<Tag, (Sent, Wire)>>,
    /// Exchanges so far.
    exchanges: RefCell<BTreeMap<Tag, usize>>,
    /// Of each layer how the rows came that are read now, and so how their gradient goes back.
    read: RefCell<BTreeMap<u32, Wire>>,
    means: RefCell<BTreeMap<Tag, Vec<f32>>>,
}

impl Delay {
    pub(super) const fn new(staleness: Staleness) -> Self {
        Self {
            staleness,
            sent: RefCell::new(BTreeMap::new()),
            exchanges: RefCell::new(BTreeMap::new()),
            read: RefCell::new(BTreeMap::new()),
            means: RefCell::new(BTreeMap::new()),
        }
    }

    /// Sends, and returns what came of the exchange before this one, with its wire, nothing at
    /// first; or of this one, in a fresh epoch.
    pub(super) fn exchange(
        &self,
        worker: &mut Worker,
        outbox: Outbox,
        wire: &Wire,
    ) -> Result<(Inbox, Wire), SimError> {
        let tag = (outbox.kind, outbox.layer);
        let epoch = {
            let mut exchanges = self.exchanges.borrow_mut();
            let epoch = exchanges.entry(tag).or_default();
            std::mem::replace(epoch, *epoch + 1)
        };
        let before = self.sent.borrow_mut().remove(&tag);
        let mut arrived = match before {
            Some((sent, wire)) => (sent.finish(worker)?, wire),
            None => (Inbox::new(), wire.clone()),
        };
        let mut sent = Sent::Travels(worker.start_exchange(outbox)?);
        if self.staleness.is_fresh(epoch) {
            arrived = (sent.finish(worker)?, wire.clone());
            sent = Sent::Arrived(arrived.0.clone());
        }
        self.sent.borrow_mut().insert(tag, (sent, wire.clone()));
        // Gradients go back by the wire of the rows that are read now, not of those that leave now.
        if tag.0 == TrafficKind::Activation {
            self.read.borrow_mut().insert(tag.1, arrived.1.clone());
        }
        Ok(arrived)
    }

    /// How the gradient of the rows of a layer goes back: through the wire that they came through,
    /// in the same entries, whatever wire is that of this epoch. Where late rows begin, and no
    /// rows are there yet, that is `wire`.
    pub(super) fn back(&self, layer: u32, wire: &Wire) -> Wire {
        let read = self.read.borrow();
        read.get(&layer).unwrap_or(wire).clone()
    }

    /// Waits for what is under way, which nobody uses.
    pub(super) fn finish(&self, worker: &mut Worker) -> Result<(), SimError> {
        for (sent, _) in std::mem::take(&mut *self.sent.borrow_mut()).into_values() {
            sent.finish(worker)?;
        }
        Ok(())
    }

    pub(super) fn save(&self, into: &mut Saving) {
        let sent = self.sent.borrow();
        // Of what is under way its number, of what arrived the messages.
        let sent = sent.iter().map(|(&tag, (sent, wire))| match sent {
            Sent::Travels(pending) => (tag, wire.round(), Some(pending.number()), None),
            Sent::Arrived(inbox) => (tag, wire.round(), None, Some(inbox)),
        });
        into.put(&sent.collect::<Vec<_>>());
        into.put(&*self.exchanges.borrow());
        let read = self.read.borrow();
        let read = read.iter().map(|(&layer, wire)| (layer, wire.round()));
        into.put(&read.collect::<Vec<_>>());
        let means = self.means.borrow();
        into.put(&means.keys().copied().collect::<Vec<Tag>>());
        into.lists(means.values().map(Vec::as_slice));
    }

    /// Takes back what was saved; `wire_at` says how rows travelled.
    pub(super) fn restore(
        &self,
        from: &mut Restoring<'_>,
        wire_at: WireAt<'_>,
    ) -> Result<(), SimError> {
        type Row = (Tag, u64, Option<u64>, Option<Inbox>);
        let sent: Vec<Row> = from.saved().take()?;
        for (tag, round, number, inbox) in sent {
            let sent = match (number, inbox) {
                (Some(number), _) => Sent::Travels(from.exchange(number)?),
                (None, inbox) => Sent::Arrived(inbox.unwrap_or_default()),
            };
            let wire = wire_at(round, tag.1 as usize)?;
            self.sent.borrow_mut().insert(tag, (sent, wire));
        }
        self.exchanges.replace(from.saved().take()?);
        let read: Vec<(u32, u64)> = from.saved().take()?;
        for (layer, round) in read {
            let wire = wire_at(round, layer as usize)?;
            self.read.borrow_mut().insert(layer, wire);
        }
        let tags: Vec<Tag> = from.saved().take()?;
        let means = tags.into_iter().zip(from.saved().lists()?);
        self.means.replace(means.collect());
        Ok(())
    }

    /// What is used in place of `values` that arrived.
    pub(super) fn smoothed(&self, tag: Tag, values: Vec<f32>) -> Vec<f32> {
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
