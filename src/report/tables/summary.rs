//! The table that answers most questions: accuracy, bytes and time of every strategy.

use super::{Entry, Table, columns};
use crate::report::format;
use crate::report::series::Cell;
use crate::report::settings::distinct;

/// How a column's best entry is found.
#[derive(Clone, Copy, PartialEq)]
enum Best {
    Highest,
    Lowest,
}

/// One row per cell; of each setting of a sweep, the best of each column in bold. A single worker has nobody to send to, and is
/// best at nothing but accuracy.
pub fn summary(cells: &[Cell]) -> Table {
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
        let full = cells
            .iter()
            .find(|other| other.strategy == "full" && other.setting == cell.setting);
        let fewer = match (full.and_then(Cell::node_data), node_data) {
            (Some(_), _) if cell.strategy == "full" => "1×".into(),
            (Some(full), Some(mine)) if mine > full.mean => {
                format!("{} more", format::factor(mine / full.mean))
            }
            (Some(full), Some(mine)) if mine > 0.0 => format::factor(full.mean / mine),
            (Some(_), Some(_)) => "none sent".into(),
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
    let several_workers = |cell: &Cell| cell.runs.iter().any(|run| run.workers > 1);
    for (cell, numbers) in cells.iter().zip(&mut numbers) {
        if !several_workers(cell) {
            numbers[1..].fill(None);
        }
    }
    for setting in distinct(cells.iter().map(|cell| cell.setting)) {
        let mut members: Vec<(&mut Vec<Entry>, &[Option<f64>; 6])> = (rows.iter_mut())
            .zip(&numbers)
            .zip(cells)
            .filter_map(|(row, cell)| (cell.setting == setting).then_some(row))
            .collect();
        for (column, number, best) in best_of {
            mark(&mut members, column, number, best);
        }
    }
    let seeds = match cells.iter().map(|cell| cell.runs.len()).max() {
        Some(seeds) if seeds > 1 => format!("mean ± standard deviation over {seeds} seeds"),
        _ => "one seed".into(),
    };
    Table {
        name: "summary",
        caption: format!(
            "One row per strategy ({seeds}). Test accuracy is that at the epoch of best validation accuracy. Node \
             data, parameter gradients and total are payload. The fourth column is how many times less node data than \
             full a strategy sends. Exposed communication is a share of simulated time."
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

/// Marks what reads the same as the best entry, among the rows with a number; nothing where all of them are equal.
fn mark(
    rows: &mut [(&mut Vec<Entry>, &[Option<f64>; 6])],
    column: usize,
    number: usize,
    best: Best,
) {
    let sign = if best == Best::Highest { 1.0 } else { -1.0 };
    let winner = (rows.iter())
        .filter_map(|(row, numbers)| Some((&row[column], numbers[number]? * sign)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((winner, _)) = winner else { return };
    let text = winner.text.clone();
    let mut compared: Vec<&mut Entry> = rows
        .iter_mut()
        .filter(|(_, numbers)| numbers[number].is_some())
        .map(|(row, _)| &mut row[column])
        .collect();
    if compared.iter().all(|entry| entry.text == text) {
        return;
    }
    for entry in &mut compared {
        entry.best = entry.text == text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::RunRow;
    use crate::report::series;

    #[test]
    fn a_single_worker_is_best_at_nothing_but_accuracy() {
        let run = |cell: &str, workers, accuracy, bytes: u64| RunRow {
            cell: cell.into(),
            strategy: cell.into(),
            workers,
            test_accuracy: Some(accuracy),
            payload_bytes: 3 * bytes,
            activation_bytes: bytes,
            parameter_gradient_bytes: 2 * bytes,
            simulated_seconds: 1.0 + bytes as f64,
            exposed_communication_seconds: bytes as f64,
            status: RunRow::OK.into(),
            ..RunRow::default()
        };
        let runs = [
            run("one worker", 1, 0.9, 0),
            run("full", 4, 0.8, 700),
            run("fixed", 4, 0.7, 300),
        ];
        let best: Vec<Vec<bool>> = summary(&series::cells(&runs, &[]))
            .rows
            .iter()
            .map(|row| row.iter().map(|entry| entry.best).collect())
            .collect();
        let [no, yes] = [false, true];
        assert_eq!(best[0], [no, yes, no, no, no, no, no, no], "one worker");
        assert_eq!(best[1], [no; 8], "full");
        assert_eq!(best[2], [no, no, yes, no, yes, yes, yes, yes], "fixed");
    }
    #[test]
    fn each_setting_of_a_sweep_has_its_own_best_and_its_own_reference() {
        let run = |cell: &str, strategy: &str, bytes: u64| RunRow {
            cell: cell.into(),
            strategy: strategy.into(),
            workers: 4,
            payload_bytes: bytes,
            activation_bytes: bytes,
            status: RunRow::OK.into(),
            ..RunRow::default()
        };
        let runs = [
            run("workers=2 full", "full", 100),
            run("workers=2 fixed", "fixed", 50),
            run("workers=8 full", "full", 800),
            run("workers=8 fixed", "fixed", 200),
        ];
        let rows = summary(&series::cells(&runs, &[])).rows;
        let node_data: Vec<(&str, bool, &str)> = rows
            .iter()
            .map(|row| (row[2].text.as_str(), row[2].best, row[3].text.as_str()))
            .collect();
        let expected = [
            ("100 B", false, "1×"),
            ("50 B", true, "2.00×"),
            ("800 B", false, "1×"),
            ("200 B", true, "4.00×"),
        ];
        assert_eq!(node_data, expected);
    }
}
