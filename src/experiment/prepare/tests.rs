//! What preparation remembers, what it lets go, and what inductive training knows.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Fitted, Preparation, data_turns};
use crate::experiment::Error;
use crate::experiment::config::{Experiment, PAPER, Vocabulary};
use crate::sim::{Observer, Outcome, Setting};
use crate::strategies::{self, Registry};

const SWEPT: &str = r#"
name = "x"
seeds = [0, 1]
[model]
kind = "gcn"
[training]
epochs = 2
[partition]
method = "random"
workers = 2
[network]
preset = "ethernet-1g"
[sweep]
"partition.workers" = [2, 3]
dataset = [
    { synthetic = { kind = "sbm", nodes = 60, classes = 2, features = 4, degree_within = 4.0, degree_between = 2.0 }, split = { train = 0.5, val = 0.2 } },
    { synthetic = { kind = "sbm", nodes = 80, classes = 2, features = 4, degree_within = 4.0, degree_between = 2.0 }, split = { train = 0.5, val = 0.2 } },
]
[[strategy]]
kind = "full"
"#;

fn experiment(text: &str, registry: &Registry, sets: &[&str]) -> Experiment {
    let vocabulary = Vocabulary {
        registry,
        figures: &[],
    };
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Experiment::parse(text, "x.toml", PAPER, &sets, &vocabulary).unwrap()
}

#[test]
fn what_is_of_other_data_and_seeds_is_let_go_where_it_is_large() {
    let registry = Registry::builtin();
    let experiment = experiment(SWEPT, &registry, &[]);
    let cells = experiment.cells();
    // Cells in order: the last key of the sweep changes fastest.
    let turns = data_turns(cells.iter());
    assert_eq!(turns, [0, 1, 0, 1]);
    let mut preparation = Preparation::new(&registry, PathBuf::new());
    let mut fit = |cell: usize, seed, most| {
        let data = &cells[cell].settings.dataset;
        preparation.keep_at_most(most, data, seed);
        let fitted = preparation.fit(&cells[cell], seed).unwrap();
        let found = (preparation.raw.0.len(), preparation.parts.0.len());
        (Arc::clone(&fitted.setting.partition), found)
    };
    let first = fit(0, 0, usize::MAX).0;
    assert_eq!(fit(2, 0, usize::MAX).1, (1, 2));
    assert_eq!(fit(0, 1, usize::MAX).1, (1, 3));
    assert_eq!(fit(1, 1, usize::MAX).1, (2, 4));
    // All of the other data set goes, and of this one what is of the other seed.
    assert_eq!(fit(3, 1, 0).1, (1, 2));
    let (again, left) = fit(0, 0, usize::MAX);
    assert_eq!(left, (2, 3));
    // Made again it is the same.
    assert!(!Arc::ptr_eq(&first, &again));
    assert_eq!(first, again);
}

const INDUCTIVE: &str = r#"
name = "x"
seeds = [3]
[dataset]
synthetic = { kind = "sbm", nodes = 90, classes = 3, features = 6, degree_within = 6.0, degree_between = 2.0 }
split = { train = 0.5, val = 0.2 }
[model]
kind = "gcn"
hidden = 8
[training]
epochs = 3
inductive = true
[partition]
method = "random"
workers = 3
[network]
preset = "ethernet-1g"
[compute]
timing = { profile = "t4" }
[[strategy]]
kind = "full"
"#;

/// The only cell of [`INDUCTIVE`] with these changes.
fn inductive(sets: &[&str]) -> Result<Fitted, Error> {
    let registry = Registry::builtin();
    let experiment = experiment(INDUCTIVE, &registry, sets);
    let mut preparation = Preparation::new(&registry, PathBuf::new());
    if sets.iter().any(|set| set.contains("counts")) {
        preparation = preparation.for_plans();
    }
    preparation.fit(&experiment.cells()[0], 3)
}

fn run(fitted: &Fitted) -> Outcome {
    let silent: Observer = Arc::new(|_| ());
    strategies::run(&*fitted.training, fitted.needs.together, silent).unwrap()
}

