//! Nodes that change workers while a training goes on: `train` with `repartition_every`.

use std::path::Path;

use crate::command::{folder_with, grapevine};
use crate::common::{CORA, Case, KINDS, assert_close, bits, losses};
use crate::determinism::assert_same_tables;
use grapevine::graph::PartitionMethod;
use grapevine::net::TrafficKind;

#[test]
fn exact_training_does_not_depend_on_who_owns_what() {
    for (kind, workers) in KINDS.into_iter().zip([2, 3, 4, 5, 1]) {
        let case = Case {
            kind,
            workers,
            epochs: 7,
            ..Case::default()
        };
        for options in [
            "",
            "cache_features = false\nexchange = \"input\"\noverlap = true",
            "rows = \"blocks\"\nexchange = \"input\"",
            "share = 1.0\ncache_features = false",
            "late = true\nfresh_every = 1",
            "bound = 0",
        ] {
            let still = case.run("train", options);
            for every in [1, 2, 3] {
                let moving = format!("{options}\nrepartition_every = {every}");
                let moving = case.run("train", &moving);
                let what = format!("{kind:?}, {options:?}, every {every}");
                // Sums over workers have other last bits where other workers have the terms.
                assert_close(&losses(&moving), &losses(&still), 2e-4, &what);
            }
        }
    }
}

#[test]
fn sparse_features_several_labels_and_every_partitioner_move() {
    let several = Case::default().data.replace(" }\n", ", labels = 5 }\n");
    for data in [CORA, several.leak()] {
        for method in [
            PartitionMethod::Random,
            PartitionMethod::Metis,
            PartitionMethod::Ldg,
            PartitionMethod::Fennel,
        ] {
            let case = Case {
                data,
                method,
                layers: 2,
                epochs: 3,
                ..Case::default()
            };
            let still = case.run("full", "");
            let moving = case.run("train", "repartition_every = 1");
            let what = format!("{method:?} of {data}");
            assert_close(&losses(&moving), &losses(&still), 2e-4, &what);
        }
    }
}

#[test]
fn nodes_move_in_the_epochs_that_are_asked_for_and_in_no_others() {
    let case = Case {
        epochs: 8,
        ..Case::default()
    };
    let outcome = case.run("train", "rows = \"none\"\nrepartition_every = 3");
    for epoch in 0..8 {
        let traffic = outcome.ledger.epoch(epoch).expect("gradients are summed");
        let moved = traffic.payload_of(TrafficKind::Repartition).0;
        assert_eq!(moved > 0, epoch == 3 || epoch == 6, "epoch {epoch}");
        // Of 120 nodes each is new to a worker at most once, with 10 features, degree, row end,
        // class and set, and of some 700 stored edges the source and its degree.
        assert!(moved <= 4 * (120 * 14 + 2 * 900), "epoch {epoch}: {moved}");
    }
    let again = case.run("train", "rows = \"none\"\nrepartition_every = 3");
    assert_eq!(bits(&again), bits(&outcome));
    // The features of the next halo come after every move, and only then.
    let outcome = case.run("train", "exchange = \"input\"\nrepartition_every = 3");
    for epoch in 0..8 {
        let traffic = outcome.ledger.epoch(epoch).expect("rows cross");
        let features = traffic.payload_of(TrafficKind::Feature).0;
        assert_eq!(features > 0, epoch % 3 == 0, "epoch {epoch}");
    }
    let one = Case { workers: 1, ..case };
    let alone = one.run("train", "repartition_every = 1");
    assert_eq!(
        alone
            .ledger
            .traffic()
            .payload_of(TrafficKind::Repartition)
            .0,
        0
    );
}

#[test]
fn workers_without_rows_of_others_see_more_of_the_graph_when_nodes_move() {
    let apart = Case::learnt("train", "rows = \"none\"");
    let mixed = Case::learnt("train", "rows = \"none\"\nrepartition_every = 5");
    // Random quarters of Cora: 76.8 and 74.7 % of 541 test nodes.
    assert!(mixed > apart + 0.005, "{mixed} after {apart}");
}

#[test]
fn what_cannot_move_is_refused() {
    let case = Case::default();
    let refused = |case: &Case, options: &str| {
        let (key, message) = case.refused("train", options);
        assert_eq!(key.as_deref(), Some("repartition_every"), "{message}");
        message
    };
    assert_eq!(
        refused(&case, "repartition_every = 0"),
        "must be at least 1, not 0"
    );
    let message = refused(&case, "repartition_every = 1\nlate = true");
    assert!(
        message.starts_with("must be at least 2 with `late`"),
        "{message}"
    );
    case.run(
        "train",
        "repartition_every = 1\nlate = true\nfresh_every = 2",
    );
    let (_, message) = Case::in_batches().refused("train", "repartition_every = 1");
    assert!(message.contains("leave out `training.batch`"), "{message}");
}

const EXPERIMENT: &str = r#"name = "moves"
seeds = [0]
[dataset]
synthetic = { kind = "sbm", nodes = 200, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0 }
[model]
kind = "gcn"
layers = 2
hidden = 8
[training]
epochs = 5
[partition]
workers = 2
[network]
preset = "wan"
[compute]
timing = { profile = "cpu-core" }
[[strategy]]
kind = "train"
repartition_every = 2
"#;

#[test]
fn the_program_counts_projects_and_verifies_what_moved_and_says_where_it_cannot() {
    let folder = folder_with(EXPERIMENT);
    let at = |path: &str| folder.path().join(path);
    grapevine(folder.path(), &["run", "x.toml", "--out", "r"]).expect(0);
    grapevine(folder.path(), &["verify", "r"]).expect(0);
    let json = |arguments: &[&str]| grapevine(folder.path(), arguments).expect(0).json();
    let trained = json(&["run", "x.toml", "--out", "r", "--resume", "--json"]);
    let projected = json(&["project", "x.toml", "--json"]);
    let seconds = |row: &serde_json::Value| row["simulated_seconds"].as_f64().expect("seconds");
    let (trained, projected) = (seconds(&trained["runs"][0]), seconds(&projected[0]));
    assert!(
        (trained - projected).abs() < 1e-9,
        "{trained} and {projected}"
    );

    std::fs::write(at("parts.txt"), "0\n1\n".repeat(100)).expect("a file");
    let given = [
        "run",
        "x.toml",
        "--set",
        "partition.method=\"given\"",
        "--set",
        "partition.file=\"parts.txt\"",
    ];
    let ran = grapevine(folder.path(), &given).expect(2);
    assert!(
        ran.stderr
            .contains("`partition.method = \"given\"`: a file has one division"),
        "{}",
        ran.stderr
    );
    assert!(!Path::new(&at("results")).exists(), "nothing was run");
}

#[test]
fn cells_that_train_at_the_same_time_take_nothing_of_each_other() {
    let sweep = "[sweep]\n\"model.hidden\" = [8, 16]\n\"training.epochs\" = [5, 7]\n";
    let folder = folder_with(&format!("{EXPERIMENT}{sweep}"));
    for jobs in ["1", "2"] {
        let run = ["run", "x.toml", "--out", jobs, "--jobs", jobs];
        grapevine(folder.path(), &run).expect(0);
        grapevine(folder.path(), &["verify", jobs]).expect(0);
    }
    assert_same_tables(folder.path(), "1", "2");
}
