//! How much of the exact exchange a strategy sends, epoch by epoch.

use super::{list, seeds_with};
use crate::experiment::rows::EpochRow;
use crate::report::plot::{Axis, Curves, Figure, Panel, Series, Spot, Unit};
use crate::report::series::Cell;

/// Compression ratio and coverage against epoch, each if any strategy has it.
pub fn figure(cells: &[Cell]) -> Option<Figure> {
    let ratio = panel(
        cells,
        |row| row.compression_ratio,
        |values| Axis::log("compression ratio", Unit::Plain, values),
    );
    let coverage = panel(
        cells,
        |row| row.coverage,
        |values| Axis::linear("coverage", Unit::Percent, values),
    );
    let (mut panels, mut labels) = (Vec::new(), Vec::new());
    let named = [
        ("compression ratio", ratio),
        ("coverage of neighbourhoods", coverage),
    ];
    for (name, panel) in named {
        if let Some((panel, shown)) = panel {
            panels.push((String::new(), panel));
            labels.push(format!("{name} of {}", list(&shown)));
        }
    }
    if panels.is_empty() {
        return None;
    }
    Some(Figure {
        kind: "compression",
        title: "Compression and coverage".into(),
        caption: format!(
            "Compression ratio (exact over sent values) and coverage of neighbourhoods against epoch, for the \
             strategies that have them; {}.",
            seeds_with(cells, "with bands of")
        ),
        alt: format!("Against epoch: {}.", list(&labels)),
        panels,
    })
}

fn panel(
    cells: &[Cell],
    value: impl Fn(&EpochRow) -> Option<f64>,
    axis: impl Fn(Vec<f64>) -> Axis,
) -> Option<(Panel, Vec<String>)> {
    let series: Vec<Series> = cells
        .iter()
        .map(|cell| Series {
            label: cell.label.clone(),
            look: cell.look,
            spots: cell
                .curve(&value)
                .iter()
                .map(|point| Spot {
                    x: point.epoch + 1.0,
                    x_sd: 0.0,
                    y: point.value.mean,
                    y_sd: point.value.spread(),
                })
                .collect(),
        })
        .filter(|series| !series.spots.is_empty())
        .collect();
    let spots = || series.iter().flat_map(|series| &series.spots);
    spots().next()?;
    let curves = Curves {
        x: Axis::linear("epoch", Unit::Plain, spots().map(|spot| spot.x)),
        y: axis(
            spots()
                .flat_map(|s| [s.y - s.y_sd, s.y, s.y + s.y_sd])
                .collect(),
        ),
        joined: true,
        front: Vec::new(),
        series: series.clone(),
    };
    Some((
        Panel::Curves(curves),
        series.into_iter().map(|series| series.label).collect(),
    ))
}
