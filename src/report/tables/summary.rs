//! The table that answers most questions: accuracy, bytes and time of every strategy.

use super::{Entry, Table, columns};
use crate::report::format;
use crate::report::series::Cell;

/// How a column's best entry is found.
#[derive(Clone, Copy, PartialEq)]
enum Best {
    Highest,
    Lowest,
}

/// One row per cell; the best of each column in bold.
pub fn summary(cells: &[Cell]) -> Table {
    let reference = cells
        .iter()
        .find(|cell| cell.strategy == "full")
        .and_then(Cell::node_data);
    let several_full = cells.iter().filter(|cell| cell.strategy == "full").count() > 1;
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    let mut numbers: Vec<[Option<f64>; 6]> = Vec::new();
    for cell in cells {
        let mean = |column: &str| cell.column(column).map(|sum| sum.mean);
        let accuracy = cell.column("test_accuracy");
        let node_data = cell.node_data().map(|sum| sum.mean);
        let gradients = mean("parameter_gradient_bytes");
        let total = mean("payload_bytes");
        let seconds = mean("simulated_seconds");
        let exposed = cell.over_seeds(|run| {
            (run.simulated_seconds > 0.0)
                .then(|| run.exposed_communication_seconds / run.simulated_seconds)
        });
        // In a sweep there is a `full` for every setting, and no single one to compare with.
        let fewer = match (&reference, node_data) {
            (Some(_), Some(_)) if !several_full && cell.strategy == "full" => "1×".into(),
            (Some(full), Some(mine)) if !several_full && mine > 0.0 => {
                format::factor(full.mean / mine)
            }
            (Some(_), Some(_)) if !several_full => "none sent".into(),
            _ => "–".into(),
        };
        let bytes = |number: Option<f64>| number.map_or("–".into(), format::bytes);
        rows.push(vec![
            Entry::new(&cell.label),
            Entry::new(
                accuracy
                    .as_ref()
                    .map_or("–".into(), format::percent_summary),
            ),
            Entry::new(bytes(node_data)),
            Entry::new(fewer),
            Entry::new(bytes(gradients)),
            Entry::new(bytes(total)),
            Entry::new(seconds.map_or("–".into(), format::seconds)),
            Entry::new(exposed.map_or("–".into(), |share| format::percent(share.mean))),
        ]);
        let accuracy = accuracy.map(|sum| sum.mean);
        numbers.push([
            accuracy,
            node_data,
            gradients,
            total,
            seconds,
            exposed.map(|s| s.mean),
        ]);
    }
    let best_of = [
        (1, 0, Best::Highest),
        (2, 1, Best::Lowest),
        (4, 2, Best::Lowest),
        (5, 3, Best::Lowest),
        (6, 4, Best::Lowest),
        (7, 5, Best::Lowest),
    ];
    for (column, number, best) in best_of {
        mark(&mut rows, column, &numbers, number, best);
    }
    let seeds = match cells.iter().map(|cell| cell.runs.len()).max() {
        Some(seeds) if seeds > 1 => format!("mean ± standard deviation over {seeds} seeds"),
        _ => "one seed".into(),
    };
    Table {
        name: "summary",
        caption: format!(
            "Per strategy: test accuracy at the epoch of best validation accuracy ({seeds}), \
             payload of node data and how many times fewer than full sent, of parameter \
             gradients and of everything, simulated time, and the share of it that is exposed communication."
        ),
        columns: columns(&[
            "strategy",
            "#test accuracy",
            "#node data",
            "#fewer than full",
            "#parameter gradients",
            "#total payload",
            "#simulated time",
            "#exposed communication",
        ]),
        rows,
    }
}

/// Marks what reads the same as the best entry; nothing where all are equal.
fn mark(
    rows: &mut [Vec<Entry>],
    column: usize,
    numbers: &[[Option<f64>; 6]],
    number: usize,
    best: Best,
) {
    let sign = if best == Best::Highest { 1.0 } else { -1.0 };
    let winner = (0..rows.len())
        .filter_map(|row| Some((row, numbers[row][number]? * sign)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((winner, _)) = winner else { return };
    let text = rows[winner][column].text.clone();
    if rows.iter().all(|row| row[column].text == text) {
        return;
    }
    for row in rows {
        row[column].best = row[column].text == text;
    }
}
