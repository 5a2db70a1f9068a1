//! A graph dealt out to workers: who owns what, and who sends which rows to whom.

use std::path::Path;
use std::sync::Arc;

use super::{BoundaryPlan, Csr, GraphError, Known, Partition, PartitionSpec};

/// A finer division of a partition, which strategies deal out anew: equally many chunks per worker,
/// those of worker w being `w·r … (w + 1)·r − 1` for r chunks a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The plan as if each chunk were a worker's.
    pub plan: Arc<BoundaryPlan>,
    /// The seed they were drawn from, from which they are dealt out too.
    pub seed: u64,
}

impl Chunks {
    /// With the training nodes of a split; see [`BoundaryPlan::with_training`].
    pub fn with_training(self, train: &[u32]) -> Self {
        Self {
            plan: Arc::new(Arc::unwrap_or_clone(self.plan).with_training(train)),
            ..self
        }
    }
}

/// A graph dealt out to workers.
#[derive(Debug)]
pub struct Division {
    /// Which worker owns which node.
    pub partition: Partition,
    /// Who sends which rows to whom.
    pub boundary: BoundaryPlan,
    /// The finer division that the workers' parts are made of, where there is one.
    pub chunks: Option<Chunks>,
}

impl PartitionSpec {
    /// What a strategy trains on: this partition or, where it has more parts than there are
    /// `workers`, equally many of its parts for each of them, with these beside it.
    ///
    /// # Errors
    /// As [`PartitionSpec::partition`], and if the parts cannot be dealt out equally.
    pub fn divide(
        &self,
        graph: &Csr,
        known: Known<'_>,
        base: &Path,
        seed: u64,
        workers: usize,
    ) -> Result<Division, GraphError> {
        if self.workers == workers {
            let partition = self.partition(graph, known, base, seed)?;
            return Ok(Division {
                boundary: BoundaryPlan::new(graph, &partition),
                partition,
                chunks: None,
            });
        }
        let (chunks, nodes) = (self.workers, graph.nodes());
        if workers == 0 || !chunks.is_multiple_of(workers) || chunks > nodes {
            let what = format!(
                "asks for {chunks} parts, which must be a multiple of the {workers} workers and at most the {nodes} \
                 nodes of the graph"
            );
            return Err(GraphError::key("strategy", what));
        }
        let chunks = self.partition(graph, known, base, seed)?;
        let partition = chunks.merged(workers);
        Ok(Division {
            boundary: BoundaryPlan::new(graph, &partition),
            partition,
            chunks: Some(Chunks {
                plan: Arc::new(BoundaryPlan::new(graph, &chunks)),
                seed: self.seed.unwrap_or(seed),
            }),
        })
    }
}
