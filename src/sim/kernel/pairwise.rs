//! Exchanges in rounds: in each a worker sends to one other and receives from one.

use std::collections::{BTreeMap, VecDeque};

use super::{Arrived, Belongs, Kernel, Parcel, Phase, Tag};
use crate::net::{FlowId, Inbox, Message, Seconds, pairwise_rounds};

/// What one worker does in one round.
pub(super) struct Round {
    pub(super) send: Option<Parcel>,
    pub(super) receive: Option<usize>,
}

/// A pairwise exchange of one worker that has not come to its end.
pub(super) struct Exchange {
    pub(super) tag: Tag,
    /// What its messages belong to.
    belongs: Belongs,
    pub(super) rounds: VecDeque<Round>,
    /// The time until which it has come.
    pub(super) clock: Seconds,
    /// The message whose arrival the present round waits for.
    pub(super) awaits: Option<FlowId>,
    pub(super) inbox: Inbox,
    /// Whether the worker will ask for its inbox.
    pub(super) expects: bool,
}

/// A pairwise exchange that has come to its end, and when.
pub(super) struct Exchanged {
    pub(super) tag: Tag,
    pub(super) at: Seconds,
    inbox: Inbox,
}

impl Kernel {
    /// Starts a pairwise exchange at the worker's clock. Those of the same kind and layer take
    /// place one after another.
    pub(super) fn start_rounds(
        &mut self,
        rank: usize,
        tag: Tag,
        parcels: Vec<Parcel>,
        expect: &[usize],
    ) {
        let outgoing = parcels.into_iter().map(|parcel| (parcel.peer, parcel));
        let mut outgoing: BTreeMap<usize, Parcel> = outgoing.collect();
        let rounds = pairwise_rounds(rank, self.workers())
            .map(|(to, from)| Round {
                send: outgoing.remove(&to),
                receive: expect.binary_search(&from).is_ok().then_some(from),
            })
            // A round in which this worker neither sends nor receives takes no time: rounds are not
            // in step.
            .filter(|round| round.send.is_some() || round.receive.is_some())
            .collect();
        let belongs = self.begin(rank);
        let actor = &mut self.actors[rank];
        actor.exchanges.push(Exchange {
            tag,
            belongs,
            rounds,
            clock: actor.clock,
            awaits: None,
            inbox: Inbox::new(),
            expects: !expect.is_empty(),
        });
        self.progress_exchanges(rank);
    }

    /// A worker that waits for a pairwise exchange goes on when it has come to its end, at that
    /// time.
    pub(super) fn progress_exchanging(&mut self, rank: usize, tag: Tag) {
        let actor = &mut self.actors[rank];
        let Some(place) = actor.exchanged.iter().position(|done| done.tag == tag) else {
            actor.phase = Phase::Exchanging(tag);
            return;
        };
        let Exchanged { at, inbox, .. } = actor.exchanged.remove(place);
        actor.clock = actor.clock.max(at);
        actor.inbox = Some(inbox);
        self.unblock(rank);
    }

    /// Takes the rounds of a worker's exchanges as far as what has arrived allows.
    pub(super) fn progress_exchanges(&mut self, rank: usize) {
        let mut waiting: Vec<Exchange> = Vec::new();
        let mut ended: BTreeMap<Tag, Seconds> = BTreeMap::new();
        // In the order in which they were started, on which the order of messages rests.
        for mut exchange in std::mem::take(&mut self.actors[rank].exchanges) {
            // Its messages are told from those of the one before it by their order alone.
            if let Some(&before) = ended.get(&exchange.tag) {
                exchange.clock = exchange.clock.max(before);
            }
            let behind = waiting.iter().any(|earlier| earlier.tag == exchange.tag);
            if behind || !self.take_rounds(rank, &mut exchange) {
                waiting.push(exchange);
                continue;
            }
            let (tag, at, mut inbox) = (exchange.tag, exchange.clock, exchange.inbox);
            ended.insert(tag, at);
            // Rounds bring them in another order than that of senders, which an inbox has.
            inbox.sort_by_key(|message| message.peer);
            // Who expects nothing never asks, and its inbox would stay here.
            if exchange.expects {
                let done = Exchanged { tag, at, inbox };
                self.actors[rank].exchanged.push(done);
            }
        }
        self.actors[rank].exchanges = waiting;
    }

    /// Whether all rounds are over.
    fn take_rounds(&mut self, rank: usize, exchange: &mut Exchange) -> bool {
        while let Some(round) = exchange.rounds.front_mut() {
            if let Some(Parcel {
                peer,
                bytes,
                payload,
            }) = round.send.take()
            {
                let route = (rank, peer, exchange.tag);
                let flow = self.send(route, payload, bytes, exchange.clock, exchange.belongs);
                exchange.awaits = Some(flow);
            }
            if let Some(from) = round.receive {
                let Some(Arrived { at, payload }) = self.take_arrived((from, rank, exchange.tag))
                else {
                    return false;
                };
                round.receive = None;
                exchange.clock = exchange.clock.max(at);
                let peer = from;
                exchange.inbox.push(Message { peer, payload });
            }
            if exchange.awaits.is_some() {
                return false;
            }
            exchange.rounds.pop_front();
        }
        true
    }

    /// A message of a pairwise exchange has been delivered: its sender's round may be over.
    pub(super) fn round_delivered(&mut self, from: usize, flow: FlowId, at: Seconds) {
        let mut exchanges = self.actors[from].exchanges.iter_mut();
        if let Some(exchange) = exchanges.find(|exchange| exchange.awaits == Some(flow)) {
            exchange.awaits = None;
            exchange.clock = exchange.clock.max(at);
            self.progress(from);
        }
    }
}
