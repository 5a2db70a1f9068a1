//! What workers do when, in one epoch.

use std::collections::BTreeSet;

use super::list;
use crate::experiment::rows::{Activity, TimelineRow};
use crate::report::format;
use crate::report::plot::{Figure, Group, Lane, Lanes, Panel, Piece, Unit};
use crate::report::series::Entrant;
use crate::report::style::DOINGS;

/// More cells and workers than these would not fit a page.
const CELLS: usize = 8;
const WORKERS: u64 = 8;

/// The last but one traced epoch of each cell, from its own start, under one axis of time: the
/// first have their peculiarities, and what travels ahead belongs to the one after.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    let traced: Vec<&Entrant> = (cells.iter())
        .filter(|cell| !cell.timeline.is_empty())
        .collect();
    // One worker only computes: it is shown where there is nothing else.
    let several = |cell: &&Entrant| cell.runs.iter().any(|(run, _)| run.workers > 1);
    let alone = !traced.iter().any(several);
    let shown: Vec<&Entrant> = (traced.iter().copied())
        .filter(|cell| alone || several(cell))
        .take(CELLS)
        .collect();
    let groups: Vec<(Group, f64, u64)> = shown.iter().filter_map(|cell| group(cell)).collect();
    let epochs: BTreeSet<u64> = groups.iter().map(|(_, _, epoch)| *epoch + 1).collect();
    let which = match Vec::from_iter(epochs)[..] {
        [] => return None,
        [epoch] => format!("epoch {epoch}"),
        // Cells may be traced for different numbers of epochs.
        [first, .., last] => format!("an epoch from {first} to {last}"),
    };
    let told: Vec<String> = groups
        .iter()
        .map(|(group, length, _)| format!("{} takes {}", group.label, format::seconds(*length)))
        .collect();
    let rest = traced.len() - shown.len();
    let more = if rest > 0 {
        format!(" {rest} more cells are in the table.")
    } else {
        String::new()
    };
    Some(Figure {
        kind: "timeline",
        title: "One epoch, worker by worker".into(),
        caption: format!(
            "What each worker does in {which} of one seed, from when the first of them begins it, in simulated \
             time; below, as a thin line, when messages of it are on their way.{more}"
        ),
        alt: format!(
            "{}{}: {}.",
            which[..1].to_uppercase(),
            &which[1..],
            list(&told)
        ),
        rows: vec![vec![(
            String::new(),
            Panel::Lanes(Lanes {
                name: "time from the start of the epoch".into(),
                unit: Unit::Seconds,
                fills: DOINGS.to_vec(),
                groups: groups.into_iter().map(|(group, _, _)| group).collect(),
            }),
        )]],
        note: String::new(),
    })
}

/// The lanes of a cell in its epoch, whatever happens then, how long it takes, and its number.
fn group(cell: &Entrant) -> Option<(Group, f64, u64)> {
    let epochs: BTreeSet<u64> = cell.timeline.iter().map(|row| row.epoch).collect();
    // Of one traced epoch there is no last but one.
    let epoch = *epochs.iter().rev().nth(1).or(epochs.last())?;
    // A message may travel beyond its epoch, and does not make it longer.
    let of_epoch = |row: &&&TimelineRow| row.epoch == epoch && row.activity != Activity::Send;
    let spans = || cell.timeline.iter().filter(of_epoch);
    let start = spans()
        .map(|row| row.start_seconds)
        .fold(f64::INFINITY, f64::min);
    let end = spans().map(|row| row.end_seconds).fold(start, f64::max);
    let workers = spans().map(|row| row.worker).max()? + 1;
    let within = |row: &&&TimelineRow| row.end_seconds > start && row.start_seconds < end;
    let piece = |row: &TimelineRow| Piece {
        part: match row.activity {
            Activity::Compute => 0,
            Activity::Wait => 1,
            Activity::Send => 2,
        },
        start: row.start_seconds.max(start) - start,
        end: row.end_seconds.min(end) - start,
        thin: row.activity == Activity::Send,
    };
    let lanes = (0..workers.min(WORKERS)).map(|worker| Lane {
        label: format!("worker {worker}"),
        pieces: (cell.timeline.iter())
            .filter(within)
            .filter(|row| row.worker == worker)
            .map(|row| piece(row))
            .collect(),
    });
    let label = if workers > WORKERS {
        format!("{}, the first {WORKERS} of {workers} workers", cell.label)
    } else {
        cell.label.clone()
    };
    let lanes = lanes.collect();
    Some((Group { label, lanes }, end - start, epoch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    #[test]
    fn cells_of_one_worker_are_shown_where_there_are_no_others() {
        let run = |workers: u64| RunRow {
            cell: format!("workers={workers} full"),
            strategy: "full".into(),
            workers,
            ..RunRow::finished(Measured::default())
        };
        let row = |run: &RunRow| TimelineRow {
            cell: run.cell.clone(),
            end_seconds: 1.0,
            ..TimelineRow::default()
        };
        let labels = |runs: &[RunRow]| -> Vec<String> {
            let rows: Vec<TimelineRow> = runs.iter().map(row).collect();
            let mut cells = series::cells(runs, &[]);
            series::add_timeline(&mut cells, &rows);
            let figure = figure(&cells).expect("it is traced");
            let Panel::Lanes(lanes) = &figure.rows[0][0].1 else {
                panic!("{figure:?}");
            };
            lanes
                .groups
                .iter()
                .map(|group| group.label.clone())
                .collect()
        };
        assert_eq!(labels(&[run(1), run(4)]), ["workers=4 full"]);
        assert_eq!(labels(&[run(1)]), ["full"]);
    }
}
