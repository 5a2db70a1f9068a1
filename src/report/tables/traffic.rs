//! What every strategy sent, by kind, from the ledger's table.

use std::collections::BTreeMap;

use super::{Entry, Table, columns};
use crate::experiment::rows::TrafficRow;
use crate::report::format;
use crate::report::series::Cell;
use crate::report::style::KINDS;

/// One row per cell and kind that occurs; means over finished seeds.
pub fn traffic(cells: &[Cell], traffic: &[TrafficRow]) -> Table {
    let mut sums: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
    // Per cell: its seeds, so that a failed run's traffic stays out.
    let mut place: BTreeMap<&str, &Cell> = BTreeMap::new();
    for cell in cells {
        if let Some(run) = cell.runs.first() {
            place.insert(&run.cell, cell);
        }
    }
    for row in traffic {
        let finished = place
            .get(row.cell.as_str())
            .is_some_and(|cell| cell.runs.iter().any(|run| run.seed == row.seed));
        if finished {
            let sum = sums.entry((&row.cell, &row.kind)).or_default();
            sum[0] += row.messages;
            sum[1] += row.payload_bytes;
            sum[2] += row.wire_bytes;
        }
    }
    let mut rows = Vec::new();
    for cell in cells {
        let Some(run) = cell.runs.first() else {
            continue;
        };
        let seeds = cell.runs.len() as f64;
        let total: u64 = KINDS
            .iter()
            .filter_map(|(kind, _)| sums.get(&(run.cell.as_str(), *kind)))
            .map(|sum| sum[1])
            .sum();
        for (kind, fill) in KINDS {
            let Some([messages, payload, wire]) = sums.get(&(run.cell.as_str(), kind)) else {
                continue;
            };
            rows.push(vec![
                Entry::new(&cell.label),
                Entry::new(fill.label),
                Entry::new(format::quantity(*messages as f64 / seeds)),
                Entry::new(format::bytes(*payload as f64 / seeds)),
                Entry::new(format::bytes(*wire as f64 / seeds)),
                Entry::new(format::percent(*payload as f64 / total.max(1) as f64)),
            ]);
        }
    }
    Table {
        name: "traffic",
        caption: "What was sent in a whole run, by kind, mean over seeds. Payload is encoded values; wire adds \
                  framing."
            .into(),
        columns: columns(&["strategy", "kind", "#messages", "#payload", "#wire", "#share of payload"]),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::RunRow;
    use crate::report::series;

    #[test]
    fn kinds_are_summed_over_epochs_and_directions_and_averaged_over_seeds() {
        let run = |seed| RunRow {
            cell: "full".into(),
            strategy: "full".into(),
            seed,
            status: RunRow::OK.into(),
            ..RunRow::default()
        };
        let row = |seed, epoch, from, kind: &str, bytes| TrafficRow {
            cell: "full".into(),
            seed,
            epoch,
            from,
            kind: kind.into(),
            messages: 1,
            payload_bytes: bytes,
            wire_bytes: bytes + 78,
            ..TrafficRow::default()
        };
        let runs = [run(0), run(1)];
        let ledger = [
            row(0, 0, 0, "activation", 100),
            row(0, 1, 1, "activation", 200),
            row(1, 0, 0, "activation", 300),
            row(1, 0, 0, "control", 200),
            row(9, 0, 0, "control", 999),
        ];
        let table = traffic(&series::cells(&runs, &[]), &ledger);
        let texts: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|e| e.text.as_str()).collect())
            .collect();
        assert_eq!(
            texts,
            [
                ["full", "activations", "1.5", "300 B", "417 B", "75.0 %"],
                ["full", "control", "0.5", "100 B", "139 B", "25.0 %"],
            ]
        );
    }
}
