//! RETEXO: lazy message passing.

use std::sync::Arc;

use crate::common::{Case, assert_close, losses};
use crate::dense::assert_scores;
use crate::lazy::{self, Form, Freezes};
use grapevine::graph::{Dataset, PartitionMethod};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;
use grapevine::sim::Setting;
use grapevine::strategies::{Registry, run};

#[test]
fn the_weights_that_it_says_it_begins_with_are_those_of_its_sub_models() {
    for case in cases() {
        for form in ["layers", "distributed"] {
            if form == "distributed" && case.kind == ModelKind::Gin {
                continue; // there are no such clients
            }
            let options = format!("form = \"{form}\"");
            let fitted = case.fit(&Registry::builtin(), "retexo", &options);
            let training = fitted.unwrap_or_else(|error| panic!("{form}: {error}"));
            let said = training.initial();
            let said: usize = said.iter().map(|parameter| parameter.values.len()).sum();
            let trained = case.run("retexo", &options).parameters;
            // Several heads are as many in each sub-model, and narrower than in usual training.
            assert_eq!(
                said, trained,
                "{:?}, {form}, {} heads",
                case.kind, case.heads
            );
        }
    }
}

fn cases() -> impl Iterator<Item = Case> {
    [
        (ModelKind::Gcn, 2),
        (ModelKind::Sage, 2),
        (ModelKind::Gcn, 3),
        (ModelKind::SagePool, 2),
        (ModelKind::Gat, 3),
        (ModelKind::Gin, 2),
    ]
    .into_iter()
    .map(|(kind, layers)| Case {
        kind,
        layers,
        epochs: 6,
        ..Case::default()
    })
}

#[test]
fn the_partition_does_not_change_the_training() {
    for case in cases() {
        let of = |workers, method| {
            let case = Case {
                workers,
                method,
                ..case.clone()
            };
            losses(&case.run("retexo", ""))
        };
        let alone = of(1, PartitionMethod::Random);
        assert_eq!(alone.len(), 6 * case.layers);
        for workers in [2, 4, 8] {
            for method in [PartitionMethod::Random, PartitionMethod::Metis] {
                let what = format!("{:?}, {workers} workers, {method:?}", case.kind);
                assert_close(&of(workers, method), &alone, 1e-4, &what);
            }
        }
    }
}

#[test]
fn each_layer_is_exchanged_once_however_long_it_trains() {
    for case in cases() {
        let layers = case.layers;
        let mut volumes = Vec::new();
        for rounds in [1, 3, 7] {
            let options = format!("rounds_per_layer = {rounds}");
            let setting = case.setting(Case::strategy("retexo", &options).as_ref());
            let outcome = case.run("retexo", &options);
            let exchanges: Vec<usize> = outcome
                .ledger
                .iter()
                .filter(|(_, traffic)| traffic.iter().any(|(lane, _, _)| lane.kind.is_node_data()))
                .map(|(epoch, _)| epoch)
                .collect();
            let expected: Vec<usize> = (0..layers).map(|layer| layer * rounds).collect();
            assert_eq!(exchanges, expected, "{rounds} rounds");

            let all = outcome.ledger.traffic();
            let pairs = (0..case.workers)
                .flat_map(|from| (0..case.workers).map(move |to| (from, to)))
                .filter(|&(from, to)| setting.boundary.rows(from, to) > 0)
                .count() as u64;
            let messages: u64 = all
                .iter()
                .filter(|(lane, _, _)| lane.kind.is_node_data())
                .map(|(_, _, count)| count)
                .sum();
            assert_eq!(messages, pairs * layers as u64);

            // 4B (F + (K − 1) H), and nothing ever comes back.
            let (b, width) = (
                setting.boundary.boundary_rows() as u64,
                &setting.model.widths,
            );
            // Heads of attention are averaged, each with its share of the hidden columns.
            let heads = if case.kind == ModelKind::Gat {
                case.heads
            } else {
                1
            };
            let (f, h) = (width[0] as u64, (width[1] / heads) as u64);
            let of = |kind| all.payload_of(kind).0;
            assert_eq!(of(TrafficKind::Feature), 4 * b * f);
            assert_eq!(of(TrafficKind::Activation), 4 * b * (layers as u64 - 1) * h);
            assert_eq!(of(TrafficKind::ActivationGradient), 0);
            volumes.push(of(TrafficKind::Feature) + of(TrafficKind::Activation));
            assert!(of(TrafficKind::ParameterGradient) > 0);
        }
        assert!(volumes.iter().all(|volume| *volume == volumes[0]));
    }
}

