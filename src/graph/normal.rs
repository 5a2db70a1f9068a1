//! Normal deviates for generated features.

use rand::{Rng, RngExt};

/// A standard normal number: the first of the two of Box and Muller (1958). The second is thrown
/// away, so that each number costs two draws whatever was drawn before.
pub(super) fn standard_normal(random: &mut impl Rng) -> f64 {
    // 1 − u lies in (0, 1], where the logarithm is finite.
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// `width` numbers that point in a random direction and have length 1.
pub(super) fn unit_vector(width: usize, random: &mut impl Rng) -> Vec<f64> {
    let mut vector: Vec<f64> = (0..width).map(|_| standard_normal(random)).collect();
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    for value in &mut vector {
        // A vector of zeros has no direction, and stays as it is.
        *value /= length.max(f64::MIN_POSITIVE);
    }
    vector
}

/// In single precision.
pub(super) const fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    #[test]
    fn deviates_have_mean_zero_and_variance_one() {
        let mut random = stream(1, Purpose::Study, 0, 0);
        let all: Vec<f64> = (0..40_000).map(|_| standard_normal(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / 40_000.0;
        let variance = all.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
        assert!(
            // Four standard errors of either: 1 / 200, and the root of 2 / 40,000.
            mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
        assert!(all.iter().all(|x| x.is_finite()));
    }

    #[test]
    fn directions_have_length_one() {
        let vector = unit_vector(7, &mut stream(2, Purpose::Study, 0, 0));
        assert!((vector.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
