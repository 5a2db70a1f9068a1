//! Sizes, times and bandwidths as people write them: `"25 Gbps"`, `"100us"`, `"1.5ms"`, `"10MB"`.
//!
//! A unit is a power of ten, so a text is read by moving its decimal point, and never by a
//! multiplication that rounds: `"0.1ms"` and `"100us"` are the same number to the bit. Sizes may
//! also have binary units: `"4MiB"` is 4,194,304 bytes.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Bandwidth, Bytes, NetError, Seconds};
use crate::digits::Unit;

const TIME: &[Unit] = &[
    ("s", 0),
    ("ms", -3),
    ("us", -6),
    ("µs", -6),
    ("μs", -6),
    ("ns", -9),
];
const SIZE: &[Unit] = &[
    ("B", 0),
    ("kB", 3),
    ("KB", 3),
    ("MB", 6),
    ("GB", 9),
    ("TB", 12),
    ("PB", 15),
];
const BANDWIDTH: &[Unit] = &[
    ("bps", 0),
    ("kbps", 3),
    ("Kbps", 3),
    ("Mbps", 6),
    ("Gbps", 9),
    ("Tbps", 12),
];

/// Powers of 1,024, and their power of two.
const BINARY_SIZE: &[Unit] = &[("KiB", 10), ("MiB", 20), ("GiB", 30)];

/// A quantity that is read from text or from a number in its base unit.
trait Quantity: Sized {
    /// Its name in error messages, and an example.
    const NAME: (&'static str, &'static str);
    const UNITS: &'static [Unit];
    /// Units that are powers of two.
    const BINARY_UNITS: &'static [Unit] = &[];

    /// From a finite number of base units that is not negative. The text is for error messages.
    fn checked(value: f64, text: &str) -> Result<Self, NetError>;

    fn refuse(text: &str, reason: impl Into<String>) -> NetError {
        NetError::Quantity {
            quantity: Self::NAME.0,
            text: text.into(),
            reason: reason.into(),
        }
    }

    fn from_number(value: f64, text: &str) -> Result<Self, NetError> {
        if !value.is_finite() {
            return Err(Self::refuse(text, "it must be finite"));
        }
        if value < 0.0 {
            return Err(Self::refuse(text, "it must not be negative"));
        }
        Self::checked(value, text)
    }

    fn from_text(text: &str) -> Result<Self, NetError> {
        let trimmed = text.trim();
        let (number, unit) = split_unit(trimmed);
        let binary = Self::BINARY_UNITS.iter().find(|(name, _)| *name == unit);
        let exponent = match unit {
            // People mean another one than the base unit.
            "" if shift(number, 0).is_some_and(|value| value > 0.0) => {
                let what = format!("write its unit, such as \"{}\"", Self::NAME.1);
                return Err(Self::refuse(text, what));
            }
            "" => 0,
            _ if binary.is_some() => 0,
            _ => Self::UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|unit| unit.1)
                .ok_or_else(|| {
                    Self::refuse(
                        text,
                        format!("unknown unit \"{unit}\"{}", advice(unit, Self::UNITS)),
                    )
                })?,
        };
        let value = shift(number, exponent).ok_or_else(|| {
            Self::refuse(
                text,
                format!("write a number and a unit, such as \"{}\"", Self::NAME.1),
            )
        })?;
        // Exact, as powers of two are.
        let factor = binary.map_or(1.0, |(_, exponent)| f64::powi(2.0, *exponent));
        Self::from_number(value * factor, text)
    }
}

impl Quantity for Seconds {
    const NAME: (&'static str, &'static str) = ("time", "100us");
    const UNITS: &'static [Unit] = TIME;

    fn checked(value: f64, text: &str) -> Result<Self, NetError> {
        // Sums of longer times than anybody waits for would lose the short ones.
        const MOST: f64 = 1e9;
        if value > MOST {
            return Err(Self::refuse(text, "it must be at most 1e9 seconds"));
        }
        Ok(Self(value + 0.0)) // turns -0 into 0
    }
}

impl Quantity for Bandwidth {
    const NAME: (&'static str, &'static str) = ("bandwidth", "1Gbps");
    const UNITS: &'static [Unit] = BANDWIDTH;

    fn checked(value: f64, text: &str) -> Result<Self, NetError> {
        // No link is as slow, but a number whose unit was left out is.
        const LEAST: f64 = 1e3;
        let bandwidth = Self::new(value).ok().filter(|_| value >= LEAST);
        bandwidth.ok_or_else(|| {
            let reason = "it must be at least 1 kbps; a number without a unit is bits a second";
            Self::refuse(text, reason)
        })
    }
}

