//! What is in flight at a moment, relative to it.

use super::super::Seconds;
use super::{Channel, Fabric, Message, Transmission};

/// A share of the time since the beginning by which rounding might part two things of one instant.
const INSTANT: f64 = 1e-12;

/// All that the future of a simulation depends on at a moment, in a fixed order, with times
/// relative to that moment: from equal states on, the same happens in the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    counts: Vec<u64>,
    times: Vec<f64>,
}

impl Snapshot {
    /// Adds a number that has to be the same.
    pub(crate) fn count(&mut self, count: usize) {
        self.counts.push(count as u64);
    }

    /// Adds numbers that have to be the same.
    pub(crate) fn counts<const N: usize>(&mut self, counts: [usize; N]) {
        self.counts.extend(counts.map(|count| count as u64));
    }

    /// Adds a time, as seen from the moment.
    pub(crate) fn time(&mut self, time: Seconds, moment: Seconds) {
        self.times.push(time.0 - moment.0);
    }

    /// Whether both are the same, with times that differ by no more than rounding.
    pub(crate) fn is_as(&self, other: &Self, rounding: f64) -> bool {
        let mut times = self.times.iter().zip(&other.times);
        self.counts == other.counts
            && self.times.len() == other.times.len()
            && times.all(|(a, b)| (a - b).abs() <= rounding)
    }

    fn channel(&mut self, channel: Option<Channel>) {
        let (from, to, name) = channel.unwrap_or((usize::MAX, 0, 0));
        self.counts([from, to, name as usize]);
    }

    fn message(&mut self, message: &Message, moment: Seconds) {
        self.channel(message.channel);
        let ready = usize::from(message.ready);
        self.counts([message.from, message.to, message.payload.0 as usize, ready]);
        self.time(message.start, moment);
    }
}

impl Fabric {
    /// Adds what is in flight, as seen from `moment`. `false` if what happens to it depends on more
    /// than that: on a message's number, where links are uncertain, or on the time of day, where
    /// their capacity has yet to change.
    pub(crate) fn snapshot(&self, into: &mut Snapshot, moment: Seconds) -> bool {
        if self.uncertain || self.switched < self.topology.switches().len() {
            return false;
        }
        into.time(self.now, moment);
        // In the order of channels: what happens at one instant has no order of its own.
        let mut waiting: Vec<_> = self.waiting.iter().collect();
        waiting.sort_by_key(|((.., flow), message)| (message.channel, *flow));
        into.count(waiting.len());
        for (_, message) in waiting {
            into.message(message, moment);
        }
        into.count(self.channels.len());
        for (channel, behind) in &self.channels {
            into.channel(Some(*channel));
            into.count(behind.len());
            for (_, message) in behind {
                into.message(message, moment);
            }
        }
        self.transmitting(into);
        let mut coming: Vec<_> = self.arriving.iter().collect();
        coming.sort_by_key(|((.., flow), arriving)| (arriving.channel, *flow));
        into.count(coming.len());
        for ((time, ..), arriving) in coming {
            into.time(*time, moment);
            into.channel(arriving.channel);
            let taken = usize::from(arriving.taken);
            into.counts([arriving.to, arriving.payload.0 as usize, taken]);
        }
        if let Some(ports) = &self.ports {
            for free in ports.free() {
                into.time(free.max(self.now), moment);
            }
        }
        true
    }

    /// Whether nothing happens for longer than rounding might part two things of one instant.
    pub(crate) fn is_quiet(&self) -> bool {
        let start = self
            .waiting
            .first_key_value()
            .map(|(&(start, ..), _)| start);
        let arrival = self.arriving.first_key_value().map(|(&(time, ..), _)| time);
        let next = [start, self.next_end, arrival].into_iter().flatten().min();
        next.is_some_and(|next| next.0 - self.now.0 > INSTANT * self.now.0)
    }

    /// Adds what is being transmitted, and what it lacks: in seconds of its narrowest link.
    fn transmitting(&self, into: &mut Snapshot) {
        let slots = (0..).zip(&self.transmitting);
        let mut all: Vec<_> = slots
            .filter_map(|(at, it)| Some((at, it.as_ref()?)))
            .collect();
        all.sort_by_key(|(_, it)| (it.message.channel, it.flow));
        into.count(all.len());
        for (slot, Transmission { message, .. }) in all {
            into.channel(message.channel);
            let (payload, wire) = (message.payload.0 as usize, message.wire.0 as usize);
            into.counts([message.to, payload, wire]);
            let links = message.links.iter();
            let width = links.map(|link| self.topology.links()[link.0].bandwidth);
            let narrowest = width.map(super::super::Bandwidth::bytes_per_second);
            let narrowest = narrowest.fold(f64::INFINITY, f64::min);
            let left = self.progress.remaining(slot, self.now.0) / narrowest;
            into.time(Seconds(left), Seconds::ZERO);
        }
    }
}
