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
use super::series::{Entrant, seed_count};
use crate::experiment::statistics::Summary;

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

    /// The figure; `None` if the cells hold nothing that it shows.
    pub(super) fn figure(&self, cells: &[Entrant]) -> Option<Figure> {
        (self.draw)(cells)
    }
}

/// `mean of 3 seeds`, `mean of 3 to 5 seeds`, or `one seed`.
fn seeds(cells: &[Entrant]) -> String {
    seed_count(cells).map_or("one seed".into(), |seeds| format!("mean of {seeds} seeds"))
}

/// [`seeds`], and what their spread is drawn as.
fn seeds_with(cells: &[Entrant], spread: &str) -> String {
    let seeds = seeds(cells);
    if seeds == "one seed" {
        return seeds;
    }
    format!("{seeds}, {spread} ± one standard deviation")
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

/// `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
