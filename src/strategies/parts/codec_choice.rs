//! How experiments describe a codec, and how a compression ratio reaches it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::net::{
    BF16, Bits, Codec, Compose, Difference, DifferenceMemory, F16, FirstColumns, Identity,
    Quantise, QuantiseRows, RandomColumns, RandomEntries, RowBits, Selection, TopK,
};
use crate::strategies::OptionError;

/// A codec as experiment files name it: `"top_k"`, `{ kind = "quantise", bits = 4 }`,
/// `{ kind = "compose", first = "random_columns", second = "f16" }`,
/// `{ kind = "difference", of = "top_k" }`.
///
/// A ratio c asks for 1/c of the bytes of plain floats. At c = 1 nothing is lost. Above, each kind
/// takes the nearest cost that is not above, as far as it goes:
///
/// | kind | at ratio c |
/// |---|---|
/// | `random_columns`, `random_entries`, `first_columns` | ⌊n/c⌋ of n entries, at least 1 |
/// | `top_k` | as many entries as n/c floats pay for with their places, at least 1 |
/// | `quantise` | 8, 4, 2 or 1 bits, the most with 32/bits ≥ c; above 32, 1 bit of columns |
/// | `compose` | as many entries of `first` as n/c floats pay for in `second` |
/// | `difference` | as the codec it is of |
/// | `identity`, `f16`, `bf16` | their own cost, 1, 1/2, 1/2, at any ratio |
/// | `quantise` with `bits`, `quantise_rows` | bits/32 at any ratio |
///
/// The two levels of each quantised row, 8 bytes (of `quantise_rows` 4), are not part of the ratio;
/// they are counted with all other bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodecChoice(Kind);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
// Braces, because serde lets unknown keys pass in variants without.
enum Kind {
    RandomColumns {},
    RandomEntries {},
    FirstColumns {},
    TopK {},
    Quantise {
        bits: Option<BitCount>,
    },
    QuantiseRows {
        bits: RowBitCount,
    },
    F16 {},
    Bf16 {},
    Identity {},
    Compose {
        first: Box<CodecChoice>,
        second: Box<CodecChoice>,
    },
    Difference {
        of: Box<CodecChoice>,
    },
}

impl Default for Kind {
    fn default() -> Self {
        Self::RandomColumns {}
    }
}

/// `bits` of an experiment file, by row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
struct RowBitCount(RowBits);

impl TryFrom<toml::Value> for RowBitCount {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let is = |bits: &Bits| value.as_integer() == Some(i64::from(bits.count()));
        match Bits::ALL.into_iter().find(is) {
            Some(bits) => Ok(Self(RowBits::Uniform(bits))),
            None if value.as_str() == Some("random") => Ok(Self(RowBits::Random)),
            None => Err("`bits` must be 1, 2, 4, 8 or \"random\"".to_owned()),
        }
    }
}

/// `bits` of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
struct BitCount(Bits);

impl TryFrom<u32> for BitCount {
    type Error = String;

    fn try_from(count: u32) -> Result<Self, String> {
        Bits::ALL
            .into_iter()
            .find(|bits| bits.count() == count)
            .map(Self)
            .ok_or_else(|| format!("`bits` must be 1, 2, 4 or 8, not {count}"))
    }
}

impl<'de> Deserialize<'de> for CodecChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        name_or_table(deserializer).map(Self)
    }
}

/// A codec of some kind by its name, or as a table with `kind` and options.
pub(super) fn name_or_table<'de, K: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<K, D::Error> {
    struct NameOrTable<K>(PhantomData<K>);
    impl<'de, K: Deserialize<'de>> Visitor<'de> for NameOrTable<K> {
        type Value = K;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of a codec, or a table with its `kind` and options")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<K, E> {
            K::deserialize(MapDeserializer::new(std::iter::once(("kind", name))))
        }

        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<K, A::Error> {
            K::deserialize(MapAccessDeserializer::new(table))
        }
    }
    deserializer.deserialize_any(NameOrTable(PhantomData))
}

impl CodecChoice {
    /// `{ kind = "quantise_rows", bits = … }`.
    pub const fn quantise_rows(bits: RowBits) -> Self {
        Self(Kind::QuantiseRows {
            bits: RowBitCount(bits),
        })
    }

