//! Operations on tensors with gradients of their own.

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend};

/// An extension of the tensor backends, which [`Dispatch`](burn::backend::Dispatch) has on all that
/// are built in.
macro_rules! on_every_backend {
    ($($extension:tt)*) => {
        #[burn::backend::backend_extension(
            Flex,
            NdArray: cfg(feature = "ndarray"),
            Cube: cfg(feature = "wgpu"),
            Autodiff
        )]
        $($extension)*
    };
}
pub(super) use on_every_backend;

/// A tensor of the differentiating backend.
pub(super) type Tracked<B, C> = Float<Autodiff<B, C>>;

/// The way back of an operation: the gradients of its inputs, of those that are wanted, from that
/// of its result and what was kept for it.
pub(super) type Back<B, S, const N: usize> = fn(Float<B>, S, [bool; N]) -> [Option<Float<B>>; N];

#[derive(Debug)]
struct Way<B: Backend, S, const N: usize>(Back<B, S, N>);

impl<B: Backend, S: Clone + Debug + Send + 'static, const N: usize> Backward<B, N>
    for Way<B, S, N>
{
    type State = S;

    fn backward(self, ops: Ops<S, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = (self.0)(gradient, ops.state, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            // Parents that need no gradient are `None`, and whatever was found for them is dropped.
            if let (Some(node), Some(gradient)) = (parent, gradient) {
                gradients.register::<B>(node.id, gradient);
            }
        }
    }
}

/// The result of an operation on `inputs`: `forth` gives it with what is kept for the way `back`,
/// which is dropped at once where nobody will ask for gradients.
pub(super) fn operation<B: Backend, C: CheckpointStrategy, S, const N: usize>(
    inputs: [Tracked<B, C>; N],
    forth: impl FnOnce([Float<B>; N]) -> (Float<B>, S),
    back: Back<B, S, N>,
) -> Tracked<B, C>
where
    S: Clone + Debug + Send + 'static,
{
    let nodes = inputs.each_ref().map(<Tracked<B, C>>::node);
    // Nodes first: `into_primitive` keeps the values and drops their place among the operations.
    let inputs = inputs.map(<Tracked<B, C>>::into_primitive);
    let (result, kept) = forth(inputs);
    // Compute-bound: a checkpointing strategy that saves memory must not do an aggregation twice.
    match Way(back).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(kept, result),
        OpsKind::UnTracked(prepared) => prepared.finish(result),
    }
}
