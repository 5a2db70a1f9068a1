//! The operations with what automatic differentiation has to know of them.

use std::sync::Arc;

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;

use super::{Activation, RowwiseBackend, RowwiseKernels, plain};
use crate::model::Loss;
use crate::model::dropout::Mask;
use crate::model::operation::operation;

impl<B: RowwiseKernels, C: CheckpointStrategy> RowwiseBackend for Autodiff<B, C> {
    fn row_activate(x: Float<Self>, bias: Float<Self>, activation: Activation) -> Float<Self> {
        operation::<B, C, _, 2>(
            [x, bias],
            |[x, bias]| {
                let y = B::activate(x, bias, activation);
                // The slope follows from the result alone, so the input need not be kept.
                (y.clone(), (activation, y))
            },
            |g, (activation, y), [_, wants_bias]| {
                let g = B::slope(g, y, activation);
                let of_bias = wants_bias.then(|| B::column_sums(g.clone()));
                [Some(g), of_bias]
            },
        )
    }

    fn row_normalise(
        x: Float<Self>,
        gain: Float<Self>,
        shift: Float<Self>,
        activation: Activation,
    ) -> Float<Self> {
        operation::<B, C, _, 3>(
            [x, gain, shift],
            |[x, gain, shift]| {
                let y = B::normalise(x.clone(), gain.clone(), shift, activation);
                // The input is kept, unlike behind a bias: its moments cannot be told from the
                // result.
                (y.clone(), (activation, x, gain, y))
            },
            |g, (activation, x, gain, y), _| {
                let g = B::slope(g, y, activation);
                B::normalise_gradients(g, x, gain).map(Some)
            },
        )
    }

    fn row_mask(x: Float<Self>, mask: Arc<Mask>) -> Float<Self> {
        operation::<B, C, _, 1>(
            [x],
            |[x]| (B::mask(x, &mask), mask),
            |g, mask, _| [Some(B::mask(g, &mask))],
        )
    }

    fn row_loss(logits: Float<Self>, targets: Float<Self>, kind: Loss) -> Float<Self> {
        // Targets are constants: no gradient goes to them.
        let targets = targets.into_primitive();
        operation::<B, C, _, 1>(
            [logits],
            |[logits]| {
                let loss = B::loss(logits.clone(), targets.clone(), kind);
                (loss, (logits, targets, kind))
            },
            |g, (logits, targets, kind), _| [Some(B::loss_gradient(g, logits, targets, kind))],
        )
    }

    fn row_carrier(output: Float<Self>, upstream: Float<Self>) -> Float<Self> {
        operation::<B, C, _, 1>(
            [output],
            |[output]| (plain::zero::<B>(&output), upstream.into_primitive()),
            // The gradient from above is 1 and left out: carriers are only ever added up and then
            // differentiated.
            |_, upstream, _| [Some(upstream)],
        )
    }
}
