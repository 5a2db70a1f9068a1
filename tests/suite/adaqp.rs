//! `AdaQP`: what few bits cost, and that no more is sent than they take.

use crate::common::{Case, KINDS, assert_close, losses, planned};
use grapevine::graph::BoundaryPlan;
use grapevine::net::TrafficKind;
use grapevine::sim::Outcome;
use grapevine::strategies::Registry;

const ROWS: [TrafficKind; 3] = [
    TrafficKind::Feature,
    TrafficKind::Activation,
    TrafficKind::ActivationGradient,
];

fn payload(outcome: &Outcome, epoch: usize, kind: TrafficKind) -> u64 {
    let traffic = outcome.ledger.epoch(epoch).expect("something is sent");
    traffic.payload_of(kind).0
}

fn node_data(outcome: &Outcome, epoch: usize) -> u64 {
    ROWS.iter().map(|&kind| payload(outcome, epoch, kind)).sum()
}

/// The sum over all pairs' messages of one layer and direction.
fn bytes(boundary: &BoundaryPlan, of: impl Fn(u64) -> u64) -> u64 {
    let workers = boundary.workers();
    let pairs = (0..workers).flat_map(|from| (0..workers).map(move |to| (from, to)));
    let rows = pairs.map(|(from, to)| boundary.rows(from, to) as u64);
    rows.filter(|&rows| rows > 0).map(of).sum()
}

#[test]
fn a_row_costs_four_bytes_and_its_bits_in_every_layer_and_both_directions() {
    for kind in KINDS {
        let case = Case {
            kind,
            workers: 3,
            epochs: 2,
            ..Case::default()
        };
        let strategy = Case::strategy("adaqp", "");
        let setting = case.setting(strategy.as_ref());
        let widths: Vec<u64> = setting.model.widths.iter().map(|&w| w as u64).collect();
        for bits in [2, 4, 8] {
            let layer = |width: u64| {
                let message = |rows: u64| 4 * rows + (rows * width * bits).div_ceil(8);
                bytes(&setting.boundary, message)
            };
            let hidden: u64 = widths[1..case.layers].iter().map(|&w| layer(w)).sum();
            for cached in [false, true] {
                let options = format!("bits = {bits}\ncache_features = {cached}");
                let outcome = case.run("adaqp", &options);
                for epoch in 0..case.epochs {
                    let whole = bytes(&setting.boundary, |rows| 4 * rows * widths[0]);
                    let features = match (cached, epoch) {
                        (false, _) => layer(widths[0]),
                        (true, 0) => whole,
                        (true, _) => 0,
                    };
                    let expected = [features, hidden, hidden];
                    let found = ROWS.map(|kind| payload(&outcome, epoch, kind));
                    assert_eq!(found, expected, "{kind:?}, {options}");
                }
                let ratio = outcome.epochs[0].compression_ratio;
                assert_eq!(ratio, Some(32.0 / bits as f64));
            }
        }
        // A third of the rows each: 2, 4, 8, 2, 4, 8, …
        let random = case.run("adaqp", "bits = \"random\"");
        let layer = |width: u64| {
            bytes(&setting.boundary, |rows| {
                let bits: u64 = (0..rows).map(|row| [2, 4, 8][row as usize % 3]).sum();
                4 * rows + (bits * width).div_ceil(8)
            })
        };
        let hidden: u64 = widths[1..case.layers].iter().map(|&w| layer(w)).sum();
        assert_eq!(node_data(&random, 1), layer(widths[0]) + 2 * hidden);
    }
}

#[test]
fn adaptive_bits_are_eight_at_first_and_then_what_lambda_says_and_never_more() {
    let case = Case {
        epochs: 7,
        ..Case::default()
    };
    let run = |group: usize, options: &str| {
        let options = format!("assign_every = 3\ngroup = {group}\n{options}");
        let strategy = Case::strategy("adaqp", &options);
        let setting = case.setting(strategy.as_ref());
        let outcome = case.train("adaqp", strategy.as_ref());
        let plans = planned(strategy.as_ref(), &setting);
        for record in &outcome.epochs {
            let planned = plans.epoch(record.epoch).unwrap();
            let sent = outcome.ledger.epoch(record.epoch).unwrap();
            for kind in TrafficKind::ALL {
                assert!(sent.payload_of(kind) <= planned.payload_of(kind), "{kind}");
            }
        }
        (outcome, setting)
    };
    let [two, eight] = [2, 8].map(|bits| case.run("adaqp", &format!("bits = {bits}")));
    let (adaptive, setting) = run(2, "");
    for epoch in 0..case.epochs {
        let found = node_data(&adaptive, epoch);
        if epoch < 3 {
            assert_eq!(found, node_data(&eight, epoch), "nothing is assigned yet");
        } else {
            assert!(found > node_data(&two, epoch) && found < node_data(&eight, epoch));
        }
        let ratio = adaptive.epochs[epoch].compression_ratio.unwrap();
        assert!((4.0..=16.0).contains(&ratio), "{ratio}");
        assert_eq!(ratio > 4.0, epoch >= 3);
        // An assignment holds for three epochs.
        assert_eq!(found, node_data(&adaptive, epoch / 3 * 3));
    }
    assert_eq!(losses(&adaptive)[..3], losses(&eight)[..3]);
    // Before an assignment, one float for each group: forward and back at layers 1 and 2, and
    // forward at layer 0.
    let groups = bytes(&setting.boundary, |rows| rows.div_ceil(2)) * 5;
    for epoch in 0..case.epochs {
        let expected = if [2, 5].contains(&epoch) {
            2 * 3 * 4 * groups
        } else {
            0
        };
        assert_eq!(payload(&adaptive, epoch, TrafficKind::Control), expected);
    }
    // All weight on time or on variance, with a group for each message: one that does not spread
    // would need but two bits.
    let [time, variance] = ["lambda = 0", "lambda = 1"].map(|lambda| run(1000, lambda).0);
    for epoch in 3..case.epochs {
        assert_eq!(node_data(&time, epoch), node_data(&two, epoch));
        assert_eq!(node_data(&variance, epoch), node_data(&eight, epoch));
    }
    assert_eq!(
        losses(&run(2, "").0),
        losses(&adaptive),
        "it repeats itself"
    );
    let cached = run(2, "cache_features = true").0;
    assert_eq!(payload(&cached, 4, TrafficKind::Feature), 0);
}

