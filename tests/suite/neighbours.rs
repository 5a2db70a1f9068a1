//! Attention and maxima over neighbours on every backend, against plain loops in double precision and finite differences.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::common::{devices, distance, other_backends};
use grapevine::model::{Merge, SparseMatrix, edge_softmax, edge_sum, neighbour_max};
use grapevine::sim::{Backend, host};

/// A directed, rectangular structure, and what the operations read.
#[derive(Clone, Debug)]
struct Sample {
    inputs: usize,
    heads: usize,
    width: usize,
    /// Entries of each row.
    rows: Vec<Vec<u32>>,
    left: Vec<f64>,
    right: Vec<f64>,
    /// Factors of the attention weights, as dropout has them.
    factors: Vec<f64>,
    x: Vec<f64>,
    /// Weights of the result in the loss.
    loss: Vec<f64>,
}

/// One of the things that are differentiated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Left,
    Right,
    Factors,
    X,
}

/// Values that single precision holds exactly.
fn value() -> impl Strategy<Value = f64> {
    (-2_000_i32..2_000).prop_map(|v| f64::from(v as f32 / 1_024.0))
}

/// Structures with rows and columns without entries.
fn samples() -> impl Strategy<Value = Sample> {
    (1..9_usize, 1..9_usize, 1..4_usize, 1..4_usize).prop_flat_map(
        |(outputs, inputs, heads, part)| {
            let present = proptest::collection::vec(any::<bool>(), outputs * inputs);
            let vector = |n| proptest::collection::vec(value(), n);
            let width = heads * part;
            (
                present,
                vector(outputs * heads),
                vector(inputs * heads),
                vector(outputs * inputs * heads),
                vector(inputs * width),
                vector(outputs * width),
            )
                .prop_map(move |(present, left, right, mut factors, x, loss)| {
                    let rows: Vec<Vec<u32>> = present
                        .chunks_exact(inputs)
                        .map(|row| {
                            let columns = (0_u32..).zip(row).filter(|(_, present)| **present);
                            columns.map(|(column, _)| column).collect()
                        })
                        .collect();
                    factors.truncate(heads * rows.iter().map(Vec::len).sum::<usize>());
                    Sample {
                        inputs,
                        heads,
                        width,
                        rows,
                        left,
                        right,
                        factors,
                        x,
                        loss,
                    }
                })
        },
    )
}

