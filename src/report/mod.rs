//! Tables → figures, Markdown and LaTeX tables, and one HTML page. Floor 6: reads result rows and a
//! manifest, trains nothing.

mod figures;
pub(crate) mod format;
mod html;
mod looks;
mod plot;
mod profile;
mod projection;
mod recipe;
mod series;
mod settings;
mod story;
mod study;
mod style;
mod tables;

use std::borrow::Borrow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::atomic;
use crate::experiment::{Tables, judged_by};
use figures::{KINDS, Kind};
use plot::Figure;
use tables::Table;

pub(crate) use profile::{Drawing, write_degrees};
pub(crate) use projection::{Projected, build as build_projection, where_trained};
pub(crate) use study::{estimator_tables, write_estimator};
pub(crate) use tables::{detectable, measured, p_value};

/// Names of the figure kinds an experiment file may ask for, in the order of the report.
pub(crate) fn figure_kinds() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// Why a report could not be made.
#[derive(Debug, Error)]
pub(crate) enum ReportError {
    /// A file of the report cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// The manifest asks for a figure that does not exist.
    #[error("manifest.json: figure {index}: unknown kind `{kind}`; the kinds are: {known}")]
    UnknownFigure {
        /// Its place among the figures, from 1.
        index: usize,
        /// The kind asked for; empty if none is named.
        kind: String,
        /// The kinds there are.
        known: String,
    },
    /// The drawing library gave up.
    #[error("cannot draw figure `{kind}`: {message}")]
    Draw {
        /// The figure's kind.
        kind: &'static str,
        /// What the library says.
        message: String,
    },
    /// The page's template failed.
    #[error("cannot render report.html: {0}")]
    Page(#[from] minijinja::Error),
}

/// A report that was written.
#[derive(Debug)]
pub(crate) struct Written {
    /// Its files: figures, tables, the page.
    pub files: Vec<PathBuf>,
    /// Sentences about what was asked for and left out.
    pub notes: Vec<String>,
}

/// Writes `figures/*.svg`, `figures/*.png`, `tables/*.md`, `tables/*.tex` and `report.html` into
/// `folder`, each file atomically. Figures and tables that an earlier report left and this one does
/// not have are removed; nothing else in the folder is touched.
///
/// `manifest["figures"]` lists the figures (`{ "kind": …, "title": … }`); absent or empty means
/// every kind. A figure with nothing to show is left out, with a note if it is listed. Every field
/// of the manifest may be absent.
///
/// # Errors
/// A file cannot be written or removed, or the manifest names an unknown figure.
pub(crate) fn build(
    folder: &Path,
    tables: &Tables,
    manifest: &Value,
) -> Result<Written, ReportError> {
    let (mut written, mut notes) = (Vec::new(), Vec::new());
    let mut cells = series::cells(&tables.runs, &tables.epochs);
    series::add_timeline(&mut cells, &tables.timeline);
    let mut drawn = Vec::new();
    let listed = listed(manifest)?;
    for (kind, title) in listed
        .clone()
        .unwrap_or_else(|| KINDS.map(|kind| (kind, None)).into())
    {
        let Some(mut figure) = kind.figure(&cells) else {
            if listed.is_some() {
                let (name, needs) = (kind.name, kind.needs);
                notes.push(format!(
                    "the figure {name} is left out, for it needs {needs}"
                ));
            }
            continue;
        };
        figure.title = title.unwrap_or(figure.title);
        let (svg, paths) = write_figure(folder, &figure)?;
        written.extend(paths);
        drawn.push((figure, svg));
    }

    let summary = tables::summary(&cells);
    let traffic = tables::traffic(&cells, &tables.traffic);
    // Every field of a manifest may be absent, and so may this one.
    let judging = judged_by(manifest).ok().map(|(_, statistics)| statistics);
    let claims = tables::claims(&tables.claims, judging.as_ref());
    let budgets = tables::budgets(&cells, &tables.traffic);
    let budgets = budgets.as_ref().map_or(&[][..], |both| &both[..]);
    let targets = tables::targets(&cells, target(&manifest["config"]));
    let all = [&summary, &traffic, &claims].into_iter();
    written.extend(write_tables(folder, all.chain(&targets).chain(budgets))?);

    let page = html::Page {
        cells: &cells,
        runs: &tables.runs,
        claims: &tables.claims,
        judging: judging.as_ref(),
        summary: &summary,
        traffic: &traffic,
        targets: targets.as_ref(),
        budgets,
        figures: &drawn,
        left_out: &notes,
        manifest,
        projection: None,
    };
    written.push(write_file(
        folder,
        "report.html",
        page.render()?.as_bytes(),
    )?);
    // Last, so that a report that fails on the way leaves what an earlier one made.
    remove(&files(folder), &written)?;
    Ok(Written {
        files: written,
        notes,
    })
}

/// Writes the tables that follow from the rows of runs alone (claims, summary, targets), and draws
/// those figures anew that do and are there. For a folder that kept no epochs and no traffic.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn build_tables_of_runs(
    folder: &Path,
    tables: &Tables,
    manifest: &Value,
) -> Result<Written, ReportError> {
    let cells = series::cells(&tables.runs, &[]);
    let judging = judged_by(manifest).ok().map(|(_, statistics)| statistics);
    let claims = tables::claims(&tables.claims, judging.as_ref());
    let targets = tables::targets(&cells, target(&manifest["config"]));
    let all = [claims, tables::summary(&cells)].into_iter().chain(targets);
    let mut files = write_tables(folder, all)?;
    for kind in KINDS {
        let name = format!("figures/{}.svg", kind.name);
        // Without epochs some have nothing to show, and stay.
        if folder.join(&name).exists()
            && let Some(figure) = kind.figure(&cells)
        {
            files.push(write_file(folder, &name, figure.svg().as_bytes())?);
        }
    }
    Ok(Written {
        files,
        notes: Vec::new(),
    })
}

