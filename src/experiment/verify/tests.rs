//! Sound tables pass; every tampering is found.

use TrafficKind::{Control, Feature, ParameterGradient};

use super::*;
use crate::experiment::rows::{ClaimVerdict, Measured};
use crate::experiment::statistics::{Correction, IntervalMethod};
use crate::net::TrafficKind;

/// Two seeds are enough.
const LENIENT: Statistics = Statistics {
    interval: IntervalMethod::StudentT,
    level: 0.95,
    minimum_seeds: 2,
    correction: Correction::Holm,
    looks: None,
};

struct Tables {
    runs: Vec<RunRow>,
    epochs: Vec<EpochRow>,
    traffic: Vec<TrafficRow>,
    claim_rows: Vec<ClaimRow>,
    claims: Vec<ClaimSpec>,
}

/// Two cells, two seeds, three epochs, two workers.
fn sound() -> Tables {
    let mut tables = Tables {
        runs: Vec::new(),
        epochs: Vec::new(),
        traffic: Vec::new(),
        claim_rows: Vec::new(),
        claims: vec![
            toml::from_str(
                "id = 'c'\nsource = 's'\nstatement = 'x'\nmeasure = 'test_accuracy'\n\
                 compare = { strategy = 'full', at_least = 0.5 }",
            )
            .unwrap(),
        ],
    };
    for (cell, seed) in [("full", 0), ("full", 1), ("fixed", 0), ("fixed", 1)] {
        let name = || cell.to_owned();
        for epoch in 0..3_u64 {
            for (kind, payload_bytes) in [(Feature, 100), (ParameterGradient, 50)] {
                for from in 0..2 {
                    tables.traffic.push(TrafficRow {
                        cell: name().into(),
                        seed,
                        epoch,
                        layer: 0,
                        from,
                        to: 1 - from,
                        kind,
                        messages: 1,
                        payload_bytes,
                        wire_bytes: payload_bytes + 78,
                        compression_error: None,
                    });
                }
            }
            let accuracy = [0.5, 0.8, 0.7][usize::try_from(epoch).unwrap()];
            tables.epochs.push(EpochRow {
                cell: name(),
                strategy: name(),
                seed,
                epoch,
                simulated_seconds: 1.0 + epoch as f64,
                measured_seconds: 2.0 + epoch as f64,
                // Each of two workers sends 100 and 50 bytes an epoch, and each of the four
                // messages has 78 bytes of framing.
                payload_bytes: 300 * (epoch + 1),
                wire_bytes: 612 * (epoch + 1),
                val_accuracy: Some(accuracy),
                test_accuracy: Some(accuracy - 0.01 * seed as f64),
                ..EpochRow::default()
            });
        }
        tables.runs.push(RunRow {
            cell: name(),
            strategy: name(),
            seed,
            workers: 2,
            epochs: 3,
            ..RunRow::finished(Measured {
                best_epoch: Some(1),
                val_accuracy: Some(0.8),
                test_accuracy: Some(0.8 - 0.01 * seed as f64),
                payload_bytes: 900,
                wire_bytes: 1836,
                both_ends_bytes: 1800,
                feature_bytes: 600,
                parameter_gradient_bytes: 300,
                messages: 12,
                simulated_seconds: 3.0,
                compute_seconds: 2.0,
                communication_seconds: 1.5,
                exposed_communication_seconds: 1.0,
                measured_seconds: 4.0,
                seconds_to_target: Some(2.0),
                bytes_to_target: Some(600),
                ..Measured::default()
            })
        });
    }
    tables.claim_rows = judge(&tables.claims, &tables.runs, &LENIENT);
    tables
}

fn breaches(change: impl FnOnce(&mut Tables)) -> Vec<String> {
    let mut tables = sound();
    change(&mut tables);
    let Tables {
        runs,
        epochs,
        traffic,
        claim_rows,
        claims,
    } = &tables;
    verify(runs, epochs, traffic, claim_rows, Some((claims, &LENIENT)))
        .iter()
        .map(Breach::to_string)
        .collect()
}

