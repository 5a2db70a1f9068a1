//! How much of the exact exchange a strategy sends, epoch by epoch.

use super::multiples::{Multiples, rows};
use super::{LOG_BANDS, list, seeds_with, series, spot};
use crate::experiment::rows::EpochRow;
use crate::report::plot::{Axis, Curves, Figure, Headed, Panel, Series, Unit};
use crate::report::series::Entrant;
use crate::report::settings::{self, Setting};

/// A number of an epoch that not every strategy has.
type Number = fn(&EpochRow) -> Option<f64>;

/// The axis around some values of it.
type Around = fn(Vec<f64>) -> Axis;

/// Compression ratio, error and coverage against epoch, each if any strategy has it.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    let ratio: Around = |values| Axis::log("compression ratio", Unit::Plain, values);
    let coverage: Around = |values| Axis::linear("coverage", Unit::Percent, values);
    let error: Around = |values| {
        Axis::log(
            "relative squared error",
            Unit::Plain,
            // Bands may reach below zero, where a logarithmic axis has no place.
            values.into_iter().filter(|&value| value > 0.0),
        )
    };
    let numbers: [(&str, &str, Number, Around); 3] = [
        (
            "compression ratio",
            " (asked of the codec)",
            |row| row.compression_ratio,
            ratio,
        ),
        (
            "relative error of the rows sent",
            " (squared, decoded against exact)",
            |row| row.compression_error.filter(|&error| error > 0.0),
            error,
        ),
        (
            "coverage of neighbourhoods",
            "",
            |row| row.coverage,
            coverage,
        ),
    ];
    let has = |cell: &Entrant, number: Number| !cell.curve(number).is_empty();
    let either = |cell: &&Entrant| numbers.iter().any(|(_, _, number, _)| has(cell, *number));
    let every = settings::settings(cells.iter().filter(either));
    let shown = Multiples::of(cells.iter().filter(either), 2);
    let (mut groups, mut labels, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    let mut alike = true;
    for (name, meaning, number, axis) in numbers {
        let mine = cells.iter().filter(|cell| has(cell, number));
        let mine: Vec<String> = (settings::strategies(mine).into_iter())
            .map(str::to_owned)
            .collect();
        if let Some(panels) = group(&every, &shown, number, axis) {
            alike &= panels.len() == 1;
            labels.push(format!("{name} of {}", list(&mine)));
            drawn.push(format!("{name}{meaning}"));
            groups.push(panels);
        }
    }
    if groups.is_empty() {
        return None;
    }
    // One panel stands for all settings, and none is left out.
    let (caption, note) = if alike && shown.several() {
        (
            " The same in every setting of the sweep.".to_owned(),
            String::new(),
        )
    } else {
        (shown.caption(), shown.note)
    };
    Some(Figure {
        kind: "compression",
        title: "Compression and coverage".into(),
        caption: format!(
            "Against epoch, for the strategies that have it: {}; {}.{caption}",
            list(&drawn),
            seeds_with(cells, LOG_BANDS),
        ),
        alt: format!("Against epoch: {}.", list(&labels)),
        rows: rows(groups),
        note,
    })
}

/// A panel for each setting, all with the same axes; one alone where it is the same in every one.
fn group(
    every: &[Setting],
    shown: &Multiples,
    number: Number,
    axis: Around,
) -> Option<Vec<Headed>> {
    let curves = |(_, cells): &Setting| -> Vec<Series> {
        let curves = cells.iter().filter_map(|cell| curve(cell, number));
        curves.collect()
    };
    let mut panels: Vec<Vec<Series>> = every.iter().map(curves).collect();
    let alike = panels.windows(2).all(|pair| is_same(&pair[0], &pair[1]));
    panels.truncate(if alike { 1 } else { shown.settings.len() });
    let spots = || panels.iter().flatten().flat_map(|series| &series.spots);
    spots().next()?;
    let values = spots().flat_map(|s| [s.y - s.y_sd, s.y, s.y + s.y_sd]);
    let y = axis(values.collect());
    let x = Axis::linear("epoch", Unit::Plain, spots().map(|spot| spot.x));
    let panels = panels.into_iter().map(|series| {
        Panel::Curves(Curves {
            x: x.clone(),
            y: y.clone(),
            joined: true,
            guide: None,
            series,
        })
    });
    let mut headed = shown.headed(panels.collect::<Vec<Panel>>());
    if alike && every.len() > 1 {
        "every setting".clone_into(&mut headed[0].0);
    }
    Some(headed)
}

/// Whether the same would be drawn.
fn is_same(some: &[Series], others: &[Series]) -> bool {
    let same =
        |(one, other): (&Series, &Series)| (&one.label, &one.spots) == (&other.label, &other.spots);
    some.len() == others.len() && some.iter().zip(others).all(same)
}

fn curve(cell: &Entrant, number: Number) -> Option<Series> {
    let points = cell.curve(number);
    let spots = points.iter();
    let spots = spots.map(|point| spot(point.epoch + 1.0, &point.value));
    (!points.is_empty()).then(|| series(cell, spots.collect()))
}
