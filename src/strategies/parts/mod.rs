//! What strategies are built of.
//!
//! ```text
//! LayerwiseTrainer ── forward and backward, layer by layer, across the cut
//!   ├─ HaloExchange ── boundary rows forward, their gradients back, through a Codec
//!   └─ all-reduce ──── parameter gradients, all at once or by layer (Buckets)
//! BoundaryShare ────── a part of the boundary, drawn anew in each epoch
//! Late ─────────────── rows and gradients that are used an epoch after they were sent
//! BatchTrainer ─────── the same over sampled neighbours, step by step
//! sum_steps ────────── the loop of strategies with steps of their own
//! RowExchange ──────── the strategies that differ in what becomes of boundary rows only
//! Compression ──────── their codec and its ratio by epoch, as experiment files say it
//! CodecChoice ──────── which codec, at whatever ratio
//! Schedule ─────────── compression ratio by epoch
//! traffic ──────────── the same, stated in advance
//! ```

mod asking;
mod batches;
mod boundary_share;
mod buckets;
mod chunking;
pub mod chunks;
mod codec_choice;
pub mod compressed;
mod crossing;
mod halo;
mod late;
mod layerwise;
mod partition_parallel;
mod pass;
mod row_exchange;
mod schedule;
mod stepwise;
mod sums;
mod traffic;

pub use asking::{Asked, ask_owners, exchange_features};
pub use batches::{BatchTrainer, batch_targets, draw_alone, draw_work};
pub use boundary_share::BoundaryShare;
pub use chunking::Chunking;
pub use codec_choice::CodecChoice;
pub use compressed::{CodecState, Compression};
pub use crossing::Crossing;
pub use halo::{HaloExchange, Wire};
pub use late::Late;
pub use layerwise::{LayerwiseTrainer, LocalGraph};
pub use partition_parallel::{EpochExchange, Exchange, Overlap, forward_error, partition_parallel};
pub use pass::{Pass, PassLayer, Step};
pub use row_exchange::RowExchange;
pub use schedule::{HIGHEST_RATIO, Schedule, Seen, ValidationMeasure};
pub use stepwise::sum_steps;
pub use sums::Sums;
pub use traffic::{
    error_traffic, exchange_traffic, gradient_traffic, halo_traffic, lane, model_gradient_traffic,
    pairs,
};