/// Large enough to be shared between threads: skewed rows, some empty.
fn large() -> Sample {
    let (outputs, inputs, heads, width) = (700, 500, 4, 24);
    let noise = |stream, n: usize| -> Vec<f64> {
        let draw = |i| grapevine::rng::mix(stream, i as u64) % 2_001;
        (0..n).map(|i| draw(i) as f64 / 1_024.0 - 1.0).collect()
    };
    let rows: Vec<Vec<u32>> = (0..outputs)
        .map(|row| {
            let kept = |column: &u32| {
                let place = u64::from(*column) + (row * inputs) as u64;
                row % 11 != 3
                    && column % 13 != 5
                    && grapevine::rng::mix(9, place) % 500 < 1 + (row as u64 % 90)
            };
            (0..inputs as u32).filter(kept).collect()
        })
        .collect();
    let entries: usize = rows.iter().map(Vec::len).sum();
    Sample {
        inputs,
        heads,
        width,
        left: noise(1, outputs * heads),
        right: noise(2, inputs * heads),
        factors: noise(3, entries * heads),
        x: noise(4, inputs * width),
        loss: noise(5, outputs * width),
        rows,
    }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

impl Sample {
    fn matrix(&self) -> Arc<SparseMatrix> {
        let mut offsets = vec![0];
        for row in &self.rows {
            offsets.push(offsets[offsets.len() - 1] + row.len());
        }
        let columns: Vec<u32> = self.rows.concat();
        let values = vec![1.0; columns.len()];
        Arc::new(SparseMatrix::new(self.inputs, &offsets, columns, values))
    }

    fn score(&self, row: usize, column: u32, head: usize) -> f64 {
        self.left[row * self.heads + head] + self.right[column as usize * self.heads + head]
    }

    /// `Σ_u f_vu softmax_u(LeakyReLU(l_v + r_u)) x_u` by the definition.
    fn attention(&self) -> Vec<f64> {
        let (heads, width) = (self.heads, self.width);
        let mut result = vec![0.0; self.rows.len() * width];
        let mut first = 0;
        for (row, columns) in self.rows.iter().enumerate() {
            for head in 0..heads {
                let exponential = |&column: &u32| {
                    let score = self.score(row, column, head);
                    (if score < 0.0 { 0.2 * score } else { score }).exp()
                };
                let sum: f64 = columns.iter().map(exponential).sum();
                for (place, column) in columns.iter().enumerate() {
                    let weight = exponential(column) / sum;
                    let factor = self.factors[(first + place) * heads + head];
                    let part = width / heads;
                    for j in head * part..(head + 1) * part {
                        result[row * width + j] +=
                            factor * weight * self.x[*column as usize * width + j];
                    }
                }
            }
            first += columns.len();
        }
        result
    }

    /// The largest value of each column over each row's entries.
    fn maximum(&self) -> Vec<f64> {
        let of = |columns: &Vec<u32>, j| {
            let values = columns.iter().map(|&u| self.x[u as usize * self.width + j]);
            values.reduce(f64::max).unwrap_or(0.0)
        };
        let rows = self.rows.iter();
        rows.flat_map(|row| (0..self.width).map(move |j| of(row, j)))
            .collect()
    }

    fn part(&mut self, part: Part) -> &mut Vec<f64> {
        match part {
            Part::Left => &mut self.left,
            Part::Right => &mut self.right,
            Part::Factors => &mut self.factors,
            Part::X => &mut self.x,
        }
    }

    /// The gradient of `Σ loss · tanh(result)` by central differences.
    fn difference(&self, part: Part, result: impl Fn(&Self) -> Vec<f64>) -> Vec<f32> {
        const STEP: f64 = 1e-5;
        let loss = |sample: &Self| -> f64 {
            let terms = result(sample).into_iter().zip(&self.loss);
            terms.map(|(y, w)| y.tanh() * w).sum()
        };
        let mut moved = self.clone();
        (0..moved.part(part).len())
            .map(|place| {
                let centre = moved.part(part)[place];
                moved.part(part)[place] = centre + STEP;
                let above = loss(&moved);
                moved.part(part)[place] = centre - STEP;
                let below = loss(&moved);
                moved.part(part)[place] = centre;
                ((above - below) / (2.0 * STEP)) as f32
            })
            .collect()
    }

    /// Result of an operation on a device, and the gradient of every leaf.
    fn differentiate<const N: usize>(
        &self,
        device: &Device,
        leaves: [(&[f64], usize); N],
        operation: impl FnOnce([Tensor<2>; N]) -> Tensor<2>,
    ) -> Vec<Vec<f32>> {
        let autodiff = device.clone().autodiff();
        let leaves = leaves.map(|(values, width)| {
            let data = TensorData::new(single(values), [values.len() / width, width]);
            Tensor::<2>::from_data(data, &autodiff).require_grad()
        });
        let result = operation(leaves.clone());
        let shape: [usize; 2] = result.dims();
        let weights = single(&self.loss[..shape[0] * shape[1]]);
        let weights = Tensor::from_data(TensorData::new(weights, shape), device);
        let mut gradients = (result.clone().tanh() * weights).sum().backward();
        let mut all = vec![host(result.inner())];
        for leaf in leaves {
            all.push(host(leaf.grad_remove(&mut gradients).expect("a leaf")));
        }
        all
    }

    /// The mean over heads of [`Self::attention`].
    fn averaged(&self) -> Vec<f64> {
        let part = self.width / self.heads;
        let rows = self.attention();
        let mean = |row: &[f64], column: usize| {
            let values = row.iter().skip(column).step_by(part);
            values.sum::<f64>() / self.heads as f64
        };
        rows.chunks_exact(self.width)
            .flat_map(|row| (0..part).map(move |column| mean(row, column)))
            .collect()
    }

    fn merged(&self, merge: Merge) -> Vec<f64> {
        match merge {
            Merge::Concatenate => self.attention(),
            Merge::Average => self.averaged(),
        }
    }

    /// The result, and the gradients of left, right, factors and x.
    fn attention_on(&self, device: &Device, merge: Merge) -> Vec<Vec<f32>> {
        let (matrix, heads) = (self.matrix(), self.heads);
        let leaves = [
            (self.left.as_slice(), heads),
            (&self.right, heads),
            (&self.factors, heads),
            (&self.x, self.width),
        ];
        self.differentiate(device, leaves, |[left, right, factors, x]| {
            let weights = edge_softmax(&matrix, left, right);
            edge_sum(&matrix, weights * factors, x, merge)
        })
    }

    /// The result, and the gradient of x.
    fn maximum_on(&self, device: &Device) -> Vec<Vec<f32>> {
        let matrix = self.matrix();
        self.differentiate(device, [(&self.x, self.width)], |[x]| {
            neighbour_max(&matrix, x)
        })
    }

    /// Whether a small step crosses no corner of `LeakyReLU`.
    fn is_smooth(&self) -> bool {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(row, columns)| columns.iter().map(move |&column| (row, column)))
            .all(|(row, column)| {
                (0..self.heads).all(|head| self.score(row, column, head).abs() > 1e-4)
            })
    }

    /// Whether no two values of a column are equal, so that a small step changes no maximum.
    fn is_distinct(&self) -> bool {
        (0..self.width).all(|j| {
            let mut values: Vec<f64> = self.x.iter().skip(j).step_by(self.width).copied().collect();
            values.sort_by(f64::total_cmp);
            values.windows(2).all(|pair| pair[1] - pair[0] > 1e-4)
        })
    }
}

const MERGES: [Merge; 2] = [Merge::Concatenate, Merge::Average];

fn near(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (f, e) in found.iter().zip(expected) {
        let near = (f - e).abs() <= tolerance * (1.0 + e.abs());
        assert!(near, "{what}: {f} is not {e}");
    }
}

