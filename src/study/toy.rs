//! A two-layer network of means over neighbours in double precision, with its gradient written out:
//! `softmax(M relu(M X W₁) W₂)`.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::Problem;
use super::view::{Operators, Rows};

/// What is minimised at each training node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Loss {
    /// Cross-entropy of the softmax.
    #[default]
    CrossEntropy,
    /// Half the squared distance to the one-hot label.
    Squared,
}

/// The network: `W₁ [features, hidden]` and `W₂ [hidden, classes]`, without biases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Toy {
    features: usize,
    hidden: usize,
    classes: usize,
    loss: Loss,
    /// W₁ then W₂, row by row.
    parameters: Vec<f64>,
}

/// What the first layer makes of every node that has a row.
struct Hidden {
    /// `M X`, `[nodes, features]`.
    aggregated: Vec<f64>,
    /// `M X W₁`, `[nodes, hidden]`.
    sums: Vec<f64>,
}

impl Toy {
    /// Uniform weights in `± √(6/(rows + columns))` (Glorot and Bengio, 2010).
    pub(crate) fn new(
        [features, hidden, classes]: [usize; 3],
        loss: Loss,
        random: &mut impl Rng,
    ) -> Self {
        use rand::RngExt;
        let mut parameters = Vec::new();
        for (rows, columns) in [(features, hidden), (hidden, classes)] {
            let reach = (6.0 / (rows + columns) as f64).sqrt();
            parameters
                .extend((0..rows * columns).map(|_| reach * (2.0 * random.random::<f64>() - 1.0)));
        }
        Self {
            features,
            hidden,
            classes,
            loss,
            parameters,
        }
    }

    /// `W₁` and then `W₂`, row by row.
    pub(crate) fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// One step of gradient descent.
    pub(super) fn step(&mut self, gradient: &[f64], learning_rate: f64) {
        for (parameter, slope) in self.parameters.iter_mut().zip(gradient) {
            *parameter -= learning_rate * slope;
        }
    }

    fn heads(&self) -> (&[f64], &[f64]) {
        self.parameters.split_at(self.features * self.hidden)
    }

    fn hidden(&self, features: &[f64], last_hop: &Rows) -> Hidden {
        let (first, _) = self.heads();
        let nodes = last_hop.len();
        let mut aggregated = vec![0.0; nodes * self.features];
        let mut sums = vec![0.0; nodes * self.hidden];
        for v in 0..nodes {
            let row = last_hop.row(v);
            // A node that is not held has no row, and keeps its zeros.
            if row.is_empty() {
                continue;
            }
            let mean = &mut aggregated[v * self.features..][..self.features];
            for &(u, share) in row {
                add(
                    mean,
                    &features[u as usize * self.features..][..self.features],
                    share,
                );
            }
            let sum = &mut sums[v * self.hidden..][..self.hidden];
            for (value, weights) in mean.iter().zip(first.chunks_exact(self.hidden)) {
                add(sum, weights, *value);
            }
        }
        Hidden { aggregated, sums }
    }

    /// The mean of hidden rows at `v`, and the outputs made of it.
    fn output(&self, hidden: &Hidden, first_hop: &Rows, v: usize) -> (Vec<f64>, Vec<f64>) {
        let (_, second) = self.heads();
        let mut mean = vec![0.0; self.hidden];
        for &(u, share) in first_hop.row(v) {
            let sums = &hidden.sums[u as usize * self.hidden..][..self.hidden];
            for (mean, sum) in mean.iter_mut().zip(sums) {
                *mean += share * sum.max(0.0);
            }
        }
        let mut output = vec![0.0; self.classes];
        for (value, weights) in mean.iter().zip(second.chunks_exact(self.classes)) {
            add(&mut output, weights, *value);
        }
        (mean, output)
    }

