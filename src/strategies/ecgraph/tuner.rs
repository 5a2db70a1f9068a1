//! The Bit-Tuner: how many bits an entry of a row has follows from how often its reader takes the
//! prediction instead.

use crate::net::Bits;

/// Below this share of rows that are not predicted, what is quantised is too coarse to be taken:
/// bits are doubled.
const TOO_COARSE: f32 = 0.5;
/// Above this one, fewer bits would do: they are halved.
const FINE_ENOUGH: f32 = 0.8;

/// The bits of the rows that each worker reads in the next epoch, given those of this one and, for
/// each worker, how many of its rows were not predicted, and how many there were. Where none was
/// predicted by anything else, or there was none, they stay.
pub(super) fn tuned(bits: &[Bits], told: &[f32]) -> Vec<Bits> {
    let told = told.as_chunks::<2>().0;
    let of_reader = |(&bits, &[not_predicted, rows]): (&Bits, &[f32; 2])| {
        let place = Bits::ALL.iter().position(|&all| all == bits).unwrap_or(0);
        let share = not_predicted / rows;
        let place = if not_predicted > 0.0 && share < TOO_COARSE {
            place + 1
        } else if share > FINE_ENOUGH {
            place.saturating_sub(1)
        } else {
            place
        };
        Bits::ALL[place.min(Bits::ALL.len() - 1)]
    };
    bits.iter().zip(told).map(of_reader).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_doubled_and_halved_within_their_range_as_in_the_authors_code() {
        let bits = |told| tuned(&[Bits::One, Bits::Two, Bits::Eight], told);
        // 40 of 100 rows took what was quantised, 60, 90 and none.
        let told = [40.0, 100.0, 60.0, 100.0, 90.0, 100.0];
        assert_eq!(bits(&told), [Bits::Two, Bits::Two, Bits::Four]);
        let told = [90.0, 100.0, 81.0, 100.0, 10.0, 100.0];
        assert_eq!(bits(&told), [Bits::One, Bits::One, Bits::Eight]);
        let told = [0.0, 100.0, 0.0, 0.0, 80.0, 100.0];
        assert_eq!(bits(&told), [Bits::One, Bits::Two, Bits::Eight]);
    }
}
