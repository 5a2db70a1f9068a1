//! In which sections a key would be right that is wrong where it stands.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::graph::{DatasetSpec, Format, PartitionSpec, TaskSpec};
use crate::model::{ModelConfig, OptimizerConfig};
use crate::net::NetworkSpec;
use crate::sim::{ComputeConfig, DeviceConfig, TrainingConfig};
use crate::strategies::parts::{CodecChoice, Gradients, Schedule};

/// The names of the sections of one training setting, which are the first parts of all keys that a
/// sweep may change.
pub(super) const SECTIONS: [&str; 9] = [
    "dataset",
    "task",
    "model",
    "optimizer",
    "training",
    "partition",
    "network",
    "device",
    "compute",
];

/// Those that have such a key.
pub(super) fn sections_with(key: &str) -> Vec<&'static str> {
    let optimizers = kinds_of::<OptimizerConfig>().into_iter();
    let of_optimizers = optimizers.flat_map(|kind| keys_of_kind::<OptimizerConfig>(&kind));
    // In the order of the names.
    let keys = [
        keys_of::<DatasetSpec>(None),
        keys_of::<TaskSpec>(None),
        keys_of::<ModelConfig>(None),
        of_optimizers.collect(),
        keys_of::<TrainingConfig>(None),
        keys_of::<PartitionSpec>(None),
        keys_of::<NetworkSpec>(None),
        keys_of::<DeviceConfig>(None),
        keys_of::<ComputeConfig>(None),
    ];
    let has = |keys: &[String]| keys.iter().any(|known| known == key);
    let with = SECTIONS.into_iter().zip(keys).filter(|(_, keys)| has(keys));
    with.map(|(section, _)| section).collect()
}

/// The options of a strategy that are tables with such a key, and how they are written with it;
/// `known` are all of its options.
pub(super) fn options_with(key: &str, known: &[String]) -> Vec<(&'static str, String)> {
    let has = |option: &str| known.iter().any(|known| known == option);
    let mut found = Vec::new();
    if has("gradients") && is_of_gradients(key) {
        found.push(("gradients", format!("gradients = {{ {key} = … }}")));
    }
    for option in ["schedule", "codec"] {
        // Grappa's `schedule`, without a codec, is a word.
        if has("codec")
            && has(option)
            && let Some(kind) = kind_with(option, key)
        {
            let written = format!("{option} = {{ kind = \"{kind}\", {key} = … }}");
            found.push((option, written));
        }
    }
    found
}

/// The first kind with such a key of a table whose keys depend on its `kind`.
pub(super) fn kind_with(table: &str, key: &str) -> Option<String> {
    match table {
        "optimizer" => kind_of::<OptimizerConfig>(key),
        "schedule" => kind_of::<Schedule>(key),
        "codec" => kind_of::<CodecChoice>(key),
        _ => None,
    }
}

fn kind_of<T: DeserializeOwned>(key: &str) -> Option<String> {
    let has = |kind: &String| keys_of_kind::<T>(kind).iter().any(|known| known == key);
    kinds_of::<T>().into_iter().find(has)
}

/// All kinds of such a table.
fn kinds_of<T: DeserializeOwned>() -> Vec<String> {
    let nobody = Table::from_iter([("kind".to_owned(), "?".into())]);
    expected(T::deserialize(Value::Table(nobody)).err().as_ref())
}

fn keys_of_kind<T: DeserializeOwned>(kind: &str) -> Vec<String> {
    keys_of::<T>(Some(("kind", kind)))
}

/// Whether the table `gradients` of a strategy has such a key.
fn is_of_gradients(key: &str) -> bool {
    keys_of::<Gradients>(None).iter().any(|known| known == key)
}

/// All formats of files.
pub(super) fn formats() -> Vec<String> {
    let said = Format::deserialize(Value::String("?".to_owned())).err();
    expected(said.as_ref())
}

/// All keys of a section: what serde says it expected in the place of one that nothing has.
fn keys_of<T: DeserializeOwned>(beside: Option<(&str, &str)>) -> Vec<String> {
    let given = beside.map(|(key, value)| (key.to_owned(), value.into()));
    let nothing = ("?".to_owned(), Value::Boolean(true));
    let table: Table = given.into_iter().chain([nothing]).collect();
    expected(T::deserialize(Value::Table(table)).err().as_ref())
}

/// The names that serde says it expected, after the one that it found.
fn expected(said: Option<&toml::de::Error>) -> Vec<String> {
    let said = said.map_or("", toml::de::Error::message);
    let names = said.split('`').skip(1).step_by(2);
    names.skip(1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_says_its_keys() {
        for (key, section) in [
            ("split", "dataset"),
            ("metric", "task"),
            ("hidden", "model"),
            ("learning_rate", "optimizer"),
            ("epochs", "training"),
            ("workers", "partition"),
            ("preset", "network"),
            ("backend", "device"),
            ("timing", "compute"),
        ] {
            assert!(sections_with(key).contains(&section), "{key}");
        }
        assert!(is_of_gradients("codec") && is_of_gradients("every") && !is_of_gradients("rank"));
        assert!(sections_with("?").is_empty());
        assert!(sections_with("hiden").is_empty());
        assert_eq!(sections_with("momentum"), ["optimizer"]);
    }

    #[test]
    fn every_key_of_a_kind_finds_it() {
        for (table, key, kind) in [
            ("optimizer", "momentum", "sgd"),
            ("optimizer", "epsilon", "adam"),
            ("schedule", "slope", "linear"),
            ("schedule", "from", "linear"),
            ("schedule", "every", "steps"),
            ("schedule", "patience", "adaptive-validation"),
            ("codec", "bits", "quantise"),
            ("codec", "second", "compose"),
            ("codec", "of", "difference"),
        ] {
            assert_eq!(
                kind_with(table, key).as_deref(),
                Some(kind),
                "{table}: {key}"
            );
        }
        assert_eq!(kind_with("codec", "ratio"), None);
        assert_eq!(kind_with("model", "heads"), None);
        // A schedule that is a word has no keys.
        assert!(options_with("from", &["schedule".to_owned()]).is_empty());
    }
}
