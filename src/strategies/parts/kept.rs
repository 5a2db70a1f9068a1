//! Messages that are kept, and used again in epochs in which their sender sends no others, as in
//! SANCUS.
//!
//! ```text
//!   epoch 0      1        …   bound    bound + 1
//!   send    use again  use again  use again   send
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Wire;
use super::wire::WireAt;
use crate::net::{Inbox, Message, Outbox, Tally, TrafficKind, Way};
use crate::sim::{Broadcasts, Decision, Restoring, Saving, SimError, Worker};

/// How old rows and gradients may be that are used, in epochs; 0 for those of the epoch itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound(pub usize);

impl Bound {
    /// Whether rows and gradients are sent in an epoch: those that are kept would else be too old.
    pub fn sends_in(self, epoch: usize) -> bool {
        epoch.is_multiple_of(self.0.saturating_add(1))
    }
}

/// Who sends in an epoch; of the others, what came last is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Senders {
    /// Every worker.
    #[default]
    All,
    /// None.
    Nobody,
    /// Those that it says, of each layer and way.
    These(Arc<Broadcasts>),
}

impl Senders {
    /// Whether a worker sends its rows of a layer, or the gradients of those that it read.
    pub(crate) fn sends(&self, layer: usize, way: Way, worker: usize) -> bool {
        self.are(layer, way, |those| those[worker])
    }

    /// Whether any worker does.
    pub(crate) fn any(&self, layer: usize, way: Way) -> bool {
        self.are(layer, way, |those| those.contains(&true))
    }

    /// Whether this holds of those that send; it does of all, and does not of nobody.
    fn are(&self, layer: usize, way: Way, holds: impl FnOnce(&[bool]) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::Nobody => false,
            Self::These(those) => {
                let those = those.get(&(layer as u32, way));
                those.is_none_or(|those| holds(those))
            }
        }
    }
}

/// When what is kept of rows and gradients is sent anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keeping {
    /// How old it may become.
    pub bound: Bound,
    /// What its relative change must be at least for its sender to send before it is so old; none
    /// if all send together when it is.
    pub threshold: Option<f64>,
}

impl Keeping {
    /// Who sends in an epoch, given what was decided for it; before anything is, the most that can.
    pub(crate) fn senders(self, epoch: usize, decided: Option<&Decision>) -> Senders {
        match decided {
            Some(Decision::Broadcasts(those)) => Senders::These(Arc::new(those.clone())),
            _ if self.threshold.is_some() || self.bound.sends_in(epoch) => Senders::All,
            _ => Senders::Nobody,
        }
    }
}

/// Which way messages of a kind go.
fn way(kind: TrafficKind) -> Way {
    match kind {
        TrafficKind::ActivationGradient => Way::Back,
        _ => Way::Forward,
    }
}

/// Whose messages: their kind and layer.
type Tag = (TrafficKind, u32);

/// What one worker keeps of what it received, and of what it sent.
pub(super) struct Kept {
    /// Whether it measures how much changed since it sent last.
    pub measures: bool,
    // Cells, because all layers of a pass borrow the same crossing.
    senders: RefCell<Senders>,
    /// Where changes are written down, if anybody wants to know.
    changes: RefCell<Option<Arc<Tally>>>,
    /// What came last from each worker.
    last: RefCell<BTreeMap<Tag, BTreeMap<usize, Message>>>,
    /// Through which wire, and so what is kept is read; the same for all, or a plain one.
    wires: RefCell<BTreeMap<Tag, Wire>>,
    /// Values that were sent last.
    sent: RefCell<BTreeMap<Tag, Vec<f32>>>,
    rank: Cell<usize>,
}

impl Kept {
    pub(super) fn new(measures: bool) -> Self {
        Self {
            measures,
            senders: RefCell::default(),
            changes: RefCell::default(),
            last: RefCell::default(),
            wires: RefCell::default(),
            sent: RefCell::default(),
            rank: Cell::default(),
        }
    }

    /// An epoch begins in which these send; changes are written down here.
    pub(super) fn begin(&self, rank: usize, senders: &Senders, changes: Option<&Arc<Tally>>) {
        self.rank.set(rank);
        self.senders.replace(senders.clone());
        self.changes.replace(changes.cloned());
    }

    /// Whether this worker takes part in the exchange of a kind and layer as a sender.
    pub(super) fn sends(&self, kind: TrafficKind, layer: usize) -> bool {
        let senders = self.senders.borrow();
        senders.sends(layer, way(kind), self.rank.get())
    }

    /// Looks at the values that this worker would send in its next exchange.
    pub(super) fn look(&self, kind: TrafficKind, layer: usize, values: &[f32]) {
        if !self.measures {
            return;
        }
        let mut sent = self.sent.borrow_mut();
        let sent = sent.entry((kind, layer as u32)).or_default();
        if self.sends(kind, layer) {
            values.clone_into(sent);
        }
        let change = relative_change(values, sent);
        let (senders, changes) = (self.senders.borrow(), self.changes.borrow());
        if let (Senders::These(those), Some(changes)) = (&*senders, &*changes) {
            let lane = (layer as u32, way(kind));
            let place = those.keys().position(|other| *other == lane);
            if let (Some(place), Some(workers)) = (place, those.get(&lane)) {
                changes.set(place * workers.len() + self.rank.get(), &[change as f32]);
            }
        }
    }

