//! Mini-batches with sampled neighbours, in every strategy that has them.

use std::collections::BTreeMap;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::common::{Case, KINDS, assert_close, losses};
use crate::reference::{Term, degrees, train, whole};
use crate::variant::{PLAIN, Variant};
use grapevine::experiment::Tables;
use grapevine::experiment::rows::RunRow;
use grapevine::graph::{BatchSpec, Csr, SampledLayer, Sampler, Steps, shuffled};
use grapevine::model::{Aggregation, Block, ModelKind, OptimizerConfig, SparseMatrix};
use grapevine::net::TrafficKind;
use grapevine::sim::{Outcome, Setting};

/// Small steps, so that rounding does not send the trajectories apart.
const STEADY: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.01,
    weight_decay: 0.0,
    momentum: 0.5,
};

fn batch(size: usize, fanouts: &[usize]) -> BatchSpec {
    let fanouts = fanouts.to_vec();
    BatchSpec { size, fanouts }
}

fn case(kind: ModelKind, workers: usize) -> Case {
    Case {
        kind,
        workers,
        optimizer: STEADY,
        ..Case::default()
    }
}

/// As many steps as the run takes, each in place of an epoch: what the reference trains.
fn step_by_step(setting: &Setting, steps: usize) -> Setting {
    let mut setting = setting.clone();
    setting.training.epochs *= steps;
    setting
}

/// Means over the steps of each epoch.
fn by_epoch(losses: &[f64], steps: usize) -> Vec<f64> {
    let epochs = losses.chunks(steps);
    epochs
        .map(|losses| losses.iter().sum::<f64>() / steps as f64)
        .collect()
}

/// A term in which every node reads only what is drawn for it: `d/s` times as much.
fn drawn(mut term: Term, spec: &BatchSpec, seed: u64, epoch: usize, step: usize) -> Term {
    let layers = spec.fanouts.len();
    let (graph, nodes) = (term.graph.clone(), term.graph.nodes());
    let sampler = Sampler::new(seed, epoch, step, &spec.fanouts);
    let layer = |layer: usize| {
        let edges = (0_u32..).take(nodes).flat_map(|v| {
            let neighbours = graph.neighbours(v as usize);
            let chosen = sampler.draw(layers - 1 - layer, v, neighbours, |u| u);
            chosen.into_iter().map(move |u| (u, v))
        });
        Csr::from_edges(nodes, edges)
    };
    term.drawn = (0..layers).map(layer).collect();
    let (drawn, scale) = (term.drawn.clone(), term.scale);
    term.scale = Box::new(move |layer, v, u| {
        let (all, some) = (graph.degree(v as usize), drawn[layer].degree(v as usize));
        let factor = if v == u {
            1.0
        } else {
            all as f32 / some as f32
        };
        factor * scale(layer, v, u)
    });
    term
}

/// The training nodes of each worker's batch.
fn batches(setting: &Setting, steps: &Steps, epoch: usize, step: usize) -> Vec<Vec<u32>> {
    let all = setting.dataset.split.train.iter().copied();
    (0..setting.workers())
        .map(|worker| {
            let own = |&v: &u32| setting.partition.assignment[v as usize] as usize == worker;
            let own: Vec<u32> = all.clone().filter(own).collect();
            // A shuffle does not look at what it moves.
            let mut batch = shuffled(setting.seed, epoch, worker, &own);
            batch = batch[steps.range(worker, step)].to_vec();
            batch.sort_unstable();
            batch
        })
        .collect()
}

fn weighted(nodes: impl IntoIterator<Item = u32>, total: usize) -> Vec<(u32, f64)> {
    let weight = 1.0 / total as f64;
    nodes.into_iter().map(|v| (v, weight)).collect()
}

fn payload(outcome: &Outcome, kind: TrafficKind) -> u64 {
    let epochs = outcome.ledger.iter();
    epochs.map(|(_, traffic)| traffic.payload_of(kind).0).sum()
}

