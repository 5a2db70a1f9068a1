//! The plan of a training is its timeline: played by itself, it takes the time of the training, to
//! the last bit. [`Case::train`] compares the two, with the ledger, for whatever it trains.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::common::{Case, UNCERTAIN};
use grapevine::graph::{BatchSpec, PartitionMethod};
use grapevine::model::{ModelKind, NormKind};
use grapevine::net::{AllReduceChoice, ExchangeKind};

/// Strategies with options, and whether they can, must or cannot train in mini-batches.
const TRAININGS: [(&str, &str, Option<bool>); 79] = [
    ("full", "", None),
    (
        "full",
        "cache_features = false\noverlap = true\nexchange = \"product\"",
        None,
    ),
    ("fixed", "ratio = 3\nexchange = \"input\"", None),
    (
        "varco",
        "codec = \"top_k\"\nexchange = \"product\"\nmeasure_error = true",
        None,
    ),
    (
        "bns",
        "share = 0.5\ncache_features = false\nexchange = \"product\"",
        Some(false),
    ),
    (
        "pipe",
        "smoothing = \"both\"\ncache_features = false\nexchange = \"product\"",
        Some(false),
    ),
    (
        "adaqp",
        "assign_every = 2\ngroup = 5\nexchange = \"product\"",
        Some(false),
    ),
    ("full", "cache_features = false\noverlap = true", None),
    ("isolated", "", None),
    ("isolated", "overlap = true", None),
    ("fixed", "ratio = 4", None),
    (
        "fixed",
        "ratio = 3\ncodec = \"top_k\"\noverlap = true",
        None,
    ),
    (
        "fixed",
        "codec = \"quantise\"\nratio = 8\nmeasure_error = true",
        None,
    ),
    ("varco", "", None),
    (
        "varco",
        "schedule = { kind = \"adaptive-error\", from = 8, to = 1, patience = 1 }",
        None,
    ),
    (
        "varco",
        "schedule = { kind = \"adaptive-validation\", from = 8, to = 1, patience = 1 }",
        None,
    ),
    ("bns", "share = 0.5", Some(false)),
    (
        "bns",
        "share = 0.5\ncache_features = false\noverlap = true",
        Some(false),
    ),
    (
        "bns",
        "share = 0.4\ncodec = \"quantise\"\ncache_features = false",
        Some(false),
    ),
    ("pipe", "", Some(false)),
    ("sylvie", "fresh_every = 2", Some(false)),
    (
        "sylvie",
        "fresh_every = 3\ncache_features = false\noverlap = true",
        Some(false),
    ),
    ("sylvie", "late = false", None),
    ("ecgraph", "period = 2", Some(false)),
    ("ecgraph", "period = 3\ntune = true", Some(false)),
    (
        "ecgraph",
        "period = 3\nbits = 4\nexchange = \"product\"\noverlap = true",
        Some(false),
    ),
    ("cagnet", "", Some(false)),
    (
        "cagnet",
        "exchange = \"product\"\noverlap = true",
        Some(false),
    ),
    (
        "cagnet",
        "algorithm = \"1.5d\"\nreplication = 1",
        Some(false),
    ),
    (
        "cagnet",
        "algorithm = \"1.5d\"\nreplication = 2",
        Some(false),
    ),
    ("cagnet", "algorithm = \"2d\"", Some(false)),
    ("sancus", "", Some(false)),
    ("sancus", "bound = 3\nthreshold = 0.3", Some(false)),
    ("train", "bound = 2\nexchange = \"product\"", Some(false)),
    ("train", "repartition_every = 1", Some(false)),
    (
        "train",
        "repartition_every = 2\nlate = true\ncache_features = false\noverlap = true",
        Some(false),
    ),
    (
        "train",
        "repartition_every = 2\nbound = 3\nthreshold = 0.3\nexchange = \"input\"",
        Some(false),
    ),
    ("distgnn", "delay = 0", Some(false)),
    ("distgnn", "delay = 2\ncut = \"hdrf\"", Some(false)),
    ("distgnn", "delay = 1", Some(false)),
    (
        "distgnn",
        "cut = \"random\"\ngradients = { codec = \"f16\", every = 2, average = \"models\" }",
        Some(false),
    ),
    (
        "pipe",
        "smoothing = \"both\"\noverlap = true\ncache_features = false",
        Some(false),
    ),
    ("adaqp", "assign_every = 2\ngroup = 5", Some(false)),
    ("adaqp", "bits = \"random\"\noverlap = true", None),
    ("adaqp", "bits = 4\ncache_features = true", None),
    ("grappa", "", None),
    (
        "grappa",
        "schedule = \"regroup\"\nrepartition_every = 2",
        None,
    ),
    (
        "grappa",
        "halo = false\nrepartition_every = 1\nnormalise = \"rho\"",
        None,
    ),
    ("grappa", "remote_sampling = 0.4", None),
    (
        "grappa",
        "repartition_every = 1\nhalo_degrees = \"authors\"",
        None,
    ),
    (
        "grappa",
        "weight = \"edge_ht\"\nnormalise = \"none\"\nshrinkage = \"none\"",
        None,
    ),
    (
        "grappa",
        "weight = \"batch_gram\"\nshrinkage = \"james_stein\"",
        None,
    ),
    ("retexo", "rounds_per_layer = 3", None),
    (
        "retexo",
        "rounds_per_layer = 2\ncodec = \"quantise\"\nratio = 4",
        None,
    ),
    (
        "retexo",
        "form = \"distributed\"\nrounds_per_layer = 2",
        None,
    ),
    ("distdgl", "", Some(true)),
    ("distdgl", "cache = \"1kB\"", Some(true)),
    ("distdgl", "prefetch = false", Some(true)),
    ("distdgl", "degrees = \"block\"", Some(true)),
    ("distdgl", "prefetch = false\ncache = 2000", Some(true)),
    ("distdgl", "cache = \"grappa-halo\"", Some(true)),
    (
        "distdgl",
        "codec = \"top_k\"\nratio = 3\ncache = 800",
        Some(true),
    ),
    ("fedavg", "absent = 0.5", Some(false)),
    ("fedgcn", "hops = 0\nlocal_steps = 2", Some(false)),
    ("fedavg", "local_steps = 1", Some(false)),
    ("llcg", "local_steps = 2", Some(false)),
    ("llcg", "local_steps = 1\nserver_steps = 0", Some(false)),
    (
        "cluster",
        "clusters = 12\nclusters_per_batch = 1",
        Some(false),
    ),
    (
        "cluster",
        "clusters = 24\nclusters_per_batch = 2",
        Some(false),
    ),
    (
        "full",
        "gradients = { codec = { kind = \"top_k\", ratio = 7 } }",
        None,
    ),
    (
        "isolated",
        "gradients = { codec = \"qsgd\", every = 2 }",
        None,
    ),
    (
        "bns",
        "share = 0.5\ngradients = { codec = \"sign\" }",
        Some(false),
    ),
    (
        "pipe",
        "gradients = { codec = { kind = \"random_k\", ratio = 5 }, feedback = false }",
        Some(false),
    ),
    (
        "adaqp",
        "bits = 4\ngradients = { every = 2, average = \"models\" }",
        None,
    ),
    (
        "grappa",
        "gradients = { codec = { kind = \"power_sgd\", rank = 1 } }",
        None,
    ),
    (
        "grappa",
        "gradients = { codec = \"f16\", every = 2, average = \"models\" }",
        None,
    ),
    (
        "retexo",
        "rounds_per_layer = 3\ngradients = { codec = \"bf16\", every = 2, average = \"models\" }",
        None,
    ),
    (
        "distdgl",
        "gradients = { codec = { kind = \"power_sgd\", rank = 2 }, every = 2 }",
        Some(true),
    ),
    (
        "cluster",
        "clusters = 24\nclusters_per_batch = 2\ngradients = { codec = \"sign\", every = 3, average = \"models\" }",
        Some(false),
    ),
];