#[test]
fn every_sub_model_may_have_rounds_of_its_own() {
    let case = Case {
        layers: 3,
        ..Case::default()
    };
    let each = case.run("retexo", "rounds_per_layer = [1, 4, 2]");
    let exchanges: Vec<usize> = (each.ledger.iter())
        .filter(|(_, traffic)| traffic.iter().any(|(lane, _, _)| lane.kind.is_node_data()))
        .map(|(epoch, _)| epoch)
        .collect();
    assert_eq!(exchanges, [0, 1, 5]);
    let evaluated = each.epochs.iter().filter(|epoch| epoch.scores.is_some());
    assert!(
        evaluated.map(|epoch| epoch.epoch).eq([5, 6]),
        "the last sub-model's"
    );
    let same = case.run("retexo", "rounds_per_layer = [2, 2, 2]");
    let one = case.run("retexo", "rounds_per_layer = 2");
    assert_eq!(losses(&same), losses(&one));
    assert_eq!(losses(&each)[0], losses(&one)[0]);
    let (key, message) = case.refused("retexo", "rounds_per_layer = [2, 2]");
    assert_eq!(key.as_deref(), Some("rounds_per_layer"));
    assert!(message.contains("each of the 3 sub-models"), "{message}");
    // Among clients there is a sub-model more.
    let clients = Case {
        layers: 2,
        workers: 120,
        ..case
    };
    let options = "form = \"distributed\"\nrounds_per_layer = [1, 2, 3]";
    let outcome = clients.run("retexo", options);
    assert_eq!(outcome.epochs.len(), 6);
    let logits = |epoch: usize| {
        let traffic = outcome.ledger.epoch(epoch).expect("gradients are sent");
        traffic.payload_of(TrafficKind::Activation).0 > 0
    };
    assert!((0..6).filter(|epoch| logits(*epoch)).eq([1, 3]));
}

#[test]
fn parameter_gradients_grow_with_the_rounds_of_each_sub_model() {
    // The layers alone: `heads` of attention are averaged in both, and each has two scores of its
    // width, which is its share of the hidden columns in the first.
    let gcn = |f, h, c| [f * h + h, h * c + c];
    let gat = |f, h, c| [2 * (f * h + 2 * h) + h, 2 * (h * c + 2 * c) + c];
    grows_with_the_rounds(ModelKind::Gcn, gcn);
    grows_with_the_rounds(ModelKind::Gat, gat);
}

fn grows_with_the_rounds(kind: ModelKind, layers: impl Fn(u64, u64, u64) -> [u64; 2]) {
    let case = Case {
        kind,
        layers: 2,
        ..Case::default()
    };
    let setting = case.setting(Case::strategy("retexo", "").as_ref());
    let width: Vec<u64> = setting.model.widths.iter().map(|&w| w as u64).collect();
    let heads = if kind == ModelKind::Gat {
        case.heads as u64
    } else {
        1
    };
    let (f, h, c) = (width[0], width[1] / heads, width[2]);
    let mut sizes = layers(f, h, c);
    // Layer normalisation and auxiliary head of the first.
    sizes[0] += 2 * h + h * c + c;
    for rounds in [2, 5_u64] {
        let outcome = case.run("retexo", &format!("rounds_per_layer = {rounds}"));
        let sent = outcome
            .ledger
            .traffic()
            .payload_of(TrafficKind::ParameterGradient);
        let expected = 2 * 3 * 4 * rounds * sizes.iter().sum::<u64>();
        assert_eq!(sent.0, expected, "{rounds} rounds on four workers");
    }
}

