//! Models on burn: sparse aggregation, layers, loss, flat parameters.
//!
//! ```text
//! Csr ─ Block ─┐
//!              ├→ Gnn::layer(l, block, input) → Tensor → cross_entropy → gradients → flat vector
//! Features ─ Input ─ Dropout
//! ```
//!
//! A model runs one layer at a time, so that a strategy can exchange rows between layers; the constant sparse matrices of the
//! graph and of bag-of-words features meet dense tensors in one operation, [`spmm`].

mod block;
mod conv;
mod dropout;
mod gnn;
mod input;
mod loss;
mod optimizer;
mod parameters;
mod sparse;
mod spec;
mod spmm;
mod work;

pub use block::{Aggregation, Block};
pub use conv::{Conv, GcnConv, SageConv, dense_parameters};
pub use dropout::Dropout;
pub use gnn::{Gnn, ModelSpec, conv_parameters};
pub use input::Input;
pub use loss::{accuracy, cross_entropy, predictions, targets};
pub use optimizer::Optimizer;
pub use parameters::{add_gradients, gradients_for, parameter_count, parameters, with_parameters};
pub use sparse::{Rows, SparseMatrix, Transposed};
pub use spec::{ModelConfig, ModelKind, NormKind, OptimizerConfig};
pub use spmm::{SpmmBackend, spmm};
pub use work::Work;
