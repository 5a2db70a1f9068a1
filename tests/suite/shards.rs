//! Training from shards on disk is training on the graph that they were cut from, to the bit.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::common::{CORA, Case, losses};
use grapevine::experiment::Tables;
use grapevine::graph::{
    Batches, BoundaryPlan, Csr, DatasetSpec, Divided, Part, Partition, PartitionMethod, Sharding,
    Shards,
};
use grapevine::model::ModelKind;
use grapevine::sim::{Outcome, Setting};
use grapevine::strategies::{self, NeedsOfOthers, Strategy};

/// Strategies that need no more than a part, and numbers or lists of nodes of the others.
const FROM_SHARDS: [(&str, &str); 36] = [
    ("full", ""),
    ("full", "cache_features = false\noverlap = true"),
    ("isolated", ""),
    ("fixed", "ratio = 2"),
    ("varco", ""),
    ("bns", "share = 0.5"),
    ("bns", "share = 0.5\ncache_features = false"),
    ("pipe", ""),
    ("pipe", "cache_features = false\nsmoothing = \"both\""),
    ("adaqp", "assign_every = 2"),
    ("adaqp", "bits = 4"),
    ("retexo", ""),
    ("sylvie", ""),
    ("sylvie", "fresh_every = 3"),
    ("cagnet", ""),
    ("sancus", "bound = 2"),
    ("ecgraph", "period = 2\ntune = true"),
    ("fedavg", "absent = 0.4"),
    ("train", "late = true"),
    ("train", "rows = \"blocks\""),
    ("train", "bound = 2"),
    (
        "train",
        "gradients = { codec = { kind = \"power_sgd\", rank = 2 } }",
    ),
    (
        "train",
        "codec = \"top_k\"\nratio = 4\ncache_features = false",
    ),
    (
        "train",
        "codec = { kind = \"quantise_rows\", bits = 4 }\ncache_features = false",
    ),
    (
        "varco",
        "schedule = { kind = \"adaptive-validation\", from = 8 }",
    ),
    ("llcg", "local_steps = 2"),
    ("fedgcn", ""),
    ("fedgcn", "hops = 1"),
    ("grappa", "repartition_every = 2"),
    ("grappa", "repartition_every = 1\nhalo = false"),
    ("grappa", "schedule = \"fixed\"\nhalo_degrees = \"seen\""),
    (
        "grappa",
        "repartition_every = 2\nkeep_halo = false\nhalo_degrees = \"authors\"",
    ),
    (
        "grappa",
        "repartition_every = 1\nnormalise = \"rho\"\nweight = \"node_ht\"",
    ),
    (
        "grappa",
        "repartition_every = 3\nhalo = false\nremote_sampling = 0.5",
    ),
    (
        "grappa",
        "weight = \"batch_gram\"\nshrinkage = \"james_stein\"",
    ),
    (
        "grappa",
        "weight = \"edge_ht\"\ngradients = { every = 2, average = \"models\" }",
    ),
];

/// Writes the parts of a setting into a folder.
fn write(setting: &Setting, folder: &Path) {
    let sharding = Sharding {
        dataset: &setting.dataset,
        spec: &DatasetSpec::default(),
        partition: &setting.partition,
        boundary: &setting.boundary,
        divided: Divided {
            method: PartitionMethod::Random,
            seed: 0,
            objective: None,
            concentration: None,
        },
    };
    sharding.write(folder).expect("it is written");
}

/// The setting on shards: with the whole graph beside them, as one process has it, or without, as
/// each of several processes.
fn from_shards(
    setting: &Setting,
    folder: &Path,
    with_graph: bool,
    others: NeedsOfOthers,
) -> Arc<Setting> {
    let shards = Arc::new(Shards::open(folder).expect("shards"));
    let counts = shards.counts();
    let base = Setting {
        counts: Arc::new(counts.clone()),
        ..setting.clone()
    };
    if with_graph {
        let whole = shards.whole().expect("all of them");
        return Arc::new(Setting {
            dataset: Arc::clone(&whole.dataset),
            partition: Arc::clone(&whole.partition),
            boundary: Arc::clone(&whole.boundary),
            shards: Some(shards),
            ..base
        });
    }
    let partition = Partition {
        parts: counts.workers(),
        assignment: Vec::new(),
    };
    let boundary = match others {
        NeedsOfOthers::Boundary => BoundaryPlan::clone(&setting.boundary),
        _ => BoundaryPlan {
            parts: vec![Part::default(); counts.workers()],
            nodes: counts.nodes,
            edges: counts.edges,
        },
    };
    let batches = base.batches.as_ref().map(|batches| {
        Arc::new(Batches {
            graph: Arc::new(Csr::undirected(0, std::iter::empty())),
            train: Vec::new(),
            ..Batches::clone(batches)
        })
    });
    Arc::new(Setting {
        batches,
        dataset: Arc::new(shards.outline()),
        partition: Arc::new(partition),
        boundary: Arc::new(boundary),
        shards: Some(shards),
        ..base
    })
}

