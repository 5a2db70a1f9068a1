//! `grappa`: gradient-only communication (Xu, Siebenbrunner and Bindschaedler, arXiv 2602.01872).
//!
//! The graph is cut into chunks, one per worker or equally many for each. A worker trains on its
//! *base* chunks, which never change, together with one *variable* chunk, which moves on
//! round-robin every `repartition_every` epochs (a super-epoch), so that a cycle brings every
//! worker together with every other's chunk. With the schedule `regroup` all chunks are dealt out
//! anew instead, and a worker trains what it was dealt. At a switch those chunks' structure and
//! features move from where they are stored, and with `halo` the features of the sources of all
//! edges into the chunks; these bytes are counted as `repartition`. (Two workers with a chunk each
//! have one variable chunk only, which moves once. A chunk that `regroup` deals to the worker that
//! held it before moves anew.) In between *only parameter gradients* travel: `2(N − 1)/N · 4|θ|`
//! bytes per worker and step. Each training node is used once per epoch, where its base chunk is,
//! or its group.
//!
//! With `remote_sampling` a share of the sources that `halo` would load is fetched anew in each
//! epoch, `4 · rows · (features + 1)` bytes (`feature`).
//!
//! In mini-batches neighbours are drawn from the working graph, each step sums gradients, and
//! weights are those of the batch's own training nodes.
//!
//! What a worker does not see biases its gradient. Each gradient is therefore weighted by the
//! *coverage* of its training nodes' neighbourhoods, per node or per batch, or each message by the
//! probability that it is seen. For `normalise = "mean"` workers need the sum of all weights: it
//! is one number more in the sum of gradients, 4 bytes in each worker's vector, and the summed
//! gradient is divided by it. Where something depends on the mean before gradients are there, a
//! `cap` or the λ of a batch weight, it is an all-reduce of its own, `control`, at each switch
//! (with `remote_sampling`, in each epoch; in mini-batches, in each step), and one of two numbers
//! for `shrinkage = "james_stein"`. `normalise = "rho"` compares coverage with its expectation over
//! `L` hops (with the halo one less), taken as `(P ∘ π)^L · 1`, for which one number per boundary
//! row travels for each hop but the first, once, before training. For one hop that is exact; for
//! more it ignores that walks come back to units they have seen.
//!
//! Choices where the paper's code leaves a trap or says nothing: coverage is over as many hops as
//! the model has layers (its one-hop weight is `(d + 1)/(d + 2)` with the halo on); chunks
//! normalise by the neighbours they see, halo nodes by their degree in the whole graph or, with
//! `halo_degrees = "seen"`, by the edges into the working chunks. With `"authors"` each row that is
//! read is normalised by the edges that read it, which changes a GCN; and a halo row is not among
//! its own messages, so that a GCN or GAT has no more than a bias of it above the first layer. The
//! second changes every model that adds a node's own row to its neighbours'. These are the rules of
//! the authors' blocks over the edges of the working graph, in every layer and every batch; their
//! blocks have the edges that a layer of a batch has drawn, self-loops among them. At a switch the
//! halo of the base chunks, which does not change, is kept; with `keep_halo = false` that of both
//! chunks is loaded anew, as theirs is, on Cora about twice as many bytes at each switch after the
//! first.
//! `batch_gram` takes gradients for uncorrelated and their norms from the last layer, and measures
//! these by a forward pass without dropout when it weighs, not in every step. `edge_ht` normalises
//! by degrees in the whole graph; with the halo the first layer is exact, and those above it read
//! no halo rows. It makes the sums of one layer unbiased given their inputs, and not the gradient
//! of several layers. Chances are those of a random super-epoch, and a step's do not depend on
//! where the walk has been.
//!
//! Evidence, in the authors' code (`chongyang-xu/grappa` at `5b00124`, read and not run): chunks in
//! `t10n/dataset/chunk_seq.py` (`part_method`, random or METIS); in `t10n/dataloader.py` the chunk
//! that moves on (`get_cur_dataloader`, by `--repart_every` of
//! `experiments/grappa/train/t10n_train.py`, 50), the halo (`load_nbr_chunk_v2`) and as many steps
//! for all (`adjust_bs`); the weight of a training node in `csrc/graph/sampling_h.h`
//! (`fill_w_reampling_sampling_result_to_coo`): `(d_local + 1)/(d + 2)`, over the hop next to
//! the node alone (`csrc/python/py_graph.cc`), as both their degrees count a self-loop
//! (`augmentation_dgl_g`); their mean over a batch in
//! `t10n/sampler.py` (`HostBatchSamplerWithCounter`), by which `t10n/grad.py` multiplies the
//! gradient (`weighted_grad_hook`); normalisation by the edges that are there: DGL's `GraphConv`
//! with `norm = "both"` on blocks (`experiments/grappa/train/gcn.py`, `to_dgl_batch`), in which
//! self-loops are edges of the chunk that owns them (`augmentation_dgl_g`, `load_nbr_chunk_v2`).

