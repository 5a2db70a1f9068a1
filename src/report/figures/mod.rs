//! The kinds of figures: each turns cells into a [`Figure`], or into nothing where there is nothing
//! to show.

mod accuracy;
mod bytes_by_kind;
mod compression;
mod heatmap;
mod multiples;
mod pareto;
pub(super) mod projected;
mod scaling;
mod time_breakdown;
mod timeline;

use super::plot::{Figure, Series, Spot};
use super::series::{Entrant, comparable, seed_count};
use crate::experiment::rows::distinct;
use crate::experiment::statistics::Summary;
use crate::strategies::EpochKind;

/// Makes a figure; `None` if the cells hold nothing that it shows.
type Draw = fn(&[Entrant]) -> Option<Figure>;

/// A kind of figure.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Its name in experiment files, and of the files it makes.
    pub name: &'static str,
    /// Without what it has nothing to show.
    pub needs: &'static str,
    /// Makes the figure; `None` if the cells hold nothing that it shows.
    draw: Draw,
}

/// Every kind, in the order of the report.
pub(super) const KINDS: [Kind; 10] = [
    kind(
        "accuracy-vs-epoch",
        accuracy::against_epoch,
        "a run that was evaluated",
    ),
    kind(
        "accuracy-vs-bytes",
        accuracy::against_bytes,
        "a run that was evaluated",
    ),
    kind(
        "accuracy-vs-time",
        accuracy::against_time,
        "a run that was evaluated",
    ),
    kind(
        "bytes-by-kind",
        bytes_by_kind::figure,
        "a run that finished",
    ),
    kind("pareto", pareto::figure, "a run with a test accuracy"),
    kind(
        "time-breakdown",
        time_breakdown::figure,
        "a run that takes time",
    ),
    kind("scaling", scaling::figure, "a sweep over two or more sizes"),
    kind(
        "heatmap",
        heatmap::figure,
        "a sweep with two or more settings, and two strategies",
    ),
    kind(
        "compression",
        compression::figure,
        "a strategy that compresses, or covers a part of the neighbours",
    ),
    kind("timeline", timeline::figure, "a run with --trace"),
];

const fn kind(name: &'static str, draw: Draw, needs: &'static str) -> Kind {
    Kind { name, needs, draw }
}

impl Kind {
    /// The kind of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// The figure, of seeds that all strategies of a setting have; `None` if the cells hold nothing
    /// that it shows.
    pub(super) fn figure(&self, cells: &[Entrant]) -> Option<Figure> {
        let shared = comparable(cells);
        let mut figure = (self.draw)(&shared)?;
        let fewer = |(all, some): (&Entrant, &Entrant)| some.runs.len() < all.runs.len();
        if cells.iter().zip(&shared).any(fewer) {
            figure.caption +=
                " Of more seeds, which not all strategies of a setting have, nothing is drawn.";
        }
        Some(figure)
    }
}

/// `mean of 3 seeds`, `mean of 3 to 5 seeds`, or `one seed`.
fn seeds(cells: &[Entrant]) -> String {
    seed_count(cells).map_or("one seed".into(), |seeds| format!("mean of {seeds} seeds"))
}

/// How the spread over seeds is drawn: beside curves, on logarithmic axes, and at points.
const BANDS: &str = "bands of ± one standard deviation";
const LOG_BANDS: &str =
    "bands that reach one standard deviation above the mean, and as many times below it";
const BARS: &str = "bars of ± one standard deviation";

/// [`seeds`], and what their spread is drawn as.
fn seeds_with(cells: &[Entrant], spread: &str) -> String {
    let seeds = seeds(cells);
    if seeds == "one seed" {
        return seeds;
    }
    format!("{seeds}, with {spread}")
}

/// What counts as an epoch of strategies that record others than passes over all training nodes, as
/// a sentence after a space; empty where there are none. Tables do not have `training.epochs`, by
/// which all could be divided alike.
fn what_counts(cells: &[Entrant]) -> String {
    let of_kind = |kind: EpochKind| {
        let runs = cells.iter().filter_map(|cell| cell.runs.first());
        let runs = runs.filter(|(run, _)| run.epoch_kind == Some(kind));
        let kinds = distinct(runs.map(|(run, _)| run.kind().to_owned()));
        (!kinds.is_empty()).then(|| list(&kinds))
    };
    let rounds = of_kind(EpochKind::Round)
        .map(|kinds| format!("a point of {kinds} is a round, of one step or more"));
    let sub_models =
        of_kind(EpochKind::SubModel).map(|kinds| format!("{kinds} counts each sub-model's epochs"));
    let clauses: Vec<String> = rounds.into_iter().chain(sub_models).collect();
    if clauses.is_empty() {
        return String::new();
    }
    format!(" On epochs: {}.", clauses.join("; "))
}

