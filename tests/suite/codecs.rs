//! Every codec and schedule in whole trainings. That the ledger is what was planned is checked in each of them.

use crate::common::{Case, losses};
use grapevine::net::TrafficKind;
use grapevine::sim::Outcome;

/// Codecs that a ratio changes, and how the strategies are told.
const FOLLOWING: [&str; 8] = [
    "\"random_columns\"",
    "\"random_entries\"",
    "\"first_columns\"",
    "\"top_k\"",
    "\"quantise\"",
    "{ kind = \"compose\", first = \"random_columns\", second = { kind = \"quantise\", bits = 8 } }",
    "{ kind = \"compose\", first = \"top_k\", second = \"bf16\" }",
    "{ kind = \"difference\", of = \"top_k\" }",
];

/// Codecs with a cost of their own.
const FIXED: [(&str, f64); 5] = [
    ("\"identity\"", 1.0),
    ("\"f16\"", 2.0),
    ("\"bf16\"", 2.0),
    ("{ kind = \"quantise\", bits = 4 }", 8.0),
    (
        "{ kind = \"difference\", of = { kind = \"quantise\", bits = 2 } }",
        16.0,
    ),
];

fn case() -> Case {
    Case {
        epochs: 4,
        workers: 3,
        ..Case::default()
    }
}

fn node_data(outcome: &Outcome) -> u64 {
    let traffic = outcome.ledger.traffic();
    [
        TrafficKind::Feature,
        TrafficKind::Activation,
        TrafficKind::ActivationGradient,
    ]
    .into_iter()
    .map(|kind| traffic.payload_of(kind).0)
    .sum()
}

#[test]
fn every_codec_that_follows_a_ratio_trains_saves_bytes_and_is_exact_at_ratio_one() {
    let case = case();
    let exact = case.run("full", "cache_features = false");
    for codec in FOLLOWING {
        let lossy = case.run("fixed", &format!("codec = {codec}\nratio = 3"));
        assert!(
            losses(&lossy).iter().all(|loss| loss.is_finite()),
            "{codec}"
        );
        assert!(node_data(&lossy) < node_data(&exact), "{codec}");
        assert_ne!(losses(&lossy), losses(&exact), "{codec}");
        let whole = case.run("fixed", &format!("codec = {codec}\nratio = 1"));
        assert_eq!(losses(&whole), losses(&exact), "{codec}");
        assert_eq!(node_data(&whole), node_data(&exact), "{codec}");
        let schedule = "schedule = { kind = \"linear\", from = 8, to = 1, slope = 2 }";
        let varied = case.run("varco", &format!("codec = {codec}\n{schedule}"));
        assert!(node_data(&varied) < node_data(&exact), "{codec}");
    }
}

#[test]
fn codecs_with_a_cost_of_their_own_work_with_every_strategy_and_say_their_ratio() {
    let case = case();
    for (codec, ratio) in FIXED {
        let [fixed, varco] =
            ["fixed", "varco"].map(|kind| case.run(kind, &format!("codec = {codec}")));
        assert_eq!(losses(&fixed), losses(&varco), "{codec}");
        assert_eq!(node_data(&fixed), node_data(&varco), "{codec}");
        let recorded = varco.epochs.iter().map(|epoch| epoch.compression_ratio);
        assert!(recorded.eq(vec![Some(ratio); 4]), "{codec}");
    }
}

/// Ratios of a training by an adaptive schedule, which has been compared with its plan; nothing sent was above the plan in advance.
fn adaptive(case: &Case, options: &str) -> (Vec<f64>, Outcome) {
    let strategy = case.strategy("varco", options);
    let setting = case.setting(strategy.as_ref());
    let outcome = case.train("varco", strategy.as_ref());
    for record in &outcome.epochs {
        let sent = outcome.ledger.epoch(record.epoch).unwrap();
        let planned = strategy.plan(&setting.boundary, &setting.model, record.epoch);
        for kind in TrafficKind::ALL {
            assert!(sent.payload_of(kind) <= planned.payload_of(kind), "{kind}");
        }
    }
    let ratios = outcome.epochs.iter().map(|e| e.compression_ratio.unwrap());
    (ratios.collect(), outcome)
}

