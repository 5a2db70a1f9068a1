//! What is projected, as tables, figures and a page.

mod tables;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::figures::projected;
use super::{ReportError, files_of, html, remove, series, write_figure, write_file, write_tables};
use crate::experiment::rows::{Measured, RunRow, distinct};
use crate::experiment::{Beside, Experiment, Notes, Projection, Verdicts};

pub(crate) use tables::where_trained;

/// The page.
const PAGE: &str = "projection.html";

/// What a page of projections is made of.
pub(crate) struct Projected<'a> {
    /// What was projected.
    pub experiment: &'a Experiment,
    /// Its cells.
    pub projections: &'a [Projection],
    /// What comes of its claims.
    pub verdicts: &'a Verdicts,
    /// What has to be said of them.
    pub notes: &'a Notes,
    /// Runs beside it.
    pub beside: Option<&'a Beside>,
    /// The command line that made it.
    pub command: Vec<String>,
}

/// Writes `projection.html`, `figures/projected-*` and `tables/projected-*` into `folder`, each
/// file atomically. What an earlier one left and this one does not have is removed.
///
/// # Errors
/// A file cannot be written or removed.
pub(crate) fn build(folder: &Path, made: &Projected) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = Vec::new();
    let runs: Vec<RunRow> = (made.projections.iter())
        .map(|projection| projection.run.clone())
        .collect();
    let of_epoch: Vec<RunRow> = runs.iter().map(an_epoch).collect();
    let trained = made.beside.map_or(&[][..], |beside| &beside.runs[..]);
    let cells = series::cells(&runs, &[]);
    let mut beside = series::cells(trained, &[]);
    for cell in &mut beside {
        let same = cells.iter().find(|known| known.strategy == cell.strategy);
        cell.look = same.map_or(cell.look, |known| known.look);
    }
    let mut drawn = Vec::new();
    for figure in projected::figures(&cells, &series::cells(&of_epoch, &[]), &beside) {
        let (svg, paths) = write_figure(folder, &figure)?;
        written.extend(paths);
        drawn.push((figure, svg));
    }
    let mut tables = tables::all(made.projections, made.beside);
    if !made.verdicts.claims.is_empty() {
        tables.push(tables::claims(&made.verdicts.claims));
    }
    written.extend(write_tables(folder, &tables)?);
    let shown: Vec<_> = (tables.iter())
        .filter(|table| table.name != tables::CLAIMS)
        .cloned()
        .collect();
    let manifest = manifest(made);
    let page = html::Page {
        cells: &cells,
        runs: &runs,
        claims: &made.verdicts.claims,
        judging: None,
        summary: &shown[0],
        traffic: &shown[0],
        targets: None,
        budgets: &[],
        figures: &drawn,
        left_out: &[],
        manifest: &manifest,
        projection: Some(html::Projection {
            tables: &shown,
            errors: errors(made),
            notes: &made.notes.limits,
            assumed: &made.notes.assumed,
        }),
    };
    written.push(write_file(folder, PAGE, page.render()?.as_bytes())?);
    remove(
        &files_of(folder, &projected::KINDS, &tables::NAMES),
        &written,
    )?;
    Ok(written)
}

/// The mean epoch of a training, as a run of one.
fn an_epoch(run: &RunRow) -> RunRow {
    let epochs = run.epochs.max(1) as f64;
    let measured = run.measured.map(|whole| Measured {
        simulated_seconds: whole.simulated_seconds / epochs,
        compute_seconds: whole.compute_seconds / epochs,
        communication_seconds: whole.communication_seconds / epochs,
        exposed_communication_seconds: whole.exposed_communication_seconds / epochs,
        waiting_seconds: whole.waiting_seconds.map(|waiting| waiting / epochs),
        ..whole
    });
    RunRow {
        epochs: 1,
        measured,
        ..run.clone()
    }
}

/// How far projections are from what was trained, in a sentence.
fn errors(made: &Projected) -> String {
    let Some(beside) = made.beside else {
        let none = "No run stands beside it".to_owned();
        let elsewhere = made.projections.iter().any(|one| one.validated.is_some());
        return none
            + if elsewhere {
                "; the last column of the times has the largest errors where smaller graphs were trained, too."
            } else {
                "."
            };
    };
    let worst = |measure: &str| {
        let rows = beside.rows.iter().filter(|row| row.measure == measure);
        let errors = rows.filter_map(|row| row.error.map(f64::abs));
        let largest = errors.reduce(f64::max);
        largest.map_or_else(|| "–".to_owned(), super::format::percent)
    };
    let cells = distinct(beside.rows.iter().map(|row| &row.cell)).len();
    format!(
        "Where it was trained, too, in {cells} cells, payload is off by {} at most, and time by {}.",
        worst("payload_bytes"),
        worst("simulated_seconds")
    )
}

/// What the page needs of a manifest.
fn manifest(made: &Projected) -> Value {
    json!({
        "name": made.experiment.name,
        "description": made.experiment.description,
        "command": made.command,
        "config": made.experiment.resolved(),
        "config_toml": made.experiment.resolved_text(),
    })
}
