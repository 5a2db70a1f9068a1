//! What the shared parts do, stated in advance: each file here writes down the phases of the part
//! of the same name.
//!
//! ```text
//! part (does it)               plan (says it)
//! Crossing, HaloExchange       CrossingPlan, arrived
//! Pass                         PassPlan
//! ask_owners                   Asks, ask_owners
//! move_nodes                   Moves
//! partition_parallel           ExchangePlanner
//! sum_steps                    StepPlanner
//! SummedPass                   SummedPlan
//! ```

mod batches;
mod crossing;
mod each;
mod exchange;
mod expected_batches;
mod features;
mod memory;
mod moves;
mod pass;
mod requests;
mod share;
mod steps;
mod stretches;
mod summed;

pub use crossing::{
    CrossingPlan, Wait, exchange as exchange_of, peers, receive_features, send_features,
};
pub use each::{pass_alone, pass_over, plan_each};
pub use exchange::{ExchangePlanner, Exchanges, Sending};
pub use features::{arrived, arrived_rows};
pub(crate) use memory::alone as memory_alone;
pub use memory::stored;
pub use pass::{Crosses, LayerPlan, PassPlan};
pub use requests::{Asks, ask_owners, exchange_features, finish_asking, start_asking};
pub use steps::{PlannedSteps, StepPlanner};
pub(crate) use stretches::Stretches;
pub(crate) use summed::{SummedPlan, exchange_of_lane};
