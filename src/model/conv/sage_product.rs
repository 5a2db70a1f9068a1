//! What a layer of GraphSAGE makes of rows, as one operation with a gradient of its own.
//!
//! ```text
//!   y = x₁·U + A·x·V        ∂x = Aᵀ·(g·Vᵀ), and g·Uᵀ on top of its first rows
//! ```
//!
//! with `x₁` the first rows of `x`, one for each output. As operations by themselves its two
//! readers would each leave a gradient of all of `x`: one of them mostly zeros, and their sum a
//! third. Here the second is added to the first where it lies.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend, Dispatch};
use burn::tensor::{Slice, Tensor};

use crate::model::layer::sums_first;
use crate::model::operation::{on_every_backend, operation};
use crate::model::product::ProductKernels;
use crate::model::spmm::SpmmBackend;
use crate::model::{Block, Matrix, SparseMatrix};

/// How neighbours are read.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    /// `A [outputs, rows of x]`.
    pub matrix: Arc<SparseMatrix>,
    /// Whether they are summed before the product with `V`.
    pub sums_first: bool,
}

/// `x`, `U` and `V`.
type Factors<B> = [Float<B>; 3];

on_every_backend! {
    /// The layer as an operation of a tensor backend.
    pub(crate) trait SageBackend: Backend {
        /// `x₁·of_own + A·x·of_neighbours`.
        fn own_and_neighbours(
            x: Float<Self>,
            of_own: Float<Self>,
            of_neighbours: Float<Self>,
            near: Neighbours,
        ) -> Float<Self>;
    }
}

/// `x₁·U + A·x·V` of rows that lie in one tensor and of which neighbours' sums are not kept; none
/// of others.
///
/// # Shapes
/// - rows: `[block.inputs, d_in]`
/// - weights, `U` and `V`: `[d_in, d_out]`
/// - result: `[block.outputs, d_out]`
pub(super) fn own_and_neighbours(
    rows: &Matrix,
    block: &Block,
    weights: impl FnOnce() -> [Tensor<2>; 2],
) -> Option<Matrix> {
    let x = rows
        .passing()
        .filter(|_| block.outputs() <= rows.stripe())?;
    let [of_own, of_neighbours] = weights();
    let near = Neighbours {
        matrix: Arc::clone(&block.matrix),
        sums_first: sums_first(block.sampled, rows.width(), of_own.dims()[1]),
    };
    let [x, of_own, of_neighbours] = [x.clone(), of_own, of_neighbours].map(Tensor::into_dispatch);
    let made = <Dispatch as SageBackend>::own_and_neighbours(x, of_own, of_neighbours, near);
    Some(Matrix::of(vec![Tensor::from_dispatch(made)], rows.stripe()))
}

/// The first of the rows, as many as there are outputs.
fn own<B: Backend>(x: Float<B>, near: &Neighbours) -> Float<B> {
    let rows = 0..near.matrix.rows();
    B::float_slice(x, &[Slice::from(rows), Slice::full()])
}

/// The result, and the sums of neighbours where these come first.
fn forward<B: ProductKernels + SpmmBackend>(
    [x, of_own, of_neighbours]: Factors<B>,
    near: &Neighbours,
) -> (Float<B>, Option<Float<B>>) {
    let gathered = |rows| B::spmm(rows, Arc::clone(&near.matrix), false);
    let (sums, heard) = if near.sums_first {
        let sums = gathered(x.clone());
        (Some(sums.clone()), B::times(sums, of_neighbours, None))
    } else {
        (None, gathered(B::times(x.clone(), of_neighbours, None)))
    };
    (B::times(own::<B>(x, near), of_own, Some(heard)), sums)
}

/// The gradients of the factors, of those that are wanted.
fn backward<B: ProductKernels + SpmmBackend>(
    g: Float<B>,
    ([x, of_own, of_neighbours], sums, near): (Factors<B>, Option<Float<B>>, Neighbours),
    [wants_x, wants_own, wants_neighbours]: [bool; 3],
) -> [Option<Float<B>>; 3] {
    let back = |g| B::spmm(g, Arc::clone(&near.matrix), true);
    let own_gradient = wants_own.then(|| B::weight_gradient(own::<B>(x.clone(), &near), g.clone()));
    let (of_x, neighbour_gradient) = if let Some(sums) = sums {
        let of_x = wants_x.then(|| back(B::rows_gradient(g.clone(), of_neighbours)));
        let gradient = wants_neighbours.then(|| B::weight_gradient(sums, g.clone()));
        (of_x, gradient)
    } else {
        let heard = (wants_x || wants_neighbours).then(|| back(g.clone()));
        let gradient = heard.clone().filter(|_| wants_neighbours);
        let gradient = gradient.map(|heard| B::weight_gradient(x, heard));
        let of_x = heard.filter(|_| wants_x);
        (
            of_x.map(|heard| B::rows_gradient(heard, of_neighbours)),
            gradient,
        )
    };
    let of_x = of_x.map(|of_x| B::rows_gradient_onto(of_x, g, of_own));
    [of_x, own_gradient, neighbour_gradient]
}

