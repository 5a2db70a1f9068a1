//! Settings of graphs that are known in numbers alone, for plans.

use std::sync::Arc;
use std::time::Instant;

use super::super::Error;
use super::super::config::{Cell, ConfigError};
use super::refusals::misfit;
use super::{Parts, Preparation};
use crate::graph::{
    Batches, BoundaryPlan, Chunks, CountSpec, Counted, Csr, Part, PartCounts, Partition,
    PartitionMethod,
};
use crate::memory;
use crate::sim::Setting;
use crate::strategies::{Needs, Strategy};

/// Bytes of a pair of workers in counts and plans, at least.
const PAIR: usize = 128;

impl Preparation<'_> {
    /// A cell whose graph is known in numbers alone.
    pub(super) fn counted(
        &mut self,
        cell: &Cell,
        seed: u64,
        strategy: &dyn Strategy,
        needs: &Needs,
        counts: &CountSpec,
    ) -> Result<Setting, Error> {
        let settings = &cell.settings;
        let batch = settings.training.batch.as_ref();
        if !strategy.plans_from_counts(batch.is_some()) {
            let what = "plans from the graph itself, and `dataset.counts` has only numbers; project it with a \
                        `synthetic` graph or a data set that can be held";
            return Err(cell.refuse_option(None, what).into());
        }
        let (asked, used) = (&settings.partition, &needs.partition);
        if [asked, used].map(|spec| spec.method) != [PartitionMethod::Random; 2] {
            let what =
                "must be \"random\" with `dataset.counts`: other partitions have no closed form";
            return Err(cell.refuse("partition.method", what.to_owned()).into());
        }
        let counted = counts
            .read(&self.base)
            .map_err(|error| misfit(cell, "dataset.counts", &error))?;
        let (workers, parts) = (asked.workers, used.workers);
        fits(cell, &counted, workers, parts)?;
        let begun = Instant::now();
        let (law, columns) = (&counted.graph, counted.features);
        let numbers = law.counts(workers, counted.training, columns);
        let chunk = |number| law.part(parts, number, counted.training, columns);
        let chunks = (parts > workers).then(|| Chunks {
            plan: Arc::new(empty((0..parts).map(chunk), numbers.nodes, numbers.edges)),
            seed: used.seed.unwrap_or(seed),
        });
        let held = numbers.parts.iter().cloned();
        let parts = Parts {
            partition: Arc::new(Partition {
                parts: workers,
                assignment: Vec::new(),
            }),
            boundary: Arc::new(empty(held, numbers.nodes, numbers.edges)),
            counts: Arc::new(numbers),
            chunks: chunks.map(Arc::new),
            law: Some(Arc::new(law.clone())),
            took: begun.elapsed(),
        };
        let batches = batch.map(|spec| {
            Arc::new(Batches {
                spec: spec.clone(),
                graph: Arc::new(Csr::undirected(0, std::iter::empty())),
                train: Vec::new(),
                seed,
            })
        });
        let devices = self.open(cell)?;
        let dataset = counts.widths(&counted).measured_by(settings.task.metric);
        let dataset = Arc::new(dataset.map_err(|error| misfit(cell, "task.metric", &error))?);
        self.assemble(cell, seed, dataset, parts, batches, devices)
    }
}

/// Whether there are nodes for all workers and chunks.
fn fits(cell: &Cell, counted: &Counted, workers: usize, parts: usize) -> Result<(), ConfigError> {
    let nodes = counted.graph.nodes();
    if workers as f64 > nodes {
        let what = format!("is {workers}, more than the {nodes:.0} nodes of the graph");
        return Err(cell.refuse("partition.workers", what));
    }
    if !parts.is_multiple_of(workers) || parts as f64 > nodes {
        let what = format!(
            "must be a multiple of the {workers} workers and at most the {nodes:.0} nodes of the graph, not {parts}"
        );
        return Err(cell.refuse_option(Some("chunks"), &what));
    }
    // Rows of each pair of workers both ways, and what a plan says of each in an epoch of a few
    // exchanges.
    let pairs = memory::bytes(&[workers, workers], PAIR);
    memory::need(|| format!("a plan of {workers} workers"), pairs)
        .map_err(|error| cell.refuse("partition.workers", error.to_string()))
}

/// A boundary plan that names no node: how many edges and training nodes each part has.
fn empty(parts: impl Iterator<Item = PartCounts>, nodes: usize, edges: usize) -> BoundaryPlan {
    let part = |counts: PartCounts| Part {
        internal_edges: counts.internal_edges,
        cut_edges: counts.cut_edges,
        training: counts.training,
        ..Part::default()
    };
    BoundaryPlan {
        parts: parts.map(part).collect(),
        nodes,
        edges,
    }
}
