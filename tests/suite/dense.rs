//! Matrices in double precision and what training needs of them, from the definitions: for references that share no arithmetic with
//! the library.

use grapevine::graph::{Csr, Dataset};
use grapevine::model::OptimizerConfig;
use grapevine::sim::Scores;

/// `[rows, columns]`, row after row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn new(columns: usize, values: Vec<f64>) -> Self {
        let rows = values.len() / columns;
        assert_eq!(rows * columns, values.len(), "whole rows");
        Self {
            rows,
            columns,
            values,
        }
    }

    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        Self::new(columns, vec![0.0; rows * columns])
    }

    pub(crate) fn from_floats(columns: usize, values: &[f32]) -> Self {
        Self::new(columns, values.iter().map(|&v| f64::from(v)).collect())
    }

    /// All features of a data set.
    pub(crate) fn features(dataset: &Dataset) -> Self {
        let nodes: Vec<u32> = (0..).take(dataset.graph.nodes()).collect();
        let rows = dataset.features.dense_rows(&nodes);
        Self::from_floats(dataset.features.width(), &rows)
    }

    /// `weight(v, u)` in row `v` and column `u` for each edge from `u` to `v`.
    pub(crate) fn gathering(graph: &Csr, weight: impl Fn(usize, usize) -> f64) -> Self {
        let nodes = graph.nodes();
        let mut all = Self::zeros(nodes, nodes);
        for v in 0..nodes {
            for &u in graph.neighbours(v) {
                all.values[v * nodes + u as usize] = weight(v, u as usize);
            }
        }
        all
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..][..self.columns]
    }

    pub(crate) fn transposed(&self) -> Self {
        let columns = (0..self.columns).flat_map(|column| {
            let down = self.values.iter().skip(column).step_by(self.columns);
            down.copied()
        });
        Self::new(self.rows, columns.collect())
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows, "a product");
        let mut product = Self::zeros(self.rows, other.columns);
        for (row, sums) in product.values.chunks_exact_mut(other.columns).enumerate() {
            for (place, &factor) in self.row(row).iter().enumerate() {
                for (sum, value) in sums.iter_mut().zip(other.row(place)) {
                    *sum += factor * value;
                }
            }
        }
        product
    }

    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        Self::new(self.columns, self.values.iter().map(|&v| of(v)).collect())
    }

    /// Entry by entry; a single row of `other` stands for all rows.
    pub(crate) fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        assert_eq!(self.columns, other.columns, "entry by entry");
        assert!(other.rows == 1 || other.rows == self.rows, "row by row");
        let others = other.values.iter().cycle();
        let values = self.values.iter().zip(others).map(|(&a, &b)| of(a, b));
        Self::new(self.columns, values.collect())
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    pub(crate) fn scaled(&self, other: &Self) -> Self {
        self.with(other, |a, b| a * b)
    }

    pub(crate) fn relu(&self) -> Self {
        self.map(|value| value.max(0.0))
    }

    /// The gradient of what `relu` made `output` of, from that of `output`.
    pub(crate) fn through_relu(&self, output: &Self) -> Self {
        self.with(output, |g, y| if y > 0.0 { g } else { 0.0 })
    }

    pub(crate) fn column_sums(&self) -> Self {
        let all_ones = Self::new(self.rows, vec![1.0; self.rows]);
        all_ones.times(self)
    }
}

/// Flat parameters as matrices of these shapes.
pub(crate) fn cut(values: &[f32], shapes: &[(usize, usize)]) -> Vec<Matrix> {
    let mut rest = values;
    let mut all = Vec::new();
    for &(rows, columns) in shapes {
        let (mine, others) = rest.split_at(rows * columns);
        all.push(Matrix::from_floats(columns, mine));
        rest = others;
    }
    assert!(rest.is_empty(), "all parameters have a place");
    all
}

/// `Σ part · weight + bias`; the parameters are the weights in the order of the parts, then the bias.
pub(crate) fn linear(parts: &[Matrix], parameters: &[Matrix]) -> Matrix {
    let products = parts.iter().zip(parameters).map(|(x, w)| x.times(w));
    let sum = products.reduce(|a, b| a.plus(&b)).expect("there are parts");
    sum.plus(&parameters[parts.len()])
}

/// The gradients of its parameters, from that of its output.
pub(crate) fn of_linear(parts: &[Matrix], upstream: &Matrix) -> Vec<Matrix> {
    let weights = parts.iter().map(|part| part.transposed().times(upstream));
    weights.chain([upstream.column_sums()]).collect()
}

