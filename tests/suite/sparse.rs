//! The sparse product on every backend, against plain loops, finite differences and dense automatic differentiation.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::common::{devices, distance, other_backends};
use grapevine::model::{SparseMatrix, spmm, spmm_onto};
use grapevine::sim::{Backend, host};

/// A rectangular matrix with its dense form, and something to multiply.
#[derive(Clone, Debug)]
struct Product {
    rows: usize,
    columns: usize,
    width: usize,
    dense: Vec<f32>,
    x: Vec<f32>,
    /// Weights of the result in the loss `Σ weight · tanh(A·x)`.
    weights: Vec<f32>,
}

/// Matrices of which about half the entries, one row and one column are empty.
fn products() -> impl Strategy<Value = Product> {
    (1..14_usize, 1..14_usize, 1..6_usize).prop_flat_map(|(rows, columns, width)| {
        let value = -1.0..1.0_f32;
        let entry = prop_oneof![Just(0.0_f32), value.clone()];
        let vector = |n| proptest::collection::vec(value.clone(), n);
        let dense = proptest::collection::vec(entry, rows * columns);
        let (x, weights) = (vector(columns * width), vector(rows * width));
        (dense, x, weights, 0..rows, 0..columns).prop_map(move |(mut dense, x, weights, r, c)| {
            for (place, entry) in dense.iter_mut().enumerate() {
                if (rows > 1 && place / columns == r) || (columns > 1 && place % columns == c) {
                    *entry = 0.0;
                }
            }
            Product {
                rows,
                columns,
                width,
                dense,
                x,
                weights,
            }
        })
    })
}

impl Product {
    fn sparse(&self) -> Arc<SparseMatrix> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in self.dense.chunks_exact(self.columns) {
            for (column, &value) in (0_u32..).zip(row) {
                if value != 0.0 {
                    columns.push(column);
                    values.push(value);
                }
            }
            offsets.push(columns.len());
        }
        Arc::new(SparseMatrix::new(self.columns, &offsets, columns, values))
    }

    /// `A·x` by the definition, in double precision.
    fn plain(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.rows * self.width];
        for r in 0..self.rows {
            for c in 0..self.columns {
                for j in 0..self.width {
                    product[r * self.width + j] +=
                        f64::from(self.dense[r * self.columns + c]) * x[c * self.width + j];
                }
            }
        }
        product
    }

    fn loss(&self, x: &[f64]) -> f64 {
        let terms = self.plain(x).into_iter().zip(&self.weights);
        terms.map(|(y, &w)| y.tanh() * f64::from(w)).sum()
    }

    /// Result and gradient of the loss through `multiply`.
    fn differentiate(
        &self,
        device: &Device,
        multiply: impl FnOnce(Tensor<2>) -> Tensor<2>,
    ) -> (Vec<f32>, Vec<f32>) {
        let x = TensorData::new(self.x.clone(), [self.columns, self.width]);
        let x = Tensor::<2>::from_data(x, &device.clone().autodiff()).require_grad();
        let weights = TensorData::new(self.weights.clone(), [self.rows, self.width]);
        let y = multiply(x.clone());
        let loss = (y.clone().tanh() * Tensor::from_data(weights, device)).sum();
        let mut gradients = loss.backward();
        let gradient = x.grad_remove(&mut gradients).expect("x is a leaf");
        (host(y.inner()), host(gradient))
    }

    fn by_sparse(&self, device: &Device) -> (Vec<f32>, Vec<f32>) {
        let matrix = self.sparse();
        self.differentiate(device, |x| spmm(&matrix, x))
    }

    fn by_dense(&self, device: &Device) -> (Vec<f32>, Vec<f32>) {
        let dense = TensorData::new(self.dense.clone(), [self.rows, self.columns]);
        let dense = Tensor::<2>::from_data(dense, device);
        self.differentiate(device, |x| dense.matmul(x))
    }
}

fn near(found: &[f32], expected: &[f32], tolerance: f32) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        prop_assert!(
            (f - e).abs() <= tolerance * (1.0 + e.abs()),
            "{} is not {}",
            f,
            e
        );
    }
    Ok(())
}

fn flex() -> Device {
    devices(Backend::Flex, 1).remove(0).place.device
}

