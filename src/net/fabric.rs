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
//! it has finished transmitting, so they arrive in the order in which they were sent.
//!
//! Time does not depend on anything but the messages: not on map order, threads or a clock.
//!
//! **Cost.** Each instant at which transmissions start or end costs one [`Sharing::solve`], O(F·R)
//! with F flows in the air over R links each, however many start or end in it. N equal messages
//! sent together thus cost O(N·R): an all-to-all among 256 workers, 65,280 messages, takes a tenth
//! of a second on one core. N messages that all end at different times cost O(N²·R): 4,032 of them
//! (64 workers) 0.2 s, 16,256 (128 workers) 3 s. Memory is O(messages not yet delivered).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::sharing::Sharing;
use super::{Bytes, Framing, LinkId, Seconds, Topology};

/// A message's number, in the order of [`Fabric::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A message to be carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Messages of one channel between the same two workers keep their order; without a channel a
    /// message is independent of all others.
    pub channel: Option<u64>,
    /// Encoded values; framing is added here.
    pub payload: Bytes,
    /// When it is handed over. A time before [`Fabric::now`] counts as now.
    pub start: Seconds,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Which message.
    pub flow: FlowId,
    /// When its last byte arrived.
    pub time: Seconds,
}

/// The network in virtual time.
#[derive(Clone, Debug)]
pub struct Fabric {
    topology: Arc<Topology>,
    framing: Framing,
    now: Seconds,
    sent: u64,
    sharing: Sharing,
    /// Not yet transmitting and next on their channel, by the time they start.
    waiting: BTreeMap<(Seconds, FlowId), Message>,
    /// Behind a message that waits or transmits. A channel is in here while it is busy.
    channels: BTreeMap<Channel, VecDeque<(FlowId, Message)>>,
    /// Transmitting, by slot of `sharing`.
    transmitting: Vec<Option<Transmission>>,
    progress: Vec<Progress>,
    /// When the next transmission ends under the present shares.
    next_end: Option<Seconds>,
    /// Propagating, by the time they arrive.
    arriving: BTreeSet<(Seconds, FlowId)>,
    carried: Vec<Bytes>,
}

/// Sender, receiver, and the sender's name for the channel.
type Channel = (usize, usize, u64);

#[derive(Clone, Debug)]
struct Message {
    start: Seconds,
    wire: Bytes,
    latency: Seconds,
    links: Vec<LinkId>,
    channel: Option<Channel>,
}

#[derive(Clone, Debug)]
struct Transmission {
    flow: FlowId,
    wire: Bytes,
    latency: Seconds,
    channel: Option<Channel>,
}

/// How far a transmission is; apart from the rest of it, because every event visits all of them.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Bytes left at `since`, and bytes per second from then on.
    remaining: f64,
    since: f64,
    rate: f64,
    /// When nothing is left, in seconds; infinite in a free slot.
    end: f64,
    /// 1e-12 of all its bytes.
    negligible: f64,
}

impl Progress {
    const FREE: Self = Self {
        remaining: 0.0,
        since: 0.0,
        rate: 0.0,
        end: f64::INFINITY,
        negligible: 0.0,
    };

    fn set_rate(&mut self, rate: f64, now: f64) {
        // Bit for bit: an unchanged rate must not add a rounding to the bytes left. A free slot
        // keeps rate 0.
        if rate.to_bits() != self.rate.to_bits() {
            self.remaining = (self.remaining - self.rate * (now - self.since)).max(0.0);
            self.since = now;
            self.rate = rate;
            self.end = now + self.remaining / rate;
        }
    }

    /// Whether it ends at `time`, but for rounding: what is left then is negligible, or takes less
    /// time than the clock can tell apart. Equal messages whose shares were rounded differently
    /// thus end together.
    fn ends_by(&self, time: f64) -> bool {
        let late = self.end - time;
        late * self.rate <= self.negligible || late <= 4.0 * f64::EPSILON * time
    }
}

impl Fabric {
    /// A quiet network at time zero.
    #[must_use]
    pub fn new(topology: Arc<Topology>, framing: Framing) -> Self {
        let capacity: Vec<f64> = topology
            .links()
            .iter()
            .map(|link| link.bandwidth.bytes_per_second())
            .collect();
        Self {
            carried: vec![Bytes::ZERO; capacity.len()],
            sharing: Sharing::new(capacity),
            topology,
            framing,
            now: Seconds::ZERO,
            sent: 0,
            waiting: BTreeMap::new(),
            channels: BTreeMap::new(),
            transmitting: Vec::new(),
            progress: Vec::new(),
            next_end: None,
            arriving: BTreeSet::new(),
        }
    }

    /// Virtual time: that of the last delivery.
    #[must_use]
    pub const fn now(&self) -> Seconds {
        self.now
    }

