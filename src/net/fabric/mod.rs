//! Messages in flight, in virtual time: a fluid simulation.
//!
//! ```text
//!   send ─▶ waits for its start      ─▶ transmits: its wire bytes    ─▶ propagates ─▶ delivered
//!           and for the message          flow at its max-min share,      for the
//!           before it on its channel     recomputed whenever a           latency of
//!                                        transmission starts or ends     its route
//! ```
//!
//! A message alone is delivered at start + wire bytes / bandwidth + latency; latency takes no
//! bandwidth. On one channel of a pair of workers a message starts transmitting when the one before
//! it has finished transmitting, and arrives no earlier than that one.
//!
//! Where messages cost their ends something, each or by the byte ([`super::MessageCost`]), one
//! begins to transmit after its sender has been occupied with it, and is delivered after its
//! receiver has; both take messages one after another, in the order in which they come. That is
//! the work of a network stack or a core of its own: what the worker computes goes on.
//!
//! Jitter and lost packets add to the latency of a message, and lost packets to the bytes that its
//! links carry; see [`super::Jitter`] and [`super::Loss`]. A link that is down has no capacity:
//! what is on it waits and goes on when the link is back.
//!
//! Time does not depend on anything but the messages and the seed: not on map order, threads or a
//! clock.
//!
//! **Cost.** Each instant at which transmissions start or end costs one [`Sharing::solve`] and a
//! look at the links with another rate. N equal messages sent together cost O(N·R) over routes of R
//! links. N messages that all end at different times cost at most O(N²·R); in practice the solves
//! are the cost, and visit only flows that hang together with the one that ended and end up at a
//! higher rate. Memory is O(messages not yet delivered + links).

mod ends;
mod members;
mod ports;
mod progress;
mod snapshot;
#[cfg(test)]
mod tests;
mod transmission;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::impairment::number;
use super::sharing::Sharing;
use super::{Bytes, Change, Framing, LinkId, NetError, Period, Seconds, Topology};
use members::Members;
use ports::Ports;
use progress::Progress;
pub(crate) use snapshot::Snapshot;
use transmission::Transmission;

/// A message's number, in the order of [`Fabric::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlowId(pub u64);

/// A message to be carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transfer {
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Messages of one channel between the same two workers keep their order; without a channel a
    /// message is independent of all others.
    pub channel: Option<u64>,
    /// Of messages that begin or arrive at one time, those of a sender with a smaller number go
    /// first, and of equal ones those that were handed over first.
    pub order: u64,
    /// Encoded values; framing is added here.
    pub payload: Bytes,
    /// When it is handed over. A time before [`Fabric::now`] counts as now.
    pub start: Seconds,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delivery {
    /// Which message.
    pub flow: FlowId,
    /// When its last byte arrived.
    pub time: Seconds,
}

/// The network in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Fabric {
    topology: Arc<Topology>,
    framing: Framing,
    now: Seconds,
    sent: u64,
    /// Whether links have jitter or losses.
    uncertain: bool,
    /// Where the first workers stand for all.
    period: Option<Period>,
    sharing: Sharing,
    /// Not yet transmitting and next on their channel, by the time they start.
    waiting: BTreeMap<Start, Message>,
    /// Behind a message that waits or transmits. A channel is in here while it is busy.
    channels: BTreeMap<Channel, VecDeque<(FlowId, Message)>>,
    /// Transmitting, by slot of `progress`.
    transmitting: Vec<Option<Transmission>>,
    free: Vec<u32>,
    members: Members,
    progress: Progress,
    /// When the next transmission ends under the present shares.
    next_end: Option<Seconds>,
    /// Propagating, by the time they arrive, and then until their receiver has taken them.
    arriving: BTreeMap<Arrival, Arriving>,
    /// How long senders and receivers are occupied, where messages cost them anything.
    ports: Option<Ports>,
    /// Messages sent so far from whom to whom on which channel, where links are uncertain.
    drawn: BTreeMap<(usize, usize, Option<u64>), u64>,
    /// When the last message of a channel arrives, where a later one could overtake it.
    last_arrival: BTreeMap<Channel, (Seconds, FlowId)>,
    /// How many outages of the topology's list are over or under way.
    switched: usize,
    /// Outages that a link is in.
    down: Vec<u32>,
    /// The share of each link that other traffic leaves.
    left: Vec<f64>,
    carried: Vec<Bytes>,
}

/// Sender, receiver, and the sender's name for the channel.
type Channel = (usize, usize, u64);

/// When a message starts, its order, and its number.
///
/// Numbers come last, here and in [`Arrival`]: they follow from whose turn it was, and who computes
/// beside others has another turn than who is played.
type Start = (Seconds, u64, FlowId);

/// When a message arrives, its sender, its order, and its number: a receiver takes those of one
/// instant in the order of senders.
type Arrival = (Seconds, usize, u64, FlowId);

#[derive(Clone, Copy, Debug)]
struct Arriving {
    channel: Option<Channel>,
    to: usize,
    payload: Bytes,
    /// Whether nothing has to be done with it but to deliver it.
    taken: bool,
}

