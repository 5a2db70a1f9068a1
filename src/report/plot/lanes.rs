//! A panel of lanes over one axis of time: what happened when, in groups with a heading each.

use super::canvas::{Anchor, Canvas};
use super::frame::{Frame, Labels};
use super::legend::{Entries, Sample};
use super::scale::{Axis, Unit};
use super::text;
use crate::report::style::{Fill, SMALL};

/// Heights of a heading, of a lane, of what fills it and of the line below that, pt.
const HEADING: f64 = 10.0;
const LANE: f64 = 9.0;
const FULL: f64 = 5.0;
const THIN: f64 = 1.6;

/// A stretch of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Which of [`Lanes::fills`].
    pub part: usize,
    /// From where on the axis.
    pub start: f64,
    /// To where.
    pub end: f64,
    /// Whether it is the line below what fills the lane.
    pub thin: bool,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    /// What stands left of it.
    pub label: String,
    /// What is in it.
    pub pieces: Vec<Piece>,
}

/// Rows under a heading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// The heading.
    pub label: String,
    /// The rows, top to bottom.
    pub lanes: Vec<Lane>,
}

/// A panel of lanes.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// What the axis measures.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// What pieces are filled with.
    pub fills: Vec<Fill>,
    /// The groups, top to bottom.
    pub groups: Vec<Group>,
}

impl Lanes {
    /// The legend's entries.
    pub(crate) fn legend(&self) -> Entries {
        self.fills
            .iter()
            .map(|fill| (Sample::Fill(*fill), fill.label.to_owned()))
            .collect()
    }

    /// Room for the labels, pt.
    pub(crate) fn beside(&self) -> f64 {
        let lanes = self.groups.iter().flat_map(|group| &group.lanes);
        let widths = lanes.map(|lane| text::width(&lane.label, SMALL));
        5.0 + widths.fold(0.0, f64::max)
    }

    /// Height of the data rectangle, pt.
    pub(crate) fn inside(&self) -> f64 {
        let group = |group: &Group| HEADING + group.lanes.len() as f64 * LANE;
        self.groups.iter().map(group).sum::<f64>() + 3.0
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let lanes = self.groups.iter().flat_map(|group| &group.lanes);
        lanes.flat_map(|lane| &lane.pieces)
    }

    /// Draws the panel.
    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: Frame, labels: Labels) {
        let last = self.pieces().map(|piece| piece.end).fold(0.0, f64::max);
        let axis = Axis::from_zero(&self.name, self.unit, last);
        let mut y = frame.top + 1.0;
        for group in &self.groups {
            let label = text::fit(&group.label, SMALL, frame.right - frame.left - 6.0);
            let at = (frame.left + 3.0, y + 0.5 * HEADING);
            canvas.text(&label, at, SMALL, Anchor::Left);
            y += HEADING;
            for lane in &group.lanes {
                if labels.left {
                    let at = (frame.left - 3.0, y + 0.5 * (FULL + THIN));
                    canvas.text(&lane.label, at, SMALL, Anchor::Right);
                }
                for piece in &lane.pieces {
                    let place = |value: f64| frame.at(axis.position(value).clamp(0.0, 1.0), 0.0).0;
                    let (from, to) = (place(piece.start), place(piece.end));
                    let (upper, lower) = if piece.thin {
                        (y + FULL, y + FULL + THIN)
                    } else {
                        (y, y + FULL)
                    };
                    // What is thinner than a hair cannot be seen.
                    if to - from > 0.05 {
                        let fill = self.fills[piece.part];
                        canvas.bar((from, upper), (to, lower), fill.color, fill.hatched);
                    }
                }
                y += LANE;
            }
        }
        frame.draw(canvas, &axis, None);
        frame.horizontal(canvas, &axis, labels.below);
    }
}
