//! What happens when a message arrives.

use super::parcel::{Arrived, InFlight};
use super::route::{Route, Tag, lane};
use super::{Kernel, Phase};
use crate::net::{FlowId, Seconds, at_home};
use crate::sim::trace::Flight;

impl Kernel {
    /// A message arrives: it is recorded, and who waited for it goes on.
    pub(super) fn deliver(&mut self, flow: FlowId, at: Seconds) {
        if self.unbundle(flow, at) {
            return;
        }
        let Some(message) = self.flying.remove(&flow) else {
            return;
        };
        let InFlight { route, start, .. } = message;
        let (sender, receiver, tag) = route;
        let (from, to) = self.at_home(sender, receiver);
        self.actors[sender].flights.add(start, at);
        self.actors[to].flights.add(start, at);
        self.timeline.add_flight(Flight {
            lane: lane(route),
            epoch: message.epoch,
            payload: message.bytes,
            start,
            end: at,
        });
        if matches!(tag, Tag::Carried { .. }) {
            return self.carried(at);
        }
        let payload = message.payload;
        let queue = self.arrived.entry((from, to, tag)).or_default();
        // Only the first of a queue is one of those `missing`; the next ones belong to later
        // exchanges.
        let first = queue.is_empty();
        queue.push_back(Arrived { at, payload });
        match tag {
            Tag::Collective { .. } => {
                self.progress(to);
                self.collective_delivered(sender, flow, at);
            }
            Tag::Pairwise { .. } => {
                self.progress(to);
                self.round_delivered(sender, flow, at);
            }
            Tag::Exchange { .. } if first => self.received(from, to, tag),
            Tag::Exchange { .. } | Tag::Carried { .. } => {}
        }
    }

    /// Between whom a message is that the first workers see arrive.
    pub(super) fn at_home(&self, sender: usize, receiver: usize) -> (usize, usize) {
        at_home((self.first, self.workers()), (sender, receiver))
    }

    /// A message is there; the last that a worker waits for lets it go on.
    pub(super) fn received(&mut self, from: usize, to: usize, its: Tag) {
        if let Phase::Receiving {
            tag,
            expect,
            missing,
        } = &mut self.actors[to].phase
            && *tag == its
            && expect.binary_search(&from).is_ok()
        {
            *missing -= 1;
            if *missing == 0 {
                self.progress(to);
            }
        }
    }

    /// The first message on a route that nobody has taken.
    pub(super) fn take_arrived(&mut self, route: Route) -> Option<Arrived> {
        let queue = self.arrived.get_mut(&route)?;
        let message = queue.pop_front();
        // Routes of collectives have their number in them, so empty queues would pile up.
        if queue.is_empty() {
            self.arrived.remove(&route);
        }
        message
    }
}
