//! What a layer reads: dense rows on the device, or sparse feature rows.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::dropout::Mask;
use super::{Dropout, SparseMatrix, dropped, spmm};
use crate::graph::Features;

/// The input rows of a layer, `[inputs, width]`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one value a layer: a box would only add a step to every use
pub enum Input {
    /// Dense rows on the device.
    Dense(Tensor<2>),
    /// Constant sparse rows: bag-of-words features, of which a few per cent are non-zero.
    Sparse(Arc<SparseMatrix>),
}

impl Input {
    /// Feature rows, dense or sparse as they are stored.
    #[must_use]
    pub fn from_features(features: Features, device: &Device) -> Self {
        match features {
            Features::Dense { width, values } => {
                let rows = values.len() / width;
                let data = TensorData::new(values, [rows, width]);
                Self::Dense(Tensor::from_data(data, device))
            }
            Features::Sparse {
                width,
                offsets,
                columns,
                values,
            } => Self::Sparse(Arc::new(SparseMatrix::new(
                width, &offsets, columns, values,
            ))),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.dims()[0],
            Self::Sparse(matrix) => matrix.rows(),
        }
    }

    /// Width of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.dims()[1],
            Self::Sparse(matrix) => matrix.columns(),
        }
    }

    /// Values that are stored, for estimates of work.
    #[must_use]
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.dims()[0] * rows.dims()[1],
            Self::Sparse(matrix) => matrix.entries(),
        }
    }

    /// The first `rows` rows.
    #[must_use]
    pub fn head(&self, rows: usize) -> Self {
        match self {
            _ if rows == self.rows() => self.clone(),
            Self::Dense(all) => Self::Dense(all.clone().narrow(0, 0, rows)),
            Self::Sparse(matrix) => Self::Sparse(Arc::new(matrix.head(rows))),
        }
    }

    /// The given rows in the given order; there has to be one.
    #[must_use]
    pub fn select(&self, rows: &[u32], device: &Device) -> Self {
        match self {
            Self::Dense(all) => {
                #[allow(clippy::cast_possible_wrap)] // rows of a worker are far below 2³¹
                let index: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
                let index = TensorData::new(index, [rows.len()]);
                let index: Tensor<1, Int> = Tensor::from_data(index, device);
                Self::Dense(all.clone().select(0, index))
            }
            Self::Sparse(matrix) => Self::Sparse(Arc::new(matrix.select(rows))),
        }
    }

    /// Rows times `weight [width, d]`.
    #[must_use]
    pub fn times(&self, weight: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Dense(rows) => rows.clone().matmul(weight),
            Self::Sparse(matrix) => spmm(matrix, weight),
        }
    }

    /// With dropout applied: each value of global node `nodes[row]` is kept or dropped by its own draw.
    #[must_use]
    pub fn dropped(&self, dropout: &Dropout, epoch: u64, layer: usize, nodes: &[u32]) -> Self {
        if dropout.is_off() {
            return self.clone();
        }
        match self {
            Self::Dense(rows) => {
                let mask = Mask::new(dropout, epoch, layer, nodes);
                Self::Dense(dropped(rows.clone(), mask))
            }
            Self::Sparse(matrix) => {
                Self::Sparse(Arc::new(dropout.sparse(epoch, layer, nodes, matrix)))
            }
        }
    }
}
