//! Numbers of claims in the unit of what is measured.

use crate::experiment::rows::ClaimRow;
use crate::report::format;

/// What numbers of a claim are: bytes and seconds are written as everywhere, all else as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Bytes,
    Seconds,
    /// Shares, counts, and how many times one is the other.
    Number,
}

/// What stands before a bound in the words of a claim's condition.
const BEFORE: [&str; 5] = ["at most ", "at least ", "within ", "equal to ", "between "];
/// What stands in conditions about factors.
const FACTORS: [&str; 2] = [" times less than ", " no more than "];

impl Measure {
    /// That of a claim, whose condition begins with what is measured.
    pub(super) fn of(claim: &ClaimRow) -> Self {
        let measure = claim.expected.split(' ').next().unwrap_or_default();
        let factor = FACTORS.iter().any(|words| claim.expected.contains(words));
        if !factor && measure.contains("bytes") {
            Self::Bytes
        } else if !factor && measure.contains("seconds") {
            Self::Seconds
        } else {
            Self::Number
        }
    }

    /// A value, or a difference of two.
    pub(super) fn text(self, value: f64) -> String {
        // Nothing is nothing in any unit.
        if value == 0.0 || !value.is_finite() {
            return format::quantity(value);
        }
        let text = match self {
            Self::Bytes => format::bytes(value.abs()),
            Self::Seconds => format::seconds(value.abs()),
            Self::Number => return format::quantity(value),
        };
        if value < 0.0 {
            format!("−{text}")
        } else {
            text
        }
    }

    /// A bound, which is written out where three digits are not all of it: who is just beyond it
    /// would seem to be at it.
    fn bound(self, written: &str) -> Option<String> {
        let value: f64 = written.parse().ok()?;
        let digits = value.abs() / 10_f64.powf(value.abs().log10().floor() - 2.0);
        let whole = |number: f64| (number - number.round()).abs() < 1e-6;
        let exact = match self {
            _ if value == 0.0 => true,
            Self::Seconds if value.abs() >= 3599.5 => whole(value / 60.0),
            Self::Seconds if value.abs() >= 59.95 => whole(value),
            _ => whole(digits),
        };
        let unit = match self {
            Self::Number => return Some(written.to_owned()),
            _ if exact => return Some(self.text(value)),
            Self::Bytes => "B",
            Self::Seconds => "s",
        };
        Some(format!("{written} {unit}"))
    }
}

/// What was expected, with bounds in their unit: `peak_memory_bytes of grappa at most 40.0 GB`.
pub(crate) fn expected(claim: &ClaimRow) -> String {
    let (measure, text) = (Measure::of(claim), &claim.expected);
    let bounded = BEFORE.iter().find_map(|before| {
        let (head, rest) = text.split_once(before)?;
        let (bound, mut rest) = number(rest);
        let mut bounds = measure.bound(bound)?;
        let second = rest.strip_prefix(" and ").map(number);
        if let Some((bound, after)) = second
            && let Some(bound) = measure.bound(bound)
        {
            bounds += &format!(" and {bound}");
            rest = after;
        }
        Some(format!("{head}{before}{bounds}{rest}"))
    });
    bounded.unwrap_or_else(|| text.clone())
}

/// The number that a text begins with, which may be empty, and what follows it.
fn number(text: &str) -> (&str, &str) {
    let other = |letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == '-');
    text.split_at(text.find(other).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        expected(&ClaimRow {
            expected: text.into(),
            ..ClaimRow::default()
        })
    }

    #[test]
    fn bounds_have_the_unit_of_what_is_measured() {
        for (raw, shown) in [
            (
                "peak_memory_bytes of grappa at most 40000000000",
                "peak_memory_bytes of grappa at most 40.0 GB",
            ),
            (
                "payload_bytes of like=reddit bns between 27000000000 and 33000000000",
                "payload_bytes of like=reddit bns between 27.0 GB and 33.0 GB",
            ),
            (
                "simulated_seconds of grappa at most 7200, in each of 2 settings (worst: workers=4)",
                "simulated_seconds of grappa at most 2 h 0 min, in each of 2 settings (worst: workers=4)",
            ),
            (
                "simulated_seconds of a at least 0.5 below full",
                "simulated_seconds of a at least 500 ms below full",
            ),
            (
                "payload_bytes of fixed(ratio=4) equal to 1234567",
                "payload_bytes of fixed(ratio=4) equal to 1234567 B",
            ),
        ] {
            assert_eq!(told(raw), shown);
        }
    }

    #[test]
    fn factors_shares_and_nothing_stay_as_they_are() {
        for text in [
            "payload_bytes of retexo at least 1000000 times less than full",
            "simulated_seconds of bns no more than full, on average over 2 settings",
            "test_accuracy of varco within 0.01 of full",
            "node_data_bytes of grappa equal to 0",
            "messages of a at most 40000000000",
            "",
        ] {
            assert_eq!(told(text), text);
        }
    }

    #[test]
    fn differences_have_a_sign_and_values_none() {
        assert_eq!(Measure::Bytes.text(99.466_939e12), "99.5 TB");
        assert_eq!(Measure::Bytes.text(-2.5e9), "−2.50 GB");
        assert_eq!(Measure::Seconds.text(-0.0123), "−12.3 ms");
        assert_eq!(Measure::Bytes.text(0.0), "0");
        assert_eq!(Measure::Seconds.text(f64::INFINITY), "∞");
        assert_eq!(Measure::Number.text(0.0123), "0.0123");
    }
}
