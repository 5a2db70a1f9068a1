//! Every codec and schedule in whole trainings. That the ledger is what was planned is checked in each of them.

use crate::common::{Case, losses, planned};
use grapevine::graph::BatchSpec;
use grapevine::model::ModelKind;
use grapevine::net::TrafficKind;
use grapevine::sim::{Outcome, Scores};

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
fn codecs_with_a_cost_of_their_own_say_their_ratio() {
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

/// The strategies that exchange rows and compress them on request, with options, and whether they send every row once only or others each
/// time.
fn on_request() -> [(&'static str, &'static str, Case, bool); 5] {
    let batches = Case {
        batch: Some(BatchSpec {
            size: 10,
            fanouts: vec![4, 3, 2],
        }),
        ..case()
    };
    [
        ("pipe", "cache_features = false", case(), false),
        ("pipe", "smoothing = \"both\"", case(), false),
        ("bns", "share = 0.6", case(), true),
        ("retexo", "", case(), true),
        ("distdgl", "cache = 1200", batches, true),
    ]
}

#[test]
fn every_strategy_that_exchanges_rows_takes_every_codec_and_schedule_and_is_itself_at_ratio_one() {
    for (kind, options, case, forgets) in on_request() {
        let plain = case.run(kind, options);
        let whole = node_data(&plain);
        assert_eq!(plain.epochs[0].compression_ratio, None);
        for codec in FOLLOWING {
            let options = |more: &str| format!("{options}\ncodec = {codec}\n{more}");
            let what = format!("{kind} {codec}");
            if forgets && codec.contains("difference") {
                let (key, _) = case.refused(kind, &options("ratio = 3"));
                assert_eq!(key.as_deref(), Some("codec"), "{what}");
                continue;
            }
            let lossy = case.run(kind, &options("ratio = 3"));
            assert!(losses(&lossy).iter().all(|loss| loss.is_finite()), "{what}");
            assert_ne!(losses(&lossy), losses(&plain), "{what}");
            assert!(node_data(&lossy) < whole, "{what}");
            assert_eq!(lossy.epochs[0].compression_ratio, Some(3.0), "{what}");
            let exact = case.run(kind, &options("ratio = 1"));
            assert_eq!(losses(&exact), losses(&plain), "{what}");
            assert_eq!(node_data(&exact), whole, "{what}");
            let falling = "schedule = { kind = \"exponential\", from = 8, to = 2 }";
            let falling = case.run(kind, &options(falling));
            let ratios = falling.epochs.iter().map(|e| e.compression_ratio.unwrap());
            let ratios: Vec<f64> = ratios.collect();
            assert!(ratios.is_sorted_by(|a, b| a >= b), "{what}: {ratios:?}");
            assert!(ratios[0] == 8.0 && ratios.last() < Some(&8.0), "{what}");
            assert!(node_data(&falling) < whole, "{what}");
        }
        for (codec, ratio) in FIXED {
            if forgets && codec.contains("difference") {
                continue;
            }
            let run = case.run(kind, &format!("{options}\ncodec = {codec}"));
            assert_eq!(
                run.epochs[0].compression_ratio,
                Some(ratio),
                "{kind} {codec}"
            );
            assert_eq!(node_data(&run) < whole, ratio > 1.0, "{kind} {codec}");
        }
    }
}

#[test]
fn what_compression_on_request_loses_is_measured_without_changing_anything() {
    for (kind, options, case, _) in on_request() {
        let options = format!("{options}\ncodec = \"first_columns\"\nratio = 2");
        let plain = case.run(kind, &options);
        let measured = case.run(kind, &format!("{options}\nmeasure_error = true"));
        assert_eq!(losses(&plain), losses(&measured), "{kind}");
        assert_eq!(plain.ledger.traffic(), measured.ledger.traffic(), "{kind}");
        assert!(plain.coding_errors.is_empty(), "{kind}");
        let errors: Vec<f64> = measured
            .epochs
            .iter()
            .filter_map(|record| record.compression_error)
            .collect();
        assert!(!errors.is_empty(), "{kind}");
        assert!(
            errors.iter().all(|it| *it > 0.0 && *it < 1.0),
            "{kind}: {errors:?}"
        );
    }
}

#[test]
fn adaptive_schedules_go_with_strategies_that_send_rows_in_every_epoch() {
    let case = Case {
        epochs: 12,
        ..case()
    };
    for kind in ["pipe", "bns"] {
        for schedule in ["adaptive-validation", "adaptive-error"] {
            // No improvement is large enough.
            let schedule =
                format!("{{ kind = \"{schedule}\", from = 8, patience = 1, tolerance = 10 }}");
            let options = format!("codec = \"random_columns\"\nschedule = {schedule}");
            let run = case.run(kind, &options);
            let ratios = run.epochs.iter().map(|e| e.compression_ratio.unwrap());
            let ratios: Vec<f64> = ratios.take(6).collect();
            assert_eq!(ratios, [8.0, 8.0, 4.0, 2.0, 1.0, 1.0], "{kind} {schedule}");
        }
    }
    let adaptive = "codec = \"top_k\"\nschedule = { kind = \"adaptive-error\" }";
    let (key, says) = case.refused("retexo", adaptive);
    assert_eq!(key.as_deref(), Some("schedule"));
    assert!(says.contains("sent once"), "{says}");
}

#[test]
fn codec_options_that_do_nothing_are_refused() {
    let case = case();
    for (kind, options, key, says) in [
        ("bns", "ratio = 4", "ratio", "without `codec`"),
        (
            "pipe",
            "measure_error = true",
            "measure_error",
            "without `codec`",
        ),
        (
            "retexo",
            "codec = \"f16\"\nratio = 4",
            "ratio",
            "cost of its own",
        ),
        (
            "pipe",
            "codec = \"top_k\"\nratio = 0.5",
            "ratio",
            "from 1 to",
        ),
        (
            "pipe",
            "codec = \"top_k\"\nrescale = true",
            "rescale",
            "random_columns",
        ),
        (
            "bns",
            "codec = \"top_k\"\nratio = 2\nschedule = { kind = \"cosine\" }",
            "ratio",
            "leave one out",
        ),
        (
            "retexo",
            "codec = \"f16\"\nform = \"distributed\"",
            "codec",
            "class logits",
        ),
    ] {
        let (found, message) = case.refused(kind, options);
        assert_eq!(found.as_deref(), Some(key), "{kind} {options}");
        assert!(message.contains(says), "{kind} {options}: {message}");
    }
    let shallow = Case { layers: 2, ..case };
    let (key, says) = shallow.refused("bns", "codec = \"f16\"");
    assert_eq!(key.as_deref(), Some("codec"));
    assert!(says.contains("nothing to compress"), "{says}");
    for (kind, more, key) in [
        ("fixed", "ratio = 2", Some("ratio")),
        ("fixed", "", None),
        ("varco", "codec = \"f16\"", Some("codec")),
        (
            "varco",
            "schedule = { kind = \"cosine\" }",
            Some("schedule"),
        ),
    ] {
        let (found, says) = shallow.refused(kind, &format!("{more}\ncache_features = true"));
        assert_eq!(found.as_deref(), key, "{kind} {more}");
        assert!(says.contains("nothing to compress"), "{kind}: {says}");
        assert!(says.contains("`cache_features = false`"), "{kind}: {says}");
        assert!(!says.contains("compress_last"), "{kind}: {says}");
    }
    for (kind, options) in [("adaqp", "cache_features = true"), ("ecgraph", "")] {
        let single = Case {
            layers: 1,
            ..Case::default()
        };
        let (found, says) = single.refused(kind, options);
        assert_eq!(found, None, "{kind}");
        assert!(says.contains("nothing to compress"), "{kind}: {says}");
    }
    let (_, says) = shallow.refused("train", "codec = \"f16\"");
    assert!(says.contains("`compress_last = true`"), "{says}");
    Case::strategy("fixed", "ratio = 1\ncache_features = true");
    // The features alone are left, if they are sent anew.
    let run = shallow.run("bns", "codec = \"f16\"\ncache_features = false");
    assert_eq!(run.epochs[0].compression_ratio, Some(2.0));
}

#[test]
fn retexo_compresses_what_it_sends_once_and_trains_on_what_arrived() {
    // Attention, so that the codec meets another aggregation than sums.
    let case = Case {
        kind: ModelKind::Gat,
        ..case()
    };
    let (plain, half) = (
        case.run("retexo", ""),
        case.run("retexo", "codec = \"f16\""),
    );
    let bytes = |outcome: &Outcome, epoch: usize, kind| {
        let traffic = outcome.ledger.epoch(epoch).expect("rows are sent");
        traffic.payload_of(kind).0
    };
    for (epoch, kind, factor) in [
        (0, TrafficKind::Feature, 2),
        (case.epochs, TrafficKind::Activation, 2),
        (2 * case.epochs, TrafficKind::Activation, 1), // the last layer's rows travel whole
    ] {
        let (plain, half) = (bytes(&plain, epoch, kind), bytes(&half, epoch, kind));
        assert!(plain > 0);
        assert_eq!(half * factor, plain, "epoch {epoch}");
    }
    assert_ne!(losses(&plain), losses(&half));
    for (plain, half) in losses(&plain).iter().zip(losses(&half)) {
        assert!((plain - half).abs() < 0.01, "{plain} and {half}");
    }
}

/// Ratios of a training by an adaptive schedule, which has been compared with its plan; nothing sent was above the plan in advance.
fn adaptive(case: &Case, options: &str) -> (Vec<f64>, Outcome) {
    let strategy = Case::strategy("varco", options);
    let setting = case.setting(strategy.as_ref());
    let outcome = case.train("varco", strategy.as_ref());
    let plans = planned(strategy.as_ref(), &setting);
    for record in &outcome.epochs {
        let sent = outcome.ledger.epoch(record.epoch).unwrap();
        let planned = plans.epoch(record.epoch).unwrap();
        for kind in TrafficKind::ALL {
            assert!(sent.payload_of(kind) <= planned.payload_of(kind), "{kind}");
        }
    }
    let ratios = outcome.epochs.iter().map(|e| e.compression_ratio.unwrap());
    (ratios.collect(), outcome)
}

/// How good an evaluation was.
type Goodness = fn(&Scores) -> f64;

#[test]
fn the_ratio_falls_when_the_validation_loss_or_accuracy_stalls() {
    let case = Case {
        epochs: 30,
        ..case()
    };
    let measures: [(&str, Goodness); 2] = [
        ("", |scores| -scores.validation_loss.unwrap()),
        (", measure = \"accuracy\"", |scores| {
            scores.validation.unwrap()
        }),
    ];
    for (measure, goodness) in measures {
        let schedule =
            "kind = \"adaptive-validation\", from = 16, to = 2, patience = 3, tolerance = 0.02";
        let options = format!("schedule = {{ {schedule}{measure} }}");
        let (ratios, outcome) = adaptive(&case, &options);
        let scores = outcome.epochs.iter().map(|e| goodness(&e.scores.unwrap()));
        // The rule once more, over the scores as they are recorded.
        let (mut ratio, mut best, mut waited) = (16.0_f64, f64::NEG_INFINITY, 0);
        for (epoch, score) in scores.enumerate() {
            assert_eq!(ratios[epoch], ratio, "epoch {epoch}");
            waited += 1;
            if score > best + 0.02 {
                (best, waited) = (score, 0);
            } else if waited == 3 {
                (ratio, waited) = ((ratio / 2.0).max(2.0), 0);
            }
        }
        assert!(ratios[29] < 16.0, "{ratios:?}");
        // Evaluation is not charged, and neither is what it tells.
        let control = outcome.ledger.traffic().payload_of(TrafficKind::Control);
        assert_eq!(control.0, 0);
    }
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
    let pairs = case.epochs * case.workers * (case.workers - 1);
    // One entry for each epoch, direction, and kind of compressed row: layers 0 and 1 forward,
    // layer 1 back; where the product of the features crosses, both back.
    for (point, entries) in [("input", [1, 1, 1]), ("product", [0, 2, 2])] {
        let options = format!("ratio = 2\nexchange = \"{point}\"");
        let plain = case.run("fixed", &options);
        let measured = case.run("fixed", &format!("{options}\nmeasure_error = true"));
        assert_eq!(losses(&plain), losses(&measured));
        assert_eq!(plain.ledger.traffic(), measured.ledger.traffic());
        assert!(plain.coding_errors.is_empty());
        let lanes = |kind| {
            measured
                .coding_errors
                .keys()
                .filter(|(_, lane)| lane.kind == kind)
                .count()
        };
        let kinds = [
            TrafficKind::Feature,
            TrafficKind::Activation,
            TrafficKind::ActivationGradient,
        ];
        assert_eq!(kinds.map(lanes), entries.map(|each| each * pairs));
        // Half of the columns, drawn anew in every epoch, lose half of the squares in the mean.
        let errors: Vec<f64> = measured
            .epochs
            .iter()
            .filter_map(|record| record.compression_error)
            .collect();
        assert_eq!(errors.len(), case.epochs);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!((mean - 0.5).abs() < 0.1, "{point}: {mean}");
    }
}
