//! In which sections a key would be right that is wrong where it stands.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::graph::{DatasetSpec, PartitionSpec, TaskSpec};
use crate::model::{ModelConfig, OptimizerConfig};
use crate::net::NetworkSpec;
use crate::sim::{ComputeConfig, DeviceConfig, TrainingConfig};
use crate::strategies::parts::Gradients;

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
    let adam = Some(("kind", "adam"));
    // In the order of the names.
    let keys = [
        keys_of::<DatasetSpec>(None),
        keys_of::<TaskSpec>(None),
        keys_of::<ModelConfig>(None),
        keys_of::<OptimizerConfig>(adam),
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

/// Whether the table `gradients` of a strategy has such a key.
pub(super) fn is_of_gradients(key: &str) -> bool {
    keys_of::<Gradients>(None).iter().any(|known| known == key)
}

/// All keys of a section: what serde says it expected in the place of one that nothing has.
fn keys_of<T: DeserializeOwned>(beside: Option<(&str, &str)>) -> Vec<String> {
    let given = beside.map(|(key, value)| (key.to_owned(), value.into()));
    let nothing = ("?".to_owned(), Value::Boolean(true));
    let table: Table = given.into_iter().chain([nothing]).collect();
    let said = T::deserialize(Value::Table(table)).err();
    let said = said.map_or(String::new(), |error| error.message().to_owned());
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
    }
}
