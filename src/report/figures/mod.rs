//! The kinds of figures: each turns cells into a [`Figure`], or into nothing where there is nothing to show.

mod accuracy;
mod bytes_by_kind;
mod compression;
mod heatmap;
mod multiples;
mod pareto;
mod scaling;
mod time_breakdown;
mod timeline;

use super::plot::Figure;
use super::series::Entrant;

/// A kind of figure.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name in experiment files, and of the files it makes.
    pub name: &'static str,
    /// Without what it has nothing to show.
    pub needs: &'static str,
    /// Makes the figure; `None` if the cells hold nothing that it shows.
    draw: fn(&[Entrant]) -> Option<Figure>,
}

/// Every kind, in the order of the report.
pub const KINDS: [Kind; 10] = [
    Kind {
        name: "accuracy-vs-epoch",
        needs: "a run that was evaluated",
        draw: accuracy::against_epoch,
    },
    Kind {
        name: "accuracy-vs-bytes",
        needs: "a run that was evaluated",
        draw: accuracy::against_bytes,
    },
    Kind {
        name: "accuracy-vs-time",
        needs: "a run that was evaluated",
        draw: accuracy::against_time,
    },
    Kind {
        name: "bytes-by-kind",
        needs: "a run that finished",
        draw: bytes_by_kind::figure,
    },
    Kind {
        name: "pareto",
        needs: "a run with a test accuracy",
        draw: pareto::figure,
    },
    Kind {
        name: "time-breakdown",
        needs: "a run that takes time",
        draw: time_breakdown::figure,
    },
    Kind {
        name: "scaling",
        needs: "a sweep over two or more sizes",
        draw: scaling::figure,
    },
    Kind {
        name: "heatmap",
        needs: "a sweep with two or more settings, and two strategies",
        draw: heatmap::figure,
    },
    Kind {
        name: "compression",
        needs: "a strategy that compresses, or covers a part of the neighbours",
        draw: compression::figure,
    },
    Kind {
        name: "timeline",
        needs: "a run with --trace",
        draw: timeline::figure,
    },
];

impl Kind {
    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// The figure; `None` if the cells hold nothing that it shows.
    pub fn figure(&self, cells: &[Entrant]) -> Option<Figure> {
        (self.draw)(cells)
    }
}

/// `mean of 3 seeds`, or `one seed`.
fn seeds(cells: &[Entrant]) -> String {
    match cells.iter().map(|cell| cell.runs.len()).max() {
        Some(seeds) if seeds > 1 => format!("mean of {seeds} seeds"),
        _ => "one seed".into(),
    }
}

/// [`seeds`], and what their spread is drawn as.
fn seeds_with(cells: &[Entrant], spread: &str) -> String {
    let seeds = seeds(cells);
    if seeds == "one seed" {
        return seeds;
    }
    format!("{seeds}, {spread} ± one standard deviation")
}

/// `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
