//! Cross-entropy over weighted nodes.

use burn::tensor::Tensor;

use super::{Matrix, Place, rowwise};
use crate::graph::{Label, Labels, Several, Task};

/// What the loss of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Of one class: `−log softmax(x)_c`.
    CrossEntropy,
    /// Of several labels, their mean: `log(1 + exp(∓x_t))`, with − where the node has label `t`
    /// (`BCEWithLogitsLoss` of `PyTorch`, whose mean over nodes and labels the examples of OGB and
    /// `PyTorch` Geometric take).
    BinaryCrossEntropy,
}

impl Loss {
    /// That of a task.
    pub const fn of(task: Task) -> Self {
        match task {
            Task::Classes(_) => Self::CrossEntropy,
            Task::Labels(_) => Self::BinaryCrossEntropy,
        }
    }
}

/// The constant side of the loss, `[rows, outputs]`.
///
/// Of one class, a weight at its column and zero elsewhere: one dense product with it replaces a
/// gather, whose gradient would be a scatter. Of several labels the weight over their number at
/// each column, negative where the node has not the label. Zeros throughout are a row that does not
/// count.
#[derive(Clone, Debug)]
pub struct Targets {
    values: Matrix,
    loss: Loss,
}

/// Targets of rows with weights of 0 or more; rows that are not named do not count.
pub fn targets(
    rows: usize,
    task: Task,
    weighted: impl IntoIterator<Item = (usize, Label, f32)>,
    place: &Place,
) -> Targets {
    let outputs = task.outputs();
    let mut values = vec![0.0_f32; rows * outputs];
    for (row, label, weight) in weighted {
        let row = &mut values[row * outputs..][..outputs];
        match &label {
            Label::Class(class) => row[*class as usize] = weight,
            Label::Several(_) => {
                let each = weight / outputs as f32;
                for (number, value) in row.iter_mut().enumerate() {
                    *value = if label.has(number) { each } else { -each };
                }
            }
        }
    }
    Targets {
        values: Matrix::from_values(values, outputs, place),
        loss: Loss::of(task),
    }
}

/// The targets of a mean over so many training nodes, of which some rows are `labelled`.
pub(crate) fn mean_targets(
    rows: usize,
    task: Task,
    labelled: impl IntoIterator<Item = (usize, Option<Label>)>,
    nodes: usize,
    place: &Place,
) -> Targets {
    // Of no training nodes at all no row is labelled either, and the weight is never used.
    let weight = (1.0 / nodes.max(1) as f64) as f32;
    let labelled = labelled.into_iter();
    let weighted = labelled.filter_map(|(row, label)| Some((row, label?, weight)));
    targets(rows, task, weighted, place)
}

/// `Σ_v weight_v · loss(logits_v)`.
///
/// # Shapes
/// - logits, targets: `[rows, outputs]`
/// - result: `[1]`
pub fn cross_entropy(logits: Matrix, targets: Targets) -> Tensor<1> {
    let loss = targets.loss;
    logits.zip_sum(targets.values, |logits, targets| {
        rowwise::loss(logits, targets, loss)
    })
}

/// The losses of those of the `nodes` that have a label, each with its node. `logits` is
/// `[rows, outputs]` row by row.
pub fn losses<'a>(
    logits: &'a [f32],
    outputs: usize,
    labels: &'a Labels,
    nodes: &'a [u32],
) -> impl Iterator<Item = (u32, f64)> + 'a {
    let row = move |v: u32| &logits[v as usize * outputs..][..outputs];
    let loss = move |v: u32| match labels {
        Labels::Classes(classes) => Some(of_class(row(v), classes[v as usize]?)),
        Labels::Several(several) => of_several(row(v), several, v as usize),
    };
    nodes.iter().filter_map(move |&v| Some((v, loss(v)?)))
}

/// Their mean, added up in their order; `None` of none.
pub fn mean_of_losses(losses: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = losses.fold((0.0, 0_usize), |(sum, n), loss| (sum + loss, n + 1));
    (count > 0).then(|| sum / count as f64)
}

fn of_class(row: &[f32], class: u32) -> f64 {
    // Taken from every logit, so that no exponential overflows.
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
    sum.ln() - f64::from(row[class as usize] - largest)
}

fn of_several(row: &[f32], several: &Several, node: usize) -> Option<f64> {
    let of_label = |(label, &x): (usize, &f32)| {
        let x = f64::from(x);
        let z = if several.has(node, label) { -x } else { x };
        // `log(1 + exp(z))` where the exponential cannot overflow: its argument is never above 0.
        z.max(0.0) + (-z.abs()).exp().ln_1p()
    };
    let sum: f64 = row.iter().enumerate().map(of_label).sum();
    several.is_known(node).then(|| sum / row.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two outputs.
    fn mean_loss(logits: &[f32], labels: &Labels, nodes: &[u32]) -> Option<f64> {
        mean_of_losses(losses(logits, 2, labels, nodes).map(|(_, loss)| loss))
    }

    #[test]
    fn the_mean_loss_is_that_of_labelled_nodes_and_survives_large_logits() {
        let logits = [0.0, 0.0, 1000.0, 0.0, 0.0, 3.0];
        let labels = vec![Some(1), Some(1), None].into();
        let loss = |nodes: &[u32]| mean_loss(&logits, &labels, nodes);
        let near = |value: Option<f64>, expected: f64| {
            assert!((value.unwrap() - expected).abs() < 1e-12, "{value:?}");
        };
        near(loss(&[0]), 2_f64.ln());
        near(loss(&[1]), 1000.0);
        near(loss(&[0, 1, 2]), f64::midpoint(2_f64.ln(), 1000.0));
        assert_eq!((loss(&[2]), loss(&[])), (None, None));
    }

    #[test]
    fn the_loss_of_several_labels_is_the_mean_over_them_and_survives_large_logits() {
        let mut several = Several::new(2);
        several.push(Some(&[true, false]));
        several.push(Some(&[false, false]));
        several.push(None);
        let logits = [0.0, -1000.0, 1000.0, 0.0, 5.0, 5.0];
        let labels = several.into();
        let loss = |nodes: &[u32]| mean_loss(&logits, &labels, nodes);
        assert!((loss(&[0]).unwrap() - 2_f64.ln() / 2.0).abs() < 1e-12);
        assert!((loss(&[1, 2]).unwrap() - f64::midpoint(1000.0, 2_f64.ln())).abs() < 1e-12);
        assert_eq!(loss(&[2]), None);
    }
}
