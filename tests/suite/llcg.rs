//! `llcg`: local steps, averages of models, and corrections with the whole graph.

use crate::common::{CORA, Case, KINDS, assert_close, losses};
use crate::reference::single_device;
use grapevine::model::OptimizerConfig;
use grapevine::net::TrafficKind;
use grapevine::sim::{EpochRecord, Outcome};

/// Plain gradient descent: a step of the mean model is the mean of the steps.
const PLAIN: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.05,
    weight_decay: 0.01,
    momentum: 0.0,
};

const LOCAL: &str = "local_steps = 1\nrho = 1\nserver_steps = 0";
const SERVER: &str = "local_steps = 0\nserver_steps = 1";

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn payload(outcome: &Outcome, epoch: usize, kind: TrafficKind) -> u64 {
    let traffic = outcome.ledger.epoch(epoch);
    traffic.map_or(0, |traffic| traffic.payload_of(kind).0)
}

#[test]
fn averaging_after_each_plain_local_step_is_summing_the_gradients_of_isolated_workers() {
    for kind in KINDS {
        let case = Case {
            kind,
            optimizer: PLAIN,
            epochs: 5,
            ..Case::default()
        };
        let (found, expected) = (case.run("llcg", LOCAL), case.run("isolated", ""));
        let what = format!("{kind:?}");
        assert_close(&losses(&found), &losses(&expected), 1e-5, &what);
        assert_eq!(found.epochs.len(), expected.epochs.len());
        for (found, expected) in found.epochs.iter().zip(&expected.epochs) {
            let loss = |record: &EpochRecord| record.scores.and_then(|it| it.validation_loss);
            let [found, expected] = [found, expected].map(|it| loss(it).expect("a loss"));
            assert!(
                (found / expected - 1.0).abs() < 1e-5,
                "{what}: {found}, {expected}"
            );
        }
    }
}

#[test]
fn one_worker_without_a_server_trains_as_one_device_however_often_it_averages() {
    let case = Case {
        workers: 1,
        epochs: 7,
        ..Case::default()
    };
    let expected = single_device(&case.setting(Case::strategy("full", "").as_ref()));
    // Losses are recorded by round: means over its steps.
    let found = losses(&case.run("llcg", "local_steps = 2\nrho = 1.5\nserver_steps = 0"));
    let mean = |steps: std::ops::Range<usize>| {
        expected.losses[steps.clone()].iter().sum::<f64>() / steps.len() as f64
    };
    assert_eq!(bits(&found), bits(&[mean(0..2), mean(2..5), mean(5..7)]));
    let last = case.run("llcg", LOCAL).epochs[6].scores;
    assert_eq!(last, expected.scores.last().copied());
}

#[test]
fn the_server_alone_trains_as_one_device_to_the_bit() {
    for kind in KINDS {
        for workers in [1, 4] {
            let case = Case {
                workers,
                kind,
                ..Case::default()
            };
            let expected = single_device(&case.setting(Case::strategy("full", "").as_ref()));
            let outcome = case.run("llcg", SERVER);
            let what = format!("{kind:?}, {workers} workers");
            assert_eq!(bits(&losses(&outcome)), bits(&expected.losses), "{what}");
            for (record, scores) in outcome.epochs.iter().zip(&expected.scores) {
                assert_eq!(record.scores, Some(*scores), "{what}");
            }
        }
    }
    let cora = Case {
        data: CORA,
        layers: 2,
        ..Case::default()
    };
    let expected = single_device(&cora.setting(Case::strategy("full", "").as_ref()));
    let found = losses(&cora.run("llcg", SERVER));
    assert_eq!(bits(&found), bits(&expected.losses), "sparse features");
}

