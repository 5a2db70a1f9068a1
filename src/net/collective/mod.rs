//! Collectives as message schedules: pure data, read by the plan and carried out by whatever moves
//! bytes.
//!
//! ```text
//!   algorithm, rank, workers, elements ──▶ [Step, Step, …] ──▶ Traffic (plan)
//!                                               └───────────▶ Communicator (messages)
//! ```
//!
//! Workers take their steps without any other synchronisation than the messages. Numbers of workers
//! and of elements are arbitrary; chunks that do not divide evenly have their exact sizes.

mod choice;
mod halving_doubling;
mod pairwise;
mod ring;
mod step;
#[cfg(test)]
mod tests;
mod tree;

use super::{Lane, Traffic, TrafficKind, f32_bytes};

pub use choice::{ALL_REDUCE_CHOICES, AllReduceChoice, AllReduceKind};
pub use halving_doubling::halving_doubling_all_reduce;
pub use pairwise::{ExchangeKind, pairwise_rounds};
pub use ring::ring_all_reduce;
pub use step::{Combine, Step};
pub use tree::{broadcast_steps, gather_steps, parameter_server_all_reduce, tree_all_reduce};

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements.
#[must_use]
pub fn all_reduce_steps(kind: AllReduceKind, rank: usize, size: usize, len: usize) -> Vec<Step> {
    match kind.chosen(size, f32_bytes(len)) {
        AllReduceKind::HalvingDoubling => halving_doubling_all_reduce(rank, size, len),
        AllReduceKind::Tree => tree_all_reduce(rank, size, len),
        AllReduceKind::ParameterServer => parameter_server_all_reduce(rank, size, len),
        // `chosen` never returns `Auto`.
        AllReduceKind::Ring | AllReduceKind::Auto { .. } => ring_all_reduce(rank, size, len),
    }
}

/// All messages of one all-reduce of `len` floats among `size` workers, on layer 0, for plans.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
pub fn all_reduce_traffic(
    algorithm: AllReduceKind,
    size: usize,
    len: usize,
    kind: TrafficKind,
) -> Traffic {
    let mut traffic = Traffic::new();
    for from in 0..size {
        for step in all_reduce_steps(algorithm, from, size, len) {
            if let Some((to, elements)) = step.send {
                let lane = Lane {
                    layer: 0,
                    from: from as u32,
                    to: to as u32,
                    kind,
                };
                traffic.add(lane, f32_bytes(elements.len()));
            }
        }
    }
    traffic
}