    /// Whether the parts fit together, and with `rescale`.
    ///
    /// # Errors
    /// If the first of a composition does not choose entries or the second has no cost of its own,
    /// if a difference is taken of a difference, or if `rescale` is asked of a codec that does not
    /// draw at random.
    pub(crate) fn check(&self, rescale: bool) -> Result<(), OptionError> {
        match &self.0 {
            Kind::Compose { first, second } => {
                if first.selection(1.0, 1.0, false).is_none() {
                    return Err(OptionError::key(
                        "codec",
                        "`first` of a composition must choose entries: random_columns, random_entries, first_columns or top_k",
                    ));
                }
                if second.fixed().is_none() {
                    return Err(OptionError::key(
                        "codec",
                        "`second` of a composition must carry all it is given: identity, f16, bf16, quantise_rows, or quantise with `bits`",
                    ));
                }
            }
            Kind::Difference { of } => {
                if matches!(of.0, Kind::Difference { .. }) {
                    return Err(OptionError::key(
                        "codec",
                        "a difference of a difference is a difference: leave one out",
                    ));
                }
                of.check(false)?;
            }
            _ => {}
        }
        if rescale && !self.can_rescale() {
            return Err(OptionError::key(
                "rescale",
                "makes sense for random_columns and random_entries, alone or first in a composition, and for quantise without `bits`; and not for differences, which would grow without bound",
            ));
        }
        Ok(())
    }

    /// Whether it works with mini-batches, if there are any.
    ///
    /// # Errors
    /// If it takes differences: other rows travel in each step, so nothing is left of the last one
    /// to take them from.
    pub(crate) fn check_batches(&self, mini_batch: bool) -> Result<(), OptionError> {
        if mini_batch && self.remembers() {
            return Err(OptionError::key(
                "codec",
                "takes the difference from what the same rows were an epoch ago, and with `training.batch` other rows travel in \
                 each step: choose another",
            ));
        }
        Ok(())
    }

    /// Whether it takes the difference from what was sent before.
    pub(crate) const fn remembers(&self) -> bool {
        matches!(self.0, Kind::Difference { .. })
    }

    /// Whether a ratio changes anything.
    pub(crate) fn follows_ratio(&self) -> bool {
        match &self.0 {
            Kind::Difference { of } => of.follows_ratio(),
            _ => self.fixed().is_none(),
        }
    }

    /// The ratio that counts where `asked` is asked for: that, or the codec's own.
    pub fn ratio(&self, asked: f64) -> f64 {
        match &self.0 {
            Kind::Difference { of } => of.ratio(asked),
            _ => self.fixed().map_or(asked, |(_, own)| own),
        }
    }

    /// The codec at a ratio. Differences are remembered in `memory`, which is one worker's.
    pub fn at(&self, ratio: f64, rescale: bool, memory: &Arc<DifferenceMemory>) -> Arc<dyn Codec> {
        if let Some((codec, _)) = self.fixed() {
            return codec;
        }
        if let Kind::Difference { of } = &self.0
            && (ratio > 1.0 || !of.follows_ratio())
        {
            return Arc::new(Difference {
                codec: of.at(ratio, rescale, memory),
                memory: Arc::clone(memory),
            });
        }
        if ratio <= 1.0 {
            return Arc::new(Identity);
        }
        if let Some(selection) = self.selection(ratio, 1.0, rescale) {
            return selection;
        }
        match &self.0 {
            Kind::Compose { first, second } => {
                let (second, factor) = second.fixed().unwrap_or_else(|| (Arc::new(Identity), 1.0));
                match first.selection(ratio, factor, rescale) {
                    Some(first) => Arc::new(Compose { first, second }),
                    None => second,
                }
            }
            _ => quantise_at(ratio, rescale),
        }
    }

    fn can_rescale(&self) -> bool {
        match &self.0 {
            Kind::RandomColumns {} | Kind::RandomEntries {} | Kind::Quantise { bits: None } => true,
            Kind::Compose { first, .. } => first.can_rescale(),
            _ => false,
        }
    }

