//! What was sent, epoch by epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bytes, Count, Framing, Lane, Traffic};

/// Every message of a run, counted once, where it was sent.
///
/// Epochs with the same messages as the one before are held once: most of a long run are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    epochs: BTreeMap<usize, Arc<Traffic>>,
}

impl Ledger {
    /// An empty ledger.
    pub const fn new() -> Self {
        Self {
            epochs: BTreeMap::new(),
        }
    }

    /// Adds one message.
    pub(crate) fn record(&mut self, epoch: usize, lane: Lane, payload: Bytes) {
        self.record_many(epoch, lane, payload, 1);
    }

    /// Adds `count` messages of `payload` bytes each.
    pub(crate) fn record_many(&mut self, epoch: usize, lane: Lane, payload: Bytes, count: u64) {
        if count == 0 {
            return;
        }
        if !self.epochs.contains_key(&epoch) {
            // The last two of the epochs before are likely to be complete by now.
            let before = epoch.saturating_sub(1);
            self.fold(before.saturating_sub(1), before);
        }
        let traffic = self.epochs.entry(epoch).or_default();
        // A late message to an epoch that shares its record must not change the other: then it is
        // copied.
        Arc::make_mut(traffic).add_many(lane, payload, count);
    }

    /// Holds the messages of an epoch once if they are those of the one before.
    fn fold(&mut self, before: usize, epoch: usize) {
        if let (Some(first), Some(second)) = (self.epochs.get(&before), self.epochs.get(&epoch))
            // If that was too early the comparison fails, and the epoch is held by itself.
            && first == second
        {
            let first = Arc::clone(first);
            self.epochs.insert(epoch, first);
        }
    }

    /// The same messages in one epoch as in another that is complete.
    pub(crate) fn repeat(&mut self, of: usize, epoch: usize) {
        if let Some(traffic) = self.epochs.get(&of) {
            self.epochs.insert(epoch, Arc::clone(traffic));
        }
    }

    /// Puts so many epochs with the same messages after one, and moves those behind it.
    pub(crate) fn insert_after(&mut self, epoch: usize, times: usize, traffic: Traffic) {
        let behind = self.epochs.split_off(&(epoch + 1));
        let behind = behind
            .into_iter()
            .map(|(at, traffic)| (at + times, traffic));
        if traffic.iter().next().is_some() {
            let traffic = Arc::new(traffic);
            let all = (epoch + 1..=epoch + times).map(|at| (at, Arc::clone(&traffic)));
            self.epochs.extend(all);
        }
        self.epochs.extend(behind);
    }

    /// The messages of an epoch, if there were any.
    pub fn epoch(&self, epoch: usize) -> Option<&Traffic> {
        self.epochs.get(&epoch).map(|traffic| &**traffic)
    }

    /// Epochs with messages, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Traffic)> {
        self.epochs
            .iter()
            .map(|(&epoch, traffic)| (epoch, &**traffic))
    }

    /// All messages of the run.
    pub fn traffic(&self) -> Traffic {
        let mut all = Traffic::new();
        let epochs: Vec<&Arc<Traffic>> = self.epochs.values().collect();
        // By pointer: epochs folded together are found without comparing their messages again.
        for equal in epochs.chunk_by(|a, b| Arc::ptr_eq(a, b)) {
            all.merge_many(equal[0], equal.len() as u64);
        }
        all
    }

    /// Sums over the run, with the wire bytes that `framing` makes of each message.
    pub fn total(&self, framing: &Framing) -> Count {
        self.traffic().total(framing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::TrafficKind;

    const LANE: Lane = Lane {
        layer: 1,
        from: 0,
        to: 1,
        kind: TrafficKind::Activation,
    };

    #[test]
    fn epochs_are_in_order_whatever_the_order_of_records() {
        let mut ledger = Ledger::new();
        ledger.record(4, LANE, Bytes(10));
        ledger.record(0, LANE, Bytes(2000));
        ledger.record(0, LANE, Bytes(2000));
        let count = |messages, payload, wire| Count {
            messages,
            payload: Bytes(payload),
            wire: Bytes(wire),
        };
        let two = 2 * (2000 + 16 + 2 * 78);
        let framing = Framing::ethernet();
        let of_epochs = ledger
            .iter()
            .map(|(at, traffic)| (at, traffic.total(&framing)));
        let [first, last] = [count(2, 4000, two), count(1, 10, 10 + 16 + 78)];
        assert_eq!(of_epochs.collect::<Vec<_>>(), [(0, first), (4, last)]);
        let all = count(3, 4010, two + 10 + 16 + 78);
        assert_eq!(ledger.total(&framing), all);
        assert_eq!(ledger.epoch(1), None);
    }

    #[test]
    fn equal_epochs_are_held_once_and_told_apart_when_they_are_not() {
        let mut ledger = Ledger::new();
        for epoch in 0..5 {
            ledger.record(epoch, LANE, Bytes(10));
        }
        let shared = |ledger: &Ledger, a, b| Arc::ptr_eq(&ledger.epochs[&a], &ledger.epochs[&b]);
        assert!(shared(&ledger, 1, 2) && shared(&ledger, 2, 3) && !shared(&ledger, 3, 4));
        assert_eq!(ledger.traffic().payload_of(LANE.kind), Bytes(50));
        // A message that comes late.
        ledger.record(2, LANE, Bytes(7));
        assert_eq!(ledger.epoch(2).unwrap().payload_of(LANE.kind), Bytes(17));
        assert_eq!(ledger.epoch(1).unwrap().payload_of(LANE.kind), Bytes(10));
        assert_eq!(ledger.traffic().payload_of(LANE.kind), Bytes(57));
    }

    #[test]
    fn a_ledger_equals_a_plan_message_for_message() {
        let mut ledger = Ledger::new();
        ledger.record(3, LANE, Bytes(8));
        ledger.record(3, LANE, Bytes(8));
        let mut plan = Traffic::new();
        plan.add_many(LANE, Bytes(8), 2);
        assert_eq!(ledger.epoch(3), Some(&plan));
        // The same bytes in one message are another plan, with another number of headers.
        let mut merged = Traffic::new();
        merged.add(LANE, Bytes(16));
        assert_ne!(ledger.epoch(3), Some(&merged));
    }
}
