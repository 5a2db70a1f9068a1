//! How far an estimated gradient is from the full one: bias, variance and error of every weight and
//! shrinkage, on a network small enough to know them. `grapevine estimator` runs it.
//!
//! For one design and one graph, each outcome of the design gives what every worker sees
//! ([`Design`], `view`), from which a two-layer toy network ([`Toy`]) computes the gradient of
//! every training node, which each [`Estimator`] weighs and adds up. The differences to the
//! gradient of the whole graph are gathered over all outcomes, or over a sample of them where there
//! are too many (`moments`). Derived and measured here; the paper has no such study.
//!
//! Two estimators know more here than in a training: `batch_gram` projects on the gradients
//! themselves, where a training has their norms in the last layer only and takes them for
//! uncorrelated; and the expected coverage of `normalise = "rho"` is that of whole walks, where a
//! training multiplies the chances of their steps.
//!
//! | file | what it computes |
//! |---|---|
//! | `optima` | weights and mixtures with the least error |
//! | `outcomes` | every outcome of a small design, for exact expectations |
//! | `walks` | expected coverage, walk by walk |
//! | `properties` | tests: what is unbiased and what is not, with the closed forms that say so |

mod design;
mod estimator;
mod moments;
mod optima;
mod outcomes;
#[cfg(test)]
mod properties;
mod toy;
mod view;
mod walks;

use thiserror::Error;

use crate::graph::Csr;
use crate::rng::{Purpose, stream};
use crate::strategies::grappa::estimators::{Weight, coverage, edge_ht, halo_hops};
pub(crate) use design::{Design, DesignKind};
use estimator::Batch;
pub(crate) use estimator::Estimator;
use moments::Moments;
pub(crate) use moments::Summary;
pub(crate) use toy::{Loss, Toy};
use view::{Operators, View};
use walks::{empty_probability, expected_coverage};

/// Layers of the toy network, and thus hops of its coverage.
pub(crate) const LAYERS: usize = 2;

/// A graph to train on, and the network whose gradient is estimated.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Undirected.
    pub graph: Csr,
    /// `[nodes, width]`, row by row.
    pub features: Vec<f64>,
    /// Class of each node, `[nodes]`.
    pub labels: Vec<u32>,
    /// The nodes whose losses are averaged.
    pub train: Vec<u32>,
    /// Whether a node is one of its own neighbours, as in the authors' graphs. It counts in no
    /// coverage.
    pub self_loop: bool,
    /// The network.
    pub toy: Toy,
}

/// How many outcomes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Designs with no more outcomes than this are summed exactly.
    pub enumerate_up_to: usize,
    /// Draws of any other design.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// What was found under one design.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Mean expected coverage of the training nodes over as many hops as the network has layers,
    /// one fewer with the halo.
    pub coverage: f64,
    /// How many outcomes were looked at.
    pub outcomes: usize,
    /// Whether these are all, so that numbers are exact.
    pub exact: bool,
    /// One for each estimator.
    pub estimators: Vec<Summary>,
}

/// Why there is nothing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StudyError {
    /// Relative errors need a gradient.
    #[error(
        "the full gradient is zero or not finite: train for fewer steps, or with a smaller learning_rate, in [model]"
    )]
    NoGradient,
}

impl Problem {
    /// Trains the toy network by gradient descent on the full loss.
    pub(crate) fn descend(&mut self, steps: usize, learning_rate: f64) {
        for _ in 0..steps {
            let gradient = self.full_gradient();
            self.toy.step(&gradient, learning_rate);
        }
    }

    /// The mean gradient over all training nodes with everything seen, `[parameters]`.
    pub(crate) fn full_gradient(&self) -> Vec<f64> {
        let everything = vec![true; self.graph.nodes()];
        let operators = View::new(self, &everything, false).mean_operators();
        let gradients = self.toy.gradients(self, &operators, &self.train);
        let mut sum = vec![0.0; self.toy.parameters().len()];
        add_weighted(&mut sum, &gradients, |_| 1.0);
        divide(&mut sum, self.train.len());
        sum
    }

    /// Bias, variance and error of each estimator under a design.
    ///
    /// # Errors
    /// [`StudyError::NoGradient`].
    pub(crate) fn measure(
        &self,
        design: &Design,
        halo: bool,
        estimators: &[Estimator],
        sampling: Sampling,
    ) -> Result<Found, StudyError> {
        let target = self.full_gradient();
        let size: f64 = target.iter().map(|value| value * value).sum();
        // All that is told is relative to its length.
        if !(size.is_finite() && size > 0.0) {
            return Err(StudyError::NoGradient);
        }
        let known = Known::new(self, design, halo, estimators);
        let exact = design.outcomes() <= sampling.enumerate_up_to as f64;
        let mut moments: Vec<Moments> = estimators.iter().map(|_| Moments::new(&target)).collect();
        let mut outcomes = 0;
        let mut look = |workers: &[design::Worker]| {
            let mut estimates = self.estimates(design, halo, &known, estimators, workers);
            // The unweighted one comes last.
            let plain = estimates.pop().unwrap_or_default();
            for (moments, estimate) in moments.iter_mut().zip(estimates) {
                moments.add(outcomes, &estimate, &plain);
            }
            outcomes += 1;
        };
        if exact {
            design.all().for_each(|workers| look(&workers));
        } else {
            for sample in 0..sampling.samples {
                // A stream for each sample, so that more samples begin with the same ones.
                let mut random = stream(sampling.seed, Purpose::Study, 0, sample as u64);
                look(&design.draw(&mut random));
            }
        }
        Ok(Found {
            coverage: known.coverage,
            outcomes,
            exact,
            estimators: moments
                .iter()
                .map(|moments| moments.summary(exact))
                .collect(),
        })
    }

