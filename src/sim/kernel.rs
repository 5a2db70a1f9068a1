//! The simulated engine's core: who runs, what is in flight, and what time it is.
//!
//! Workers are actors on threads of their own, of which one has the turn:
//!
//! 1. The worker with the smallest clock that can go on holds the turn. Its computing moves its own
//!    clock only.
//! 2. When it waits for a message, the turn passes to the next worker that can go on.
//! 3. When nobody can, the fabric moves virtual time to the next delivery. That may wake workers,
//!    whose clocks become the time of the delivery they waited for. Back to 1.
//!
//! The fabric never moves while a worker could still send something earlier, so what is simulated
//! is exact and does not depend on how the operating system schedules threads.
//!
//! A worker whose computing takes a time that is known before, as a model says it, tells its clock
//! at once and gives the turn away while it computes: it will ask for nothing before that time, so
//! that until then others go on and the fabric moves. Real cores thus compute for several workers,
//! and turns still follow from virtual time alone.
//!
//! What travels in rounds, collectives and pairwise exchanges, has a clock of its own: its next
//! messages leave when those of the round before have arrived, while the worker that started it
//! computes or waits for something else. A delivery in the past of its worker's clock is no
//! contradiction: the worker has not seen it yet.

mod carry;
mod collective;
mod delivery;
mod pairwise;
mod parcel;
mod relays;
mod route;
mod snapshot;
mod times;
mod turns;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

use self::collective::{Part, Sum};
use self::pairwise::{Exchange, Exchanged};
pub(super) use self::parcel::Expected;
use self::parcel::{Arrived, Belongs, InFlight, Parcel, Started, from_next};
use self::relays::Relays;
use self::route::{Route, Tag, lane};
pub(super) use self::snapshot::Since;
pub use self::times::{EngineResults, WorkerTimes};
use super::intervals::Intervals;
use super::trace::{Doing, Span, Trace};
use crate::net::{
    Bytes, ExchangeKind, Fabric, FlowId, Inbox, Ledger, Message, NetError, Period, Seconds,
    Transfer,
};

/// What a worker does right now.
#[derive(Default)]
enum Phase {
    /// Holds the turn, or waits for it with nothing else to wait for.
    #[default]
    Runnable,
    /// Waits for the messages of an exchange, of which so many have not arrived.
    Receiving {
        tag: Tag,
        expect: Vec<usize>,
        missing: usize,
    },
    /// Waits for a pairwise exchange.
    Exchanging(Tag),
    /// Waits for the end of the collective of this number.
    Collecting(u64),
    /// Waits for the shared value of this number.
    Sharing(usize),
    /// Plays all workers, and waits until so many of their messages have arrived.
    Carrying(usize),
    /// Has ended.
    Done,
}

#[derive(Default)]
struct Actor {
    phase: Phase,
    clock: Seconds,
    compute: Seconds,
    set_up: Seconds,
    /// Since when it has computed what is not written down yet.
    computes_since: Option<Seconds>,
    epoch: usize,
    /// How many exchanges and collectives it has begun.
    begun: u64,
    blocked_since: Seconds,
    blocked: Intervals,
    flights: Intervals,
    inbox: Option<Inbox>,
    /// Started and not at their end, in the order in which they were started.
    collectives: VecDeque<Part>,
    exchanges: Vec<Exchange>,
    /// At their end and not asked for, and when that was.
    collected: BTreeMap<u64, Seconds>,
    exchanged: Vec<Exchanged>,
    shares_taken: usize,
}

/// The state that all workers share, guarded by one lock of which the holder of the turn is the
/// only user.
///
/// Hash maps are only looked into, never gone through: their order reaches nothing.
pub(super) struct Kernel {
    fabric: Fabric,
    actors: Vec<Actor>,
    /// Who can go on and has not the turn, by clock.
    ready: BinaryHeap<Reverse<(Seconds, usize)>>,
    /// Who computes without the turn, and until when.
    ahead: BTreeSet<(Seconds, usize)>,
    /// How many have ended.
    done: usize,
    flying: HashMap<FlowId, InFlight>,
    arrived: HashMap<Route, VecDeque<Arrived>>,
    /// Exchanges in two stages.
    relays: Relays,
    /// What collectives come to, by number.
    sums: BTreeMap<u64, Sum>,
    /// What worker 0 gave, and when.
    shared: Vec<(Seconds, Vec<u8>)>,
    ledger: Ledger,
    timeline: Trace,
    turn: Option<usize>,
    failure: Option<NetError>,
    /// How many workers there are, or stand for all in blocks of as many: what they send so many
    /// blocks on comes to them from as many blocks before them, at the same time.
    first: usize,
}

