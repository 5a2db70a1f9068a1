//! Dense products on every backend, with their gradients.
//!
//! ```text
//!   y = x·W (+ base)        ∂x = g·Wᵀ        ∂W = xᵀ·g        ∂base = g
//! ```
//!
//! Of the three the last is the slow one where a tensor library multiplies: its result is small and
//! the sum runs over all nodes. On processors `cpu` divides that sum between threads; graphics
//! devices take burn's product.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

mod cpu;
#[cfg(test)]
mod tests;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata};
use burn::tensor::{Slice, Tensor};

use super::operation::{on_every_backend, operation};

/// The products of a backend.
///
/// # Shapes
/// `x [rows, inputs]`, `w [inputs, outputs]`, `g` and `base` `[rows, outputs]`.
pub(crate) trait ProductKernels: Backend {
    /// `x·w`, added to `base` if there is one.
    fn times(x: Float<Self>, w: Float<Self>, base: Option<Float<Self>>) -> Float<Self> {
        let product = Self::float_matmul(x, w);
        match base {
            Some(base) => Self::float_add(base, product),
            None => product,
        }
    }

    /// `g·wᵀ`.
    fn rows_gradient(g: Float<Self>, w: Float<Self>) -> Float<Self> {
        Self::float_matmul(g, Self::float_swap_dims(w, 0, 1))
    }

    /// `g·wᵀ` added to the first rows of `base [at least rows, inputs]`.
    fn rows_gradient_onto(base: Float<Self>, g: Float<Self>, w: Float<Self>) -> Float<Self> {
        let first = [Slice::from(0..g.shape()[0]), Slice::full()];
        let sum = Self::float_add(
            Self::float_slice(base.clone(), &first),
            Self::rows_gradient(g, w),
        );
        Self::float_slice_assign(base, &first, sum)
    }

    /// `xᵀ·g`.
    fn weight_gradient(x: Float<Self>, g: Float<Self>) -> Float<Self> {
        Self::float_matmul(Self::float_swap_dims(x, 0, 1), g)
    }
}

#[cfg(feature = "wgpu")]
impl ProductKernels for burn_cubecl::CubeBackend {}

on_every_backend! {
    /// The products as operations of a tensor backend.
    pub(crate) trait ProductBackend: Backend {
        /// See [`product`].
        fn dense_product(x: Float<Self>, weight: Float<Self>) -> Float<Self>;

        /// See [`product_onto`].
        fn dense_product_onto(
            base: Float<Self>,
            x: Float<Self>,
            weight: Float<Self>,
        ) -> Float<Self>;
    }
}

/// `x·weight`.
///
/// # Shapes
/// - x: `[rows, inputs]`
/// - weight: `[inputs, outputs]`
/// - result: `[rows, outputs]`
///
/// # Panics
/// If the weight does not have one row per column of `x`.
pub(crate) fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    assert_fits(&x, &weight);
    let product =
        <Dispatch as ProductBackend>::dense_product(x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(product)
}

/// `base + x·weight`, in the memory of `base` where nothing else needs it.
///
/// # Shapes
/// - base, result: `[rows, outputs]`
/// - x: `[rows, inputs]`
/// - weight: `[inputs, outputs]`
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn product_onto(base: Tensor<2>, x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    assert_fits(&x, &weight);
    let [rows, outputs] = base.dims();
    assert_eq!(
        [rows, outputs],
        [x.dims()[0], weight.dims()[1]],
        "a product and what it is added to"
    );
    let sum = <Dispatch as ProductBackend>::dense_product_onto(
        base.into_dispatch(),
        x.into_dispatch(),
        weight.into_dispatch(),
    );
    Tensor::from_dispatch(sum)
}

fn assert_fits(x: &Tensor<2>, weight: &Tensor<2>) {
    let (columns, rows) = (x.dims()[1], weight.dims()[0]);
    assert_eq!(columns, rows, "columns of x and rows of the weight");
}

impl<B: ProductKernels> ProductBackend for B {
    fn dense_product(x: Float<Self>, weight: Float<Self>) -> Float<Self> {
        B::times(x, weight, None)
    }

    fn dense_product_onto(base: Float<Self>, x: Float<Self>, weight: Float<Self>) -> Float<Self> {
        B::times(x, weight, Some(base))
    }
}

/// The gradients of `x` and of the weight, of those that are wanted.
fn gradients<B: ProductKernels>(
    g: Float<B>,
    (x, weight): (Float<B>, Float<B>),
    [wants_x, wants_weight]: [bool; 2],
) -> [Option<Float<B>>; 2] {
    let of_x = wants_x.then(|| B::rows_gradient(g.clone(), weight));
    [of_x, wants_weight.then(|| B::weight_gradient(x, g))]
}

impl<B: ProductKernels, C: CheckpointStrategy> ProductBackend for Autodiff<B, C> {
    fn dense_product(x: Float<Self>, weight: Float<Self>) -> Float<Self> {
        operation::<B, C, _, 2>(
            [x, weight],
            |[x, weight]| (B::times(x.clone(), weight.clone(), None), (x, weight)),
            |g, kept, wanted| gradients::<B>(g, kept, wanted),
        )
    }

    fn dense_product_onto(base: Float<Self>, x: Float<Self>, weight: Float<Self>) -> Float<Self> {
        operation::<B, C, _, 3>(
            [base, x, weight],
            |[base, x, weight]| {
                let sum = B::times(x.clone(), weight.clone(), Some(base));
                (sum, (x, weight))
            },
            |g, kept, [wants_base, wants_x, wants_weight]| {
                let [of_x, of_weight] = gradients::<B>(g.clone(), kept, [wants_x, wants_weight]);
                [wants_base.then_some(g), of_x, of_weight]
            },
        )
    }
}
