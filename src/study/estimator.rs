//! One way of weighing the gradients of training nodes.

use serde::Deserialize;

use super::optima::{batch_projection, james_stein, pooled_lambda};
use super::{Known, LAYERS};
use crate::strategies::grappa::estimators::{
    Normalise, Shrinkage, Weight, capped, mean_or_one, node_hajek, over_expectation,
    sampling_variance, shrunk,
};

/// An estimator of the full gradient: a weight, what it is divided by, and how it is shrunk and
/// capped, in this order: coverage, κ, normalisation, cap, batch, λ.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Estimator {
    /// What corrects for missing neighbours.
    pub weight: Weight,
    /// How it is pulled towards 1.
    #[serde(default)]
    pub shrinkage: Shrinkage,
    /// What it is divided by.
    #[serde(default)]
    pub normalise: Normalise,
    /// κ of `Shrinkage::Kappa`.
    #[serde(default = "one")]
    pub kappa: f64,
    /// λ of `Shrinkage::Lambda`; estimated from all workers' weights if not given.
    pub lambda: Option<f64>,
    /// Largest weight of a node.
    pub cap: Option<f64>,
    /// Steps of the walk whose chance to stay is the coverage, at least 1.
    #[serde(default = "layers")]
    pub coverage_hops: usize,
}

const fn one() -> f64 {
    1.0
}

const fn layers() -> usize {
    LAYERS
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            weight: Weight::None,
            shrinkage: Shrinkage::None,
            normalise: Normalise::None,
            kappa: 1.0,
            lambda: None,
            cap: None,
            coverage_hops: LAYERS,
        }
    }
}

/// The training nodes of one worker in one outcome.
pub(super) struct Batch {
    pub seeds: Vec<u32>,
    /// Coverage of each seed, for each of the known hops.
    pub coverage: Vec<Vec<f64>>,
    /// Seen neighbours of each seed.
    pub seen: Vec<usize>,
    /// `[seeds, parameters]`.
    pub gradients: Vec<f64>,
}

impl Estimator {
    /// What tables and figures call it: the weight, and in brackets what differs from doing
    /// nothing.
    pub(crate) fn label(&self) -> String {
        let mut parts = Vec::new();
        if self.normalise != Normalise::None {
            parts.push(self.normalise.name().to_owned());
        }
        match (self.shrinkage, self.lambda) {
            (Shrinkage::None, _) => {}
            (Shrinkage::Kappa, _) => parts.push(format!("kappa={}", self.kappa)),
            (Shrinkage::Lambda, Some(lambda)) => parts.push(format!("lambda={lambda}")),
            (shrinkage, _) => parts.push(shrinkage.name().to_owned()),
        }
        if let Some(cap) = self.cap {
            parts.push(format!("cap={cap}"));
        }
        if self.weight.uses_coverage() && self.coverage_hops != LAYERS {
            parts.push(format!("hops={}", self.coverage_hops));
        }
        if parts.is_empty() {
            return self.weight.name().to_owned();
        }
        format!("{}({})", self.weight.name(), parts.join(" "))
    }