#[derive(Clone, Debug)]
struct Message {
    from: usize,
    to: usize,
    order: u64,
    /// Whether its sender is done with it.
    ready: bool,
    start: Seconds,
    payload: Bytes,
    /// What its links carry, lost packets included.
    wire: Bytes,
    latency: Seconds,
    links: Vec<LinkId>,
    /// Most bytes per second.
    cap: Option<f64>,
    channel: Option<Channel>,
}

impl Fabric {
    /// A quiet network at time zero.
    pub(crate) fn new(topology: Arc<Topology>, framing: Framing) -> Self {
        let links = topology.links().iter();
        let capacity: Vec<f64> = links
            .map(|link| link.bandwidth.bytes_per_second())
            .collect();
        Self {
            carried: vec![Bytes::ZERO; capacity.len()],
            down: vec![0; capacity.len()],
            left: vec![1.0; capacity.len()],
            progress: Progress::new(capacity.len()),
            sharing: Sharing::new(capacity),
            uncertain: topology.is_uncertain(),
            period: None,
            ports: Ports::of(&topology),
            topology,
            framing,
            now: Seconds::ZERO,
            sent: 0,
            waiting: BTreeMap::new(),
            channels: BTreeMap::new(),
            transmitting: Vec::new(),
            free: Vec::new(),
            members: Members::default(),
            next_end: None,
            arriving: BTreeMap::new(),
            drawn: BTreeMap::new(),
            last_arrival: BTreeMap::new(),
            switched: 0,
        }
    }

    /// The same network, on which the first workers alone send, so many as its period has, and
    /// stand for the others: these do the same at the same time, each in its place, so that on each
    /// link of the first there is what there would be with all of them.
    pub(crate) fn of_first(mut self, period: Period) -> Self {
        if let Some(ports) = &mut self.ports {
            ports.stand_for_all(period.workers);
        }
        self.period = Some(period);
        self
    }

    /// Virtual time: that of the last delivery.
    pub(crate) const fn now(&self) -> Seconds {
        self.now
    }

    /// The links and routes.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Wire bytes of all transmissions over a link that have ended, packets sent again included.
    ///
    /// # Panics
    /// If there is no such link.
    #[cfg(test)]
    pub(crate) fn carried(&self, link: LinkId) -> Bytes {
        self.carried[link.0]
    }

    /// Hands over a message. What happens to it happens in [`Fabric::advance`].
    ///
    /// # Panics
    /// If a rank is not one of the topology's, or it has no such route.
    pub(crate) fn send(&mut self, transfer: Transfer) -> FlowId {
        let flow = FlowId(self.sent);
        self.sent += 1;
        let mut route = self.topology.route(transfer.from, transfer.to);
        if let Some(period) = &self.period {
            for link in &mut route.links {
                *link = period.link(*link);
            }
        }
        let mut wire = self.framing.wire(transfer.payload);
        let mut latency = route.latency;
        if self.uncertain && !route.links.is_empty() {
            let packets = self.framing.packets(transfer.payload);
            let way = (transfer.from, transfer.to, transfer.channel);
            let sent = self.drawn.entry(way).or_default();
            let impairment = (self.topology).impairment(&route, packets, number(way, *sent));
            *sent += 1;
            latency += impairment.delay;
            wire += Framing::again(wire, packets, impairment.lost);
        }
        let message = Message {
            from: transfer.from,
            to: transfer.to,
            order: transfer.order,
            // To itself a worker sends nothing over a port.
            ready: transfer.from == transfer.to,
            // What is past has been shared out already; a message cannot take part in it
            // afterwards.
            start: transfer.start.max(self.now),
            payload: transfer.payload,
            wire,
            latency,
            links: route.links,
            cap: route.cap.map(super::Bandwidth::bytes_per_second),
            channel: transfer
                .channel
                .map(|channel| (transfer.from, transfer.to, channel)),
        };
        if let Some(channel) = message.channel {
            if let Some(behind) = self.channels.get_mut(&channel) {
                behind.push_back((flow, message));
                return flow;
            }
            // The channel is busy from here on, though its first message still waits for its start.
            self.channels.insert(channel, VecDeque::new());
        }
        let start = (message.start, message.order, flow);
        self.waiting.insert(start, message);
        flow
    }

    /// Moves time on to the next delivery and returns all deliveries of that instant in the order
    /// in which they were sent; nothing if nothing is in flight, or if what is in flight waits for
    /// a link that never comes back, which [`Fabric::stalled`] tells.
    pub(crate) fn advance(&mut self) -> Option<Vec<Delivery>> {
        self.advance_before(Seconds(f64::INFINITY))
    }

