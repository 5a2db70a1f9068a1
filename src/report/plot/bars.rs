//! A panel of horizontal stacked bars, one a row, each with a note at its end.

use super::canvas::{Anchor, Canvas};
use super::frame::{Frame, Labels};
use super::legend::{Entries, Sample};
use super::scale::{Axis, Unit};
use super::text;
use crate::report::style::{Fill, SMALL, WIDTH};

/// Height of a row, pt, and of a row of many panels; the share of it that the bar takes.
const ROW: f64 = 15.0;
const COMPACT: f64 = 9.0;
const BAR: f64 = 0.58;
/// Free space between a bar and its note, pt.
const GAP: f64 = 3.0;
/// Width beyond which a label is cut, pt.
const LONGEST: f64 = 0.45 * WIDTH;
/// Of the longest bar, what cannot be seen.
const HAIR: f64 = 1e-3;

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What stands left of it.
    pub label: String,
    /// One length for each of [`Bars::fills`].
    pub lengths: Vec<f64>,
    /// What stands at its end.
    pub note: String,
}

/// A panel of stacked bars.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// What lengths measure.
    pub name: String,
    /// Their unit.
    pub unit: Unit,
    /// The parts of every bar.
    pub fills: Vec<Fill>,
    /// The bars, top to bottom.
    pub rows: Vec<Row>,
    /// What the axis has room for.
    pub reach: Reach,
    /// Whether rows are low, as in one of many panels.
    pub compact: bool,
}

/// Lengths of bars, each with the width of the note at its end, pt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reach(Vec<(f64, f64)>);

impl Reach {
    /// Room for all of these.
    pub(crate) fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let end = |row: &Row| (row.lengths.iter().sum(), text::width(&row.note, SMALL));
        Self(rows.into_iter().map(end).collect())
    }

    /// Where an axis of `width` pt ends so that the longest bar with its note still fits.
    fn end(&self, width: f64) -> f64 {
        let ends = self.0.iter().map(|(length, note)| {
            let note = (note + 2.0 * GAP) / width;
            // However long its note is, a bar keeps a tenth of the width.
            length / (1.0 - note).max(0.1)
        });
        ends.fold(0.0, f64::max)
    }
}

impl Bars {
    /// Whether a part of a bar can be seen; those thinner than a hair are left to the note.
    fn is_seen(&self, length: f64) -> bool {
        let longest = self.reach.0.iter().map(|(length, _)| *length);
        length > HAIR * longest.fold(0.0, f64::max)
    }

    /// The legend's entries: the parts that are seen.
    pub(crate) fn legend(&self) -> Entries {
        let occurs = |part: usize| {
            let mut lengths = self.rows.iter().filter_map(|row| row.lengths.get(part));
            lengths.any(|length| self.is_seen(*length))
        };
        self.fills
            .iter()
            .enumerate()
            .filter(|(part, _)| occurs(*part))
            .map(|(_, fill)| (Sample::Fill(*fill), fill.label.to_owned()))
            .collect()
    }

    fn row(&self) -> f64 {
        if self.compact { COMPACT } else { ROW }
    }

    fn labels(&self) -> impl Iterator<Item = String> {
        let rows = self.rows.iter();
        rows.map(|row| text::fit(&row.label, SMALL, LONGEST))
    }

    /// Room for the labels, pt.
    pub(crate) fn beside(&self) -> f64 {
        let widths = self.labels().map(|label| text::width(&label, SMALL));
        5.0 + widths.fold(0.0, f64::max)
    }

    /// Whether rows have the same labels.
    pub(crate) fn same_rows(&self, other: &Self) -> bool {
        self.labels().eq(other.labels())
    }

    /// Whether the axes are the same.
    pub(crate) fn same_axis(&self, other: &Self) -> bool {
        self.reach == other.reach && self.unit == other.unit && self.name == other.name
    }

    /// Height of the data rectangle, pt.
    pub(crate) fn inside(&self) -> f64 {
        self.rows.len() as f64 * self.row() + 3.0
    }

    /// Draws the panel.
    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: Frame, labels: Labels) {
        let end = self.reach.end(frame.right - frame.left);
        let axis = Axis::from_zero(&self.name, self.unit, end);
        frame.draw(canvas, &axis, None);
        frame.horizontal(canvas, &axis, labels.below);
        for (index, (row, label)) in self.rows.iter().zip(self.labels()).enumerate() {
            let middle = frame.top + 1.5 + (index as f64 + 0.5) * self.row();
            if labels.left {
                let at = (frame.left - 3.0, middle);
                canvas.text(&label, at, SMALL, Anchor::Right);
            }
            let mut start = 0.0;
            for (fill, length) in self.fills.iter().zip(&row.lengths) {
                let (from, to) = (axis.position(start), axis.position(start + length));
                start += length;
                let (from, to) = (frame.at(from, 0.0).0, frame.at(to, 0.0).0);
                if self.is_seen(*length) {
                    let half = BAR * self.row() / 2.0;
                    let (upper, lower) = (middle - half, middle + half);
                    canvas.bar((from, upper), (to, lower), fill.color, fill.hatched);
                }
            }
            let end = frame.at(axis.position(start), 0.0).0 + GAP;
            canvas.text(&row.note, (end, middle), SMALL, Anchor::Left);
        }
    }
}