    /// Sends and receives, as far as anybody sends, and keeps what came; what came last of all
    /// workers, and through which wire.
    pub(super) fn exchange(
        &self,
        worker: &mut Worker,
        mut outbox: Outbox,
        wire: &Wire,
    ) -> Result<(Inbox, Wire), SimError> {
        let (tag, way) = ((outbox.kind, outbox.layer), way(outbox.kind));
        let (layer, senders) = (outbox.layer as usize, self.senders.borrow());
        let mut last = self.last.borrow_mut();
        let last = last.entry(tag).or_default();
        let mut wires = self.wires.borrow_mut();
        if senders.any(layer, way) {
            (outbox.expect).retain(|&peer| senders.sends(layer, way, peer));
            let inbox = worker.exchange(outbox)?;
            last.extend(inbox.into_iter().map(|message| (message.peer, message)));
            wires.insert(tag, wire.clone());
        }
        let wire = wires.get(&tag).unwrap_or(wire).clone();
        Ok((last.values().cloned().collect(), wire))
    }

    pub(super) fn save(&self, into: &mut Saving) {
        let (last, wires) = (self.last.borrow(), self.wires.borrow());
        let came = wires.iter().filter_map(|(tag, wire)| {
            let messages = last.get(tag)?.values().collect::<Vec<_>>();
            Some((*tag, messages, wire.round()))
        });
        into.put(&came.collect::<Vec<_>>());
        let sent = self.sent.borrow();
        into.put(&sent.keys().collect::<Vec<_>>());
        into.lists(sent.values().map(|values| &values[..]));
    }

    /// Takes back what was saved; `wire_at` says how rows travelled.
    pub(super) fn restore(
        &self,
        from: &mut Restoring<'_>,
        wire_at: WireAt<'_>,
    ) -> Result<(), SimError> {
        let came: Vec<(Tag, Inbox, u64)> = from.saved().take()?;
        for (tag, messages, round) in came {
            let wire = wire_at(round, tag.1 as usize)?;
            self.wires.borrow_mut().insert(tag, wire);
            let messages = messages.into_iter().map(|message| (message.peer, message));
            self.last.borrow_mut().insert(tag, messages.collect());
        }
        let tags: Vec<Tag> = from.saved().take()?;
        let sent = tags.into_iter().zip(from.saved().lists()?);
        self.sent.replace(sent.collect());
        Ok(())
    }
}

/// How far values are from what they were: `‖new − old‖ / ‖old‖`; infinite where there were only
/// zeros, and no number where there was nothing.
fn relative_change(new: &[f32], old: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum();
    let pairs = new.iter().zip(old);
    let distance: f64 = square(&mut pairs.map(|(new, old)| f64::from(*new) - f64::from(*old)));
    let size: f64 = square(&mut old.iter().map(|old| f64::from(*old)));
    if new.len() == old.len() && distance == 0.0 {
        return 0.0;
    }
    (distance / size).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_ever_older_than_the_bound_and_everything_may_become_so_old(
            bound in 0_usize..20, epochs in 1_usize..100,
        ) {
            let (mut sent, mut oldest) = (None, 0);
            for epoch in 0..epochs {
                if Bound(bound).sends_in(epoch) {
                    sent = Some(epoch);
                }
                let sent = sent.expect("something is sent in the first epoch");
                oldest = oldest.max(epoch - sent);
            }
            prop_assert_eq!(oldest, bound.min(epochs - 1));
        }
    }

    #[test]
    fn a_change_is_written_down_where_its_layer_way_and_worker_have_their_place() {
        use TrafficKind::{Activation, ActivationGradient};
        let lanes = [1, 2].map(|layer| [(layer, Way::Forward), (layer, Way::Back)]);
        let lanes: Vec<(u32, Way)> = lanes.into_iter().flatten().collect();
        let workers = 3;
        let those = |sends| {
            let all = lanes.iter().map(|&lane| (lane, vec![sends; workers]));
            Senders::These(Arc::new(all.collect::<Broadcasts>()))
        };
        for (rank, layer, kind) in [
            (0, 1, ActivationGradient),
            (2, 1, Activation),
            (1, 2, Activation),
        ] {
            let kept = Kept::new(true);
            kept.begin(rank, &those(true), None);
            kept.look(kind, layer, &[3.0, 4.0]);
            let changes = Arc::new(Tally::new(lanes.len() * workers));
            kept.begin(rank, &those(false), Some(&changes));
            // A change of 1 where there was 5.
            kept.look(kind, layer, &[3.0, 5.0]);
            let lane = (layer as u32, way(kind));
            let place = lanes
                .iter()
                .position(|one| *one == lane)
                .expect("it is one of them");
            let mut expected = vec![0.0; lanes.len() * workers];
            expected[place * workers + rank] = 0.2;
            assert_eq!(changes.values(), expected, "{rank}, {lane:?}");
        }
    }

    #[test]
    fn a_bound_that_is_never_reached_sends_once() {
        let bound = Bound(usize::MAX);
        assert!(bound.sends_in(0));
        assert!((1..100).all(|epoch| !bound.sends_in(epoch)));
    }

    #[test]
    fn changes_are_relative_to_what_was_sent() {
        assert_eq!(relative_change(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        assert_eq!(relative_change(&[3.0, 9.0], &[3.0, 4.0]), 1.0);
        assert_eq!(relative_change(&[1.0], &[0.0]), f64::INFINITY);
        assert_eq!(relative_change(&[0.0], &[0.0]), 0.0);
        assert_eq!(relative_change(&[], &[]), 0.0);
    }
}
