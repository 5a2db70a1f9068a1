//! Settings of graphs that were divided before: from shards on disk.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use super::super::Error;
use super::super::config::{Cell, ConfigError};
use super::counted::empty;
use super::refusals::{fits, misfit, trains};
use super::whole::cut;
use super::{Parts, Preparation};
use crate::graph::{
    Dataset, DatasetSpec, GraphError, Metric, Partition, PartitionMethod, Shards, Whole,
};
use crate::sim::Setting;
use crate::strategies::{Needs, NeedsOfOthers, Strategy};

impl Preparation<'_> {
    /// A cell whose graph was divided before. One process that trains has all of it; where each
    /// worker is a process, and for plans, there is of other parts what the strategy looks at.
    pub(super) fn sharded(
        &mut self,
        cell: &Cell,
        seed: u64,
        strategy: &dyn Strategy,
        needs: &mut Needs,
    ) -> Result<Setting, Error> {
        let settings = &cell.settings;
        let wrong = |error| misfit(cell, "dataset.shards", error);
        let shards = self.shards(&settings.dataset).map_err(wrong)?;
        suits(cell, strategy, needs, &shards)?;
        needs.partition.method = shards.meta().partition.method;
        let begun = Instant::now();
        let alone = self.engine.processes().is_some();
        if alone {
            shards.check(self.engine.rank()).map_err(wrong)?;
        }
        let outline = alone || self.plans || self.numbers;
        let plans_work = self.plans_work(cell);
        let looks_at = match others(cell, strategy) {
            // The work of its plan follows from the edges; a process measures its own.
            NeedsOfOthers::Boundary if plans_work && !alone => NeedsOfOthers::Edges,
            others => others,
        };
        let (workers, counts) = (shards.workers(), shards.counts());
        let known = |whole: &Whole| {
            let (partition, boundary) = (Arc::clone(&whole.partition), Arc::clone(&whole.boundary));
            (Arc::clone(&whole.dataset), partition, boundary)
        };
        let (dataset, partition, boundary) = if !outline {
            let whole = shards.whole().map_err(wrong)?;
            let scored = Dataset::clone(&whole.dataset).with_scores();
            scored.map(drop).map_err(wrong)?;
            known(&whole)
        } else if looks_at == NeedsOfOthers::Edges {
            known(&*shards.structure().map_err(wrong)?)
        } else {
            let held = counts.parts.iter().cloned();
            let boundary = if looks_at == NeedsOfOthers::Boundary {
                shards.boundary().map_err(wrong)?
            } else {
                empty(held, counts.nodes, counts.edges)
            };
            let partition = Partition {
                parts: workers,
                assignment: Vec::new(),
            };
            (
                self.outline(&shards),
                Arc::new(partition),
                Arc::new(boundary),
            )
        };
        let dataset = measured(cell, dataset)?;
        let parts = Parts {
            partition,
            boundary,
            counts: Arc::new(counts),
            chunks: None,
            divided: None,
            law: None,
            took: begun.elapsed(),
        };
        let mut devices = self.open(cell)?;
        fits(cell, &dataset, needs)?;
        let setting = self.assemble(cell, seed, dataset, parts, Vec::new())?;
        let setting = Setting {
            shards: Some(shards),
            ..setting
        };
        let computed = match &setting.shards {
            Some(shards) if alone => own(&setting, shards, self.engine.rank()).map_err(wrong)?,
            _ => Arc::clone(&setting.dataset),
        };
        cut(&mut devices, cell, strategy, &computed)?;
        Ok(Setting { devices, ..setting })
    }

    fn shards(&mut self, spec: &DatasetSpec) -> Result<Arc<Shards>, GraphError> {
        let folder = spec.shards.clone().unwrap_or_default();
        let base = &self.base;
        self.shards.get(spec.clone(), || {
            Shards::open(&base.join(folder)).map(Arc::new)
        })
    }

    /// One for all cells: data sets are told apart by their graphs.
    fn outline(&mut self, shards: &Arc<Shards>) -> Arc<Dataset> {
        let key = *shards.hash();
        let make = || Ok::<_, Infallible>(Arc::new(shards.outline()));
        let Ok(outline) = self.outlines.get(key, make);
        outline
    }
}

