//! What each strategy sent, as stacked bars: node data first and plain, everything else behind it and hatched.

use super::{list, seeds};
use crate::report::format;
use crate::report::plot::{Bars, Figure, Panel, Row, Unit};
use crate::report::series::Cell;
use crate::report::style::{KINDS, NODE_DATA_KINDS};

/// Payload by kind, mean over seeds.
pub fn figure(cells: &[Cell]) -> Option<Figure> {
    if cells.is_empty() {
        return None;
    }
    let mut rows: Vec<Row> = cells
        .iter()
        .map(|cell| {
            let mean = |kind: &str| {
                cell.column(&format!("{kind}_bytes"))
                    .map_or(0.0, |sum| sum.mean)
            };
            let lengths: Vec<f64> = KINDS.iter().map(|(kind, _)| mean(kind)).collect();
            let note = format::bytes(lengths.iter().sum());
            Row {
                label: cell.label.clone(),
                lengths,
                note,
            }
        })
        .collect();
    let node_data = |row: &Row| row.lengths[..NODE_DATA_KINDS].iter().sum::<f64>();
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            let node_data = format::bytes(node_data(row));
            format!(
                "{} sent {}, of which node data {node_data}",
                row.label, row.note
            )
        })
        .collect();
    // Too little to be seen is said in numbers.
    let longest = rows
        .iter()
        .map(|row| row.lengths.iter().sum::<f64>())
        .fold(0.0, f64::max);
    for row in &mut rows {
        let node_data = node_data(row);
        if node_data > 0.0 && node_data < 0.05 * longest {
            row.note = format!("{} (node data {})", row.note, format::bytes(node_data));
        }
    }
    Some(Figure {
        kind: "bytes-by-kind",
        title: "Bytes sent, by kind".into(),
        caption: format!(
            "Payload of a whole run by kind; {}. Plain: node data (features, activations and their gradients). \
             Hatched: everything else. The number at the end of a bar is its total.",
            seeds(cells),
        ),
        alt: format!("Payload by kind: {}.", list(&told)),
        panels: vec![(
            String::new(),
            Panel::Bars(Bars {
                name: "payload".into(),
                unit: Unit::Bytes,
                fills: KINDS.iter().map(|(_, fill)| *fill).collect(),
                rows,
            }),
        )],
    })
}
