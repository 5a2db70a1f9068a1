//! From a cell and a seed to a setting that can run: data, partition, network and devices, each
//! made once and shared.

mod counted;
mod memo;
mod refusals;
mod sharded;
#[cfg(test)]
mod tests;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Error;
use super::config::{Cell, ConfigError, Experiment};
use super::rows::distinct;
use crate::graph::{
    Batches, BoundaryCounts, BoundaryPlan, Chunks, CountSpec, CutFit, Dataset, DatasetSpec,
    ExpectedGraph, FitEnd, Metric, Partition, PartitionMethod, PartitionSpec, RawDataset, Shards,
};
use crate::model::{GivenWeights, ModelSpec};
use crate::net::Framing;
use crate::sim::{
    ComputeTiming, DeviceConfig, Engine, Repartitioner, Setting, SimError, Timing, WorkerDevice,
    open_devices,
};
use crate::strategies::{Needs, Registry, Strategy, Training};
use counted::Asked;
use memo::Memo;
use refusals::{keeps_checkpoints, knows_training_nodes, misfit, recordable};

/// A cell and seed that can run: its setting, and its strategy fitted to it.
pub struct Fitted {
    /// Everything it is made of.
    pub setting: Arc<Setting>,
    /// What its strategy needed.
    pub needs: Needs,
    /// What it plans and does.
    pub training: Box<dyn Training>,
}

impl Fitted {
    /// The steps of an epoch of unequal parts and of equal ones
    /// ([`Setting::uneven_steps`]), where the cell asked for these parts: those with parts of their
    /// own have batches of their own.
    pub(super) fn uneven_steps(&self, cell: &Cell) -> Option<[usize; 2]> {
        let asked = cell.settings.partition.method == self.needs.partition.method;
        asked.then(|| self.setting.uneven_steps()).flatten()
    }
}

/// Of each cell the turn of its data set. Runs go data set by data set, and in each seed by seed,
/// so that what was prepared of one is not needed any more at the next.
pub(super) fn data_turns<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<usize> {
    let mut met: Vec<&DatasetSpec> = Vec::new();
    let turn = |cell: &'c Cell| {
        let data = &cell.settings.dataset;
        met.iter()
            .position(|known| *known == data)
            .unwrap_or_else(|| {
                met.push(data);
                met.len() - 1
            })
    };
    cells.map(turn).collect()
}

/// A graph dealt out to workers, and how long that took.
#[derive(Clone)]
struct Parts {
    partition: Arc<Partition>,
    boundary: Arc<BoundaryPlan>,
    counts: Arc<BoundaryCounts>,
    chunks: Option<Arc<Chunks>>,
    /// How the graph was divided, if it was divided here into parts of workers.
    divided: Option<PartitionSpec>,
    /// Of a graph that is known in numbers alone.
    law: Option<Arc<ExpectedGraph>>,
    took: Duration,
}

impl Parts {
    /// Bytes of what grows with the graph.
    fn bytes(&self) -> usize {
        let chunks = self.chunks.as_ref().map_or(0, |chunks| chunks.plan.bytes());
        self.partition.assignment.len() * size_of::<u32>() + self.boundary.bytes() + chunks
    }
}

/// Makes settings, remembering data, partitions and devices between cells.
pub struct Preparation<'a> {
    registry: &'a Registry,
    base: PathBuf,
    pub(crate) engine: Engine,
    // The last of a key: whether the graph alone was read.
    raw: Memo<(DatasetSpec, bool), Arc<RawDataset>>,
    split: Memo<(DatasetSpec, Option<Metric>, u64, bool), Arc<Dataset>>,
    /// Those of training nodes alone, by seed.
    training: Memo<(DatasetSpec, Option<Metric>, u64), Arc<Dataset>>,
    // The last of a key: whether it is divided as it is in training nodes alone.
    parts: Memo<(DatasetSpec, PartitionSpec, usize, u64, bool), Parts>,
    shards: Memo<DatasetSpec, Arc<Shards>>,
    weights: Memo<PathBuf, Arc<GivenWeights>>,
    /// Data sets without their nodes, by the hash of the shards that have them.
    outlines: Memo<[u8; 32], Arc<Dataset>>,
    fits: Memo<(CountSpec, PartitionSpec, u64), Arc<CutFit>>,
    /// Who hears of what takes a while.
    pub(crate) note: Box<dyn Fn(&str) + Send + 'a>,
    devices: Vec<(DeviceConfig, Vec<WorkerDevice>)>,
    /// Of how many epochs of every run a timeline is kept.
    pub(crate) timeline_epochs: usize,
    /// Whether nothing will be trained.
    plans: bool,
    /// Whether plans of a training say what workers hold.
    pub(crate) memory: bool,
    /// Whether numbers are enough of graphs that were divided before: nothing is trained, and of
    /// shards, what `meta.json` says is enough.
    pub(crate) numbers: bool,
    /// How many times as fast as the experiment says its network is.
    pub(crate) network_times: f64,
    /// Of how many nodes of each data set a part is used instead of all.
    pub(crate) sample: Option<usize>,
}

