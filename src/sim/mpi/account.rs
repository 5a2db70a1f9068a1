//! What one process keeps of its own part of a run: its clock and what it sent.

use std::time::{Duration, Instant};

use super::results::{packed, unpacked};
use crate::net::{Bytes, Lane, Ledger, NetError, Seconds};
use crate::sim::WorkerTimes;

/// An account as it is saved: times in seconds; epoch, lane, payload and number of messages.
type Saved = ([f64; 4], Vec<(usize, Lane, u64, u64)>);

/// Clock and ledger of a worker that is a process.
///
/// The clock is real time as far as the training takes it: computing, and the time inside calls
/// that communicate. What happens between them, such as evaluation, does not count, as in the
/// simulation.
pub(super) struct Account {
    pub epoch: usize,
    pub ledger: Ledger,
    rank: usize,
    compute: f64,
    exposed: f64,
    waiting: f64,
    communication: f64,
    /// Number of exchanges and calls under way, and the clock when the first of them began.
    under_way: usize,
    began: f64,
    /// When the last thing that counts ended.
    last: Instant,
}

impl Account {
    pub(super) fn new(rank: usize) -> Self {
        Self {
            epoch: 0,
            ledger: Ledger::new(),
            rank,
            compute: 0.0,
            exposed: 0.0,
            waiting: 0.0,
            communication: 0.0,
            under_way: 0,
            began: 0.0,
            last: Instant::now(),
        }
    }

    pub(super) const fn clock(&self) -> Seconds {
        Seconds(self.compute + self.exposed + self.waiting)
    }

    pub(super) fn computed(&mut self, time: Seconds) {
        self.compute += time.0;
        self.last = Instant::now();
    }

    /// Communication begins: a call, or an exchange that outlives its call.
    pub(super) const fn enter(&mut self) {
        if self.under_way == 0 {
            self.began = self.clock().0;
        }
        // Exchanges may overlap; time in which several are under way counts once.
        self.under_way += 1;
    }

    /// Communication ends.
    pub(super) fn leave(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            self.communication += self.clock().0 - self.began;
        }
    }

    /// So much of a call was spent in it, and so much of that before anybody had begun to send.
    pub(super) fn waited(&mut self, time: Duration, for_others: Duration) {
        // Both are read from the machine's clock, at moments that are not quite the same.
        let for_others = for_others.min(time);
        self.exposed += time.saturating_sub(for_others).as_secs_f64();
        self.waiting += for_others.as_secs_f64();
        self.last = Instant::now();
    }

    /// Time since the last thing that counted.
    pub(super) fn uncounted(&self) -> Duration {
        self.last.elapsed()
    }

    /// Adds a message to the ledger.
    pub(super) fn record(&mut self, lane: Lane, bytes: usize) {
        self.record_in(self.epoch, lane, bytes);
    }

    /// Adds a message of an epoch that may be over.
    pub(super) fn record_in(&mut self, epoch: usize, lane: Lane, bytes: usize) {
        debug_assert_eq!(
            lane.from as usize, self.rank,
            "a worker counts what it sends"
        );
        self.ledger.record(epoch, lane, Bytes(bytes as u64));
    }

    /// Times and messages so far, for [`Self::restore`].
    pub(super) fn saved(&self) -> Vec<u8> {
        let messages = self.ledger.iter().flat_map(|(epoch, traffic)| {
            let all = traffic.iter();
            all.map(move |(lane, payload, count)| (epoch, lane, payload.0, count))
        });
        let times = [self.compute, self.exposed, self.waiting, self.communication];
        let saved: Saved = (times, messages.collect());
        // Numbers are never refused. An account that is not there is found when it is restored.
        packed(&saved).unwrap_or_default()
    }

    /// Goes on after those times and messages. What is under way stays so.
    pub(super) fn restore(&mut self, saved: &[u8]) -> Result<(), NetError> {
        let (times, messages): Saved = unpacked(saved)?;
        [self.compute, self.exposed, self.waiting, self.communication] = times;
        (self.began, self.last) = (self.clock().0, Instant::now());
        self.ledger = Ledger::new();
        for (epoch, lane, payload, count) in messages {
            self.ledger.record_many(epoch, lane, Bytes(payload), count);
        }
        Ok(())
    }

    pub(super) const fn times(&self) -> WorkerTimes {
        WorkerTimes {
            clock: self.clock(),
            compute: Seconds(self.compute),
            communication: Seconds(self.communication),
            exposed: Seconds(self.exposed),
            waiting: Seconds(self.waiting),
            set_up: Seconds::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_while_an_exchange_is_under_way_is_communication_that_is_not_exposed() {
        let mut account = Account::new(0);
        account.computed(Seconds(1.0));
        account.enter(); // an exchange starts
        account.enter(); // in a call
        account.waited(Duration::from_millis(250), Duration::ZERO);
        account.leave();
        account.computed(Seconds(2.0));
        account.enter();
        account.waited(Duration::from_millis(1500), Duration::from_secs(1));
        account.leave();
        account.leave();
        account.computed(Seconds(4.0));
        let times = account.times();
        assert_eq!(times.clock, Seconds(8.75));
        assert_eq!(times.waiting, Seconds(1.0));
        assert_eq!(times.compute, Seconds(7.0));
        assert_eq!(times.communication, Seconds(3.75));
        assert_eq!(times.exposed, Seconds(0.75));
        let lane = Lane::new(1, 0, 1, crate::net::TrafficKind::Feature);
        account.record(lane, 12);
        let mut other = Account::new(0);
        other.record(lane, 99);
        other.restore(&account.saved()).unwrap();
        assert_eq!(other.times(), times);
        assert_eq!(other.ledger, account.ledger);
        assert!(other.restore(b"nonsense").is_err());
    }
}
