//! Grappa against the definition of its gradient, `Σ_i w_i b_i ḡ_i / Σ_j b_j`, computed by one process that sees everything.

use crate::common::{Case, KINDS, assert_close, losses};
use crate::reference::{Term, degrees, single_device, train};
use grapevine::graph::Csr;
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;
use grapevine::sim::Setting;

/// Options of one run, as text for the strategy and as facts for the reference.
#[derive(Clone, Copy)]
struct Variant {
    halo: bool,
    sweep: bool,
    weight: &'static str,
    shrinkage: &'static str,
    normalise: bool,
    cap: Option<f64>,
}

const EVERY: usize = 2;
const KAPPA: f64 = 3.0;
const LAMBDA: f64 = 0.25;

impl Variant {
    fn options(&self) -> String {
        let Self {
            halo,
            weight,
            shrinkage,
            ..
        } = self;
        let schedule = if self.sweep { "sweep" } else { "fixed" };
        let normalise = if self.normalise { "mean" } else { "none" };
        let cap = self
            .cap
            .map_or(String::new(), |cap| format!("cap = {cap}\n"));
        format!(
            "repartition_every = {EVERY}\nhalo = {halo}\nschedule = \"{schedule}\"\nweight = \"{weight}\"\n\
             shrinkage = \"{shrinkage}\"\nkappa = {KAPPA}\nlambda = {LAMBDA}\nnormalise = \"{normalise}\"\n{cap}"
        )
    }

    /// The terms of all workers in a super-epoch.
    fn terms(&self, setting: &Setting, super_epoch: usize) -> Vec<Term> {
        let (graph, split) = (&setting.dataset.graph, &setting.dataset.split);
        let (owner, workers) = (&setting.partition.assignment, setting.workers());
        let total = split.train.len() as f64;
        let parts: Vec<(Vec<bool>, Vec<u32>)> = (0..workers)
            .map(|i| {
                let variable = (i + 1 + super_epoch % (workers - 1)) % workers;
                let inner = owner
                    .iter()
                    .map(|&part| part as usize == i || part as usize == variable)
                    .collect();
                let of_base = |v: &&u32| owner[**v as usize] as usize == i;
                (inner, split.train.iter().filter(of_base).copied().collect())
            })
            .collect();
        let weights = self.weights(setting, &parts);
        parts
            .iter()
            .zip(weights)
            .map(|((inner, train), weights)| {
                let seen = |u: u32, v: u32| inner[v as usize] && (self.halo || inner[u as usize]);
                let edges = edges(graph).filter(|&(u, v)| seen(u, v));
                let local = Csr::from_edges(graph.nodes(), edges);
                // What a worker sees of its chunks; of halo nodes it knows the degree.
                let degrees = (0..graph.nodes())
                    .map(|v| {
                        if inner[v] {
                            local.degree(v)
                        } else {
                            graph.degree(v)
                        }
                    })
                    .collect();
                let weights = train
                    .iter()
                    .zip(weights)
                    .map(|(&v, w)| (v, w / total))
                    .collect();
                Term {
                    graph: local,
                    degrees,
                    weights,
                }
            })
            .collect()
    }

    /// Weights of the training nodes of each worker.
    fn weights(&self, setting: &Setting, parts: &[(Vec<bool>, Vec<u32>)]) -> Vec<Vec<f64>> {
        let graph = &setting.dataset.graph;
        let hops = setting.model.layers() - usize::from(self.halo);
        let mut all: Vec<Vec<f64>> = parts
            .iter()
            .map(|(inner, train)| {
                let of = |&v: &u32| {
                    let d = graph.degree(v as usize) as f64;
                    let covered = stays(graph, inner, v, hops);
                    let shrink = if self.shrinkage == "kappa" && d > 0.0 {
                        d / (d + KAPPA)
                    } else {
                        1.0
                    };
                    1.0 + shrink * (covered - 1.0)
                };
                if self.weight == "none" {
                    vec![1.0; train.len()]
                } else {
                    train.iter().map(of).collect()
                }
            })
            .collect();
        let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len() as f64;
        let overall = mean(&all.concat());
        for weights in &mut all {
            for weight in weights.iter_mut() {
                if self.normalise && self.weight != "none" {
                    *weight /= overall;
                }
                *weight = weight.min(self.cap.unwrap_or(f64::INFINITY));
            }
            if self.weight == "batch_mean" {
                let batch = mean(weights);
                let lambda = if self.shrinkage == "lambda" {
                    LAMBDA
                } else {
                    1.0
                };
                weights.fill(1.0 + lambda * (batch - 1.0));
            }
        }
        all
    }
}

