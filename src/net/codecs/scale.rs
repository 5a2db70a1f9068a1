//! Numbers of evenly spaced levels for the values of a row, and values for numbers, several at a
//! time with the vector instructions that the processor has.

#![allow(clippy::inline_always)] // loops become part of the code for the chosen instruction set

use half::bf16;
use rand::Rng;

use crate::net::Bits;
use crate::simd::vectorised;

/// Values whose extremes are found side by side.
const LANES: usize = 16;

/// Levels from `low` on, `step` apart, numbered from 0 to `top`. In double precision: the range of
/// a row may exceed the largest float.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) step: f64,
    pub(super) top: u32,
}

impl Scale {
    /// As many levels as `bits` tell apart.
    pub(super) fn of(low: bf16, step: bf16, bits: Bits) -> Self {
        Self {
            low: f64::from(low.to_f32()),
            step: f64::from(step.to_f32()),
            top: bits.top(),
        }
    }

    /// How many steps `value` is above the lowest level; none where all levels are one.
    #[inline(always)]
    pub(super) fn place(self, value: f32) -> f64 {
        if self.step > 0.0 {
            (f64::from(value) - self.low) / self.step
        } else {
            0.0
        }
    }

    /// The number of the last level that is not above each value.
    pub(super) fn numbers(self, row: &[f32], numbers: &mut [u32]) {
        vectorised(
            #[inline(always)]
            || {
                for (number, &value) in numbers.iter_mut().zip(row) {
                    *number = cut(self.place(value), self.top);
                }
            },
        );
    }

    /// The number of one of the two levels beside each value: the upper one with a chance equal to
    /// the way there.
    pub(super) fn rounded(self, row: &[f32], chances: &[[u8; 4]], numbers: &mut [u32]) {
        vectorised(
            #[inline(always)]
            || {
                for ((number, &value), &word) in numbers.iter_mut().zip(row).zip(chances) {
                    // Added before it is cut, a chance below 1 carries a place up as often as the
                    // fraction of the place says.
                    *number = cut(self.place(value) + chance(word), self.top);
                }
            },
        );
    }

    /// Appends the values `share` of a step above the levels of these numbers, as far as there are
    /// such floats.
    pub(super) fn values(self, numbers: &[u32], share: f64, values: &mut Vec<f32>) {
        vectorised(
            #[inline(always)]
            || {
                values.extend(numbers.iter().map(|&number| {
                    let value = self.low + self.step * (f64::from(number) + share);
                    // The highest level may lie beyond the largest float.
                    (value as f32).clamp(f32::MIN, f32::MAX)
                }));
            },
        );
    }
}

/// The whole steps of a place, from 0 to `top`; 0 for what is not a number.
#[inline(always)]
pub(super) fn cut(place: f64, top: u32) -> u32 {
    /// 2⁵²: from here on doubles are whole numbers, and their lowest bits count them.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    // Rounding in a division may put the highest value a hair above the highest level, and values
    // below the lowest bfloat16 have a negative place.
    let top = f64::from(top);
    let above = if place > 0.0 { place } else { 0.0 };
    let within = if above < top { above } else { top };
    // What a cast gives, which goes value by value since it looks for what has no such number.
    (within.floor() + WHOLE).to_bits() as u32
}

/// A chance in [0, 1) of 32 bits.
#[inline(always)]
pub(super) fn chance(word: [u8; 4]) -> f64 {
    f64::from(u32::from_le_bytes(word)) / (f64::from(u32::MAX) + 1.0)
}

/// The words of which the chances of a message are made, drawn for many values at once.
pub(super) struct Chances<R> {
    random: R,
    bytes: Vec<u8>,
}

impl<R: Rng> Chances<R> {
    /// Those that `random` draws, one for each value.
    pub(super) const fn of(random: R) -> Self {
        let bytes = Vec::new();
        Self { random, bytes }
    }

    /// The next `count` of them, for [`chance`].
    pub(super) fn next(&mut self, count: usize) -> &[[u8; 4]] {
        self.bytes.resize(4 * count, 0);
        self.random.fill_bytes(&mut self.bytes);
        self.bytes.as_chunks().0
    }
}

/// The smallest and the largest value of a row; none if one is not finite.
pub(super) fn extremes(row: &[f32]) -> Option<(f32, f32)> {
    vectorised(
        #[inline(always)]
        || {
            let mut seen = MinMax::default();
            let (blocks, rest) = row.as_chunks::<LANES>();
            for block in blocks {
                seen.see(block);
            }
            seen.see(rest);
            seen.extremes()
        },
    )
}

