//! Models on burn: sparse aggregation, layers, loss, flat parameters.
//!
//! ```text
//! Csr ─ Block ─┐
//!              ├→ Gnn::layer(l, block, input) → Matrix → cross_entropy → gradients → flat vector
//! Features ─ Input ─ Dropout
//! ```
//!
//! A model runs one layer at a time, so that a strategy can exchange rows between layers; the
//! constant sparse matrices of the graph and of bag-of-words features meet dense tensors in one
//! operation, [`spmm`]; attention and maxima over neighbours have their own. What happens to a row
//! between two products is in `rowwise`. Rows are a [`Matrix`]: one tensor or, where a device's
//! buffers are smaller than that, stripes, over which `tiles` aggregates.

mod attention;
mod block;
mod conv;
#[cfg(feature = "wgpu")]
mod device;
mod dropout;
mod finite;
mod gather;
mod gnn;
mod host;
mod input;
mod layer;
mod loss;
mod matrix;
mod maximum;
mod norm;
mod operation;
mod optimizer;
mod packed;
mod parameters;
mod product;
mod rowwise;
mod scatter;
mod score;
mod sparse;
mod spec;
mod spmm;
mod tiles;
mod work;

pub use attention::{AttentionBackend, edge_softmax, edge_sum};
pub use block::{Aggregation, Block};
pub use conv::{Conv, GatConv, GcnConv, GinConv, PoolConv, SageConv, dense_parameters, sums};
pub use dropout::{Dropout, Mask};
pub use finite::{has_finite_squares, is_finite};
pub use gnn::{Gnn, ModelSpec};
pub use input::Input;
pub use layer::{LayerSpec, Merge, RowForm};
pub use loss::{
    Loss, Targets, cross_entropy, losses, mean_loss, mean_of_losses, mean_targets, targets,
};
pub use matrix::{Matrix, Place};
pub use maximum::{MaximumBackend, neighbour_max};
pub use norm::Norm;
pub use optimizer::Optimizer;
pub use parameters::{
    NamedParameter, add_gradients, gradients_for, named_parameters, parameter_count,
    parameter_shapes, parameters, with_parameters,
};
pub use product::{ProductBackend, product, product_onto};
pub use rowwise::{Activation, RowwiseBackend, activate, carrier, dropped, layer_norm};
pub use score::{PartScore, score};
pub use sparse::{Rows, SparseMatrix, Transposed};
pub use spec::{Biases, Init, ModelConfig, ModelKind, NormKind, OptimizerConfig};
pub use spmm::{SpmmBackend, spmm, spmm_onto};
pub use work::{BlockShape, InputShape, Work};