mod batches;
mod chances;
mod degrees;
pub(crate) mod estimators;
mod expectation;
mod layout;
mod norms;
mod numbers;
mod options;
mod plan;
mod planned;
mod trainer;
mod weighing;
mod working;

use std::sync::Arc;

use super::parts::{LayerwiseTrainer, Learner, LocalGraph};
use super::{
    BatchUse, Needs, NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo,
    Training,
};
use crate::digits::counted;
use crate::graph::{Label, PartitionSpec};
use crate::model::{Block, EdgeDegrees, Gnn, Input, targets};
use crate::sim::{Activity, EpochReport, Planner, Saved, Setting, SimError, Worker};
use batches::At;
use chances::inverse_chances;
use estimators::{Normalise, Weight, halo_hops, mean, share_of_loss};
use layout::{Layout, Rules};
use options::Options;
use plan::SweepPlanner;
use trainer::{Loaded, Trainer, Whole};
use weighing::{Weighing, Weights};
use working::{HaloRows, Loader, WorkingGraph};

pub(crate) use layout::Schedule;
pub(crate) use layout::variable_chunk;

/// How experiments name and make it.
pub(crate) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "grappa",
        paper: "Xu, Siebenbrunner and Bindschaedler, Grappa: Gradient-Only Communication for Scalable Graph Neural Network Training (arXiv 2602.01872)",
        sends: "parameter gradients, with a number more where weights are divided by their mean; at each switch a chunk's structure and features (regroup: of those dealt anew), with the halo's features; sampled remote features",
        options: Options::INFO,
    },
    read,
};

struct Grappa(Options);

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    Ok(Box::new(Grappa(Options::read(table)?)))
}

impl Strategy for Grappa {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        let Self(options) = self;
        if options.schedule == Schedule::Regroup && options.chunks == Some(asked.workers) {
            let what = "must be at least twice the workers with schedule = \"regroup\": a worker would only swap its \
                        one chunk";
            return Err(OptionError::key("chunks", what));
        }
        let chunks = match (options.chunks, options.schedule) {
            (Some(chunks), _) => chunks,
            (None, Schedule::Regroup) => 2 * asked.workers,
            (None, Schedule::Sweep | Schedule::Fixed) => asked.workers,
        };
        let partition = options.chunking.divide(asked, chunks);
        Ok(Needs::of(partition, BatchUse::Possible))
    }

    fn plans_from(&self, _: bool) -> PlansFrom {
        PlansFrom {
            counts: true,
            law: true,
            others: NeedsOfOthers::Boundary,
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let Self(options) = *self;
        options.fit(setting)?;
        Ok(Box::new(Sweeping {
            rules: options.rules(setting.task()),
            weighing: options.weighing(setting.model.layers()),
            options,
            setting: Arc::clone(setting),
        }))
    }
}

/// Grappa in its setting.
#[derive(Clone)]
struct Sweeping {
    options: Options,
    rules: Rules,
    weighing: Weighing,
    setting: Arc<Setting>,
}

impl Sweeping {
    /// Whether chunks move before an epoch.
    fn switches(&self, epoch: usize) -> bool {
        match self.options.schedule {
            Schedule::Fixed => epoch == 0,
            Schedule::Sweep if self.only_partner() => epoch == 0,
            Schedule::Sweep | Schedule::Regroup => {
                epoch.is_multiple_of(self.options.repartition_every())
            }
        }
    }

    /// Whether there is one variable chunk only, that of the other of two workers, which then
    /// stays.
    fn only_partner(&self) -> bool {
        let workers = self.setting.workers();
        workers == 2 && self.options.chunks.is_none_or(|chunks| chunks == workers)
    }

    /// Whether the working graph changes before an epoch.
    fn loads(&self, epoch: usize) -> bool {
        self.switches(epoch) || self.rules.sampling > 0.0
    }

