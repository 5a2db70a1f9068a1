//! What strategies are built of.
//!
//! ```text
//! LayerwiseTrainer ── forward and backward, layer by layer, across the cut
//!   ├─ HaloExchange ── boundary rows forward, their gradients back, through a Codec
//!   └─ all-reduce ──── parameter gradients by layer (Buckets), where not all at once
//! Learner ──────────── the sum of parameter gradients, encoded or seldom, and the step (Gradients)
//! BoundaryShare ────── a part of the boundary, drawn anew in each epoch
//! Staleness ────────── rows and gradients that are used an epoch after they were sent
//! Keeping ──────────── rows and gradients that are used again, for so many epochs or until they
//!                      change (ByChange)
//! Repartition ──────── nodes that change workers, every so many epochs
//! server ───────────── the mean of models at worker 0, of those who take part in a round
//! BatchTrainer ─────── the same over sampled neighbours, step by step
//! sum_steps ────────── the loop of strategies with steps of their own
//! ExchangePoint ────── whether rows cross before or after a layer's product
//! RowExchange ──────── the strategies that differ in what becomes of boundary rows only
//! Compression ──────── their codec and its ratio by epoch, as experiment files say it
//! CodecChoice ──────── which codec, at whatever ratio
//! Schedule ─────────── compression ratio by epoch
//! SummedPass ───────── forward and backward, where sums over neighbours are made with others
//! plan ─────────────── the same, stated in advance
//! ```

mod batches;
mod boundary_share;
mod buckets;
mod change;
mod chunking;
pub mod chunks;
mod codec_choice;
pub(crate) mod compressed;
mod crossing;
mod epoch_exchange;
mod exchange_point;
pub mod gradients;
mod halo;
mod kept;
mod layerwise;
pub mod options;
mod partition_parallel;
mod pass;
pub mod plan;
mod repartition;
mod requests;
mod row_exchange;
mod row_options;
mod schedule;
pub mod server;
mod staleness;
mod stepwise;
mod summed;
mod when;
mod wire;

pub use batches::{BatchTrainer, batch_targets};
pub(crate) use batches::{EpochOrder, draw_alone};
pub use boundary_share::BoundaryShare;
pub(crate) use change::ByChange;
pub use chunking::Chunking;
pub use codec_choice::CodecChoice;
pub use compressed::{CodecState, Compression, RowWires};
pub use crossing::Crossing;
pub use epoch_exchange::{EpochExchange, Exchange};
pub use exchange_point::ExchangePoint;
pub use gradients::{Gradients, Learner};
pub use halo::HaloExchange;
pub use kept::{Bound, Keeping, Senders};
pub use layerwise::{LayerwiseTrainer, LocalGraph};
pub(crate) use partition_parallel::forward_error;
pub use partition_parallel::partition_parallel;
pub use pass::{Crosses, Leaves, Pass, PassLayer, Step, as_leaf, differentiate, run_alone};
pub use repartition::Repartition;
pub(crate) use repartition::move_nodes;
pub use requests::{
    Asked, PendingRequests, ask_owners, exchange_features, finish_asking, receive_features,
    send_features, start_asking,
};
pub use row_exchange::RowExchange;
pub(crate) use schedule::HIGHEST_RATIO;
pub use schedule::{Feedback, Schedule, ValidationMeasure};
pub use staleness::Staleness;
pub use stepwise::{Stepwise, sum_steps};
pub(crate) use summed::{Lane, SummedPass, Totals, forward_lane, lane_outbox};
pub use when::When;
pub use wire::{Wire, WireAt};
