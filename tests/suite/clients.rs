//! RETEXO's fully distributed form: clients of a node each.

use crate::common::{CORA, Case, assert_close, losses};
use crate::dense::assert_scores;
use crate::lazy::{self, Form, Freezes};
use grapevine::graph::{BatchSpec, PartitionMethod};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::{Lane, TrafficKind};
use grapevine::sim::Outcome;

const NODES: usize = 120;

fn cases() -> impl Iterator<Item = Case> {
    [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat]
        .into_iter()
        .map(|kind| Case {
            kind,
            layers: 2,
            workers: NODES,
            epochs: 3,
            ..Case::default()
        })
}

fn run(case: &Case, rounds: usize) -> Outcome {
    let options = format!("form = \"distributed\"\nrounds_per_layer = {rounds}");
    case.run("retexo", &options)
}

/// Parameters of the first sub-model and of each other, from the formulas of the sub-models alone.
fn sizes(kind: ModelKind, f: u64, h: u64, c: u64, heads: u64) -> [u64; 2] {
    let second = h * c + c;
    let first = match kind {
        // [z ‖ mean z_u]: 2C rows, and a bias.
        ModelKind::Gcn => 2 * c * h + h,
        // W and its bias, then [z ‖ max].
        ModelKind::Sage => c * h + h + (c + h) * h + h,
        // Heads of h / heads columns, two scores of each column, a bias.
        ModelKind::Gat => heads * (h / heads) * (c + 2) + h,
        _ => unreachable!("not in the cases"),
    };
    [f * h + h + second, first + second]
}

#[test]
fn bytes_are_those_of_the_formula_whoever_holds_how_many_nodes() {
    for case in cases() {
        for workers in [NODES, 4, 1] {
            for rounds in [1, 3_u64] {
                let case = Case {
                    workers,
                    ..case.clone()
                };
                let options = format!("form = \"distributed\"\nrounds_per_layer = {rounds}");
                let setting = case.setting(Case::strategy("retexo", &options).as_ref());
                let outcome = run(&case, rounds as usize);
                let width = &setting.model.widths;
                let [f, h, c] = [0, 1, 2].map(|at| width[at] as u64);
                let [first, other] = sizes(case.kind, f, h, c, case.heads as u64);
                let all = outcome.ledger.traffic();
                let of = |kind| all.payload_of(kind).0;

                let owner = |node: &u32| setting.partition.assignment[*node as usize];
                let mut training: Vec<u32> =
                    setting.dataset.split.train.iter().map(owner).collect();
                training.sort_unstable();
                training.dedup();
                let t = training.iter().filter(|&&client| client != 0).count() as u64;
                let (b, others) = (setting.boundary.boundary_rows() as u64, workers as u64 - 1);
                let what = format!("{:?}, {workers} clients, {rounds} rounds", case.kind);
                assert_eq!(outcome.parameters as u64, first + 2 * other, "{what}");
                assert_eq!(of(TrafficKind::Feature), 0, "{what}");
                assert_eq!(of(TrafficKind::Activation), 4 * b * c * 2, "{what}");
                assert_eq!(of(TrafficKind::ActivationGradient), 0, "{what}");
                let gradients = 4 * t * rounds * (first + 2 * other);
                assert_eq!(of(TrafficKind::ParameterGradient), gradients, "{what}");
                let finished = 4 * others * (first + other);
                assert_eq!(of(TrafficKind::Parameter), gradients + finished, "{what}");
                if workers == NODES {
                    assert_eq!(
                        b as usize,
                        setting.dataset.graph.edges(),
                        "every edge is cut"
                    );
                }
            }
        }
    }
}

#[test]
fn it_does_not_matter_who_holds_which_node() {
    for case in cases() {
        let of = |workers, method| {
            let case = Case {
                workers,
                method,
                ..case.clone()
            };
            let outcome = run(&case, 4);
            let scores: Vec<_> = outcome.epochs.iter().map(|record| record.scores).collect();
            (losses(&outcome), scores)
        };
        let one_each = of(NODES, PartitionMethod::Random);
        assert_eq!(one_each.0.len(), 3 * 4, "K + 1 sub-models");
        assert!(
            one_each.1[..8].iter().all(Option::is_none),
            "no model of K layers yet"
        );
        assert!(one_each.1[8..].iter().all(Option::is_some));
        for (workers, method) in [(7, PartitionMethod::Random), (4, PartitionMethod::Metis)] {
            assert_eq!(
                of(workers, method),
                one_each,
                "{:?}, {workers} clients",
                case.kind
            );
        }
    }
}