    /// A codec that chooses entries, the values of which will be `smaller` times smaller than
    /// floats.
    fn selection(&self, ratio: f64, smaller: f64, rescale: bool) -> Option<Arc<dyn Selection>> {
        let (whole, ratio) = (ratio, (ratio / smaller).max(1.0));
        Some(match self.0 {
            Kind::RandomColumns {} => Arc::new(RandomColumns { ratio, rescale }),
            Kind::RandomEntries {} => Arc::new(RandomEntries { ratio, rescale }),
            Kind::FirstColumns {} => Arc::new(FirstColumns { ratio }),
            // Places do not get smaller with the values.
            Kind::TopK {} => Arc::new(TopK {
                ratio: whole,
                value_bits: 32.0 / smaller,
            }),
            _ => return None,
        })
    }

    /// A codec with a cost of its own, and how many times below that of plain floats it is.
    fn fixed(&self) -> Option<(Arc<dyn Codec>, f64)> {
        Some(match &self.0 {
            Kind::Identity {} => (Arc::new(Identity), 1.0),
            Kind::F16 {} => (Arc::new(F16), 2.0),
            Kind::Bf16 {} => (Arc::new(BF16), 2.0),
            Kind::Quantise {
                bits: Some(BitCount(bits)),
            } => (Arc::new(Quantise { bits: *bits }), factor(*bits)),
            Kind::QuantiseRows {
                bits: RowBitCount(bits),
            } => {
                let bits = bits.clone();
                let mean = match bits {
                    RowBits::Uniform(bits) => factor(bits),
                    // A third of the rows each has 2, 4 and 8.
                    _ => 32.0 * 3.0 / 14.0,
                };
                (Arc::new(QuantiseRows { bits }), mean)
            }
            _ => return None,
        })
    }
}

fn factor(bits: Bits) -> f64 {
    32.0 / f64::from(bits.count())
}

