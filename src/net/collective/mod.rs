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

mod alike;
mod all_gather;
mod choice;
mod halving_doubling;
mod hierarchical;
mod pairwise;
mod result;
mod ring;
mod step;
mod taking;
#[cfg(test)]
mod tests;
mod tree;
mod tried;

use std::sync::Arc;

pub(crate) use all_gather::all_gather_steps;
pub(crate) use choice::ALL_REDUCE_CHOICES;
pub use choice::{AllReduceChoice, AllReduceKind};
pub(crate) use halving_doubling::halving_doubling_all_reduce;
pub use hierarchical::Hierarchy;
pub use pairwise::ExchangeKind;
pub(crate) use pairwise::pairwise_rounds;
pub(crate) use result::all_reduce_result;
pub(crate) use ring::ring_all_reduce;
pub(crate) use step::Steps;
#[cfg(feature = "mpi")]
pub(crate) use step::{Combine, Step};
pub(crate) use taking::{Carrier, Taking};
#[cfg(test)]
pub(crate) use tests::all_reduce_traffic;
pub(crate) use tree::{
    broadcast_steps, gather_steps, parameter_server_all_reduce, tree_all_reduce,
};
pub use tried::Tried;

/// What all workers do with their values together. Lengths are in 4-byte floats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Everybody gets the sum, or the largest, of so many values.
    AllReduce(usize),
    /// Everybody gets so many values of a root.
    Broadcast {
        /// Whose values.
        root: usize,
        /// How many.
        len: usize,
    },
    /// A root gets everybody's values.
    Gather {
        /// Who gets them.
        root: usize,
        /// How many each worker has.
        lens: Arc<[usize]>,
    },
    /// Everybody gets everybody's values, of which each worker has so many.
    AllGather(Arc<[usize]>),
}

impl Collective {
    /// The steps of worker `rank` of `size`.
    pub(crate) fn steps(&self, all_reduce: &AllReduceKind, rank: usize, size: usize) -> Steps {
        match self {
            Self::AllReduce(len) => all_reduce_steps(all_reduce, rank, size, *len),
            Self::Broadcast { root, len } => {
                Box::new(broadcast_steps(rank, size, *root, *len).into_iter())
            }
            Self::Gather { root, lens } => Box::new(gather_steps(rank, *root, lens).into_iter()),
            Self::AllGather(lens) => Box::new(all_gather_steps(all_reduce, rank, lens).into_iter()),
        }
    }
}

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements.
pub(crate) fn all_reduce_steps(
    kind: &AllReduceKind,
    rank: usize,
    size: usize,
    len: usize,
) -> Steps {
    let steps = match kind.chosen(len) {
        AllReduceKind::HalvingDoubling => halving_doubling_all_reduce(rank, size, len),
        AllReduceKind::Tree => tree_all_reduce(rank, size, len),
        AllReduceKind::ParameterServer => parameter_server_all_reduce(rank, size, len),
        AllReduceKind::Hierarchical(levels) => levels.steps(rank, len),
        // `chosen` never returns `Auto`.
        AllReduceKind::Ring | AllReduceKind::Auto(_) => {
            return Box::new(ring_all_reduce(rank, size, len));
        }
    };
    Box::new(steps.into_iter())
}
