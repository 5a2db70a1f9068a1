//! What a layer reads: dense rows on the device, or sparse feature rows.

use std::sync::Arc;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::dropout::Mask;
use super::packed::pack;
use super::stripes::stripes;
use super::{
    Dropout, Matrix, Place, SparseMatrix, dropped, product, product_onto, spmm_onto, tiles,
};
use crate::graph::Features;

/// Share of the values of dense rows up to which products are sooner done without the zeros.
// With 0.35 of the values it is half the time on the machine of `results/performance`; others can
// be better at dense products.
const MOSTLY_ZERO: f64 = 0.4;

/// Columns of such rows: with fewer a layer would gather them as they are, before its product.
const WIDE_ENOUGH: usize = 256;

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
            Features::Sparse(rows) => {
                let rows = SparseMatrix::new(rows.width, &rows.offsets, rows.columns, rows.values);
                Self::Sparse(Arc::new(rows), place.stripe)
            }
        }
    }

    /// The rows as those that a training reads again and again. Of dense ones neighbours' sums are
    /// worked out once. On the host dense rows of which most values are zero are kept without
    /// these, and sparse ones as products read them fastest.
    pub(crate) fn lasting(self) -> Self {
        match self {
            Self::Dense(rows) => match without_zeros(&rows) {
                Some(matrix) => Self::Sparse(Arc::new(matrix), rows.stripe()).lasting(),
                None => Self::Dense(rows.lasting()),
            },
            Self::Sparse(matrix, stripe) => {
                pack(&matrix);
                Self::Sparse(matrix, stripe)
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
    pub(crate) fn values_from(&self, start: usize) -> Vec<f32> {
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
            Self::Sparse(matrix, stripe) if matrix.rows() <= *stripe => {
                base.map(|base| spmm_onto(base, matrix, weight.clone()))
            }
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

/// Dense rows without their zeros, where products are sooner done so.
fn without_zeros(rows: &Matrix) -> Option<SparseMatrix> {
    if !rows.is_on_host() || rows.width() < WIDE_ENOUGH {
        return None;
    }
    let values = rows.clone().into_values();
    let stored = values.par_iter().filter(|&&value| value != 0.0).count();
    let mostly_zero = stored as f64 <= MOSTLY_ZERO * values.len() as f64;
    mostly_zero.then(|| SparseMatrix::of_dense(&values, rows.width()))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::graph::Csr;
    use crate::model::sparse::drawn;
    use crate::model::{Activation, Aggregation, Block, Conv, LayerSpec, ModelConfig, ModelSpec};

    /// Rows of `width` columns of which so many of a hundred values are not zero.
    fn rows_with(stored: u64, rows: usize, width: usize) -> Matrix {
        let kept = |at: usize| crate::rng::mix(3, at as u64) % 100 < stored;
        let values = drawn::values(rows * width, 5).into_iter().enumerate();
        let values = values.map(|(at, value)| if kept(at) { value } else { 0.0 });
        let place = Place::unbounded(Device::flex());
        Matrix::from_values(values.collect(), width, &place)
    }

    fn tensor(shape: [usize; 2], seed: u64) -> Tensor<2> {
        let data = TensorData::new(drawn::values(shape[0] * shape[1], seed), shape);
        Tensor::from_data(data, &Device::flex())
    }

    #[test]
    fn rows_of_mostly_zeros_lose_them_and_their_products_stay() {
        let (rows, width) = (50, WIDE_ENOUGH);
        let sparse = |stored| Input::Dense(rows_with(stored, rows, width)).lasting();
        assert!(matches!(sparse(35), Input::Sparse(..)));
        assert!(matches!(sparse(45), Input::Dense(..)), "not empty enough");
        let narrow = Input::Dense(rows_with(35, rows, width - 1)).lasting();
        assert!(matches!(narrow, Input::Dense(..)));

        let (weight, base) = (tensor([width, 20], 1), tensor([rows, 20], 2));
        let dense = Input::Dense(rows_with(35, rows, width));
        let onto = |input: &Input| {
            let sum = input.times_onto(base.clone().into(), weight.clone());
            [input.times(weight.clone()), sum].map(Matrix::into_values)
        };
        let (found, expected) = (onto(&sparse(35)).concat(), onto(&dense).concat());
        for (found, expected) in found.iter().zip(expected) {
            // A hundred terms of up to 4.
            assert!((found - expected).abs() < 1e-3, "{found} for {expected}");
        }
    }

    #[test]
    fn a_layer_has_the_same_output_where_neighbours_are_summed_once() {
        let config: ModelConfig = toml::from_str("kind = \"gcn\"\nlayers = 2\nhidden = 9").unwrap();
        let spec: LayerSpec = ModelSpec::new(&config, 4, 3).layer(0);
        let conv = Conv::new(&spec, 0, 0, &Device::flex());
        let graph = Csr::from_edges(3, [(0, 1), (1, 2)].into_iter());
        let block =
            |degrees: [usize; 3]| Block::new(&graph, &degrees, Aggregation::SymmetricWithSelf);
        let output = |block: &Block, input: &Input| {
            let output = conv.forward(block, input, Activation::Identity);
            output.into_values()
        };
        let input = Input::Dense(rows_with(100, 3, 4));
        let lasting = input.clone().lasting();
        let (one, two) = (block([1, 2, 1]), block([3, 3, 3]));
        // One after the other, so that what is remembered is of the right block.
        for block in [&one, &one, &two, &one] {
            assert_eq!(output(block, &lasting), output(block, &input));
        }
    }
}
