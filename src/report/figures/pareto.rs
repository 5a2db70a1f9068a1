//! What accuracy costs: final test accuracy against bytes, with the Pareto front.

use super::{list, seeds_with};
use crate::experiment::statistics::Summary;
use crate::report::plot::{Axis, Curves, Figure, Panel, Series, Spot, Unit};
use crate::report::series::Cell;

/// Two panels: against node data alone, and against all that was sent.
pub fn figure(cells: &[Cell]) -> Option<Figure> {
    let (node_data, node_front) = panel(cells, "node-data payload", Cell::node_data)?;
    let (total, total_front) = panel(cells, "total payload", |cell| cell.column("payload_bytes"))?;
    Some(Figure {
        kind: "pareto",
        title: "Accuracy and its price in bytes".into(),
        caption: format!(
            "Test accuracy (at the epoch of best validation accuracy) against bytes sent in the whole run; {}. \
             No strategy is both more accurate and cheaper than those on the dashed Pareto front. A point at 0, \
             left of the break in the axis, sent none.",
            seeds_with(cells, "with bars of")
        ),
        alt: format!(
            "Test accuracy against bytes. On the Pareto front for node data: {}; for all bytes: {}.",
            list(&node_front),
            list(&total_front)
        ),
        panels: vec![
            ("(a) node data only".into(), node_data),
            ("(b) everything that was sent".into(), total),
        ],
    })
}

fn panel<'a>(
    cells: &[Cell<'a>],
    name: &str,
    cost: impl Fn(&Cell<'a>) -> Option<Summary>,
) -> Option<(Panel, Vec<String>)> {
    let series: Vec<Series> = cells
        .iter()
        .filter_map(|cell| {
            let (cost, accuracy) = (cost(cell)?, cell.column("test_accuracy")?);
            let spot = Spot {
                x: cost.mean,
                x_sd: cost.spread(),
                y: accuracy.mean,
                y_sd: accuracy.spread(),
            };
            Some(Series {
                label: cell.label.clone(),
                look: cell.look,
                spots: vec![spot],
            })
        })
        .collect();
    let spots = || series.iter().flat_map(|series| &series.spots);
    spots().next()?;
    let points: Vec<(f64, f64)> = spots().map(|spot| (spot.x, spot.y)).collect();
    let front = front(&points);
    let labels = front
        .iter()
        .map(|index| series[*index].label.clone())
        .collect();
    let curves = Curves {
        x: Axis::log(name, Unit::Bytes, points.iter().map(|(x, _)| *x)),
        y: Axis::linear(
            "test accuracy",
            Unit::Percent,
            spots().flat_map(|spot| [spot.y - spot.y_sd, spot.y + spot.y_sd]),
        ),
        front: front.iter().map(|index| points[*index]).collect(),
        series,
        joined: false,
    };
    Some((Panel::Curves(curves), labels))
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
