//! RETEXO among clients that hold a node each, or any parts of the graph: the fully distributed
//! form, that of the authors' `aashishkolluri/retexognn-prototype` (read at `e6ff379`).
//!
//! ```text
//!   features ──▶ M_0 ──▶ logits ──edges──▶ M_1 ──▶ logits ──edges──▶ … M_K
//!   trained one after another, R rounds each
//! ```
//!
//! Raw features never leave their client. Sub-model `k > 0` reads the detached class logits of
//! sub-model `k − 1`, its client's own and its neighbours', which are sent along the edges *once*.
//! Client 0 is also the server. In a round it sends the parameters to every client with a training
//! node, each returns its gradient, and the server takes the step. After the `R` rounds it sends
//! those with the best validation accuracy to all clients, for their logits; those of the last
//! sub-model need not be sent. With `T` clients with training nodes besides the server, `B`
//! boundary rows (edges, counted both ways, for one node each), `C` classes and `P` clients,
//!
//! ```text
//!   4 B C K                    logits, as activations of layer 1..=K [derived from their protocol]
//!   4 T R Σ_k |θ_k|            parameters to the clients that train in a round
//!   4 T R Σ_k |θ_k|            their gradients
//!   4 (P − 1) Σ_{k<K} |θ_k|    finished parameters to all
//! ```
//!
//! As in that code (`get_scheduler` of `src/trainers/general_trainer.py`): the learning rate falls
//! linearly to zero over the rounds of each sub-model, from what `[optimizer]` says; the authors
//! take `kind = "sgd"`, `momentum = 0.9`, `weight_decay = 5e-4` (`src/globals.py`) and 400 rounds
//! (`--num_epochs` of `src/run_exp.py`). Different there: the best parameters are those with the
//! least validation loss, and sub-model 0 learns at a rate of 0.1 (`src/trainers/mmlp_trainer.py`).
//!
//! With `training.batch`, `size` clients in all, drawn anew in each round without replacement,
//! train in it (the authors' `--batch_size`, 512), and each listens to `fanouts[k − 1]` of its
//! neighbours in sub-model `k > 0` (25 with their `--sample_neighbors`), drawn anew too; logits
//! still travel along every edge once, as a client needs those of any neighbour sooner or later.
//! Without it, every training client takes part in every round and hears all its neighbours.
//!
//! **How thousands of clients are held.** All have the same parameters at all times, so these are
//! held once: worker 0 plays all clients, computing what each would for itself as one batch, and
//! the network carries every message of every client at its size, counted and timed like any
//! others. A client is charged its share of the time of the batch, and waits for the slowest
//! message of each phase. Memory is that of the graph, one sub-model, the boundary plan (O(nodes +
//! B)) and the record of messages, a row for each client and round.

use std::sync::Arc;

use burn::module::Module;

use super::clients_plan::{
    ClientsPlanner, download, finished, logits, sample, seeds, training, upload,
};
use super::one_hop::{Best, Reads};
use super::perceptron::{Perceptron, aggregation};
use super::rounds::Rounds;
use super::{Clients, initial, note_on_model};
use crate::graph::Features;
use crate::model::{
    Aggregation, Block, Input, ModelSpec, NamedParameter, NormKind, Targets, mean_targets,
};
use crate::sim::{Activity, EpochReport, Planner, Setting, SimError, Worker};
use crate::strategies::{EpochKind, Training};

/// What all clients know, in the order of the nodes: so it does not matter who holds which.
struct Shared {
    block: Block,
    aggregation: Aggregation,
    /// Degrees of all nodes.
    degrees: Vec<usize>,
    nodes: Vec<u32>,
    targets: Targets,
    rounds: Rounds,
}

impl Training for Clients {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn epochs(&self) -> usize {
        self.rounds.first(self.setting.model.layers() + 1)
    }

    fn epoch_kind(&self) -> EpochKind {
        EpochKind::SubModel
    }

    fn notes(&self) -> Vec<String> {
        let model = &self.setting.model;
        let own = note_on_model(model, NormKind::None, model.kind.activation());
        own.into_iter().collect()
    }

    fn planner(&self) -> Box<dyn Planner> {
        Box::new(ClientsPlanner::new(self.clone()))
    }

    fn initial(&self) -> Vec<NamedParameter> {
        let setting = &*self.setting;
        let (spec, device) = (&setting.model, setting.device());
        let drawn = |stage| Perceptron::new(spec, stage, setting.seed, &device);
        initial((0..=spec.layers()).map(|stage| setting.with_given(stage, drawn(stage))))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        train(worker, &self.rounds)
    }
}

