//! Test accuracy, or another metric, against epoch, bytes and simulated time.

use super::multiples::{Multiples, Scores, alike, rows};
use super::{BANDS, list, seeds_with, series, spot, what_counts};
use crate::report::format;
use crate::report::plot::{Axis, Curves, Figure, Panel, Series, Spot, Unit};
use crate::report::series::{Entrant, Point, metric};

/// Against the epoch, counted from 1 as people do.
pub(super) fn against_epoch(cells: &[Entrant]) -> Option<Figure> {
    let x = |point: &Point| point.epoch + 1.0;
    figure(cells, "accuracy-vs-epoch", "epoch", x, |xs| {
        Axis::linear("epoch", Unit::Plain, xs)
    })
}

/// Against the cumulative payload; strategies that sent nothing yet stand at zero, left of the
/// break.
pub(super) fn against_bytes(cells: &[Entrant]) -> Option<Figure> {
    figure(
        cells,
        "accuracy-vs-bytes",
        "bytes sent",
        |point| point.payload_bytes,
        |xs| Axis::log("cumulative payload", Unit::Bytes, xs),
    )
}

/// Against the cumulative simulated time.
pub(super) fn against_time(cells: &[Entrant]) -> Option<Figure> {
    figure(
        cells,
        "accuracy-vs-time",
        "simulated time",
        |point| point.simulated_seconds,
        |xs| Axis::linear("simulated time", Unit::Seconds, xs),
    )
}

fn figure(
    cells: &[Entrant],
    kind: &'static str,
    against: &str,
    x: impl Fn(&Point) -> f64,
    axis: impl Fn(Vec<f64>) -> Axis,
) -> Option<Figure> {
    let evaluated = |cell: &&Entrant| !cell.curve(|row| row.test_accuracy).is_empty();
    let shown = Multiples::of(cells.iter().filter(evaluated), 1);
    let panels: Vec<Vec<Series>> = (shown.settings.iter())
        .map(|(_, members)| members.iter().map(|cell| curve(cell, &x)).collect())
        .collect();
    let spots = || panels.iter().flatten().flat_map(|series| &series.spots);
    spots().next()?;
    let ranges: Vec<[f64; 2]> = panels.iter().map(|panel| worth_seeing(panel)).collect();
    let score = format!("test {}", metric(cells));
    let scores = Scores::of(&score, ranges.iter().copied());
    let axes: Vec<Axis> = ranges.iter().map(|range| scores.axis(*range)).collect();
    let below = |(panel, y): (&Vec<Series>, &Axis)| {
        let mut spots = panel.iter().flat_map(|series| &series.spots);
        spots.any(|spot| y.position(spot.y - spot.y_sd) < 0.0)
    };
    let cut = if panels.iter().zip(&axes).any(below) {
        " Parts of curves lie below the range shown."
    } else {
        ""
    };
    let horizontal: Vec<Vec<f64>> = (panels.iter().zip(&axes))
        .map(|(panel, y)| {
            // A logarithmic axis begins where the first curve comes into sight; the others begin
            // at the first epoch.
            let in_sight = |pair: &[Spot]| {
                kind != "accuracy-vs-bytes" || pair.iter().any(|s| y.position(s.y) >= 0.0)
            };
            panel.iter().flat_map(|one| seen(one, in_sight)).collect()
        })
        .collect();
    let ends: Vec<f64> = (horizontal.iter())
        .map(|xs| xs.iter().copied().fold(0.0, f64::max))
        .collect();
    // Of several panels each would have its own.
    let together = match &panels[..] {
        [only] => coincident(only),
        _ => Vec::new(),
    };
    // On a logarithmic axis there is room for all.
    let shared = kind == "accuracy-vs-bytes" || alike(&ends);
    let panels = panels.into_iter().zip(&horizontal).zip(axes);
    let panels = panels.map(|((series, own), y)| {
        Panel::Curves(Curves {
            x: axis(if shared {
                horizontal.concat()
            } else {
                own.clone()
            }),
            y,
            series,
            joined: true,
            guide: None,
        })
    });
    let mut together = together.iter().map(|labels| list(labels));
    let together = together.next().map_or_else(String::new, |first| {
        let others = together.map(|others| format!(", and so do those of {others}"));
        let others: String = others.collect();
        format!(" The curves of {first} lie on one another{others}.")
    });
    let panels = shown.headed(panels.collect::<Vec<Panel>>());
    let note = match kind {
        "accuracy-vs-bytes" => {
            " The payload is all that workers sent up to an epoch, parameter gradients included."
                .to_owned()
        }
        "accuracy-vs-time" => " Evaluation takes no simulated time.".to_owned(),
        _ => what_counts(cells),
    };
    let told = shown.told(|cell| {
        let last = cell.curve(|row| row.test_accuracy).last()?.value.mean;
        Some(format!("{} ends at {}", cell.label, format::percent(last)))
    });
    let titled = format::capitalised(&score);
    Some(Figure {
        kind,
        title: format!("{titled} against {against}"),
        caption: format!(
            "{titled} against {against}; {}.{note}{cut}{together}{}",
            seeds_with(cells, BANDS),
            shown.caption()
        ),
        alt: format!("{titled} against {against}: {told}."),
        rows: rows(vec![panels]),
        note: shown.note,
    })
}

/// A cell's accuracy at every evaluated epoch.
fn curve(cell: &Entrant, x: impl Fn(&Point) -> f64) -> Series {
    let points = cell.curve(|row| row.test_accuracy);
    let spots = points.iter().map(|point| spot(x(point), &point.value));
    series(cell, spots.collect())
}

