//! What happens to a dense row between two products, in one pass over memory each way: bias and
//! activation, layer normalisation, dropout, loss.
//!
//! As tensor operations each of these is several passes, and on processors most of them run on one
//! thread; beside a fast aggregation they would take a third of an epoch. Here each is one
//! operation with its own gradient: `cpu` has the passes for processors, shared between threads,
//! and `plain` the same as tensor operations, for graphics devices and as the reference of the
//! tests.
//!
//! Results do not depend on the number of threads: rows are independent of each other, and sums
//! over rows are added up in blocks of a fixed size.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

mod cpu;
mod gradients;
mod plain;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Backend, Dispatch};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Loss;
use super::dropout::Mask;
use super::operation::on_every_backend;

/// What is done to each value of a layer's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing. No hidden layer ends with it.
    #[serde(skip)]
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `x` above zero and `exp(x) − 1` below (Clevert, Unterthiner and Hochreiter, 2016).
    Elu,
}

impl Activation {
    /// The value at `x`.
    #[inline]
    fn at(self, x: f32) -> f32 {
        match self {
            // Not `x.max(0.0)`, which would hide what is not a number.
            Self::Relu if x <= 0.0 => 0.0,
            Self::Identity | Self::Relu => x,
            Self::Elu if x > 0.0 => x,
            Self::Elu => x.exp() - 1.0,
        }
    }

    /// The derivative where the value is `y`: all that the way back needs to know.
    #[inline]
    fn slope(self, y: f32) -> f32 {
        match self {
            Self::Identity => 1.0,
            Self::Relu => f32::from(u8::from(y > 0.0)),
            Self::Elu => 1.0 + y.min(0.0),
        }
    }
}

/// Added to variances before a root is taken, so that constant rows do not divide by zero; the
/// default of layer normalisation everywhere.
const EPSILON: f32 = 1e-5;

/// The passes of a backend. All tensors have two dimensions: `x`, `y` and `g` are `[rows, width]`,
/// parameters and sums over rows `[1, width]`, scalars `[1, 1]`.
pub(crate) trait RowwiseKernels: Backend {
    /// `y = activation(x + bias)`.
    fn activate(x: Float<Self>, bias: Float<Self>, activation: Activation) -> Float<Self> {
        plain::activate::<Self>(x, bias, activation)
    }

    /// `g ⊙ activation'`, where the activation's value is `y`.
    fn slope(g: Float<Self>, y: Float<Self>, activation: Activation) -> Float<Self> {
        plain::slope::<Self>(g, y, activation)
    }

    /// The sum of all rows.
    fn column_sums(g: Float<Self>) -> Float<Self> {
        plain::column_sums::<Self>(g)
    }

    /// `activation(gain ⊙ (x − mean) / √(variance + ε) + shift)`, with mean and variance of each
    /// row.
    fn normalise(
        x: Float<Self>,
        gain: Float<Self>,
        shift: Float<Self>,
        activation: Activation,
    ) -> Float<Self> {
        plain::normalise::<Self>(x, gain, shift, activation)
    }

    /// The gradients of `x`, `gain` and `shift` of [`RowwiseKernels::normalise`]; `g` has been
    /// through [`RowwiseKernels::slope`].
    fn normalise_gradients(g: Float<Self>, x: Float<Self>, gain: Float<Self>) -> [Float<Self>; 3] {
        plain::normalise_gradients::<Self>(g, x, gain)
    }

    /// `x ⊙ mask`.
    fn mask(x: Float<Self>, mask: &Mask) -> Float<Self> {
        plain::mask::<Self>(x, mask)
    }

    /// Of one class `−Σ targets ⊙ log softmax(logits)`; of several labels, with signs in the
    /// targets, `Σ |targets| ⊙ log(1 + exp(−sign(targets) ⊙ logits))`.
    fn loss(logits: Float<Self>, targets: Float<Self>, loss: Loss) -> Float<Self> {
        plain::loss::<Self>(logits, targets, loss)
    }

    /// Of one class `g·((Σ_c targets)·softmax(logits) − targets)`; of several labels
    /// `−g·targets ⊙ σ(−sign(targets) ⊙ logits)`.
    fn loss_gradient(
        g: Float<Self>,
        logits: Float<Self>,
        targets: Float<Self>,
        loss: Loss,
    ) -> Float<Self> {
        plain::loss_gradient::<Self>(g, logits, targets, loss)
    }
}

#[cfg(feature = "wgpu")]
impl RowwiseKernels for burn_cubecl::CubeBackend {}