/// Points of a cell.
fn series(cell: &Entrant, spots: Vec<Spot>) -> Series {
    Series {
        label: cell.strategy.to_owned(),
        look: cell.look,
        spots,
        crosses: false,
    }
}

/// A point at a place that is the same for all seeds.
fn spot(x: f64, y: &Summary) -> Spot {
    Spot {
        x,
        x_sd: 0.0,
        y: y.mean,
        y_sd: y.spread(),
    }
}

/// `a, b and c`, or with semicolons where an item has a comma of its own.
pub(super) fn list(items: &[String]) -> String {
    let between = if items.iter().any(|item| item.contains(", ")) {
        "; "
    } else {
        ", "
    };
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(between)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, Measured, RunRow, Sweep};
    use crate::report::plot::Panel;
    use crate::report::series;

    /// The captions of accuracy against epochs and of scaling, with strategies of these kinds.
    fn captions(kinds: &[(&str, EpochKind)]) -> Vec<String> {
        let run = |&(kind, epoch_kind): &(&str, EpochKind), workers: u64| RunRow {
            cell: format!("workers={workers} my {kind}"),
            strategy: format!("my {kind}"),
            strategy_kind: Some(kind.to_owned()),
            epoch_kind: Some(epoch_kind),
            sweep: Sweep::default().with("workers", workers.into()),
            epochs: 10,
            ..RunRow::finished(Measured {
                simulated_seconds: 1.0,
                payload_bytes: 1000,
                ..Measured::default()
            })
        };
        let runs = kinds.iter().flat_map(|kind| [run(kind, 2), run(kind, 4)]);
        let runs: Vec<RunRow> = runs.collect();
        let epoch = |run: &RunRow| EpochRow {
            cell: run.cell.clone(),
            strategy: run.strategy.clone(),
            test_accuracy: Some(0.8),
            ..EpochRow::default()
        };
        let epochs: Vec<EpochRow> = runs.iter().map(epoch).collect();
        let cells = series::cells(&runs, &epochs);
        let kinds = ["accuracy-vs-epoch", "scaling"].into_iter();
        let figures = kinds.map(|name| Kind::named(name).unwrap().figure(&cells).unwrap());
        figures.map(|figure| figure.caption).collect()
    }

    #[test]
    fn equal_trainings_with_more_seeds_and_fewer_are_drawn_alike() {
        let run = |label: &str, seed: u64| RunRow {
            cell: label.to_owned(),
            strategy: label.to_owned(),
            seed,
            epochs: 1,
            ..RunRow::finished(Measured {
                test_accuracy: Some(0.8 + 0.01 * seed as f64),
                payload_bytes: 1000,
                simulated_seconds: 1.0,
                ..Measured::default()
            })
        };
        let runs = [
            run("full", 0),
            run("full", 1),
            run("same", 0),
            run("full", 5),
        ];
        let epoch = |run: &RunRow| EpochRow {
            cell: run.cell.clone(),
            strategy: run.strategy.clone(),
            seed: run.seed,
            test_accuracy: Some(0.8 + 0.01 * run.seed as f64),
            payload_bytes: 1000,
            ..EpochRow::default()
        };
        let epochs: Vec<EpochRow> = runs.iter().map(epoch).collect();
        let cells = series::cells(&runs, &epochs);
        for kind in ["accuracy-vs-bytes", "accuracy-vs-time", "pareto"] {
            let figure = Kind::named(kind).unwrap().figure(&cells).unwrap();
            let said =
                "Of more seeds, which not all strategies of a setting have, nothing is drawn.";
            assert!(figure.caption.contains(said), "{}", figure.caption);
            for (_, panel) in figure.rows.iter().flatten() {
                let Panel::Curves(curves) = panel else {
                    panic!("{kind} has curves or points");
                };
                assert_eq!(curves.series[0].spots, curves.series[1].spots, "{kind}");
            }
        }
    }

    #[test]
    fn captions_say_what_counts_as_an_epoch_where_it_is_another_thing() {
        let said = "On epochs: a point of llcg and fedgcn is a round, of one step or more; retexo counts each sub-model's epochs.";
        let mixed = captions(&[
            ("llcg", EpochKind::Round),
            ("full", EpochKind::Pass),
            ("retexo", EpochKind::SubModel),
            ("fedgcn", EpochKind::Round),
        ]);
        assert!(mixed[0].contains(said), "{}", mixed[0]);
        assert!(mixed[1].contains("payload of a training") && !mixed[1].contains("On epochs"));
        for caption in captions(&[("retexo", EpochKind::SubModel)]) {
            let said = " On epochs: retexo counts each sub-model's epochs.";
            assert!(caption.contains(said), "{caption}");
            assert!(!caption.contains("round"), "{caption}");
        }
        for caption in captions(&[("full", EpochKind::Pass), ("varco", EpochKind::Pass)]) {
            assert!(
                !caption.contains("round") && !caption.contains("sub-model"),
                "{caption}"
            );
        }
    }
}