#[test]
fn training_is_that_of_one_sub_model_after_another_on_frozen_logits() {
    let rounds = 15;
    let options = format!("form = \"distributed\"\nrounds_per_layer = {rounds}");
    let mut best_before_last = 0;
    let gcn = [(1, 0.0), (2, 0.0), (2, 0.3), (3, 0.0)].map(|case| (ModelKind::Gcn, case));
    let listening = [ModelKind::Sage, ModelKind::SagePool, ModelKind::Gat];
    let listening = listening.map(|kind| [(kind, (2, 0.0)), (kind, (2, 0.3))]);
    for (kind, (layers, dropout)) in gcn.into_iter().chain(listening.concat()) {
        let case = Case {
            kind,
            layers,
            dropout,
            workers: 7,
            optimizer: OptimizerConfig::Adam {
                learning_rate: 0.03,
                weight_decay: 5e-4,
                epsilon: 1e-6,
            },
            ..Case::default()
        };
        let setting = case.setting(Case::strategy("retexo", &options).as_ref());
        let reference = |freezes| lazy::train(&setting, Form::Distributed, rounds, freezes);
        let expected = reference(Freezes::Best);
        let what = format!("{kind:?}, {layers} layers, dropout {dropout}");
        let outcome = run(&case, rounds);
        assert_close(&losses(&outcome), &expected.losses, 1e-4, &what);
        let last = outcome.epochs[rounds * layers..].iter();
        let last: Vec<_> = last.map(|record| record.scores.unwrap()).collect();
        assert_scores(&last, &expected.scores, &setting.dataset, &what);
        best_before_last += usize::from(lazy::assert_tells_apart(reference, dropout, &what));
    }
    assert!(best_before_last > 0, "restoring the best changes something");
}

#[test]
fn each_sub_model_learns() {
    for case in cases() {
        let case = Case {
            layers: 3,
            dropout: 0.0,
            ..case
        };
        let losses = losses(&run(&case, 20));
        assert_eq!(losses.len(), 80);
        let falls = |losses: &[f64]| losses[19] < losses[0];
        assert!(losses.chunks(20).all(falls), "{losses:?}");
    }
}

#[test]
fn as_many_clients_train_in_a_round_as_a_batch_has() {
    for case in cases() {
        let setting = case.setting(Case::strategy("retexo", "form = \"distributed\"").as_ref());
        let clients = setting.dataset.split.train.len();
        let batch = |size, fanouts: [usize; 2]| Case {
            batch: Some(BatchSpec {
                size,
                fanouts: fanouts.to_vec(),
            }),
            ..case.clone()
        };
        let (whole, everything) = (run(&case, 5), run(&batch(clients, [1000; 2]), 5));
        let what = format!("{:?}", case.kind);
        assert_close(&losses(&everything), &losses(&whole), 1e-4, &what);
        assert_eq!(everything.ledger.traffic(), whole.ledger.traffic());

        let sampled = run(&batch(16, [2, 3]), 5);
        let (mut chosen, mut rounds) = (Vec::new(), 0);
        for (_, traffic) in sampled.ledger.iter() {
            let up = |lane: &Lane| lane.kind == TrafficKind::ParameterGradient;
            let all = traffic.iter().filter(|(lane, ..)| up(lane));
            let all: Vec<u32> = all.map(|(lane, ..)| lane.from).collect();
            // The server is a client too, and sends itself nothing.
            assert!(all.len() == 16 || all.len() == 15, "{}", all.len());
            chosen.extend(all);
            rounds += 1;
        }
        assert_eq!(rounds, 15);
        chosen.sort_unstable();
        chosen.dedup();
        assert!(chosen.len() > 40, "others in each round: {}", chosen.len());
        let logits =
            |outcome: &Outcome| outcome.ledger.traffic().payload_of(TrafficKind::Activation);
        assert_eq!(logits(&sampled), logits(&whole), "each edge once");
        let falls = |losses: &[f64]| losses[4] < losses[0];
        let sampled = losses(&run(&batch(30, [2, 3]), 5));
        assert!(
            falls(&sampled[..5]) || falls(&sampled[5..10]),
            "{sampled:?}"
        );
    }
}

#[test]
fn gin_is_refused_with_what_to_write_instead() {
    let case = Case {
        kind: ModelKind::Gin,
        ..Case::default()
    };
    let (_, message) = case.refused("retexo", "form = \"distributed\"");
    assert!(
        message.contains("must be gcn, sage, sage-pool or gat"),
        "{message}"
    );
}

#[test]
fn every_paper_of_cora_can_be_a_client() {
    let case = Case {
        data: CORA,
        kind: ModelKind::Gcn,
        workers: 2708,
        layers: 2,
        hidden: 16,
        ..Case::default()
    };
    let outcome = run(&case, 2);
    let all = outcome.ledger.traffic();
    // 5,278 edges, both ways, for each of the two sub-models that listen; 7 classes.
    let logits = 2 * 2 * 5278 * 7 * 4;
    assert_eq!(all.payload_of(TrafficKind::Activation).0, logits);
    assert_eq!(outcome.times.len(), 2708);
    let simulated = outcome.simulated();
    assert!(
        outcome
            .times
            .iter()
            .all(|times| times.compute + times.exposed <= simulated)
    );
}
