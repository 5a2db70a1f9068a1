//! What a layer reads: dense rows on the device, or sparse feature rows.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::dropout::Mask;
use super::matrix::stripes;
use super::{Dropout, Matrix, Place, SparseMatrix, dropped, product, product_onto, tiles};
use crate::graph::Features;

/// The input rows of a layer, `[inputs, width]`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one value a layer: a box would only add a step to every use
pub enum Input {
    /// Dense rows on the device.
    Dense(Matrix),
    /// Constant sparse rows: bag-of-words features, of which a few per cent are non-zero. What they
    /// are multiplied to has stripes of at most so many rows.
    Sparse(Arc<SparseMatrix>, usize),
}

impl Input {
    /// Feature rows, dense or sparse as they are stored; those that are coded are decoded here.
    pub fn from_features(features: Features, place: &Place) -> Self {
        match features {
            Features::Dense { width, values } => {
                Self::Dense(Matrix::from_values(values, width, place))
            }
            Features::Coded(rows) => {
                let values = rows.decoded(0..rows.rows());
                Self::Dense(Matrix::from_values(values, rows.width(), place))
            }
            Features::Sparse {
                width,
                offsets,
                columns,
                values,
            } => {
                let rows = SparseMatrix::new(width, &offsets, columns, values);
                Self::Sparse(Arc::new(rows), place.stripe)
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.rows(),
            Self::Sparse(matrix, _) => matrix.rows(),
        }
    }

    /// Width of a row.
    pub fn width(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.width(),
            Self::Sparse(matrix, _) => matrix.columns(),
        }
    }

    /// Values that are stored, for estimates of work.
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.rows() * rows.width(),
            Self::Sparse(matrix, _) => matrix.entries(),
        }
    }

    /// The values of the rows from `start` on, dense, on the host.
    pub fn values_from(&self, start: usize) -> Vec<f32> {
        match self {
            Self::Dense(rows) => rows.values_from(start),
            Self::Sparse(matrix, _) => {
                let (stored, width) = (matrix.by_row(), matrix.columns());
                let mut dense = vec![0.0; (matrix.rows() - start) * width];
                for (row, values) in (start..).zip(dense.chunks_exact_mut(width.max(1))) {
                    for at in stored.entries(row) {
                        values[stored.columns[at] as usize] = matrix.values()[at];
                    }
                }
                dense
            }
        }
    }

    /// The first `rows` rows.
    pub fn head(&self, rows: usize) -> Self {
        match self {
            // A handle to the same rows: neither tensors nor matrices are copied.
            _ if rows == self.rows() => self.clone(),
            Self::Dense(all) => Self::Dense(all.head(rows)),
            Self::Sparse(matrix, stripe) => Self::Sparse(Arc::new(matrix.head(rows)), *stripe),
        }
    }

    /// The given rows in the given order; there has to be one.
    pub fn select(&self, rows: &[u32]) -> Self {
        match self {
            Self::Dense(all) => Self::Dense(all.select(rows)),
            Self::Sparse(matrix, stripe) => Self::Sparse(Arc::new(matrix.select(rows)), *stripe),
        }
    }

    /// Rows times `weight [width, d]`.
    pub fn times(&self, weight: Tensor<2>) -> Matrix {
        match self {
            // Clones of tensors share their values; operations consume what they are given.
            Self::Dense(rows) => rows.clone().map(|rows| product(rows, weight.clone())),
            Self::Sparse(matrix, stripe) => tiles::product(matrix, &weight.into(), *stripe),
        }
    }

    /// `base` and rows times `weight [width, d]`.
    pub(crate) fn times_onto(&self, base: Matrix, weight: Tensor<2>) -> Matrix {
        match self {
            Self::Dense(rows) => base.zip(rows.clone(), |base, rows| {
                product_onto(base, rows, weight.clone())
            }),
            Self::Sparse(..) => base.zip(self.times(weight), Tensor::add),
        }
    }

    /// With dropout applied: each value of global node `nodes[row]` is kept or dropped by its own
    /// draw.
    pub fn dropped(&self, dropout: &Dropout, epoch: u64, layer: usize, nodes: &[u32]) -> Self {
        let dropout = &dropout.of_input(layer);
        if dropout.is_off() {
            return self.clone();
        }
        match self {
            Self::Dense(rows) => {
                // `map` goes through the stripes from the first row on, so each meets its own
                // range.
                let mut ranges = stripes(nodes.len(), rows.stripe());
                let stripe = |rows: Tensor<2>| {
                    let range = ranges.next().unwrap_or_default();
                    dropped(rows, Mask::new(dropout, epoch, layer, &nodes[range]))
                };
                Self::Dense(rows.clone().map(stripe))
            }
            Self::Sparse(matrix, stripe) => {
                let dropped = dropout.sparse(epoch, layer, nodes, matrix);
                Self::Sparse(Arc::new(dropped), *stripe)
            }
        }
    }
}
