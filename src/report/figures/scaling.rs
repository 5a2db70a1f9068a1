//! How time and bytes grow with the number of workers, or with the size of model or graph.

use super::multiples::{left_out, rows};
use super::{LOG_BANDS, seeds_with, series, spot, what_counts};
use crate::experiment::rows::{Measured, Sweep, distinct, grouped};
use crate::experiment::statistics::Summary;
use crate::report::plot::{Axis, Curves, Figure, Guide, Headed, Panel, Series, Unit};
use crate::report::series::Entrant;
use crate::report::settings;

/// What may stand on the horizontal axis, if it is swept: the last part of its key, and its name;
/// the first comes first.
const SIZES: [(&str, &str); 5] = [
    ("workers", "workers"),
    ("layers", "model layers"),
    ("hidden", "hidden width"),
    ("nodes", "nodes"),
    ("scale", "nodes of the graph"),
];

/// More panels of each measure are not shown.
const MOST: usize = 8;

/// What is measured: its name, its unit and its value for a run.
type Measure = (&'static str, Unit, fn(&Measured) -> f64);

/// Of what it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// An epoch.
    Epoch,
    /// A whole training: epochs of different kinds are not alike, but trainings are.
    Training,
}

impl Of {
    fn cells(cells: &[Entrant]) -> Self {
        let runs = cells.iter().flat_map(|cell| &cell.runs);
        match distinct(runs.map(|(run, _)| run.epoch_kind)).len() {
            0 | 1 => Self::Epoch,
            _ => Self::Training,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Epoch => "per epoch",
            Self::Training => "of a training",
        }
    }

    fn summary(self, cell: &Entrant, value: fn(&Measured) -> f64) -> Option<Summary> {
        let runs = cell.runs.iter().filter(|(run, _)| run.epochs > 0);
        Summary::of(runs.map(|(run, measured)| match self {
            Self::Epoch => value(measured) / run.epochs as f64,
            Self::Training => value(measured),
        }))
    }
}

/// A cell with its place on the horizontal axis.
type Sized<'c, 'a> = (f64, &'c Entrant<'a>);

/// One panel of time and one of bytes for each combination of what else is swept; `None` with fewer
/// than two sizes.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    beside(cells, &[])
}

/// The same, with crosses where `trained` cells lie.
pub(super) fn beside(cells: &[Entrant], trained: &[Entrant]) -> Option<Figure> {
    let (size, name) = SIZES.into_iter().find(|(size, _)| {
        let mut sizes: Vec<f64> = cells
            .iter()
            .filter_map(|cell| size_of(cell, size))
            .collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        sizes.len() > 1
    })?;
    let sized = cells.iter().filter_map(|cell| {
        let x = size_of(cell, size)?;
        Some((cell.setting.without(size), (x, cell)))
    });
    let mut panels: Vec<(Sweep, Vec<Sized>)> = grouped(sized);
    let names: Vec<String> = panels.iter().map(|(rest, _)| rest.to_string()).collect();
    let note = left_out(&names, MOST);
    panels.truncate(MOST);
    // Only for workers is there an ideal: as many times less time.
    let yardstick = settings::yardstick(cells).filter(|_| size == "workers");
    let of = Of::cells(cells);
    let measures: [Measure; 2] = [
        ("time", Unit::Seconds, |measured| measured.simulated_seconds),
        ("payload", Unit::Bytes, |measured| {
            measured.payload_bytes as f64
        }),
    ];
    let groups = measures.map(|measure| {
        let ideal = yardstick.filter(|_| measure.1 == Unit::Seconds);
        group((&panels, trained), (size, name), (of, measure), ideal)
    });
    let ideal = yardstick.map_or(String::new(), |label| {
        format!(
            " Ideal is a time inversely proportional to the number of workers, from the fewest workers of {label} on."
        )
    });
    let counts = match of {
        Of::Epoch => what_counts(cells),
        Of::Training => String::new(),
    };
    let of = of.words();
    Some(Figure {
        kind: "scaling",
        title: format!("Scaling with {name}"),
        caption: format!(
            "Simulated time and payload {of} against {name}, on logarithmic axes; {}.{counts}{ideal}{}{note}{}",
            seeds_with(cells, LOG_BANDS),
            if note.is_empty() { "" } else { " " },
            if note.is_empty() { "" } else { "." },
        ),
        alt: format!(
            "Simulated time and payload {of} against {name}, of {}.",
            settings::strategies(cells).join(", ")
        ),
        rows: rows(groups.into_iter().flatten().collect()),
        note,
    })
}

