//! Sparse × dense products on every backend, with their gradient.
//!
//! `spmm(A, x) = A·x` for a constant sparse `A [m, n]` and a dense `x [n, width]`; the gradient with respect to `x` is `Aᵀ·g`. One
//! thread (or one lane of a graphics device) owns each output element and adds its terms in the order of the entries: no
//! atomics, and the same bits whatever the number of threads.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

mod cpu;
#[cfg(feature = "wgpu")]
mod cube;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;

use super::SparseMatrix;

/// What is made of a matrix once and dropped with it: what it has left on devices, by device, and the tiles it was cut into.
#[derive(Clone, Default)]
pub struct Cache(Arc<Mutex<Vec<(String, Kept)>>>);

/// What one backend keeps on one device, say; only who made it knows the type.
type Kept = Arc<dyn Any + Send + Sync>;

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl Cache {
    /// What is called so, made when it is not there yet.
    pub(super) fn get<T: Any + Send + Sync>(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, any)| Arc::clone(any));
        if let Some(found) = found.and_then(|any| any.downcast::<T>().ok()) {
            return found;
        }
        let made = Arc::new(make());
        entries.push((name.to_owned(), Arc::clone(&made) as Kept));
        made
    }
}

/// The sparse product as an operation of a tensor backend.
#[cfg_attr(
    all(feature = "wgpu", feature = "ndarray"),
    backend_extension(Flex, NdArray, Cube, Autodiff)
)]
#[cfg_attr(
    all(feature = "wgpu", not(feature = "ndarray")),
    backend_extension(Flex, Cube, Autodiff)
)]
#[cfg_attr(
    all(not(feature = "wgpu"), feature = "ndarray"),
    backend_extension(Flex, NdArray, Autodiff)
)]
#[cfg_attr(
    all(not(feature = "wgpu"), not(feature = "ndarray")),
    backend_extension(Flex, Autodiff)
)]
pub trait SpmmBackend: Backend {
    /// `A·x`, or `Aᵀ·x` when `transposed`.
    fn spmm(x: FloatTensor<Self>, matrix: Arc<SparseMatrix>, transposed: bool)
    -> FloatTensor<Self>;
}

/// `A·x` for `matrix` `A [rows, columns]` and `x [columns, width]`.
///
/// # Shapes
/// - x: `[columns, width]`
/// - result: `[rows, width]`
///
/// # Panics
/// If `x` does not have `columns` rows.
#[must_use]
pub fn spmm(matrix: &Arc<SparseMatrix>, x: Tensor<2>) -> Tensor<2> {
    assert_eq!(
        x.dims()[0],
        matrix.columns(),
        "one row of x per column of the matrix"
    );
    let product = <Dispatch as SpmmBackend>::spmm(x.into_dispatch(), Arc::clone(matrix), false);
    Tensor::from_dispatch(product)
}

impl<B: SpmmBackend, C: CheckpointStrategy> SpmmBackend for Autodiff<B, C> {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct SpmmBackward;

        impl<B: SpmmBackend> Backward<B, 1> for SpmmBackward {
            type State = (Arc<SparseMatrix>, bool);

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let gradient = gradients.consume::<B>(&ops.node);
                let (matrix, transposed) = ops.state;
                let [parent] = ops.parents;
                if let Some(node) = parent {
                    gradients.register::<B>(node.id, B::spmm(gradient, matrix, !transposed));
                }
            }
        }

        match SpmmBackward
            .prepare::<C>([x.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prepared) => {
                let product = B::spmm(x.primitive().clone(), Arc::clone(&matrix), transposed);
                prepared.finish((matrix, transposed), product)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::spmm(x.into_primitive(), matrix, transposed))
            }
        }
    }
}