    /// The links and routes.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Wire bytes of all transmissions over a link that have ended.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn carried(&self, link: LinkId) -> Bytes {
        self.carried[link.0]
    }

    /// Hands over a message. What happens to it happens in [`Fabric::advance`].
    ///
    /// # Panics
    /// If a rank is not one of the topology's.
    pub fn send(&mut self, transfer: Transfer) -> FlowId {
        let flow = FlowId(self.sent);
        self.sent += 1;
        let route = self.topology.route(transfer.from, transfer.to);
        let message = Message {
            start: transfer.start.max(self.now),
            wire: self.framing.wire(transfer.payload),
            latency: route.latency,
            links: route.links,
            channel: transfer
                .channel
                .map(|channel| (transfer.from, transfer.to, channel)),
        };
        if let Some(channel) = message.channel {
            if let Some(behind) = self.channels.get_mut(&channel) {
                behind.push_back((flow, message));
                return flow;
            }
            self.channels.insert(channel, VecDeque::new());
        }
        self.waiting.insert((message.start, flow), message);
        flow
    }

    /// Moves time on to the next delivery and returns all deliveries of that instant in the order
    /// in which they were sent; nothing if nothing is in flight.
    pub fn advance(&mut self) -> Option<Vec<Delivery>> {
        loop {
            let start = self.waiting.first_key_value().map(|(&(start, _), _)| start);
            let event = [start, self.next_end].into_iter().flatten().min();
            let arrival = self.arriving.first().map(|&(time, _)| time);
            // Whatever happens at the instant of a delivery comes before it: it may add to the
            // deliveries.
            if let Some(event) = event
                && arrival.is_none_or(|arrival| event <= arrival)
            {
                self.now = self.now.max(event);
                self.step();
                continue;
            }
            self.now = arrival?;
            let later = self.arriving.split_off(&(self.now, FlowId(u64::MAX)));
            let arrived = std::mem::replace(&mut self.arriving, later);
            let deliveries = arrived
                .into_iter()
                .map(|(time, flow)| Delivery { flow, time });
            return Some(deliveries.collect());
        }
    }

    /// Ends and starts the transmissions that end and start now, then shares the links anew.
    fn step(&mut self) {
        if self.next_end.is_some_and(|end| end <= self.now) {
            for slot in 0..self.progress.len() {
                if self.progress[slot].ends_by(self.now.0) {
                    self.end(slot);
                }
            }
        }
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= self.now
        {
            let ((_, flow), message) = first.remove_entry();
            self.begin(flow, message);
        }
        self.sharing.solve();
        let mut next = f64::INFINITY;
        for (progress, &rate) in self.progress.iter_mut().zip(self.sharing.rates()) {
            progress.set_rate(rate, self.now.0);
            next = next.min(progress.end);
        }
        self.next_end = next.is_finite().then_some(Seconds(next));
    }

    fn begin(&mut self, flow: FlowId, message: Message) {
        let Message {
            wire,
            latency,
            links,
            channel,
            ..
        } = message;
        if links.is_empty() || wire == Bytes::ZERO {
            self.ended(flow, latency, channel);
            return;
        }
        let slot = self.sharing.insert(&links);
        if slot == self.transmitting.len() {
            self.transmitting.push(None);
            self.progress.push(Progress::FREE);
        }
        self.transmitting[slot] = Some(Transmission {
            flow,
            wire,
            latency,
            channel,
        });
        let bytes = wire.0 as f64;
        self.progress[slot] = Progress {
            remaining: bytes,
            since: self.now.0,
            rate: 0.0,
            end: self.now.0,
            negligible: 1e-12 * bytes,
        };
    }

    fn end(&mut self, slot: usize) {
        let Some(done) = self.transmitting[slot].take() else {
            return;
        };
        for link in self.sharing.links(slot) {
            self.carried[link.0] += done.wire;
        }
        self.sharing.remove(slot);
        self.progress[slot] = Progress::FREE;
        self.ended(done.flow, done.latency, done.channel);
    }

    /// The last byte has left: the message arrives a latency later, and the next of its channel may
    /// start.
    fn ended(&mut self, flow: FlowId, latency: Seconds, channel: Option<Channel>) {
        self.arriving.insert((self.now + latency, flow));
        let Some(channel) = channel else { return };
        match self
            .channels
            .get_mut(&channel)
            .and_then(VecDeque::pop_front)
        {
            Some((next, message)) => {
                self.waiting
                    .insert((message.start.max(self.now), next), message);
            }
            None => {
                self.channels.remove(&channel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Bandwidth, LinkSpec};
    use proptest::prelude::*;

    fn fabric(workers: usize, latency: f64) -> Fabric {
        let link = LinkSpec {
            bandwidth: Bandwidth::new(8e6).unwrap(),
            latency: Seconds(latency),
        };
        Fabric::new(
            Arc::new(Topology::star(&vec![link; workers])),
            Framing::none(),
        )
    }

    fn message(from: usize, to: usize, channel: Option<u64>, payload: u64, start: f64) -> Transfer {
        Transfer {
            from,
            to,
            channel,
            payload: Bytes(payload),
            start: Seconds(start),
        }
    }

    fn deliveries(fabric: &mut Fabric) -> Vec<(u64, f64)> {
        let mut all = Vec::new();
        while let Some(some) = fabric.advance() {
            all.extend(
                some.into_iter()
                    .map(|delivery| (delivery.flow.0, delivery.time.0)),
            );
        }
        all
    }

    #[test]
    fn nothing_in_flight_is_nothing_to_wait_for() {
        assert_eq!(fabric(2, 0.5).advance(), None);
    }

    #[test]
    fn messages_of_one_channel_go_one_after_another_in_the_order_sent() {
        let mut fabric = fabric(2, 0.5);
        // The second is ready earlier and shorter, and still second; the third is on a channel of
        // its own.
        fabric.send(message(0, 1, Some(1), 2_000_000, 1.0));
        fabric.send(message(0, 1, Some(1), 1_000_000, 0.0));
        fabric.send(message(0, 1, Some(2), 500_000, 0.0));
        assert_eq!(deliveries(&mut fabric), [(2, 1.0), (0, 3.5), (1, 4.5)]);
    }

    #[test]
    fn a_channel_pays_latency_once_in_a_row_of_messages() {
        let mut fabric = fabric(2, 10.0);
        for _ in 0..3 {
            fabric.send(message(0, 1, Some(0), 1_000_000, 0.0));
        }
        assert_eq!(deliveries(&mut fabric), [(0, 11.0), (1, 12.0), (2, 13.0)]);
    }

    #[test]
    fn empty_messages_on_a_channel_arrive_together_in_order() {
        let mut fabric = fabric(2, 0.5);
        for _ in 0..3 {
            fabric.send(message(0, 1, Some(0), 0, 1.0));
        }
        let arrived = fabric.advance().unwrap();
        assert_eq!(
            arrived
                .iter()
                .map(|delivery| delivery.flow.0)
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert_eq!(fabric.now(), Seconds(1.5));
    }

    #[test]
    fn a_start_in_the_past_counts_as_now() {
        let mut fabric = fabric(2, 0.5);
        fabric.send(message(0, 1, None, 1_000_000, 0.0));
        fabric.advance();
        fabric.send(message(0, 1, None, 1_000_000, 0.0));
        assert_eq!(deliveries(&mut fabric), [(1, 3.0)]);
    }

    #[test]
    fn late_in_a_long_run_short_messages_still_arrive() {
        // At 1e9 s a double tells times 1e-7 s apart, much longer than a message of one byte takes:
        // it must not get stuck.
        let mut fabric = fabric(3, 1e-9);
        for from in [0, 1] {
            fabric.send(message(from, 2, None, 1, 1e9));
        }
        assert_eq!(deliveries(&mut fabric).len(), 2);
    }

    #[test]
    fn an_all_to_all_among_256_workers_is_one_instant() {
        let mut fabric = fabric(256, 0.5);
        for from in 0..256 {
            for to in (0..256).filter(|&to| to != from) {
                fabric.send(message(from, to, Some(0), 1000, 0.0));
            }
        }
        let arrived = fabric.advance().unwrap();
        assert_eq!(arrived.len(), 65_280);
        assert!((fabric.now().0 - 0.755).abs() < 1e-9 && fabric.advance().is_none());
    }

    proptest! {
        #[test]
        fn every_message_arrives_once_and_links_carry_exactly_its_bytes(
            sent in prop::collection::vec((0..4_usize, 0..4_usize, 0..3_u64, 0..5_000_u64, 0..9_u8), 1..40)
        ) {
            let mut fabric = fabric(4, 0.01);
            let mut expected = vec![Bytes::ZERO; 8];
            for &(from, to, channel, payload, start) in &sent {
                let channel = (channel > 0).then_some(channel);
                fabric.send(message(from, to, channel, payload, f64::from(start) * 1e-3));
                for link in fabric.topology().route(from, to).links {
                    expected[link.0] += Bytes(payload);
                }
            }
            let arrived = deliveries(&mut fabric);
            prop_assert!(arrived.is_sorted_by_key(|(flow, time)| (Seconds(*time), *flow)));
            let mut flows: Vec<u64> = arrived.iter().map(|(flow, _)| *flow).collect();
            flows.sort_unstable();
            prop_assert_eq!(flows, (0..sent.len() as u64).collect::<Vec<_>>());
            for (link, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(fabric.carried(LinkId(link)), expected);
                // 1 MB/s from time zero on: no link has carried more than it can.
                prop_assert!(expected.0 as f64 <= fabric.now().0 * 1e6 * (1.0 + 1e-9));
            }
            let time = |flow: usize| arrived.iter().find(|(id, _)| *id == flow as u64).map(|(_, at)| *at);
            for later in 0..sent.len() {
                for earlier in 0..later {
                    let same = |i: usize| (sent[i].0, sent[i].1, sent[i].2);
                    if same(earlier) == same(later) && sent[later].2 > 0 {
                        prop_assert!(time(earlier) <= time(later));
                    }
                }
            }
        }
    }
}
