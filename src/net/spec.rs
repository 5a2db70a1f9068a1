//! What an experiment file may say about the network.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{AllReduceChoice, Bandwidth, Bytes, ExchangeKind, Jitter, Seconds};
use crate::defaults::count;
use crate::names::rows;

/// The `[network]` section: a preset, a topology described here, or a preset with changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// A named network with cited figures; see `grapevine list networks`.
    pub preset: Option<String>,
    /// How workers are wired. Default: `star`.
    #[serde(default)]
    pub topology: TopologyKind,
    /// Every worker's link, overriding the preset; or, of a custom topology, all links by name.
    pub link: Option<Links>,
    /// From every worker, where that is not the bandwidth of `link`.
    pub up: Option<Bandwidth>,
    /// To every worker, where that is not the bandwidth of `link`.
    pub down: Option<Bandwidth>,
    /// Whether the two directions of a worker's link, a cable or an uplink share one capacity.
    /// Default: `full`, they do not.
    pub duplex: Option<Duplex>,
    /// Whether headers count. Default: what the preset says, `ethernet` without one.
    pub framing: Option<FramingKind>,
    /// How all-reduce is carried out. Default: `auto`, the fastest on this network.
    #[serde(default)]
    pub all_reduce: AllReduceChoice,
    /// How the messages of exchanges travel. Default: `direct`, all at once.
    #[serde(default)]
    pub exchange: ExchangeKind,
    /// Extra latency of each message, drawn at its sender's link (in a ring, at each cable).
    pub jitter: Option<Jitter>,
    /// Probability that a packet is lost at its sender's link (in a ring, at each cable).
    pub loss: Option<f64>,
    /// What TCP does to a flow. Default: nothing.
    pub tcp: Option<TcpSpec>,
    /// o of the `LogGP` model: how long each message occupies its sender, and then its receiver,
    /// one message after another. Default: that of the preset, 0 without one.
    pub overhead: Option<Seconds>,
    /// g of the `LogGP` model: how far apart messages leave a worker, and arrive at one, at least.
    /// Default: 0.
    pub gap: Option<Seconds>,
    /// Number of racks.
    pub racks: Option<usize>,
    /// From each rack to the switch between racks; in a fat tree, from each switch to one above.
    pub uplink: Option<TrunkSpec>,
    /// Regions, and what is between them.
    pub regions: Option<RegionsSpec>,
    /// Machines of several workers, whose NICs take the place of workers in the topology. Default:
    /// those of the preset, if it is of machines; else each worker is one.
    pub machine: Option<MachineSpec>,
    /// How large a fat tree is, and which ways messages go. Default: the smallest.
    pub fat_tree: Option<FatTreeSpec>,
    /// How large a dragonfly is. Default: the smallest balanced one.
    pub dragonfly: Option<DragonflySpec>,
    /// What all traffic of an edge network passes.
    pub server: Option<ServerSpec>,
    /// Routes of a custom topology.
    #[serde(default, rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteSpec>,
    /// When links are down.
    #[serde(default, rename = "failure", skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureSpec>,
    /// A CSV file of what other traffic takes of links over time, `time,link,taken`. A relative
    /// path starts at the folder of the experiment file.
    pub background: Option<PathBuf>,
    /// Overrides for single workers.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerLinkSpec>,
}

impl NetworkSpec {
    /// How the network is called in tables: by its preset, as changed where the section says more
    /// than how messages are framed and exchanged; `custom` without one.
    pub fn name(&self) -> String {
        let untouched = Self {
            preset: self.preset.clone(),
            // These say how the same wires are used, so that the name still fits.
            framing: self.framing,
            all_reduce: self.all_reduce,
            exchange: self.exchange,
            ..Self::default()
        };
        match &self.preset {
            None => "custom".to_owned(),
            Some(preset) if *self == untouched => preset.clone(),
            Some(preset) => format!("{preset} (changed)"),
        }
    }
}