#[test]
fn the_ratio_falls_when_the_validation_accuracy_stalls() {
    let case = Case {
        epochs: 30,
        ..case()
    };
    let options = "schedule = { kind = \"adaptive-validation\", from = 16, to = 2, patience = 3, tolerance = 0.01 }";
    let (ratios, outcome) = adaptive(&case, options);
    let scores = outcome
        .epochs
        .iter()
        .map(|e| e.scores.unwrap().validation.unwrap());
    // The rule once more, over the accuracies as they are recorded.
    let (mut ratio, mut best, mut waited) = (16.0_f64, f64::NEG_INFINITY, 0);
    for (epoch, score) in scores.enumerate() {
        assert_eq!(ratios[epoch], ratio, "epoch {epoch}");
        waited += 1;
        if score > best + 0.01 {
            (best, waited) = (score, 0);
        } else if waited == 3 {
            (ratio, waited) = ((ratio / 2.0).max(2.0), 0);
        }
    }
    assert!(ratios[29] < 16.0, "{ratios:?}");
    assert_eq!(
        outcome.ledger.traffic().payload_of(TrafficKind::Control).0,
        0
    );
}

#[test]
fn the_ratio_falls_when_the_compression_error_no_longer_does() {
    let case = Case {
        epochs: 12,
        ..case()
    };
    // No improvement is large enough, so after the first the ratio halves in every epoch.
    let options =
        "schedule = { kind = \"adaptive-error\", from = 8, to = 1, patience = 1, tolerance = 10 }";
    let (ratios, outcome) = adaptive(&case, options);
    assert_eq!(ratios[..6], [8.0, 8.0, 4.0, 2.0, 1.0, 1.0]);
    // Two floats, summed by three workers in a ring.
    let control = outcome
        .ledger
        .epoch(0)
        .unwrap()
        .payload_of(TrafficKind::Control);
    assert_eq!(control.0, 4 * 2 * 2 * 2);
    // A fixed draw loses about the same in every epoch: with a small tolerance it takes longer.
    let patient = options
        .replace("tolerance = 10", "tolerance = 0.001")
        .replace("patience = 1", "patience = 2");
    let (ratios, _) = adaptive(&case, &patient);
    assert!(ratios[..3] == [8.0; 3] && ratios[11] < 8.0, "{ratios:?}");
}

#[test]
fn difference_coding_remembers_what_the_receiver_holds_and_so_loses_less() {
    let case = Case {
        epochs: 40,
        dropout: 0.0,
        ..case()
    };
    let exact = losses(&case.run("full", ""));
    let off = |codec: &str| {
        let lossy = losses(&case.run("fixed", &format!("codec = {codec}\nratio = 4")));
        (lossy[39] / exact[39] - 1.0).abs()
    };
    let (plain, difference) = (
        off("\"top_k\""),
        off("{ kind = \"difference\", of = \"top_k\" }"),
    );
    assert!(difference < plain / 2.0, "{difference} of {plain}");
}

#[test]
fn measuring_what_is_lost_changes_nothing_and_finds_the_expected_share() {
    let case = Case {
        epochs: 40,
        ..case()
    };
    let plain = case.run("fixed", "ratio = 2");
    let measured = case.run("fixed", "ratio = 2\nmeasure_error = true");
    assert_eq!(losses(&plain), losses(&measured));
    assert_eq!(plain.ledger.traffic(), measured.ledger.traffic());
    assert!(plain.coding_errors.is_empty());
    // One entry for each epoch, direction, and kind of compressed row: layers 0 and 1 forward, layer 1 back.
    let lanes = |kind| {
        measured
            .coding_errors
            .keys()
            .filter(|(_, lane)| lane.kind == kind)
            .count()
    };
    let pairs = lanes(TrafficKind::Feature);
    assert_eq!(pairs % case.epochs, 0);
    assert!(pairs > 0);
    assert_eq!(lanes(TrafficKind::Activation), pairs);
    assert_eq!(lanes(TrafficKind::ActivationGradient), pairs);
    // Half of the columns, drawn anew in every epoch, lose half of the squares in the mean.
    let errors: Vec<f64> = measured
        .epochs
        .iter()
        .filter_map(|record| record.compression_error)
        .collect();
    assert_eq!(errors.len(), case.epochs);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!((mean - 0.5).abs() < 0.1, "{mean}");
}
