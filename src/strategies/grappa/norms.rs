//! How large the gradient of each training node is, cheaply.

use burn::module::Module;

use super::estimators::squared_gradient_norm;
use crate::model::{Block, Gnn, Input};
use crate::sim::{Activity, Worker};

/// `γ_v = ‖softmax − onehot‖² (1 + ‖h_v‖²)` of each seed, `h_v` being its row of the last layer's
/// input, by one forward pass without dropout. *(Derived, §4.7.)* `blocks` has one per layer,
/// `seeds` the rows of the last layer's outputs with their classes. It takes the time of that pass,
/// and no bytes.
pub fn squared(
    worker: &mut Worker,
    model: &Gnn,
    blocks: &[&Block],
    features: &Input,
    seeds: &[(usize, u32)],
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
        .map(|((_, class), (logits, hidden))| {
            squared_gradient_norm(&errors(logits, *class as usize), hidden)
        })
        .collect()
}

/// The seeds' rows of a layer's input.
fn rows(input: Input, seeds: &[(usize, u32)]) -> Vec<Vec<f64>> {
    let seeds = seeds.iter().map(|&(row, _)| row);
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

/// `softmax(logits) − onehot(class)`.
fn errors(logits: &[f64], class: usize) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    let errors = powers.iter().enumerate();
    errors
        .map(|(c, power)| power / sum - if c == class { 1.0 } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_probabilities_less_the_true_class() {
        let found = errors(&[3.0_f64.ln(), 0.0, 1000.0 - 1000.0], 1);
        for (found, expected) in found.iter().zip([0.6, -0.8, 0.2]) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert!(
            errors(&[1000.0, 0.0], 0)
                .iter()
                .all(|error| error.is_finite())
        );
    }
}