    /// As [`Fabric::advance`], as far as something happens before `until`: what follows is left, so
    /// that messages can still be sent then.
    pub(crate) fn advance_before(&mut self, until: Seconds) -> Option<Vec<Delivery>> {
        loop {
            let start = self
                .waiting
                .first_key_value()
                .map(|(&(start, ..), _)| start);
            let event = [start, self.next_end, self.next_switch()]
                .into_iter()
                .flatten()
                .min();
            let arrival = self.arriving.first_key_value().map(|(&(time, ..), _)| time);
            if event.into_iter().chain(arrival).all(|next| next >= until) {
                return None;
            }
            // Whatever happens at the instant of a delivery comes before it: it may add to the
            // deliveries.
            if let Some(event) = event
                // Also at the same instant: what begins there may be so small that it arrives
                // there, too.
                && arrival.is_none_or(|arrival| event <= arrival)
            {
                // A transmission's end may be worked out a rounding before now.
                self.now = self.now.max(event);
                self.step();
                continue;
            }
            self.now = arrival?;
            let mut deliveries = Vec::new();
            while let Some(first) = self.arriving.first_entry()
                && first.key().0 <= self.now
            {
                let ((time, from, order, flow), arriving) = first.remove_entry();
                if let Some(channel) = arriving.channel
                    && self.last_arrival.get(&channel) == Some(&(time, flow))
                {
                    self.last_arrival.remove(&channel);
                }
                match &mut self.ports {
                    Some(ports) if !arriving.taken => {
                        let at = ports.receive(arriving.to, arriving.payload, time);
                        let taken = true;
                        self.arriving
                            .insert((at, from, order, flow), Arriving { taken, ..arriving });
                    }
                    _ => deliveries.push(Delivery { flow, time }),
                }
            }
            if !deliveries.is_empty() {
                // Numbers of messages differ, so that an unstable sort has one outcome.
                deliveries.sort_unstable_by_key(|delivery| delivery.flow);
                return Some(deliveries);
            }
        }
    }

    /// After [`Fabric::advance`] returned nothing: the link that a message waits for in vain.
    pub(crate) fn stalled(&self) -> Option<NetError> {
        // The first that was sent, which does not depend on slots.
        let waits = self.transmitting.iter().flatten().min_by_key(|t| t.flow)?;
        let link = waits
            .message
            .links
            .iter()
            .find(|link| self.down[link.0] > 0)?;
        Some(NetError::LinkDown {
            link: self.topology.links()[link.0].name.clone(),
            since: self.topology.down_since(*link, self.now).to_string(),
            flow: waits.flow.0,
        })
    }

    /// When the next link gets another capacity, if that concerns anyone.
    fn next_switch(&self) -> Option<Seconds> {
        let switch = self.topology.switches().get(self.switched)?;
        // Else `advance` would go through outages that meet nobody, and move time past the last
        // delivery.
        let concerned = !self.waiting.is_empty() || self.transmitting.len() > self.free.len();
        concerned.then_some(switch.time)
    }

    /// Ends and starts the transmissions that end and start now, then shares the links anew.
    fn step(&mut self) {
        let now = self.now.0;
        if self.next_end.is_some_and(|end| end <= self.now) {
            for slot in self.progress.take_ended(now) {
                self.end(slot);
            }
        }
        self.switch();
        let mut begun = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= self.now
        {
            let ((_, order, flow), mut message) = first.remove_entry();
            match &mut self.ports {
                Some(ports) if !message.ready => {
                    message.ready = true;
                    let at = ports.send(message.from, message.payload, self.now);
                    // Back in line for the time at which its sender is done; `ready` keeps it from
                    // being asked again.
                    self.waiting.insert((at, order, flow), message);
                }
                _ => begun.extend(self.begin(flow, message)),
            }
        }
        self.sharing.solve();
        for bundle in self.sharing.take_moved() {
            for slot in self.members.of(bundle as usize) {
                let link = self.sharing.bottleneck(bundle as usize);
                self.progress.move_to(slot, link, now);
            }
        }
        for slot in begun {
            if let Some(transmission) = &self.transmitting[slot as usize] {
                let link = self.sharing.bottleneck(transmission.bundle);
                let bytes = transmission.message.wire.0 as f64;
                self.progress.begin(slot, bytes, link, now);
            }
        }
        let rated = self.sharing.take_rated();
        // After moves and beginnings: an end is foreseen from the flows that a link holds back by
        // now.
        let next = self.progress.set_rates(self.sharing.levels(), &rated, now);
        self.next_end = next.is_finite().then_some(Seconds(next));
    }

    /// Changes the capacity of links whose time has come.
    fn switch(&mut self) {
        // A pointer of its own, for the loop below changes the rest of `self`.
        let topology = Arc::clone(&self.topology);
        for switch in &topology.switches()[self.switched..] {
            if switch.time > self.now {
                break;
            }
            self.switched += 1;
            let link = switch.link;
            let down = &mut self.down[link.0];
            match switch.change {
                // Counted, because outages of one link may overlap: it is back when the last of
                // them is over.
                Change::Up => *down = down.saturating_sub(1),
                Change::Down => *down += 1,
                Change::Left(share) => self.left[link.0] = share,
            }
            let bandwidth = topology.links()[link.0].bandwidth.bytes_per_second();
            let capacity = match *down {
                0 => bandwidth * self.left[link.0],
                _ => 0.0,
            };
            self.sharing.set_capacity(link, capacity);
        }
    }
}