proptest! {
    #[test]
    fn the_product_is_that_of_plain_loops(product in products()) {
        let x: Vec<f64> = product.x.iter().map(|&v| f64::from(v)).collect();
        #[allow(clippy::cast_possible_truncation)] // compared in single precision
        let expected: Vec<f32> = product.plain(&x).into_iter().map(|v| v as f32).collect();
        near(&product.by_sparse(&flex()).0, &expected, 1e-5)?;
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences(product in products()) {
        const STEP: f64 = 1e-5;
        let mut x: Vec<f64> = product.x.iter().map(|&v| f64::from(v)).collect();
        let mut expected = Vec::new();
        for place in 0..x.len() {
            let centre = x[place];
            x[place] = centre + STEP;
            let above = product.loss(&x);
            x[place] = centre - STEP;
            let below = product.loss(&x);
            x[place] = centre;
            #[allow(clippy::cast_possible_truncation)] // compared in single precision
            expected.push(((above - below) / (2.0 * STEP)) as f32);
        }
        near(&product.by_sparse(&flex()).1, &expected, 1e-4)?;
    }

    #[test]
    fn a_product_added_in_place_has_the_bits_of_product_and_sum(product in products()) {
        let base = |at: usize| grapevine::rng::mix(11, at as u64) % 2_001;
        let base: Vec<f32> = (0..product.rows * product.width)
            .map(|at| base(at) as f32 / 1_000.0 - 1.0)
            .collect();
        let base = TensorData::new(base, [product.rows, product.width]);
        let base = Tensor::<2>::from_data(base, &flex().autodiff()).require_grad();
        let matrix = product.sparse();
        let inputs = || product.differentiate(&flex(), |x| base.clone() + spmm(&matrix, x));
        let expected = inputs();
        let found = product.differentiate(&flex(), |x| spmm_onto(base.clone(), &matrix, x));
        prop_assert_eq!(found, expected);
        // Of what it is added to the gradient is that of the sum.
        let gradient = |sum: Tensor<2>| {
            let gradients = &mut sum.tanh().sum().backward();
            host(base.grad_remove(gradients).expect("base is a leaf"))
        };
        let x = TensorData::new(product.x.clone(), [product.columns, product.width]);
        let x = Tensor::<2>::from_data(x, &flex());
        let found = gradient(spmm_onto(base.clone(), &matrix, x.clone()));
        prop_assert_eq!(found, gradient(base.clone() + spmm(&matrix, x)));
    }

    #[test]
    fn result_and_gradient_are_those_of_the_dense_product(product in products()) {
        let (sparse, dense) = (product.by_sparse(&flex()), product.by_dense(&flex()));
        near(&sparse.0, &dense.0, 1e-5)?;
        near(&sparse.1, &dense.1, 1e-5)?;
    }
}

/// A product large enough to be shared between threads: skewed rows, some empty.
fn large() -> Product {
    let (rows, columns, width) = (700, 500, 24);
    let noise = |n: usize| {
        (0..n)
            .map(|i| grapevine::rng::mix(7, i as u64) % 2_001)
            .map(|v| v as f32 / 1_000.0 - 1.0)
            .collect::<Vec<f32>>()
    };
    let mut dense = noise(rows * columns);
    for (place, entry) in dense.iter_mut().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let kept = grapevine::rng::mix(8, place as u64) % 500 < 1 + (row as u64 % 60);
        if !kept || row % 11 == 3 || column % 13 == 5 {
            *entry = 0.0;
        }
    }
    Product {
        rows,
        columns,
        width,
        dense,
        x: noise(columns * width),
        weights: noise(rows * width),
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let product = large();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads can be started")
            .install(|| product.by_sparse(&flex()))
    };
    let one = with(1);
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for threads in [2, 3, 8] {
        let many = with(threads);
        assert_eq!(bits(&many.0), bits(&one.0), "product on {threads} threads");
        assert_eq!(bits(&many.1), bits(&one.1), "gradient on {threads} threads");
    }
    let dense = product.by_dense(&flex());
    assert!(distance(&one.0, &dense.0) < 1e-5);
    assert!(distance(&one.1, &dense.1) < 1e-5);
}

#[test]
fn every_backend_gives_the_product_and_gradient_of_flex() {
    let (backends, _turn) = other_backends("the sparse product");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut samples = vec![large()];
    for _ in 0..8 {
        let tree = products().new_tree(&mut runner).expect("a sample");
        samples.push(tree.current());
    }
    for backend in backends {
        let device = devices(backend, 1).remove(0).place.device;
        for product in &samples {
            let (expected, found) = (product.by_sparse(&flex()), product.by_sparse(&device));
            for (found, expected) in [(&found.0, &expected.0), (&found.1, &expected.1)] {
                for (f, e) in found.iter().zip(expected) {
                    let near = (f - e).abs() <= 1e-4 * (1.0 + e.abs());
                    assert!(
                        near,
                        "{backend:?}: {f} is not {e}, {} x {}",
                        product.rows, product.columns
                    );
                }
            }
        }
    }
}
