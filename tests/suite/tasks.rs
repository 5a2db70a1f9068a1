//! Tasks beyond one class of a node: several labels, and ROC-AUC of two classes.

use std::fs;

use crate::anchors::{LOSSLESS, assert_trains_as_one_device};
use crate::command::{folder_with, grapevine};
use crate::common::{Case, KINDS, assert_close, losses, other_backends};
use crate::reference::single_device;
use grapevine::graph::{BatchSpec, Metric, Task};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;
use grapevine::sim::{Backend, Outcome};

/// 40 labels of a node, which travel in two words.
const SEVERAL: &str = "synthetic = { kind = \"sbm\", nodes = 120, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0, labels = 40 }\nsplit = { train = 0.5, val = 0.2 }";

/// Two classes, of which the second is a label that a node has or has not.
const TWO: &str = "synthetic = { kind = \"sbm\", nodes = 120, classes = 2, features = 10, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.2 }";

fn cases() -> [Case; 3] {
    let of = |data, metric| Case {
        data,
        metric: Some(metric),
        epochs: 4,
        ..Case::default()
    };
    [
        of(SEVERAL, Metric::MicroF1),
        of(SEVERAL, Metric::RocAuc),
        of(TWO, Metric::RocAuc),
    ]
}

#[test]
fn two_classes_with_roc_auc_are_one_label_and_one_logit() {
    let [_, several, two] = cases();
    let setting = |case: &Case| case.setting(Case::strategy("full", "").as_ref());
    let (several, two) = (setting(&several), setting(&two));
    assert_eq!(
        (several.task(), several.model.classes()),
        (Task::Labels(40), 40)
    );
    assert_eq!((two.task(), two.model.classes()), (Task::Labels(1), 1));
    let labels = two.dataset.labels.several().expect("a label");
    let with = (0..120).filter(|&v| labels.has(v, 0)).count();
    assert_eq!(with, 60, "half the nodes are of the second class");
}

#[test]
fn one_worker_with_any_lossless_strategy_learns_labels_as_one_device_does_to_the_bit() {
    for case in cases() {
        // Large steps, so that losses fall in a few of them in spite of dropout.
        let case = Case {
            workers: 1,
            optimizer: OptimizerConfig::Adam {
                learning_rate: 0.05,
                weight_decay: 0.0,
                epsilon: 1e-8,
            },
            ..case
        };
        for (kind, options) in LOSSLESS {
            assert_trains_as_one_device(&case, kind, options);
        }
        for kind in KINDS {
            assert_trains_as_one_device(
                &Case {
                    kind,
                    ..case.clone()
                },
                "full",
                "",
            );
        }
    }
}

#[test]
fn full_on_many_workers_learns_labels_as_one_device_does() {
    for case in cases() {
        let case = Case {
            optimizer: OptimizerConfig::Sgd {
                learning_rate: 0.5,
                weight_decay: 0.0,
                momentum: 0.9,
            },
            ..case
        };
        let expected = single_device(&case.setting(Case::strategy("full", "").as_ref()));
        for options in ["exchange = \"input\"", "exchange = \"product\""] {
            assert_close(
                &losses(&case.run("full", options)),
                &expected.losses,
                1e-5,
                options,
            );
        }
    }
}

#[test]
fn labels_are_learnt_alike_on_every_backend() {
    let (backends, _turn) = other_backends("labels");
    for backend in backends {
        for case in cases() {
            let case = |backend| Case {
                backend,
                workers: 2,
                layers: 2,
                epochs: 2,
                ..case.clone()
            };
            let expected = losses(&case(Backend::Flex).run("full", ""));
            let found = losses(&case(backend).run("full", ""));
            assert_close(&found, &expected, 1e-4, &format!("{backend:?}"));
        }
    }
}

