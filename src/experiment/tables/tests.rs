//! Tables that go to a folder and come back.

use std::fs;

use super::*;
use crate::experiment::rows::{Activity, ClaimVerdict, Measured, Sweep};
use crate::net::TrafficKind;

fn sample() -> Tables {
    let run = RunRow {
        experiment: "quickstart".into(),
        cell: "full, \"quoted\"".into(),
        strategy: "full, \"quoted\"".into(),
        seed: u64::MAX,
        ..RunRow::finished(Measured {
            val_accuracy: Some(0.1 + 0.2),
            simulated_seconds: 1.0 / 3.0,
            ..Measured::default()
        })
    };
    let swept = RunRow {
        cell: "workers=4 full".into(),
        strategy: "full".into(),
        sweep: Sweep::default().with("workers", 4.into()),
        measured: None,
        status: "failed: out of memory\nor so".into(),
        ..run.clone()
    };
    let epoch = EpochRow {
        epoch: 1,
        train_loss: Some(1.5e-300),
        ..EpochRow::default()
    };
    let traffic = TrafficRow {
        kind: TrafficKind::Activation,
        from: 3,
        ..TrafficRow::default()
    };
    let claim = ClaimRow {
        id: "bytes".into(),
        statement: "10× fewer".into(),
        verdict: ClaimVerdict::Inconclusive,
        ..ClaimRow::default()
    };
    Tables {
        runs: vec![run, swept],
        epochs: vec![EpochRow::default(), epoch],
        traffic: vec![traffic],
        claims: vec![claim],
        timeline: Vec::new(),
        decisions: Vec::new(),
    }
}

#[test]
fn tables_come_back_from_parquet_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    sample().write(folder.path()).unwrap();
    assert_eq!(Tables::read(folder.path()).unwrap(), sample());
}

#[test]
fn a_table_is_read_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |count| {
        (0..count).map(|epoch| EpochRow {
            epoch,
            ..EpochRow::default()
        })
    };
    for count in 0..6 {
        let written: Vec<EpochRow> = rows(count).collect();
        write(folder.path(), &written).unwrap();
        for at_a_time in 1..8 {
            let read: Vec<EpochRow> = files::read_parts(folder.path(), at_a_time).unwrap();
            assert_eq!(read, written, "{count} rows, {at_a_time} at a time");
        }
    }
}

#[test]
fn a_timeline_is_there_only_if_the_last_run_was_traced() {
    let folder = tempfile::tempdir().unwrap();
    let span = TimelineRow {
        activity: Activity::Send,
        kind: Some(TrafficKind::Sample),
        end_seconds: 0.1 + 0.2,
        ..TimelineRow::default()
    };
    let traced = Tables {
        timeline: vec![span],
        ..sample()
    };
    traced.write(folder.path()).unwrap();
    assert_eq!(Tables::read(folder.path()).unwrap(), traced);
    // Parquet and CSV of the four tables that every run has, and of the timeline.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 10);
    sample().write(folder.path()).unwrap();
    assert_eq!(Tables::read(folder.path()).unwrap(), sample());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8);
}

#[test]
fn runs_come_back_from_csv_where_only_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    sample().write(folder.path()).unwrap();
    let csv = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    fs::remove_file(folder.path().join("runs.parquet")).unwrap();
    assert_eq!(Tables::read_runs(folder.path()).unwrap(), sample().runs);
    fs::write(folder.path().join("runs.csv"), "cell,seed\nfull,x\n").unwrap();
    let broken = Tables::read_runs(folder.path()).unwrap_err().to_string();
    assert!(
        broken.contains("runs.csv") && broken.contains("seed"),
        "{broken}"
    );
    let text = csv.replacen(&u64::MAX.to_string(), "many", 1);
    fs::write(folder.path().join("runs.csv"), text).unwrap();
    let broken = Tables::read_runs(folder.path()).unwrap_err().to_string();
    assert!(
        broken.contains("runs.csv") && broken.contains("many"),
        "{broken}"
    );
}

