//! The beginning and the end of a transmission.

use std::collections::VecDeque;

use super::super::sharing::BundleId;
use super::super::{Bytes, at_home};
use super::{Arriving, Fabric, FlowId, Message};

/// A message that its links carry now.
#[derive(Clone, Debug)]
pub(super) struct Transmission {
    pub(super) flow: FlowId,
    pub(super) message: Message,
    pub(super) bundle: BundleId,
}

impl Fabric {
    /// Starts a transmission, and returns its slot if it has anything to transmit.
    pub(super) fn begin(&mut self, flow: FlowId, message: Message) -> Option<u32> {
        // A flow over no links has no fair rate, and one of no bytes needs none.
        if message.links.is_empty() || message.wire == Bytes::ZERO {
            self.ended(flow, &message, message.from == message.to);
            return None;
        }
        let bundle = self.sharing.insert(&message.links, message.cap);
        // Used again, so that memory follows the messages under way and not all that were sent.
        let slot = self.free.pop().unwrap_or_else(|| {
            self.transmitting.push(None);
            (self.transmitting.len() - 1) as u32
        });
        self.members.add(bundle, slot);
        self.transmitting[slot as usize] = Some(Transmission {
            flow,
            message,
            bundle,
        });
        Some(slot)
    }

    pub(super) fn end(&mut self, slot: u32) {
        let Some(done) = self.transmitting[slot as usize].take() else {
            return;
        };
        for link in &done.message.links {
            self.carried[link.0] += done.message.wire;
        }
        self.sharing.remove(done.bundle);
        self.members.remove(done.bundle, slot);
        self.free.push(slot);
        self.ended(done.flow, &done.message, false);
    }

    /// From whom a message comes, as its receiver sees it.
    fn home_of(&self, message: &Message) -> usize {
        let workers = self.topology.workers();
        let first = self.period.as_ref().map_or(workers, |one| one.workers);
        at_home((first, workers), (message.from, message.to)).0
    }

    /// The last byte has left: the message arrives a latency later, and the next of its channel may
    /// start.
    fn ended(&mut self, flow: FlowId, message: &Message, taken: bool) {
        let arriving = Arriving {
            channel: message.channel,
            to: message.to,
            payload: message.payload,
            taken,
        };
        let mut arrival = self.now + message.latency;
        let (from, order) = (self.home_of(message), message.order);
        let Some(name) = arriving.channel else {
            self.arriving.insert((arrival, from, order, flow), arriving);
            return;
        };
        // Without jitter and losses a channel's messages arrive in the order in which they were
        // sent anyway.
        if self.uncertain {
            if let Some(&(last, _)) = self.last_arrival.get(&name) {
                arrival = arrival.max(last);
            }
            self.last_arrival.insert(name, (arrival, flow));
        }
        self.arriving.insert((arrival, from, order, flow), arriving);
        match self.channels.get_mut(&name).and_then(VecDeque::pop_front) {
            Some((next, message)) => {
                let start = message.start.max(self.now);
                self.waiting.insert((start, message.order, next), message);
            }
            None => {
                self.channels.remove(&name);
            }
        }
    }
}
