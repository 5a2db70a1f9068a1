//! A directed link.

use super::{Bandwidth, Jitter, Seconds};

/// Number of a link in its topology, `0..links`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// One direction of a cable, a NIC or a trunk, or both where they share one capacity: what its
/// flows share is its bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What people call it: `worker 3 out`.
    pub name: String,
    /// What all flows on it may carry together.
    pub bandwidth: Bandwidth,
    /// What it asks of the one-way latency of a route; the topology says how a route combines its
    /// links.
    pub latency: Seconds,
    /// What it adds to the latency of each message that crosses it.
    pub jitter: Option<Jitter>,
    /// Probability that it loses a packet.
    pub loss: f64,
}