/// All stored edges as (source, destination).
fn edges(graph: &Csr) -> impl Iterator<Item = (u32, u32)> + '_ {
    (0_u32..)
        .take(graph.nodes())
        .flat_map(|v| graph.neighbours(v as usize).iter().map(move |&u| (u, v)))
}

/// The probability that a walk of `hops` steps from `v` stays inside.
fn stays(graph: &Csr, inner: &[bool], v: u32, hops: usize) -> f64 {
    let neighbours = graph.neighbours(v as usize);
    if hops == 0 || neighbours.is_empty() {
        return 1.0;
    }
    let inside = neighbours.iter().filter(|&&u| inner[u as usize]);
    let sum: f64 = inside.map(|&u| stays(graph, inner, u, hops - 1)).sum();
    sum / neighbours.len() as f64
}

fn case(kind: ModelKind, workers: usize) -> Case {
    Case {
        kind,
        workers,
        layers: 2,
        epochs: 7,
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.2,
            weight_decay: 0.0,
            momentum: 0.0,
        },
        ..Case::default()
    }
}

const PLAIN: Variant = Variant {
    halo: true,
    sweep: true,
    weight: "none",
    shrinkage: "none",
    normalise: false,
    cap: None,
};

fn variants() -> impl Iterator<Item = Variant> {
    let weighted = [
        ("none", "none"),
        ("node_ht", "none"),
        ("node_ht", "kappa"),
        ("batch_mean", "none"),
        ("batch_mean", "kappa"),
        ("batch_mean", "lambda"),
    ];
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .flat_map(move |(halo, sweep)| {
            weighted
                .into_iter()
                .enumerate()
                .map(move |(number, (weight, shrinkage))| Variant {
                    halo,
                    sweep,
                    weight,
                    shrinkage,
                    normalise: number % 2 == 0,
                    cap: None,
                })
        })
        .chain([
            Variant {
                halo: false,
                weight: "node_ht",
                cap: Some(0.4),
                ..PLAIN
            },
            Variant {
                halo: false,
                weight: "node_ht",
                normalise: true,
                cap: Some(1.1),
                ..PLAIN
            },
        ])
}

#[test]
fn the_distributed_training_is_that_of_the_weighted_sum_of_parts() {
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat] {
        let case = case(kind, 3);
        let mut seen: Vec<Vec<f64>> = Vec::new();
        for variant in variants() {
            let options = variant.options();
            let setting = case.setting(case.strategy("grappa", &options).as_ref());
            let super_epochs: Vec<Vec<Term>> = (0..case.epochs.div_ceil(EVERY))
                .map(|s| variant.terms(&setting, if variant.sweep { s } else { 0 }))
                .collect();
            let expected = train(&setting, |epoch| &super_epochs[epoch / EVERY]);
            let found = losses(&case.run("grappa", &options));
            assert_close(
                &found,
                &expected.losses,
                1e-5,
                &format!("{kind:?}\n{options}"),
            );
            seen.push(found);
        }
        let different =
            |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).any(|(x, y)| (x - y).abs() > 1e-4);
        assert!(
            different(&seen[0], &seen[12]),
            "the halo makes a difference"
        );
        assert!(
            different(&seen[0], &seen[6]),
            "the schedule makes a difference"
        );
        assert!(different(&seen[12], &seen[13]), "weights make a difference");
    }
}

#[test]
fn two_workers_with_a_halo_see_everything_and_train_as_one_device() {
    for kind in KINDS {
        for weight in ["none", "node_ht", "batch_mean"] {
            let case = Case {
                layers: 3,
                ..case(kind, 2)
            };
            let options = Variant { weight, ..PLAIN }.options();
            let setting = case.setting(case.strategy("grappa", &options).as_ref());
            let expected = single_device(&setting);
            let outcome = case.run("grappa", &options);
            assert_close(&losses(&outcome), &expected.losses, 1e-5, &options);
            assert!(
                outcome
                    .epochs
                    .iter()
                    .all(|epoch| epoch.coverage == Some(1.0))
            );
        }
    }
}