/// Wiring of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// One switch that never blocks; each worker has one NIC with an egress and an ingress link.
    #[default]
    Star,
    /// Stars in racks, joined by uplinks that their workers share.
    Racks,
    /// A cable from each worker to the next; messages go the shorter way.
    Ring,
    /// Stars in regions, with a wide-area link between any two.
    Regions,
    /// Switches in three levels, with as many cables up as down at each.
    FatTree,
    /// Routers in groups that are all joined, and a cable between any two groups.
    Dragonfly,
    /// Many clients with slow, uneven links to a server side that relays what they send each other.
    Edge,
    /// Named links and a route for each pair.
    Custom,
}

impl TopologyKind {
    /// All of them with what they are, for lists.
    pub(crate) const ALL: [(&'static str, &'static str); 8] = rows! {
        "star": "one switch that never blocks, a NIC for each worker; the default",
        "racks": "`racks` stars, each with an `uplink` that its workers share",
        "ring": "a cable from each worker to the next; messages go the shorter way",
        "regions": "stars far from each other: `regions` has latencies and a bandwidth between them",
        "fat-tree": "a `fat_tree` of equal switches in three levels, with an `uplink` from each to those above",
        "dragonfly": "groups of routers, all joined, with a cable between any two groups: `dragonfly`",
        "edge": "clients with `up` and `down`, joined by the links of a `server` side",
        "custom": "[[network.link]] and [[network.route]]",
    };
}

/// What stands under `link`: one description for all, or a list of links with names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Links {
    /// `link = { … }`: every worker's.
    Each(LinkSpec),
    /// `[[network.link]]`: of a custom topology.
    Named(Vec<NamedLinkSpec>),
}

impl From<LinkSpec> for Links {
    fn from(link: LinkSpec) -> Self {
        Self::Each(link)
    }
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        /// serde's own way for either of two forms forgets where in them an error was.
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Links;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table { bandwidth, latency } or a list of links with names")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Links, M::Error> {
                LinkSpec::deserialize(MapAccessDeserializer::new(map)).map(Links::Each)
            }

            fn visit_seq<S: SeqAccess<'de>>(self, entries: S) -> Result<Links, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(entries)).map(Links::Named)
            }
        }

        source.deserialize_any(Either)
    }
}

/// Bandwidth and latency of a worker's link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Each way, for example `"1Gbps"`.
    pub bandwidth: Bandwidth,
    /// One-way latency between any two workers, for example `"100us"`. In a ring: from a worker to
    /// the next; in an edge network: from a client to the server side.
    pub latency: Seconds,
}

/// A link of a custom topology. It has one direction: what routes use of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLinkSpec {
    /// Its name in routes.
    pub name: String,
    /// What its flows share.
    pub bandwidth: Bandwidth,
    /// What it adds to the latency of routes over it.
    pub latency: Seconds,
    /// Extra latency of each message on it.
    pub jitter: Option<Jitter>,
    /// Probability that it loses a packet.
    pub loss: Option<f64>,
}

/// Between racks and a core switch, or between other switches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrunkSpec {
    /// Each way.
    pub bandwidth: Bandwidth,
    /// One way; a message from rack to rack passes two uplinks.
    pub latency: Seconds,
    /// Extra latency of each message on its way up; between routers, both ways.
    pub jitter: Option<Jitter>,
    /// Probability that a packet is lost on its way up; between routers, both ways.
    pub loss: Option<f64>,
}

/// Regions of a wide-area network. Workers are dealt to them in blocks, in the order of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionsSpec {
    /// Of the link from each region to each other one, each way.
    pub bandwidth: Bandwidth,
    /// One way, from the row's region to the column's, beside the latency of the workers' links; as
    /// many rows as columns, as many as regions. Within a region nothing is added: the diagonal
    /// is 0.
    pub latency: Vec<Vec<Seconds>>,
    /// Extra latency of each message between regions.
    pub jitter: Option<Jitter>,
    /// Probability that a packet between regions is lost.
    pub loss: Option<f64>,
}

/// A machine of several workers, and what joins it with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Workers in a machine, in the order of ranks; the last machine may have fewer.
    pub gpus: usize,
    /// NICs of a machine, which its workers share in equal blocks. Default: 1, shared by all.
    #[serde(default = "count::<1>")]
    pub nics: usize,
    /// Each of them. A message to another machine passes two, and their latencies.
    pub nic: LinkSpec,
}

