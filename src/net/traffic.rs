//! What crossed the network: message sizes by layer, direction and kind.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Bytes, Framing};
use crate::names::named;

named! {
    /// What a message carries, in the order of the result columns. Every byte belongs to exactly
    /// one kind.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum TrafficKind {
        /// Raw node features.
        #[default]
        Feature = "feature",
        /// Hidden node representations on the way forward.
        Activation = "activation",
        /// Their gradients on the way back.
        ActivationGradient = "activation_gradient",
        /// Gradients of model parameters.
        ParameterGradient = "parameter_gradient",
        /// Model parameters.
        Parameter = "parameter",
        /// Graph structure and features moved because nodes change workers.
        Repartition = "repartition",
        /// Identifiers of sampled nodes.
        Sample = "sample",
        /// Scalars and other coordination.
        Control = "control",
    }
}

impl TrafficKind {
    /// Whether this is *node data*: features, activations and their gradients.
    pub const fn is_node_data(self) -> bool {
        matches!(
            self,
            Self::Feature | Self::Activation | Self::ActivationGradient
        )
    }
}

impl fmt::Display for TrafficKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a message belongs: its model layer, its two ends and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// Model layer whose input (or gradient) travels; 0 for what belongs to no layer.
    pub layer: u32,
    /// Sending worker.
    pub from: u32,
    /// Receiving worker.
    pub to: u32,
    /// What it carries.
    pub kind: TrafficKind,
}

impl Lane {
    /// That of a message from worker `from` to worker `to`.
    pub const fn new(layer: u32, from: usize, to: usize, kind: TrafficKind) -> Self {
        Self {
            layer,
            from: from as u32,
            to: to as u32,
            kind,
        }
    }
}

/// Messages and bytes, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of messages.
    pub messages: u64,
    /// Encoded values, without framing.
    pub payload: Bytes,
    /// What the links carry: payload with framing.
    pub wire: Bytes,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.payload += other.payload;
        self.wire += other.wire;
    }
}

/// The messages of some stretch of a run as a multiset: how many of which size went where.
///
/// The ledger of what was sent and the plan of what will be sent are both of this type, so "plan
/// equals ledger" is plain equality, message for message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    // Ordered, so that tables and sums come out in the same order on every run.
    messages: BTreeMap<(Lane, Bytes), u64>,
}

impl Traffic {
    /// No messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one message of `payload` bytes.
    pub fn add(&mut self, lane: Lane, payload: Bytes) {
        self.add_many(lane, payload, 1);
    }

    /// Adds `count` messages of `payload` bytes each.
    pub(crate) fn add_many(&mut self, lane: Lane, payload: Bytes, count: u64) {
        // An entry of none would make two equal records differ.
        if count > 0 {
            *self.messages.entry((lane, payload)).or_default() += count;
        }
    }

    /// Adds all messages of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.merge_many(other, 1);
    }

    /// Adds all messages of `other` so many times.
    pub(super) fn merge_many(&mut self, other: &Self, times: u64) {
        for (&(lane, payload), &count) in &other.messages {
            self.add_many(lane, payload, count * times);
        }
    }

    /// The same messages so many times.
    pub fn times(&self, times: usize) -> Self {
        let mut repeated = Self::new();
        for (lane, payload, count) in self.iter() {
            repeated.add_many(lane, payload, count * times as u64);
        }
        repeated
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// `(lane, payload of one message, number of such messages)`, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Lane, Bytes, u64)> + '_ {
        self.messages
            .iter()
            .map(|(&(lane, payload), &count)| (lane, payload, count))
    }

    /// Sums per lane, with the wire bytes that `framing` makes of each message.
    pub(crate) fn by_lane(&self, framing: &Framing) -> BTreeMap<Lane, Count> {
        let mut sums: BTreeMap<Lane, Count> = BTreeMap::new();
        for (lane, payload, count) in self.iter() {
            *sums.entry(lane).or_default() += Count {
                messages: count,
                payload: payload * count,
                // Message by message: packets are rounded up for each, so sums of payloads would
                // not do.
                wire: framing.wire(payload) * count,
            };
        }
        sums
    }

    /// Payload of one kind over all lanes.
    pub fn payload_of(&self, kind: TrafficKind) -> Bytes {
        self.iter()
            .filter(|(lane, _, _)| lane.kind == kind)
            .map(|(_, payload, count)| payload * count)
            .sum()
    }

    /// Sum over everything.
    pub fn total(&self, framing: &Framing) -> Count {
        let mut total = Count::default();
        for count in self.by_lane(framing).into_values() {
            total += count;
        }
        total
    }

    /// The first lane on which two records differ, with both sums, for error messages. The sums may
    /// be equal, of messages of other sizes.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<(Lane, Count, Count)> {
        let framing = Framing::none();
        let sum = |record: &Self, lane| record.by_lane(&framing).remove(&lane).unwrap_or_default();
        let messages = self.messages.keys().chain(other.messages.keys());
        let differing = messages.filter(|key| self.messages.get(key) != other.messages.get(key));
        let lane = differing.map(|(lane, _)| *lane).min()?;
        Some((lane, sum(self, lane), sum(other, lane)))
    }
}