/// What the strategy has to know of other parts.
fn others(cell: &Cell, strategy: &dyn Strategy) -> NeedsOfOthers {
    let batches = cell.settings.training.batch.is_some();
    strategy.plans_from(batches).others
}

/// The part that a process has, as a data set of its own.
fn own(setting: &Setting, shards: &Shards, rank: usize) -> Result<Arc<Dataset>, GraphError> {
    let data = shards.part(rank)?;
    Ok(Arc::new(Dataset {
        graph: Arc::new(data.adjacency),
        features: Arc::new(data.features),
        ..Dataset::clone(&setting.dataset)
    }))
}

/// Whether the cell asks for what the shards are, and its strategy needs no more.
fn suits(
    cell: &Cell,
    strategy: &dyn Strategy,
    needs: &Needs,
    shards: &Shards,
) -> Result<(), ConfigError> {
    let (asked, meta) = (&cell.settings.partition, shards.meta());
    let (workers, made) = (shards.workers(), &meta.partition);
    if asked.workers != workers {
        let what = format!(
            "is {}, and the shards are of {workers} parts: write `workers = {workers}`, or divide the graph anew",
            asked.workers
        );
        return Err(cell.refuse("partition.workers", what));
    }
    let method = [PartitionMethod::default(), made.method].contains(&asked.method);
    let seed = asked.seed.is_none_or(|seed| seed == made.seed);
    // What is not said is METIS's own, which other methods do not have.
    let aim = (made.method == PartitionMethod::Metis).then(|| made.objective.unwrap_or_default());
    for (same, key) in [
        (method, "method"),
        (seed, "seed"),
        (asked.file.is_none(), "file"),
        (asked.balance.is_empty(), "balance"),
        (
            asked.objective.is_none() || asked.objective == aim,
            "objective",
        ),
        (
            [None, made.concentration].contains(&asked.concentration),
            "concentration",
        ),
    ] {
        if !same {
            let what = format!(
                "asks for another partition than that of the shards (\"{}\", seed {}): remove it, or divide the \
                 graph anew",
                made.method.name(),
                made.seed
            );
            return Err(cell.refuse(&format!("partition.{key}"), what));
        }
    }
    if others(cell, strategy) == NeedsOfOthers::Graph {
        let what = "looks at more of the graph than a worker's own shard (clusters, clients of a node each, a division of edges, or nodes that change workers): name \
                    the graph itself in [dataset], or take a strategy that exchanges rows";
        return Err(cell.refuse_option(None, what));
    }
    let method = needs.partition.method;
    if ![asked.method, made.method].contains(&method) {
        let what = format!(
            "deals out nodes by \"{}\", and the shards are cut by \"{}\": write `chunking = \"partition\"`, or divide the \
             graph anew",
            method.name(),
            made.method.name()
        );
        return Err(cell.refuse_option(None, &what));
    }
    if needs.partition.workers != workers {
        let what = "trains on parts of its own, and the shards are cut: name the graph itself in [dataset]";
        return Err(cell.refuse_option(None, what));
    }
    let data = &meta.data;
    let sizes = (data.classes, data.features);
    trains(cell, &data.name, sizes, data.train, meta.stored_edges)?;
    for (set, nodes) in [("validation", data.validation), ("test", data.test)] {
        if nodes == 0 {
            let what = format!(
                "the {set} set of the shards has no nodes; divide the graph anew with another split, such as \
                 --set 'split={{ train = 0.6, val = 0.2 }}'"
            );
            return Err(cell.refuse("dataset.shards", what));
        }
    }
    Ok(())
}

/// The data for the metric of the cell, which must be one of the labels as they are.
fn measured(cell: &Cell, dataset: Arc<Dataset>) -> Result<Arc<Dataset>, Error> {
    let metric: Option<Metric> = cell.settings.task.metric;
    match metric {
        None => Ok(dataset),
        Some(metric) if metric == dataset.metric => Ok(dataset),
        Some(metric) => {
            let before = dataset.task();
            let data = Dataset::clone(&dataset).measured_by(Some(metric));
            let data = data.map_err(|error| misfit(cell, "task.metric", error))?;
            if data.task() != before {
                let what = "makes other labels than the shards have; divide the graph anew";
                return Err(cell.refuse("task.metric", what.to_owned()).into());
            }
            Ok(Arc::new(data))
        }
    }
}