/// Size and routes of a fat tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FatTreeSpec {
    /// Ports of a switch, an even number: there is room for k³/4 workers, or NICs. Default: the
    /// smallest with room for all.
    pub k: Option<usize>,
    /// Which of the shortest ways a message goes. Default: `destination`.
    #[serde(default)]
    pub routing: Routing,
}

/// Which of several shortest ways the messages of a pair go, always the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// D-mod-k: the digits of the receiver's number choose the switches on the way up (Zahavi,
    /// *D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat
    /// Trees*, 2010).
    #[default]
    Destination,
    /// Equal-cost multi-path (RFC 2992): a hash of seed, sender and receiver chooses.
    Ecmp,
}

/// Size and cables of a dragonfly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DragonflySpec {
    /// p: workers, or NICs, at each router. Default: `global_links`.
    pub terminals: Option<usize>,
    /// a: routers in a group. Default: twice `global_links`.
    pub routers: Option<usize>,
    /// h: cables of a router to other groups. Default: the smallest with room for all.
    pub global_links: Option<usize>,
    /// g: groups, at most a·h + 1. Default: that many.
    pub groups: Option<usize>,
    /// Between routers of a group. Default: bandwidth of `link`, or of the NICs of machines, no
    /// latency.
    pub local: Option<TrunkSpec>,
    /// Between groups. Default: as between routers.
    pub global: Option<TrunkSpec>,
}

/// The server side of an edge network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// What all clients' messages share, each way.
    pub bandwidth: Bandwidth,
    /// Within the server side, one way.
    pub latency: Seconds,
    /// A worker that is there, with no link of its own. Default: all workers are clients.
    pub rank: Option<usize>,
}

/// The way from one worker to another in a custom topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Names of links, in order of travel.
    pub links: Vec<String>,
}

/// A time in which a link carries nothing. What is on it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// Name of a link; see the documentation of the topology.
    pub link: Option<String>,
    /// A worker, all of whose links fail.
    pub worker: Option<usize>,
    /// When it fails, in virtual time.
    pub from: Seconds,
    /// When it is back. Default: never.
    pub until: Option<Seconds>,
}

/// One worker's own figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerLinkSpec {
    /// Which worker.
    pub rank: usize,
    /// Its bandwidth, each way.
    pub bandwidth: Option<Bandwidth>,
    /// From it, where that is not its `bandwidth`.
    pub up: Option<Bandwidth>,
    /// To it, where that is not its `bandwidth`.
    pub down: Option<Bandwidth>,
    /// One-way latency of messages from or to it.
    pub latency: Option<Seconds>,
    /// Factor on its computing speed: 0.5 computes half as fast.
    pub compute: Option<f64>,
}

/// Whether two directions share one capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// Each direction has its own.
    #[default]
    Full,
    /// They share one.
    Half,
}

/// What TCP does to a flow beside taking its fair share.
///
/// `SimGrid`'s CM02 and LV08 are other models: there the share of a flow also depends on the
/// latency of its route, and LV08 adds 20,537 bytes over each bandwidth to it and charges
/// cross-traffic. So their names are not those of anything here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table: { window = \"4MiB\" } for what was \"cm02\", with latency_factor = 13.01 and \
                 bandwidth_factor = 0.97 in it for what was \"lv08\" (SimGrid's models of these names are others)"
)]
pub struct TcpSpec {
    /// Bytes that a flow may have under way, for example `"4MiB"`; not 0. It gets no more than that
    /// in each round trip, 2 · latency (Casanova and Marchal, INRIA RR-4596, 2002).
    pub window: Bytes,
    /// Latencies are multiplied by this, at most 1,000, after the cap was taken from them. Default
    /// 1; 13.01 was fitted to packet-level simulation (Velho and Legrand, `SIMUTools` 2009).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub latency_factor: f64,
    /// Bandwidths are multiplied by this, at most 1. Default 1; fitted: 0.97.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub bandwidth_factor: f64,
}

const fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one(factor: &f64) -> bool {
    *factor == 1.0
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