/// The program of worker 0, which plays all clients.
fn train(worker: &mut Worker, rounds: &Rounds) -> Result<(), SimError> {
    let setting = Arc::clone(worker.setting());
    let (spec, dataset) = (&setting.model, &setting.dataset);
    let sizes = (0..=spec.layers()).map(|stage| Perceptron::parameters(spec, stage));
    worker.trains(sizes.sum());
    let degrees: Vec<usize> = (0..dataset.graph.nodes())
        .map(|v| dataset.graph.degree(v))
        .collect();
    let train = dataset.split.train.iter().map(|&v| v as usize);
    let labelled = train.map(|v| (v, dataset.labels.of(v)));
    let training = dataset.split.train.len();
    let place = worker.place();
    let aggregation = aggregation(spec);
    let clients = Shared {
        block: Block::new(&dataset.graph, &degrees, aggregation),
        aggregation,
        nodes: (0_u32..).take(degrees.len()).collect(),
        targets: mean_targets(degrees.len(), setting.task(), labelled, training, place),
        degrees,
        rounds: rounds.clone(),
    };
    let mut input = Input::from_features(Features::clone(&dataset.features), place);
    for stage in 0..=spec.layers() {
        let model = clients.train_stage(worker, spec, stage, &input)?;
        // Nobody listens to the last sub-model, so nothing of it is sent.
        if stage == spec.layers() {
            break;
        }
        // What follows is counted under the first round of the next sub-model.
        worker.begin_epoch(rounds.first(stage + 1))?;
        worker.carry(&finished(
            worker.size(),
            Perceptron::parameters(spec, stage),
        ))?;
        let all: Vec<usize> = (0..worker.size()).collect();
        input = Input::Dense(worker.compute_together(Activity::Model, &all, |worker| {
            // Without a history for gradients: these never cross sub-models.
            let rows = model.valid().logits(&clients.block, &input);
            worker.wait_for(&rows);
            rows
        }));
        worker.carry(&logits(&setting.counts, spec.classes(), stage + 1))?;
    }
    Ok(())
}

impl Shared {
    /// What the clients that train in a round compute on: their own nodes and, but in sub-model 0,
    /// the neighbours that they draw.
    fn batch(
        &self,
        worker: &mut Worker,
        stage: usize,
        input: &Input,
        epoch: usize,
        training: &[usize],
    ) -> Reads {
        let setting = Arc::clone(worker.setting());
        let seeds = seeds(&setting, training);
        worker.compute_together(Activity::Exchange, training, |worker| {
            let (count, labels) = (seeds.len(), &setting.dataset.labels);
            let labelled = seeds.iter().map(|&v| labels.of(v as usize));
            let labelled = labelled.enumerate();
            let constant = mean_targets(count, setting.task(), labelled, count, worker.place());
            let sampled = sample(&setting, stage, epoch, &self.nodes, seeds);
            let degrees = sampled.rows.iter().map(|&v| self.degrees[v as usize]);
            let degrees: Vec<usize> = degrees.collect();
            Reads {
                block: Block::sampled(&sampled, &degrees, self.aggregation),
                input: input.select(&sampled.rows),
                nodes: sampled.rows,
                targets: constant,
            }
        })
    }

    /// Trains one sub-model on frozen inputs and returns it with its best parameters.
    fn train_stage(
        &self,
        worker: &mut Worker,
        spec: &ModelSpec,
        stage: usize,
        input: &Input,
    ) -> Result<Perceptron, SimError> {
        let setting = Arc::clone(worker.setting());
        let drawn = Perceptron::new(spec, stage, setting.seed, &worker.device());
        let mut model = setting.with_given(stage, drawn);
        let mut optimizer = worker.new_optimizer();
        let dropout = worker.dropout();
        let count = Perceptron::parameters(spec, stage);
        let whole = Reads {
            block: self.block.clone(),
            input: input.clone(),
            nodes: self.nodes.clone(),
            targets: self.targets.clone(),
        };
        let mut best = Best::default();
        let rounds = self.rounds.of(stage);
        for round in 0..rounds {
            let epoch = self.rounds.first(stage) + round;
            worker.begin_epoch(epoch)?;
            let training = training(&setting, epoch);
            let upload = upload(&training, count);
            worker.carry(&download(&training, count))?;
            let batch = setting.batches.as_ref();
            let batch = batch.map(|_| self.batch(worker, stage, input, epoch, &training));
            let busy = match batch {
                // Without batches one pass over the whole graph stands for that of every client.
                Some(_) => training,
                None => (0..worker.size()).collect(),
            };
            let reads = batch.as_ref().unwrap_or(&whole);
            let (block, rows) = (&reads.block, &reads.input);
            let logits = worker.compute_together(Activity::Model, &busy, |worker| {
                let dropped = rows.dropped(&dropout, epoch as u64, stage, &reads.nodes);
                let logits = model.logits(block, &dropped);
                worker.wait_for(&logits);
                logits
            });
            let (gradient, loss) = worker.compute_together(Activity::Model, &busy, |_| {
                reads.gradient(&model, logits, count)
            });
            worker.carry(&upload)?;
            // Linearly towards zero within each sub-model, as the authors' `get_scheduler` does.
            let factor = 1.0 - round as f64 / rounds as f64;
            // The server's alone: the sum of the gradients and the step.
            model = worker.compute(Activity::Model, |_| {
                optimizer.scaled_step(model, &gradient, factor)
            });

            let last = round + 1 == rounds;
            let scores = if last || worker.evaluates(epoch) {
                worker.evaluate_whole(|| model.valid().logits(&self.block, input))?
            } else {
                None
            };
            best.see(scores, &model);
            let report = EpochReport {
                loss,
                scores: scores.filter(|_| stage == spec.layers()),
                ..EpochReport::default()
            };
            worker.end_epoch(epoch, report);
        }
        Ok(best.of(model))
    }
}
