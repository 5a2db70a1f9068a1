//! Where simulated time goes.

use super::{list, seeds};
use crate::report::format;
use crate::report::plot::{Bars, Figure, Panel, Row, Unit};
use crate::report::series::Cell;
use crate::report::style::TIMES;

/// Stacked bars of computing, exposed communication, and waiting for other workers.
pub fn figure(cells: &[Cell]) -> Option<Figure> {
    let rows: Vec<Row> = cells
        .iter()
        .filter_map(|cell| {
            let mean = |column: &str| cell.column(column).map(|sum| sum.mean);
            let total = mean("simulated_seconds")?;
            let compute = mean("compute_seconds")?;
            let exposed = mean("exposed_communication_seconds")?;
            // Means over workers and a maximum over workers do not add up: the rest is waiting. Rounding
            // errors are not.
            let rest = total - compute - exposed;
            let waiting = if rest > total * 1e-3 { rest } else { 0.0 };
            let note = format::seconds(total);
            Some(Row {
                label: cell.label.clone(),
                lengths: vec![compute, exposed, waiting],
                note,
            })
        })
        .collect();
    if rows
        .iter()
        .all(|row| row.lengths.iter().sum::<f64>() <= 0.0)
    {
        return None;
    }
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            let exposed = row.lengths[1] / row.lengths.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            format!(
                "{} took {}, {} of it communication",
                row.label,
                row.note,
                format::percent(exposed)
            )
        })
        .collect();
    Some(Figure {
        kind: "time-breakdown",
        title: "Where simulated time goes".into(),
        caption: format!(
            "Simulated time of a whole run, mean over workers, {}. Exposed communication is the part that \
             computation does not hide; evaluation and partitioning are excluded.",
            seeds(cells)
        ),
        alt: format!("Simulated time: {}.", list(&told)),
        panels: vec![(
            String::new(),
            Panel::Bars(Bars {
                name: "simulated time".into(),
                unit: Unit::Seconds,
                fills: TIMES.to_vec(),
                rows,
            }),
        )],
    })
}