/// Accuracies of training, validation and test nodes, to the bit, epoch by epoch.
fn accuracies(outcome: &Outcome) -> Vec<[Option<u64>; 3]> {
    let scores = outcome.epochs.iter().map(|record| record.scores.unwrap());
    scores
        .map(|scores| {
            [scores.train, scores.validation, scores.test].map(|one| one.map(f64::to_bits))
        })
        .collect()
}

#[test]
fn inductive_training_knows_training_nodes_and_the_edges_between_them() {
    let setting = inductive(&[]).unwrap().setting;
    let (known, whole) = (&setting.dataset, setting.scored());
    let train = &whole.split.train;
    assert_eq!(
        (known.graph.nodes(), train.len(), whole.graph.nodes()),
        (45, 45, 90)
    );
    let edges = whole.graph.iter_edges();
    let kept = edges.filter(|(a, b)| train.contains(a) && train.contains(b));
    let number = |node: u32| train.iter().position(|&one| one == node).unwrap() as u32;
    let mut kept: Vec<(u32, u32)> = kept.map(|(a, b)| (number(a), number(b))).collect();
    let mut found: Vec<(u32, u32)> = known.graph.iter_edges().collect();
    kept.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, kept);
    assert_eq!(
        known.features.select(&[7]),
        whole.features.select(&[train[7]])
    );
    assert_eq!(known.split.train, (0..45).collect::<Vec<u32>>());
    // Nobody else is sent, owned or counted.
    assert_eq!(setting.counts.nodes, 45);
    assert_eq!(setting.training_nodes(), 45);
}

#[test]
fn what_inductive_training_learns_does_not_depend_on_what_it_is_scored_on() {
    let fitted = inductive(&[]).unwrap();
    let alone = Arc::new(Setting {
        unseen: None,
        ..Setting::clone(&fitted.setting)
    });
    let registry = Registry::builtin();
    let strategy = registry.read("full", &toml::Table::new()).unwrap();
    let alone = Fitted {
        training: strategy.fit(&alone).unwrap(),
        setting: alone,
        needs: fitted.needs.clone(),
    };
    let [first, other] = [&fitted, &alone].map(run);
    let losses = |outcome: &Outcome| -> Vec<u64> {
        let records = outcome.epochs.iter();
        records.map(|record| record.loss.to_bits()).collect()
    };
    assert_eq!(losses(&first), losses(&other));
    assert_eq!(first.ledger, other.ledger);
    assert_eq!(first.simulated(), other.simulated());
    assert_ne!(accuracies(&first), accuracies(&other));
}

#[test]
fn models_of_inductive_training_are_scored_on_the_whole_graph() {
    // A model that stays as it begins, whatever it is trained on.
    let still = "optimizer={ kind = \"sgd\", learning_rate = 1e-30 }";
    let [known, all] = [&[still][..], &[still, "training.inductive=false"]]
        .map(|sets| run(&inductive(sets).unwrap()));
    assert_eq!(accuracies(&known), accuracies(&all));
}

#[test]
fn inductive_training_is_refused_where_nobody_knows_the_edges_that_stay() {
    let refused = |sets: &[&str]| match inductive(sets) {
        Ok(_) => panic!("{sets:?} is taken"),
        Err(error) => error.to_string(),
    };
    let counts = "dataset={ counts = { rmat = { scale = 8, edge_factor = 4 }, features = 16, classes = 4, train = 0.6 } }";
    let shards = "dataset={ shards = \"nowhere\" }";
    let clients = "strategy=[{ kind = \"retexo\", form = \"distributed\" }]";
    let sparse = "dataset.split={ train = 0.03, val = 0.2 }";
    for (set, message) in [
        (
            counts,
            "a graph in numbers nobody knows which edges are between them",
        ),
        (shards, "shards are of the whole graph"),
        (sparse, "has none of them under this split"),
    ] {
        let error = refused(&[set]);
        assert!(error.contains("`inductive` keeps"), "{error}");
        assert!(error.contains(message), "{error}");
    }
    let error = refused(&[clients, "partition.workers=45", "model.layers=1"]);
    assert!(error.contains("take form = \"layers\""), "{error}");
}