/// The mean of `−log softmax` at the classes of all training nodes, and its gradient.
pub(crate) fn cross_entropy(logits: &Matrix, dataset: &Dataset) -> (f64, Matrix) {
    let mut gradient = Matrix::zeros(logits.rows, logits.columns);
    let share = 1.0 / dataset.split.train.len() as f64;
    let mut loss = 0.0;
    for &node in &dataset.split.train {
        let class =
            dataset.labels.classes()[node as usize].expect("training nodes have labels") as usize;
        let row = logits.row(node as usize);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.iter().map(|value| (value - largest).exp()).sum();
        loss -= share * (row[class] - largest - total.ln());
        let target = &mut gradient.values[node as usize * logits.columns..][..logits.columns];
        for (place, (target, value)) in target.iter_mut().zip(row).enumerate() {
            let hit = if place == class { 1.0 } else { 0.0 };
            *target = share * ((value - largest).exp() / total - hit);
        }
    }
    (loss, gradient)
}

/// Share of nodes whose largest logit is that of their class, and the mean cross-entropy of those that validate.
pub(crate) fn scores(logits: &Matrix, dataset: &Dataset) -> Scores {
    let is_right = |node: &&u32| {
        let row = logits.row(**node as usize);
        let largest = (1..row.len()).fold(0, |best, c| if row[c] > row[best] { c } else { best });
        dataset.labels.classes()[**node as usize] == Some(largest as u32)
    };
    let of = |nodes: &[u32]| {
        let right = nodes.iter().filter(is_right).count() as f64;
        (!nodes.is_empty()).then(|| right / nodes.len() as f64)
    };
    Scores {
        train: of(&dataset.split.train),
        validation: of(&dataset.split.validation),
        test: of(&dataset.split.test),
        validation_loss: mean_loss(logits, dataset),
    }
}

/// Mean of `ln Σ_c exp(z_c) − z_class` over the nodes that validate.
fn mean_loss(logits: &Matrix, dataset: &Dataset) -> Option<f64> {
    let nodes = &dataset.split.validation;
    let loss = |&node: &u32| {
        let row = logits.row(node as usize);
        let class = dataset.labels.classes()[node as usize].expect("a label") as usize;
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|z| (z - largest).exp()).sum();
        largest + sum.ln() - row[class]
    };
    (!nodes.is_empty()).then(|| nodes.iter().map(loss).sum::<f64>() / nodes.len() as f64)
}

/// Asserts that accuracies agree but for one node of each set, the logits of which rounding may have made change places.
pub(crate) fn assert_scores(found: &[Scores], expected: &[Scores], dataset: &Dataset, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let split = &dataset.split;
    for (epoch, (found, expected)) in found.iter().zip(expected).enumerate() {
        for (found, expected, nodes) in [
            (found.train, expected.train, &split.train),
            (found.validation, expected.validation, &split.validation),
            (found.test, expected.test, &split.test),
        ] {
            let apart = (found.unwrap() - expected.unwrap()).abs() * nodes.len() as f64;
            assert!(apart < 1.5, "{what}: {found:?}, not {expected:?}, {epoch}");
        }
        let loss = |scores: &Scores| scores.validation_loss.unwrap();
        let apart = (loss(found) - loss(expected)).abs();
        assert!(
            apart < 1e-3 * loss(expected),
            "{what}: {found:?}, not {expected:?}, {epoch}"
        );
    }
}

/// Adam as in its paper (Kingma and Ba, 2015, algorithm 1), with `weight_decay` times the parameter added to its gradient.
pub(crate) struct Adam {
    rate: f64,
    decay: f64,
    epsilon: f64,
    steps: i32,
    /// First and second moment of each parameter.
    moments: Vec<[Matrix; 2]>,
}

impl Adam {
    pub(crate) fn new(config: &OptimizerConfig, parameters: &[Matrix]) -> Self {
        let OptimizerConfig::Adam {
            learning_rate,
            weight_decay,
            epsilon,
        } = *config
        else {
            panic!("{config:?} is not Adam")
        };
        let none = |of: &Matrix| [(); 2].map(|()| Matrix::zeros(of.rows, of.columns));
        Self {
            rate: learning_rate,
            decay: weight_decay,
            epsilon,
            steps: 0,
            moments: parameters.iter().map(none).collect(),
        }
    }

    /// Changes the parameters, at `factor` times the learning rate.
    pub(crate) fn step(&mut self, parameters: &mut [Matrix], gradients: &[Matrix], factor: f64) {
        const BETA: [f64; 2] = [0.9, 0.999];
        self.steps += 1;
        assert_eq!(parameters.len(), gradients.len());
        let all = parameters.iter_mut().zip(gradients).zip(&mut self.moments);
        for ((parameter, gradient), [first, second]) in all {
            let gradient = gradient.with(parameter, |g, p| g + self.decay * p);
            *first = first.with(&gradient, |m, g| BETA[0] * m + (1.0 - BETA[0]) * g);
            *second = second.with(&gradient, |v, g| BETA[1] * v + (1.0 - BETA[1]) * g * g);
            let [one, two] = BETA.map(|beta| 1.0 - beta.powi(self.steps));
            let step = first.with(second, |m, v| (m / one) / ((v / two).sqrt() + self.epsilon));
            *parameter = parameter.with(&step, |p, step| p - factor * self.rate * step);
        }
    }
}
