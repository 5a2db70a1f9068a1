//! Rows gathered by cell and averaged over seeds.

use std::collections::{BTreeMap, BTreeSet};

use super::looks::{self, Look};
use crate::experiment::rows::{EpochRow, Measured, Row, RunRow, Sweep, TimelineRow, metric_title};
use crate::experiment::statistics::Summary;

/// One cell's finished runs, epoch by epoch, with the name and look it has in every figure.
#[derive(Clone, Debug)]
pub(super) struct Entrant<'a> {
    /// What the legend says: the strategy's label, or the cell's name where a sweep has several
    /// cells of a strategy.
    pub label: String,
    /// The strategy's label.
    pub strategy: &'a str,
    /// Whether the others are compared with it: it communicates everything, exactly.
    pub is_reference: bool,
    /// What the sweep gives it.
    pub setting: &'a Sweep,
    /// Colour, dash and marker.
    pub look: Look,
    /// Finished runs, one a seed, and what was measured in them.
    pub runs: Vec<(&'a RunRow, &'a Measured)>,
    /// Their epochs.
    epochs: BTreeMap<u64, Vec<&'a EpochRow>>,
    /// What their workers did in the first epochs of one run; empty if it was not traced.
    pub timeline: Vec<&'a TimelineRow>,
}

/// One epoch of a cell, averaged over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Epoch, counted from 0.
    pub epoch: f64,
    /// Cumulative payload in bytes, mean over seeds.
    pub payload_bytes: f64,
    /// Cumulative simulated seconds, mean over seeds.
    pub simulated_seconds: f64,
    /// The value, over the seeds that have one.
    pub value: Summary,
}

impl<'a> Entrant<'a> {
    /// One number of every finished run, over seeds; `None` if no run has it.
    pub(super) fn over_seeds(&self, number: impl Fn(&Measured) -> Option<f64>) -> Option<Summary> {
        Summary::of((self.runs.iter()).filter_map(|(_, measured)| number(measured)))
    }

    /// The named column of `runs`, over seeds.
    pub(super) fn column(&self, column: &str) -> Option<Summary> {
        Summary::of((self.runs.iter()).filter_map(|(run, _)| run.number(column)))
    }

    /// Whether a run's training diverged: its accuracy is that of no model one would use.
    pub(super) fn diverged(&self) -> bool {
        self.runs.iter().any(|(_, run)| run.diverged_at.is_some())
    }

    /// Test accuracy over seeds, to be ranked by; none where a run diverged.
    pub(super) fn accuracy(&self) -> Option<Summary> {
        self.column("test_accuracy").filter(|_| !self.diverged())
    }

    /// The means of one number of this cell and of another, over the seeds in which both have it;
    /// `None` if there is no such seed. Cells that are compared have seeds in common, and may have
    /// more: those of one alone would add the difference between seeds to that between strategies.
    pub(super) fn beside(
        &self,
        other: &Self,
        number: impl Fn(&Measured) -> Option<f64>,
    ) -> Option<[f64; 2]> {
        let pairs = self.runs.iter().filter_map(|(run, mine)| {
            let mut others = other.runs.iter();
            let (_, theirs) = others.find(|(other, _)| other.seed == run.seed)?;
            Some([number(mine)?, number(theirs)?])
        });
        let pairs: Vec<[f64; 2]> = pairs.collect();
        let mean = |which: usize| Summary::of(pairs.iter().map(|pair| pair[which]));
        Some([mean(0)?.mean, mean(1)?.mean])
    }

    /// Its name in the tables.
    pub(super) fn name(&self) -> &'a str {
        self.runs.first().map_or("", |(run, _)| &run.cell)
    }

    /// Node-data payload in bytes, over seeds.
    pub(super) fn node_data(&self) -> Option<Summary> {
        self.over_seeds(|measured| Some(measured.node_data_bytes() as f64))
    }

    /// Bytes that repartitioning moved, mean over seeds; none if it moved nothing. It is no node
    /// data by our count, but graph and features: whoever says that no node data were sent says
    /// this beside it.
    pub(super) fn repartitioned(&self) -> Option<f64> {
        let moved = self.column("repartition_bytes")?.mean;
        (moved > 0.0).then_some(moved)
    }

    /// The epochs of one seed, in order.
    pub(super) fn epochs_of(&self, seed: u64) -> impl Iterator<Item = &EpochRow> {
        let rows = self.epochs.values().flatten();
        rows.copied().filter(move |row| row.seed == seed)
    }

    /// One value of every epoch where at least one seed has it.
    pub(super) fn curve(&self, value: impl Fn(&EpochRow) -> Option<f64>) -> Vec<Point> {
        self.epochs
            .iter()
            .filter_map(|(epoch, rows)| {
                let rows: Vec<_> = rows.iter().filter(|row| value(row).is_some()).collect();
                // Of the seeds that have the value, so that a point is one of the same runs both
                // ways.
                let mean = |number: fn(&EpochRow) -> f64| {
                    rows.iter().map(|row| number(row)).sum::<f64>() / rows.len() as f64
                };
                Some(Point {
                    epoch: *epoch as f64,
                    value: Summary::of(rows.iter().filter_map(|row| value(row)))?,
                    payload_bytes: mean(|row| row.payload_bytes as f64),
                    simulated_seconds: mean(|row| row.simulated_seconds),
                })
            })
            .collect()
    }
}