#[test]
fn sound_tables_have_no_breach() {
    assert_eq!(breaches(|_| ()), [""; 0]);
}

type Change = fn(&mut Tables);

fn of(tables: &mut Tables, row: usize) -> &mut Measured {
    tables.runs[row].measured.as_mut().unwrap()
}

/// What is changed, and one of the breaches that this must cause.
const TAMPERED: &[(Change, &str)] = &[
    (
        |t| of(t, 0).payload_bytes += 1,
        "runs, row 0: payload_bytes is 901, but the sum of the kinds is 900",
    ),
    (
        |t| of(t, 1).feature_bytes += 1,
        "runs, row 1: feature_bytes is 601, but its sum in traffic is 600",
    ),
    (
        |t| of(t, 1).activation_bytes += 1,
        "runs, row 1: activation_bytes is 1, but its sum in traffic is 0",
    ),
    (
        |t| of(t, 1).control_bytes += 1,
        "runs, row 1: payload_bytes is 900, but the sum of the kinds is 901",
    ),
    (
        |t| of(t, 0).messages += 1,
        "runs, row 0: messages is 13, but the sum in traffic is 12",
    ),
    (
        |t| of(t, 0).wire_bytes += 1,
        "runs, row 0: wire_bytes is 1837, but the sum in traffic is 1836",
    ),
    (
        |t| of(t, 0).both_ends_bytes += 1,
        "runs, row 0: both_ends_bytes is 1801, but twice payload_bytes is 1800",
    ),
    (
        |t| of(t, 0).wire_bytes = 1,
        "runs, row 0: wire_bytes 1 is less than payload_bytes 900",
    ),
    (
        |t| of(t, 0).test_accuracy = Some(0.9),
        "runs, row 0: test_accuracy is 0.9, but that of best_epoch is 0.8",
    ),
    (
        |t| of(t, 0).val_accuracy = Some(1.1),
        "runs, row 0: val_accuracy is 1.1, not in 0 to 1",
    ),
    (
        |t| of(t, 0).val_accuracy = None,
        "runs, row 0: val_accuracy is null, but that of best_epoch is 0.8",
    ),
    (
        |t| of(t, 0).best_epoch = Some(2),
        "runs, row 0: val_accuracy is 0.8, but that of best_epoch is 0.7",
    ),
    (
        |t| of(t, 0).best_epoch = Some(9),
        "runs, row 0: best_epoch 9 is not in epochs",
    ),
    (
        |t| of(t, 0).best_epoch = None,
        "runs, row 0: best_epoch is missing, though epochs were evaluated",
    ),
    (
        |t| t.epochs[2].val_accuracy = Some(0.9),
        "runs, row 0: val_accuracy is 0.8, but the highest of its epochs is 0.9",
    ),
    (
        |t| t.runs[0].epochs = 4,
        "runs, row 0: epochs is 4, but the number of its rows in epochs is 3",
    ),
    (
        |t| of(t, 0).compute_seconds = 2.1,
        "runs, row 0: compute_seconds + exposed_communication_seconds 3.1 is more than simulated_seconds 3",
    ),
    (
        |t| of(t, 0).waiting_seconds = Some(0.5),
        "runs, row 0: compute_seconds + exposed_communication_seconds + waiting_seconds 3.5 is more than simulated_seconds 3",
    ),
    (
        |t| of(t, 0).communication_seconds = 0.5,
        "runs, row 0: exposed_communication_seconds 1 is more than communication_seconds 0.5",
    ),
    (
        |t| of(t, 0).measured_seconds = f64::NAN,
        "runs, row 0: measured_seconds is NaN, not a time",
    ),
    (
        |t| of(t, 0).compute_seconds = -1.0,
        "runs, row 0: compute_seconds is -1, not a time",
    ),
    (
        |t| of(t, 0).seconds_to_target = Some(3.5),
        "runs, row 0: seconds_to_target 3.5 is more than simulated_seconds 3",
    ),
    (
        |t| of(t, 0).bytes_to_target = Some(901),
        "runs, row 0: bytes_to_target 901 is more than payload_bytes 900",
    ),
    (
        |t| t.runs[1].seed = 0,
        "runs, row 1: cell `full` with seed 0 is in row 0 too",
    ),
    (
        |t| t.runs[1].seed = 7,
        "runs: cell `fixed` has no row for seed 7, which other cells have",
    ),
    (
        |t| t.epochs[4].epoch = 7,
        "epochs, row 4: epoch is 7, but the next one is 1",
    ),
    (
        |t| t.epochs.swap(0, 1),
        "epochs, row 0: epoch is 1, but the next one is 0",
    ),
    (
        |t| t.epochs[0].cell = "x".to_owned(),
        "epochs, row 0: cell `x` with seed 0 is not in the table of runs",
    ),
    (
        |t| t.epochs[0].strategy = "x".to_owned(),
        "epochs, row 0: strategy is x, but that of the run is full",
    ),
    (
        |t| t.epochs[1].payload_bytes = 601,
        "epochs, row 1: payload_bytes is 601, but the sum in traffic up to the epoch is 600",
    ),
    (
        |t| t.epochs[1].wire_bytes = 1,
        "epochs, row 1: wire_bytes falls from 612 to 1, though it is cumulative",
    ),
    (
        |t| t.epochs[1].simulated_seconds = 0.5,
        "epochs, row 1: simulated_seconds falls from 1 to 0.5, though it is cumulative",
    ),
    (
        |t| t.epochs[2].simulated_seconds = 3.5,
        "epochs, row 2: simulated_seconds 3.5 at the last epoch is more than the run's 3",
    ),
    (
        |t| t.epochs[1].train_accuracy = Some(-0.1),
        "epochs, row 1: train_accuracy is -0.1, not in 0 to 1",
    ),
    (
        |t| t.epochs[1].val_loss = Some(-0.1),
        "epochs, row 1: val_loss is -0.1, below 0",
    ),
    (
        |t| t.traffic[0].payload_bytes += 1,
        "runs, row 0: feature_bytes is 600, but its sum in traffic is 601",
    ),
    (
        |t| t.traffic[0].wire_bytes = 99,
        "traffic, row 0: wire_bytes 99 is less than payload_bytes 100",
    ),
    (
        |t| t.traffic[0].kind = Control,
        "runs, row 0: control_bytes is 0, but its sum in traffic is 100",
    ),
    (
        |t| t.runs[0].status = "fine".to_owned(),
        "runs, row 0: status is `fine`, but what was to be measured is there",
    ),
    (
        |t| t.runs[0].measured = None,
        "runs, row 0: status is `ok`, but what was to be measured is not there",
    ),
    (
        |t| t.traffic[0].to = 2,
        "traffic, row 0: 0 to 2 are no two of 2 workers",
    ),
    (
        |t| t.traffic[0].epoch = 1,
        "epochs, row 0: payload_bytes is 300, but the sum in traffic up to the epoch is 200",
    ),
    (
        |t| t.traffic[1] = t.traffic[0].clone(),
        "traffic, row 1: an earlier row has the same cell, seed, epoch, layer, direction and kind",
    ),
    (
        |t| t.claim_rows[0].measured = Some(0.9),
        "claims, row 0: measured is 0.9, but the runs give 0.795",
    ),
    (|t| t.claim_rows.clear(), "claims: claim `c` has no row"),
];

#[test]
fn every_tampering_is_named() {
    for &(change, expected) in TAMPERED {
        let found = breaches(change);
        assert!(
            found.iter().any(|breach| breach == expected),
            "expected {expected}\nin {found:#?}"
        );
    }
}

#[test]
fn a_claim_judged_otherwise_than_the_runs_say_is_found() {
    let found = breaches(|tables| tables.claim_rows[0].verdict = ClaimVerdict::NotReproduced);
    let what = "verdict is not reproduced, but the verdict of the claim and its runs is";
    assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
}

#[test]
fn a_failed_run_needs_only_its_row() {
    let found = breaches(|tables| {
        tables.runs[3].status = "failed: out of memory".to_owned();
        tables.runs[3].measured = None;
        tables.epochs.truncate(10);
    });
    assert_eq!(found, [""; 0]);
}
