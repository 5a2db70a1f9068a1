//! Graphs: where they come from, how they are divided, and what then has to cross the cut.
//!
//! ```text
//!  bundled  loaders/  sbm  csbm  rmat               spec (what an experiment file may say)
//!        \     |      /   /     /
//!         RawDataset ── split ──→ Dataset: Csr, Features, labels, Split
//!                                    │
//!                     partition/ ──→ Partition ──→ BoundaryPlan: who sends which rows to whom
//!                                                       │
//!                                                 PartitionStats: cut, balance, coverage
//!
//!  Steps: which nodes train when ──→ Sampler: which neighbours they see ──→ SampledLayer each
//! ```
//!
//! Nothing here trains or sends. Everything random is keyed by a seed, and nothing depends on how
//! many threads there are.

mod batches;
mod belief;
mod boundary;
mod bundled;
mod catalogue;
mod coded;
mod counts;
mod csbm;
mod csr;
mod dataset;
mod division;
mod error;
mod expected;
mod features;
mod fingerprint;
mod labels;
mod larger;
mod lists;
mod loaders;
mod mapped;
mod metric;
mod normal;
mod order;
mod partition;
mod peers;
mod profile;
mod propagated;
mod reading;
mod rehearsal;
mod rmat;
mod sample;
mod sampler;
mod sbm;
mod shards;
mod source;
mod spec;
mod split;
mod stats;
mod synthetic;
mod task;

pub use crate::memory::Shortage;
pub use batches::{BatchSpec, Batches, Steps, shuffled};
pub use boundary::{BoundaryPlan, Part};
pub(crate) use bundled::BUNDLED;
pub use bundled::cora;
pub(crate) use catalogue::{
    PublishedFile, PublishedSet, data_folder, dataset_names, keep_data_in, published_set,
    published_sets,
};
pub use coded::CodedRows;
pub use counts::{BoundaryCounts, PartCounts};
pub use csr::Csr;
pub use dataset::{Dataset, RawDataset, Split};
pub use division::{Chunks, Division};
pub use error::GraphError;
pub use expected::{Counted, ExpectedGraph};
pub(crate) use expected::{CutFit, FitEnd, PUBLISHED, PublishedSize, Samples, round, sampling};
pub use features::{Features, SparseRows};
pub use labels::{Label, Labels, Several};
pub(crate) use larger::Room;
pub(crate) use lists::Lists;
pub(crate) use loaders::all_arrays;
pub use metric::{Metric, Task, TaskSpec};
pub(crate) use partition::MOST_WORKERS;
pub use partition::{CutPart, EdgeMethod, Known, Partition, VertexCut};
pub use peers::Peers;
pub(crate) use peers::places;
pub(crate) use profile::DataProfile;
pub use reading::Reading;
pub(crate) use reading::{DataSummary, EdgeCount};
pub use rehearsal::Form as BatchForm;
pub(crate) use rehearsal::{LayerDraw, Rehearsal, StepDraws, seeds_of};
pub(crate) use rmat::{EDGE_FACTOR, are_quadrants};
pub use sampler::{SampledLayer, Sampler, View};
pub(crate) use shards::PartData;
pub use shards::{Divided, Sharding, Shards, Whole};
pub use spec::{
    Balance, CountSpec, DatasetSpec, FeatureSource, FeatureStorage, FitSpec, Format, LabelColumns,
    NodeOrder, Objective, PartitionMethod, PartitionSpec, RmatCounts, SplitFractions,
    SplitPerClass, SplitSpec, SyntheticSpec,
};
pub(crate) use stats::PartitionStats;
