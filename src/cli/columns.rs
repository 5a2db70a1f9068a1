//! The columns of the result tables, in the words of their documentation: `grapevine list columns`.

use crate::experiment::rows::{
    BesideRow, ClaimRow, DecisionRow, EpochRow, ProjectionRow, Row, RunRow, TimelineRow, TrafficRow,
};

/// Table and column, and what the column says.
pub(super) fn all() -> Vec<[String; 2]> {
    [
        of::<RunRow>(),
        of::<EpochRow>(),
        of::<TrafficRow>(),
        of::<ClaimRow>(),
        of::<TimelineRow>(),
        of::<DecisionRow>(),
        of::<ProjectionRow>(),
        of::<BesideRow>(),
    ]
    .concat()
}

fn of<R: Row>() -> Vec<[String; 2]> {
    let columns = R::COLUMNS.iter();
    columns
        .map(|column| {
            let about: Vec<&str> = column.about.iter().map(|line| line.trim()).collect();
            // Links of the documentation are names here.
            let about = about.join(" ").replace(['[', ']'], "");
            [format!("{}.{}", R::TABLE, column.name), about]
        })
        .collect()
}
