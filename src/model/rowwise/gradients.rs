//! The operations with what automatic differentiation has to know of them.

use std::sync::Arc;

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::{Activation, RowwiseKernels, plain};
use crate::model::dropout::Mask;

/// A tensor of the differentiating backend.
type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

pub fn activate<B: RowwiseKernels, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    bias: Tracked<B, C>,
    activation: Activation,
) -> Tracked<B, C> {
    #[derive(Debug)]
    struct Back;

    impl<B: RowwiseKernels> Backward<B, 2> for Back {
        /// Activation, result.
        type State = (Activation, FloatTensor<B>);

        fn backward(
            self,
            ops: Ops<Self::State, 2>,
            gradients: &mut Gradients,
            _checkpointer: &mut Checkpointer,
        ) {
            let g = gradients.consume::<B>(&ops.node);
            let (activation, y) = ops.state;
            let g = B::slope(g, y, activation);
            let [of_x, of_bias] = ops.parents;
            if let Some(node) = of_bias {
                gradients.register::<B>(node.id, B::column_sums(g.clone()));
            }
            if let Some(node) = of_x {
                gradients.register::<B>(node.id, g);
            }
        }
    }

    match Back
        .prepare::<C>([x.node(), bias.node()])
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => {
            let y = B::activate(x.into_primitive(), bias.into_primitive(), activation);
            // The slope follows from the result alone, so the input need not be kept.
            prepared.finish((activation, y.clone()), y)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(B::activate(
            x.into_primitive(),
            bias.into_primitive(),
            activation,
        )),
    }
}

pub fn normalise<B: RowwiseKernels, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    gain: Tracked<B, C>,
    shift: Tracked<B, C>,
    activation: Activation,
) -> Tracked<B, C> {
    #[derive(Debug)]
    struct Back;

    impl<B: RowwiseKernels> Backward<B, 3> for Back {
        /// Activation, x, gain, result.
        type State = (Activation, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>);

        fn backward(
            self,
            ops: Ops<Self::State, 3>,
            gradients: &mut Gradients,
            _checkpointer: &mut Checkpointer,
        ) {
            let g = gradients.consume::<B>(&ops.node);
            let (activation, x, gain, y) = ops.state;
            let g = B::slope(g, y, activation);
            let results = B::normalise_gradients(g, x, gain);
            for (parent, gradient) in ops.parents.into_iter().zip(results) {
                if let Some(node) = parent {
                    gradients.register::<B>(node.id, gradient);
                }
            }
        }
    }

    match Back
        .prepare::<C>([x.node(), gain.node(), shift.node()])
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => {
            let (x, gain) = (x.into_primitive(), gain.into_primitive());
            let y = B::normalise(x.clone(), gain.clone(), shift.into_primitive(), activation);
            prepared.finish((activation, x, gain, y.clone()), y)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(B::normalise(
            x.into_primitive(),
            gain.into_primitive(),
            shift.into_primitive(),
            activation,
        )),
    }
}

pub fn mask<B: RowwiseKernels, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    mask: Arc<Mask>,
) -> Tracked<B, C> {
    #[derive(Debug)]
    struct Back;

    impl<B: RowwiseKernels> Backward<B, 1> for Back {
        type State = Arc<Mask>;

        fn backward(
            self,
            ops: Ops<Self::State, 1>,
            gradients: &mut Gradients,
            _checkpointer: &mut Checkpointer,
        ) {
            let g = gradients.consume::<B>(&ops.node);
            let [parent] = ops.parents;
            if let Some(node) = parent {
                gradients.register::<B>(node.id, B::mask(g, &ops.state));
            }
        }
    }

    match Back.prepare::<C>([x.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let y = B::mask(x.into_primitive(), &mask);
            prepared.finish(mask, y)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(B::mask(x.into_primitive(), &mask)),
    }
}

pub fn loss<B: RowwiseKernels, C: CheckpointStrategy>(
    logits: Tracked<B, C>,
    targets: Tracked<B, C>,
) -> Tracked<B, C> {
    #[derive(Debug)]
    struct Back;

    impl<B: RowwiseKernels> Backward<B, 1> for Back {
        /// Logits, targets.
        type State = (FloatTensor<B>, FloatTensor<B>);

        fn backward(
            self,
            ops: Ops<Self::State, 1>,
            gradients: &mut Gradients,
            _checkpointer: &mut Checkpointer,
        ) {
            let g = gradients.consume::<B>(&ops.node);
            let (logits, targets) = ops.state;
            let [parent] = ops.parents;
            if let Some(node) = parent {
                gradients.register::<B>(node.id, B::loss_gradient(g, logits, targets));
            }
        }
    }

    // Targets are constants: no gradient goes to them.
    let targets = targets.into_primitive();
    match Back
        .prepare::<C>([logits.node()])
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => {
            let logits = logits.into_primitive();
            let loss = B::loss(logits.clone(), targets.clone());
            prepared.finish((logits, targets), loss)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(B::loss(logits.into_primitive(), targets)),
    }
}

pub fn carrier<B: RowwiseKernels, C: CheckpointStrategy>(
    output: Tracked<B, C>,
    upstream: Tracked<B, C>,
) -> Tracked<B, C> {
    #[derive(Debug)]
    struct Back;

    impl<B: RowwiseKernels> Backward<B, 1> for Back {
        /// What to go on with.
        type State = FloatTensor<B>;

        fn backward(
            self,
            ops: Ops<Self::State, 1>,
            gradients: &mut Gradients,
            _checkpointer: &mut Checkpointer,
        ) {
            let [parent] = ops.parents;
            if let Some(node) = parent {
                gradients.register::<B>(node.id, ops.state);
            }
        }
    }

    let zero = plain::zero::<B>(output.primitive());
    match Back
        .prepare::<C>([output.node()])
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => prepared.finish(upstream.into_primitive(), zero),
        OpsKind::UnTracked(prepared) => prepared.finish(zero),
    }
}
