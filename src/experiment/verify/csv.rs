//! The CSV files say what the Parquet files say, cell by cell.

use std::fs;
use std::path::Path;

use super::Breach;
use crate::experiment::Tables;
use crate::experiment::rows::{Row, Values};

/// Every cell of the CSV files of `folder` that differs from `tables`, as read from its Parquet files. Numbers are
/// compared by value, so that another way of writing them is no breach.
pub fn verify_csv(folder: &Path, tables: &Tables) -> Vec<Breach> {
    let mut breaches = Vec::new();
    compare(folder, &tables.runs, &mut breaches);
    compare(folder, &tables.epochs, &mut breaches);
    compare(folder, &tables.traffic, &mut breaches);
    compare(folder, &tables.claims, &mut breaches);
    if !tables.timeline.is_empty() {
        compare(folder, &tables.timeline, &mut breaches);
    }
    if !tables.decisions.is_empty() {
        compare(folder, &tables.decisions, &mut breaches);
    }
    breaches
}

fn compare<R: Row>(folder: &Path, rows: &[R], breaches: &mut Vec<Breach>) {
    let file = format!("{}.csv", R::TABLE);
    let mut breach = |row: Option<usize>, what: String| {
        breaches.push(Breach {
            table: R::TABLE,
            row,
            what,
        });
    };
    let text = match fs::read_to_string(folder.join(&file)) {
        Ok(text) => text,
        Err(error) => return breach(None, format!("{file} cannot be read: {error}")),
    };
    let mut records = records(&text);
    let header: Vec<&str> = R::COLUMNS.iter().map(|column| column.name).collect();
    if records.is_empty() || records.remove(0) != header {
        let what = format!(
            "{file} does not begin with the columns {}",
            header.join(",")
        );
        return breach(None, what);
    }
    if records.len() != rows.len() {
        let (found, expected) = (records.len(), rows.len());
        let what = format!("{file} has {found} rows, but the Parquet file has {expected}");
        return breach(None, what);
    }
    let columns = R::to_columns(rows);
    for (row, record) in records.iter().enumerate() {
        if record.len() != columns.len() {
            let (found, expected) = (record.len(), columns.len());
            let what = format!("{file} has {found} cells there, not {expected}");
            breach(Some(row), what);
            continue;
        }
        for ((name, cell), values) in header.iter().zip(record).zip(&columns) {
            if let Some(expected) = difference(cell, values, row) {
                let what =
                    format!("{name} is `{cell}` in {file}, but `{expected}` in the Parquet file");
                breach(Some(row), what);
            }
        }
    }
}

/// What the cell should say, if it says something else; null is an empty cell.
fn difference(cell: &str, values: &Values, row: usize) -> Option<String> {
    let show = |value: Option<String>| value.unwrap_or_default();
    let (same, expected) = match values {
        Values::Text(cells) => (cells[row] == *cell, cells[row].to_string()),
        Values::Count(cells) => {
            let same = match cells[row] {
                Some(count) => cell.parse() == Ok(count),
                None => cell.is_empty(),
            };
            (same, show(cells[row].map(|count| count.to_string())))
        }
        Values::Real(cells) => {
            let same = match cells[row] {
                // What is no number, whatever its sign, is written as one word.
                Some(real) => cell
                    .parse()
                    .is_ok_and(|found: f64| found == real || found.is_nan() && real.is_nan()),
                None => cell.is_empty(),
            };
            (same, show(cells[row].map(|real| real.to_string())))
        }
    };
    (!same).then_some(expected)
}

/// The records of a CSV file; a cell in quotes may hold commas, line ends, and quotes written twice.
pub(in crate::experiment) fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut cell = String::new();
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut cell)),
            '\r' if !quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            other => cell.push(other),
        }
    }
    if !(cell.is_empty() && record.is_empty()) {
        record.push(cell);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{ClaimRow, EpochRow, RunRow, TrafficRow};

    fn tables() -> Tables {
        Tables {
            runs: vec![RunRow {
                cell: "full, \"quoted\"\nand long".into(),
                seed: u64::MAX,
                simulated_seconds: 0.1 + 0.2,
                measured_seconds: f64::NAN,
                status: RunRow::OK.into(),
                ..RunRow::default()
            }],
            epochs: vec![EpochRow::default(); 2],
            traffic: vec![TrafficRow::default()],
            claims: vec![ClaimRow::default()],
            ..Tables::default()
        }
    }

    /// The breaches after `from` in a file became `to`.
    fn breaches(file: &str, from: &str, to: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        tables().write(folder.path()).unwrap();
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
        let found = verify_csv(folder.path(), &tables());
        found.iter().map(Breach::to_string).collect()
    }

    #[test]
    fn what_was_written_together_agrees() {
        assert_eq!(breaches("runs.csv", "", ""), [""; 0]);
    }

    #[test]
    fn what_is_no_number_is_itself_whatever_its_sign() {
        let values = Values::Real(vec![Some(f64::NAN), Some(-f64::NAN), Some(1.0)]);
        let found = [0, 1, 2].map(|row| difference("NaN", &values, row).is_some());
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    fn numbers_may_be_written_otherwise_and_lines_end_otherwise() {
        let found = breaches("runs.csv", "0.30000000000000004", "3.0000000000000004e-1");
        assert_eq!(found, [""; 0]);
        assert_eq!(
            breaches("claims.csv", "p_adjusted\n", "p_adjusted\r\n"),
            [""; 0]
        );
    }

    #[test]
    fn a_changed_cell_is_named_by_table_row_and_column() {
        for (from, to, expected) in [
            (
                "18446744073709551615",
                "7",
                "runs, row 0: seed is `7` in runs.csv, but `18446744073709551615` in the Parquet file",
            ),
            (
                "0.30000000000000004",
                "0.3",
                "runs, row 0: simulated_seconds is `0.3` in runs.csv, but `0.30000000000000004` in \
                 the Parquet file",
            ),
            (
                "quoted",
                "other",
                "runs, row 0: cell is `full, \"other\"\nand long` in runs.csv, but `full, \"quoted\"\n\
                 and long` in the Parquet file",
            ),
        ] {
            assert_eq!(breaches("runs.csv", from, to), [expected]);
        }
    }

    #[test]
    fn columns_rows_and_files_that_are_missing_are_named() {
        let found = breaches("runs.csv", "experiment,cell", "cell,experiment");
        assert!(found[0].starts_with("runs: runs.csv does not begin with the columns experiment,"));
        let found = breaches("claims.csv", "p_adjusted\n", "p_adjusted\na,b\n");
        assert_eq!(
            found,
            ["claims: claims.csv has 2 rows, but the Parquet file has 1"]
        );
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(verify_csv(folder.path(), &tables()).len(), 4);
    }
}
