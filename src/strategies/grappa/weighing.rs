//! What the loss of each training node is multiplied by.

use serde::{Deserialize, Serialize};

use super::estimators::{
    self, Normalise, Shrinkage, Weight, batch_norms, capped, james_stein_of_sums, mean_or_one,
    node_hajek, over_expectation, sampling_variance, shrunk,
};
use super::working::WorkingGraph;
use crate::net::{Reduce, TrafficKind};
use crate::sim::{SimError, Track, Worker};
use crate::strategies::parts::Step;

/// How weights come about, in this order: coverage, κ, ρ, mean, cap, batch, λ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    /// What corrects for missing neighbours.
    pub weight: Weight,
    /// Steps of the walk whose chance to stay is the coverage.
    pub hops: usize,
    /// How weights are pulled towards 1.
    pub shrinkage: Shrinkage,
    /// κ.
    pub kappa: f64,
    /// λ, where it is given.
    pub lambda: f64,
    /// What weights are divided by.
    pub normalise: Normalise,
    /// Largest weight of a node.
    pub cap: Option<f64>,
    /// Whether gradients are summed whole in every step, so that a number can travel with them.
    pub with_gradients: bool,
}

impl Weighing {
    /// Coverage of each seed, and its weight before workers compare theirs.
    pub(super) fn of_nodes(&self, graph: &WorkingGraph) -> (Vec<f64>, Vec<f64>) {
        // Halo rows have no in-edges: a walk may reach them with its last step only.
        let all = estimators::coverage(&graph.adjacency, &graph.degrees, self.hops);
        let coverage: Vec<f64> = graph.seeds.iter().map(|seed| all[seed.row]).collect();
        let weights = graph.seeds.iter().zip(&coverage).map(|(seed, &coverage)| {
            let degree = graph.degrees[seed.row];
            let smooth = |coverage| self.shrinkage.of_node(coverage, degree, self.kappa);
            let (weight, expected) = match self.weight {
                Weight::None | Weight::EdgeHt => return 1.0,
                Weight::NodeHajek => {
                    let seen = graph.adjacency.degree(seed.row);
                    (node_hajek(seen, degree), seed.expected)
                }
                Weight::NodeHt | Weight::BatchMean | Weight::BatchGram => {
                    (smooth(coverage), smooth(seed.expected))
                }
            };
            match self.normalise {
                Normalise::Rho => over_expectation(weight, expected),
                Normalise::None | Normalise::Mean => weight,
            }
        });
        let weights = weights.collect();
        (coverage, weights)
    }

    /// Whether weights are divided by their mean over all workers.
    fn takes_mean(&self) -> bool {
        self.normalise == Normalise::Mean && !matches!(self.weight, Weight::None | Weight::EdgeHt)
    }

    /// Whether that division can wait until gradients are summed, because nothing that follows it
    /// depends on its result: the sum of weights then travels with the gradients, if these go
    /// whole.
    pub(super) fn folds_mean(&self) -> bool {
        self.with_gradients
            && self.takes_mean()
            && self.cap.is_none()
            && !(self.weight.is_batch() && self.shrinkage.is_of_batches())
    }

    /// Final weights: over their mean, capped, and made one per batch; where
    /// [`Self::folds_mean`], not yet over their mean. `norms` are the seeds' squared gradient
    /// norms, for `batch_gram`, and `nodes` the training nodes of all workers, of which everyone
    /// knows the number.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn agreed(
        &self,
        worker: &mut Worker,
        mut weights: Vec<f64>,
        norms: &[f64],
        nodes: usize,
    ) -> Result<Weights, SimError> {
        let sum = self.folds_mean().then(|| weights.iter().sum());
        let agreed = |weights| Weights {
            of_nodes: weights,
            sum,
            nodes,
        };
        if self.takes_mean() && sum.is_none() {
            let [sum] = summed(worker, [weights.iter().sum()])?;
            let mean = sum / nodes.max(1) as f64;
            if mean > 0.0 {
                for weight in &mut weights {
                    *weight /= mean;
                }
            }
        }
        for weight in &mut weights {
            *weight = capped(*weight, self.cap);
        }
        if !self.weight.is_batch() {
            return Ok(agreed(weights));
        }
        let batch = match self.weight {
            Weight::BatchGram => batch_norms(norms, &weights),
            _ => mean_or_one(&weights),
        };
        let batch = match self.shrinkage {
            Shrinkage::None | Shrinkage::Kappa | Shrinkage::Authors => batch,
            Shrinkage::Lambda => shrunk(batch, self.lambda),
            Shrinkage::JamesStein => {
                // What is random is the partition, and in mini-batches the draw from the worker's
                // nodes as well. The variance is that of draws with replacement, which is a little
                // more, so that λ is a little smaller and weights lie closer to 1.
                let noise = sampling_variance(&weights);
                let [signal, noise] = summed(worker, [(batch - 1.0).powi(2), noise])?;
                let workers = worker.size();
                shrunk(
                    batch,
                    james_stein_of_sums(workers, signal, noise / workers as f64),
                )
            }
        };
        // Shrinking pulls towards 1, which may lie above the cap.
        weights.fill(capped(batch, self.cap));
        Ok(agreed(weights))
    }

    /// What a worker does in [`Self::agreed`]: an all-reduce of one number for a mean that cannot
    /// wait, and of two for James and Stein's λ.
    pub(super) fn plan(&self, track: &mut Track) {
        if self.takes_mean() && !self.folds_mean() {
            track.all_reduce(1, TrafficKind::Control);
        }
        if self.weight.is_batch() && self.shrinkage == Shrinkage::JamesStein {
            track.all_reduce(2, TrafficKind::Control);
        }
    }
}

/// What the losses of a worker's training nodes in a step are multiplied by.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Weights {
    /// Of each of them.
    pub of_nodes: Vec<f64>,
    /// The sum of the nodes' own weights, where these are still to be divided by their mean over
    /// all workers.
    pub sum: Option<f64>,
    /// Training nodes of all workers in the step.
    pub nodes: usize,
}

impl Weights {
    /// Sums gradients over workers, and with them the weights where these are to be divided by
    /// their mean; `loss` and weights are divided, too.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn sum_gradients(
        &mut self,
        worker: &mut Worker,
        step: &mut Step,
    ) -> Result<(), SimError> {
        step.gradient.extend(self.sum.map(|sum| sum as f32));
        let kind = TrafficKind::ParameterGradient;
        worker.all_reduce(&mut step.gradient, Reduce::Sum, kind)?;
        let Some(sum) = self.sum.and_then(|_| step.gradient.pop()) else {
            return Ok(());
        };
        let mean = f64::from(sum) / self.nodes.max(1) as f64;
        if mean > 0.0 {
            let factor = (1.0 / mean) as f32;
            step.gradient.iter_mut().for_each(|value| *value *= factor);
            step.loss /= mean;
            self.of_nodes.iter_mut().for_each(|weight| *weight /= mean);
        }
        Ok(())
    }
}

/// The sums of some numbers over all workers.
fn summed<const N: usize>(worker: &mut Worker, mine: [f64; N]) -> Result<[f64; N], SimError> {
    let mut sums = mine.map(|number| number as f32);
    worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
    Ok(sums.map(f64::from))
}