#[test]
fn between_switches_nothing_but_parameter_gradients_crosses() {
    for variant in variants() {
        let case = case(ModelKind::Gcn, 4);
        let outcome = case.run("grappa", &variant.options());
        let weighted = variant.normalise && variant.weight != "none";
        for epoch in 0..case.epochs {
            let traffic = outcome.ledger.epoch(epoch).expect("gradients are sent");
            let of = |kind| traffic.payload_of(kind).0;
            let switch = epoch == 0 || (variant.sweep && epoch % EVERY == 0);
            assert_eq!(of(TrafficKind::Repartition) > 0, switch, "epoch {epoch}");
            assert_eq!(
                of(TrafficKind::Control) > 0,
                switch && weighted,
                "epoch {epoch}"
            );
            for (lane, _, _) in traffic.iter() {
                let allowed = lane.kind == TrafficKind::ParameterGradient
                    || (switch
                        && matches!(lane.kind, TrafficKind::Repartition | TrafficKind::Control));
                assert!(allowed, "epoch {epoch}: {}", lane.kind);
            }
        }
    }
}

#[test]
fn a_switch_moves_one_chunk_to_each_worker_and_with_the_halo_its_surroundings() {
    let case = case(ModelKind::Gcn, 4);
    let without = Variant {
        halo: false,
        ..PLAIN
    };
    let setting = case.setting(case.strategy("grappa", &without.options()).as_ref());
    let graph = &setting.dataset.graph;
    let owner = &setting.partition.assignment;
    let width = setting.dataset.features.width() as u64;
    // Degree, end of row and features of every node once, and every edge inside a chunk, 4 bytes each.
    let internal = edges(graph)
        .filter(|&(u, v)| owner[u as usize] == owner[v as usize])
        .count() as u64;
    let chunks = 4 * (graph.nodes() as u64 * (2 + width) + internal);
    let bare = case.run("grappa", &without.options());
    let full = case.run("grappa", &PLAIN.options());
    for epoch in [0, 2, 4, 6] {
        let of = |outcome: &grapevine::sim::Outcome| {
            let traffic = outcome.ledger.epoch(epoch).unwrap();
            traffic.payload_of(TrafficKind::Repartition).0
        };
        assert_eq!(of(&bare), chunks, "epoch {epoch}");
        assert!(of(&full) > chunks, "epoch {epoch}");
    }
}

#[test]
fn one_cycle_pairs_every_chunk_with_every_other_once() {
    let workers = 4;
    let options = Variant {
        halo: false,
        ..PLAIN
    }
    .options();
    let outcome = case(ModelKind::Gcn, workers).run("grappa", &options);
    let mut pairs: Vec<(u32, u32)> = outcome
        .ledger
        .iter()
        .take(EVERY * (workers - 1))
        .flat_map(|(_, traffic)| traffic.iter())
        .filter(|(lane, _, _)| lane.kind == TrafficKind::Repartition)
        .map(|(lane, _, _)| (lane.from, lane.to))
        .collect();
    pairs.sort_unstable();
    let expected: Vec<(u32, u32)> = (0..4)
        .flat_map(|from| (0..4).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    assert_eq!(pairs, expected);
}

#[test]
fn isolated_nodes_give_finite_losses_and_full_coverage_of_themselves() {
    let case = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 60, classes = 3, features = 6, degree_within = 0.6, degree_between = 0.3 }\nsplit = { train = 0.5, val = 0.2 }",
        ..case(ModelKind::Sage, 3)
    };
    let setting = case.setting(case.strategy("grappa", "").as_ref());
    assert!(
        degrees(&setting.dataset.graph).contains(&0),
        "the graph has isolated nodes"
    );
    for variant in variants() {
        let outcome = case.run("grappa", &variant.options());
        for epoch in &outcome.epochs {
            assert!(epoch.loss.is_finite());
            assert!((0.0..=1.0).contains(&epoch.coverage.unwrap()));
        }
    }
}
