//! Sizes, times and bandwidths as types, so that no bare number crosses a module border.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;

use derive_more::with_trait::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use super::NetError;
use crate::digits::{BYTES, short};

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Add, AddAssign, Mul,
)]
pub struct Bytes(pub u64);

/// A time or a span of time in seconds.
///
/// Totally ordered, so that it can key an event queue: `-0.0` equals `0.0`. Values read from text
/// are finite and not negative; arithmetic on such values keeps them finite.
#[derive(Clone, Copy, Debug, Default, Add, AddAssign, Sub, SubAssign, Mul, Div)]
pub struct Seconds(pub f64);

/// A bandwidth in bits per second: finite and greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bandwidth(f64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
}

impl Seconds {
    /// The beginning of virtual time, and the empty span.
    pub const ZERO: Self = Self(0.0);
}

impl Bandwidth {
    /// A bandwidth of `bits_per_second`.
    ///
    /// # Errors
    /// If the figure is not finite or not greater than zero.
    pub fn new(bits_per_second: f64) -> Result<Self, NetError> {
        if bits_per_second.is_finite() && bits_per_second > 0.0 {
            return Ok(Self(bits_per_second));
        }
        Err(NetError::Quantity {
            quantity: "bandwidth",
            text: format!("{bits_per_second}"),
            reason: "it must be a finite number greater than zero, such as \"1Gbps\"".into(),
        })
    }

    /// A bandwidth known when the program is written.
    // Whole kilobits hold all published figures exactly, and a constant cannot return an error.
    pub(super) const fn from_kbps(kilobits_per_second: u32) -> Self {
        assert!(
            kilobits_per_second > 0,
            "figures in the source are greater than zero"
        );
        Self(kilobits_per_second as f64 * 1e3)
    }

    /// So many times this bandwidth; the factor is greater than zero.
    pub(super) const fn times(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }

    /// Bits per second.
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Bytes per second.
    pub const fn bytes_per_second(self) -> f64 {
        self.0 / 8.0
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

/// How long a link of this bandwidth is busy with these bytes.
impl Div<Bandwidth> for Bytes {
    type Output = Seconds;
    fn div(self, bandwidth: Bandwidth) -> Seconds {
        Seconds(self.0 as f64 / bandwidth.bytes_per_second())
    }
}

/// A number in its total order, in which what is not a number has a place too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered(pub f64);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered {}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0
            // First, as the total order has −0 below 0, and equal times must not be told apart by
            // it.
            .partial_cmp(&other.0)
            .unwrap_or_else(|| self.0.total_cmp(&other.0))
    }
}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Seconds {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Seconds {}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

/// Three significant digits in decimal units: `1.5 MB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` and not `write_str`, so that widths in format strings count.
        f.pad(&short(self.0 as f64, &BYTES))
    }
}

/// Three significant digits: `100 us`, `2.5 s`.
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&short(
            self.0,
            &[("ns", -9), ("us", -6), ("ms", -3), ("s", 0)],
        ))
    }
}

/// Three significant digits: `25 Gbps`.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("bps", 0),
            ("kbps", 3),
            ("Mbps", 6),
            ("Gbps", 9),
            ("Tbps", 12),
        ];
        f.pad(&short(self.0, &units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_finite_and_greater_than_zero() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                Bandwidth::new(bad).is_err_and(|error| error.is_input()),
                "{bad}"
            );
        }
        assert_eq!(
            Bandwidth::new(8e9).map(Bandwidth::bytes_per_second),
            Ok(1e9)
        );
    }

    #[test]
    fn transmission_takes_eight_bits_a_byte() {
        let gigabit = Bandwidth::from_kbps(1_000_000);
        assert_eq!(Bytes(125_000_000) / gigabit, Seconds(1.0));
    }

    #[test]
    fn seconds_sort_by_value_and_both_zeros_are_equal() {
        let mut times = [Seconds(2.0), Seconds(-0.0), Seconds(1e-9), Seconds(0.0)];
        times.sort();
        assert_eq!(
            times,
            [Seconds(0.0), Seconds(0.0), Seconds(1e-9), Seconds(2.0)]
        );
    }

    #[test]
    fn figures_are_shown_with_three_digits_in_the_unit_that_fits() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(999_999).to_string(), "1 MB");
        assert_eq!(Bytes(1_234_567).to_string(), "1.23 MB");
        assert_eq!(Seconds(1e-4).to_string(), "100 us");
        assert_eq!(Seconds(0.0).to_string(), "0 s");
        assert_eq!(Seconds(-2.5e-3).to_string(), "-2.5 ms");
        assert_eq!(Seconds(12_345.6).to_string(), "12346 s");
        assert_eq!(Bandwidth::from_kbps(25_000_000).to_string(), "25 Gbps");
    }
}
