//! How large the gradient of each training node is, cheaply.

use burn::module::Module;

use super::estimators::squared_gradient_norm;
use crate::graph::Label;
use crate::model::{Block, Gnn, Input};
use crate::sim::{Activity, Worker};

/// `γ_v = ‖softmax − onehot‖² (1 + ‖h_v‖²)` of each seed, `h_v` being its row of the last layer's
/// input, by one forward pass without dropout. *(Derived, §4.7.)* Of several labels the chances of
/// each take softmax's place, and the mean over labels divides. `blocks` has one per layer, `seeds`
/// the rows of the last layer's outputs with their labels. It takes the time of that pass, and no
/// bytes.
pub(super) fn squared(
    worker: &mut Worker,
    model: &Gnn,
    blocks: &[&Block],
    features: &Input,
    seeds: &[(usize, Label)],
) -> Vec<f64> {
    let model = model.valid();
    let mut input = features.clone();
    let mut hidden = input.clone();
    for (layer, &block) in blocks.iter().enumerate() {
        let output = worker.compute(Activity::Model, |worker| {
            let output = model.layer(layer, block, &input);
            worker.wait_for(&output);
            output
        });
        hidden = std::mem::replace(&mut input, Input::Dense(output));
    }
    let (logits, hidden) = (rows(input, seeds), rows(hidden, seeds));
    let seeds = seeds.iter().zip(logits.iter().zip(&hidden));
    seeds
        .map(|((_, label), (logits, hidden))| squared_gradient_norm(&errors(logits, label), hidden))
        .collect()
}

/// The seeds' rows of a layer's input.
fn rows(input: Input, seeds: &[(usize, Label)]) -> Vec<Vec<f64>> {
    let seeds = seeds.iter().map(|(row, _)| *row);
    let double = |row: &[f32]| row.iter().copied().map(f64::from).collect();
    match input {
        Input::Dense(rows) => {
            let width = rows.width();
            let values = rows.into_values();
            seeds
                .map(|row| double(&values[row * width..][..width]))
                .collect()
        }
        // The norm of a row is that of what is stored of it.
        Input::Sparse(matrix, _) => seeds
            .map(|row| double(&matrix.values()[matrix.by_row().entries(row)]))
            .collect(),
    }
}

/// What the loss pulls at each logit with: `softmax(logits) − onehot(class)`, or for several labels
/// `(σ(logits) − labels) / number of labels`.
fn errors(logits: &[f64], label: &Label) -> Vec<f64> {
    let target = |number: usize| f64::from(u8::from(label.has(number)));
    let logits = logits.iter().copied().enumerate();
    match label {
        Label::Class(_) => {
            let largest = logits
                .clone()
                .map(|(_, x)| x)
                .fold(f64::NEG_INFINITY, f64::max);
            let power = |x: f64| (x - largest).exp();
            let sum: f64 = logits.clone().map(|(_, x)| power(x)).sum();
            logits.map(|(c, x)| power(x) / sum - target(c)).collect()
        }
        Label::Several(_) => {
            let labels = logits.len() as f64;
            let chance = |x: f64| 1.0 / (1.0 + (-x).exp());
            logits
                .map(|(t, x)| (chance(x) - target(t)) / labels)
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_probabilities_less_the_true_class() {
        let found = errors(&[3.0_f64.ln(), 0.0, 1000.0 - 1000.0], &Label::Class(1));
        for (found, expected) in found.iter().zip([0.6, -0.8, 0.2]) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert!(
            errors(&[1000.0, 0.0], &Label::Class(0))
                .iter()
                .all(|error| error.is_finite())
        );
    }

    #[test]
    fn errors_of_several_labels_are_chances_less_the_labels_over_their_number() {
        // Known, and with the second of two labels.
        let label = Label::Several([0b101].into());
        let found = errors(&[3.0_f64.ln(), -1000.0], &label);
        for (found, expected) in found.iter().zip([0.375, -0.5]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
