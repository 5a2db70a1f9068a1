//! In what two manifests differ that results depend on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Sections of words, and of what is made of results: they change none.
const OF_NO_RESULT: [&str; 5] = ["name", "description", "claim", "statistics", "figure"];

/// Each key of the configuration that differs, with what it was and is; `–` where it is not.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<[String; 3]> {
    let (before, after) = (configuration(before), configuration(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of =
        |all: &BTreeMap<String, String>, key| all.get(key).map_or("–".to_owned(), Clone::clone);
    let all = keys.into_iter();
    all.map(|key| [key.clone(), of(&before, key), of(&after, key)])
        .filter(|[_, before, after]| before != after)
        .collect()
}

/// The configuration of a manifest, key by key, without words that change no result.
fn configuration(manifest: &Value) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    collect("", &manifest["config"], &mut leaves);
    leaves.retain(|key, _| {
        let section = key.split('.').next().unwrap_or_default();
        !OF_NO_RESULT.contains(&section)
    });
    leaves
}

/// Every value below a key, under its whole key; lists of plain values are one.
fn collect(key: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    let below = |name: &str| {
        if key.is_empty() {
            name.to_owned()
        } else {
            format!("{key}.{name}")
        }
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(&below(name), value, leaves);
            }
        }
        Value::Array(entries) if entries.iter().any(Value::is_object) => {
            for (place, value) in entries.iter().enumerate() {
                collect(&below(&place.to_string()), value, leaves);
            }
        }
        plain => {
            leaves.insert(key.to_owned(), plain.to_string());
        }
    }
}

/// What the runs of an earlier manifest are of, as the end of "finished runs, of …".
pub(super) fn of_what(before: &Value, after: &Value) -> String {
    const NAMED: usize = 4;
    // The earlier one was read, in which a number can lose its last bit: the other loses it, too.
    let read = serde_json::from_str(&after.to_string());
    let after = &read.unwrap_or_else(|_| after.clone());
    let mut reasons = Vec::new();
    for key in ["program", "engine"] {
        if before[key] != after[key] {
            reasons.push(format!("another {key}"));
        }
    }
    // How often a checkpoint is written makes no other run.
    let mut changes = differences(before, after);
    changes.retain(|[key, ..]| key != "training.checkpoint_every");
    if !changes.is_empty() {
        let more = changes.len().saturating_sub(NAMED);
        let named = changes.iter().take(NAMED);
        let mut named: Vec<String> = named
            .map(|[key, before, after]| format!("{key} {before} → {after}"))
            .collect();
        if more > 0 {
            named.push(format!("and {more} more"));
        }
        reasons.push(format!("other settings ({})", named.join(", ")));
    }
    if reasons.is_empty() {
        "other data or background traffic, or with other devices or traces".to_owned()
    } else {
        reasons.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(program: &str, config: &Value) -> Value {
        json!({ "program": program, "engine": "simulated", "config": config })
    }

    #[test]
    fn runs_are_of_another_program_other_settings_or_other_data() {
        let file = |epochs: usize, words: &str| {
            json!({
                "name": "x", "description": words, "seeds": [0, 1],
                "training": { "epochs": epochs },
                "strategy": [{ "kind": "fixed", "ratio": 8 }],
            })
        };
        let before = manifest("a", &file(10, "old"));
        let of = |program: &str, config: &Value| of_what(&before, &manifest(program, config));
        let data = "other data or background traffic, or with other devices or traces";
        assert_eq!(of("a", &file(10, "new")), data, "words change nothing");
        let epochs = "other settings (training.epochs 10 → 11)";
        assert_eq!(of("a", &file(11, "old")), epochs);
        assert_eq!(of("b", &file(10, "old")), "another program");
        let both = format!("another program and {epochs}");
        assert_eq!(of("b", &file(11, "old")), both);
        let mut much = file(11, "old");
        much["seeds"] = json!([2]);
        much["strategy"][0]["ratio"] = json!(4);
        much["model"] = json!({ "kind": "gcn", "hidden": 16 });
        let said = of("a", &much);
        assert!(said.contains("model.hidden – → 16"), "{said}");
        assert!(
            said.contains("strategy.0.ratio 8 → 4, and 1 more"),
            "{said}"
        );
    }
}
