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

mod aggregation;
mod attention;
mod block;
mod conv;
#[cfg(feature = "wgpu")]
mod device;
mod dropout;
mod finite;
mod gather;
mod given;
mod gnn;
mod head;
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
mod stripes;
mod tiles;
mod work;

pub use aggregation::Aggregation;
pub(crate) use aggregation::EdgeDegrees;
pub use attention::{edge_softmax, edge_sum};
pub use block::Block;
pub use conv::{Conv, GatConv, GcnConv, GinConv, PoolConv, SageConv};
pub(crate) use conv::{dense_parameters, sums};
pub use dropout::{Dropout, Mask};
pub use finite::has_finite_squares;
pub(crate) use finite::is_finite;
pub use given::GivenWeights;
pub use gnn::{Gnn, ModelSpec};
pub(crate) use host::copied;
pub use input::Input;
pub use layer::{LayerSpec, Merge, RowForm};
pub(crate) use loss::mean_targets;
pub use loss::{Loss, Targets, cross_entropy, losses, mean_of_losses, targets};
pub use matrix::{Matrix, Place};
pub use maximum::neighbour_max;
pub use norm::Norm;
pub use optimizer::{Moment, Optimizer, ParameterMemory};
pub(crate) use parameters::named_parameters;
pub use parameters::{
    NamedParameter, add_gradients, parameter_count, parameter_shapes, parameters, with_parameters,
};
pub(crate) use product::{product, product_onto};
pub use rowwise::{Activation, activate, carrier};
pub(crate) use rowwise::{dropped, layer_norm};
pub(crate) use score::PartScore;
pub use score::score;
pub use sparse::{Rows, SparseMatrix, Transposed};
pub use spec::{Biases, Init, ModelConfig, ModelKind, NormKind, OptimizerConfig};
pub use spmm::{spmm, spmm_onto};
pub use work::{BlockShape, InputShape, Work};