impl Kernel {
    /// A kernel for so many workers, of which the first `actors` have a program.
    pub(super) fn new(fabric: Fabric, workers: usize, actors: usize, timeline: Trace) -> Self {
        let actor = |rank: usize| Actor {
            phase: if rank < actors {
                Phase::Runnable
            } else {
                Phase::Done
            },
            ..Actor::default()
        };
        let alone = || vec![1; workers];
        let machines = fabric.topology().groups().unwrap_or_else(alone);
        Self {
            relays: Relays::new(&machines),
            fabric,
            actors: (0..workers).map(actor).collect(),
            ready: (1..actors)
                .map(|rank| Reverse((Seconds::ZERO, rank)))
                .collect(),
            ahead: BTreeSet::new(),
            // Workers without a program count as ended: nobody waits for their turn.
            done: workers - actors,
            flying: HashMap::new(),
            arrived: HashMap::new(),
            sums: BTreeMap::new(),
            shared: Vec::new(),
            ledger: Ledger::new(),
            timeline,
            // All clocks are 0, so that the first by rank begins.
            turn: Some(0),
            failure: None,
            first: workers,
        }
    }

    /// A kernel in which the first workers, as many as a period of the network has, stand for all
    /// of so many.
    pub(super) fn of_first(fabric: Fabric, period: Period, workers: usize, trace: Trace) -> Self {
        let first = period.workers;
        Self {
            first,
            ..Self::new(fabric.of_first(period), workers, first, trace)
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.actors.len()
    }

    /// How many values worker 0 has handed out.
    pub(super) const fn shares(&self) -> usize {
        self.shared.len()
    }

    pub(super) fn clock(&self, rank: usize) -> Seconds {
        self.actors[rank].clock
    }

    pub(super) fn set_epoch(&mut self, rank: usize, epoch: usize) {
        self.actors[rank].epoch = epoch;
    }

    /// The failure that ends the run for `rank`, if there is one.
    pub(super) fn failure(&self) -> Option<NetError> {
        self.failure.clone()
    }

    /// Ends the run for everybody.
    pub(super) fn fail(&mut self, rank: usize, reason: String) {
        self.end(NetError::PeerFailed { rank, reason });
    }

    fn end(&mut self, failure: NetError) {
        // The first one stays: later ones mostly follow from it.
        self.failure.get_or_insert(failure);
        self.turn = None;
    }

    /// Starts an exchange at the worker's clock. [`Self::finish_exchange`] takes what it expects.
    pub(super) fn start_exchange(
        &mut self,
        rank: usize,
        how: ExchangeKind,
        exchange: impl Into<Started>,
    ) -> Result<Expected, NetError> {
        let Started { parcels, expected } = exchange.into();
        self.check_receivers(rank, &parcels)?;
        let (kind, layer) = (expected.kind, expected.layer);
        let (direct, in_rounds) = (Tag::Exchange { kind, layer }, Tag::Pairwise { kind, layer });
        match how {
            ExchangeKind::Direct => self.send_all(rank, direct, parcels),
            ExchangeKind::Pairwise => self.start_rounds(rank, in_rounds, parcels, &expected.from),
            ExchangeKind::Hierarchical => self.relay(rank, direct, parcels),
        }
        Ok(expected)
    }

    /// Puts messages on the fabric at the sender's clock.
    fn send_all(&mut self, rank: usize, tag: Tag, parcels: Vec<Parcel>) {
        let (clock, belongs) = (self.actors[rank].clock, self.begin(rank));
        for Parcel {
            peer,
            bytes,
            payload,
        } in from_next(rank, parcels)
        {
            self.send((rank, peer, tag), payload, bytes, clock, belongs);
        }
    }

    /// A worker begins an exchange or a collective.
    fn begin(&mut self, rank: usize) -> Belongs {
        let actor = &mut self.actors[rank];
        actor.begun += 1;
        Belongs {
            epoch: actor.epoch,
            order: actor.begun,
        }
    }

    fn check_receivers(&self, rank: usize, parcels: &[Parcel]) -> Result<(), NetError> {
        let mut peers = parcels.iter().map(|parcel| parcel.peer);
        match peers.find(|&peer| peer >= self.workers() || peer == rank) {
            Some(peer) => Err(NetError::Protocol {
                rank,
                reason: format!("it addressed a message to worker {peer}"),
            }),
            None => Ok(()),
        }
    }

    /// Puts a message on the fabric at `start`.
    fn send(
        &mut self,
        route: Route,
        payload: Vec<u8>,
        bytes: Bytes,
        start: Seconds,
        belongs: Belongs,
    ) -> FlowId {
        let (from, to, tag) = route;
        let Belongs { epoch, order } = belongs;
        self.ledger.record(epoch, lane(route), bytes);
        let flow = self.fabric.send(Transfer {
            from,
            to,
            // In order per channel, as on one connection: a receiver takes what comes first from a
            // sender.
            channel: Some(tag.channel()),
            order,
            payload: bytes,
            start,
        });
        let message = InFlight {
            route,
            epoch,
            bytes,
            start,
            payload,
        };
        self.flying.insert(flow, message);
        flow
    }

    /// Waits for the messages of the oldest exchange of a kind and layer.
    pub(super) fn finish_exchange(&mut self, rank: usize, how: ExchangeKind, expected: Expected) {
        let (kind, layer, expect) = (expected.kind, expected.layer, expected.from);
        if how == ExchangeKind::Pairwise {
            return self.block(rank, Phase::Exchanging(Tag::Pairwise { kind, layer }));
        }
        let tag = Tag::Exchange { kind, layer };
        let there = |from: &&usize| self.arrived.contains_key(&(**from, rank, tag));
        // Counted once; deliveries take from it, so that nobody looks at all senders for each
        // message.
        let missing = expect.len() - expect.iter().filter(there).count();
        let phase = Phase::Receiving {
            tag,
            expect,
            missing,
        };
        self.block(rank, phase);
    }

    /// Gives or waits for the next shared value.
    pub(super) fn share(&mut self, rank: usize, value: Option<Vec<u8>>) {
        // Values are told apart by their number alone: every worker asks for all of them, in order.
        let number = self.actors[rank].shares_taken;
        self.actors[rank].shares_taken += 1;
        let Some(value) = value else {
            return self.block(rank, Phase::Sharing(number));
        };
        self.shared.push((self.actors[rank].clock, value));
        for other in 0..self.workers() {
            self.progress(other);
        }
    }

    pub(super) fn take_inbox(&mut self, rank: usize) -> Inbox {
        self.actors[rank].inbox.take().unwrap_or_default()
    }

    pub(super) fn take_shared(&mut self, rank: usize) -> Vec<u8> {
        self.shared[self.actors[rank].shares_taken - 1].1.clone()
    }

    fn block(&mut self, rank: usize, phase: Phase) {
        let actor = &mut self.actors[rank];
        actor.blocked_since = actor.clock;
        actor.phase = phase;
        self.progress(rank);
    }

    /// Carries a worker, and what it has started, as far as what has arrived allows.
    fn progress(&mut self, rank: usize) {
        self.progress_collectives(rank);
        self.progress_exchanges(rank);
        // Taken out, as what follows changes the actor; whoever still waits gets its phase back.
        match std::mem::replace(&mut self.actors[rank].phase, Phase::Runnable) {
            Phase::Receiving {
                tag,
                expect,
                missing,
            } => {
                if missing > 0 {
                    self.actors[rank].phase = Phase::Receiving {
                        tag,
                        expect,
                        missing,
                    };
                    return;
                }
                let mut inbox = Inbox::with_capacity(expect.len());
                for peer in expect {
                    // It is there: `missing` is 0.
                    if let Some(Arrived { at, payload }) = self.take_arrived((peer, rank, tag)) {
                        self.actors[rank].clock = self.actors[rank].clock.max(at);
                        inbox.push(Message { peer, payload });
                    }
                }
                self.actors[rank].inbox = Some(inbox);
                self.unblock(rank);
            }
            Phase::Exchanging(tag) => self.progress_exchanging(rank, tag),
            Phase::Collecting(number) => self.progress_collecting(rank, number),
            Phase::Sharing(number) => match self.shared.get(number) {
                Some(&(at, _)) => {
                    self.actors[rank].clock = self.actors[rank].clock.max(at);
                    self.unblock(rank);
                }
                None => self.actors[rank].phase = Phase::Sharing(number),
            },
            Phase::Carrying(waits_for) => self.progress_carrying(rank, waits_for),
            Phase::Runnable => {}
            Phase::Done => self.actors[rank].phase = Phase::Done,
        }
    }

    fn unblock(&mut self, rank: usize) {
        let actor = &mut self.actors[rank];
        actor.phase = Phase::Runnable;
        // Who has the turn keeps it.
        if self.turn != Some(rank) {
            self.ready.push(Reverse((actor.clock, rank)));
        }
        self.waited(rank);
    }

    /// A worker has waited from `blocked_since` until now.
    fn waited(&mut self, rank: usize) {
        let actor = &mut self.actors[rank];
        actor.blocked.add(actor.blocked_since, actor.clock);
        self.timeline.add_span(Span {
            worker: rank,
            epoch: actor.epoch,
            doing: Doing::Wait,
            start: actor.blocked_since,
            end: actor.clock,
        });
    }
}