/// Strategies that lose something, and mini-batches: they learn, and are scored.
#[test]
fn every_strategy_learns_labels_with_and_without_mini_batches() {
    let learns = |case: &Case, kind: &str, options: &str| {
        let outcome = case.run(kind, options);
        let what = format!("{kind} {options}, {:?}", case.metric);
        let losses: Vec<f64> = losses(&outcome);
        let last = losses[losses.len() - 1];
        assert!(last < losses[0], "{what}: {losses:?}");
        let scores = outcome.best().expect("it was evaluated").1;
        let test = scores.test.expect("a score");
        assert!((0.0..=1.0).contains(&test), "{what}: {test}");
        assert!(scores.validation_loss.is_some_and(f64::is_finite), "{what}");
    };
    for case in cases() {
        let case = Case {
            kind: ModelKind::Sage,
            layers: 2,
            dropout: 0.0,
            epochs: 12,
            ..case
        };
        for (kind, options) in [
            ("isolated", ""),
            ("fixed", "ratio = 4"),
            ("varco", ""),
            (
                "varco",
                "schedule = { kind = \"adaptive-validation\", measure = \"accuracy\", patience = 1 }",
            ),
            ("bns", "share = 0.5"),
            ("pipe", ""),
            ("adaqp", ""),
            ("grappa", ""),
            ("grappa", "weight = \"batch_gram\""),
            ("grappa", "schedule = \"regroup\"\nrepartition_every = 2"),
            ("llcg", "local_steps = 1\nrho = 1\nserver_steps = 1"),
            ("cluster", "clusters = 8\nclusters_per_batch = 2"),
            ("retexo", "rounds_per_layer = 12"),
        ] {
            learns(&case, kind, options);
        }
        let clients = Case {
            workers: 120,
            ..case.clone()
        };
        learns(
            &clients,
            "retexo",
            "form = \"distributed\"\nrounds_per_layer = 12",
        );
        let batched = Case {
            batch: Some(BatchSpec {
                size: 8,
                fanouts: vec![3; 2],
            }),
            ..case.clone()
        };
        for (kind, options) in [
            ("full", ""),
            ("isolated", ""),
            ("distdgl", ""),
            ("grappa", ""),
            ("grappa", "weight = \"batch_gram\"\nschedule = \"regroup\""),
            ("retexo", "rounds_per_layer = 12"),
        ] {
            learns(&batched, kind, options);
        }
    }
}

#[test]
fn labels_that_travel_take_a_bit_each_and_one_that_says_they_are_known() {
    let repartitioned = |labels: Option<usize>| {
        let more = labels.map_or(String::new(), |count| format!(", labels = {count}"));
        let data = SEVERAL.replace(", labels = 40", &more);
        let case = Case {
            data: Box::leak(data.into_boxed_str()),
            epochs: 1,
            ..Case::default()
        };
        let bytes = |outcome: &Outcome| {
            outcome
                .ledger
                .traffic()
                .payload_of(TrafficKind::Repartition)
                .0
        };
        ["grappa", "llcg"].map(|kind| {
            let options = if kind == "grappa" {
                "schedule = \"regroup\""
            } else {
                ""
            };
            bytes(&case.run(kind, options))
        })
    };
    let [grappa, llcg] = repartitioned(None);
    assert_eq!(
        repartitioned(Some(31)),
        [grappa, llcg],
        "one word, as a class"
    );
    let [two, server] = repartitioned(Some(32));
    // All nodes but those of the server go to it, a word more of each: 90 of 120.
    assert_eq!(server - llcg, 4 * 90);
    assert!(two > grappa && (two - grappa).is_multiple_of(4));
    let [three, _] = repartitioned(Some(64));
    assert_eq!(three - grappa, 2 * (two - grappa));
}

const EXPERIMENT: &str = r#"name = "labels"
seeds = [0, 1]
[dataset]
synthetic = { kind = "sbm", nodes = 200, classes = 4, features = 8, degree_within = 6, degree_between = 2, labels = 8 }
[model]
kind = "sage"
hidden = 8
[training]
epochs = 6
target_accuracy = 0.2
[partition]
method = "random"
workers = 3
[network]
preset = "ethernet-1g"
[compute]
timing = { profile = "a100" }
[[strategy]]
kind = "full"
[[strategy]]
kind = "varco"
[sweep]
"task.metric" = ["micro-f1", "roc-auc"]
[statistics]
minimum_seeds = 2
[[claim]]
id = "same"
source = "ours"
statement = "compression costs little"
measure = "test_accuracy"
compare = { strategy = "varco", to = "full", within = 0.5 }
"#;

