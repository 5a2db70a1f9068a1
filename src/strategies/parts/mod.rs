//! What strategies are built of.
//!
//! ```text
//! LayerwiseTrainer ── forward and backward, layer by layer, across the cut
//!   ├─ HaloExchange ── boundary rows forward, their gradients back, through a Codec
//!   └─ all-reduce ──── parameter gradients
//! Schedule ─────────── compression ratio by epoch
//! traffic ──────────── the same, stated in advance
//! ```

mod compressed;
mod halo;
mod layerwise;
mod partition_parallel;
mod schedule;
mod traffic;

pub use compressed::compressed_exchange;
pub use halo::{HaloExchange, Wire};
pub use layerwise::{LayerwiseTrainer, LocalGraph, Step};
pub use partition_parallel::{EpochExchange, partition_parallel};
pub use schedule::Schedule;
pub use traffic::{gradient_traffic, halo_traffic};
