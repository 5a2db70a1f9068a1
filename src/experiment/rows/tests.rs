use super::*;

fn names<R: Row>() -> Vec<&'static str> {
    R::COLUMNS.iter().map(|column| column.name).collect()
}

#[test]
fn claims_have_the_documented_columns_in_order() {
    let documented = [
        "id",
        "source",
        "statement",
        "expected",
        "measured",
        "low",
        "high",
        "verdict",
    ];
    let names_of_claims = names::<ClaimRow>();
    let (first, more) = names_of_claims.split_at(documented.len());
    assert_eq!(first, documented);
    assert_eq!(
        more,
        [
            "paper",
            "seeds",
            "censored",
            "p_value",
            "p_adjusted",
            "detectable",
            "seeds_needed",
            "seeds_if_equal",
            "looks",
            "level_spent",
            "decided_after",
            "repartition_bytes",
            "quantity"
        ]
    );
    assert_eq!(names::<RunRow>().len(), 55);
    assert_eq!(names::<EpochRow>().len(), 20);
    assert_eq!(names::<TrafficRow>().len(), 11);
}

#[test]
fn rows_survive_the_way_through_columns() {
    let rows = vec![
        EpochRow {
            cell: "full".into(),
            epoch: 3,
            train_loss: Some(0.5),
            ..EpochRow::default()
        },
        EpochRow {
            val_accuracy: Some(1.0),
            payload_bytes: u64::MAX,
            ..EpochRow::default()
        },
    ];
    let columns = EpochRow::to_columns(&rows);
    assert_eq!(EpochRow::from_columns(&columns), Ok(rows));
}

#[test]
fn what_was_to_be_measured_is_null_where_a_run_failed() {
    let failed = RunRow {
        edge_cut: 7,
        status: "failed: out of memory".into(),
        ..RunRow::default()
    };
    let finished = RunRow {
        parameters: Some(0),
        ..RunRow::finished(Measured::default())
    };
    let rows = [failed, finished];
    let columns = RunRow::to_columns(&rows);
    let nulls = |row: usize| {
        let named = RunRow::COLUMNS.iter().zip(&columns);
        let null = named.filter(|(_, values)| match values {
            Values::Text(_) => false,
            Values::Count(cells) => cells[row].is_none(),
            Values::Real(cells) => cells[row].is_none(),
        });
        null.map(|(column, _)| column.name).collect::<Vec<_>>()
    };
    assert_eq!(nulls(0).len(), 33);
    for column in [
        "parameters",
        "payload_bytes",
        "messages",
        "peak_memory_bytes",
    ] {
        assert!(nulls(0).contains(&column) && !nulls(1).contains(&column));
        assert_eq!(
            (rows[0].number(column), rows[1].number(column)),
            (None, Some(0.0))
        );
    }
    assert_eq!(rows[0].number("edge_cut"), Some(7.0));
    assert_eq!(RunRow::from_columns(&columns), Ok(rows.to_vec()));

    // All of them or none.
    let mut columns = columns;
    let place = |name| RunRow::COLUMNS.iter().position(|of| of.name == name);
    columns[place("messages").unwrap()] = Values::Count(vec![Some(1), Some(1)]);
    assert_eq!(
        RunRow::from_columns(&columns).unwrap_err(),
        RowError::Entry {
            column: "payload_bytes",
            row: 0,
            wanted: "whole number"
        }
    );
}

#[test]
fn a_null_where_none_is_allowed_is_named() {
    let mut columns = TrafficRow::to_columns(&[TrafficRow::default(), TrafficRow::default()]);
    columns[8] = Values::Count(vec![Some(1), None]);
    let error = TrafficRow::from_columns(&columns).unwrap_err();
    let wanted = "whole number";
    assert_eq!(
        error,
        RowError::Entry {
            column: "payload_bytes",
            row: 1,
            wanted
        }
    );
}

#[test]
fn names_are_columns_of_text_and_no_other_text_is_one() {
    let rows = [None, Some(TrafficKind::Sample)].map(|kind| TimelineRow {
        activity: Activity::Send,
        kind,
        ..TimelineRow::default()
    });
    let mut columns = TimelineRow::to_columns(&rows);
    assert_eq!(columns[6], Values::Text(vec!["".into(), "sample".into()]));
    assert_eq!(TimelineRow::from_columns(&columns), Ok(rows.to_vec()));
    columns[5] = Values::Text(vec!["send".into(), "gossip".into()]);
    assert_eq!(
        TimelineRow::from_columns(&columns).unwrap_err().to_string(),
        "column `activity`, row 1 (from 0): what stands there, if anything, is no activity"
    );
}

#[test]
fn a_verdict_is_one_of_three() {
    let mut columns = ClaimRow::to_columns(&[ClaimRow::default()]);
    let place = ClaimRow::COLUMNS
        .iter()
        .position(|column| column.name == "verdict");
    columns[place.unwrap()] = Values::Text(vec!["proven".into()]);
    assert_eq!(
        ClaimRow::from_columns(&columns).unwrap_err().to_string(),
        "column `verdict`, row 0 (from 0): what stands there, if anything, is no verdict"
    );
}

#[test]
fn node_data_are_features_activations_and_their_gradients() {
    let measured = Measured {
        feature_bytes: 1,
        activation_bytes: 2,
        activation_gradient_bytes: 4,
        parameter_gradient_bytes: 8,
        control_bytes: 16,
        ..Measured::default()
    };
    assert_eq!(measured.node_data_bytes(), 7);
}

#[test]
fn a_short_column_is_named() {
    let mut columns = TrafficRow::to_columns(&[TrafficRow::default()]);
    columns.pop();
    let error = TrafficRow::from_columns(&columns).unwrap_err();
    assert_eq!(
        error,
        RowError::Length {
            column: "compression_error",
            found: 0,
            expected: 1
        }
    );
}

#[test]
fn numbers_are_found_by_column_name() {
    let run = RunRow::finished(Measured {
        messages: 7,
        test_accuracy: Some(0.8),
        ..Measured::default()
    });
    assert_eq!(run.number("messages"), Some(7.0));
    assert_eq!(run.number("test_accuracy"), Some(0.8));
    assert_eq!(run.number("val_accuracy"), None, "null");
    assert_eq!(run.number("strategy"), None, "text");
    assert_eq!(run.number("mesages"), None, "no such column");
}