    /// Loss of one output and its derivative by it.
    fn loss(&self, output: &[f64], label: u32) -> (f64, Vec<f64>) {
        let target = |class: usize| f64::from(u8::from(class == label as usize));
        match self.loss {
            Loss::Squared => {
                let error: Vec<f64> = output
                    .iter()
                    .enumerate()
                    .map(|(class, value)| value - target(class))
                    .collect();
                (error.iter().map(|e| e * e).sum::<f64>() / 2.0, error)
            }
            Loss::CrossEntropy => {
                let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = output.iter().map(|value| (value - top).exp()).sum();
                let share = |value: f64| (value - top).exp() / total;
                let error = output
                    .iter()
                    .enumerate()
                    .map(|(class, &value)| share(value) - target(class));
                (top + total.ln() - output[label as usize], error.collect())
            }
        }
    }

    /// The gradient of each seed's loss, `[seeds, parameters]`.
    pub(super) fn gradients(
        &self,
        problem: &Problem,
        operators: &Operators,
        seeds: &[u32],
    ) -> Vec<f64> {
        let hidden = self.hidden(&problem.features, &operators.last_hop);
        let (_, second) = self.heads();
        let size = self.parameters.len();
        let mut gradients = vec![0.0; seeds.len() * size];
        // Seed by seed, without summing: every estimator weighs the same gradients in its own way.
        for (&v, gradient) in seeds.iter().zip(gradients.chunks_exact_mut(size)) {
            let (mean, output) = self.output(&hidden, &operators.first_hop, v as usize);
            let (_, error) = self.loss(&output, problem.labels[v as usize]);
            let (of_first, of_second) = gradient.split_at_mut(self.features * self.hidden);
            for (row, value) in of_second.chunks_exact_mut(self.classes).zip(&mean) {
                add(row, &error, *value);
            }
            let product = |weights: &[f64]| weights.iter().zip(&error).map(|(w, e)| w * e).sum();
            let back: Vec<f64> = second.chunks_exact(self.classes).map(product).collect();
            for &(u, share) in operators.first_hop.row(v as usize) {
                let u = u as usize;
                let sums = &hidden.sums[u * self.hidden..][..self.hidden];
                let passed = back
                    .iter()
                    .zip(sums)
                    // The slope of a ReLU is 0 at 0, as in the networks that are trained.
                    .map(|(back, sum)| if *sum > 0.0 { share * back } else { 0.0 });
                let passed: Vec<f64> = passed.collect();
                let inputs = &hidden.aggregated[u * self.features..][..self.features];
                for (row, input) in of_first.chunks_exact_mut(self.hidden).zip(inputs) {
                    add(row, &passed, *input);
                }
            }
        }
        gradients
    }

    /// The sum of the seeds' losses, whose gradient [`Toy::gradients`] is the parts of.
    #[cfg(test)]
    pub(super) fn total_loss(
        &self,
        problem: &Problem,
        operators: &Operators,
        seeds: &[u32],
    ) -> f64 {
        let hidden = self.hidden(&problem.features, &operators.last_hop);
        let loss = |v: &u32| {
            let (_, output) = self.output(&hidden, &operators.first_hop, *v as usize);
            self.loss(&output, problem.labels[*v as usize]).0
        };
        seeds.iter().map(loss).sum()
    }

    /// The outputs of one node, `[classes]`.
    #[cfg(test)]
    pub(super) fn outputs(
        &self,
        problem: &Problem,
        operators: &Operators,
        node: usize,
    ) -> Vec<f64> {
        let hidden = self.hidden(&problem.features, &operators.last_hop);
        self.output(&hidden, &operators.first_hop, node).1
    }

    /// The network with one parameter moved.
    #[cfg(test)]
    pub(super) fn moved(&self, parameter: usize, by: f64) -> Self {
        let mut moved = self.clone();
        moved.parameters[parameter] += by;
        moved
    }
}

fn add(sum: &mut [f64], row: &[f64], factor: f64) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += factor * value;
    }
}
