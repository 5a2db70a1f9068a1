//! What strategies are built of.
//!
//! ```text
//! LayerwiseTrainer ── forward and backward, layer by layer, across the cut
//!   ├─ HaloExchange ── boundary rows forward, their gradients back, through a Codec
//!   └─ all-reduce ──── parameter gradients, all at once or by layer (Buckets)
//! CodecChoice ──────── which codec, at whatever ratio
//! Schedule ─────────── compression ratio by epoch
//! traffic ──────────── the same, stated in advance
//! ```

mod buckets;
mod codec_choice;
mod compressed;
mod halo;
mod layerwise;
mod partition_parallel;
mod schedule;
mod traffic;

pub use codec_choice::CodecChoice;
pub use compressed::{CodecState, Compression};
pub use halo::{HaloExchange, Wire};
pub use layerwise::{LayerwiseTrainer, LocalGraph, Step};
pub use partition_parallel::{EpochExchange, Exchange, Overlap, partition_parallel};
pub use schedule::{Schedule, Seen};
pub use traffic::{error_traffic, gradient_traffic, halo_traffic, model_gradient_traffic};
