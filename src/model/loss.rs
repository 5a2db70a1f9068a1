//! Cross-entropy over weighted nodes, and accuracy.

use burn::tensor::Tensor;

use super::{Matrix, Place, rowwise};

/// The constant side of the loss: for each row a weight at the column of its class, `[rows, classes]`, and zero elsewhere.
///
/// One dense product with it replaces a gather, whose gradient would be a scatter.
#[must_use]
pub fn targets(
    rows: usize,
    classes: usize,
    weighted: impl IntoIterator<Item = (usize, u32, f32)>,
    place: &Place,
) -> Matrix {
    let mut values = vec![0.0_f32; rows * classes];
    for (row, class, weight) in weighted {
        values[row * classes + class as usize] = weight;
    }
    Matrix::from_values(values, classes, place)
}

/// `Σ_v weight_v · CE(logits_v, class_v)`.
///
/// # Shapes
/// - logits, targets: `[rows, classes]`
/// - result: `[1]`
#[must_use]
pub fn cross_entropy(logits: Matrix, targets: Matrix) -> Tensor<1> {
    logits.zip_sum(targets, rowwise::loss)
}

/// The class of the largest logit of each row; the first of several equal ones. `logits` is `[rows, classes]` row by row.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // classes are few
pub fn predictions(logits: &[f32], classes: usize) -> Vec<u32> {
    logits
        .chunks_exact(classes)
        .map(|row| {
            let mut best = 0;
            for (class, value) in row.iter().enumerate() {
                if *value > row[best] {
                    best = class;
                }
            }
            best as u32
        })
        .collect()
}

/// Share of `nodes` whose predicted class is their label; nodes without a label count as wrong. `None` for no nodes.
#[must_use]
pub fn accuracy(predicted: &[u32], labels: &[Option<u32>], nodes: &[u32]) -> Option<f64> {
    if nodes.is_empty() {
        return None;
    }
    let right = nodes
        .iter()
        .filter(|&&v| labels[v as usize] == Some(predicted[v as usize]))
        .count();
    Some(right as f64 / nodes.len() as f64)
}