/// Strategies and options that go with batches.
const ALL: [(&str, &str); 12] = [
    ("full", ""),
    ("full", "cache_features = false"),
    ("isolated", ""),
    ("fixed", "ratio = 4"),
    ("fixed", "ratio = 4\ncache_features = true"),
    (
        "varco",
        "schedule = { kind = \"linear\", from = 8, to = 1 }",
    ),
    ("grappa", "repartition_every = 2"),
    (
        "grappa",
        "repartition_every = 2\nhalo_degrees = \"authors\"",
    ),
    (
        "grappa",
        "repartition_every = 1\nhalo = false\nweight = \"node_ht\"\nshrinkage = \"none\"",
    ),
    (
        "grappa",
        "repartition_every = 2\nweight = \"batch_gram\"\nshrinkage = \"james_stein\"",
    ),
    (
        "grappa",
        "chunks = 8\nschedule = \"regroup\"\nrepartition_every = 1\nremote_sampling = 0.5",
    ),
    ("retexo", ""),
];

#[test]
fn one_batch_of_all_training_nodes_with_all_neighbours_is_full_batch_training() {
    for kind in KINDS {
        for workers in [1, 4] {
            for (strategy, options) in ALL {
                // A worker has as many chunks whatever the number of workers.
                let options = match workers {
                    1 => options.replace("chunks = 8", "chunks = 2"),
                    _ => options.to_owned(),
                };
                let once = case(kind, workers);
                let step = Case {
                    batch: Some(batch(1000, &[1000; 3])),
                    ..once.clone()
                };
                let what = format!("{kind:?}, {workers} workers, {strategy} {options}");
                let (found, expected) =
                    (step.run(strategy, &options), once.run(strategy, &options));
                // batch_gram measures norms in every step, not only where it loads.
                let epochs = if options.contains("batch_gram") {
                    2
                } else {
                    usize::MAX
                };
                let compared = |outcome: &Outcome| -> Vec<f64> {
                    losses(outcome).into_iter().take(epochs).collect()
                };
                if !options.contains("batch_gram") || workers == 1 {
                    assert_close(&compared(&found), &compared(&expected), 1e-4, &what);
                } else {
                    assert_close(&losses(&found)[..1], &losses(&expected)[..1], 1e-4, &what);
                }
                assert_eq!(
                    payload(&found, TrafficKind::ParameterGradient),
                    payload(&expected, TrafficKind::ParameterGradient),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn workers_that_sample_together_train_as_one_process_with_all_their_batches() {
    for kind in KINDS {
        // With 40 workers some have no training node, or none left in the last step.
        let sizes: [(usize, usize, &[usize]); 4] = [
            (1, 7, &[2, 3, 1]),
            (4, 6, &[3, 2, 2]),
            (40, 2, &[1, 2, 2]),
            (4, 6, &[2]),
        ];
        for (workers, size, fanouts) in sizes {
            let case = Case {
                batch: Some(batch(size, fanouts)),
                layers: fanouts.len(),
                ..case(kind, workers)
            };
            let spec = case.batch.clone().unwrap();
            let setting = case.setting(Case::strategy("full", "").as_ref());
            let steps = setting.steps();
            assert!(steps.count() > 1);
            let terms: Vec<[Term; 1]> = (0..case.epochs)
                .flat_map(|epoch| (0..steps.count()).map(move |step| (epoch, step)))
                .map(|(epoch, step)| {
                    let mut term = whole(&setting);
                    let all = batches(&setting, &steps, epoch, step).concat();
                    term.weights = weighted(all.clone(), all.len());
                    [drawn(term, &spec, setting.seed, epoch, step)]
                })
                .collect();
            let expected = train(&step_by_step(&setting, steps.count()), |step| &terms[step]);
            let expected = by_epoch(&expected.losses, steps.count());
            for options in ["", "cache_features = false"] {
                let what = format!("{kind:?}, {workers} workers, {options}");
                let found = losses(&case.run("full", options));
                assert_close(&found, &expected, 1e-5, &what);
            }
        }
    }
}

#[test]
fn isolated_workers_sample_among_their_own_nodes() {
    for kind in KINDS {
        let case = Case {
            batch: Some(batch(6, &[2, 3, 2])),
            ..case(kind, 4)
        };
        let spec = case.batch.clone().unwrap();
        let setting = case.setting(Case::strategy("isolated", "").as_ref());
        let steps = setting.steps();
        let owner = |v: u32| setting.partition.assignment[v as usize];
        let graph = &setting.dataset.graph;
        let inside = graph.iter_edges().filter(|&(u, v)| owner(u) == owner(v));
        let inside = Csr::from_edges(graph.nodes(), inside);
        let terms: Vec<[Term; 1]> = (0..case.epochs)
            .flat_map(|epoch| (0..steps.count()).map(move |step| (epoch, step)))
            .map(|(epoch, step)| {
                let all = batches(&setting, &steps, epoch, step).concat();
                let weights = weighted(all.clone(), all.len());
                let term = Term::plain(inside.clone(), degrees(&inside), weights);
                [drawn(term, &spec, setting.seed, epoch, step)]
            })
            .collect();
        let expected = train(&step_by_step(&setting, steps.count()), |step| &terms[step]);
        let expected = by_epoch(&expected.losses, steps.count());
        let outcome = case.run("isolated", "");
        assert_close(&losses(&outcome), &expected, 1e-5, &format!("{kind:?}"));
        let gradients = payload(&outcome, TrafficKind::ParameterGradient);
        let all = outcome.ledger.iter().map(|(_, t)| t);
        let all: u64 = all
            .flat_map(|t| TrafficKind::ALL.map(|kind| t.payload_of(kind).0))
            .sum();
        assert_eq!(all, gradients, "nothing but gradients travels");
    }
}

fn grappa_variants() -> Vec<Variant> {
    let weighted = |weight, shrinkage, normalise| Variant {
        weight,
        shrinkage,
        normalise,
        ..PLAIN
    };
    let without_halo = |variant| Variant {
        halo: false,
        ..variant
    };
    vec![
        PLAIN,
        weighted("node_ht", "kappa", "mean"),
        without_halo(weighted("batch_mean", "kappa", "mean")),
        without_halo(weighted("batch_mean", "james_stein", "none")),
        without_halo(weighted("node_hajek", "none", "rho")),
        Variant {
            each: 2,
            schedule: "fixed",
            sampling: 0.5,
            ..without_halo(weighted("batch_mean", "lambda", "mean"))
        },
    ]
}

#[test]
fn grappa_samples_in_its_working_graph_and_weighs_each_batch_by_its_own_seeds() {
    let by_edge = [true, false].map(|halo| Variant {
        halo,
        weight: "edge_ht",
        ..PLAIN
    });
    let authors = Variant {
        degrees: "authors",
        ..PLAIN
    };
    for (kind, variants) in [
        (ModelKind::Sage, grappa_variants()),
        (ModelKind::Gat, grappa_variants()),
        (ModelKind::Gcn, by_edge.to_vec()),
        (ModelKind::Gcn, vec![authors]),
    ] {
        for variant in variants {
            let case = Case {
                epochs: 4,
                batch: Some(batch(6, &[2, 3, 2])),
                ..case(kind, 3)
            };
            let spec = case.batch.clone().unwrap();
            let options = variant.options(case.workers);
            let setting = case.setting(Case::strategy("grappa", &options).as_ref());
            let steps = setting.steps();
            assert!(steps.count() > 1);
            let terms: Vec<Vec<Term>> = (0..case.epochs)
                .flat_map(|epoch| (0..steps.count()).map(move |step| (epoch, step)))
                .map(|(epoch, step)| {
                    let batch = |worker: usize, train: &[u32]| {
                        let order = shuffled(setting.seed, epoch, worker, train);
                        let mut batch = order[steps.range(worker, step)].to_vec();
                        batch.sort_unstable();
                        batch
                    };
                    let terms = variant.terms_of(&setting, epoch, &batch).into_iter();
                    let term = |term| drawn(term, &spec, setting.seed, epoch, step);
                    terms.map(term).collect()
                })
                .collect();
            let expected = train(&step_by_step(&setting, steps.count()), |step| &terms[step]);
            let expected = by_epoch(&expected.losses, steps.count());
            let found = losses(&case.run("grappa", &options));
            assert_close(&found, &expected, 1e-5, &format!("{kind:?}\n{options}"));
        }
    }
}

#[test]
fn ids_are_sent_for_every_row_and_features_that_are_kept_come_once() {
    let case = Case {
        epochs: 6,
        batch: Some(batch(5, &[3, 2, 2])),
        ..case(ModelKind::Gcn, 4)
    };
    let setting = case.setting(Case::strategy("full", "").as_ref());
    let (kept, anew) = (
        case.run("full", "exchange = \"input\""),
        case.run("full", "exchange = \"input\"\ncache_features = false"),
    );
    assert_eq!(losses(&kept), losses(&anew));
    let by_layer = |outcome: &Outcome| {
        let mut bytes: BTreeMap<(u32, TrafficKind), u64> = BTreeMap::new();
        for (_, traffic) in outcome.ledger.iter() {
            for (lane, payload, count) in traffic.iter() {
                *bytes.entry((lane.layer, lane.kind)).or_default() += payload.0 * count;
            }
        }
        bytes
    };
    // Ten features, eight hidden columns and three classes: the product is narrower in the first
    // and the last layer.
    let narrower = by_layer(&case.run("full", "cache_features = false"));
    for (layer, width) in [(0, 8), (1, 8), (2, 3)] {
        let rows = narrower[&(layer, TrafficKind::Sample)] * width;
        assert_eq!(narrower[&(layer, TrafficKind::Activation)], rows);
        assert_eq!(narrower[&(layer, TrafficKind::ActivationGradient)], rows);
    }
    assert_eq!(narrower.get(&(0, TrafficKind::Feature)), None);
    for outcome in [&kept, &anew] {
        let bytes = by_layer(outcome);
        for (layer, width) in (0_u32..).zip(&setting.model.widths[..3]) {
            let ids = bytes[&(layer, TrafficKind::Sample)];
            let rows = ids * *width as u64;
            if layer == 0 {
                assert_eq!(bytes[&(layer, TrafficKind::Feature)], rows);
            } else {
                assert_eq!(bytes[&(layer, TrafficKind::Activation)], rows);
                assert_eq!(bytes[&(layer, TrafficKind::ActivationGradient)], rows);
            }
        }
    }
    let all = (4 * setting.model.features() * setting.boundary.boundary_rows()) as u64;
    let features = |outcome| payload(outcome, TrafficKind::Feature);
    assert!(features(&kept) <= all && features(&anew) > features(&kept));
}

#[test]
fn parameter_gradients_travel_once_a_step() {
    for (strategy, options) in ALL {
        let once = case(ModelKind::Sage, 4);
        let many = Case {
            batch: Some(batch(4, &[2, 2, 2])),
            ..once.clone()
        };
        let of =
            |case: &Case| payload(&case.run(strategy, options), TrafficKind::ParameterGradient);
        let (one, all) = (of(&once), of(&many));
        assert_eq!(all % one, 0, "{strategy}");
        assert!(all / one >= 4, "{strategy}: {} steps", all / one);
        if !options.contains("regroup") {
            let setting = many.setting(Case::strategy(strategy, options).as_ref());
            assert_eq!(all / one, setting.steps().count() as u64, "{strategy}");
        }
    }
}

/// A sparse matrix as a dense one.
fn dense(matrix: &SparseMatrix) -> Vec<f64> {
    let mut values = vec![0.0; matrix.rows() * matrix.columns()];
    let rows = matrix.by_row();
    for row in 0..matrix.rows() {
        for entry in rows.entries(row) {
            let place = row * matrix.columns() + rows.columns[entry] as usize;
            values[place] = f64::from(matrix.values()[entry]);
        }
    }
    values
}

#[test]
fn the_mean_of_the_sampled_matrices_over_all_samples_is_the_matrix() {
    let nodes = 5;
    let edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4)];
    let graph = Csr::undirected(nodes, edges.into_iter());
    let of_graph = degrees(&graph);
    let choices: Vec<Vec<Vec<u32>>> = (0..nodes)
        .map(|v| {
            let all = graph.neighbours(v);
            let count = all.len().min(2) as u32;
            let sets = (0_u32..1 << all.len()).filter(|set| set.count_ones() == count);
            let chosen = |set: u32| (0..all.len()).filter(move |u| set & (1 << u) != 0);
            sets.map(|set| chosen(set).map(|u| all[u]).collect())
                .collect()
        })
        .collect();
    let samples: usize = choices.iter().map(Vec::len).product();
    assert!(samples > 100);
    for aggregation in [
        Aggregation::SymmetricWithSelf,
        Aggregation::Symmetric,
        Aggregation::Mean,
        Aggregation::MeanWithSelf,
        Aggregation::NeighboursAndSelf,
    ] {
        let mut mean = vec![0.0; nodes * nodes];
        for sample in 0..samples {
            let mut rest = sample;
            let edges = (0_u32..).zip(&choices).flat_map(|(v, choices)| {
                let chosen = &choices[rest % choices.len()];
                rest /= choices.len();
                chosen.iter().map(move |&u| (u, v)).collect::<Vec<_>>()
            });
            let layer = SampledLayer {
                rows: (0..nodes as u32).collect(),
                outputs: nodes,
                own: nodes,
                adjacency: Csr::from_edges(nodes, edges.collect::<Vec<_>>().into_iter()),
                degrees: of_graph.clone(),
            };
            let matrix = dense(&Block::sampled(&layer, &of_graph, aggregation).matrix);
            for (sum, value) in mean.iter_mut().zip(matrix) {
                *sum += value / samples as f64;
            }
        }
        let expected = dense(&Block::new(&graph, &of_graph, aggregation).matrix);
        for (found, expected) in mean.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{aggregation:?}: {mean:?}");
        }
    }
}

#[test]
fn all_strategies_and_models_run_in_batches_and_their_results_hold_together() {
    let folder = folder_with(&EXPERIMENT.replace("seeds = [0, 1]", "seeds = [0]"));
    let arguments = [
        "run",
        "x.toml",
        "--quiet",
        "--out",
        "out",
        "--set",
        "training.batch={ size = 30, fanouts = [4, 3] }",
        "--set",
        "sweep.\"model.kind\"=[\"gcn\", \"sage\", \"gat\"]",
    ];
    grapevine(folder.path(), &arguments).expect(0);
    let tables = Tables::read(&folder.path().join("out")).unwrap();
    assert_eq!(tables.runs.len(), 18, "six strategies, three models");
    assert!(tables.runs.iter().all(RunRow::is_ok));
    let asks = |run: &&RunRow| run.measured.unwrap().sample_bytes > 0;
    assert_eq!(
        tables.runs.iter().filter(asks).count(),
        9,
        "full, fixed, varco"
    );
    let ran = grapevine(folder.path(), &["verify", "out"]).expect(0);
    assert!(
        ran.stdout.contains("every invariant holds"),
        "{}",
        ran.stdout
    );

    let mut project = vec!["project", "x.toml", "--json"];
    project.extend(&arguments[5..]);
    let projected = grapevine(folder.path(), &project).expect(0).json();
    let cells = projected.as_array().expect("a list of cells");
    assert_eq!(cells.len(), 18);
    for (cell, run) in cells.iter().zip(&tables.runs) {
        let sent = run.measured.unwrap();
        assert_eq!(cell["payload_bytes"], sent.payload_bytes, "{}", run.cell);
        assert_eq!(cell["messages"], sent.messages, "{}", run.cell);
    }
}