#[test]
fn corrections_of_a_round_follow_each_other_at_the_server_s_own_rate() {
    let case = Case {
        optimizer: PLAIN,
        epochs: 4,
        ..Case::default()
    };
    let OptimizerConfig::Sgd {
        weight_decay,
        momentum,
        ..
    } = PLAIN
    else {
        panic!("it is plain")
    };
    let twice = Case {
        epochs: 8,
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.2,
            weight_decay,
            momentum,
        },
        ..case.clone()
    };
    let expected = single_device(&twice.setting(Case::strategy("full", "").as_ref()));
    let options = "local_steps = 0\nserver_steps = 2\nserver_learning_rate = 0.2";
    let outcome = case.run("llcg", options);
    // A round is recorded with the mean of its losses, and evaluated after its last step.
    let rounds = expected.losses.chunks_exact(2);
    let means: Vec<f64> = rounds.map(|two| f64::midpoint(two[0], two[1])).collect();
    assert_eq!(bits(&losses(&outcome)), bits(&means));
    for (record, scores) in outcome.epochs.iter().zip(expected.scores.chunks_exact(2)) {
        assert_eq!(record.scores, Some(scores[1]));
    }
}

#[test]
fn a_round_moves_every_other_worker_s_model_up_and_down_and_the_graph_moves_once() {
    for workers in [1, 3] {
        let case = Case {
            workers,
            epochs: 20,
            ..Case::default()
        };
        let options = "local_steps = 4\nrho = 1.5";
        let outcome = case.run("llcg", options);
        let setting = case.setting(Case::strategy("llcg", options).as_ref());
        assert_eq!(outcome.epochs.len(), 4, "of 4, 6, 9 and 1 steps");
        let (graph, width) = (&setting.dataset.graph, setting.model.features());
        let away = (0..graph.nodes()).filter(|&v| setting.partition.assignment[v] != 0);
        let (mut structure, mut features) = (0, 0);
        for v in away {
            structure += 4 * (3 + graph.degree(v));
            features += 4 * width;
        }
        for epoch in 0..4 {
            let models = 2 * 4 * outcome.parameters * (workers - 1);
            assert_eq!(
                payload(&outcome, epoch, TrafficKind::Parameter),
                models as u64
            );
            let once = |bytes: usize| if epoch == 0 { bytes as u64 } else { 0 };
            for (kind, bytes) in [
                (TrafficKind::Repartition, once(structure)),
                (TrafficKind::Feature, once(features)),
            ] {
                assert_eq!(payload(&outcome, epoch, kind), bytes);
            }
            let moved = once(structure + features);
            let all: u64 = TrafficKind::ALL
                .iter()
                .map(|&kind| payload(&outcome, epoch, kind))
                .sum();
            assert_eq!(all, models as u64 + moved, "nothing else travels");
        }
        let alone = case.run("llcg", "server_steps = 0");
        assert_eq!(payload(&alone, 0, TrafficKind::Feature), 0);
    }
}

#[test]
fn corrections_and_their_step_size_change_what_is_learned() {
    let case = Case {
        epochs: 8,
        ..Case::default()
    };
    let of = |options: &str| losses(&case.run("llcg", &format!("local_steps = 2\n{options}")));
    let plain = of("server_steps = 0");
    let corrected = of("");
    let small = of("server_learning_rate = 1e-9");
    assert_eq!(bits(&plain[..1]), bits(&corrected[..1]), "the first round");
    assert_ne!(plain[1..], corrected[1..]);
    assert_ne!(corrected, of("server_steps = 2"));
    // Nearly no step is nearly none, but for dropout, which has other draws after it.
    let still = Case {
        dropout: 0.0,
        ..case.clone()
    };
    let of = |options: &str| losses(&still.run("llcg", &format!("local_steps = 2\n{options}")));
    let (plain, still) = (of("server_steps = 0"), of("server_learning_rate = 1e-9"));
    assert_close(&still, &plain, 1e-5, "a server that hardly moves");
    assert_ne!(small, corrected);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (options, key) in [
        ("rho = 0.9", "rho"),
        ("rho = inf", "rho"),
        ("local_steps = 0\nserver_steps = 0", "local_steps"),
        ("server_learning_rate = 0.0", "server_learning_rate"),
        (
            "server_learning_rate = 0.1\nserver_steps = 0",
            "server_learning_rate",
        ),
        ("steps = 3", "steps"),
    ] {
        let (found, said) = Case::default().refused("llcg", options);
        assert_eq!(found.as_deref(), Some(key), "{options}: {said}");
    }
}
