//! Cross-entropy over weighted nodes, and accuracy.

use burn::tensor::Tensor;

use super::{Matrix, Place, rowwise};

/// The constant side of the loss: for each row a weight at the column of its class,
/// `[rows, classes]`, and zero elsewhere.
///
/// One dense product with it replaces a gather, whose gradient would be a scatter.
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

/// The constant side of a mean over so many training nodes, of which some rows are `labelled`.
pub fn mean_targets(
    rows: usize,
    classes: usize,
    labelled: impl IntoIterator<Item = (usize, Option<u32>)>,
    nodes: usize,
    place: &Place,
) -> Matrix {
    let weight = (1.0 / nodes.max(1) as f64) as f32;
    let labelled = labelled.into_iter();
    let weighted = labelled.filter_map(|(row, class)| Some((row, class?, weight)));
    targets(rows, classes, weighted, place)
}

/// `Σ_v weight_v · CE(logits_v, class_v)`.
///
/// # Shapes
/// - logits, targets: `[rows, classes]`
/// - result: `[1]`
pub fn cross_entropy(logits: Matrix, targets: Matrix) -> Tensor<1> {
    logits.zip_sum(targets, rowwise::loss)
}

/// The class of the largest logit of each row; the first of several equal ones. `logits` is
/// `[rows, classes]` row by row.
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

/// Mean cross-entropy of the `nodes` that have a label. `logits` is `[rows, classes]` row by row.
/// `None` if none has.
pub fn mean_loss(
    logits: &[f32],
    classes: usize,
    labels: &[Option<u32>],
    nodes: &[u32],
) -> Option<f64> {
    let losses = nodes.iter().filter_map(|&v| {
        let class = labels[v as usize]?;
        let row = &logits[v as usize * classes..][..classes];
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
        Some(sum.ln() - f64::from(row[class as usize] - largest))
    });
    let (sum, count) = losses.fold((0.0, 0_usize), |(sum, n), loss| (sum + loss, n + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Share of `nodes` whose predicted class is their label; nodes without a label count as wrong.
/// `None` for no nodes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_loss_is_that_of_labelled_nodes_and_survives_large_logits() {
        let logits = [0.0, 0.0, 1000.0, 0.0, 0.0, 3.0];
        let labels = [Some(1), Some(1), None];
        let loss = |nodes: &[u32]| mean_loss(&logits, 2, &labels, nodes);
        let near = |value: Option<f64>, expected: f64| {
            assert!((value.unwrap() - expected).abs() < 1e-12, "{value:?}");
        };
        near(loss(&[0]), 2_f64.ln());
        near(loss(&[1]), 1000.0);
        near(loss(&[0, 1, 2]), f64::midpoint(2_f64.ln(), 1000.0));
        assert_eq!((loss(&[2]), loss(&[])), (None, None));
    }
}