#[test]
fn tables_figures_and_pages_say_what_they_hold() {
    let folder = folder_with(EXPERIMENT);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    assert!(
        ran.stdout.contains("test micro-F1 or ROC-AUC"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("8 features, 8 labels"),
        "{}",
        ran.stderr
    );
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).expect(name);
    let runs = read("runs.csv");
    assert_eq!(runs.matches(",micro-f1,").count(), 4, "{runs}");
    assert_eq!(runs.matches(",roc-auc,").count(), 4, "{runs}");
    assert!(
        read("epochs.csv")
            .lines()
            .next()
            .expect("a header")
            .ends_with(",metric")
    );
    assert!(read("figures/accuracy-vs-epoch.svg").contains("Test micro-F1 or ROC-AUC against"));
    assert!(read("tables/summary.md").contains("test micro-F1 or ROC-AUC"));
    assert!(read("claims.csv").contains("same,ours"));
    let one = [
        "run",
        "x.toml",
        "--out",
        "one",
        "--set",
        "sweep={}",
        "--set",
        "task.metric=\"roc-auc\"",
    ];
    let ran = grapevine(folder.path(), &one).expect(0);
    assert!(ran.stderr.contains("% test ROC-AUC"), "{}", ran.stderr);
    let page = fs::read_to_string(folder.path().join("one/report.html")).expect("a page");
    for said in [
        "has the highest test ROC-AUC",
        "Test ROC-AUC against epoch",
        "ROC-AUC and its price",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.to_lowercase().contains("accuracy is taken"));
}

#[test]
fn minesweeper_is_scored_as_its_authors_do_unless_the_file_says_otherwise() {
    let experiment = EXPERIMENT
        .replace(
            "synthetic = { kind = \"sbm\", nodes = 200, classes = 4, features = 8, degree_within = 6, degree_between = 2, labels = 8 }",
            "name = \"minesweeper\"",
        )
        .replace("seeds = [0, 1]", "seeds = [0]")
        .replace("[\"micro-f1\", \"roc-auc\"]", "[\"roc-auc\", \"accuracy\"]")
        .replace("epochs = 6", "epochs = 1");
    let folder = folder_with(&experiment);
    grapevine(
        folder.path(),
        &["run", "x.toml", "--quiet", "--out", "both"],
    )
    .expect(0);
    let own = [
        "run", "x.toml", "--quiet", "--out", "own", "--set", "sweep={}", "--set", "claim=[]",
    ];
    grapevine(folder.path(), &own).expect(0);
    let rows = |name: &str| {
        let path = folder.path().join(name);
        grapevine::experiment::Tables::read(&path)
            .expect("tables")
            .runs
    };
    let (both, own) = (rows("both"), rows("own"));
    assert_eq!(own[0].metric, Some(Metric::RocAuc));
    let of = |metric| {
        both.iter()
            .find(|run| run.metric == Some(metric))
            .expect("a run")
    };
    let (auc, accuracy) = (of(Metric::RocAuc), of(Metric::Accuracy));
    assert_eq!(own[0].parameters, auc.parameters);
    // One logit less: a weight of each of 8 hidden columns twice (own and neighbours), and a bias.
    let parameters = |run: &grapevine::experiment::rows::RunRow| run.parameters.expect("some");
    assert_eq!(parameters(accuracy) - parameters(auc), 17);
}

#[test]
fn metrics_and_splits_that_do_not_fit_the_labels_are_refused_in_a_sentence() {
    let folder = folder_with(&EXPERIMENT.replace(
        "[sweep]\n\"task.metric\" = [\"micro-f1\", \"roc-auc\"]\n",
        "",
    ));
    for (set, said) in [
        (
            vec!["task.metric=\"accuracy\""],
            "\"accuracy\" is for one class of a node, and `sbm-200` has 8 labels of each",
        ),
        (
            vec!["dataset.split={ train_per_class = 5, val_per_class = 5 }"],
            "nodes of this data set have several labels",
        ),
        (
            vec!["dataset={ name = \"cora\" }", "task.metric=\"roc-auc\""],
            "\"roc-auc\" is for two classes or several labels, and `cora` has 7 classes",
        ),
        (
            vec!["dataset={ name = \"cora\" }", "task.metric=\"micro-f1\""],
            "\"micro-f1\" is for several labels of a node",
        ),
        (vec!["task.metric=\"f1\""], "micro-f1"),
        (vec!["task.metrics=\"roc-auc\""], "metric"),
        (vec!["dataset.synthetic.labels=0"], "labels"),
    ] {
        let mut arguments = vec!["run", "x.toml", "--quiet", "--out", "out"];
        for set in &set {
            arguments.extend(["--set", set]);
        }
        let ran = grapevine(folder.path(), &arguments).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}
