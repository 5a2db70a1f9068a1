//! Graphs of a contextual stochastic block model: how good one can be on them is said wherever a reader looks, and models stay below it.

use std::fs;

use crate::command::{folder_with, grapevine};

const EXPERIMENT: &str = r#"name = "map"
seeds = [0]
[dataset]
synthetic = { kind = "csbm", nodes = 4000, degree = 10, homophily = 0.8, feature_signal = 0.8 }
[model]
kind = "sage"
layers = 2
hidden = 16
[optimizer]
kind = "adam"
learning_rate = 0.01
[training]
epochs = 40
evaluate_every = 10
[partition]
method = "random"
workers = 4
[network]
preset = "ethernet-1g"
[compute]
timing = { profile = "a100" }
[[strategy]]
kind = "full"
[[strategy]]
kind = "isolated"
"#;

/// The numbers before the signs for per cent.
fn shares(note: &str) -> Vec<f64> {
    let before = note.split(" %").filter_map(|part| part.rsplit(' ').next());
    before.filter_map(|text| text.parse().ok()).collect()
}

#[test]
fn the_best_that_is_known_is_told_and_models_learn_most_of_it() {
    let folder = folder_with(EXPERIMENT);
    grapevine(folder.path(), &["run", "x.toml", "--out", "r"]).expect(0);
    let manifest = fs::read_to_string(folder.path().join("r/manifest.json")).expect("it is there");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let data = &manifest["data_sets"][0];
    assert_eq!(data["name"], "csbm-4000-h0.8-s0.8");
    let note = data["notes"][0].as_str().expect("a sentence");
    let report = fs::read_to_string(folder.path().join("r/report.html")).expect("it is there");
    assert!(
        report.contains("features alone tell 78.8 %"),
        "Φ(0.8): {note}"
    );

    let graph =
        "{ kind = \"csbm\", nodes = 4000, degree = 10, homophily = 0.8, feature_signal = 0.8 }";
    let info = grapevine(folder.path(), &["info", graph]).expect(0);
    assert!(info.stderr.contains(note), "{}", info.stderr);

    let [features, _, two_hops, ..] = shares(note)[..] else {
        panic!("{note}");
    };
    let runs = grapevine(
        folder.path(),
        &["run", "x.toml", "--out", "r", "--resume", "--json"],
    );
    let runs = runs.expect(0).json();
    let accuracy = |strategy: &str| {
        let runs = runs["runs"].as_array().expect("a list");
        let run = runs.iter().find(|run| run["strategy"] == strategy);
        100.0
            * run.expect("it ran")["test_accuracy"]
                .as_f64()
                .expect("a share")
    };
    // Two layers see two hops. Of 800 test nodes the deviation is a point. Without exchange a model
    // learns from a quarter of the neighbours, and is evaluated with all.
    for trained in ["full", "isolated"] {
        let found = accuracy(trained);
        assert!(found < two_hops + 2.5, "{trained}: {found} {note}");
        assert!(found > features + 5.0, "{trained}: {found} {note}");
    }
}
