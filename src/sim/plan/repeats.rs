//! What repeats itself is played until each time is like the one before, and then multiplied.
//!
//! ```text
//!   played        │ first │ second │ third │   ·   ·   ·   │ last │
//!   worker 0      m0      m1       m2      and so on
//! ```
//!
//! The moments are those at which everybody waits for the first time since worker 0 began a step
//! or an epoch. A simulation has no memory but its state. If that is the same at `m0`, `m1` and
//! `m2`, relative to the clock of worker 0, and the plan is the same from there on, everything
//! happens again, as much later as it did the last time.

use crate::net::{Ledger, Seconds, Snapshot, Traffic};
use crate::sim::kernel::WorkerTimes;

/// A share of an interval by which the account of two of them may differ.
const ALIKE: f64 = 1e-9;

/// A share of the time since the beginning that rounding may add to a clock.
const ROUNDING: f64 = 1e-12;

/// After so many moments of which none was like the one before, nobody looks any more.
const PATIENCE: usize = 64;

/// A moment at which everybody waits, after worker 0 has begun something.
pub(super) struct Mark {
    /// What everybody does then.
    pub snapshot: Snapshot,
    /// The simulation's clock.
    pub clock: Seconds,
    /// The workers' accounts.
    pub times: Vec<WorkerTimes>,
}

impl Mark {
    /// What the workers' accounts have gained since an earlier moment that was like this one.
    fn since(&self, earlier: &Self) -> Option<Vec<WorkerTimes>> {
        let rounding = ROUNDING * self.clock.0;
        if !self.snapshot.is_as(&earlier.snapshot, rounding) {
            return None;
        }
        let pairs = self.times.iter().zip(&earlier.times);
        Some(pairs.map(|(now, before)| now.plus(before, -1.0)).collect())
    }
}

/// The last moments at which the same thing had begun.
#[derive(Default)]
pub(super) struct Marks {
    last: Vec<Mark>,
    /// The number of the last.
    number: usize,
    seen: usize,
}

impl Marks {
    /// Something else begins.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether it is worth looking on.
    pub(super) const fn hopes(&self) -> bool {
        self.seen < PATIENCE
    }

    /// One moment more, of this number. What each worker's account gains each time from here on,
    /// once that is settled.
    pub(super) fn push(&mut self, number: usize, mark: Mark) -> Option<Vec<WorkerTimes>> {
        self.seen += 1;
        if number != self.number + 1 {
            self.last.clear();
        }
        self.number = number;
        if self.last.len() == 3 {
            self.last.remove(0);
        }
        self.last.push(mark);
        let [first, second, third] = &self.last[..] else {
            return None;
        };
        let (before, gained) = (second.since(first)?, third.since(second)?);
        let rounding = ROUNDING * third.clock.0;
        let mut pairs = before.iter().zip(&gained);
        let alike = pairs.all(|(a, b)| {
            let most = (ALIKE * b.clock.0).max(16.0 * rounding);
            let gap = a.plus(b, -1.0);
            let parts = [
                gap.compute,
                gap.communication,
                gap.exposed,
                gap.waiting,
                gap.set_up,
            ];
            parts.iter().all(|part| part.0.abs() <= most)
        });
        alike.then_some(gained)
    }
}

impl WorkerTimes {
    /// This account and so many times another.
    fn plus(&self, other: &Self, times: f64) -> Self {
        let sum = |of: fn(&Self) -> Seconds| Seconds(of(self).0 + times * of(other).0);
        Self {
            clock: sum(|it| it.clock),
            compute: sum(|it| it.compute),
            communication: sum(|it| it.communication),
            exposed: sum(|it| it.exposed),
            waiting: sum(|it| it.waiting),
            set_up: sum(|it| it.set_up),
        }
    }
}

/// What was not played.
#[derive(Default)]
pub(super) struct Multiplied {
    /// What it adds to the workers' accounts.
    times: Vec<WorkerTimes>,
    /// Messages of steps, by the number that their epoch has among those that are played.
    pub ledger: Ledger,
    /// Epochs, in order.
    epochs: Vec<Again>,
}

/// Epochs like one that is played.
struct Again {
    /// The number that it has among those that are played.
    of: usize,
    /// How many more there are.
    times: usize,
    /// What each takes.
    took: Seconds,
    /// What is sent in each.
    traffic: Traffic,
}

impl Multiplied {
    /// Something is done so many times more, of which each adds this to the workers' accounts.
    pub(super) fn add(&mut self, gained: &[WorkerTimes], times: usize) {
        self.times.resize(gained.len(), WorkerTimes::default());
        for (sum, gained) in self.times.iter_mut().zip(gained) {
            *sum = sum.plus(gained, times as f64);
        }
    }

    /// An epoch that is played stands for so many more.
    pub(super) fn epochs(&mut self, of: usize, times: usize, took: Seconds, traffic: Traffic) {
        self.epochs.push(Again {
            of,
            times,
            took,
            traffic,
        });
    }

    /// When a worker ended an epoch of those that are played, by the clock of what was played.
    pub(super) fn end_of(&self, epoch: usize, rank: usize, played: Seconds) -> Seconds {
        let more = self.times.get(rank).map_or(0.0, |times| times.clock.0);
        // Worker 0 may be ahead, and have taken epochs at once that come after this one.
        let later = self.epochs.iter().filter(|again| again.of > epoch);
        let later: f64 = later.map(|it| it.times as f64 * it.took.0).sum();
        Seconds(played.0 + more - later)
    }

    /// The accounts by what was played, as they are.
    pub(super) fn accounts(&self, mut played: Vec<WorkerTimes>) -> Vec<WorkerTimes> {
        for (times, more) in played.iter_mut().zip(&self.times) {
            *times = times.plus(more, 1.0);
        }
        played
    }

    /// The messages by what was played, as they are.
    pub(super) fn messages(&self, mut played: Ledger) -> Ledger {
        for (epoch, traffic) in self.ledger.iter() {
            for (lane, bytes, count) in traffic.iter() {
                played.record_many(epoch, lane, bytes, count);
            }
        }
        for Again {
            of, times, traffic, ..
        } in self.epochs.iter().rev()
        {
            played.insert_after(*of, *times, traffic.clone());
        }
        played
    }

    /// When epochs ended, by the ends of those that were played.
    pub(super) fn ends(&self, played: impl Iterator<Item = Seconds>) -> Vec<Seconds> {
        let mut ends: Vec<Seconds> = Vec::new();
        for (number, end) in played.enumerate() {
            for again in self.epochs.iter().filter(|again| again.of == number) {
                // From the one before: what comes after the last of them may slow its end.
                let before = ends.last().map_or(0.0, |end| end.0);
                let at = |count: usize| Seconds(before + count as f64 * again.took.0);
                ends.extend((1..=again.times).map(at));
            }
            ends.push(end);
        }
        ends
    }
}
