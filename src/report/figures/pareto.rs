//! What accuracy costs: final test accuracy against bytes, with the Pareto front.

use super::multiples::{Multiples, rows};
use super::{list, seeds_with};
use crate::experiment::statistics::Summary;
use crate::report::plot::{Axis, Curves, Figure, Guide, Headed, Panel, Series, Spot, Unit};
use crate::report::series::Cell;

/// What accuracy is set against: its name, and its value for a cell.
type Cost = (&'static str, fn(&Cell) -> Option<Summary>);

/// Two panels: against node data alone, and against all that was sent.
pub fn figure(cells: &[Cell]) -> Option<Figure> {
    let evaluated = |cell: &&Cell| cell.column("test_accuracy").is_some();
    let shown = Multiples::of(cells.iter().filter(evaluated), 2);
    let costs: [Cost; 2] = [
        ("node-data payload", |cell| cell.node_data()),
        ("total payload", |cell| cell.column("payload_bytes")),
    ];
    let mut groups = Vec::new();
    let mut told = Vec::new();
    for cost in costs {
        let (panels, fronts) = group(&shown, cost)?;
        told.push(format!("for {}: {}", cost.0, fronts.join("; ")));
        groups.push(panels);
    }
    if !shown.several() {
        let headings = ["(a) node data only", "(b) everything that was sent"];
        for ((heading, _), text) in groups.iter_mut().flatten().zip(headings) {
            *heading = text.into();
        }
    }
    Some(Figure {
        kind: "pareto",
        title: "Accuracy and its price in bytes".into(),
        caption: format!(
            "Test accuracy (at the epoch of best validation accuracy) against bytes sent in the whole run: first \
             node data only, then everything; {}. No strategy is both more accurate and cheaper than those on the \
             dashed Pareto front. A point at 0, left of the break in the axis, sent none.{}",
            seeds_with(cells, "with bars of"),
            shown.caption()
        ),
        alt: format!(
            "Test accuracy against bytes. On the Pareto front {}.",
            list(&told)
        ),
        rows: rows(groups),
        note: shown.note,
    })
}

/// A panel for each setting, and who is on its front; all panels have the same axes.
fn group(shown: &Multiples, (name, cost): Cost) -> Option<(Vec<Headed>, Vec<String>)> {
    let panels: Vec<Vec<Series>> = (shown.settings.iter())
        .map(|(_, cells)| cells.iter().filter_map(|cell| point(cell, cost)).collect())
        .collect();
    let spots = || panels.iter().flatten().flat_map(|series| &series.spots);
    spots().next()?;
    let x = Axis::log(name, Unit::Bytes, spots().map(|spot| spot.x));
    let accuracies = spots().flat_map(|spot| [spot.y - spot.y_sd, spot.y + spot.y_sd]);
    let y = Axis::linear("test accuracy", Unit::Percent, accuracies);
    let (mut drawn, mut fronts) = (Vec::new(), Vec::new());
    for (series, (setting, _)) in panels.into_iter().zip(&shown.settings) {
        let spots = series.iter().flat_map(|series| &series.spots);
        let points: Vec<(f64, f64)> = spots.map(|spot| (spot.x, spot.y)).collect();
        let front = front(&points);
        let labels: Vec<String> = (front.iter())
            .map(|index| series[*index].label.clone())
            .collect();
        let colon = if setting.is_empty() { "" } else { ": " };
        fronts.push(format!("{setting}{colon}{}", list(&labels)));
        drawn.push(Panel::Curves(Curves {
            x: x.clone(),
            y: y.clone(),
            guide: Some(Guide {
                label: "Pareto front",
                points: stairs(front.iter().map(|index| points[*index])),
            }),
            series,
            joined: false,
        }));
    }
    Some((shown.headed(drawn), fronts))
}

fn point(cell: &Cell, cost: impl Fn(&Cell) -> Option<Summary>) -> Option<Series> {
    let (cost, accuracy) = (cost(cell)?, cell.column("test_accuracy")?);
    Some(Series {
        label: cell.strategy.to_owned(),
        look: cell.look,
        spots: vec![Spot {
            x: cost.mean,
            x_sd: cost.spread(),
            y: accuracy.mean,
            y_sd: accuracy.spread(),
        }],
    })
}

/// The line below which nothing on the front lies: level up to the next corner, then up.
fn stairs(corners: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for corner in corners {
        if let Some(before) = line.last() {
            line.push((corner.0, before.1));
        }
        line.push(corner);
    }
    line
}

/// Indices of the points that no other beats in both ways (less x and more y), by growing x.
fn front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        points[a]
            .0
            .total_cmp(&points[b].0)
            .then(points[b].1.total_cmp(&points[a].1))
    });
    let mut best = f64::NEG_INFINITY;
    order.retain(|&index| {
        let better = points[index].1 > best;
        best = best.max(points[index].1);
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_front_leaves_out_what_costs_more_for_less() {
        let points = [
            (10.0, 0.8),
            (1.0, 0.7),
            (5.0, 0.6),
            (10.0, 0.75),
            (20.0, 0.8),
        ];
        assert_eq!(front(&points), [1, 0]);
    }

    proptest! {
        #[test]
        fn every_point_off_the_front_is_matched_or_beaten_by_one_on_it(
            points in prop::collection::vec((0.0..9.0_f64, 0.0..1.0_f64), 1..30),
        ) {
            let front = front(&points);
            for (x, y) in &points {
                prop_assert!(front.iter().any(|&f| points[f].0 <= *x && points[f].1 >= *y));
            }
        }
    }
}
