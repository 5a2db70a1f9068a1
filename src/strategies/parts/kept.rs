//! Messages that are kept, and used again in epochs in which nobody sends others, as in SANCUS.
//!
//! ```text
//!   epoch 0      1        …   bound    bound + 1
//!   send    use again  use again  use again   send
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Wire;
use super::wire::WireAt;
use crate::net::{Inbox, Outbox, TrafficKind};
use crate::sim::{Restoring, Saving, SimError, Worker};

/// How old rows and gradients may be that are used, in epochs; 0 for those of the epoch itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound(pub usize);

impl Bound {
    /// Whether rows and gradients are sent in an epoch: those that are kept would else be too old.
    pub fn sends_in(self, epoch: usize) -> bool {
        epoch.is_multiple_of(self.0.saturating_add(1))
    }
}

/// Whose messages: their kind and layer.
type Tag = (TrafficKind, u32);

/// What one worker keeps of what it received.
pub(super) struct Kept {
    bound: Bound,
    // Cells, because all layers of a pass borrow the same crossing.
    exchanges: RefCell<BTreeMap<Tag, usize>>,
    /// What came last, and through which wire.
    last: RefCell<BTreeMap<Tag, (Inbox, Wire)>>,
}

impl Kept {
    pub(super) const fn new(bound: Bound) -> Self {
        Self {
            bound,
            exchanges: RefCell::new(BTreeMap::new()),
            last: RefCell::new(BTreeMap::new()),
        }
    }

    /// Whether the next exchange of a kind and layer takes place.
    pub(super) fn sends_next(&self, kind: TrafficKind, layer: usize) -> bool {
        let tag = (kind, layer as u32);
        let epoch = self.exchanges.borrow().get(&tag).copied();
        self.bound.sends_in(epoch.unwrap_or(0))
    }

    /// Sends, if this exchange takes place, and keeps what came through this wire; otherwise what
    /// came last, and through which.
    pub(super) fn exchange(
        &self,
        worker: &mut Worker,
        outbox: Outbox,
        wire: &Wire,
    ) -> Result<(Inbox, Wire), SimError> {
        let tag = (outbox.kind, outbox.layer);
        let sends = self.sends_next(outbox.kind, outbox.layer as usize);
        *self.exchanges.borrow_mut().entry(tag).or_default() += 1;
        if sends {
            let inbox = worker.exchange(outbox)?;
            let came = (inbox, wire.clone());
            self.last.borrow_mut().insert(tag, came);
        }
        let last = self.last.borrow().get(&tag).cloned();
        Ok(last.unwrap_or_else(|| (Inbox::new(), wire.clone())))
    }

    pub(super) fn save(&self, into: &mut Saving) {
        into.put(&*self.exchanges.borrow());
        let last = self.last.borrow();
        let last = last.iter();
        let last = last.map(|(tag, (inbox, wire))| (*tag, inbox, wire.round()));
        into.put(&last.collect::<Vec<_>>());
    }

    /// Takes back what was saved; `wire_at` says how rows travelled.
    pub(super) fn restore(
        &self,
        from: &mut Restoring<'_>,
        wire_at: WireAt<'_>,
    ) -> Result<(), SimError> {
        self.exchanges.replace(from.saved().take()?);
        let last: Vec<(Tag, Inbox, u64)> = from.saved().take()?;
        for (tag, inbox, round) in last {
            let wire = wire_at(round, tag.1 as usize)?;
            self.last.borrow_mut().insert(tag, (inbox, wire));
        }
        Ok(())
    }
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
    fn a_bound_that_is_never_reached_sends_once() {
        let bound = Bound(usize::MAX);
        assert!(bound.sends_in(0));
        assert!((1..100).all(|epoch| !bound.sends_in(epoch)));
    }
}
