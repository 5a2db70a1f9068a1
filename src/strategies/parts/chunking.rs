//! How nodes are dealt into more parts than there are workers.

use serde::Deserialize;

use crate::graph::{PartitionMethod, PartitionSpec};

/// How nodes are dealt into chunks.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// At random.
    #[default]
    Random,
    /// By METIS.
    Metis,
    /// As the experiment's partition.
    Partition,
}

impl Chunking {
    /// The partition into so many `chunks`, given the one the experiment asks for.
    pub fn divide(self, asked: &PartitionSpec, chunks: usize) -> PartitionSpec {
        let mut spec = PartitionSpec {
            workers: chunks,
            ..asked.clone()
        };
        spec.method = match self {
            Self::Random => PartitionMethod::Random,
            Self::Metis => PartitionMethod::Metis,
            Self::Partition => return spec,
        };
        (spec.file, spec.concentration) = (None, None);
        if spec.method != PartitionMethod::Metis {
            spec.balance.clear();
            spec.objective = None;
        }
        spec
    }
}
