//! Of a graph that is read and divided here.

use std::sync::Arc;
use std::time::Instant;

use super::super::Error;
use super::super::config::{Cell, ConfigError};
use super::refusals::{fits, misfit, trains};
use super::{Parts, Preparation};
use crate::graph::{
    BoundaryCounts, Dataset, DatasetSpec, Division, GraphError, Known, Metric, PartitionMethod,
    PartitionSpec,
};
use crate::model::{LayerSpec, ModelSpec};
use crate::sim::{Setting, WorkerDevice, divide};
use crate::strategies::{Needs, Strategy};

impl Preparation<'_> {
    pub(super) fn setting(
        &mut self,
        cell: &Cell,
        seed: u64,
        strategy: &dyn Strategy,
        needs: &Needs,
    ) -> Result<Setting, Error> {
        let settings = &cell.settings;
        let inductive = settings.training.inductive;
        // Plans look at no classes; a partition may.
        let outline =
            self.plans && !inductive && needs.partition.method != PartitionMethod::Dirichlet;
        let whole = self
            .dataset(&settings.dataset, settings.task.metric, seed, outline)
            .map_err(|error| misfit(cell, "dataset.path", error))?;
        let dataset = if inductive {
            let key = (settings.dataset.clone(), settings.task.metric, seed);
            self.training
                .get(key, || Ok::<_, Error>(Arc::new(whole.of_training())))?
        } else {
            Arc::clone(&whole)
        };
        let sizes = (dataset.classes, dataset.features.width());
        let (training, edges) = (dataset.split.train.len(), dataset.graph.edges());
        trains(cell, &dataset.name, sizes, training, edges)?;
        // Of all nodes, which are there when models are scored.
        fits(cell, &whole, needs)?;
        let parts = self
            .partition(cell, &dataset, &needs.partition, seed)
            .map_err(|error| misfit(cell, "partition.file", error))?;
        let mut devices = self.open(cell)?;
        cut(&mut devices, cell, strategy, &whole)?;
        Ok(Setting {
            unseen: inductive.then_some(whole),
            ..self.assemble(cell, seed, dataset, parts, devices)?
        })
    }

    fn dataset(
        &mut self,
        spec: &DatasetSpec,
        metric: Option<Metric>,
        seed: u64,
        outline: bool,
    ) -> Result<Arc<Dataset>, GraphError> {
        let (raw, base, sample) = (&mut self.raw, &self.base, self.sample);
        let plans = self.plans;
        let read = || {
            let all = if outline {
                spec.read_outline(base)?
            } else {
                spec.read(base)?
            };
            Ok::<_, GraphError>(Arc::new(match sample {
                Some(nodes) => all.sampled(nodes, 0),
                None => all,
            }))
        };
        self.split.get((spec.clone(), metric, seed, outline), || {
            let raw = raw.get((spec.clone(), outline), read)?;
            let data = raw.split(&spec.split, seed)?;
            let data = data.measured_by(metric.or(raw.metric))?;
            // Plans have no classes to look at, and samples few nodes: neither is scored.
            let scored = !plans && sample.is_none();
            Ok(Arc::new(if scored { data.with_scores()? } else { data }))
        })
    }

    fn partition(
        &mut self,
        cell: &Cell,
        dataset: &Dataset,
        spec: &PartitionSpec,
        seed: u64,
    ) -> Result<Parts, GraphError> {
        let (base, settings) = (&self.base, &cell.settings);
        let (data, workers) = (settings.dataset.clone(), settings.partition.workers);
        let key = (
            data,
            spec.clone(),
            workers,
            seed,
            settings.training.inductive,
        );
        let known = Known {
            train: &dataset.split.train,
            labels: Some(&dataset.labels),
        };
        self.parts.get(key, || {
            let begun = Instant::now();
            let Division {
                partition,
                boundary,
                chunks,
            } = spec.divide(&dataset.graph, known, base, seed, workers)?;
            let boundary = boundary.with_training(known.train);
            Ok(Parts {
                partition: Arc::new(partition),
                counts: Arc::new(BoundaryCounts::new(&boundary, &dataset.features)),
                boundary: Arc::new(boundary),
                chunks: chunks.map(|chunks| Arc::new(chunks.with_training(known.train))),
                divided: (spec.workers == workers).then(|| spec.clone()),
                law: None,
                took: begun.elapsed(),
            })
        })
    }
}

/// Has devices hold what the layers of a cell make of these data, as its strategy trains them.
pub(super) fn cut(
    devices: &mut [WorkerDevice],
    cell: &Cell,
    strategy: &dyn Strategy,
    data: &Dataset,
) -> Result<(), ConfigError> {
    let model = ModelSpec::new(&cell.settings.model, data.features.width(), data.classes);
    let layer = |layer| strategy.layer(&model, layer);
    let layers: Vec<LayerSpec> = (0..model.layers()).map(layer).collect();
    divide(devices, &layers, data).map_err(|what| cell.refuse("device.*", what))
}
