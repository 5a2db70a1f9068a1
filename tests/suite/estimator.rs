//! `grapevine estimator` as a user runs it.

use std::fs;

use crate::command::{folder_with, grapevine};

const STUDY: &str = r#"name = "small"
[[graph]]
kind = "sbm"
nodes = 10
classes = 2
features = 3
degree_within = 3
degree_between = 1
[model]
hidden = 4
[sampling]
samples = 200
enumerate_up_to = 1024
[[design]]
kind = "independent"
workers = [2, 3]
[[design]]
kind = "sweep"
workers = [2]
[[estimator]]
weight = "none"
[[estimator]]
weight = "node_ht"
normalise = "rho"
[[estimator]]
weight = "edge_ht"
"#;

#[test]
fn an_estimator_study_prints_a_row_for_every_estimator_and_writes_its_files() {
    let folder = folder_with(STUDY);
    let ran = grapevine(folder.path(), &["estimator", "x.toml", "--out", "out"]).expect(0);
    // 2^10 outcomes are summed, 3^10 sampled, and two swept chunks are everything.
    for (text, rows) in [
        ("| independent | 2 | no | ", 3),
        ("| all 1024 | ", 3),
        ("| independent | 3 | no | ", 3),
        ("| 200 | ", 3),
        ("| sweep | 2 | no | 1.000 | all 1 | ", 3),
        ("| 0.000 | 0.000 | 0.000 | 1.0000 | 0.000 |", 3),
    ] {
        assert_eq!(
            ran.stdout.matches(text).count(),
            rows,
            "{text}\n{}",
            ran.stdout
        );
    }
    let out = folder.path().join("out");
    let rows = fs::read_to_string(out.join("estimator.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 9);
    for name in [
        "tables/estimator-against-none.md",
        "figures/estimator.svg",
        "figures/estimator.png",
    ] {
        assert!(out.join(name).exists(), "{name}");
    }
}

#[test]
fn the_same_study_gives_the_same_numbers() {
    let folder = folder_with(STUDY);
    let run = |more: &[&str]| {
        let arguments = [&["estimator", "x.toml", "--json"], more].concat();
        grapevine(folder.path(), &arguments).expect(0).json()
    };
    let first = run(&[]);
    assert_eq!(first, run(&[]));
    assert_ne!(first, run(&["--set", "seed=1"]));
    assert_eq!(first.as_array().unwrap().len(), 9);
}

#[test]
fn a_typo_in_a_study_is_told_with_its_line_and_exit_code_2() {
    let folder = folder_with(&STUDY.replace("node_ht", "nodeht"));
    let ran = grapevine(folder.path(), &["estimator", "x.toml", "--out", "out"]).expect(2);
    assert!(
        ran.stderr.contains(
            "x.toml:23: in [[estimator]]: `weight` cannot be \"nodeht\"; did you mean `node_ht`?"
        ),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.is_empty() && !folder.path().join("out").exists());
}
