//! The simulated engine's core: who runs, what is in flight, and what time it is.
//!
//! Workers are actors on threads of their own, of which exactly one runs at a time:
//!
//! 1. The worker with the smallest clock that can go on holds the turn. Its computing moves its own clock only.
//! 2. When it waits for a message, the turn passes to the next worker that can go on.
//! 3. When nobody can, the fabric moves virtual time to the next delivery. That may wake workers, whose clocks become the time of
//!    the delivery they waited for. Back to 1.
//!
//! The fabric never moves while a worker could still send something earlier, so what is simulated is exact and does not
//! depend on how the operating system schedules threads.

mod carry;

use std::collections::{BTreeMap, VecDeque};

use super::intervals::Intervals;
use crate::net::{
    AllReduceKind, Bytes, Combine, Fabric, FlowId, Inbox, Lane, Ledger, Message, NetError, Outbox,
    Reduce, Seconds, Step, TrafficKind, Transfer, all_reduce_steps, floats, to_bytes,
};

/// Tells messages of collectives from those of exchanges between the same two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tag {
    Exchange {
        kind: TrafficKind,
        layer: u32,
    },
    Collective {
        kind: TrafficKind,
    },
    /// A message without content, of a worker that plays both its ends.
    Carried {
        kind: TrafficKind,
        layer: u32,
    },
}

/// Messages that keep their order: sender, receiver and tag.
type Route = (usize, usize, Tag);

struct Arrived {
    at: Seconds,
    payload: Vec<u8>,
}

struct InFlight {
    route: Route,
    start: Seconds,
    payload: Vec<u8>,
}

/// What a worker does right now.
enum Phase {
    /// Holds the turn, or waits for it with nothing else to wait for.
    Runnable,
    /// Waits for the messages of an exchange.
    Receiving { tag: Tag, expect: Vec<usize> },
    /// Takes part in an all-reduce; the kernel carries out its steps.
    Reducing(Box<Reduction>),
    /// Waits for the shared value of this number.
    Sharing(usize),
    /// Plays all workers, and waits until so many of their messages have arrived.
    Carrying(usize),
    /// Has ended.
    Done,
}

struct Reduction {
    values: Vec<f32>,
    op: Reduce,
    kind: TrafficKind,
    steps: VecDeque<Step>,
    sent: bool,
}

/// One worker's account of time.
#[derive(Clone, Debug, Default)]
pub struct WorkerTimes {
    /// Time of the last thing it did.
    pub clock: Seconds,
    /// Time it computed.
    pub compute: Seconds,
    /// Time in which a message from or to it was in flight.
    pub communication: Seconds,
    /// The part of `communication` in which it did nothing but wait.
    pub exposed: Seconds,
}

struct Actor {
    phase: Phase,
    clock: Seconds,
    compute: Seconds,
    epoch: usize,
    blocked_since: Seconds,
    blocked: Intervals,
    flights: Intervals,
    inbox: Option<Inbox>,
    reduced: Option<Vec<f32>>,
    shares_taken: usize,
}

/// The state that all workers share, guarded by one lock of which the holder of the turn is the only user.
pub(super) struct Kernel {
    fabric: Fabric,
    all_reduce: AllReduceKind,
    actors: Vec<Actor>,
    flying: BTreeMap<FlowId, InFlight>,
    arrived: BTreeMap<Route, VecDeque<Arrived>>,
    shared: Vec<Vec<u8>>,
    ledger: Ledger,
    turn: Option<usize>,
    failure: Option<(usize, String)>,
}

impl Kernel {
    /// A kernel for so many workers, of which the first `actors` have a program.
    pub fn new(fabric: Fabric, all_reduce: AllReduceKind, workers: usize, actors: usize) -> Self {
        let actor = |rank: usize| Actor {
            phase: if rank < actors {
                Phase::Runnable
            } else {
                Phase::Done
            },
            clock: Seconds::ZERO,
            compute: Seconds::ZERO,
            epoch: 0,
            blocked_since: Seconds::ZERO,
            blocked: Intervals::default(),
            flights: Intervals::default(),
            inbox: None,
            reduced: None,
            shares_taken: 0,
        };
        Self {
            fabric,
            all_reduce,
            actors: (0..workers).map(actor).collect(),
            flying: BTreeMap::new(),
            arrived: BTreeMap::new(),
            shared: Vec::new(),
            ledger: Ledger::new(),
            turn: Some(0),
            failure: None,
        }
    }

    pub fn workers(&self) -> usize {
        self.actors.len()
    }

    pub const fn turn(&self) -> Option<usize> {
        self.turn
    }

    /// Whether a worker that entered a blocking call already has what it waits for. It may then go on without passing the turn: the
    /// fabric has not moved, and messages carry their own times.
    pub fn is_runnable(&self, rank: usize) -> bool {
        matches!(self.actors[rank].phase, Phase::Runnable)
    }

    pub fn clock(&self, rank: usize) -> Seconds {
        self.actors[rank].clock
    }

    pub fn set_epoch(&mut self, rank: usize, epoch: usize) {
        self.actors[rank].epoch = epoch;
    }