/// All cells with at least one finished run, in the order of the `runs` table.
pub(super) fn cells<'a>(runs: &'a [RunRow], epochs: &'a [EpochRow]) -> Vec<Entrant<'a>> {
    let mut strategies: Vec<(&str, &str)> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    let mut cells: Vec<Entrant> = Vec::new();
    let reference = reference(runs);
    for run in runs {
        let Some(measured) = &run.measured else {
            continue;
        };
        // A map to look into and a list to go through: cells stay in the order of the table.
        let index = *place.entry(&run.cell).or_insert(cells.len());
        if index == cells.len() {
            if !strategies.iter().any(|(label, _)| *label == run.strategy) {
                strategies.push((&run.strategy, run.kind()));
            }
            cells.push(Entrant {
                label: String::new(),
                strategy: &run.strategy,
                is_reference: reference == Some(&run.strategy),
                setting: &run.sweep,
                look: Look::PLAIN,
                runs: Vec::new(),
                epochs: BTreeMap::new(),
                timeline: Vec::new(),
            });
        }
        cells[index].runs.push((run, measured));
    }
    let looks = looks::looks(&strategies);
    for ((strategy, _), look) in strategies.iter().zip(looks) {
        let mine = cells.iter().filter(|cell| cell.strategy == *strategy);
        let repeated = mine.count() > 1;
        for cell in cells.iter_mut().filter(|cell| cell.strategy == *strategy) {
            let label = if repeated { cell.name() } else { strategy };
            (cell.label, cell.look) = (label.to_owned(), look);
        }
    }
    for epoch in epochs {
        let Some(cell) = place
            .get(epoch.cell.as_str())
            .map(|&index| &mut cells[index])
        else {
            continue;
        };
        // A run that failed leaves epochs behind; they are not part of the cell's mean.
        if cell.runs.iter().any(|(run, _)| run.seed == epoch.seed) {
            cell.epochs.entry(epoch.epoch).or_default().push(epoch);
        }
    }
    cells
}

/// The strategy that the others are compared with, by its label: of those of kind `full` the one
/// that is called so, else the first with anyone to communicate with.
fn reference(runs: &[RunRow]) -> Option<&str> {
    let full = || runs.iter().filter(|run| run.kind() == "full");
    let named = full().find(|run| run.strategy == "full");
    let reference = named.or_else(|| full().find(|run| run.workers > 1));
    reference.map(|run| run.strategy.as_str())
}

/// How many seeds cells have, `3`, or `3 to 5` where some have more than others; none where it is
/// one.
pub(super) fn seed_count(cells: &[Entrant]) -> Option<String> {
    let seeds = || cells.iter().map(|cell| cell.runs.len());
    let (least, most) = (seeds().min()?, seeds().max()?);
    match most {
        1 => None,
        _ if least < most => Some(format!("{least} to {most}")),
        _ => Some(most.to_string()),
    }
}

/// The seeds that all of these have.
pub(super) fn shared_seeds<'a>(cells: impl IntoIterator<Item = &'a Entrant<'a>>) -> BTreeSet<u64> {
    let seeds = |cell: &Entrant| -> BTreeSet<u64> {
        let runs = cell.runs.iter();
        runs.map(|(run, _)| run.seed).collect()
    };
    let all = cells.into_iter().map(seeds);
    all.reduce(|shared, its| &shared & &its).unwrap_or_default()
}

/// The same cells, each with the runs and epochs of the seeds that all cells of its setting have:
/// of these alone can be said who is ahead. With all its runs where a setting's cells share no
/// seed.
pub(super) fn comparable<'a>(cells: &[Entrant<'a>]) -> Vec<Entrant<'a>> {
    let of_seeds = |cell: &Entrant<'a>| {
        let beside = cells.iter().filter(|other| other.setting == cell.setting);
        let shared = shared_seeds(beside);
        let mut comparable = cell.clone();
        if !shared.is_empty() {
            (comparable.runs).retain(|(run, _)| shared.contains(&run.seed));
            for rows in comparable.epochs.values_mut() {
                rows.retain(|row| shared.contains(&row.seed));
            }
            comparable.epochs.retain(|_, rows| !rows.is_empty());
        }
        comparable
    };
    cells.iter().map(of_seeds).collect()
}

/// By what the cells are scored, in words: `accuracy`, or `accuracy or ROC-AUC` where they differ.
pub(super) fn metric(cells: &[Entrant]) -> String {
    metric_title(
        cells
            .iter()
            .flat_map(|cell| cell.runs.iter().map(|(run, _)| *run)),
    )
}