impl<B: ProductKernels + SpmmBackend> SageBackend for B {
    fn own_and_neighbours(
        x: Float<Self>,
        of_own: Float<Self>,
        of_neighbours: Float<Self>,
        near: Neighbours,
    ) -> Float<Self> {
        forward::<B>([x, of_own, of_neighbours], &near).0
    }
}

impl<B: ProductKernels + SpmmBackend, C: CheckpointStrategy> SageBackend for Autodiff<B, C> {
    fn own_and_neighbours(
        x: Float<Self>,
        of_own: Float<Self>,
        of_neighbours: Float<Self>,
        near: Neighbours,
    ) -> Float<Self> {
        operation::<B, C, _, 3>(
            [x, of_own, of_neighbours],
            |factors| {
                let (made, sums) = forward::<B>(factors.clone(), &near);
                (made, (factors, sums, near))
            },
            backward::<B>,
        )
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    use super::*;
    use crate::model::sparse::drawn;
    use crate::model::{product, product_onto, spmm};

    fn tensor([rows, columns]: [usize; 2], seed: u64) -> Tensor<2> {
        let data = TensorData::new(drawn::values(rows * columns, seed), [rows, columns]);
        Tensor::from_data(data, &Device::flex())
    }

    /// What the operation is made of.
    fn plain(x: &Tensor<2>, [u, v]: [Tensor<2>; 2], near: &Neighbours) -> Tensor<2> {
        let heard = if near.sums_first {
            product(spmm(&near.matrix, x.clone()), v)
        } else {
            spmm(&near.matrix, product(x.clone(), v))
        };
        product_onto(heard, x.clone().narrow(0, 0, near.matrix.rows()), u)
    }

    fn fused(x: &Tensor<2>, weights: [Tensor<2>; 2], near: &Neighbours) -> Tensor<2> {
        let block = Block {
            matrix: Arc::clone(&near.matrix),
            attention: None,
            sampled: near.sums_first,
        };
        let made = own_and_neighbours(&Matrix::from(x.clone()), &block, || weights);
        made.expect("one tensor").into_tensor()
    }

    type Made = fn(&Tensor<2>, [Tensor<2>; 2], &Neighbours) -> Tensor<2>;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn one_operation_gives_what_its_parts_give_and_so_do_its_gradients(
            lengths in prop::collection::vec(0_usize..6, 1..30),
            more in 0_usize..20,
            // As wide, so that both orders are asked for.
            width in 1_usize..12,
            sums_first in any::<bool>(),
            wanted in any::<[bool; 3]>(),
            seed in any::<u32>().prop_map(u64::from),
        ) {
            let rows = lengths.len() + more;
            let near = Neighbours {
                matrix: Arc::new(drawn::matrix(&lengths, rows, seed)),
                sums_first,
            };
            let upstream = tensor([lengths.len(), width], seed + 1);
            let factors = [[rows, width], [width, width], [width, width]];
            let found = |make: Made| {
                let mut factors = factors.iter().zip(2..).zip(wanted).map(|((&shape, number), wanted)| {
                    let factor = Tensor::from_inner(tensor(shape, seed + number));
                    if wanted { factor.require_grad() } else { factor }
                });
                let [x, u, v] = std::array::from_fn(|_| factors.next().unwrap());
                let made = make(&x, [u.clone(), v.clone()], &near);
                let value = made.clone().inner().into_data();
                let mut gradients = (made * Tensor::from_inner(upstream.clone())).sum().backward();
                let of = [x, u, v].map(|factor| factor.grad_remove(&mut gradients));
                (value, of.map(|gradient| gradient.map(Tensor::into_data)))
            };
            if wanted.contains(&true) {
                let ((value, of), (plain_value, plain_of)) = (found(fused), found(plain));
                // No bits differ in sums of so few terms; a zero may have another sign.
                prop_assert_eq!(value, plain_value);
                prop_assert_eq!(of, plain_of);
            }
        }
    }
}