    fn layout(&self, epoch: usize) -> Layout<'_> {
        let super_epoch = match self.options.schedule {
            Schedule::Fixed => 0,
            Schedule::Sweep | Schedule::Regroup => epoch / self.options.repartition_every(),
        };
        let (boundary, chunks) = (&self.setting.boundary, self.setting.chunks.as_deref());
        let law = self.setting.law.as_deref();
        Layout::new(boundary, chunks, law, self.rules, super_epoch)
    }

    /// Hops over which expected coverage is taken: the halo completes the last one.
    const fn expected_hops(&self) -> usize {
        halo_hops(self.weighing.hops, self.rules.halo)
    }

    fn knows_expected(&self) -> bool {
        self.weighing.normalise == Normalise::Rho
    }

    /// What to know where chunks stay, though a schedule asks for them to be dealt again.
    fn note_on_chunks(&self) -> Option<String> {
        let (epochs, every) = (self.epochs(), self.options.repartition_every());
        if self.options.schedule == Schedule::Fixed || self.setting.workers() < 2 {
            return None;
        }
        let why = if epochs <= every {
            let epochs = counted(epochs as u64, "epoch");
            format!("repartition_every = {every}, and it trains for {epochs}")
        } else if self.options.schedule == Schedule::Sweep && self.only_partner() {
            "of two workers each has the other's chunk beside its own; `chunks` above 2 deals more"
                .to_owned()
        } else {
            return None;
        };
        Some(format!(
            "its chunks are dealt in the first epoch and never again: {why}"
        ))
    }

    /// Steps of the whole training, which matter where a sum of gradients does not follow on each.
    fn steps(&self) -> usize {
        if self.options.gradients.every == 1 {
            return 0;
        }
        let epochs = 0..self.setting.training.epochs;
        let steps = |epoch| self.layout(epoch).steps(self.batch_size()).count();
        epochs.map(steps).sum()
    }

    /// Training nodes of a worker in a step.
    fn batch_size(&self) -> usize {
        let batches = self.setting.batches.as_ref();
        batches.map_or(usize::MAX, |batches| batches.spec.size)
    }
}