/// Groups whose curves are those of the first of them, to a tenth of a point, so that a reader sees
/// one.
fn coincident(series: &[Series]) -> Vec<Vec<String>> {
    let same = |a: &Series, b: &Series| {
        let spots = || a.spots.iter().zip(&b.spots);
        // Bytes and times to a hundredth, which is the width of a line.
        let near = |(a, b): (&Spot, &Spot)| {
            (a.y - b.y).abs() < 1e-3 && (a.x - b.x).abs() <= 0.01 * a.x.abs().max(b.x.abs())
        };
        a.spots.len() == b.spots.len() && a.spots.len() > 1 && spots().all(near)
    };
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for one in series {
        match groups.iter_mut().find(|group| same(group[0], one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.retain(|group| group.len() > 1);
    let labels = |group: Vec<&Series>| group.iter().map(|one| one.label.clone()).collect();
    groups.into_iter().map(labels).collect()
}

/// Where the pieces of a curve that are in sight, and its last point, lie along the horizontal
/// axis.
fn seen(series: &Series, in_sight: impl Fn(&[Spot]) -> bool) -> Vec<f64> {
    let pairs = series.spots.windows(2).filter(|pair| in_sight(pair));
    let spots = pairs.flatten().chain(series.spots.last());
    spots.map(|spot| spot.x).collect()
}

/// The range of accuracies that tells strategies apart: from the highest value down to a little
/// below the worst final one, or to the lowest. The steep first epochs, alike for all, would press
/// the rest together.
fn worth_seeing(panel: &[Series]) -> [f64; 2] {
    let spots = || panel.iter().flat_map(|series| &series.spots);
    let last = || panel.iter().filter_map(|series| series.spots.last());
    let highest = (spots().map(|spot| spot.y))
        .chain(last().map(|spot| spot.y + spot.y_sd))
        .fold(f64::NEG_INFINITY, f64::max);
    let lower = |spot: &Spot| spot.y - spot.y_sd;
    let worst = last().map(lower).fold(f64::INFINITY, f64::min);
    let lowest = spots().map(lower).fold(f64::INFINITY, f64::min);
    // Two points at least: curves that end alike are not to look far apart.
    let low = worst - (0.25 * (highest - worst)).max(0.02);
    // Bands in sight are seen whole, but for those of early epochs that are wider than all else.
    let seen = spots().filter(|spot| spot.y >= low);
    let upper = seen.map(|spot| spot.y + spot.y_sd).fold(highest, f64::max);
    [lowest.max(low), upper.min(highest + 0.5 * (highest - low))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, Measured, RunRow};
    use crate::report::{looks, series};

    #[test]
    fn curves_that_begin_below_the_range_are_said_to() {
        let caption = |scores: &[f64]| {
            let runs = [RunRow {
                cell: "full".into(),
                strategy: "full".into(),
                ..RunRow::finished(Measured::default())
            }];
            let epochs = (0..).zip(scores).map(|(epoch, score)| EpochRow {
                cell: "full".into(),
                epoch,
                test_accuracy: Some(*score),
                ..EpochRow::default()
            });
            let epochs: Vec<EpochRow> = epochs.collect();
            against_epoch(&series::cells(&runs, &epochs))
                .unwrap()
                .caption
        };
        let said = "Parts of curves lie below the range shown.";
        assert!(caption(&[0.1, 0.7, 0.8]).contains(said));
        assert!(!caption(&[0.79, 0.8]).contains(said));
    }

    #[test]
    fn curves_that_lie_on_one_another_are_named() {
        let caption = |other: f64| {
            let cells = ["full", "isolated", "grappa", "varco"];
            let run = |cell: &&str| RunRow {
                cell: (*cell).into(),
                strategy: (*cell).into(),
                ..RunRow::finished(Measured::default())
            };
            let runs: Vec<RunRow> = cells.iter().map(run).collect();
            let mut epochs = Vec::new();
            for (cell, score) in cells.into_iter().zip([0.7, other, 0.5, 0.5]) {
                epochs.extend((0..2).map(|epoch| EpochRow {
                    cell: cell.into(),
                    epoch,
                    test_accuracy: Some(score + 0.1 * epoch as f64),
                    ..EpochRow::default()
                }));
            }
            against_epoch(&series::cells(&runs, &epochs))
                .unwrap()
                .caption
        };
        let said = "The curves of full and isolated lie on one another, and so do those of grappa and varco.";
        assert!(caption(0.7005).contains(said), "{}", caption(0.7005));
        let said = "The curves of grappa and varco lie on one another.";
        assert!(caption(0.71).contains(said), "{}", caption(0.71));
    }

    #[test]
    fn the_axis_shows_all_final_values_and_not_the_first_epochs() {
        let spot = |y| Spot {
            x: 0.0,
            x_sd: 0.0,
            y,
            y_sd: 0.0,
        };
        let series = |ys: &[f64]| Series {
            label: String::new(),
            look: looks::looks(&[("full", "full")])[0],
            spots: ys.iter().map(|y| spot(*y)).collect(),
            crosses: false,
        };
        let both = [series(&[0.1, 0.7, 0.8]), series(&[0.2, 0.75, 0.7])];
        let [low, high] = worth_seeing(&both);
        assert!(
            (low - 0.675).abs() < 1e-12 && (high - 0.8).abs() < 1e-12,
            "{low} {high}"
        );
    }
}