impl Quantity for Bytes {
    const NAME: (&'static str, &'static str) = ("size", "10MB");
    const UNITS: &'static [Unit] = SIZE;
    const BINARY_UNITS: &'static [Unit] = BINARY_SIZE;

    fn checked(value: f64, text: &str) -> Result<Self, NetError> {
        // Above 2⁵³ not every whole number is a double, and texts are read as doubles.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() != 0.0 || value > EXACT {
            return Err(Self::refuse(
                text,
                "it must be a whole number of bytes, at most 2^53",
            ));
        }
        Ok(Self(value as u64))
    }
}

/// Splits `"1.5e3 ms"` into `"1.5e3"` and `"ms"`.
fn split_unit(text: &str) -> (&str, &str) {
    let mut end = text.len();
    for (at, letter) in text.char_indices() {
        let exponent = matches!(letter, 'e' | 'E')
            && text[at + 1..]
                .starts_with(|next: char| next.is_ascii_digit() || "+-".contains(next));
        if letter.is_whitespace() || (letter.is_alphabetic() && !exponent) {
            end = at;
            break;
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// `number · 10^exponent`, correctly rounded, or nothing if `number` is not one.
fn shift(number: &str, exponent: i32) -> Option<f64> {
    let (mantissa, own) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let own: i32 = own.parse().ok()?;
    // The exponent is written into the text, so that the parser rounds once, from the decimal
    // number.
    format!("{mantissa}e{}", own.checked_add(exponent)?)
        .parse()
        .ok()
}

fn advice(unit: &str, units: &[Unit]) -> String {
    let names: Vec<&str> = units
        .iter()
        .map(|unit| unit.0)
        // The two spellings of µ are understood, but nobody is told to type them.
        .filter(|name| name.is_ascii())
        .collect();
    let near = names
        .iter()
        .map(|name| {
            (
                // Whatever its case: a wrong one is the likeliest mistake.
                strsim::damerau_levenshtein(&name.to_lowercase(), &unit.to_lowercase()),
                name,
            )
        })
        .min_by_key(|(distance, _)| *distance)
        // Units have one to four letters, so two edits away almost any is near.
        .filter(|(distance, _)| *distance <= 1)
        .map_or_else(String::new, |(_, name)| {
            format!(", did you mean \"{name}\"?")
        });
    let near = of_a_second(unit, &names).unwrap_or(near);
    format!("{near}; known units are {}", names.join(", "))
}

/// What is meant by bytes or bits a second in another spelling, where bits a second are asked for.
fn of_a_second(unit: &str, names: &[&str]) -> Option<String> {
    let prefix = &unit[..usize::from(unit.starts_with(['k', 'M', 'G', 'T']))];
    let known = names.iter().find(|name| **name == format!("{prefix}bps"))?;
    match &unit[prefix.len()..] {
        "B/s" | "Bps" | "B" => Some(format!(", which counts bytes: 1 {unit} is \"8{known}\"")),
        "b/s" | "bit/s" | "bits/s" | "b" | "bit" => Some(format!(", did you mean \"{known}\"?")),
        _ => None,
    }
}

/// Text that [`Quantity::from_text`] reads back to the same bits: in the largest unit that keeps
/// the value exact and at least one, otherwise in the base unit.
fn exact(value: f64, units: &[Unit], base: &str) -> String {
    let mut best: Option<(i32, String)> = None;
    for &(name, exponent) in units {
        let candidate = shift(&format!("{value:e}"), -exponent).filter(|scaled| *scaled >= 1.0);
        let Some(scaled) = candidate else { continue };
        let number = scaled.to_string();
        // Tried out, as not every double has a short text in every unit.
        if shift(&number, exponent) == Some(value)
            // Only a larger unit: of two names of one unit the first in the table stays.
            && best.as_ref().is_none_or(|(other, _)| exponent > *other)
        {
            best = Some((exponent, format!("{number}{name}")));
        }
    }
    best.map_or_else(|| format!("{value}{base}"), |(_, text)| text)
}

struct FromNumberOrText<Q>(PhantomData<Q>);

impl<Q: Quantity> Visitor<'_> for FromNumberOrText<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} such as \"{}\"", Q::NAME.0, Q::NAME.1)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
        Q::from_text(text).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Q, E> {
        Q::from_number(value, &value.to_string()).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Q, E> {
        Q::from_number(value as f64, &value.to_string()).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Q, E> {
        Q::from_number(value as f64, &value.to_string()).map_err(E::custom)
    }
}

macro_rules! text_forms {
    ($quantity:ty) => {
        impl FromStr for $quantity {
            type Err = NetError;

            fn from_str(text: &str) -> Result<Self, NetError> {
                Self::from_text(text)
            }
        }

        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                source
                    .deserialize_any(FromNumberOrText(PhantomData))
                    .map_err(D::Error::custom)
            }
        }
    };
}

text_forms!(Seconds);
text_forms!(Bandwidth);
text_forms!(Bytes);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        sink.serialize_str(&exact(self.0, TIME, "s"))
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        sink.serialize_str(&exact(self.bps(), BANDWIDTH, "bps"))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        sink.serialize_u64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        time: Seconds,
        rate: Bandwidth,
        size: Bytes,
    }

    fn file(time: &str, rate: &str, size: &str) -> Result<File, String> {
        toml::from_str(&format!("time = {time}\nrate = {rate}\nsize = {size}"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn texts_and_plain_numbers_in_base_units_mean_the_same() {
        let text = file("\"0.1ms\"", "\"25 Gbps\"", "\"1.5kB\"");
        assert_eq!(text, file("1e-4", "25_000_000_000", "1500"));
        assert_eq!(text.as_ref().map(|file| file.time), Ok(Seconds(100e-6)));
        assert_eq!("100us".parse(), Ok(Seconds(1e-4)));
        assert_eq!("100µs".parse(), Ok(Seconds(1e-4)));
        assert_eq!("1e-1 ms".parse(), Ok(Seconds(1e-4)));
        assert_eq!("2s".parse(), Ok(Seconds(2.0)));
        assert_eq!("4MiB".parse(), Ok(Bytes(4_194_304)));
        assert_eq!("1.5 KiB".parse(), Ok(Bytes(1536)));
        // 80 bytes are not what anybody writes in quotes.
        let error = "80".parse::<Bytes>().unwrap_err().to_string();
        assert!(
            error.contains("write its unit, such as \"10MB\""),
            "{error}"
        );
        assert_eq!("0".parse(), Ok(Bytes(0)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        for (text, reason) in [
            ("0", "at least 1 kbps"),
            ("100bps", "at least 1 kbps"),
            ("-1Gbps", "negative"),
            ("1GBps", "which counts bytes: 1 GBps is \"8Gbps\""),
            ("2MB/s", "which counts bytes: 1 MB/s is \"8Mbps\""),
            ("1Gbit/s", "did you mean \"Gbps\"?"),
            ("1 gbps", "did you mean \"Gbps\"?"),
            ("1 furlong", "known units are bps"),
            ("fast", "unknown unit"),
            ("25", "write its unit, such as"),
            ("", "such as \"1Gbps\""),
            ("1.2.3Gbps", "such as"),
            ("1e400bps", "finite"),
            ("nan", "unknown unit"),
        ] {
            let error = Bandwidth::from_text(text).expect_err(text);
            assert!(
                error.is_input() && error.to_string().contains(reason),
                "{text}: {error}"
            );
        }
        assert!(file("nan", "1", "1").is_err_and(|error| error.contains("finite")));
        assert!(file("1", "25", "1").is_err_and(|error| error.contains("without a unit")));
        assert!(file("1e10", "1e9", "1").is_err_and(|error| error.contains("at most 1e9 s")));
        assert!(file("1", "1e9", "0.5").is_err_and(|error| error.contains("whole number")));
        assert!(file("1", "1e9", "-5").is_err_and(|error| error.contains("negative")));
        assert!(file("true", "1", "1").is_err_and(|error| error.contains("a time such as")));
    }

    #[test]
    fn round_figures_are_written_as_people_write_them() {
        let written = toml::to_string(&file("1e-4", "25e9", "7").unwrap()).unwrap();
        assert_eq!(written, "time = \"100us\"\nrate = \"25Gbps\"\nsize = 7\n");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_to_the_same_bits(
            time in 0.0..1e9_f64, tiny in proptest::num::f64::POSITIVE, rate in 1e3..1e15_f64,
            size in 0..(1_u64 << 53),
        ) {
            for time in [time, tiny.min(1.0)] {
                let file = File { time: Seconds(time), rate: Bandwidth::new(rate).unwrap(), size: Bytes(size) };
                let back: File = toml::from_str(&toml::to_string(&file).unwrap()).unwrap();
                prop_assert_eq!(back, file);
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*") {
            let _ = (Seconds::from_text(&text), Bandwidth::from_text(&text), Bytes::from_text(&text));
        }
    }
}
