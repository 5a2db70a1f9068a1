//! The table that answers most questions: accuracy, bytes and time of every strategy.

use std::collections::BTreeSet;

use super::{Entry, Table, columns};
use crate::report::format;
use crate::report::series::{Entrant, comparable, metric, seed_count};
use crate::report::settings::{reference_name, settings};

/// What a column says of a cell, and the number by which entries of it are ranked.
type Ranked = (String, Option<f64>);

/// One row per cell; of each setting of a sweep, the best of each column in bold, over the seeds
/// that all of the setting have. A single worker has nobody to send to, and is best at nothing but
/// accuracy.
pub(crate) fn summary(cells: &[Entrant]) -> Table {
    let counts: BTreeSet<usize> = cells.iter().map(|cell| cell.runs.len()).collect();
    let unequal = counts.len() > 1;
    let mut rows: Vec<Vec<Entry>> = vec![Vec::new(); cells.len()];
    for (row, cell) in rows.iter_mut().zip(cells) {
        row.push(Entry::new(&cell.label));
        row.extend(columns_of(cells, cell).map(|(text, _)| Entry::new(text)));
        if unequal {
            row[1].text += &format!(" ({})", cell.runs.len());
        }
    }
    let comparable = comparable(cells);
    for (setting, _) in settings(cells) {
        let members: Vec<usize> = (0..cells.len())
            .filter(|&place| cells[place].setting == setting)
            .collect();
        let ranked: Vec<[Ranked; 7]> = (members.iter())
            .map(|&place| columns_of(cells, &comparable[place]))
            .collect();
        for column in 0..7 {
            // Accuracy is best where it is highest, everything else where it is lowest.
            let sign = if column == 0 { 1.0 } else { -1.0 };
            let known = || {
                ranked
                    .iter()
                    .filter_map(|row| Some((&row[column].0, row[column].1?)))
            };
            let best = known().max_by(|a, b| (a.1 * sign).total_cmp(&(b.1 * sign)));
            // Where all entries read the same, none is the best.
            let Some((best, _)) = best.filter(|best| known().any(|(text, _)| text != best.0))
            else {
                continue;
            };
            for (&place, row) in members.iter().zip(&ranked) {
                // What reads the same is as good.
                rows[place][column + 1].best = row[column].1.is_some() && row[column].0 == *best;
            }
        }
    }
    let seeds = seed_count(cells).map_or("one seed".into(), |seeds| {
        format!("mean ± standard deviation over {seeds} seeds")
    });
    let unequal = if unequal {
        " In brackets is how many seeds a row has; the best of a column is so over the seeds that all have."
    } else {
        ""
    };
    let (metric, reference) = (metric(cells), reference_name(cells));
    Table {
        name: "summary",
        caption: format!(
            "One row per strategy ({seeds}). Test {metric} is that at the epoch of best validation {metric}. Node \
             data, parameter gradients and total are payload; what repartitioning moved is no node data, and stands \
             beside it. The fourth column is how many times less node data than \
             {reference} a strategy sends. Exposed communication is a share of simulated time.{unequal}"
        ),
        columns: columns(&[
            "strategy",
            &format!("#test {metric}"),
            "#node data",
            &format!("#fewer than {reference}"),
            "#parameter gradients",
            "#total payload",
            "#simulated time",
            "#exposed communication",
        ]),
        rows,
    }
}