/// Adam with all that it can have.
const ADAM: OptimizerConfig = OptimizerConfig::Adam {
    learning_rate: 0.02,
    weight_decay: 5e-4,
    epsilon: 1e-6,
};

#[test]
fn training_is_that_of_one_sub_model_after_another_on_frozen_inputs() {
    let rounds = 12;
    let options = format!("rounds_per_layer = {rounds}");
    let mut best_before_last = 0;
    for (kind, layers, self_loops) in [
        (ModelKind::Gcn, 2, Some(true)),
        (ModelKind::Gcn, 2, Some(false)),
        (ModelKind::Sage, 2, None),
        (ModelKind::Sage, 2, Some(true)),
        (ModelKind::Gcn, 3, Some(false)),
        (ModelKind::SagePool, 2, None),
        (ModelKind::Gat, 2, None),
        (ModelKind::Gat, 2, Some(false)),
    ] {
        for dropout in [0.0, 0.3] {
            let case = Case {
                kind,
                layers,
                self_loops,
                dropout,
                optimizer: ADAM,
                ..Case::default()
            };
            let setting = case.setting(Case::strategy("retexo", &options).as_ref());
            let reference = |freezes| lazy::train(&setting, Form::Layers, rounds, freezes);
            let expected = reference(Freezes::Best);
            assert_eq!(expected.losses.len(), rounds * layers);
            for workers in [1, 2] {
                let outcome = Case {
                    workers,
                    ..case.clone()
                }
                .run("retexo", &options);
                let what = format!(
                    "{kind:?}, {layers} layers, self-loops {self_loops:?}, dropout {dropout}, {workers}"
                );
                assert_close(&losses(&outcome), &expected.losses, 1e-4, &what);
                let scores: Vec<_> = outcome.epochs.iter().map(|record| record.scores).collect();
                let (before, last) = scores.split_at(rounds * (layers - 1));
                assert!(before.iter().all(Option::is_none), "{what}");
                let last: Vec<_> = last.iter().flatten().copied().collect();
                assert_scores(&last, &expected.scores, &setting.dataset, &what);
            }
            best_before_last += usize::from(lazy::assert_tells_apart(
                reference,
                dropout,
                &format!("{kind:?}"),
            ));
        }
    }
    assert!(best_before_last > 0, "restoring the best changes something");
}

#[test]
fn nodes_without_neighbours_need_not_be_scored() {
    let case = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 120, classes = 3, features = 10, degree_within = 1.0, degree_between = 0.5 }\nsplit = { train = 0.3, val = 0.3 }",
        ..Case::default()
    };
    let strategy = Case::strategy("retexo", "");
    let whole = case.setting(strategy.as_ref());
    let scores = |setting: Setting| {
        let training = strategy.fit(&Arc::new(setting)).expect("it fits");
        let outcome = run(&*training, false, Arc::new(|_| {})).expect("it trains");
        let last = outcome.epochs.last().expect("an epoch");
        (losses(&outcome), last.scores.expect("it was evaluated"))
    };
    let mut without = Setting::clone(&whole);
    without.training.score_isolated = false;
    // The same by hand: they are in none of the sets that choose and are reported.
    let mut by_hand = Setting::clone(&whole);
    let mut dataset = Dataset::clone(&whole.dataset);
    let graph = Arc::clone(&dataset.graph);
    let has_neighbours = |v: &u32| graph.degree(*v as usize) > 0;
    let split = &mut dataset.split;
    split.validation.retain(has_neighbours);
    split.test.retain(has_neighbours);
    assert!(split.test.len() < whole.dataset.split.test.len());
    by_hand.dataset = Arc::new(dataset);
    let (found, expected) = (scores(without), scores(by_hand));
    assert_eq!(found.0, expected.0);
    assert_eq!(found.1.validation, expected.1.validation);
    assert_eq!(found.1.validation_loss, expected.1.validation_loss);
    assert_eq!(found.1.test, expected.1.test);
    assert_ne!(found.1.test, scores(Setting::clone(&whole)).1.test);
}