fn quantise_at(ratio: f64, rescale: bool) -> Arc<dyn Codec> {
    let most = Bits::ALL.into_iter().rev();
    let enough = most.into_iter().find(|&bits| factor(bits) >= ratio);
    if let Some(bits) = enough {
        return Arc::new(Quantise { bits });
    }
    Arc::new(Compose {
        first: Arc::new(RandomColumns {
            ratio: ratio / factor(Bits::One),
            rescale,
        }),
        second: Arc::new(Quantise { bits: Bits::One }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Options {
        codec: CodecChoice,
    }

    fn read(codec: &str) -> Result<CodecChoice, String> {
        toml::from_str::<Options>(&format!("codec = {codec}"))
            .map(|options| options.codec)
            .map_err(|error| error.message().to_owned())
    }

    fn name_at(codec: &str, ratio: f64) -> String {
        let choice = read(codec).unwrap();
        choice.check(false).unwrap();
        choice.at(ratio, false, &Arc::default()).name()
    }

    const FOLLOWING: [&str; 10] = [
        "\"random_columns\"",
        "\"random_entries\"",
        "{ kind = \"first_columns\" }",
        "\"top_k\"",
        "\"quantise\"",
        "{ kind = \"compose\", first = \"random_columns\", second = { kind = \"quantise\", bits = 4 } }",
        "{ kind = \"compose\", first = { kind = \"top_k\" }, second = \"f16\" }",
        "{ kind = \"difference\", of = \"top_k\" }",
        "{ kind = \"difference\", of = { kind = \"compose\", first = \"top_k\", second = \"bf16\" } }",
        "{ kind = \"compose\", first = \"top_k\", second = { kind = \"quantise_rows\", bits = \"random\" } }",
    ];

    #[test]
    fn a_name_is_short_for_a_table_with_that_kind() {
        for name in ["random_columns", "top_k", "f16", "quantise", "identity"] {
            let table = read(&format!("{{ kind = \"{name}\" }}"));
            assert_eq!(read(&format!("\"{name}\"")), table);
        }
        assert_eq!(read("\"random_columns\"").unwrap(), CodecChoice::default());
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_what_to_write_instead() {
        for (codec, says) in [
            ("\"top-k\"", "top_k"),
            ("3", "the name of a codec"),
            ("{ kind = \"f16\", bits = 3 }", "unknown field `bits`"),
            ("{ kind = \"top_k\", k = 3 }", "unknown field `k`"),
            ("{ kind = \"quantise\", bits = 3 }", "1, 2, 4 or 8"),
            (
                "{ kind = \"compose\", first = \"top_k\" }",
                "missing field `second`",
            ),
            ("\"compose\"", "missing field `first`"),
            ("{ bits = 3 }", "missing field `kind`"),
        ] {
            let error = read(codec).unwrap_err();
            assert!(error.contains(says), "{codec}: {error}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for (codec, rescale, says) in [
            (
                "{ kind = \"compose\", first = \"f16\", second = \"f16\" }",
                false,
                "`first`",
            ),
            (
                "{ kind = \"compose\", first = \"top_k\", second = \"quantise\" }",
                false,
                "`second`",
            ),
            (
                "{ kind = \"difference\", of = { kind = \"difference\", of = \"top_k\" } }",
                false,
                "leave one out",
            ),
            ("\"top_k\"", true, "random_columns"),
            (
                "{ kind = \"difference\", of = \"random_columns\" }",
                true,
                "without bound",
            ),
        ] {
            let error = read(codec).unwrap().check(rescale).unwrap_err();
            assert!(error.message.contains(says), "{codec}: {error}");
        }
        let composed = "{ kind = \"compose\", first = \"random_entries\", second = \"bf16\" }";
        assert!(read(composed).unwrap().check(true).is_ok());
    }

    #[test]
    fn each_kind_takes_the_nearest_cost_not_above_the_ratio() {
        for (codec, ratio, name) in [
            ("\"quantise\"", 3.9, "quantise(bits=8)"),
            ("\"quantise\"", 4.1, "quantise(bits=4)"),
            ("\"quantise\"", 32.0, "quantise(bits=1)"),
            (
                "\"quantise\"",
                128.0,
                "random_columns(ratio=4) · quantise(bits=1)",
            ),
            ("{ kind = \"quantise\", bits = 2 }", 1.0, "quantise(bits=2)"),
            ("\"f16\"", 100.0, "f16"),
            (
                FOLLOWING[5],
                32.0,
                "random_columns(ratio=4) · quantise(bits=4)",
            ),
            (
                FOLLOWING[5],
                2.0,
                "random_columns(ratio=1) · quantise(bits=4)",
            ),
            (FOLLOWING[7], 5.0, "difference(top_k(ratio=5))"),
            (
                "{ kind = \"difference\", of = \"f16\" }",
                1.0,
                "difference(f16)",
            ),
        ] {
            assert_eq!(name_at(codec, ratio), name);
        }
    }

    #[test]
    fn codecs_with_a_cost_of_their_own_say_so() {
        for (codec, own) in [
            ("\"f16\"", 2.0),
            ("{ kind = \"quantise\", bits = 1 }", 32.0),
        ] {
            let choice = read(codec).unwrap();
            assert!(!choice.follows_ratio());
            assert_eq!(choice.ratio(8.0), own);
        }
        for codec in FOLLOWING {
            let choice = read(codec).unwrap();
            assert!(choice.follows_ratio(), "{codec}");
            assert_eq!(choice.ratio(8.0), 8.0);
            assert_eq!(
                name_at(codec, 1.0),
                "identity",
                "nothing is lost at ratio 1"
            );
        }
    }

    proptest! {
        #[test]
        fn no_codec_costs_more_than_its_share_but_for_one_entry_and_the_levels_of_a_row(
            number in 0..FOLLOWING.len(), ratio in 1.0..150.0_f64, width in 1..300_usize,
        ) {
            let codec = read(FOLLOWING[number]).unwrap().at(ratio, false, &Arc::default());
            let bytes = codec.encoded_bytes(8, width).0 as f64;
            // One entry of 32 bits with a place of at most 9, and 8 bytes of levels, in each of
            // eight rows.
            let least = 8.0 * (41.0 / 8.0 + 8.0);
            prop_assert!(bytes <= (8.0 * 4.0 * width as f64 / ratio) + least, "{}: {bytes}", codec.name());
        }
    }
}
