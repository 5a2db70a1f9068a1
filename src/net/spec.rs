//! What an experiment file may say about the network.

use serde::{Deserialize, Serialize};

use super::{AllReduceChoice, Bandwidth, ExchangeKind, Seconds};

/// The `[network]` section: a preset, a topology described here, or a preset with changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// A named network with cited figures; see `grapevine list networks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// How workers are wired. Default: `star`.
    #[serde(default)]
    pub topology: TopologyKind,
    /// Every worker's link, overriding the preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSpec>,
    /// Whether headers count. Default: what the preset says, `ethernet` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<FramingKind>,
    /// How all-reduce is carried out. Default: `ring`.
    #[serde(default)]
    pub all_reduce: AllReduceChoice,
    /// How the messages of exchanges travel. Default: `direct`, all at once.
    #[serde(default)]
    pub exchange: ExchangeKind,
    /// Overrides for single workers.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerLinkSpec>,
}

/// Wiring of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// One switch that never blocks; each worker has one NIC with an egress and an ingress link.
    #[default]
    Star,
}

/// Bandwidth and latency of a worker's link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Each way, for example `"1Gbps"`.
    pub bandwidth: Bandwidth,
    /// One-way latency between any two workers, for example `"100us"`.
    pub latency: Seconds,
}

/// One worker's own figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerLinkSpec {
    /// Which worker.
    pub rank: usize,
    /// Its bandwidth, each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// One-way latency of messages from or to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Seconds>,
    /// Factor on its computing speed: 0.5 computes half as fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<f64>,
}

/// Which headers are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FramingKind {
    /// Message header, TCP/IPv4 and Ethernet around every packet of 1500 bytes.
    #[default]
    Ethernet,
    /// Payload bytes are wire bytes.
    None,
}