fn train(strategy: &dyn Strategy, setting: &Arc<Setting>) -> Outcome {
    let training = strategy.fit(setting).expect("it fits");
    strategies::run(&*training, false, Arc::new(|_| {})).expect("it trains")
}

/// Trains on a graph and on its shards; losses, scores, bytes and times are equal.
fn assert_same(case: &Case, kind: &str, options: &str) {
    let strategy = Case::strategy(kind, options);
    let batches = case.batch.is_some();
    let others = strategy.plans_from(batches).others;
    assert_ne!(others, NeedsOfOthers::Graph, "{kind} {options}");
    let setting = case.setting(strategy.as_ref());
    let folder = tempfile::tempdir().expect("a folder");
    write(&setting, folder.path());
    let expected = train(strategy.as_ref(), &setting);
    // What looks at edges is played with processes: in simulation all of the graph is there.
    let alone = others != NeedsOfOthers::Edges;
    for with_graph in [true, false].into_iter().filter(|&all| all || alone) {
        let what = format!("{kind} {options}, graph {with_graph}");
        let setting = from_shards(&setting, folder.path(), with_graph, others);
        let found = train(strategy.as_ref(), &setting);
        let bits = |outcome| losses(outcome).into_iter().map(f64::to_bits);
        assert!(bits(&found).eq(bits(&expected)), "{what}");
        let scores = |outcome: &Outcome| -> Vec<_> {
            outcome.epochs.iter().map(|record| record.scores).collect()
        };
        assert_eq!(scores(&found), scores(&expected), "{what}");
        assert_eq!(found.ledger, expected.ledger, "{what}");
        if with_graph {
            let times = |outcome: &Outcome| -> Vec<_> {
                outcome.epochs.iter().map(|epoch| epoch.simulated).collect()
            };
            assert_eq!(times(&found), times(&expected), "{what}");
        }
    }
}

#[test]
fn strategies_train_from_shards_what_they_train_from_the_graph() {
    for (kind, options) in FROM_SHARDS {
        let case = Case {
            workers: 3,
            epochs: 5,
            ..Case::default()
        };
        assert_same(&case, kind, options);
    }
}

#[test]
fn chunks_train_in_mini_batches_from_shards_as_from_the_graph() {
    let case = Case {
        workers: 3,
        ..Case::in_batches()
    };
    assert_same(&case, "grappa", "repartition_every = 2");
    let own =
        "repartition_every = 1\nhalo = false\nshrinkage = \"james_stein\"\nweight = \"batch_mean\"";
    assert_same(&case, "grappa", own);
}

#[test]
fn neighbours_are_drawn_from_shards_as_from_the_graph() {
    let case = Case {
        workers: 3,
        ..Case::in_batches()
    };
    for (kind, options) in [
        ("distdgl", ""),
        ("distdgl", "cache = \"400B\""),
        ("full", ""),
        ("fixed", "ratio = 2"),
        ("adaqp", "bits = 4"),
        ("isolated", ""),
        ("retexo", "rounds_per_layer = 2"),
    ] {
        assert_same(&case, kind, options);
    }
}

#[test]
fn so_they_do_with_sparse_and_halved_features_several_labels_and_other_models() {
    let halved = "synthetic = { kind = 'rmat', scale = 7, edge_factor = 4, classes = 3, features = 6 }\nfeature_storage = 'f16'";
    let several = "synthetic = { kind = 'sbm', nodes = 120, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0, labels = 5 }";
    for (data, kind) in [
        (CORA, ModelKind::Gcn),
        (halved, ModelKind::Sage),
        (several, ModelKind::Gat),
        ("name = 'minesweeper'", ModelKind::Gin),
    ] {
        let case = Case {
            data,
            kind,
            layers: 2,
            epochs: 2,
            ..Case::default()
        };
        for (name, options) in [
            ("full", "cache_features = false"),
            ("bns", ""),
            ("retexo", ""),
            ("grappa", "repartition_every = 1"),
        ] {
            assert_same(&case, name, options);
        }
    }
}

