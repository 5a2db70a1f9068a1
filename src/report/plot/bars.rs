//! A panel of horizontal stacked bars, one a row, each with a note at its end.

use plotters::style::text_anchor::{HPos, VPos};

use super::backend::Glyphs;
use super::canvas::{Canvas, Failure};
use super::frame::{BELOW, Frame};
use super::legend::{Entries, Sample};
use super::scale::{Axis, Unit};
use super::text;
use crate::report::style::{Fill, SMALL, WIDTH};

/// Height of a row and of its bar, pt.
const ROW: f64 = 15.0;
const BAR: f64 = 8.5;
/// Free space between a bar and its note, pt.
const GAP: f64 = 3.0;
/// Width beyond which a label is cut, pt.
const LONGEST: f64 = 0.45 * WIDTH;

/// One bar.
#[derive(Clone, Debug)]
pub struct Row {
    /// What stands left of it.
    pub label: String,
    /// One length for each of [`Bars::fills`].
    pub lengths: Vec<f64>,
    /// What stands at its end.
    pub note: String,
}

/// A panel of stacked bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What lengths measure.
    pub name: String,
    /// Their unit.
    pub unit: Unit,
    /// The parts of every bar.
    pub fills: Vec<Fill>,
    /// The bars, top to bottom.
    pub rows: Vec<Row>,
}

impl Bars {
    /// The legend's entries: the parts that occur.
    pub fn legend(&self) -> Entries {
        let occurs = |part: usize| {
            self.rows
                .iter()
                .any(|row| row.lengths.get(part).is_some_and(|length| *length > 0.0))
        };
        self.fills
            .iter()
            .enumerate()
            .filter(|(part, _)| occurs(*part))
            .map(|(_, fill)| (Sample::Fill(*fill), fill.label.to_owned()))
            .collect()
    }

    /// Height of the panel, pt.
    pub fn height(&self) -> f64 {
        self.rows.len() as f64 * ROW + 3.0 + BELOW
    }

    /// Draws the panel with its upper border at `top` pt.
    ///
    /// # Errors
    /// The backend's.
    pub fn draw<B: Glyphs>(&self, canvas: &Canvas<B>, top: f64) -> Result<(), Failure<B>> {
        let labels: Vec<String> = self
            .rows
            .iter()
            .map(|row| text::fit(&row.label, SMALL, LONGEST))
            .collect();
        let left = 4.0
            + labels
                .iter()
                .map(|label| text::width(label, SMALL))
                .fold(0.0, f64::max);
        let right = WIDTH - 5.0;
        let bottom = top + self.rows.len() as f64 * ROW + 3.0;
        let frame = Frame {
            left,
            top,
            right,
            bottom,
        };
        // The axis ends where the longest bar with its note still fits.
        let high = self
            .rows
            .iter()
            .map(|row| {
                let note = (text::width(&row.note, SMALL) + 2.0 * GAP) / (right - left);
                row.lengths.iter().sum::<f64>() / (1.0 - note).max(0.1)
            })
            .fold(0.0, f64::max);
        let axis = Axis::from_zero(&self.name, self.unit, high);
        frame.draw(canvas, &axis)?;
        frame.horizontal(canvas, &axis)?;
        for (index, (row, label)) in self.rows.iter().zip(&labels).enumerate() {
            let middle = top + 1.5 + (index as f64 + 0.5) * ROW;
            canvas.text(
                label,
                (left - 3.0, middle),
                SMALL,
                (HPos::Right, VPos::Center),
            )?;
            let mut start = 0.0;
            for (fill, length) in self.fills.iter().zip(&row.lengths) {
                let (from, to) = (axis.position(start), axis.position(start + length));
                start += length;
                let (from, to) = (frame.at(from, 0.0).0, frame.at(to, 0.0).0);
                // Parts thinner than a hair are left to the note.
                if to - from > 0.05 {
                    let (upper, lower) = (middle - BAR / 2.0, middle + BAR / 2.0);
                    canvas.bar((from, upper), (to, lower), fill.color, fill.hatched)?;
                }
            }
            let end = frame.at(axis.position(start), 0.0).0 + GAP;
            canvas.text(&row.note, (end, middle), SMALL, (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}