impl Training for Sweeping {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        Box::new(SweepPlanner::new(self.clone()))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut model = worker.new_model();
        let gradients = self.options.gradients;
        let mut learner = Learner::new(worker, gradients, &model, 0..self.steps());
        let mut loader = Loader::default();
        let mut loaded: Option<Loaded> = None;
        let mut taken = 0;
        let begins = worker.resume(|from| {
            model = from.model(model.clone())?;
            learner.restore(from)?;
            let epochs: usize;
            (epochs, taken, loader) = from.saved().take()?;
            let made_of: (Option<HaloRows>, Option<Weights>) = from.saved().take()?;
            if !self.loads(epochs) {
                let (arrived, weights) = made_of;
                let last = (0..epochs).rev().find(|&epoch| self.loads(epoch));
                let (layout, worker) = (self.layout(last.unwrap_or(0)), from.worker());
                let arrived = arrived.unwrap_or_default();
                loaded = Some(self.make(worker, &model, &loader, &layout, arrived, weights)?);
            }
            Ok(())
        })?;
        for epoch in begins..worker.epochs() {
            worker.begin_epoch(epoch)?;
            let layout = self.layout(epoch);
            if self.loads(epoch) {
                // Before another is put together, which is as large.
                drop(loaded.take());
                loaded = Some(self.load(worker, &model, &mut loader, &layout, epoch)?);
            }
            let Some(now @ Loaded { trainer, .. }) = &loaded else {
                return Err(SimError::Strategy(
                    "nothing was loaded before epoch 0".to_owned(),
                ));
            };
            let order = trainer.order(worker, epoch);
            let (mut loss, mut weights) = (0.0, Vec::new());
            for step in 0..trainer.steps() {
                let how = (&self.weighing, &layout);
                let at = At { epoch, step, taken };
                let (mut step, mut used) = trainer.step(worker, &model, how, &order, at)?;
                model = if gradients.are_plain() {
                    used.sum_gradients(worker, &mut step)?;
                    learner.update(worker, model, &step.gradient)
                } else {
                    learner.step(worker, model, step.gradient)?
                };
                loss += step.loss;
                weights.extend(used.of_nodes);
                taken += 1;
            }
            let scores = worker.evaluate_model(epoch, learner.agreed(&model))?;
            worker.end_epoch(
                epoch,
                EpochReport {
                    loss: loss / trainer.steps() as f64,
                    scores,
                    coverage: now.coverage,
                    weight: mean(&weights),
                    ..EpochReport::default()
                },
            );
            worker.checkpoint(epoch, |_, into| {
                into.model(&model);
                learner.save(into);
                into.put(&(epoch + 1, taken, &loader));
                into.put(&now.made_of());
            })?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let late = self.options.gradients.note(&self.setting, self.steps());
        self.note_on_chunks().into_iter().chain(late).collect()
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Sweeping {
    fn load(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        loader: &mut Loader,
        layout: &Layout<'_>,
        epoch: usize,
    ) -> Result<Loaded, SimError> {
        let mut arrived = HaloRows::default();
        if self.switches(epoch) {
            if epoch == 0 && self.knows_expected() {
                let (weight, hops) = (self.weighing.weight, self.expected_hops());
                loader.expected = expectation::expected(worker, layout, weight, hops)?;
            }
            arrived = loader.switch(worker, layout)?;
        }
        if self.rules.sampling > 0.0 {
            arrived = working::sample(worker, layout, epoch)?;
        }
        self.make(worker, model, loader, layout, arrived, None)
    }

    /// A working graph that is ready to train on, of what is held and what `arrived`; `known` are
    /// its weights, if workers have agreed on them before.
    fn make(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        loader: &Loader,
        layout: &Layout<'_>,
        arrived: HaloRows,
        known: Option<Weights>,
    ) -> Result<Loaded, SimError> {
        let (graph, features) = worker.compute(Activity::Exchange, |worker| {
            loader.assemble(worker, layout, &arrived)
        });
        let arrived = worker.writes_checkpoints().then_some(arrived);
        let batches = self.setting.batches.as_ref();
        let (features, local) = worker.compute(Activity::Exchange, |worker| {
            let features = Input::from_features(features, worker.place());
            let local = (batches.is_none()).then(|| self.local(worker, layout, &graph));
            (features, local)
        });
        let (coverage, weights) =
            worker.compute(Activity::Exchange, |_| self.weighing.of_nodes(&graph));
        let (Some(mut local), None) = (local, batches) else {
            let fanouts = batches.map(|batches| batches.spec.fanouts.clone());
            let trainer = Trainer::Batches(Box::new(batches::WorkingBatches {
                degrees: self.degrees(&graph),
                chunks: layout.chunks_of(&graph.nodes),
                fanouts: fanouts.unwrap_or_default(),
                steps: layout.steps(self.batch_size()),
                graph,
                features,
                weights,
            }));
            let coverage = mean(&coverage);
            return Ok(Loaded {
                trainer,
                coverage,
                arrived,
            });
        };
        let norms = match self.weighing.weight {
            Weight::BatchGram if known.is_none() => {
                let blocks: Vec<&Block> = (0..model.layers()).map(|l| local.layer(l).0).collect();
                let seeds = graph
                    .seeds
                    .iter()
                    .map(|seed| (seed.row, seed.label.clone()));
                let seeds: Vec<(usize, Label)> = seeds.collect();
                norms::squared(worker, model, &blocks, &features, &seeds)
            }
            _ => Vec::new(),
        };
        let training = worker.training_nodes();
        let weights = match known {
            Some(known) => known,
            None => self.weighing.agreed(worker, weights, &norms, training)?,
        };
        let rows = graph.nodes.len();
        let weighted = graph.seeds.iter().zip(&weights.of_nodes);
        let share = |weight: &f64| share_of_loss(*weight, training);
        let weighted = weighted.map(|(seed, weight)| (seed.row, seed.label.clone(), share(weight)));
        local.targets = targets(rows, worker.setting().task(), weighted, worker.place());
        let whole = Whole {
            trainer: LayerwiseTrainer::new(worker, local),
            features,
            weights,
        };
        Ok(Loaded {
            trainer: Trainer::Whole(Box::new(whole)),
            coverage: mean(&coverage),
            arrived,
        })
    }

    /// What aggregations over a working graph divide by.
    fn degrees(&self, graph: &WorkingGraph) -> EdgeDegrees {
        if self.weighing.weight == Weight::EdgeHt {
            return EdgeDegrees::of_rows(graph.degrees.clone());
        }
        let rule = self.options.halo_degrees;
        rule.degrees(&graph.adjacency, graph.inner, &graph.degrees)
    }

    /// The form of a working graph that layers compute on, its targets left open.
    fn local(&self, worker: &Worker, layout: &Layout, graph: &WorkingGraph) -> LocalGraph {
        let by_edge = self.weighing.weight == Weight::EdgeHt;
        let aggregation = worker.setting().model.aggregation();
        let block = Block::directed(&graph.adjacency, &self.degrees(graph), aggregation);
        let weighted = by_edge.then(|| {
            let chunks = layout.chunks_of(&graph.nodes);
            block.scaled(inverse_chances(layout, &chunks, graph.inner))
        });
        let (block, upper) = match weighted {
            Some(weighted) if self.rules.halo => (block, Some((weighted, graph.nodes.clone()))),
            Some(weighted) => (weighted, None),
            None => (block, None),
        };
        LocalGraph {
            block,
            upper,
            nodes: graph.nodes.clone(),
            targets: targets(0, worker.setting().task(), [], worker.place()),
        }
    }
}
