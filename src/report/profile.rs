//! The degrees of a graph as a figure.

use std::path::Path;

use super::ReportError;
use super::looks::Look;
use super::plot::{Axis, Curves, Figure, Panel, Series, Spot, Unit};
use crate::atomic;
use crate::graph::DataProfile;

/// What a figure is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// Outlines.
    Svg,
    /// Dots.
    Png,
}

impl Drawing {
    /// What the name of a file asks for; none of another ending, in capitals or not.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        match &*ending.to_ascii_lowercase() {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }
}

/// Draws how many nodes have at least so many neighbours.
///
/// # Errors
/// The file cannot be written, or the figure not be drawn.
pub(crate) fn write_degrees(
    path: &Path,
    drawing: Drawing,
    profile: &DataProfile,
) -> Result<(), ReportError> {
    let figure = figure(profile);
    let content = match drawing {
        Drawing::Png => figure.png().map_err(|message| ReportError::Draw {
            kind: figure.kind,
            message,
        })?,
        Drawing::Svg => figure.svg().into_bytes(),
    };
    atomic::write_bytes(path, &content).map_err(|source| ReportError::Write {
        path: path.to_owned(),
        source,
    })
}

fn figure(profile: &DataProfile) -> Figure {
    let mut left = profile.nodes;
    let mut spots = Vec::new();
    for &(degree, nodes) in &profile.degrees.counts {
        spots.push(Spot {
            x: degree as f64,
            x_sd: 0.0,
            y: left as f64 / profile.nodes as f64,
            y_sd: 0.0,
        });
        // After the point: nodes of just so many neighbours have at least so many.
        left -= nodes;
    }
    let curves = Curves {
        x: Axis::log("neighbours", Unit::Plain, spots.iter().map(|spot| spot.x)),
        y: Axis::log(
            "nodes with at least as many",
            Unit::Percent,
            spots.iter().map(|spot| spot.y),
        ),
        series: vec![Series {
            label: profile.name.clone(),
            look: Look::PLAIN,
            spots,
            crosses: false,
        }],
        joined: true,
        guide: None,
    };
    Figure {
        kind: "degrees",
        title: format!("Degrees of {}", profile.name),
        caption: format!(
            "Share of the {} nodes of {} that have at least so many neighbours.",
            profile.nodes, profile.name
        ),
        alt: format!(
            "Share of nodes against their least number of neighbours: half have at most {}, one has {}.",
            profile.degrees.median, profile.degrees.most
        ),
        rows: vec![vec![(String::new(), Panel::Curves(curves))]],
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::cora;

    #[test]
    fn the_curve_falls_from_all_nodes_to_those_of_the_highest_degree() {
        let profile = DataProfile::new(&cora().unwrap());
        let figure = figure(&profile);
        let Panel::Curves(curves) = &figure.rows[0][0].1 else {
            panic!("a panel of curves");
        };
        let spots = &curves.series[0].spots;
        assert_eq!((spots[0].x, spots[0].y), (1.0, 1.0));
        let last = spots.last().unwrap();
        assert_eq!((last.x, last.y), (168.0, 1.0 / 2708.0));
        assert!(spots.is_sorted_by(|a, b| a.x < b.x && a.y > b.y));
        let folder = tempfile::tempdir().unwrap();
        for (name, start) in [("d.svg", &b"<svg"[..]), ("d.png", b"\x89PNG")] {
            let path = folder.path().join(name);
            let drawing = Drawing::of(&path).unwrap();
            write_degrees(&path, drawing, &profile).unwrap();
            let content = std::fs::read(&path).unwrap();
            assert!(
                content
                    .windows(start.len())
                    .take(200)
                    .any(|part| part == start),
                "{name}"
            );
        }
    }

    #[test]
    fn no_figure_has_an_ending_that_it_is_not() {
        let of = |name: &str| Drawing::of(Path::new(name));
        assert_eq!(of("a/d.svg"), Some(Drawing::Svg));
        assert_eq!(of("d.PNG"), Some(Drawing::Png));
        for name in ["d.jpg", "d", "svg", ".png", "d.svg.gz"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