/// What a cell's row says after its name.
fn columns_of(cells: &[Entrant], cell: &Entrant) -> [Ranked; 7] {
    let none = || "–".to_owned();
    let mean = |column: &str| cell.column(column).map(|sum| sum.mean);
    let accuracy = cell.column("test_accuracy");
    let diverged = if cell.diverged() { ", diverged" } else { "" };
    let node_data = cell.node_data().map(|sum| sum.mean);
    let seconds = mean("simulated_seconds");
    let exposed = cell.over_seeds(|run| {
        (run.simulated_seconds > 0.0)
            .then(|| run.exposed_communication_seconds / run.simulated_seconds)
    });
    let exposed = exposed.map(|share| share.mean);
    let full = cells
        .iter()
        .find(|other| other.is_reference && other.setting == cell.setting);
    let fewer = match full.map(|full| cell.beside(full, |run| Some(run.node_data_bytes() as f64))) {
        // Also where it sends nothing, of which there would be no factor.
        Some(_) if cell.is_reference => "1×".into(),
        Some(Some([mine, full])) if mine > full => {
            format!("{} more", format::factor(mine / full))
        }
        Some(Some([mine, full])) if mine > 0.0 => format::factor(full / mine),
        Some(Some(_)) => "none sent".into(),
        _ => none(),
    };
    let shown = |number: Option<f64>, text: fn(f64) -> String| {
        let ranked = number.filter(|_| cell.runs.iter().any(|(run, _)| run.workers > 1));
        (number.map_or_else(none, text), ranked)
    };
    let (data, ranked) = shown(node_data, format::bytes);
    let moved = cell.repartitioned().unwrap_or_default();
    [
        (
            accuracy.as_ref().map_or_else(none, format::percent_summary) + diverged,
            cell.accuracy().map(|sum| sum.mean),
        ),
        (
            format::with_repartition(data, moved),
            // Who moves nodes in place of their rows sends them all the same.
            ranked.map(|data| data + moved),
        ),
        // Unranked: it orders cells as the column before it does.
        (fewer, None),
        shown(mean("parameter_gradient_bytes"), format::bytes),
        shown(mean("payload_bytes"), format::bytes),
        shown(seconds, format::seconds),
        shown(exposed, format::percent),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow, Sweep};
    use crate::report::series;

    #[test]
    fn a_single_worker_is_best_at_nothing_but_accuracy() {
        let run = |cell: &str, workers, accuracy, bytes: u64| RunRow {
            cell: cell.into(),
            strategy: cell.into(),
            workers,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                payload_bytes: 3 * bytes,
                activation_bytes: bytes,
                parameter_gradient_bytes: 2 * bytes,
                simulated_seconds: 1.0 + bytes as f64,
                exposed_communication_seconds: bytes as f64,
                ..Measured::default()
            })
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
    fn who_has_other_seeds_is_best_by_those_that_all_have() {
        let run = |strategy: &str, seed, accuracy| RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            seed,
            workers: 4,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                ..Measured::default()
            })
        };
        // By the mean of all its seeds the second is behind; of the shared one it is ahead.
        let runs = [
            run("few", 0, 0.90),
            run("many", 0, 0.91),
            run("many", 1, 0.80),
        ];
        let table = summary(&series::cells(&runs, &[]));
        let accuracy: Vec<(&str, bool)> = (table.rows.iter())
            .map(|row| (row[1].text.as_str(), row[1].best))
            .collect();
        assert_eq!(
            accuracy,
            [("90.0 % (1)", false), ("85.5 ± 7.8 % (2)", true)]
        );
        assert!(table.caption.contains("1 to 2 seeds"), "{}", table.caption);
    }

    #[test]
    fn who_diverged_is_marked_and_best_at_nothing() {
        let run = |strategy: &str, diverged_at: Option<u64>| RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            workers: 4,
            ..RunRow::finished(Measured {
                test_accuracy: Some(diverged_at.map_or(0.5, |_| 0.9)),
                diverged_at,
                ..Measured::default()
            })
        };
        let runs = [run("torn", Some(3)), run("well", None), run("also", None)];
        let cells = series::cells(&runs, &[]);
        let rows = summary(&cells).rows;
        let shown: Vec<(&str, bool)> = (rows.iter())
            .map(|row| (row[1].text.as_str(), row[1].best))
            .collect();
        let wanted = [
            ("90.0 %, diverged", false),
            ("50.0 %", false),
            ("50.0 %", false),
        ];
        assert_eq!(shown, wanted);
        let story = crate::report::story::tell(&cells);
        assert!(
            !story
                .sentences
                .iter()
                .any(|said| said.contains("torn is the most")),
            "{story:?}"
        );
    }

    #[test]
    fn no_node_data_stands_beside_what_repartitioning_moved() {
        let run = |strategy: &str, moved: u64| RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            workers: 4,
            ..RunRow::finished(Measured {
                repartition_bytes: moved,
                ..Measured::default()
            })
        };
        let runs = [run("isolated", 0), run("grappa", 35_300_000)];
        let rows = summary(&series::cells(&runs, &[])).rows;
        let texts: Vec<&str> = rows.iter().map(|row| row[2].text.as_str()).collect();
        assert_eq!(texts, ["0 B", "0 B + 35.3 MB repartitioned"]);
    }

    #[test]
    fn each_setting_of_a_sweep_has_its_own_best_and_its_own_reference() {
        let run = |workers: u64, strategy: &str, bytes: u64| RunRow {
            cell: format!("workers={workers} {strategy}"),
            strategy: strategy.into(),
            sweep: Sweep::default().with("workers", workers.into()),
            workers,
            ..RunRow::finished(Measured {
                payload_bytes: bytes,
                activation_bytes: bytes,
                ..Measured::default()
            })
        };
        let runs = [
            run(2, "full", 100),
            run(2, "fixed", 50),
            run(8, "full", 800),
            run(8, "fixed", 200),
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