    /// Whether its parts go together.
    ///
    /// # Errors
    /// The key that does not fit and what to do, as the rest of a sentence.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let name = self.weight.name();
        let weighs_nodes = !matches!(self.weight, Weight::None | Weight::EdgeHt);
        let refuse =
            |key, what: &str| Err((key, format!("{what}, not weight = \"{name}\"; remove it")));
        if self.shrinkage.is_of_batches() && !self.weight.is_batch() {
            return refuse(
                "shrinkage",
                "of this kind needs a batch weight (batch_mean or batch_gram)",
            );
        }
        let of_nodes = matches!(self.shrinkage, Shrinkage::Kappa | Shrinkage::Authors);
        if of_nodes && !self.weight.uses_coverage() {
            return refuse("shrinkage", "of this kind needs a weight made of coverages");
        }
        if self.normalise != Normalise::None && !weighs_nodes {
            return refuse("normalise", "needs weights of nodes or batches");
        }
        if self.cap.is_some() && !weighs_nodes {
            return refuse("cap", "needs weights of nodes or batches");
        }
        if !(self.kappa >= 0.0 && self.kappa.is_finite()) {
            return Err(("kappa", format!("must be 0 or more, not {}", self.kappa)));
        }
        if let Some(lambda) = self.lambda.filter(|lambda| !(0.0..=1.0).contains(lambda)) {
            return Err(("lambda", format!("must be between 0 and 1, not {lambda}")));
        }
        if self.lambda.is_some() && self.shrinkage != Shrinkage::Lambda {
            return Err((
                "lambda",
                "goes with shrinkage = \"lambda\"; remove it".to_owned(),
            ));
        }
        if let Some(cap) = self.cap.filter(|cap| !(*cap > 0.0 && cap.is_finite())) {
            return Err(("cap", format!("must be more than 0, not {cap}")));
        }
        if !(1..=LAYERS).contains(&self.coverage_hops) {
            return Err((
                "coverage_hops",
                format!(
                    "must be 1 or {LAYERS}, the network's layers, not {}",
                    self.coverage_hops
                ),
            ));
        }
        Ok(())
    }

    /// The weight of every seed of every worker.
    pub(super) fn weights(&self, batches: &[Batch], known: &Known) -> Vec<Vec<f64>> {
        let mut weights: Vec<Vec<f64>> = batches
            .iter()
            .map(|batch| self.node_weights(batch, known))
            .collect();
        // After all workers' weights are known, of which this is the mean.
        if self.normalise == Normalise::Mean {
            let mean = mean_or_one(&weights.concat());
            for weight in weights.iter_mut().flatten() {
                *weight = over_expectation(*weight, mean);
            }
        }
        for weight in weights.iter_mut().flatten() {
            *weight = capped(*weight, self.cap);
        }
        if !self.weight.is_batch() {
            return weights;
        }
        let of_batches: Vec<f64> = weights
            .iter()
            .zip(batches)
            .map(|(weights, batch)| self.batch_weight(weights, &batch.gradients))
            .collect();
        // What is random is the partition, and not a draw from the worker's nodes.
        let variances: Vec<f64> = weights
            .iter()
            .map(|weights| sampling_variance(weights))
            .collect();
        let lambda = match (self.shrinkage, self.lambda) {
            (Shrinkage::Lambda, Some(lambda)) => lambda,
            (Shrinkage::Lambda, None) => pooled_lambda(&of_batches, &variances),
            (Shrinkage::JamesStein, _) => james_stein(
                &of_batches,
                variances.iter().sum::<f64>() / variances.len() as f64,
            ),
            (Shrinkage::None | Shrinkage::Kappa | Shrinkage::Authors, _) => 1.0,
        };
        for (weights, weight) in weights.iter_mut().zip(of_batches) {
            // `1 + (w − 1)` would have other last bits than `w`.
            let weight = if lambda == 1.0 {
                weight
            } else {
                shrunk(weight, lambda)
            };
            // Weights of nodes were capped above; what is made of them can lie above the cap again.
            weights.fill(capped(weight, self.cap));
        }
        weights
    }

    /// Weights of one worker's seeds before they are compared with those of others.
    fn node_weights(&self, batch: &Batch, known: &Known) -> Vec<f64> {
        // Every estimator's hops are among the known ones.
        let place = known
            .hops
            .iter()
            .position(|&hops| hops == self.coverage_hops)
            .unwrap_or(0);
        let rho = self.normalise == Normalise::Rho;
        let weight = |(seed, &v): (usize, &u32)| {
            let (v, degree) = (v as usize, known.degrees[v as usize]);
            let (weight, expected) = match self.weight {
                // Edge weights act within the aggregation, not on gradients.
                Weight::None | Weight::EdgeHt => return 1.0,
                Weight::NodeHajek => (node_hajek(batch.seen[seed], degree), 1.0 - known.empty[v]),
                Weight::NodeHt | Weight::BatchMean | Weight::BatchGram => {
                    let smooth = |coverage| self.shrinkage.of_node(coverage, degree, self.kappa);
                    (
                        smooth(batch.coverage[place][seed]),
                        smooth(known.expected[place][v]),
                    )
                }
            };
            if rho {
                over_expectation(weight, expected)
            } else {
                weight
            }
        };
        batch.seeds.iter().enumerate().map(weight).collect()
    }

    fn batch_weight(&self, weights: &[f64], gradients: &[f64]) -> f64 {
        if self.weight != Weight::BatchGram || weights.is_empty() {
            return mean_or_one(weights);
        }
        let size = gradients.len() / weights.len();
        let (mut plain, mut weighted) = (vec![0.0; size], vec![0.0; size]);
        super::add_weighted(&mut plain, gradients, |_| 1.0);
        super::add_weighted(&mut weighted, gradients, |seed| weights[seed]);
        batch_projection(&plain, &weighted, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_differs_from_doing_nothing() {
        let plain = Estimator::default();
        assert_eq!(plain.label(), "none");
        let full = Estimator {
            weight: Weight::BatchMean,
            shrinkage: Shrinkage::Lambda,
            normalise: Normalise::Rho,
            lambda: Some(0.5),
            cap: Some(2.0),
            coverage_hops: 1,
            ..plain.clone()
        };
        assert_eq!(full.label(), "batch_mean(rho lambda=0.5 cap=2 hops=1)");
        let estimated = Estimator {
            shrinkage: Shrinkage::JamesStein,
            lambda: None,
            ..full
        };
        assert_eq!(
            estimated.label(),
            "batch_mean(rho james_stein cap=2 hops=1)"
        );
    }

    #[test]
    fn parts_that_do_not_go_together_are_refused_by_key() {
        let node = Estimator {
            weight: Weight::NodeHt,
            ..Estimator::default()
        };
        let edge = Estimator {
            weight: Weight::EdgeHt,
            ..Estimator::default()
        };
        let batch = Estimator {
            weight: Weight::BatchMean,
            ..Estimator::default()
        };
        assert!(node.check().is_ok() && edge.check().is_ok() && batch.check().is_ok());
        for (estimator, key) in [
            (
                Estimator {
                    shrinkage: Shrinkage::Lambda,
                    ..node.clone()
                },
                "shrinkage",
            ),
            (
                Estimator {
                    shrinkage: Shrinkage::Kappa,
                    ..edge.clone()
                },
                "shrinkage",
            ),
            (
                Estimator {
                    normalise: Normalise::Mean,
                    ..edge.clone()
                },
                "normalise",
            ),
            (
                Estimator {
                    cap: Some(1.0),
                    ..edge
                },
                "cap",
            ),
            (
                Estimator {
                    cap: Some(-1.0),
                    ..node.clone()
                },
                "cap",
            ),
            (
                Estimator {
                    lambda: Some(0.5),
                    ..batch.clone()
                },
                "lambda",
            ),
            (
                Estimator {
                    lambda: Some(1.5),
                    shrinkage: Shrinkage::Lambda,
                    ..batch
                },
                "lambda",
            ),
            (
                Estimator {
                    kappa: f64::NAN,
                    ..node.clone()
                },
                "kappa",
            ),
            (
                Estimator {
                    coverage_hops: 3,
                    ..node
                },
                "coverage_hops",
            ),
        ] {
            assert_eq!(estimator.check().unwrap_err().0, key, "{estimator:?}");
        }
    }
}