#[test]
fn empty_tables_keep_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    Tables::default().write(folder.path()).unwrap();
    assert_eq!(Tables::read(folder.path()).unwrap(), Tables::default());
    let csv = fs::read_to_string(folder.path().join("claims.csv")).unwrap();
    assert_eq!(
        csv,
        "id,source,statement,expected,measured,low,high,verdict,paper,seeds,censored,p_value,p_adjusted,detectable,seeds_needed,seeds_if_equal,looks,level_spent,decided_after,repartition_bytes,quantity\n"
    );
}

#[test]
fn csv_holds_nulls_as_nothing_and_numbers_in_full() {
    let folder = tempfile::tempdir().unwrap();
    sample().write(folder.path()).unwrap();
    let csv = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "one of them has two lines");
    assert!(lines[1].contains("0.30000000000000004"), "{}", lines[1]);
    assert!(lines[1].contains("0.3333333333333333"), "{}", lines[1]);
    assert!(
        lines[1].contains("\"full, \"\"quoted\"\"\""),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains("18446744073709551615"), "{}", lines[1]);
}

#[test]
fn a_table_longer_than_what_is_written_at_a_time_comes_back_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let traffic = |epoch| TrafficRow {
        epoch,
        ..TrafficRow::default()
    };
    let rows: Vec<TrafficRow> = (0..300_000).map(traffic).collect();
    write(folder.path(), &rows).unwrap();
    assert_eq!(read_parquet::<TrafficRow>(folder.path()).unwrap(), rows);
    let csv = path_of::<TrafficRow>(folder.path()).with_extension("csv");
    assert_eq!(read_csv::<TrafficRow>(&csv).unwrap(), rows);
}

#[test]
fn writing_twice_gives_the_same_bytes_and_no_stray_file() {
    let folder = tempfile::tempdir().unwrap();
    sample().write(folder.path()).unwrap();
    let parquet = folder.path().join("runs.parquet");
    let first = fs::read(&parquet).unwrap();
    sample().write(folder.path()).unwrap();
    assert_eq!(fs::read(&parquet).unwrap(), first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8);
}

#[test]
fn a_missing_table_a_broken_one_and_a_foreign_one_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Tables::read(folder.path()).unwrap_err().to_string();
    assert!(
        missing.contains("cannot read") && missing.contains("runs.parquet"),
        "{missing}"
    );

    sample().write(folder.path()).unwrap();
    let epochs = folder.path().join("epochs.parquet");
    fs::write(&epochs, b"PAR1 nonsense").unwrap();
    let broken = Tables::read(folder.path()).unwrap_err().to_string();
    assert!(broken.contains("epochs.parquet"), "{broken}");

    fs::copy(folder.path().join("claims.parquet"), &epochs).unwrap();
    let foreign = Tables::read(folder.path()).unwrap_err().to_string();
    assert!(
        foreign.contains("epochs.parquet") && foreign.contains("experiment"),
        "{foreign}"
    );
}

#[test]
fn swept_tables_that_do_not_say_over_what_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut tables = sample();
    tables.runs[1].sweep = Sweep::default();
    tables.write(folder.path()).unwrap();
    let refused = Tables::read(folder.path()).unwrap_err().to_string();
    assert!(
        refused.contains("runs.parquet") && refused.contains("column `sweep`, row 1"),
        "{refused}"
    );
    assert_eq!(Tables::read_runs(folder.path()).unwrap(), tables.runs);
}

#[test]
fn a_parquet_file_whose_end_is_altered_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    sample().write(folder.path()).unwrap();
    let path = path_of::<RunRow>(folder.path());
    let whole = fs::read(&path).unwrap();
    // The description of the columns lies at the end.
    for place in (whole.len() / 2..whole.len()).step_by(97) {
        let mut altered = whole.clone();
        altered[place] ^= 0x41;
        fs::write(&path, altered).unwrap();
        let _ = Tables::read(folder.path());
    }
}