/// What was seen of some values, side by side.
struct MinMax {
    lows: [f32; LANES],
    highs: [f32; LANES],
    /// The bits of the largest magnitude.
    largest: [u32; LANES],
}

impl Default for MinMax {
    fn default() -> Self {
        Self {
            lows: [f32::INFINITY; LANES],
            highs: [f32::NEG_INFINITY; LANES],
            largest: [0; LANES],
        }
    }
}

impl MinMax {
    /// At most as many as there are lanes.
    #[inline(always)]
    fn see(&mut self, values: &[f32]) {
        /// All bits but that of the sign: so they ascend as magnitudes do, what is not finite last.
        const MAGNITUDE: u32 = u32::MAX >> 1;
        for (lane, &value) in values.iter().enumerate() {
            self.lows[lane] = lower(value, self.lows[lane]);
            self.highs[lane] = higher(value, self.highs[lane]);
            self.largest[lane] = (value.to_bits() & MAGNITUDE).max(self.largest[lane]);
        }
    }

    /// Over all lanes.
    #[inline(always)]
    fn extremes(mut self) -> Option<(f32, f32)> {
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                let other = lane + half;
                self.lows[lane] = lower(self.lows[other], self.lows[lane]);
                self.highs[lane] = higher(self.highs[other], self.highs[lane]);
                self.largest[lane] = self.largest[other].max(self.largest[lane]);
            }
            half /= 2;
        }
        let finite = self.largest[0] < f32::INFINITY.to_bits();
        finite.then_some((self.lows[0], self.highs[0]))
    }
}

/// The smaller one. Not `min`, which looks for what is not a number.
#[inline(always)]
fn lower(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger one.
#[inline(always)]
fn higher(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use proptest::prelude::*;

    /// Values of all magnitudes, some of them not finite.
    fn any_value() -> impl Strategy<Value = f32> {
        prop_oneof![9 => -9.0_f32..9.0, 3 => -1e38_f32..1e38, 1 => any::<f32>()]
    }

    proptest! {
        #[test]
        fn many_values_at_once_are_numbered_as_each_alone(
            row in prop::collection::vec(any_value(), 0..70), low in -9.0_f64..9.0,
            step in prop::sample::select(vec![0.0, 1e-40, 0.3, 1e37]),
            top in prop::sample::select(vec![1_u32, 3, 15, 255]), round in any::<u64>(),
        ) {
            let scale = Scale { low, step, top };
            let mut numbers = vec![0; row.len()];
            scale.numbers(&row, &mut numbers);
            let alone = |value: f32, chance: f64| {
                let place = if step > 0.0 { (f64::from(value) - low) / step } else { 0.0 };
                ((place + chance) as u32).min(top)
            };
            let expected: Vec<u32> = row.iter().map(|&value| alone(value, 0.0)).collect();
            prop_assert_eq!(&numbers, &expected);

            // Word for word the stream of one value after another, in whatever portions.
            let mut random = stream(1, Purpose::Codec, 2, round);
            let mut chances = Chances::of(random.clone());
            let (front, back) = row.split_at(row.len() / 3);
            for part in [front, back] {
                let numbers = &mut numbers[..part.len()];
                scale.rounded(part, chances.next(part.len()), numbers);
                for (&value, &mut number) in part.iter().zip(numbers) {
                    let chance = f64::from(random.next_u32()) / 4_294_967_296.0;
                    prop_assert_eq!(number, alone(value, chance));
                }
            }
        }

        #[test]
        fn many_numbers_at_once_become_the_values_of_each_alone(
            numbers in prop::collection::vec(0_u32..256, 0..70), low in -1e38_f64..1e38,
            step in prop::sample::select(vec![0.0, 0.3, 1e36, f64::NAN]), share in 0.0_f64..1.0,
        ) {
            let mut values = vec![7.0];
            Scale { low, step, top: 255 }.values(&numbers, share, &mut values);
            let alone = |&number: &u32| {
                let value = (low + step * (f64::from(number) + share)) as f32;
                value.clamp(f32::MIN, f32::MAX)
            };
            prop_assert_eq!(values.len(), 1 + numbers.len(), "appended");
            for (found, expected) in values[1..].iter().zip(numbers.iter().map(alone)) {
                prop_assert!(*found == expected || found.is_nan() && step.is_nan());
            }
        }

        #[test]
        fn extremes_are_the_smallest_and_the_largest_unless_a_value_is_not_finite(
            row in prop::collection::vec(any_value(), 0..70),
        ) {
            let finite = row.iter().all(|value| value.is_finite());
            let low = row.iter().copied().fold(f32::INFINITY, f32::min);
            let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            prop_assert_eq!(extremes(&row), finite.then_some((low, high)));
        }
    }
}
