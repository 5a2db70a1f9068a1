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
pub(crate) mod fabric;
mod fit;
mod flows;
mod framing;
mod impairment;
mod ledger;
mod link;
mod memory;
mod presets;
mod quantity;
#[cfg(test)]
mod scenarios;
mod selection;
pub(crate) mod sharing;
mod spec;
mod tally;
mod topology;
mod traffic;
mod units;
mod wiring;

pub(crate) use codec::check_length;
pub use codec::{Codec, RelativeError, Rows, floats, to_bytes};
pub use codec_key::{CodecKey, CodecLane, Way};
pub use codecs::{
    BF16, Bits, CodingError, Compose, Difference, DifferenceMemory, F16, FirstColumns, Gauge,
    HeldRows, Identity, Qsgd, Quantise, QuantiseRows, RandomColumns, RandomEntries, RowBits, Short,
    Signs, TopK,
};
pub(crate) use codecs::{Buckets, CodingErrors, ROW_BITS, Watched, Watcher};
#[cfg(test)]
pub(crate) use collective::all_reduce_traffic;
pub(crate) use collective::{
    ALL_REDUCE_CHOICES, Carrier, Steps, Taking, all_reduce_result, pairwise_rounds,
};
pub use collective::{AllReduceChoice, AllReduceKind, Collective, ExchangeKind, Hierarchy, Tried};
#[cfg(feature = "mpi")]
pub(crate) use collective::{Combine, Step};
pub(crate) use communicator::f32_bytes;
pub use communicator::{Communicator, Inbox, Message, Outbox, Pending, PendingCollective, Reduce};
pub use error::NetError;
pub(crate) use fabric::{Fabric, FlowId, Snapshot, Transfer};
pub(crate) use fit::{LineFit, fit_line, fit_message_cost, fit_star, median};
pub use flows::{FlowResult, FlowSpec, run_flows};
pub use framing::Framing;
pub(crate) use impairment::Impairment;
pub use impairment::{Jitter, Loss};
pub use ledger::Ledger;
pub use link::{Link, LinkId};
pub(crate) use memory::CodecMemory;
pub(crate) use presets::PRESETS;
pub use selection::{Columns, Selection};
pub use spec::{
    DragonflySpec, Duplex, FailureSpec, FatTreeSpec, FramingKind, LinkSpec, Links, MachineSpec,
    NamedLinkSpec, NetworkSpec, RegionsSpec, RouteSpec, Routing, ServerSpec, TcpSpec, TopologyKind,
    TrunkSpec, WorkerLinkSpec,
};
pub use tally::Tally;
pub use topology::{Change, DeviceCost, MessageCost, Route, SumCost, Switch, Topology};
pub(crate) use topology::{Period, at_home, repeats};
pub use traffic::{Count, Lane, Traffic, TrafficKind};
pub use units::{Bandwidth, Bytes, Seconds};