fn flex() -> Device {
    devices(Backend::Flex, 1).remove(0).place.device
}

proptest! {
    #[test]
    fn attention_is_that_of_plain_loops(sample in samples().prop_filter("entries", |s| !s.factors.is_empty())) {
        for merge in MERGES {
            let found = sample.attention_on(&flex(), merge);
            near(&found[0], &single(&sample.merged(merge)), 1e-5, "result");
        }
    }

    #[test]
    fn gradients_of_attention_are_finite_differences(
        sample in samples().prop_filter("smooth", |s| !s.factors.is_empty() && s.is_smooth())
    ) {
        for merge in MERGES {
            let found = sample.attention_on(&flex(), merge);
            for (part, found) in [Part::Left, Part::Right, Part::Factors, Part::X].into_iter().zip(&found[1..]) {
                let expected = sample.difference(part, |sample| sample.merged(merge));
                near(found, &expected, 1e-4, &format!("{merge:?}, {part:?}"));
            }
        }
    }

    #[test]
    fn the_weights_of_a_row_add_up_to_one(sample in samples()) {
        let matrix = sample.matrix();
        let scores = |values: &[f64]| {
            let data = TensorData::new(single(values), [values.len() / sample.heads, sample.heads]);
            // Far from zero, where an exponential alone would overflow.
            Tensor::<2>::from_data(data, &flex()) * 200.0
        };
        let weights = host(edge_softmax(&matrix, scores(&sample.left), scores(&sample.right)));
        let mut first = 0;
        for row in &sample.rows {
            for head in 0..sample.heads {
                let mine = (first..first + row.len()).map(|entry| weights[entry * sample.heads + head]);
                let sum: f32 = mine.sum();
                prop_assert!(row.is_empty() || (sum - 1.0).abs() < 1e-5, "{}", sum);
            }
            first += row.len();
        }
    }

    #[test]
    fn the_maximum_is_that_of_plain_loops(sample in samples()) {
        prop_assert_eq!(&sample.maximum_on(&flex())[0], &single(&sample.maximum()));
    }

    #[test]
    fn the_gradient_of_the_maximum_is_finite_differences_away_from_ties(
        sample in samples().prop_filter("no ties", Sample::is_distinct)
    ) {
        let expected = sample.difference(Part::X, Sample::maximum);
        near(&sample.maximum_on(&flex())[1], &expected, 1e-4, "x");
    }
}

#[test]
fn of_equal_neighbours_the_first_alone_has_the_gradient() {
    let matrix = SparseMatrix::new(4, &[0, 3, 3, 5], vec![1, 2, 3, 0, 3], vec![1.0; 5]);
    let data = TensorData::new(vec![7.0_f32, 5.0, 5.0, 5.0], [4, 1]);
    let x = Tensor::<2>::from_data(data, &flex().autodiff()).require_grad();
    let largest = neighbour_max(&Arc::new(matrix), x.clone());
    let mut gradients = largest.clone().sum().backward();
    assert_eq!(host(largest), [5.0, 0.0, 7.0]);
    let gradient = x.grad_remove(&mut gradients).expect("x is a leaf");
    assert_eq!(host(gradient), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let sample = large();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads can be started").install(|| {
            let mut all = sample.attention_on(&flex(), Merge::Concatenate);
            all.extend(sample.maximum_on(&flex()));
            all.extend(sample.attention_on(&flex(), Merge::Average));
            all
        })
    };
    let one = with(1);
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for threads in [2, 3, 8] {
        for (many, one) in with(threads).iter().zip(&one) {
            assert_eq!(bits(many), bits(one), "on {threads} threads");
        }
    }
    assert!(distance(&one[0], &single(&sample.attention())) < 1e-5);
    assert_eq!(one[5], single(&sample.maximum()));
}

#[test]
fn every_backend_gives_the_results_and_gradients_of_flex() {
    let (backends, _turn) = other_backends("attention and maxima");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut all = vec![large()];
    while all.len() < 9 {
        let sample = samples().new_tree(&mut runner).expect("a sample").current();
        if !sample.factors.is_empty() {
            all.push(sample);
        }
    }
    for backend in backends {
        let device = devices(backend, 1).remove(0).place.device;
        for sample in &all {
            let what = format!("{backend:?}, {} rows", sample.rows.len());
            for (found, expected) in [
                (
                    sample.attention_on(&device, Merge::Concatenate),
                    sample.attention_on(&flex(), Merge::Concatenate),
                ),
                (
                    sample.attention_on(&device, Merge::Average),
                    sample.attention_on(&flex(), Merge::Average),
                ),
                (sample.maximum_on(&device), sample.maximum_on(&flex())),
            ] {
                for (found, expected) in found.iter().zip(&expected) {
                    near(found, expected, 1e-4, &what);
                }
            }
            for merge in MERGES {
                let again = sample.attention_on(&device, merge);
                assert_eq!(
                    again,
                    sample.attention_on(&device, merge),
                    "{what}: repeatable"
                );
            }
        }
    }
}