const ALL_REDUCES: [AllReduceChoice; 7] = [
    AllReduceChoice::Ring,
    AllReduceChoice::HalvingDoubling,
    AllReduceChoice::Tree,
    AllReduceChoice::ParameterServer,
    AllReduceChoice::Hierarchical,
    AllReduceChoice::HierarchicalHalvingDoubling,
    AllReduceChoice::Auto,
];

const MACHINES: &str =
    "machine = { gpus = 2, nic = { bandwidth = \"200Mbps\", latency = \"50us\" } }";

/// A worker that computes slowly behind a narrow link; without neighbours.
const SLOW: &str = "worker = [{ rank = 0, compute = 0.3, bandwidth = \"100Mbps\" }]";

/// Ends that have no time for the next message after one: many are ready at one instant.
const GAP: &str = "overhead = \"5us\"\ngap = \"8us\"";

/// Uncertain links; machines, beside each other, in racks, and at switches; a slow worker.
const WIRINGS: [&str; 7] = [
    UNCERTAIN,
    MACHINES,
    "machine = { gpus = 3, nics = 2, nic = { bandwidth = \"1Gbps\", latency = \"5us\" } }",
    "topology = \"fat-tree\"\nfat_tree = { routing = \"ecmp\" }",
    SLOW,
    GAP,
    "topology = \"dragonfly\"\nmachine = { gpus = 2, nic = { bandwidth = \"1Gbps\", latency = \"5us\" } }",
];