    /// The estimate of each estimator in one outcome, and after them the unweighted one.
    fn estimates(
        &self,
        design: &Design,
        halo: bool,
        known: &Known,
        estimators: &[Estimator],
        workers: &[design::Worker],
    ) -> Vec<Vec<f64>> {
        let parameters = self.toy.parameters().len();
        let mut by_edges = vec![0.0; parameters];
        let mut batches = Vec::new();
        for worker in workers {
            let inner = design.nodes(&worker.sees);
            let owned = design.nodes(&worker.base);
            let seeds: Vec<u32> = self
                .train
                .iter()
                .copied()
                .filter(|&v| owned[v as usize])
                .collect();
            // Without training nodes there is no batch to weigh.
            if seeds.is_empty() {
                continue;
            }
            let view = View::new(self, &inner, halo);
            let gradients = self.toy.gradients(self, &view.mean_operators(), &seeds);
            // A second pass over the network, only where an estimator asks for it.
            if known.by_edges {
                let weight = |v: u32, u: u32| edge_ht(design.pair(v, u));
                let edges: Operators = view.weighted_operators(weight);
                add_weighted(
                    &mut by_edges,
                    &self.toy.gradients(self, &edges, &seeds),
                    |_| 1.0,
                );
            }
            let local = view.local_graph();
            let of_seeds = |values: &[f64]| -> Vec<f64> {
                seeds.iter().map(|&v| values[v as usize]).collect()
            };
            let coverage = known
                .hops
                .iter()
                .map(|&hops| of_seeds(&coverage(&local, &known.degrees, halo_hops(hops, halo))));
            batches.push(Batch {
                coverage: coverage.collect(),
                seen: seeds.iter().map(|&v| view.seen(v)).collect(),
                gradients,
                seeds,
            });
        }
        let mut estimates: Vec<Vec<f64>> = estimators
            .iter()
            .map(|estimator| {
                if estimator.weight == Weight::EdgeHt {
                    // Weighted within the aggregation already; nodes have no weights of their own.
                    return by_edges.clone();
                }
                let mut sum = vec![0.0; parameters];
                for (batch, weights) in batches.iter().zip(estimator.weights(&batches, known)) {
                    add_weighted(&mut sum, &batch.gradients, |seed| weights[seed]);
                }
                sum
            })
            .collect();
        let mut plain = vec![0.0; parameters];
        for batch in &batches {
            add_weighted(&mut plain, &batch.gradients, |_| 1.0);
        }
        estimates.push(plain);
        for estimate in &mut estimates {
            divide(estimate, self.train.len());
        }
        estimates
    }
}

/// What does not depend on the outcome.
struct Known {
    degrees: Vec<usize>,
    /// Hops over which some estimator takes coverage, before the halo's shift.
    hops: Vec<usize>,
    /// Expected coverage of every node, for each of `hops`.
    expected: Vec<Vec<f64>>,
    /// Probability that a node sees no neighbour.
    empty: Vec<f64>,
    coverage: f64,
    by_edges: bool,
}

impl Known {
    fn new(problem: &Problem, design: &Design, halo: bool, estimators: &[Estimator]) -> Self {
        let graph = &problem.graph;
        let expected = |hops| {
            expected_coverage(
                graph,
                design.units(),
                design.inclusion(),
                halo_hops(hops, halo),
            )
        };
        let mut hops: Vec<usize> = estimators
            .iter()
            .map(|estimator| estimator.coverage_hops)
            .collect();
        // Each once: the expected coverage of many hops follows every walk.
        hops.sort_unstable();
        hops.dedup();
        // With the halo every neighbour is seen.
        let empty = if halo {
            vec![0.0; graph.nodes()]
        } else {
            empty_probability(graph, design.units(), design.inclusion())
        };
        let all = expected(LAYERS);
        let covered: f64 = problem.train.iter().map(|&v| all[v as usize]).sum();
        Self {
            degrees: (0..graph.nodes()).map(|v| graph.degree(v)).collect(),
            expected: hops.iter().map(|&hops| expected(hops)).collect(),
            hops,
            empty,
            coverage: covered / problem.train.len() as f64,
            by_edges: estimators
                .iter()
                .any(|estimator| estimator.weight == Weight::EdgeHt),
        }
    }
}

/// Adds rows, `[rows, parameters]`, each times its weight.
fn add_weighted(sum: &mut [f64], rows: &[f64], weight: impl Fn(usize) -> f64) {
    for (number, row) in rows.chunks_exact(sum.len()).enumerate() {
        let weight = weight(number);
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
}

fn divide(sum: &mut [f64], count: usize) {
    for value in sum {
        *value /= count as f64;
    }
}

#[cfg(test)]
mod tests;