impl<'a> Preparation<'a> {
    /// Preparation for an experiment whose relative paths start at `base`.
    pub fn new(registry: &'a Registry, base: PathBuf) -> Self {
        Self {
            registry,
            base,
            engine: Engine::Simulated,
            raw: Memo(Vec::new()),
            split: Memo(Vec::new()),
            training: Memo(Vec::new()),
            parts: Memo(Vec::new()),
            shards: Memo(Vec::new()),
            weights: Memo(Vec::new()),
            outlines: Memo(Vec::new()),
            fits: Memo(Vec::new()),
            note: Box::new(|_| ()),
            devices: Vec::new(),
            timeline_epochs: 0,
            plans: false,
            memory: false,
            numbers: false,
            network_times: 1.0,
            sample: None,
        }
    }

    /// For plans alone, which graphs in numbers are enough for.
    pub(crate) fn for_plans(self) -> Self {
        Self {
            plans: true,
            ..self
        }
    }

    /// Whether plans of a cell say what workers do and hold, and not only what they send.
    fn plans_work(&self, cell: &Cell) -> bool {
        let models = matches!(cell.settings.compute.timing, Timing::Modelled(_));
        self.plans || self.memory || models
    }

    /// Lets go of all data sets but these, and of their parts.
    pub(super) fn keep_only(&mut self, specs: &[&DatasetSpec]) {
        self.raw.0.retain(|((spec, _), _)| specs.contains(&spec));
        self.split.0.retain(|((spec, ..), _)| specs.contains(&spec));
        self.training
            .0
            .retain(|((spec, ..), _)| specs.contains(&spec));
        self.parts.0.retain(|((spec, ..), _)| specs.contains(&spec));
        self.shards.0.retain(|(spec, _)| specs.contains(&spec));
    }

    /// What follows is of this data set and seed for a while. Where what is remembered has become
    /// large, that of others is let go and, when its turn comes again, made again.
    pub(super) fn turn_to(&mut self, data: &DatasetSpec, seed: u64) {
        /// To divide a graph of so many bytes twice, once for the plan of all runs and once for the
        /// training, takes less than a few epochs on it.
        const LARGE: usize = 256 << 20;
        self.keep_at_most(LARGE, data, seed);
    }

    /// Lets go of what is of other data sets and seeds where all takes more than so many bytes.
    fn keep_at_most(&mut self, bytes: usize, data: &DatasetSpec, seed: u64) {
        let parts = self.parts.0.iter().map(|(_, parts)| parts.bytes());
        let graphs = self.raw.0.iter().map(|(_, raw)| raw.bytes());
        if parts.chain(graphs).sum::<usize>() > bytes {
            self.keep_only(&[data]);
            self.split.0.retain(|((.., of, _), _)| *of == seed);
            self.training.0.retain(|((.., of), _)| *of == seed);
            self.parts.0.retain(|((.., of, _), _)| *of == seed);
        }
    }

