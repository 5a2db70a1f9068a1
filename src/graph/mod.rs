//! Graphs: where they come from, how they are divided, and what then has to cross the cut.
//!
//! ```text
//!  bundled  loaders/  sbm  rmat                     spec (what an experiment file may say)
//!        \     |      /   /
//!         RawDataset ── split ──→ Dataset: Csr, Features, labels, Split
//!                                    │
//!                     partition/ ──→ Partition ──→ BoundaryPlan: who sends which rows to whom
//!                                                       │
//!                                                 PartitionStats: cut, balance, coverage
//! ```
//!
//! Nothing here trains or sends. Everything random is keyed by a seed, and nothing depends on how
//! many threads there are.

mod boundary;
mod bundled;
mod csr;
mod dataset;
mod error;
mod features;
mod loaders;
mod normal;
mod partition;
mod peers;
mod rmat;
mod sbm;
mod spec;
mod split;
mod stats;
mod synthetic;

pub use boundary::{BoundaryPlan, Chunks, Part};
pub use bundled::{BUNDLED, cora};
pub use csr::Csr;
pub use dataset::{Dataset, RawDataset};
pub use error::GraphError;
pub use features::Features;
pub use partition::Partition;
pub use peers::Peers;
pub use spec::{
    DatasetSpec, Format, PartitionMethod, PartitionSpec, SplitFractions, SplitPerClass, SplitSpec,
    SyntheticSpec,
};
pub use split::Split;
pub use stats::PartitionStats;
