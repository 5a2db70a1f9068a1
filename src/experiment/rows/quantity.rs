//! What a number of a claim is.

use serde::{Deserialize, Serialize};

use crate::digits;
use crate::names::named;

named! {
    /// What a number is: bytes and seconds are written in a unit that fits, all else as it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Quantity {
        /// An amount of data.
        Bytes = "bytes",
        /// A time.
        Seconds = "seconds",
        /// A share, a count, or how many times one is the other.
        Number = "number",
    }
}

impl Quantity {
    /// A value, or a difference of two, in a unit that fits; none of what has no unit: of a plain
    /// number, of nothing, which is nothing in any unit, and of what is not finite.
    pub(crate) fn with_unit(self, value: f64) -> Option<String> {
        let size = value.abs();
        let text = match self {
            _ if value == 0.0 || !value.is_finite() => return None,
            Self::Bytes => digits::bytes(size),
            Self::Seconds => digits::seconds(size),
            Self::Number => return None,
        };
        Some(format!("{}{text}", if value < 0.0 { "−" } else { "" }))
    }

    /// A bound, which is written out where three digits are not all of it: who is just beyond it
    /// would seem to be at it.
    pub(in crate::experiment) fn bound(self, bound: f64) -> String {
        let size = bound.abs();
        let whole = |number: f64| (number - number.round()).abs() < 1e-6;
        let exact = match self {
            Self::Seconds if size >= 3599.5 => whole(size / 60.0),
            Self::Seconds if size >= 59.95 => whole(size),
            _ => whole(size / 10_f64.powf(size.log10().floor() - 2.0)),
        };
        match (self.with_unit(bound), self) {
            (Some(text), _) if exact => text,
            (Some(_), Self::Bytes) => format!("{bound} B"),
            (Some(_), _) => format!("{bound} s"),
            (None, _) => bound.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_the_unit_of_what_is_measured() {
        for (quantity, bound, shown) in [
            (Quantity::Bytes, 4e10, "40.0 GB"),
            (Quantity::Bytes, 1_234_567.0, "1234567 B"),
            (Quantity::Bytes, -2e6, "−2.00 MB"),
            (Quantity::Seconds, 7200.0, "2 h 0 min"),
            (Quantity::Seconds, 7201.0, "7201 s"),
            (Quantity::Seconds, 90.0, "1 min 30 s"),
            (Quantity::Seconds, 0.5, "500 ms"),
            (Quantity::Number, 0.01, "0.01"),
            (Quantity::Number, 1e6, "1000000"),
            (Quantity::Bytes, 0.0, "0"),
        ] {
            assert_eq!(quantity.bound(bound), shown, "{quantity:?} {bound}");
        }
    }

    #[test]
    fn differences_have_a_sign_and_what_has_no_unit_has_no_text() {
        let of = |quantity: Quantity, value| quantity.with_unit(value);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of(Quantity::Bytes, 99.466_939e12), text("99.5 TB"));
        assert_eq!(of(Quantity::Bytes, -2.5e9), text("−2.50 GB"));
        assert_eq!(of(Quantity::Seconds, -0.0123), text("−12.3 ms"));
        assert_eq!(of(Quantity::Bytes, 0.0), None);
        assert_eq!(of(Quantity::Seconds, f64::INFINITY), None);
        assert_eq!(of(Quantity::Number, 0.0123), None);
    }
}