#[test]
fn bits_are_assigned_after_a_fifth_of_the_epochs_unless_it_is_said() {
    for (epochs, every) in [(10, 2), (14, 2), (3, 1)] {
        let case = Case {
            epochs,
            ..Case::default()
        };
        let (silent, said) = (
            case.run("adaqp", ""),
            case.run("adaqp", &format!("assign_every = {every}")),
        );
        assert_eq!(silent.ledger, said.ledger, "{epochs} epochs");
        for epoch in 0..epochs {
            let ratio = silent.epochs[epoch].compression_ratio.unwrap();
            assert_eq!(ratio > 4.0, epoch >= every, "epoch {epoch} of {epochs}");
        }
    }
}

#[test]
fn more_bits_are_nearer_to_full_and_eight_are_near() {
    let case = Case {
        dropout: 0.0,
        epochs: 20,
        ..Case::default()
    };
    let full = losses(&case.run("full", ""));
    let off = |bits: &str| {
        let found = losses(&case.run("adaqp", &format!("bits = {bits}")));
        let each = found.iter().zip(&full).map(|(a, b)| (a / b - 1.0).powi(2));
        each.sum::<f64>()
    };
    let [two, four, eight] = ["2", "4", "8"].map(off);
    assert!(two > four && four > eight, "{two}, {four}, {eight}");
    let eight = losses(&case.run("adaqp", "bits = 8"));
    assert_close(&eight, &full, 0.01, "eight bits");
}

#[test]
fn it_overlaps_and_trains_in_batches_where_bits_are_not_assigned() {
    let case = Case {
        workers: 2,
        ..Case::default()
    };
    for options in ["bits = 4", "bits = \"random\"", "assign_every = 1"] {
        let plain = losses(&case.run("adaqp", options));
        let overlapped = case.run("adaqp", &format!("{options}\noverlap = true"));
        assert_eq!(losses(&overlapped), plain, "{options}");
    }
    let batches = Case::in_batches();
    for options in ["bits = 2", "bits = \"random\"\ncache_features = true"] {
        // Plan and ledger are compared inside.
        let outcome = batches.run("adaqp", options);
        assert!(losses(&outcome).iter().all(|loss| loss.is_finite()));
    }
    // Adaptive bits need all nodes at once.
    let (_, message) = batches.refused("adaqp", "");
    assert!(message.contains("training.batch"), "{message}");
}

#[test]
fn few_bits_learn_cora_about_as_well_as_whole_floats() {
    let full = Case::learnt("full", "");
    for options in ["bits = 4", "assign_every = 10"] {
        let found = Case::learnt("adaqp", options);
        assert!(found > full - 0.03, "{options}: {found} of {full}");
    }
}

#[test]
fn options_without_effect_or_sense_are_refused() {
    let key = |text: &str| Case::default().refused("adaqp", text).0;
    for bits in ["1", "3", "16", "-2", "2.0", "\"some\"", "[2]"] {
        let key = key(&format!("bits = {bits}"));
        assert_eq!(key.as_deref(), Some("bits"), "{bits}");
    }
    for (text, expected) in [
        ("assign_every = 0", "assign_every"),
        ("group = 0", "group"),
        ("lambda = 1.5", "lambda"),
        ("lambda = nan", "lambda"),
        ("bits = 4\nlambda = 0.5", "lambda"),
        ("bits = \"random\"\ngroup = 5", "group"),
        ("bits = 8\nassign_every = 5", "assign_every"),
    ] {
        assert_eq!(key(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn workers_that_sum_gradients_more_than_once_are_not_said_to_agree_at_the_end_alone() {
    let case = Case::in_batches();
    for bits in ["4", "\"random\""] {
        let options = format!("bits = {bits}\ngradients = {{ every = {} }}", case.epochs);
        let fitted = case.fit(&Registry::builtin(), "adaqp", &options);
        let training = fitted.expect("it fits");
        assert!(training.setting().steps().count() > 1);
        assert!(training.notes().is_empty(), "{:?}", training.notes());
    }
}
