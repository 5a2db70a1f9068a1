//! What a sweep gives a cell: keys and their values.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The swept keys and the values that they have in a cell, in the order of the file. Keys are as
/// short as they can be told apart; a whole section is called by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sweep(Map<String, Value>);

impl Sweep {
    /// With one more key and its value.
    pub fn with(&self, key: &str, value: Value) -> Self {
        let mut values = self.0.clone();
        values.insert(key.to_owned(), value);
        Self(values)
    }

    /// Without that key.
    pub(crate) fn without(&self, key: &str) -> Self {
        self.where_key(|name, _| name != key)
    }

    /// The keys that the other does not have.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        self.where_key(|key, _| !other.0.contains_key(key))
    }

    /// The keys that have the same value in the other, too.
    pub(crate) fn shared(&self, other: &Self) -> Self {
        self.where_key(|key, value| other.0.get(key) == Some(value))
    }

    fn where_key(&self, keep: impl Fn(&str, &Value) -> bool) -> Self {
        let mut rest = self.clone();
        rest.0.retain(|key, value| keep(key, value));
        rest
    }

    /// Whether nothing is swept.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that a key has in this cell, if it is swept over numbers.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }

    /// Every key with its value as it reads.
    pub fn values(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), text(value)))
    }

    /// As a heading: words need no key, `kind=gcn workers=4` is `gcn, workers=4`.
    pub(crate) fn heading(&self) -> String {
        let said = self.0.iter().map(|(key, value)| match value {
            Value::String(word) if word.starts_with(char::is_alphabetic) => word.clone(),
            other => format!("{key}={}", text(other)),
        });
        said.collect::<Vec<String>>().join(", ")
    }

    /// As a JSON object; empty where nothing is swept.
    pub(super) fn to_json(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        Value::Object(self.0.clone()).to_string()
    }

    pub(super) fn from_json(json: &str) -> Option<Self> {
        if json.is_empty() {
            return Some(Self::default());
        }
        serde_json::from_str(json).ok()
    }
}

/// As in the name of a cell: `kind=gcn workers=4`.
impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.values().map(|(key, value)| format!("{key}={value}"));
        f.write_str(&pairs.collect::<Vec<String>>().join(" "))
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_survive_json_and_read_as_names_and_headings() {
        let sweep = Sweep::default()
            .with("kind", "gcn".into())
            .with("workers", 4.into())
            .with("cache", true.into())
            .with("dataset", "my graph".into());
        assert_eq!(Sweep::from_json(&sweep.to_json()), Some(sweep.clone()));
        let name = "kind=gcn workers=4 cache=true dataset=my graph";
        assert_eq!(sweep.to_string(), name);
        assert_eq!(sweep.heading(), "gcn, workers=4, cache=true, my graph");
        assert_eq!(
            (sweep.number("workers"), sweep.number("kind")),
            (Some(4.0), None)
        );
        assert_eq!(
            sweep.without("workers").heading(),
            "gcn, cache=true, my graph"
        );
        let other = sweep.with("workers", 8.into());
        assert_eq!(sweep.shared(&other), sweep.without("workers"));
        assert_eq!(Sweep::from_json(""), Some(Sweep::default()));
        assert_eq!(Sweep::from_json("workers=4"), None);
    }
}
