//! Settings of graphs that are known in numbers alone, for plans.

use std::sync::Arc;
use std::time::Instant;

use super::super::Error;
use super::super::config::{Cell, ConfigError};
use super::refusals::misfit;
use super::{Parts, Preparation};
use crate::graph::{
    BoundaryPlan, Chunks, CountSpec, Counted, CutFit, FitEnd, FitSpec, GraphError, Part,
    PartCounts, Partition, PartitionMethod, PartitionSpec, Samples,
};
use crate::memory;
use crate::sim::Setting;
use crate::strategies::{Needs, Strategy};

/// Sizes of a fit where nothing is said: so many, up to this scale, and at least so many nodes for
/// each worker there.
const SIZES: u32 = 5;
const LARGEST: u32 = 17;
const NODES_A_WORKER: usize = 128;
/// Graphs of each size where nothing is said.
const GRAPHS: usize = 3;

/// A graph in numbers, and the end of what is known of it that is looked at.
pub(super) struct Asked<'a> {
    pub counts: &'a CountSpec,
    pub end: FitEnd,
}

/// What a fit on R-MAT graphs does not know of a published one.
const COMMUNITIES: &str = " (R-MAT graphs have no communities: of four real graphs METIS left a quarter to a sixth of the \
                           rows that such a fit says; the fewest are a sixth of those of a more skewed graph, the most \
                           those of one without skew)";

/// The least that communities left there.
const LEAST_LEFT: f64 = 1.0 / 6.0;

/// Bytes in all beyond which a plan is refused, well before 64 bits are full.
const MOST_BYTES: f64 = 4e18;

/// What the ends of a published graph in random parts are.
const SKEW: &str = ", between those of a more skewed graph and of one without skew";

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
        Asked { counts, end }: Asked<'_>,
    ) -> Result<Setting, Error> {
        let settings = &cell.settings;
        let batch = settings.training.batch.as_ref();
        if !strategy.plans_from(batch.is_some()).counts {
            let whose = match batch {
                Some(_) => {
                    "plans its mini-batches from the graph itself, and `dataset.counts` has only numbers; leave out \
                            `training.batch`, or project it"
                }
                None => {
                    "plans from the graph itself, and `dataset.counts` has only numbers; project it"
                }
            };
            let what = format!("{whose} with a `synthetic` graph or a data set that can be held");
            return Err(cell.refuse_option(None, &what).into());
        }
        let (asked, used) = (&settings.partition, &needs.partition);
        if counts.fit.is_some() && asked.method == PartitionMethod::Random {
            let what = "`fit` goes with \"metis\", \"ldg\" and \"fennel\": random parts have a closed form; remove it";
            return Err(cell.refuse("dataset.counts", what.to_owned()).into());
        }
        let counted = counts
            .read(&self.base)
            .map_err(|error| misfit(cell, "dataset.counts", error))?;
        let (workers, parts) = (asked.workers, used.workers);
        fits(cell, &counted, workers, parts)?;
        let begun = Instant::now();
        // One worker has everything, whoever divides it.
        let random = used.method == PartitionMethod::Random || workers == 1;
        let law = match (&counted.ends, end) {
            (Some([skewed, _]), FitEnd::Low) => skewed,
            (Some([_, even]), FitEnd::High) => even,
            _ => &counted.graph,
        };
        let columns = counted.features;
        let (numbers, divided) = if random {
            let numbers = law.counts(workers, counted.training, columns);
            let ends = counted.ends.as_ref().map_or("", |_| SKEW);
            (numbers, format!("{}{ends}", Counted::RANDOM))
        } else {
            let fit = self.cut_fit(cell, seed, strategy, used, (counts, &counted))?;
            let left = match (&counted.ends, end) {
                (Some(_), FitEnd::Low) => LEAST_LEFT,
                _ => 1.0,
            };
            let numbers = fit.counts(law, (end, left), counted.training, columns);
            let mut said = fit.said(law.nodes());
            if counted.ends.is_some() {
                said.push_str(COMMUNITIES);
            }
            (numbers, said)
        };
        countable(cell, &counted, numbers.boundary_rows() as f64)?;
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
            divided: None,
            law: Some(Arc::new(law.clone())),
            took: begun.elapsed(),
        };
        let devices = self.open(cell)?;
        let dataset = counts.widths(&counted, &divided);
        let dataset = dataset.measured_by(settings.task.metric);
        let dataset = Arc::new(dataset.map_err(|error| misfit(cell, "task.metric", error))?);
        self.assemble(cell, seed, dataset, parts, devices)
    }

    /// What smaller graphs say about a partitioner without a closed form.
    fn cut_fit(
        &mut self,
        cell: &Cell,
        seed: u64,
        strategy: &dyn Strategy,
        spec: &PartitionSpec,
        (counts, counted): (&CountSpec, &Counted),
    ) -> Result<Arc<CutFit>, Error> {
        let method = |what: &str| cell.refuse("partition.method", what.to_owned());
        let batches = cell.settings.training.batch.is_some();
        if strategy.plans_from(batches).law {
            if cell.settings.partition.method == PartitionMethod::Random {
                let what = format!(
                    "divides the graph by \"{}\" itself, and with `dataset.counts` it is known of random parts alone where a \
                     sample or a chunk leads; choose random ones",
                    spec.method.name()
                );
                return Err(cell.refuse_option(None, &what).into());
            }
            let what = "must be \"random\" with `dataset.counts` for this strategy: where a sample or a chunk leads \
                        is known of random parts alone";
            return Err(method(what).into());
        }
        let looks_at = match spec.method {
            PartitionMethod::Given => Some("a file names nodes"),
            PartitionMethod::Dirichlet => Some("it shares out nodes with classes"),
            _ => None,
        };
        if let Some(why) = looks_at {
            let name = spec.method.name();
            let what =
                format!("must not be \"{name}\" with `dataset.counts`: {why}, and here are none");
            return Err(method(&what).into());
        }
        let Some(law) = &counted.family else {
            let what = "must be \"random\" with degrees alone: a fit draws smaller graphs, by `rmat` or `like`";
            return Err(method(what).into());
        };
        let samples = Samples {
            law,
            scales: scales(counts.fit.as_ref(), spec.workers),
            graphs: (counts.fit.as_ref())
                .and_then(|fit| fit.graphs)
                .unwrap_or(GRAPHS),
            train: counted.training / counted.graph.nodes(),
        };
        if let Err(what) = fits_workers(&samples, spec.workers) {
            return Err(cell.refuse("dataset.counts", what).into());
        }
        let seed = spec.seed.unwrap_or(seed);
        let Self { fits, note, .. } = self;
        let fit = fits.get((counts.clone(), spec.clone(), seed), || {
            let told = |scale| {
                let (method, workers) = (spec.method.name(), spec.workers);
                note(&format!(
                    "cutting graphs of 2^{scale} nodes by {method} for {workers} workers"
                ));
            };
            CutFit::measure(&samples, spec, seed, told).map(Arc::new)
        });
        fit.map_err(|error: GraphError| misfit(cell, "dataset.counts", error))
    }
}

