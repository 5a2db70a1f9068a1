//! What workers do when, in one epoch.

use std::collections::BTreeSet;

use super::list;
use crate::experiment::rows::{Activity, Sweep, TimelineRow, grouped};
use crate::report::format;
use crate::report::plot::{Figure, Group, Headed, Lane, Lanes, Panel, Piece, Unit};
use crate::report::series::Entrant;
use crate::report::style::DOINGS;

/// More cells and workers than these would not fit a page.
const CELLS: usize = 8;
const WORKERS: u64 = 8;
/// Settings of a sweep whose epochs differ by more than this factor have an axis each: under one,
/// the short ones would be slivers.
const ALIKE: f64 = 10.0;

/// The last but one traced epoch of each cell, from its own start: the first have their
/// peculiarities, and what travels ahead belongs to the one after.
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
    let groups: Vec<Drawn> = shown.iter().filter_map(|cell| group(cell)).collect();
    let epochs: BTreeSet<u64> = groups.iter().map(|drawn| drawn.epoch + 1).collect();
    let which = match Vec::from_iter(epochs)[..] {
        [] => return None,
        [epoch] => format!("epoch {epoch}"),
        // Cells may be traced for different numbers of epochs.
        [first, .., last] => format!("an epoch from {first} to {last}"),
    };
    let told: Vec<String> = groups
        .iter()
        .map(|drawn| {
            let length = format::seconds(drawn.length);
            format!("{} takes {length}", drawn.group.label)
        })
        .collect();
    let rest = traced.len() - shown.len();
    let more = if rest > 0 {
        format!(" {rest} more cells are in the table.")
    } else {
        String::new()
    };
    let panels = panels(groups);
    let axes = if panels.len() > 1 {
        " Settings of the sweep have an axis each, for their epochs differ more than tenfold."
    } else {
        ""
    };
    Some(Figure {
        kind: "timeline",
        title: "One epoch, worker by worker".into(),
        caption: format!(
            "What each worker does in {which} of one seed, from when the first of them begins it, in simulated \
             time; below, as a thin line, when messages of it are on their way.{axes}{more}"
        ),
        alt: format!(
            "{}{}: {}.",
            which[..1].to_uppercase(),
            &which[1..],
            list(&told)
        ),
        // One below the other, so that each is as wide as the figure.
        rows: panels.into_iter().map(|panel| vec![panel]).collect(),
        note: String::new(),
    })
}

/// What is drawn of a cell.
struct Drawn<'a> {
    /// What the sweep gives it.
    setting: &'a Sweep,
    /// The lanes of its epoch, whatever happens then.
    group: Group,
    /// How long that takes, in seconds.
    length: f64,
    /// Its number, from 0.
    epoch: u64,
}

/// One panel, or one for each setting of a sweep where these take times that are not alike.
fn panels(groups: Vec<Drawn>) -> Vec<Headed> {
    let settings = grouped(groups.into_iter().map(|drawn| (drawn.setting, drawn)));
    let longest = |(_, drawn): &(&Sweep, Vec<Drawn>)| {
        let lengths = drawn.iter().map(|one| one.length);
        lengths.fold(0.0, f64::max)
    };
    let lengths: Vec<f64> = settings.iter().map(longest).collect();
    let most = lengths.iter().copied().fold(0.0, f64::max);
    let least = lengths.into_iter().fold(f64::INFINITY, f64::min);
    let members = settings.into_iter().map(|(_, drawn)| drawn);
    let members: Vec<Vec<Drawn>> = if most > ALIKE * least {
        members.collect()
    } else {
        vec![members.flatten().collect()]
    };
    let panel = |drawn: Vec<Drawn>| {
        let lanes = Lanes {
            name: "time from the start of the epoch".into(),
            unit: Unit::Seconds,
            fills: DOINGS.to_vec(),
            groups: drawn.into_iter().map(|one| one.group).collect(),
        };
        (String::new(), Panel::Lanes(lanes))
    };
    members.into_iter().map(panel).collect()
}

/// What is drawn of a cell; nothing without spans.
fn group<'a>(cell: &Entrant<'a>) -> Option<Drawn<'a>> {
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
    Some(Drawn {
        setting: cell.setting,
        group: Group { label, lanes },
        length: end - start,
        epoch,
    })
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

    #[test]
    fn settings_share_an_axis_unless_their_epochs_differ_more_than_tenfold() {
        let run = |preset: &str, strategy: &str| RunRow {
            cell: format!("preset={preset} {strategy}"),
            strategy: strategy.into(),
            sweep: Sweep::default().with("preset", preset.into()),
            workers: 4,
            ..RunRow::finished(Measured::default())
        };
        // Within a setting a strategy may take as little as it does.
        let panels = |slow: f64| {
            let runs = [("lan", "full"), ("lan", "bns"), ("wan", "full")];
            let runs = runs.map(|(preset, strategy)| run(preset, strategy));
            let row = |(run, seconds): (&RunRow, f64)| TimelineRow {
                cell: run.cell.clone(),
                end_seconds: seconds,
                ..TimelineRow::default()
            };
            let rows = runs.iter().zip([1.0, 0.01, slow]).map(row);
            let rows: Vec<TimelineRow> = rows.collect();
            let mut cells = series::cells(&runs, &[]);
            series::add_timeline(&mut cells, &rows);
            let figure = figure(&cells).expect("it is traced");
            let groups = |(_, panel): &Headed| match panel {
                Panel::Lanes(lanes) => lanes.groups.len(),
                _ => 0,
            };
            let told = figure.caption.contains("have an axis each");
            let groups: Vec<usize> = figure.rows.iter().flatten().map(groups).collect();
            (groups, told)
        };
        assert_eq!(panels(9.0), (vec![3], false));
        assert_eq!(panels(11.0), (vec![2, 1], true));
    }
}
