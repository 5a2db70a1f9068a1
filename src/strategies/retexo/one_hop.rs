//! Mini-batches of one sub-model: training nodes, and neighbours drawn for them one hop away.

use burn::module::Module;

use crate::graph::{SampledLayer, Sampler, Steps, View};
use crate::model::{
    Aggregation, Block, Input, Matrix, Targets, add_gradients, cross_entropy, parameters,
    with_parameters,
};
use crate::sim::{Activity, Restoring, Saving, Scores, SimError, Worker};
use crate::strategies::parts::{EpochOrder, batch_targets};

/// What a sub-model computes on in a step.
pub(super) struct Reads {
    pub block: Block,
    pub input: Input,
    /// Global numbers of the input's rows.
    pub nodes: Vec<u32>,
    /// Constant side of the loss.
    pub targets: Targets,
}

impl Reads {
    /// Gradient, flat, of `count` parameters, and loss of these logits.
    pub(super) fn gradient<M: Module>(
        &self,
        model: &M,
        logits: Matrix,
        count: usize,
    ) -> (Vec<f32>, f64) {
        let loss = cross_entropy(logits, self.targets.clone());
        let mut gradients = loss.backward();
        let mut flat = vec![0.0_f32; count];
        add_gradients(model, &mut gradients, &mut flat);
        (flat, f64::from(loss.inner().into_scalar::<f32>()))
    }
}

/// The validation score and the parameters of the best sub-model so far; of equals the first
/// stays, as in the tables.
#[derive(Default)]
pub(super) struct Best(Option<(f64, Vec<f32>)>);

impl Best {
    /// A sub-model that was evaluated, or was not.
    pub(super) fn see<M: Module>(&mut self, scores: Option<Scores>, model: &M) {
        let so_far = self.0.as_ref().map(|(validation, _)| *validation);
        if let Some(validation) = scores.and_then(|scores| scores.validation)
            && so_far.is_none_or(|so_far| validation > so_far)
        {
            self.0 = Some((validation, parameters(model)));
        }
    }

    /// Saves what was seen.
    pub(super) fn save(&self, into: &mut Saving) {
        into.put(&self.0);
    }

    /// Takes back what was saved.
    ///
    /// # Errors
    /// If something else was.
    pub(super) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.0 = from.saved().take()?;
        Ok(())
    }

    /// A sub-model with the best parameters.
    pub(super) fn of<M: Module>(self, model: M) -> M {
        match self.0 {
            Some((_, values)) => with_parameters(model, &values),
            None => model,
        }
    }
}

/// The mini-batches of sub-model `layer`. All frozen inputs are there, those of boundary rows too:
/// so neighbours are drawn across the cut without a message.
pub(super) struct OneHop {
    /// The layer's own.
    fanout: [usize; 1],
    aggregation: Aggregation,
    order: EpochOrder,
}

impl OneHop {
    /// Those of a run, if it has any.
    pub(super) fn new(worker: &Worker, layer: usize, aggregation: Aggregation) -> Option<Self> {
        let batches = worker.setting().batches.as_ref()?;
        Some(Self {
            fanout: [batches.spec.fanouts[layer]],
            aggregation,
            order: EpochOrder::default(),
        })
    }

    /// What is read in a step of an epoch, of all frozen rows in `input`; nothing where no node of
    /// this worker trains in it.
    pub(super) fn step(
        &mut self,
        worker: &mut Worker,
        steps: &Steps,
        input: &Input,
        (epoch, step): (usize, usize),
    ) -> Option<Reads> {
        let seeds = self.order.seeds(worker, steps, (epoch, step));
        // Before anything is computed: the plan has no phase for such a step.
        if seeds.is_empty() {
            return None;
        }
        let sampler = Sampler::new(worker.setting().seed, epoch, step, &self.fanout);
        let sampled = worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let view = View {
                adjacency: &shard.adjacency,
                nodes: &shard.nodes,
                own: shard.owned,
            };
            SampledLayer::draw(&sampler, 0, &view, seeds)
        });
        let seeds = &sampled.rows[..sampled.outputs];
        let read = worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let rows = || sampled.rows.iter().map(|&row| row as usize);
            let degrees: Vec<usize> = rows().map(|row| shard.degrees[row]).collect();
            Reads {
                block: Block::sampled(&sampled, &degrees, self.aggregation),
                input: input.select(&sampled.rows),
                nodes: rows().map(|row| shard.nodes[row]).collect(),
                targets: batch_targets(worker, steps, seeds, step),
            }
        });
        Some(read)
    }
}