    pub fn compute(&mut self, rank: usize, time: Seconds) {
        let actor = &mut self.actors[rank];
        actor.clock += time;
        actor.compute += time;
    }

    /// The failure that ends the run for `rank`, if there is one.
    pub fn failure(&self) -> Option<NetError> {
        self.failure
            .as_ref()
            .map(|(rank, reason)| NetError::PeerFailed {
                rank: *rank,
                reason: reason.clone(),
            })
    }

    /// Ends the run for everybody.
    pub fn fail(&mut self, rank: usize, reason: String) {
        self.failure.get_or_insert((rank, reason));
        self.turn = None;
    }

    /// Puts the messages of an outbox on the fabric at the sender's clock.
    pub fn send_all(&mut self, rank: usize, outbox: Outbox) -> Result<(), NetError> {
        let tag = Tag::Exchange {
            kind: outbox.kind,
            layer: outbox.layer,
        };
        for message in outbox.messages {
            if message.peer >= self.workers() || message.peer == rank {
                return Err(NetError::Protocol {
                    rank,
                    reason: format!("it addressed a message to worker {}", message.peer),
                });
            }
            let bytes = Bytes(message.payload.len() as u64);
            self.send((rank, message.peer, tag), message.payload, bytes);
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
    fn send(&mut self, route: Route, payload: Vec<u8>, bytes: Bytes) {
        let (from, to, tag) = route;
        let (kind, layer) = match tag {
            Tag::Exchange { kind, layer } | Tag::Carried { kind, layer } => (kind, layer),
            Tag::Collective { kind } => (kind, 0),
        };
        let sender = &self.actors[from];
        let lane = Lane {
            layer,
            from: from as u32,
            to: to as u32,
            kind,
        };
        self.ledger.record(sender.epoch, lane, bytes);
        let start = sender.clock;
        let flow = self.fabric.send(Transfer {
            from,
            to,
            channel: Some(kind as u64),
            payload: bytes,
            start,
        });
        self.flying.insert(
            flow,
            InFlight {
                route,
                start,
                payload,
            },
        );
    }

    /// Waits for one message from each of `expect`; passes the turn when they are not there yet.
    pub fn receive(&mut self, rank: usize, kind: TrafficKind, layer: u32, expect: Vec<usize>) {
        let tag = Tag::Exchange { kind, layer };
        self.block(rank, Phase::Receiving { tag, expect });
    }

    /// Enters an all-reduce; the result is taken with [`Self::take_reduced`] when the turn comes back.
    pub fn all_reduce(&mut self, rank: usize, values: Vec<f32>, op: Reduce, kind: TrafficKind) {
        let steps = all_reduce_steps(self.all_reduce, rank, self.workers(), values.len()).into();
        let reduction = Reduction {
            values,
            op,
            kind,
            steps,
            sent: false,
        };
        self.block(rank, Phase::Reducing(Box::new(reduction)));
    }

    /// Gives or waits for the next shared value.
    pub fn share(&mut self, rank: usize, value: Option<Vec<u8>>) {
        self.shared.extend(value);
        let number = self.actors[rank].shares_taken;
        self.actors[rank].shares_taken += 1;
        self.block(rank, Phase::Sharing(number));
        for other in 0..self.workers() {
            self.progress(other);
        }
    }

    pub fn take_inbox(&mut self, rank: usize) -> Inbox {
        self.actors[rank].inbox.take().unwrap_or_default()
    }

    pub fn take_reduced(&mut self, rank: usize) -> Vec<f32> {
        self.actors[rank].reduced.take().unwrap_or_default()
    }

    pub fn take_shared(&mut self, rank: usize) -> Vec<u8> {
        self.shared[self.actors[rank].shares_taken - 1].clone()
    }

    /// Ends a worker's part.
    pub fn finish(&mut self, rank: usize) {
        self.actors[rank].phase = Phase::Done;
        self.pass_turn();
    }

    fn block(&mut self, rank: usize, phase: Phase) {
        let actor = &mut self.actors[rank];
        actor.blocked_since = actor.clock;
        actor.phase = phase;
        self.progress(rank);
    }

    /// Gives the turn to the runnable worker with the smallest clock, moving virtual time until there is one.
    pub fn pass_turn(&mut self) {
        if self.failure.is_some() {
            self.turn = None;
            return;
        }
        loop {
            let next = (0..self.workers())
                .filter(|&rank| matches!(self.actors[rank].phase, Phase::Runnable))
                .min_by(|&a, &b| {
                    self.actors[a]
                        .clock
                        .cmp(&self.actors[b].clock)
                        .then(a.cmp(&b))
                });
            if next.is_some() {
                self.turn = next;
                return;
            }
            if self
                .actors
                .iter()
                .all(|actor| matches!(actor.phase, Phase::Done))
            {
                self.turn = None;
                return;
            }
            let Some(deliveries) = self.fabric.advance() else {
                let stuck = self
                    .actors
                    .iter()
                    .position(|a| !matches!(a.phase, Phase::Done));
                let rank = stuck.unwrap_or(0);
                self.fail(rank, self.describe_wait(rank));
                return;
            };
            for delivery in deliveries {
                self.deliver(delivery.flow, delivery.time);
            }
        }
    }

    fn describe_wait(&self, rank: usize) -> String {
        match &self.actors[rank].phase {
            Phase::Receiving { tag, expect } => {
                format!("it waits for {tag:?} from workers {expect:?}, but nothing is in flight")
            }
            Phase::Reducing(_) => "it waits in an all-reduce that others did not enter".to_owned(),
            Phase::Sharing(_) => "it waits for a value that worker 0 did not share".to_owned(),
            Phase::Carrying(count) => format!("it waits for {count} messages that do not arrive"),
            Phase::Runnable | Phase::Done => "it does not wait".to_owned(),
        }
    }

    fn deliver(&mut self, flow: FlowId, at: Seconds) {
        let Some(InFlight {
            route,
            start,
            payload,
        }) = self.flying.remove(&flow)
        else {
            return;
        };
        let (from, to, tag) = route;
        self.actors[from].flights.add(start, at);
        self.actors[to].flights.add(start, at);
        if matches!(tag, Tag::Carried { .. }) {
            return self.carried(at);
        }
        self.arrived
            .entry(route)
            .or_default()
            .push_back(Arrived { at, payload });
        self.progress(to);
    }

    fn take_arrived(&mut self, route: Route) -> Option<Arrived> {
        let queue = self.arrived.get_mut(&route)?;
        let message = queue.pop_front();
        if queue.is_empty() {
            self.arrived.remove(&route);
        }
        message
    }

    /// Carries a blocked worker as far as what has arrived allows.
    fn progress(&mut self, rank: usize) {
        match std::mem::replace(&mut self.actors[rank].phase, Phase::Runnable) {
            Phase::Receiving { tag, expect } => {
                let all_there = expect
                    .iter()
                    .all(|&from| self.arrived.contains_key(&(from, rank, tag)));
                if !all_there {
                    self.actors[rank].phase = Phase::Receiving { tag, expect };
                    return;
                }
                let mut inbox = Inbox::with_capacity(expect.len());
                for peer in expect {
                    if let Some(Arrived { at, payload }) = self.take_arrived((peer, rank, tag)) {
                        self.actors[rank].clock = self.actors[rank].clock.max(at);
                        inbox.push(Message { peer, payload });
                    }
                }
                self.actors[rank].inbox = Some(inbox);
                self.unblock(rank);
            }
            Phase::Reducing(reduction) => self.progress_reduction(rank, reduction),
            Phase::Sharing(number) if self.shared.len() <= number => {
                self.actors[rank].phase = Phase::Sharing(number);
            }
            Phase::Carrying(waits_for) => self.progress_carrying(rank, waits_for),
            Phase::Sharing(_) | Phase::Runnable => {}
            Phase::Done => self.actors[rank].phase = Phase::Done,
        }
    }

    fn progress_reduction(&mut self, rank: usize, mut reduction: Box<Reduction>) {
        let tag = Tag::Collective {
            kind: reduction.kind,
        };
        while let Some(step) = reduction.steps.front() {
            if let (Some((to, range)), false) = (&step.send, reduction.sent) {
                let payload = to_bytes(&reduction.values[range.clone()]);
                let bytes = Bytes(payload.len() as u64);
                self.send((rank, *to, tag), payload, bytes);
            }
            reduction.sent = true;
            if let Some((from, range, combine)) = step.receive.clone() {
                let Some(Arrived { at, payload }) = self.take_arrived((from, rank, tag)) else {
                    self.actors[rank].phase = Phase::Reducing(reduction);
                    return;
                };
                self.actors[rank].clock = self.actors[rank].clock.max(at);
                merge(
                    &mut reduction.values[range],
                    &payload,
                    combine,
                    reduction.op,
                );
            }
            reduction.steps.pop_front();
            reduction.sent = false;
        }
        self.actors[rank].reduced = Some(reduction.values);
        self.unblock(rank);
    }

    fn unblock(&mut self, rank: usize) {
        let actor = &mut self.actors[rank];
        actor.phase = Phase::Runnable;
        actor.blocked.add(actor.blocked_since, actor.clock);
    }

    /// Times of every worker and the record of all messages, after the end.
    pub fn into_results(self) -> (Vec<WorkerTimes>, Ledger) {
        let times = self
            .actors
            .iter()
            .map(|actor| WorkerTimes {
                clock: actor.clock,
                compute: actor.compute,
                communication: actor.flights.length(),
                exposed: actor.flights.overlap(&actor.blocked),
            })
            .collect();
        (times, self.ledger)
    }
}

/// One step of a collective: received values into one's own.
pub(super) fn merge(values: &mut [f32], payload: &[u8], combine: Combine, op: Reduce) {
    for (value, received) in values.iter_mut().zip(floats(payload)) {
        *value = match (combine, op) {
            (Combine::Replace, _) => received,
            (Combine::Reduce, Reduce::Sum) => *value + received,
            (Combine::Reduce, Reduce::Max) => value.max(received),
        };
    }
}
