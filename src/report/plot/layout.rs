//! Where the panels of a figure lie. Labels that two neighbours would share are written once: on
//! the left of a row of panels, and below a column of them.

use super::frame::{Frame, Labels};
use super::panel::{Headed, Panel};

/// Room for a heading, and above a frame without one, pt.
const HEADING: f64 = 12.0;
const ABOVE: f64 = 4.0;
/// Free space right of every frame, and below one without labels, pt.
const RIGHT: f64 = 5.0;
const BOTTOM: f64 = 3.0;
/// Free space left of a frame without labels, pt.
const LEFT: f64 = 4.5;

/// A panel and its place.
pub(super) struct Placed<'a> {
    /// Its heading; may be empty.
    pub heading: &'a str,
    /// Where the heading has its upper end, pt.
    pub heading_top: f64,
    /// How wide it may be, pt.
    pub heading_room: f64,
    /// The panel.
    pub panel: &'a Panel,
    /// Its data rectangle.
    pub frame: Frame,
    /// Its labelled sides.
    pub labels: Labels,
}

/// All panels, and where the last row ends.
pub(super) struct Grid<'a> {
    /// The panels, row by row.
    pub panels: Vec<Placed<'a>>,
    /// Below them is nothing, pt.
    pub bottom: f64,
}

/// Places rows of panels on a page of `width` pt, from `top` pt on. All frames have the same width,
/// and those of a row the same height.
pub(super) fn grid(rows: &[Vec<Headed>], width: f64, top: f64) -> Grid<'_> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let labels = |row: usize, column: usize| labels(rows, row, column);
    // Of all rows together, so that frames of a column stand one below the other.
    let beside = |column: usize| {
        let panels = (0..rows.len()).filter_map(|row| Some((row, &rows[row].get(column)?.1)));
        let needed = panels.map(|(row, panel)| {
            if labels(row, column).left {
                panel.beside()
            } else {
                LEFT
            }
        });
        needed.fold(0.0, f64::max)
    };
    let lefts: Vec<f64> = (0..columns).map(beside).collect();
    let free = width - lefts.iter().sum::<f64>() - RIGHT * columns as f64;
    let each = free / columns.max(1) as f64;
    let mut grid = Grid {
        panels: Vec::new(),
        bottom: top,
    };
    for (number, row) in rows.iter().enumerate() {
        let (mut heading, mut above, mut inside, mut below) = (ABOVE, 0.0_f64, 0.0_f64, BOTTOM);
        for (column, (text, panel)) in row.iter().enumerate() {
            if !text.is_empty() {
                heading = HEADING;
            }
            above = above.max(panel.above());
            inside = inside.max(panel.inside(each));
            if labels(number, column).below {
                below = below.max(panel.below(each));
            }
        }
        let above = heading + above;
        let mut left = 0.0;
        for (column, (heading, panel)) in row.iter().enumerate() {
            left += lefts[column];
            let upper = grid.bottom + above;
            let frame = Frame {
                edge: left - lefts[column],
                left,
                top: upper,
                right: left + each,
                bottom: upper + inside,
            };
            // A single column may be headed as far as the page reaches on both sides.
            let overhang = if columns == 1 { 2.0 * RIGHT } else { LEFT };
            grid.panels.push(Placed {
                heading,
                heading_top: grid.bottom + 2.0,
                heading_room: each + overhang,
                panel,
                frame,
                labels: labels(number, column),
            });
            left += each + RIGHT;
        }
        grid.bottom += above + inside + below;
    }
    grid
}

/// A side is labelled unless the neighbour there has the same labels.
fn labels(rows: &[Vec<Headed>], row: usize, column: usize) -> Labels {
    let panel = &rows[row][column].1;
    let left = column.checked_sub(1).map(|left| &rows[row][left].1);
    let below = rows.get(row + 1).and_then(|next| next.get(column));
    Labels {
        left: left.is_none_or(|left| !panel.same_left(left)),
        below: below.is_none_or(|(_, below)| !panel.same_below(below)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::{Axis, Curves, Unit};

    fn panel(high: f64) -> Headed {
        let axis = |high| Axis::linear("value", Unit::Plain, [0.0, high]);
        let curves = Curves {
            x: axis(high),
            y: axis(1.0),
            series: Vec::new(),
            joined: true,
            guide: None,
        };
        (String::new(), Panel::Curves(curves))
    }

    #[test]
    fn shared_axes_are_labelled_once_and_others_each() {
        let rows = [vec![panel(1.0), panel(1.0)], vec![panel(1.0)]];
        let grid = grid(&rows, 500.0, 0.0);
        let labels: Vec<(bool, bool)> = (grid.panels.iter())
            .map(|placed| (placed.labels.left, placed.labels.below))
            .collect();
        assert_eq!(labels, [(true, false), (false, true), (true, true)]);
        let own = [vec![panel(1.0)], vec![panel(2.0)]];
        let own = super::grid(&own, 240.0, 0.0);
        assert!(own.panels.iter().all(|placed| placed.labels.below));
    }

    #[test]
    fn frames_are_equally_wide_lie_on_the_page_and_do_not_overlap() {
        let rows = [vec![panel(1.0), panel(1.0), panel(2.0)], vec![panel(1.0)]];
        let grid = grid(&rows, 500.0, 20.0);
        let width = |placed: &Placed| placed.frame.right - placed.frame.left;
        for pair in grid.panels.windows(2) {
            assert!((width(&pair[0]) - width(&pair[1])).abs() < 1e-9);
            let (one, other) = (pair[0].frame, pair[1].frame);
            assert!(one.right < other.left || one.bottom < other.top);
        }
        let ends = grid.panels.iter().map(|placed| placed.frame);
        assert!(
            ends.clone()
                .all(|frame| frame.right < 500.0 && frame.left > 0.0)
        );
        assert!(
            ends.clone()
                .all(|frame| frame.bottom < grid.bottom && frame.top > 20.0)
        );
    }
}