const DENSE: &str = "synthetic = { kind = \"sbm\", nodes = 120, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.2 }";
const CORA: &str = "name = \"cora\"";

fn cases() -> impl Strategy<Value = (usize, bool, Case)> {
    let network = prop::sample::select(vec!["ethernet-1g", "wan", "infiniband-200g"]);
    let how = (
        prop::sample::select(ALL_REDUCES.to_vec()),
        prop::sample::select(vec![
            ExchangeKind::Direct,
            ExchangeKind::Pairwise,
            ExchangeKind::Hierarchical,
        ]),
        network,
        prop::option::of(prop::sample::select(WIRINGS.to_vec())),
    );
    let model = (
        prop::sample::select(vec![
            ModelKind::Gcn,
            ModelKind::Sage,
            ModelKind::Gat,
            ModelKind::Gin,
        ]),
        prop::sample::select(vec![NormKind::None, NormKind::Layer]),
        2_usize..4,
    );
    let parts = (
        prop::sample::select(vec![PartitionMethod::Random, PartitionMethod::Metis]),
        prop::sample::select(vec![1_usize, 2, 3, 4, 6]),
        0_u64..1000,
    );
    let all = (
        0..TRAININGS.len(),
        any::<bool>(),
        any::<bool>(),
        prop::option::of(Just("t4")),
        how,
        model,
        parts,
    );
    all.prop_map(|(training, batched, sparse, first, how, model, parts)| {
        let ((all_reduce, exchange, network, wiring), (kind, norm, layers)) = (how, model);
        // In two levels there must be two.
        let levels = [
            AllReduceChoice::Hierarchical,
            AllReduceChoice::HierarchicalHalvingDoubling,
        ];
        let needed = levels.contains(&all_reduce).then_some(MACHINES);
        let (method, workers, seed) = parts;
        let case = Case {
            data: if sparse { CORA } else { DENSE },
            workers,
            method,
            kind,
            norm,
            layers,
            epochs: 5,
            seed,
            network,
            first,
            wiring: wiring
                .filter(|wiring| needed.is_none() || ![SLOW, UNCERTAIN].contains(wiring))
                .or(needed)
                .unwrap_or_default(),
            all_reduce,
            exchange,
            batch: Some(BatchSpec {
                size: if sparse { 20 } else { 7 },
                fanouts: [3, 2, 2][..layers].to_vec(),
            }),
            ..Case::default()
        };
        (training, batched, case)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_plan_played_by_itself_takes_the_time_of_the_training(
        (training, batched, mut case) in cases(),
    ) {
        let (kind, options, batches) = TRAININGS[training];
        if !batches.unwrap_or(batched) {
            case.batch = None;
        }
        // A grid of two by two.
        if options.contains("algorithm") {
            case.workers = 4;
        }
        // What does not go together is refused elsewhere.
        prop_assume!(!(options.contains("algorithm") && case.kind == ModelKind::Gat));
        prop_assume!(!(options.contains("edge_ht") && case.kind == ModelKind::Gat));
        prop_assume!(!(kind == "distgnn" && case.kind == ModelKind::Gat));
        prop_assume!(!(options.contains("regroup") && case.workers == 1));
        prop_assume!(!(options.contains("distributed") && case.kind == ModelKind::Gin));
        case.train(kind, Case::strategy(kind, options).as_ref());
    }
}

#[test]
fn every_training_of_the_list_is_played_once() {
    for (kind, options, batches) in TRAININGS {
        for batched in [false, true] {
            if batches.is_some_and(|batches| batches != batched) {
                continue;
            }
            let case = Case {
                epochs: 5,
                exchange: if batched {
                    ExchangeKind::Hierarchical
                } else {
                    ExchangeKind::Pairwise
                },
                all_reduce: if batched {
                    AllReduceChoice::Tree
                } else {
                    AllReduceChoice::Hierarchical
                },
                wiring: MACHINES,
                batch: batched.then(|| BatchSpec {
                    size: 7,
                    fanouts: vec![3, 2, 2],
                }),
                ..Case::default()
            };
            case.train(kind, Case::strategy(kind, options).as_ref());
        }
    }
}

/// Batches that are made ready ahead and collectives send from one worker at one time, and who
/// computes beside others sends in another turn than who is played.
#[test]
fn messages_that_are_ready_at_one_instant_go_in_the_order_of_the_training() {
    for (workers, seed) in [(3, 0), (3, 1), (4, 0), (4, 1)] {
        let case = Case {
            data: "synthetic = { kind = \"rmat\", scale = 7, edge_factor = 4, classes = 3, features = 40 }\nsplit = { train = 0.5, val = 0.2 }",
            workers,
            seed,
            epochs: 5,
            network: "infiniband-200g",
            wiring: GAP,
            all_reduce: AllReduceChoice::Auto,
            exchange: ExchangeKind::Pairwise,
            method: PartitionMethod::Random,
            kind: ModelKind::Sage,
            layers: 3,
            batch: Some(BatchSpec {
                size: 10,
                fanouts: vec![1000; 3],
            }),
            ..Case::default()
        };
        case.train("distdgl", Case::strategy("distdgl", "").as_ref());
    }
}

#[test]
fn what_chance_does_on_links_is_played_too() {
    for (number, (kind, options, batches)) in TRAININGS.into_iter().enumerate() {
        let case = Case {
            epochs: 3,
            exchange: [ExchangeKind::Direct, ExchangeKind::Pairwise][number % 2],
            all_reduce: [
                AllReduceChoice::Ring,
                AllReduceChoice::Tree,
                AllReduceChoice::Auto,
            ][number % 3],
            wiring: UNCERTAIN,
            batch: (batches == Some(true)).then(|| BatchSpec {
                size: 7,
                fanouts: vec![3, 2, 2],
            }),
            ..Case::default()
        };
        case.train(kind, Case::strategy(kind, options).as_ref());
    }
}

#[test]
fn every_strategy_is_played_with_every_schedule_of_a_star() {
    let schedules = [
        AllReduceChoice::Ring,
        AllReduceChoice::HalvingDoubling,
        AllReduceChoice::Tree,
        AllReduceChoice::ParameterServer,
        AllReduceChoice::Auto,
    ];
    let mut seen = BTreeSet::new();
    for (kind, options, batches) in TRAININGS {
        // The first of each kind.
        if !seen.insert(kind) {
            continue;
        }
        for all_reduce in schedules {
            for exchange in [ExchangeKind::Direct, ExchangeKind::Pairwise] {
                let case = Case {
                    epochs: 2,
                    workers: 3,
                    all_reduce,
                    exchange,
                    batch: (batches == Some(true)).then(|| BatchSpec {
                        size: 7,
                        fanouts: vec![3, 2, 2],
                    }),
                    ..Case::default()
                };
                case.train(kind, Case::strategy(kind, options).as_ref());
            }
        }
    }
}
