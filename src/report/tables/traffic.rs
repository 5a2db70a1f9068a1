//! What every strategy sent, by kind, from the ledger's table.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Table, columns};
use crate::experiment::rows::TrafficRow;
use crate::net::TrafficKind;
use crate::report::format;
use crate::report::series::Entrant;
use crate::report::style::fill_of;

/// One row per cell and kind that occurs; means over finished seeds.
pub(crate) fn traffic(cells: &[Entrant], traffic: &[TrafficRow]) -> Table {
    let mut sums: BTreeMap<(&str, TrafficKind), [u64; 3]> = BTreeMap::new();
    // A failed run's traffic stays out.
    let runs = cells.iter().flat_map(|cell| &cell.runs);
    let finished: BTreeSet<(&str, u64)> = runs.map(|(run, _)| (&*run.cell, run.seed)).collect();
    for row in traffic {
        if finished.contains(&(&*row.cell, row.seed)) {
            let sum = sums.entry((&row.cell, row.kind)).or_default();
            sum[0] += row.messages;
            sum[1] += row.payload_bytes;
            sum[2] += row.wire_bytes;
        }
    }
    let mut rows = Vec::new();
    for cell in cells {
        let seeds = cell.runs.len() as f64;
        let sent = TrafficKind::ALL.map(|kind| (kind, sums.get(&(cell.name(), kind))));
        let total: u64 = sent
            .iter()
            .filter_map(|(_, sum)| *sum)
            .map(|sum| sum[1])
            .sum();
        for (kind, sum) in sent {
            let Some([messages, payload, wire]) = sum else {
                continue;
            };
            rows.push(vec![
                Entry::new(&cell.label),
                Entry::new(fill_of(kind).label),
                Entry::new(format::quantity(*messages as f64 / seeds)),
                Entry::new(format::bytes(*payload as f64 / seeds)),
                Entry::new(format::bytes(*wire as f64 / seeds)),
                // A cell that sent nothing has shares of 0, not 0/0.
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
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    #[test]
    fn kinds_are_summed_over_epochs_and_directions_and_averaged_over_seeds() {
        let run = |seed| RunRow {
            cell: "full".into(),
            strategy: "full".into(),
            seed,
            ..RunRow::finished(Measured::default())
        };
        let row = |seed, epoch, from, kind, bytes| TrafficRow {
            cell: "full".into(),
            seed,
            epoch,
            from,
            kind,
            messages: 1,
            payload_bytes: bytes,
            wire_bytes: bytes + 78,
            ..TrafficRow::default()
        };
        let runs = [run(0), run(1)];
        let ledger = [
            row(0, 0, 0, TrafficKind::Activation, 100),
            row(0, 1, 1, TrafficKind::Activation, 200),
            row(1, 0, 0, TrafficKind::Activation, 300),
            row(1, 0, 0, TrafficKind::Control, 200),
            row(9, 0, 0, TrafficKind::Control, 999),
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