/// The sizes of a fit, ascending.
fn scales(fit: Option<&FitSpec>, workers: usize) -> Vec<u32> {
    if let Some(scales) = fit.and_then(|fit| fit.scales.as_ref()) {
        let mut scales = scales.clone();
        scales.sort_unstable();
        scales.dedup();
        return scales;
    }
    let enough = workers.saturating_mul(NODES_A_WORKER);
    let largest = LARGEST.max(enough.next_power_of_two().ilog2());
    (largest + 1 - SIZES..=largest).collect()
}

/// Whether there are enough graphs, with a node for every worker.
fn fits_workers(samples: &Samples<'_>, workers: usize) -> Result<(), String> {
    if samples.scales.len() < 4 || samples.graphs == 0 {
        return Err(
            "`fit` needs four different `scales` or more, and a graph of each: one size is left out to see the error"
                .to_owned(),
        );
    }
    for &scale in &samples.scales {
        let small = samples.law.at(scale.min(63));
        let nodes = small.nodes.unwrap_or_else(|| f64::from(scale).exp2());
        if !(1..=31).contains(&scale) || nodes < workers as f64 {
            return Err(format!(
                "`fit.scales` must be from 1 to 31, of graphs with a node for each of {workers} workers; {scale} \
                 makes {nodes:.0} nodes"
            ));
        }
        if small.law().is_err() {
            return Err(format!(
                "`fit.scales`: a graph of 2^{scale} would be too small for as many neighbours as the nodes of this \
                 graph have; begin higher"
            ));
        }
    }
    Ok(())
}

/// Whether there are nodes for all workers and chunks.
fn fits(cell: &Cell, counted: &Counted, workers: usize, parts: usize) -> Result<(), ConfigError> {
    let nodes = counted.graph.nodes();
    if workers as f64 > nodes {
        let what = format!(
            "`workers` is {workers}, more than the {nodes:.0} nodes of the graph; ask for fewer, or a larger graph"
        );
        return Err(cell.refuse("partition.workers", what));
    }
    if !parts.is_multiple_of(workers) || parts as f64 > nodes {
        let what = format!(
            "asks for {parts} parts, which must be a multiple of the {workers} workers and at most the {nodes:.0} nodes \
             of the graph"
        );
        return Err(cell.refuse_option(None, &what));
    }
    // Rows of each pair of workers both ways, and what a plan says of each in an epoch of a few
    // exchanges.
    let pairs = memory::bytes(&[workers, workers], PAIR);
    memory::need(|| format!("a plan of {workers} workers"), pairs)
        .map_err(|error| cell.refuse("partition.workers", error.to_string()))
}

/// Whether bytes can be counted: rows as wide as the widest, at every layer, both ways, in every
/// epoch, and features where they are.
fn countable(cell: &Cell, counted: &Counted, rows: f64) -> Result<(), ConfigError> {
    let (model, epochs) = (&cell.settings.model, cell.settings.training.epochs);
    let widest = counted.features.max(counted.classes).max(model.hidden);
    let passes = 2.0 * model.layers as f64 * epochs as f64;
    let most = (rows * passes).max(counted.graph.nodes()) * widest as f64 * size_of::<f32>() as f64;
    if most < MOST_BYTES {
        return Ok(());
    }
    let what = format!(
        "makes up to {most:.1e} bytes in {epochs} epochs with rows of {widest} columns, more than can be counted; ask for \
         fewer epochs, columns or nodes"
    );
    Err(cell.refuse("dataset.counts", what))
}

/// A boundary plan that names no node: how many edges and training nodes each part has.
pub(super) fn empty(
    parts: impl Iterator<Item = PartCounts>,
    nodes: usize,
    edges: usize,
) -> BoundaryPlan {
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