/// Writes each table as Markdown and LaTeX.
fn write_tables(
    folder: &Path,
    all: impl IntoIterator<Item: Borrow<Table>>,
) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = Vec::new();
    for table in all {
        let table = table.borrow();
        let texts = [
            ("md", tables::markdown(table)),
            ("tex", tables::latex(table)),
        ];
        for (extension, text) in texts {
            let name = format!("tables/{}.{extension}", table.name);
            written.push(write_file(folder, &name, text.as_bytes())?);
        }
    }
    Ok(written)
}

/// All files that a report may consist of, whether they are there or not.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let tables = [
        "summary",
        "traffic",
        "claims",
        "targets",
        "budgets",
        "budget-winners",
    ];
    let mut files = files_of(folder, &figure_kinds(), &tables);
    files.push(folder.join("report.html"));
    files
}

/// The files of figures and tables of these names. By name and not by pattern: whatever else lies
/// in the folder is not the report's to remove.
fn files_of(folder: &Path, figures: &[&str], tables: &[&str]) -> Vec<PathBuf> {
    let both = |(of, names, extensions): (&str, &[&str], [&str; 2])| -> Vec<PathBuf> {
        let file = |name: &&str| extensions.map(|end| folder.join(format!("{of}/{name}.{end}")));
        names.iter().flat_map(file).collect()
    };
    [
        ("figures", figures, ["svg", "png"]),
        ("tables", tables, ["md", "tex"]),
    ]
    .into_iter()
    .flat_map(both)
    .collect()
}

/// The target accuracy of all cells; `None` if there is none, or more than one.
fn target(config: &Value) -> Option<f64> {
    const KEY: &str = "training.target_accuracy";
    let own = |entry: &Value| !entry["with"][KEY].is_null();
    let mut strategies = config["strategy"].as_array().into_iter().flatten();
    let sweep = config["sweep"].as_object();
    let mut swept = sweep.into_iter().flatten().flat_map(|(key, values)| {
        let values = values.as_array().into_iter().flatten();
        values.map(move |value| (key, value))
    });
    let varies = strategies.any(own)
        || swept.any(|(key, value)| {
            key == KEY || own(value) || (key == "training" && !value["target_accuracy"].is_null())
        });
    let stated = config["training"]["target_accuracy"].as_f64();
    stated.filter(|_| !varies)
}

/// Writes a file of the report, and returns its path.
fn write_file(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, ReportError> {
    let path = folder.join(name);
    match atomic::write_bytes(&path, content) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::Write { path, source }),
    }
}

/// Draws a figure as SVG and PNG, and returns the first and the paths of both.
fn write_figure(folder: &Path, figure: &Figure) -> Result<(String, [PathBuf; 2]), ReportError> {
    let failed = |message| ReportError::Draw {
        kind: figure.kind,
        message,
    };
    let svg = figure.svg();
    let name = |extension| format!("figures/{}.{extension}", figure.kind);
    let first = write_file(folder, &name("svg"), svg.as_bytes())?;
    let second = write_file(folder, &name("png"), &figure.png().map_err(failed)?)?;
    Ok((svg, [first, second]))
}

/// Removes those of the files that are there and were not written.
fn remove(files: &[PathBuf], written: &[PathBuf]) -> Result<(), ReportError> {
    let stale = |path: &&PathBuf| path.exists() && !written.contains(path);
    files.iter().filter(stale).try_for_each(|path| {
        fs::remove_file(path).map_err(|source| ReportError::Write {
            path: path.clone(),
            source,
        })
    })
}

/// A figure that is asked for, and the title it shall have.
type Asked = (Kind, Option<String>);

/// The figures the manifest asks for, each kind once, with the titles it gives them; `None` if it
/// lists none.
fn listed(manifest: &Value) -> Result<Option<Vec<Asked>>, ReportError> {
    let listed = manifest["figures"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if listed.is_empty() {
        return Ok(None);
    }
    let mut wanted: Vec<Asked> = Vec::new();
    for (index, figure) in listed.iter().enumerate() {
        let name = figure["kind"].as_str().unwrap_or_default();
        let kind = Kind::named(name).ok_or_else(|| ReportError::UnknownFigure {
            index: index + 1,
            kind: name.into(),
            known: figure_kinds().join(", "),
        })?;
        if !wanted.iter().any(|(known, _)| known.name == kind.name) {
            wanted.push((kind, figure["title"].as_str().map(Into::into)));
        }
    }
    Ok(Some(wanted))
}

#[cfg(test)]
mod tests;
