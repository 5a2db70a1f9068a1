//! What gathers rows of neighbours, for matrices in stripes: a sparse matrix is cut into tiles,
//! each of which reads one stripe and adds to one.
//!
//! ```text
//!            ┌ A₀₀  A₀₁ ┐   ┌ x₀ ┐        stripe o of the result:  Σ_i A_oi · x_i
//!   A · x =  └ A₁₀  A₁₁ ┘ · └ x₁ ┘        terms of a row are added stripe by stripe
//! ```
//!
//! Where there is one stripe, there is one tile, the matrix itself, and these are the operations on
//! tensors as they stand.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::sparse::Tile;
use super::{Block, Matrix, Merge, SparseMatrix, edge_softmax, edge_sum, neighbour_max, spmm};

/// `A·x` for `A [rows, columns]`.
///
/// # Shapes
/// - x: `[columns, width]`, in stripes of at most `stripe` rows, or in one
/// - result: `[rows, width]`, in stripes of `stripe` rows
pub(super) fn product(matrix: &Arc<SparseMatrix>, x: &Matrix, stripe: usize) -> Matrix {
    by_stripe(
        matrix,
        x,
        stripe,
        |_, tile, x| spmm(&tile.matrix, x),
        |a, b| a + b,
    )
}

/// The largest value of each column of `x` over the entries of each row, for `x` without values
/// below 0; 0 for a row without entries.
///
/// # Shapes
/// As for [`product`].
pub(super) fn largest(matrix: &Arc<SparseMatrix>, x: &Matrix) -> Matrix {
    let maximum = |_: usize, tile: &Tile, x: Tensor<2>| neighbour_max(&tile.matrix, x);
    // Of equal ones the first wins, as within a tile.
    by_stripe(matrix, x, x.stripe(), maximum, Tensor::max_pair)
}

/// The weights of attention: see [`edge_softmax`], and dropout on them as the block has it. One
/// tensor `[entries, heads]` for each stripe of `stripe` rows of the result.
///
/// # Shapes
/// - own: `[block.outputs, heads]`, scores of the nodes that read
/// - other: `[block.inputs, heads]`, scores of what they read
pub(super) fn attention(
    block: &Block,
    own: &Tensor<2>,
    other: &Tensor<2>,
    stripe: usize,
) -> Vec<Tensor<2>> {
    let rows = block.matrix.tiles(stripe, usize::MAX);
    let mut start = 0;
    let weights = rows.iter().enumerate().map(|(number, row)| {
        // Of all columns there is one tile in each stripe of rows.
        let matrix = &row[0].matrix;
        // With one stripe nothing is cut off, and gradients have one operation less to go through.
        let own = if rows.len() == 1 {
            own.clone()
        } else {
            own.clone().narrow(0, start, matrix.rows())
        };
        start += matrix.rows();
        let weights = edge_softmax(matrix, own, other.clone());
        match &block.attention {
            Some(mask) => weights * mask[number].clone(),
            None => weights,
        }
    });
    weights.collect()
}

/// Sums of rows with the weights of [`attention`]: see [`edge_sum`].
///
/// # Shapes
/// - x: `[block.inputs, heads · d]`
/// - result: `[block.outputs, heads · d]`, or `[block.outputs, d]` for the mean
pub(super) fn attend(block: &Block, weights: &[Tensor<2>], x: &Matrix, merge: Merge) -> Matrix {
    let sums = |number: usize, tile: &Tile, x: Tensor<2>| {
        let weights = weights[number].clone();
        let weights = match &tile.picks {
            None => weights,
            // Weights have gradients, so picking is an operation with one: a product with ones.
            Some(picks) => spmm(picks, weights),
        };
        edge_sum(&tile.matrix, weights, x, merge)
    };
    by_stripe(&block.matrix, x, x.stripe(), sums, |a, b| a + b)
}

/// For each stripe of the result, what `term` makes of its tiles and the stripes of `x`, put
/// together by `join`. A tile without entries has nothing to say, unless it is the only one.
fn by_stripe(
    matrix: &Arc<SparseMatrix>,
    x: &Matrix,
    stripe: usize,
    term: impl Fn(usize, &Tile, Tensor<2>) -> Tensor<2>,
    join: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>,
) -> Matrix {
    let columns = match x.parts() {
        // The usual case takes no detour by the cache of tiles.
        [x] if matrix.rows() <= stripe => {
            let whole = Tile::whole(matrix);
            return Matrix::of(vec![term(0, &whole, x.clone())], stripe);
        }
        [_] => usize::MAX,
        _ => x.stripe(),
    };
    let tiles = matrix.tiles(stripe, columns);
    let parts = tiles.iter().enumerate().map(|(number, row)| {
        let pairs = || row.iter().zip(x.parts());
        let terms = pairs().filter(|(tile, _)| tile.matrix.entries() > 0);
        let terms = terms.map(|(tile, x)| term(number, tile, x.clone()));
        // A stripe without any entry still has rows: its first tile gives their zeros.
        terms.reduce(&join).unwrap_or_else(|| {
            let (tile, x) = pairs().next().expect("a matrix has a stripe");
            term(number, tile, x.clone())
        })
    });
    Matrix::of(parts.collect(), stripe)
}
