//! What an estimator study found: a table of all rows, one of each estimator against no weight, and
//! a figure.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::looks;
use super::plot::{Axis, Curves, Figure, Headed, Panel, Series, Spot, Unit};
use super::tables::{Entry, Table, columns, markdown};
use super::{ReportError, write_figure, write_file, write_tables};
use crate::experiment::rows::distinct;
use crate::experiment::{EstimatorRow, EstimatorStudy};
use crate::net::median;
use crate::study::Estimator;

/// Errors below this are rounding: the worker sees everything.
const NOTHING: f64 = 1e-9;

/// Both tables as Markdown.
pub(crate) fn estimator_tables(rows: &[EstimatorRow]) -> String {
    format!(
        "{}\n{}",
        markdown(&against_none(rows)),
        markdown(&all(rows))
    )
}

/// Writes `estimator.csv` with all rows, `tables/estimator-against-none.md` and `.tex`, and
/// `figures/estimator.svg` and `.png`, and returns their paths.
///
/// # Errors
/// A file cannot be written, or the figure not be drawn.
pub(crate) fn write_estimator(
    folder: &Path,
    study: &EstimatorStudy,
    rows: &[EstimatorRow],
) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = vec![write_file(folder, "estimator.csv", csv(rows).as_bytes())?];
    written.extend(write_tables(folder, [against_none(rows)])?);
    if let Some(figure) = figure(rows, &study.figure) {
        written.extend(write_figure(folder, &figure)?.1);
    }
    Ok(written)
}

/// All rows; no name has a comma or a quote in it.
fn csv(rows: &[EstimatorRow]) -> String {
    let fields = |row| match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            format!("{:.6}", number.as_f64().unwrap_or(0.0))
        }
        other => other.to_string(),
    };
    let header = (rows.first()).map(|row| fields(row).keys().cloned().collect::<Vec<_>>());
    let lines = rows
        .iter()
        .map(|row| fields(row).values().map(text).collect::<Vec<_>>());
    let lines = header.into_iter().chain(lines);
    lines.map(|line| line.join(",") + "\n").collect()
}

fn all(rows: &[EstimatorRow]) -> Table {
    let sampled = |value: f64, error: f64| {
        Entry::new(if error > 0.0 {
            format!("{value:.3} ± {error:.3}")
        } else {
            format!("{value:.3}")
        })
    };
    let row = |row: &EstimatorRow| {
        vec![
            Entry::new(&row.graph),
            Entry::new(&row.design),
            Entry::new(row.workers.to_string()),
            Entry::new(if row.halo { "yes" } else { "no" }),
            Entry::new(format!("{:.3}", row.coverage)),
            Entry::new(if row.exact {
                format!("all {}", row.outcomes)
            } else {
                row.outcomes.to_string()
            }),
            Entry::new(&row.estimator),
            sampled(row.summary.bias, row.summary.bias_error),
            sampled(row.summary.sd, row.summary.sd_error),
            sampled(row.summary.rmse, row.summary.rmse_error),
            Entry::new(format!("{:.4}", row.summary.cosine)),
            Entry::new(format!("{:.3}", row.summary.scaled_rmse)),
            Entry::new(format!("{:.2}", row.summary.best_lambda)),
            Entry::new(format!("{:.3}", row.summary.best_rmse)),
        ]
    };
    Table {
        name: "estimator",
        caption: "Estimates of the full gradient, in lengths of it: bias, standard deviation and root mean squared error (± one \
                  standard error where outcomes are sampled); the cosine between the mean estimate and the full gradient; the error after \
                  the best constant factor; and the best share λ in a mixture with the unweighted estimate, with its error."
            .into(),
        columns: columns(&["graph", "design", "#workers", "halo", "#coverage", "#outcomes", "estimator", "#bias", "#sd", "#rmse", "#cosine", "#rmse, scaled", "#best λ", "#rmse, best λ"]),
        rows: rows.iter().map(row).collect(),
    }
}

/// Labels in the order of their first row.
fn labels(rows: &[EstimatorRow]) -> Vec<&str> {
    distinct(rows.iter().map(|row| row.estimator.as_str()))
}

