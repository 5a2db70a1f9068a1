//! Whether all of many values are finite numbers, in one pass that works on several at a time.

/// The largest absolute value by its bits: infinity is beyond all numbers, and what is not a number
/// beyond infinity.
fn largest(values: &[f32]) -> u32 {
    const WITHOUT_SIGN: u32 = !(1 << 31);
    values
        .iter()
        .fold(0, |most, value| most.max(value.to_bits() & WITHOUT_SIGN))
}

/// Whether all values are finite.
pub(crate) fn is_finite(values: &[f32]) -> bool {
    largest(values) < f32::INFINITY.to_bits()
}

/// Whether all values and their squares are finite: Adam divides by the root of a mean of squares,
/// and a parameter whose square was infinite once would never move again.
pub fn has_finite_squares(values: &[f32]) -> bool {
    // The root is rounded down, so its own square is still finite.
    largest(values) <= f32::MAX.sqrt().to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_that_is_not_finite_is_found_wherever_it_is() {
        for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 6, 99] {
                let mut values = vec![-1.5_f32; 100];
                assert!(is_finite(&values) && has_finite_squares(&values));
                values[place] = wrong;
                assert!(!is_finite(&values) && !has_finite_squares(&values));
            }
        }
        assert!(is_finite(&[f32::MAX, f32::MIN, -0.0]) && is_finite(&[]));
    }

    #[test]
    fn squares_overflow_before_values_do() {
        let most = f32::MAX.sqrt();
        assert!((most * most).is_finite() && has_finite_squares(&[most, -most]));
        let beyond = most.next_up();
        assert!(
            (beyond * beyond).is_infinite()
                && is_finite(&[beyond])
                && !has_finite_squares(&[-beyond])
        );
    }
}