/// Gives each cell its rows of the timeline.
pub(super) fn add_timeline<'a>(cells: &mut [Entrant<'a>], timeline: &'a [TimelineRow]) {
    for cell in cells {
        let name = cell.name();
        cell.timeline = timeline.iter().filter(|row| row.cell == name).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::settings;

    fn run(workers: Option<u64>, strategy: &str, seed: u64) -> RunRow {
        let sweep = workers.map(|workers| Sweep::default().with("workers", workers.into()));
        let setting = sweep
            .as_ref()
            .map_or(String::new(), |sweep| format!("{sweep} "));
        RunRow {
            cell: format!("{setting}{strategy}"),
            strategy: strategy.into(),
            sweep: sweep.unwrap_or_default(),
            seed,
            ..RunRow::finished(Measured::default())
        }
    }

    fn failed(strategy: &str, seed: u64) -> RunRow {
        RunRow {
            measured: None,
            ..run(None, strategy, seed)
        }
    }

    fn epoch(cell: &str, seed: u64, epoch: u64, accuracy: Option<f64>, bytes: u64) -> EpochRow {
        EpochRow {
            cell: cell.into(),
            seed,
            epoch,
            test_accuracy: accuracy,
            payload_bytes: bytes,
            ..EpochRow::default()
        }
    }

    #[test]
    fn a_curve_averages_each_epoch_over_the_seeds_that_have_a_value() {
        let runs = [run(None, "full", 0), run(None, "full", 1)];
        let epochs = [
            epoch("full", 0, 0, Some(0.5), 100),
            epoch("full", 1, 0, Some(0.7), 300),
            epoch("full", 0, 1, Some(0.8), 400),
            epoch("full", 1, 1, None, 900),
            epoch("full", 0, 2, None, 900),
        ];
        let cells = cells(&runs, &epochs);
        let curve = cells[0].curve(|row| row.test_accuracy);
        assert_eq!(curve.len(), 2);
        assert!((curve[0].value.mean - 0.6).abs() < 1e-12);
        assert!((curve[0].payload_bytes - 200.0).abs() < 1e-9);
        assert_eq!(
            curve[1].value,
            Summary {
                count: 1,
                mean: 0.8,
                sd: None
            }
        );
        assert!((curve[1].payload_bytes - 400.0).abs() < 1e-9);
    }

    #[test]
    fn failed_runs_take_no_part_and_a_cell_of_only_failures_is_absent() {
        let runs = [run(None, "full", 0), failed("full", 1), failed("varco", 0)];
        let epochs = [
            epoch("full", 0, 0, Some(0.5), 1),
            epoch("full", 1, 0, Some(0.9), 1),
        ];
        let cells = cells(&runs, &epochs);
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0].runs.len(), 1);
        assert!((cells[0].curve(|row| row.test_accuracy)[0].value.mean - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_sweep_names_the_cell_and_a_single_cell_the_strategy() {
        let runs = [
            run(Some(2), "full", 0),
            run(Some(4), "full", 0),
            run(Some(2), "varco", 0),
        ];
        let labels: Vec<String> = cells(&runs, &[])
            .into_iter()
            .map(|cell| cell.label)
            .collect();
        assert_eq!(labels, ["workers=2 full", "workers=4 full", "varco"]);
    }

    #[test]
    fn the_reference_is_told_by_its_kind_whatever_it_is_called() {
        let of = |kind: &str, label: &str, workers: u64| RunRow {
            strategy_kind: Some(kind.into()),
            workers,
            ..run(None, label, 0)
        };
        let references = |runs: &[RunRow]| -> Vec<String> {
            let cells = cells(runs, &[]);
            let references = cells.iter().filter(|cell| cell.is_reference);
            references.map(|cell| cell.strategy.to_owned()).collect()
        };
        let alone = of("full", "one worker", 1);
        let exact = of("full", "exact", 4);
        let full = of("full", "full", 4);
        let impostor = of("varco", "full", 4);
        assert_eq!(
            references(&[alone.clone(), exact.clone(), impostor]),
            ["exact"]
        );
        assert_eq!(references(&[exact, full]), ["full"]);
        assert_eq!(references(&[alone]), [""; 0]);
    }

    #[test]
    fn a_strategy_looks_the_same_in_every_setting_of_a_sweep() {
        let runs = [
            run(Some(2), "full", 0),
            run(Some(2), "fixed(ratio=2)", 0),
            run(Some(4), "full", 0),
            run(Some(4), "fixed(ratio=2)", 0),
        ];
        let cells = cells(&runs, &[]);
        let grouped = settings::settings(&cells);
        let names: Vec<String> = grouped.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["workers=2", "workers=4"]);
        for (one, other) in grouped[0].1.iter().zip(&grouped[1].1) {
            assert_eq!(one.look, other.look, "{}", one.strategy);
        }
    }
}
