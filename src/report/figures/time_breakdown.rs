//! Where simulated time goes.

use super::multiples::{Multiples, rows};
use super::seeds;
use crate::report::format;
use crate::report::plot::{Figure, Row, Unit};
use crate::report::series::Entrant;
use crate::report::style::TIMES;

/// Stacked bars of computing, exposed communication, and waiting for other workers.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    of(cells, "simulated time")
}

/// The same of a time that the axis gives this name.
pub(super) fn of(cells: &[Entrant], axis: &str) -> Option<Figure> {
    let takes_time =
        |cell: &Entrant| row(cell).is_some_and(|row| row.lengths.iter().sum::<f64>() > 0.0);
    if !cells.iter().any(takes_time) {
        return None;
    }
    let shown = Multiples::of(cells, 1);
    let panels = shown.bars((axis, Unit::Seconds, TIMES.to_vec()), row);
    let told = shown.told(|cell| {
        let row = row(cell)?;
        // A strategy that takes no time at all stays at 0 %.
        let exposed = row.lengths[1] / row.lengths.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let exposed = format::percent(exposed);
        Some(format!(
            "{} took {}, {exposed} of it communication",
            cell.label, row.note
        ))
    });
    Some(Figure {
        kind: "time-breakdown",
        title: "Where simulated time goes".into(),
        caption: format!(
            "Simulated time of a whole run, mean over workers, {}. Exposed communication is the part that \
             computation does not hide, and waiting is for workers that had not begun to send; evaluation and partitioning \
             are excluded.{}",
            seeds(cells),
            shown.caption()
        ),
        alt: format!("Simulated time: {told}."),
        rows: rows(vec![panels]),
        note: shown.note,
    })
}

fn row(cell: &Entrant) -> Option<Row> {
    let mean = |column: &str| cell.column(column).map(|sum| sum.mean);
    let total = mean("simulated_seconds")?;
    let compute = mean("compute_seconds")?;
    let exposed = mean("exposed_communication_seconds")?;
    // Means over workers and a maximum over workers do not add up: the rest is waiting. Rounding
    // errors are not.
    let rest = total - compute - exposed;
    let waiting = if rest > total * 1e-3 { rest } else { 0.0 };
    Some(Row {
        label: cell.strategy.to_owned(),
        lengths: vec![compute, exposed, waiting],
        note: format::seconds(total),
    })
}