/// The unweighted row of the same setting.
fn unweighted<'a>(rows: &'a [EstimatorRow], row: &EstimatorRow) -> Option<&'a EstimatorRow> {
    let setting =
        |row: &EstimatorRow| (row.graph.clone(), row.design.clone(), row.workers, row.halo);
    let wanted = setting(row);
    rows.iter()
        .find(|other| other.estimator == "none" && setting(other) == wanted)
}

fn against_none(rows: &[EstimatorRow]) -> Table {
    let measures: [fn(&EstimatorRow) -> f64; 3] = [
        |row| row.summary.bias,
        |row| row.summary.rmse,
        |row| row.summary.scaled_rmse,
    ];
    let line = |halo: bool, label: &str| {
        let pairs: Vec<(&EstimatorRow, &EstimatorRow)> = rows
            .iter()
            .filter(|row| row.estimator == label && row.halo == halo)
            .filter_map(|row| Some((row, unweighted(rows, row)?)))
            // Where the unweighted estimate is exact there is no ratio to it.
            .filter(|(_, plain)| plain.summary.rmse > NOTHING && plain.summary.bias > NOTHING)
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let mut cells = vec![
            Entry::new(if halo { "yes" } else { "no" }),
            Entry::new(label),
            Entry::new(pairs.len().to_string()),
        ];
        for measure in measures {
            let ratios: Vec<f64> = pairs
                .iter()
                .map(|(row, plain)| measure(row) / measure(plain))
                .collect();
            // A thousandth better is no better.
            let better = ratios.iter().filter(|&&ratio| ratio < 0.999).count();
            cells.push(Entry::new(format!("{:.2}", median(ratios))));
            cells.push(Entry::new(better.to_string()));
        }
        Some(cells)
    };
    let labels = labels(rows);
    let lines = [false, true]
        .into_iter()
        .flat_map(|halo| labels.iter().filter_map(move |label| line(halo, label)));
    Table {
        name: "estimator-against-none",
        caption: "Each estimator against no weight: the median over settings (graph, design, workers) of the ratio of its bias, its error and its \
                  error after the best constant factor to those of no weight, and in how many settings it is lower."
            .into(),
        columns: columns(&["halo", "estimator", "#settings", "#bias ratio", "#lower", "#rmse ratio", "#lower", "#scaled rmse ratio", "#lower"]),
        rows: lines.collect(),
    }
}