/// The experiment of the command's tests on shards of three workers.
fn on_shards(workers: usize, more: &str) -> tempfile::TempDir {
    let data = "synthetic = { kind = \"sbm\", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }\nsplit = { train = 0.5, val = 0.2 }\n";
    let experiment = EXPERIMENT
        .replace(data, "shards = \"shards\"\n")
        .replace(
            "method = \"random\"\nworkers = 3",
            &format!("workers = {workers}"),
        )
        .replace(
            "[[strategy]]\nkind = \"grappa\"\nrepartition_every = 2\n",
            more,
        );
    assert!(!experiment.contains("synthetic"), "{experiment}");
    let folder = folder_with(&experiment);
    let dataset = "{ kind = \"sbm\", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }";
    let written = grapevine(
        folder.path(),
        &[
            "partition",
            dataset,
            "--workers",
            "3",
            "--method",
            "random",
            "--seed",
            "4",
            "--set",
            "split={ train = 0.5, val = 0.2, seed = 7 }",
            "--out",
            "shards",
            "--shards",
        ],
    )
    .expect(0);
    assert!(
        written.stderr.contains("wrote 3 shards to shards"),
        "{}",
        written.stderr
    );
    folder
}

#[test]
fn a_folder_that_the_program_wrote_is_trained_from_and_its_tables_are_those_of_the_graph() {
    let shards = on_shards(3, "");
    grapevine(shards.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
    grapevine(shards.path(), &["verify", "out"]).expect(0);
    let again = ["run", "x.toml", "--quiet", "--out", "out", "--resume"];
    grapevine(shards.path(), &again).expect(0);
    let projected = grapevine(shards.path(), &["project", "x.toml", "--json"]).expect(0);
    assert!(projected.stdout.contains("payload"), "{}", projected.stdout);

    let graph = EXPERIMENT
        .replace("val = 0.2 }", "val = 0.2, seed = 7 }")
        .replace("workers = 3", "workers = 3\nseed = 4")
        .replace(
            "[[strategy]]\nkind = \"grappa\"\nrepartition_every = 2\n",
            "",
        );
    let graph = folder_with(&graph);
    grapevine(graph.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
    let read = |folder: &Path| Tables::read(&folder.join("out")).expect("tables");
    let (mut found, mut expected) = (read(shards.path()), read(graph.path()));
    for tables in [&mut found, &mut expected] {
        for row in &mut tables.epochs {
            row.measured_seconds = 0.0;
        }
    }
    assert_eq!(found.epochs, expected.epochs);
    assert_eq!(found.traffic, expected.traffic);
    for (found, expected) in found.runs.iter().zip(&expected.runs) {
        assert_eq!(found.partitioner, expected.partitioner);
        assert_eq!(found.edge_cut, expected.edge_cut);
        assert_eq!(found.boundary_rows, expected.boundary_rows);
        assert_eq!(found.dataset, expected.dataset);
    }
}

/// What is projected of Cora on two workers, from its shards and from the graph.
fn projected(more: &str, strategy: &str) -> [serde_json::Value; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["partition", "cora", "--workers", "2", "--method", "random"];
    let out = ["--out", "shards", "--shards"];
    grapevine(folder.path(), &[&arguments[..], &out].concat()).expect(0);
    let of = |data: &str, partition: &str| {
        let text = format!(
            "name = \"x\"\nseeds = [0]\ndataset = {{ {data} }}\nmodel = {{ kind = \"gcn\" }}\n\
             training = {{ epochs = 3{more} }}\npartition = {{ workers = 2{partition} }}\n\
             network = {{ preset = \"ethernet-1g\" }}\n\
             compute = {{ timing = {{ profile = \"t4\" }} }}\n[[strategy]]\n{strategy}\n"
        );
        fs::write(folder.path().join("x.toml"), text).expect("it can be written");
        let found = grapevine(folder.path(), &["project", "x.toml", "--json"]).expect(0);
        found.json()
    };
    [
        of("shards = \"shards\"", ""),
        of("name = \"cora\"", ", method = \"random\""),
    ]
}

/// The first number under a key, wherever it stands.
fn first(value: &serde_json::Value, key: &str) -> Option<f64> {
    match value {
        serde_json::Value::Object(map) => {
            let here = map.get(key).and_then(serde_json::Value::as_f64);
            here.or_else(|| map.values().find_map(|value| first(value, key)))
        }
        serde_json::Value::Array(all) => all.iter().find_map(|value| first(value, key)),
        _ => None,
    }
}

#[test]
fn sparse_shards_are_projected_with_codecs_that_lose_in_mini_batches() {
    let batch = ", batch = { size = 20, fanouts = [3, 3] }";
    for strategy in [
        "kind = \"fixed\"\nexchange = \"input\"",
        "kind = \"distdgl\"\ncodec = \"top_k\"\nratio = 4",
        "kind = \"retexo\"\ncodec = \"top_k\"\nratio = 4",
    ] {
        let [found, _] = projected(batch, strategy);
        assert!(first(&found, "memory_bytes").is_some(), "{found}");
    }
}

#[test]
fn values_of_the_halo_count_in_plans_from_shards_where_features_are_resent() {
    for strategy in [
        "kind = \"pipe\"\ncache_features = false",
        "kind = \"bns\"\nshare = 0.5\ncache_features = false",
    ] {
        let found = projected("", strategy);
        let [shards, graph] = found.each_ref().map(|found| first(found, "memory_bytes"));
        let (shards, graph) = (shards.expect("a number"), graph.expect("a number"));
        // Which part of the boundary is drawn has not as many values as any other.
        assert!((shards / graph - 1.0).abs() < 0.01, "{strategy}: {found:?}");
    }
}

#[test]
fn shards_are_of_what_metis_kept_small() {
    for (made, same, other) in [
        (&["--objective", "volume"][..], "volume", "cut"),
        // Without it METIS keeps the cut small.
        (&[], "cut", "volume"),
    ] {
        let folder = on_shards(3, "");
        fs::remove_dir_all(folder.path().join("shards")).expect("the shards of another method");
        let mut arguments = vec!["partition", "cora", "--workers", "3", "--out", "shards"];
        arguments.extend(made.iter().chain(&["--shards"]));
        grapevine(folder.path(), &arguments).expect(0);
        for (objective, code) in [(same, 0), (other, 2)] {
            let set = format!("partition.objective={objective}");
            let ran = grapevine(folder.path(), &["project", "x.toml", "--set", &set]).expect(code);
            let refused = "asks for another partition than that of the shards";
            assert_eq!(ran.stderr.contains(refused), code == 2, "{}", ran.stderr);
        }
    }
}

#[test]
fn what_does_not_fit_shards_is_refused_in_a_sentence() {
    let refused = |workers: usize, more: &str, sets: &[&str], expected: &str| {
        let folder = on_shards(workers, more);
        let mut arguments = vec!["run", "x.toml", "--quiet", "--out", "out"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let ran = grapevine(folder.path(), &arguments).expect(2);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(!folder.path().join("out").exists(), "nothing is written");
    };
    let other = "is 4, and the shards are of 3 parts: write `workers = 3`";
    refused(4, "", &[], other);
    for kind in ["cluster", "distgnn"] {
        let entry = format!("[[strategy]]\nkind = \"{kind}\"\n");
        refused(
            3,
            &entry,
            &[],
            "looks at more of the graph than a worker's own shard",
        );
    }
    let chunks = "[[strategy]]\nkind = \"grappa\"\nchunks = 6\n";
    refused(3, chunks, &[], "trains on parts of its own");
    refused(
        3,
        "",
        &["partition.method=ldg"],
        "asks for another partition than that of the shards",
    );
    refused(
        3,
        "",
        &["dataset.order=degree"],
        "was settled when the shards were written",
    );
    refused(3, "", &["dataset.shards=absent"], "cannot read ");

    let folder = on_shards(3, "");
    let file = folder.path().join("shards/part-2/features.npy");
    let mut bytes = fs::read(&file).expect("features");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("damaged");
    let ran = grapevine(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(2);
    assert!(
        ran.stderr.contains("part-2/features.npy: is damaged"),
        "{}",
        ran.stderr
    );
}