on_every_backend! {
    /// The operations as those of a tensor backend.
    pub(crate) trait RowwiseBackend: Backend {
        /// See [`activate`].
        fn row_activate(
            x: Float<Self>,
            bias: Float<Self>,
            activation: Activation,
        ) -> Float<Self>;

        /// See [`layer_norm`].
        fn row_normalise(
            x: Float<Self>,
            gain: Float<Self>,
            shift: Float<Self>,
            activation: Activation,
        ) -> Float<Self>;

        /// See [`dropped`].
        fn row_mask(x: Float<Self>, mask: Arc<Mask>) -> Float<Self>;

        /// See [`cross_entropy`](super::cross_entropy).
        fn row_loss(
            logits: Float<Self>,
            targets: Float<Self>,
            loss: Loss,
        ) -> Float<Self>;

        /// See [`carrier`].
        fn row_carrier(output: Float<Self>, upstream: Float<Self>) -> Float<Self>;
    }
}

/// `activation(x + bias)`.
///
/// # Shapes
/// - x, result: `[rows, width]`
/// - bias: `[width]`
pub fn activate(x: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Tensor<2> {
    let bias: Tensor<2> = bias.unsqueeze();
    Tensor::from_dispatch(<Dispatch as RowwiseBackend>::row_activate(
        x.into_dispatch(),
        bias.into_dispatch(),
        activation,
    ))
}

/// `activation(gain ⊙ (x − mean) / √(variance + 10⁻⁵) + shift)`: layer normalisation (Ba, Kiros and
/// Hinton, 2016) over the columns of each row.
///
/// # Shapes
/// - x, result: `[rows, width]`
/// - gain, shift: `[width]`
pub(crate) fn layer_norm(
    x: Tensor<2>,
    gain: Tensor<1>,
    shift: Tensor<1>,
    activation: Activation,
) -> Tensor<2> {
    let (gain, shift): (Tensor<2>, Tensor<2>) = (gain.unsqueeze(), shift.unsqueeze());
    Tensor::from_dispatch(<Dispatch as RowwiseBackend>::row_normalise(
        x.into_dispatch(),
        gain.into_dispatch(),
        shift.into_dispatch(),
        activation,
    ))
}

/// `x ⊙ mask`, with a mask that is drawn where it is needed and never stored on processors.
///
/// # Shapes
/// - x, result: `[nodes of the mask, width]`
pub(crate) fn dropped(x: Tensor<2>, mask: Mask) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(<Dispatch as RowwiseBackend>::row_mask(x, Arc::new(mask)))
}

/// The loss of rows, as [`cross_entropy`](super::cross_entropy) explains.
pub(super) fn loss(logits: Tensor<2>, targets: Tensor<2>, loss: Loss) -> Tensor<1> {
    let loss: Tensor<2> = Tensor::from_dispatch(<Dispatch as RowwiseBackend>::row_loss(
        logits.into_dispatch(),
        targets.into_dispatch(),
        loss,
    ));
    loss.reshape([1])
}

/// A scalar whose derivative with respect to `output` is `upstream`, for going on backwards where
/// another differentiation has stopped. Its value is zero and means nothing.
///
/// # Shapes
/// - output, upstream: `[rows, width]`
pub fn carrier(output: Tensor<2>, upstream: Tensor<2>) -> Tensor<1> {
    let carrier: Tensor<2> = Tensor::from_dispatch(<Dispatch as RowwiseBackend>::row_carrier(
        output.into_dispatch(),
        Tensor::from_inner(upstream).into_dispatch(),
    ));
    carrier.reshape([1])
}

impl<B: RowwiseKernels> RowwiseBackend for B {
    fn row_activate(x: Float<Self>, bias: Float<Self>, activation: Activation) -> Float<Self> {
        B::activate(x, bias, activation)
    }

    fn row_normalise(
        x: Float<Self>,
        gain: Float<Self>,
        shift: Float<Self>,
        activation: Activation,
    ) -> Float<Self> {
        B::normalise(x, gain, shift, activation)
    }

    fn row_mask(x: Float<Self>, mask: Arc<Mask>) -> Float<Self> {
        B::mask(x, &mask)
    }

    fn row_loss(logits: Float<Self>, targets: Float<Self>, loss: Loss) -> Float<Self> {
        B::loss(logits, targets, loss)
    }

    fn row_carrier(output: Float<Self>, _upstream: Float<Self>) -> Float<Self> {
        // Without differentiation there is nowhere to carry anything to.
        plain::zero::<B>(&output)
    }
}
