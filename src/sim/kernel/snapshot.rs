//! What everybody does at a moment, relative to it.

use super::collective::Part;
use super::pairwise::{Exchange, Exchanged};
use super::{Actor, Kernel, Phase, Route, Tag};
use crate::net::{Seconds, Snapshot};

/// What is counted from the beginning of a run on, where the moment of a snapshot has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// Virtual time.
    pub moment: Seconds,
    /// Collectives that a worker has started.
    pub collectives: u64,
    /// Values that worker 0 has handed out.
    pub shares: usize,
}

impl Since {
    /// Numbers before this one are far ahead, and as far for all.
    const fn number(self, number: u64) -> usize {
        number.wrapping_sub(self.collectives) as usize
    }

    fn tag(self, tag: Tag, into: &mut Snapshot) {
        let (kind, layer) = tag.what();
        let (form, number) = match tag {
            Tag::Exchange { .. } => (0, 0),
            Tag::Pairwise { .. } => (1, 0),
            Tag::Collective { number, .. } => (2, self.number(number)),
            Tag::Carried { .. } => (3, 0),
        };
        into.counts([form, kind as usize, layer as usize, number]);
    }

    fn route(self, (from, to, tag): Route, into: &mut Snapshot) {
        into.counts([from, to]);
        self.tag(tag, into);
    }
}

impl Kernel {
    /// Whether everybody waits, and nothing happens at this instant that ends that. Then it does
    /// not matter in which order those had their turn who could go on at one time.
    pub(crate) fn is_quiet(&self) -> bool {
        self.ready.is_empty() && self.ahead.is_empty() && self.fabric.is_quiet()
    }

    /// Adds what all workers do and what is in flight, as seen from a moment. `false` if what
    /// happens next depends on more than that.
    pub(crate) fn snapshot(&self, since: Since, into: &mut Snapshot) -> bool {
        if !self.relays.is_idle() || !self.fabric.snapshot(into, since.moment) {
            return false;
        }
        for actor in &self.actors {
            actor.snapshot(since, into);
        }
        let goes_on = |actor: &&Actor| !matches!(actor.phase, Phase::Done);
        let taken = self.actors.iter().filter(goes_on);
        let taken = taken.map(|actor| actor.shares_taken).min().unwrap_or(0);
        for (at, _) in self.shared.iter().skip(taken) {
            into.time(*at, since.moment);
        }
        let mut flying: Vec<_> = self.flying.iter().collect();
        flying.sort_by_key(|(flow, message)| (message.route, **flow));
        for (_, message) in flying {
            since.route(message.route, into);
            into.count(message.bytes.0 as usize);
            into.time(message.start, since.moment);
        }
        let mut arrived: Vec<_> = self.arrived.iter().collect();
        arrived.sort_by_key(|(route, _)| **route);
        for (route, messages) in arrived {
            since.route(*route, into);
            into.count(messages.len());
            for message in messages {
                into.time(message.at, since.moment);
            }
        }
        true
    }
}

impl Actor {
    fn snapshot(&self, since: Since, into: &mut Snapshot) {
        match &self.phase {
            Phase::Runnable => into.count(0),
            Phase::Receiving {
                tag,
                expect,
                missing,
            } => {
                into.counts([1, expect.len(), *missing]);
                since.tag(*tag, into);
            }
            Phase::Exchanging(tag) => {
                into.count(2);
                since.tag(*tag, into);
            }
            Phase::Collecting(number) => {
                into.counts([3, since.number(*number)]);
            }
            Phase::Sharing(_) => into.count(4),
            Phase::Carrying(messages) => {
                into.counts([5, *messages]);
            }
            Phase::Done => return into.count(6),
        }
        into.time(self.clock, since.moment);
        into.count(self.shares_taken.wrapping_sub(since.shares));
        into.count(self.collectives.len());
        for part in &self.collectives {
            part.snapshot(since, into);
        }
        into.count(self.collected.len());
        for (number, at) in &self.collected {
            into.count(since.number(*number));
            into.time(*at, since.moment);
        }
        into.count(self.exchanges.len());
        for exchange in &self.exchanges {
            exchange.snapshot(since, into);
        }
        into.count(self.exchanged.len());
        for exchanged in &self.exchanged {
            exchanged.snapshot(since, into);
        }
    }
}

impl Part {
    fn snapshot(&self, since: Since, into: &mut Snapshot) {
        into.count(since.number(self.number));
        self.taking.snapshot(since.moment, into);
    }
}

impl Exchange {
    fn snapshot(&self, since: Since, into: &mut Snapshot) {
        since.tag(self.tag, into);
        let front = self.rounds.front();
        let sends = front.is_some_and(|round| round.send.is_some());
        let receives = front.is_some_and(|round| round.receive.is_some());
        let awaits = self.awaits.is_some();
        for known in [sends, receives, awaits, self.expects] {
            into.count(usize::from(known));
        }
        into.counts([self.rounds.len(), self.inbox.len()]);
        into.time(self.clock, since.moment);
    }
}

impl Exchanged {
    fn snapshot(&self, since: Since, into: &mut Snapshot) {
        since.tag(self.tag, into);
        into.time(self.at, since.moment);
    }
}