/// What a figure shows of rows: its name, and its value with a standard error.
type Measure = (&'static str, fn(&EstimatorRow) -> (f64, f64));

/// Bias and error against coverage, one point a setting.
fn figure(rows: &[EstimatorRow], wanted: &[Estimator]) -> Option<Figure> {
    let named = |label| {
        let mut wanted = wanted.iter();
        let estimator = wanted.find(|estimator| estimator.label() == label)?;
        Some((label, estimator.weight.name()))
    };
    let shown: Vec<(&str, &str)> = labels(rows).into_iter().filter_map(named).collect();
    let looks = looks::looks(&shown);
    let shown: Vec<&str> = shown.into_iter().map(|(label, _)| label).collect();
    let panel = |graph: &str, halo: bool, (name, value): Measure| {
        let spots = |label: &str| -> Vec<Spot> {
            rows.iter()
                .filter(|row| row.graph == graph && row.halo == halo && row.estimator == label)
                // A logarithmic axis has no place for rounding errors.
                .filter(|row| value(row).0 > NOTHING)
                .map(|row| Spot {
                    x: row.coverage,
                    x_sd: 0.0,
                    y: value(row).0,
                    y_sd: value(row).1,
                })
                .collect()
        };
        let series: Vec<Series> = shown
            .iter()
            .zip(&looks)
            .map(|(label, look)| Series {
                label: (*label).to_owned(),
                look: *look,
                spots: spots(label),
                crosses: false,
            })
            .collect();
        let all: Vec<Spot> = series
            .iter()
            .flat_map(|series| series.spots.clone())
            .collect();
        if all.is_empty() {
            return None;
        }
        let y = format!("relative {name}");
        let curves = Curves {
            x: Axis::linear(
                "expected coverage",
                Unit::Percent,
                all.iter().map(|spot| spot.x),
            ),
            y: Axis::log(&y, Unit::Percent, all.iter().map(|spot| spot.y)),
            joined: false,
            guide: None,
            series,
        };
        let beside = if halo { "halo" } else { "no halo" };
        Some((format!("{graph}, {beside}"), Panel::Curves(curves)))
    };
    let mut graphs: Vec<&str> = rows.iter().map(|row| row.graph.as_str()).collect();
    // Rows of a graph follow each other.
    graphs.dedup();
    let measures: [Measure; 2] = [
        ("bias", |row| (row.summary.bias, row.summary.bias_error)),
        ("error", |row| (row.summary.rmse, row.summary.rmse_error)),
    ];
    // Side by side what differs in the halo alone.
    let panels = graphs.into_iter().flat_map(|graph| {
        measures.map(|measure| {
            let both = [false, true].map(|halo| panel(graph, halo, measure));
            both.into_iter().flatten().collect::<Vec<Headed>>()
        })
    });
    let panels: Vec<Vec<Headed>> = panels.filter(|row| !row.is_empty()).collect();
    if panels.is_empty() {
        return None;
    }
    Some(Figure {
        kind: "estimator",
        title: "Estimates of the full gradient".into(),
        caption: "Bias and root mean squared error of estimates of the full gradient, relative to its length, against the expected \
                  coverage of training nodes; one point for each design and number of workers, with bars of one standard error \
                  where outcomes are sampled. Where everything is seen there is nothing to show."
            .into(),
        alt: format!("Relative bias and error against coverage, of {}.", shown.join(", ")),
        rows: panels,
        note: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Summary;

    fn row(estimator: &str, workers: usize, bias: f64) -> EstimatorRow {
        EstimatorRow {
            graph: "sbm-60".into(),
            design: "random".into(),
            workers,
            halo: false,
            coverage: 1.0 / workers as f64,
            outcomes: 100,
            exact: workers == 2,
            estimator: estimator.into(),
            summary: Summary {
                bias,
                bias_error: if workers == 2 { 0.0 } else { 0.01 },
                sd: 0.3,
                sd_error: 0.0,
                rmse: (bias * bias + 0.09).sqrt(),
                rmse_error: 0.0,
                cosine: 0.9,
                scaled_rmse: 0.25,
                best_lambda: 0.5,
                best_rmse: 0.2,
            },
        }
    }

    fn rows() -> Vec<EstimatorRow> {
        vec![
            row("none", 2, 0.2),
            row("node_ht(rho)", 2, 0.1),
            row("none", 4, 0.4),
            row("node_ht(rho)", 4, 0.6),
        ]
    }

    #[test]
    fn the_tables_compare_with_no_weight_and_list_every_row() {
        let text = estimator_tables(&rows());
        assert!(
            text.contains("| no | node\\_ht(rho) | 2 | 1.00 | 1 | "),
            "{text}"
        );
        assert!(
            text.contains("| sbm-60 | random | 2 | no | 0.500 | all 100 | none | 0.200 | 0.300 |"),
            "{text}"
        );
        assert!(
            text.contains("| 0.250 | 100 | none | 0.400 ± 0.010 |"),
            "{text}"
        );
        let csv = csv(&rows());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[0],
            "graph,design,workers,halo,coverage,outcomes,exact,estimator,bias,bias_error,sd,sd_error,rmse,rmse_error,\
             cosine,scaled_rmse,best_lambda,best_rmse"
        );
        assert_eq!(
            lines[3],
            "sbm-60,random,4,false,0.250000,100,false,none,0.400000,0.010000,0.300000,0.000000,0.500000,0.000000,\
             0.900000,0.250000,0.500000,0.200000"
        );
    }

    #[test]
    fn the_figure_has_a_point_for_every_row_that_is_asked_for() {
        let figure = figure(&rows(), &[Estimator::default()]).unwrap();
        let Panel::Curves(bias) = &figure.rows[0][0].1 else {
            panic!("points")
        };
        assert_eq!((bias.series.len(), bias.series[0].spots.len()), (1, 2));
        assert!(figure.svg().starts_with("<svg"));
    }

    #[test]
    fn nothing_is_drawn_where_everything_is_seen() {
        let mut exact = row("none", 1, 0.0);
        exact.summary.rmse = 0.0;
        assert!(figure(&[exact], &[Estimator::default()]).is_none());
    }
}