    /// The cells whose data are there, and a note for each optional data set that is not.
    ///
    /// # Errors
    /// If nothing is left to run.
    pub(crate) fn present<'e>(
        &self,
        experiment: &'e Experiment,
    ) -> Result<(Vec<&'e Cell>, Vec<String>), Error> {
        let (mut cells, mut notes) = (Vec::new(), Vec::new());
        for cell in experiment.cells() {
            let Some(path) = cell.settings.dataset.absent(&self.base) else {
                cells.push(cell);
                continue;
            };
            let name = &cell.settings.dataset.name;
            let fetch = name.as_ref().map_or(String::new(), |name| {
                format!("; `grapevine fetch {name}` brings it")
            });
            notes.push(format!(
                "skipped the cells with the optional data set {}: it is not there{fetch}",
                path.display()
            ));
        }
        let notes = distinct(notes);
        if cells.is_empty() {
            let message = format!(
                "no data set of the experiment is there; {}",
                notes.join("; ")
            );
            return Err(SimError::Input(message).into());
        }
        Ok((cells, notes))
    }

    /// The strategy of a cell, which goes with its mini-batches, and what it needs.
    ///
    /// # Errors
    /// If it does not, or an option is wrong.
    fn strategy(&self, cell: &Cell) -> Result<(Box<dyn Strategy>, Needs), Error> {
        let entry = &cell.strategy;
        let strategy = self
            .registry
            .read(&entry.kind, &entry.options)
            .map_err(|error| cell.refuse_option(error.key.as_deref(), &error.message))?;
        let batches = cell.settings.training.batch.is_some();
        strategy
            .needs(&cell.settings.partition)
            .and_then(|needs| needs.check_batches(&entry.kind, batches).map(|()| needs))
            .map(|needs| (strategy, needs))
            .map_err(|error| {
                cell.refuse_option(error.key.as_deref(), &error.message)
                    .into()
            })
    }

    /// One cell and seed, with its devices open.
    ///
    /// # Errors
    /// If data are missing or broken, or do not fit the rest of the cell, a device is missing, or
    /// the strategy's options do not fit.
    pub fn fit(&mut self, cell: &Cell, seed: u64) -> Result<Fitted, Error> {
        self.fit_at(cell, seed, FitEnd::Middle)
    }

    /// The same at an end of what is known of its graph: of a fitted cut that of its interval; of a
    /// published graph in random parts a more skewed graph or one without skew. None where there is
    /// one number for everything.
    ///
    /// # Errors
    /// As [`Self::fit`].
    pub(crate) fn fit_end(
        &mut self,
        cell: &Cell,
        seed: u64,
        end: FitEnd,
    ) -> Result<Option<Fitted>, Error> {
        let method = self.strategy(cell)?.1.partition.method;
        match &cell.settings.dataset.counts {
            Some(counts) if method != PartitionMethod::Random || counts.like.is_some() => {}
            _ => return Ok(None),
        }
        self.fit_at(cell, seed, end).map(Some)
    }

    fn fit_at(&mut self, cell: &Cell, seed: u64, end: FitEnd) -> Result<Fitted, Error> {
        let (strategy, mut needs) = self.strategy(cell)?;
        self.suits_processes(cell, &needs)?;
        knows_training_nodes(cell)?;
        let data = &cell.settings.dataset;
        let setting = match &data.counts {
            Some(counts) if self.plans => {
                let asked = Asked { counts, end };
                self.counted(cell, seed, strategy.as_ref(), &needs, asked)?
            }
            // A sample is divided anew.
            _ if data.shards.is_some() && self.sample.is_none() => {
                self.sharded(cell, seed, strategy.as_ref(), &mut needs)?
            }
            _ => self.setting(cell, seed, strategy.as_ref(), &needs)?,
        };
        let setting = Arc::new(setting);
        let training = strategy
            .fit(&setting)
            .map_err(|error| cell.refuse_option(error.key.as_deref(), &error.message))?;
        keeps_checkpoints(cell, &*training)?;
        recordable(cell, training.epochs())?;
        if let Some(given) = &setting.weights {
            let unfit = |error| cell.refuse_itself("model.weights", format!("{error}"));
            given.check(&training.initial()).map_err(unfit)?;
        }
        Ok(Fitted {
            setting,
            needs,
            training,
        })
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<WorkerDevice>, Error> {
        let settings = &cell.settings;
        let devices = self.devices(&settings.device, settings.partition.workers);
        let refused = |error| match error {
            SimError::Device(what) => cell.refuse("device.*", what),
            other => cell.refuse("device.*", other.to_string()),
        };
        Ok(devices.map_err(refused)?)
    }

    /// The setting of these parts, with network and compute as the cell has them.
    fn assemble(
        &mut self,
        cell: &Cell,
        seed: u64,
        dataset: Arc<Dataset>,
        parts: Parts,
        devices: Vec<WorkerDevice>,
    ) -> Result<Setting, Error> {
        let settings = &cell.settings;
        let batches = settings.training.batch.as_ref().map(|spec| {
            Arc::new(Batches {
                spec: spec.clone(),
                graph: Arc::clone(&dataset.graph),
                train: dataset.split.train.clone(),
                seed,
            })
        });
        let workers = settings.partition.workers;
        let model = ModelSpec::new(&settings.model, dataset.features.width(), dataset.classes);
        let topology = settings
            .network
            .topology(workers)
            .map(|topology| topology.times_as_fast(self.network_times))
            .and_then(|topology| settings.network.with_background(topology, &self.base))
            .map_err(|error| cell.refuse_network(error))?
            .with_seed(seed);
        let framing: Framing = settings.network.framing();
        let timing = ComputeTiming::new(&settings.compute, workers)
            .map_err(|error| cell.refuse("compute.worker", error.to_string()))?;
        let topology = timing.between(topology);
        Ok(Setting {
            model,
            weights: self.weights(cell, seed)?,
            dataset,
            unseen: None,
            partition: parts.partition,
            boundary: parts.boundary,
            counts: parts.counts,
            law: parts.law,
            shards: None,
            chunks: parts.chunks,
            // One for each setting: what it keeps is of the rounds of one training.
            repartitioner: parts
                .divided
                .map(|spec| Arc::new(Repartitioner::new(spec, self.base.clone()))),
            batches,
            partitioning: parts.took,
            optimizer: settings.optimizer,
            training: settings.training.clone(),
            all_reduce: settings.network.all_reduce_on(&topology),
            topology: Arc::new(topology),
            framing,
            exchange: settings.network.exchange,
            timeline_epochs: self.timeline_epochs,
            plans_work: self.plans_work(cell),
            timing,
            samples_beside: settings.compute.samples_beside(),
            devices,
            engine: self.engine.clone(),
            seed,
        })
    }

    /// What a cell starts from, where it has that from a file. Plans do not ask for it.
    pub(super) fn weights(
        &mut self,
        cell: &Cell,
        seed: u64,
    ) -> Result<Option<Arc<GivenWeights>>, Error> {
        let Some(path) = cell.settings.model.weights.as_ref().filter(|_| !self.plans) else {
            return Ok(None);
        };
        let path = path.to_string_lossy().replace("{seed}", &seed.to_string());
        let path = self.base.join(path);
        let read = || GivenWeights::read(&path).map(Arc::new);
        let given = self.weights.get(path.clone(), read);
        Ok(Some(
            given.map_err(|error| misfit(cell, "model.weights", error))?,
        ))
    }

    /// Whether the engine can run the cell: where workers are processes, there must be one of each,
    /// with a program of its own.
    fn suits_processes(&self, cell: &Cell, needs: &Needs) -> Result<(), ConfigError> {
        let Some(processes) = self.engine.processes() else {
            return Ok(());
        };
        let workers = cell.settings.partition.workers;
        if workers != processes {
            let message = format!(
                "cell \"{}\" has {workers} workers, but the number of processes is {processes}; start as many as there are \
                 workers (`mpirun -n {workers} grapevine run … --engine mpi`), or run this cell by itself",
                cell.name
            );
            return Err(cell.refuse("partition.workers", message));
        }
        if needs.together {
            let message = "plays all workers in one process, so it cannot run with --engine mpi; \
                           leave it out there, or use the simulated engine";
            return Err(cell.refuse_option(None, message));
        }
        Ok(())
    }

    fn devices(
        &mut self,
        config: &DeviceConfig,
        workers: usize,
    ) -> Result<Vec<WorkerDevice>, SimError> {
        let enough = |(known, devices): &&(DeviceConfig, Vec<WorkerDevice>)| {
            known == config && devices.len() >= workers
        };
        if let Some((_, devices)) = self.devices.iter().find(enough) {
            return Ok(devices[..workers].to_vec());
        }
        let devices = open_devices(config, workers)?;
        self.devices.push((config.clone(), devices.clone()));
        Ok(devices)
    }
}

/// The folder that relative paths of an experiment file start from.
pub(crate) fn base_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}
