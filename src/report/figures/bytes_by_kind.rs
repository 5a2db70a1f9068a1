//! What each strategy sent, as stacked bars: node data first and plain, everything else behind it
//! and hatched.

use super::multiples::{Multiples, rows};
use super::seeds;
use crate::net::TrafficKind;
use crate::report::format;
use crate::report::plot::{Figure, Row, Unit};
use crate::report::series::Entrant;
use crate::report::style::fill_of;

/// Payload by kind, mean over seeds.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    if cells.is_empty() {
        return None;
    }
    let shown = Multiples::of(cells, 1);
    let longest = (cells.iter())
        .map(|cell| lengths(cell).iter().sum())
        .fold(0.0, f64::max);
    let row = |cell: &Entrant| {
        let lengths = lengths(cell);
        let total = format::bytes(lengths.iter().sum());
        let node_data = node_data(cell);
        // Too little to be seen is said in numbers, where there is room.
        let note = if !shown.several() && node_data > 0.0 && node_data < 0.05 * longest {
            format!("{total} (node data {})", format::bytes(node_data))
        } else if let (false, Some(moved)) = (shown.several(), cell.repartitioned()) {
            format!("{total} (repartition {})", format::bytes(moved))
        } else {
            total
        };
        Some(Row {
            label: cell.strategy.to_owned(),
            lengths,
            note,
        })
    };
    let fills = TrafficKind::ALL.map(fill_of).to_vec();
    let panels = shown.bars(("payload", Unit::Bytes, fills), row);
    let told = shown.told(|cell| {
        let lengths = lengths(cell);
        Some(format!(
            "{} sent {}, of which node data {}{}",
            cell.label,
            format::bytes(lengths.iter().sum()),
            format::bytes(node_data(cell)),
            cell.repartitioned().map_or_else(String::new, |moved| {
                format!(" and repartition {}", format::bytes(moved))
            })
        ))
    });
    Some(Figure {
        kind: "bytes-by-kind",
        title: "Bytes sent, by kind".into(),
        caption: format!(
            "Payload of a whole run by kind; {}. Plain: node data (features, activations and their gradients). \
             Hatched: everything else. The number at the end of a bar is its total.{}",
            seeds(cells),
            shown.caption()
        ),
        alt: format!("Payload by kind: {told}."),
        rows: rows(vec![panels]),
        note: shown.note,
    })
}

/// Bytes of each kind, mean over seeds.
fn lengths(cell: &Entrant) -> Vec<f64> {
    let mean = |kind| {
        let sent = cell.over_seeds(|measured| Some(measured.bytes_of(kind) as f64));
        sent.map_or(0.0, |sum| sum.mean)
    };
    TrafficKind::ALL.map(mean).to_vec()
}

fn node_data(cell: &Entrant) -> f64 {
    cell.node_data().map_or(0.0, |sum| sum.mean)
}
