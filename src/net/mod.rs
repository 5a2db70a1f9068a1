//! The emulated network: what it is made of, how long messages take, and what they weigh.
//!
//! ```text
//!   NetworkSpec ──▶ Topology (links, routes) ──▶ Fabric: flows share links ──▶ deliveries
//!        │                                          ▲                       in virtual time
//!        └────────▶ Framing: payload ──▶ wire bytes ┘
//!
//!   rows of floats ──Codec──▶ payload ──Communicator──▶ payload ──Codec──▶ rows of floats
//!                                          │
//!                          Ledger: epoch ──▶ Traffic: every message by layer, ends and kind
//! ```
//!
//! Nothing here knows a graph or a tensor. Bandwidths are bits per second, sizes are bytes, times
//! are seconds, and each is a type. Nothing depends on hash order, threads or a clock.

mod codec;
mod codec_key;
mod codecs;
mod collective;
mod communicator;
mod error;
pub mod fabric;
mod fit;
mod flows;
mod framing;
mod impairment;
mod ledger;
mod link;
mod presets;
mod quantity;
#[cfg(test)]
mod scenarios;
mod selection;
pub mod sharing;
mod spec;
mod tally;
mod topology;
mod traffic;
mod units;
mod wiring;

pub use codec::{Codec, RelativeError, Rows, floats, to_bytes};
pub use codec_key::{CodecKey, CodecLane, Way};
pub use codecs::{
    BF16, Bits, Buckets, CodingError, CodingErrors, Compose, Difference, DifferenceMemory, F16,
    FirstColumns, Gauge, HeldRows, Identity, Qsgd, Quantise, QuantiseRows, ROW_BITS, RandomColumns,
    RandomEntries, RowBits, Short, Signs, TopK, Watched, Watcher,
};
pub use collective::{
    ALL_REDUCE_CHOICES, AllReduceChoice, AllReduceKind, Collective, Combine, ExchangeKind,
    Hierarchy, Step, Steps, Tried, all_gather_steps, all_reduce_steps, all_reduce_traffic,
    broadcast_steps, gather_steps, halving_doubling_all_reduce, pairwise_rounds,
    parameter_server_all_reduce, ring_all_reduce, tree_all_reduce,
};
pub(crate) use collective::{Carrier, Taking, all_reduce_result};
pub use communicator::{
    Communicator, Inbox, Message, Outbox, Pending, PendingCollective, Reduce, f32_bytes,
};
pub use error::NetError;
pub(crate) use fabric::Snapshot;
pub use fabric::{Delivery, Fabric, FlowId, Transfer};
pub use fit::{LineFit, fit_line, fit_message_cost, fit_star, median};
pub use flows::{FlowResult, FlowSpec, run_flows};
pub use framing::Framing;
pub use impairment::{Impairment, Jitter, Loss};
pub use ledger::Ledger;
pub use link::{Link, LinkId};
pub use presets::{PRESETS, Preset, find as find_preset};
pub use selection::{Columns, Selection};
pub use spec::{
    DragonflySpec, Duplex, FailureSpec, FatTreeSpec, FramingKind, LinkSpec, Links, MachineSpec,
    NamedLinkSpec, NetworkSpec, RegionsSpec, RouteSpec, Routing, ServerSpec, TcpSpec, TopologyKind,
    TrunkSpec, WorkerLinkSpec,
};
pub use tally::Tally;
pub use topology::{Change, DeviceCost, MessageCost, Route, SumCost, Switch, Topology};
pub use traffic::{Count, Lane, Traffic, TrafficKind};
pub use units::{Bandwidth, Bytes, Seconds};
