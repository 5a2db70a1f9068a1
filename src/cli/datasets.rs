//! The published data sets as a table and as JSON.

use serde_json::{Value, json};

use super::output::columns;
use crate::graph::{Metric, PublishedSet, published_sets};
use crate::net::Bytes;

/// What can be fetched, a line each.
pub(super) fn published() -> String {
    let header = [
        "to fetch", "nodes", "edges", "features", "classes", "metric", "size", "licence", "here",
    ];
    let row = |set: &PublishedSet| {
        let unknown = || "?".to_owned();
        vec![
            set.name.clone(),
            thousands(set.nodes),
            thousands(set.edges),
            thousands(set.features),
            thousands(set.classes),
            set.metric.map_or("none", Metric::name).to_owned(),
            set.bytes()
                .map_or_else(unknown, |bytes| Bytes(bytes).to_string()),
            set.licence.clone().unwrap_or_else(unknown),
            if set.is_here() { "yes" } else { "no" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = published_sets().iter().map(row).collect();
    let both = published_sets().iter();
    let both = both.filter(|set| set.both_directions);
    let both: Vec<&str> = both.map(|set| set.name.as_str()).collect();
    format!(
        "{}Edges are as published; in both directions: {}.\n",
        columns(&header, &rows),
        both.join(", ")
    )
}

/// The same with everything that is known of each.
pub(super) fn document() -> Vec<Value> {
    let one = |set: &PublishedSet| {
        json!({
            "name": set.name,
            "what": set.about,
            "bundled": false,
            "here": set.is_here(),
            "folder": set.folder().ok(),
            "nodes": set.nodes,
            "edges": set.edges,
            "both_directions": set.both_directions,
            "features": set.features,
            "classes": set.classes,
            "metric": set.metric,
            "split": set.split,
            "bytes": set.bytes(),
            "licence": set.licence,
            "cite": set.cite,
            "files": set.files.iter().map(|file| json!({
                "at": file.at,
                "mirrors": file.mirrors,
                "bytes": file.bytes,
                "sum": file.sum,
            })).collect::<Vec<Value>>(),
        })
    };
    published_sets().iter().map(one).collect()
}

/// `1234567` → `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_threes() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn every_set_has_a_line_and_an_entry() {
        let text = published();
        // A heading and a note besides.
        assert_eq!(text.lines().count(), 2 + published_sets().len());
        assert_eq!(document().len(), published_sets().len());
        assert!(text.contains("ogbn-arxiv"));
    }
}