/// The cell's size, if it has a positive one. The scale of an R-MAT graph is the exponent of its
/// nodes.
fn size_of(cell: &Entrant, size: &str) -> Option<f64> {
    let number = cell.setting.number(size).filter(|number| *number > 0.0);
    number.map(|number| {
        if size == "scale" {
            number.exp2()
        } else {
            number
        }
    })
}

/// A panel of one measure for each combination, all with the same axes.
fn group(
    (panels, trained): (&[(Sweep, Vec<Sized>)], &[Entrant]),
    (size, name): (&str, &str),
    (of, (measure, unit, value)): (Of, Measure),
    ideal: Option<&str>,
) -> Option<Vec<Headed>> {
    let drawn: Vec<(&Sweep, Vec<Series>)> = (panels.iter())
        .map(|(rest, members)| {
            let crossed = trained.iter().filter_map(|cell| {
                let x = size_of(cell, size)?;
                (cell.setting.without(size) == *rest).then_some((x, cell))
            });
            let crossed = curves(&crossed.collect::<Vec<Sized>>(), of, value);
            let crossed = crossed.into_iter().map(|series| Series {
                crosses: true,
                ..series
            });
            let drawn = curves(members, of, value).into_iter().chain(crossed);
            (rest, drawn.collect())
        })
        .collect();
    let spots = || {
        let all = drawn.iter().flat_map(|(_, series)| series);
        all.flat_map(|series| &series.spots)
    };
    spots().next()?;
    let mut sizes: Vec<f64> = spots().map(|spot| spot.x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let x = Axis::log(name, Unit::Plain, sizes.clone()).marked(sizes);
    let line = |series: &[Series]| -> Option<Guide> {
        let spots = &series
            .iter()
            .find(|series| Some(series.label.as_str()) == ideal)?
            .spots;
        let (first, last) = (spots.first()?, spots.last()?);
        let end = (last.x, first.y * first.x / last.x);
        Some(Guide {
            label: "ideal",
            points: vec![(first.x, first.y), end],
        })
    };
    // The ideal line must fit on the axis, too.
    let ends = drawn
        .iter()
        .filter_map(|(_, series)| Some(line(series)?.points[1].1));
    let y = Axis::log(
        &format!("{measure} {}", of.words()),
        unit,
        spots().map(|spot| spot.y).chain(ends),
    );
    let panels = drawn.iter().map(|(rest, series)| {
        let guide = line(series);
        let curves = Curves {
            x: x.clone(),
            y: y.clone(),
            joined: true,
            guide,
            series: series.clone(),
        };
        (rest.heading(), Panel::Curves(curves))
    });
    Some(panels.collect())
}

/// One curve a strategy, by growing size.
fn curves(members: &[Sized], of: Of, value: fn(&Measured) -> f64) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for (x, cell) in members {
        let Some(summary) = of.summary(cell, value) else {
            continue;
        };
        let spot = spot(*x, &summary);
        match curves.iter_mut().find(|curve| curve.label == cell.strategy) {
            Some(curve) => curve.spots.push(spot),
            None => curves.push(series(cell, vec![spot])),
        }
    }
    for curve in &mut curves {
        // A sweep may list its sizes in any order.
        curve.spots.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    use crate::experiment::rows::RunRow;
    use crate::report::series;
    use crate::strategies::EpochKind;

    /// Runs of full with these settings; seconds of each are ten times its place, over ten epochs.
    fn runs(settings: &[Sweep]) -> Vec<RunRow> {
        let run = |(place, setting): (usize, &Sweep)| RunRow {
            cell: format!("{setting} full"),
            strategy: "full".into(),
            sweep: setting.clone(),
            epochs: 10,
            ..RunRow::finished(Measured {
                simulated_seconds: 10.0 * (place + 1) as f64,
                payload_bytes: 1000,
                ..Measured::default()
            })
        };
        settings.iter().enumerate().map(run).collect()
    }

    fn panels(settings: &[&[(&str, Value)]]) -> Option<Vec<(String, Curves)>> {
        let sweep = |setting: &&[(&str, Value)]| {
            let pairs = setting.iter();
            pairs.fold(Sweep::default(), |sweep, (key, value)| {
                sweep.with(key, value.clone())
            })
        };
        let runs = runs(&settings.iter().map(sweep).collect::<Vec<Sweep>>());
        let figure = figure(&series::cells(&runs, &[]))?;
        let panels = figure.rows.into_iter().flatten();
        let curves = panels.filter_map(|(heading, panel)| match panel {
            Panel::Curves(curves) => Some((heading, curves)),
            _ => None,
        });
        Some(curves.collect())
    }

    #[test]
    fn one_size_alone_or_a_sweep_of_something_else_does_not_scale() {
        assert!(panels(&[&[("workers", 4.into())]]).is_none());
        assert!(panels(&[&[("preset", "wan".into())], &[("preset", "lte".into())]]).is_none());
        assert!(
            panels(&[
                &[("workers", 4.into()), ("preset", "wan".into())],
                &[("workers", 4.into()), ("preset", "lte".into())]
            ])
            .is_none()
        );
    }

    #[test]
    fn curves_grow_along_the_axis_and_the_ideal_line_halves_as_workers_double() {
        let panels = panels(&[
            &[("workers", 8.into())],
            &[("workers", 2.into())],
            &[("workers", 16.into())],
        ])
        .unwrap();
        assert_eq!(panels.len(), 2, "time and payload");
        let (_, time) = &panels[0];
        let points: Vec<(f64, f64)> = (time.series[0].spots.iter())
            .map(|spot| (spot.x, spot.y))
            .collect();
        assert_eq!(points, [(2.0, 2.0), (8.0, 1.0), (16.0, 3.0)]);
        let ideal = time.guide.as_ref().unwrap();
        assert_eq!(ideal.points, [(2.0, 2.0), (16.0, 0.25)]);
        assert!(panels[1].1.guide.is_none(), "there is no ideal payload");
    }

    #[test]
    fn what_else_is_swept_becomes_panels_and_workers_come_before_layers() {
        let both: [&[(&str, Value)]; 3] = [
            &[("layers", 2.into()), ("workers", 2.into())],
            &[("layers", 2.into()), ("workers", 4.into())],
            &[("layers", 4.into()), ("workers", 2.into())],
        ];
        let panels = panels(&both).unwrap();
        let headings: Vec<&str> = panels.iter().map(|(heading, _)| heading.as_str()).collect();
        assert_eq!(headings, ["layers=2", "layers=4", "layers=2", "layers=4"]);
    }

    #[test]
    fn trainings_are_compared_where_their_epochs_are_of_different_kinds() {
        let sizes = [2, 4].map(|workers| Sweep::default().with("workers", workers.into()));
        let kinds = [("full", EpochKind::Pass), ("retexo", EpochKind::SubModel)];
        let run = |(strategy, kind): (&str, EpochKind)| {
            // As many bytes, in epochs of which a sub-model has twice as many.
            let epochs = if kind == EpochKind::Pass { 10 } else { 20 };
            let named = move |run: RunRow| RunRow {
                cell: format!("{} {strategy}", run.sweep),
                strategy: strategy.into(),
                epoch_kind: Some(kind),
                epochs,
                ..run
            };
            runs(&sizes).into_iter().map(named).collect::<Vec<_>>()
        };
        let both: Vec<RunRow> = kinds.into_iter().flat_map(run).collect();
        let drawn = |runs: &[RunRow]| {
            let figure = figure(&series::cells(runs, &[])).unwrap();
            let Some((_, Panel::Curves(payload))) = figure.rows.into_iter().flatten().nth(1) else {
                panic!("two panels");
            };
            let fewest = payload.series.iter().map(|series| series.spots[0].y);
            (figure.caption, fewest.collect::<Vec<f64>>())
        };
        let (caption, bytes) = drawn(&both);
        assert!(caption.contains("payload of a training"), "{caption}");
        assert_eq!(bytes, [1000.0, 1000.0]);
        let (caption, bytes) = drawn(&both[2..]);
        assert!(caption.contains("payload per epoch"), "{caption}");
        assert_eq!(bytes, [50.0]);
    }

    #[test]
    fn without_workers_there_is_no_ideal() {
        let panels = panels(&[&[("layers", 2.into())], &[("layers", 8.into())]]).unwrap();
        assert!(panels.iter().all(|(_, curves)| curves.guide.is_none()));
    }
}
