//! Correction for several tests at once.

/// P-values adjusted by Holm's step-down method (S. Holm, *A simple sequentially rejective multiple
/// test procedure*, Scandinavian Journal of Statistics 6, 1979), in the order given: the smallest
/// times *m*, the next times *m* − 1, and so on, never falling and at most 1. Rejecting where the
/// result is at most α keeps the chance of one or more false rejections at α, whatever the
/// dependence between the tests.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        highest = highest.max(p_values[index] * left).min(1.0);
        adjusted[index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_worked_example() {
        // 0.005·4, 0.01·3, 0.03·2, 0.04·1 → the last may not fall below 0.06.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.02]), [0.02]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn it_lies_between_no_correction_and_bonferroni_and_keeps_the_order(
            p_values in prop::collection::vec(0.0..1.0_f64, 1..20),
        ) {
            let adjusted = holm(&p_values);
            let count = p_values.len() as f64;
            for (&p, &q) in p_values.iter().zip(&adjusted) {
                prop_assert!(q >= p && q <= (p * count).min(1.0) + 1e-15);
            }
            for (i, &p) in p_values.iter().enumerate() {
                for (j, &q) in p_values.iter().enumerate() {
                    prop_assert!(p > q || adjusted[i] <= adjusted[j]);
                }
            }
        }
    }
}
