//! A panel of numbers in rows and columns, on colours from bright to dark, with the scale of
//! colours above it.

use super::canvas::{Anchor, Canvas, Stroke};
use super::frame::{Frame, Labels};
use super::text;
use crate::report::style::{Color, INK, LABEL, SMALL, THIN};

/// Height of a row, pt.
const ROW: f64 = 12.0;
/// Largest type size of the numbers, pt; they shrink with narrow columns.
const LARGEST: f64 = 6.8;
/// Width and height of the scale of colours, pt.
const SCALE: (f64, f64) = (56.0, 5.0);
/// Width beyond which the label of a row, or of a column, is cut, pt.
const LONGEST: f64 = 100.0;
/// From high to low, after *cividis* (Nuñez, Anderton and Renslow, 2018): luminance falls all the
/// way, blue means below the middle and yellow above, for people with any sight.
const COLORS: [Color; 5] = [
    (0xFD, 0xEA, 0x65),
    (0xD5, 0xC6, 0x7A),
    (0xA5, 0xA3, 0x9E),
    (0x5A, 0x68, 0x84),
    (0x16, 0x30, 0x5E),
];

/// A number's colour and text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tint {
    /// Where it stands on the scale: 0 is the bright end, 1 the dark one; beyond is the same as at
    /// the ends.
    pub at: f64,
    /// The number.
    pub text: String,
}

/// A panel of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    /// The rows' labels, top to bottom.
    pub rows: Vec<String>,
    /// The columns' labels, left to right.
    pub columns: Vec<String>,
    /// What columns are.
    pub name: String,
    /// Row by row; `None` where nothing is known.
    pub tints: Vec<Vec<Option<Tint>>>,
    /// What stands at the bright and at the dark end of the scale.
    pub ends: [String; 2],
}

impl Heat {
    /// Room for the scale of colours, pt.
    pub(crate) const ABOVE: f64 = 11.0;

    /// Room for the rows' labels, pt.
    pub(crate) fn beside(&self) -> f64 {
        5.0 + widest(&self.rows)
    }

    /// Room for the columns' labels and what they are, below a frame of `width` pt, pt.
    pub(crate) fn below(&self, width: f64) -> f64 {
        self.columns_end(width) + 14.0
    }

    /// Width of a column, pt.
    fn column(&self, width: f64) -> f64 {
        width / self.columns.len().max(1) as f64
    }

    /// Whether the columns' labels fit as they are; otherwise they read upwards.
    fn level(&self, width: f64) -> bool {
        widest(&self.columns) + 2.0 <= self.column(width)
    }

    /// Where the columns' labels end, below a frame of `width` pt, pt.
    fn columns_end(&self, width: f64) -> f64 {
        if self.level(width) {
            9.5
        } else {
            widest(&self.columns) + 3.0
        }
    }

    /// Height of the data rectangle, pt.
    pub(crate) fn inside(&self) -> f64 {
        self.rows.len() as f64 * ROW
    }

    /// Draws the panel.
    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: Frame, labels: Labels) {
        self.scale(canvas, frame);
        let whole = frame.right - frame.left;
        let width = self.column(whole);
        let size = self.size(width);
        for (row, tints) in self.tints.iter().enumerate() {
            for (column, tint) in tints.iter().enumerate() {
                let from = (
                    frame.left + column as f64 * width,
                    frame.top + row as f64 * ROW,
                );
                let to = (from.0 + width, from.1 + ROW);
                let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
                if let Some(tint) = tint {
                    canvas.bar(from, to, color(tint.at), false);
                    canvas.text_on(&tint.text, middle, size, on(tint.at));
                } else {
                    canvas.bar(from, to, WHITE, true);
                    let corner = |sign: f64| (middle.0 + sign * 4.0, middle.1 + sign * 3.0);
                    // A patch without strokes, on which the sign can be read.
                    canvas.bar(corner(-1.0), corner(1.0), WHITE, false);
                    canvas.text_on("–", middle, LARGEST, DARK);
                }
            }
        }
        self.lines(canvas, frame, width);
        if labels.left {
            for (row, label) in self.rows.iter().enumerate() {
                let at = (frame.left - 3.0, frame.top + (row as f64 + 0.5) * ROW);
                let label = text::fit(label, SMALL, LONGEST);
                canvas.text(&label, at, SMALL, Anchor::Right);
            }
        }
        if labels.below {
            for (column, label) in self.columns.iter().enumerate() {
                let x = frame.left + (column as f64 + 0.5) * width;
                let label = text::fit(label, SMALL, LONGEST);
                let at = (x, frame.bottom + 3.0);
                if self.level(whole) {
                    canvas.text(&label, at, SMALL, Anchor::Top);
                } else {
                    canvas.text_upwards(&label, at, SMALL, Anchor::Right);
                }
            }
            let middle = f64::midpoint(frame.left, frame.right);
            let at = (middle, frame.bottom + self.columns_end(whole) + 4.0);
            canvas.text(&self.name, at, LABEL, Anchor::Top);
        }
    }

    /// The type size in which every number fits a column.
    fn size(&self, width: f64) -> f64 {
        let numbers = self.tints.iter().flatten().flatten();
        let widest = numbers.map(|tint| text::width(&tint.text, LARGEST));
        let room = (width - 2.0) / widest.fold(1.0, f64::max);
        LARGEST * room.min(1.0)
    }

    /// The scale of colours, above the frame, with what its ends mean.
    fn scale(&self, canvas: &mut Canvas, frame: Frame) {
        // One a point of its width.
        const STEPS: u32 = 56;
        let (width, height) = SCALE;
        let left = f64::midpoint(frame.left, frame.right) - width / 2.0;
        let top = frame.top - height - 3.0;
        for step in 0..STEPS {
            let share = |step: u32| f64::from(step) / f64::from(STEPS);
            let (from, to) = (share(step), share(step + 1));
            // Each to the end, under the next: between two that only touch, the ground shows.
            canvas.bar(
                (left + from * width, top),
                (left + width, top + height),
                color(f64::midpoint(from, to)),
                false,
            );
        }
        let y = top + height / 2.0;
        let [bright, dark] = &self.ends;
        let (left, right) = (left - 3.0, left + width + 3.0);
        canvas.text(bright, (left, y), SMALL, Anchor::Right);
        canvas.text(dark, (right, y), SMALL, Anchor::Left);
    }

    /// White lines between the cells, and the frame.
    fn lines(&self, canvas: &mut Canvas, frame: Frame, width: f64) {
        let white = Stroke::solid(WHITE, 0.6);
        for column in 1..self.columns.len() {
            let x = frame.left + column as f64 * width;
            canvas.line(&[(x, frame.top), (x, frame.bottom)], white);
        }
        for row in 1..self.rows.len() {
            let y = frame.top + row as f64 * ROW;
            canvas.line(&[(frame.left, y), (frame.right, y)], white);
        }
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        let border: Vec<_> = corners.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        canvas.line(&border, Stroke::solid(INK, THIN));
    }
}

const WHITE: Color = (0xFF, 0xFF, 0xFF);
/// Black that stays so on a dark page, where ink turns bright.
const DARK: Color = (0x08, 0x08, 0x08);

fn widest(labels: &[String]) -> f64 {
    let widths = labels.iter().map(|label| text::width(label, SMALL));
    widths.fold(0.0, f64::max).min(LONGEST)
}

/// The colour at a place of the scale.
fn color(at: f64) -> Color {
    let last = COLORS.len() - 1;
    let at = at.clamp(0.0, 1.0) * last as f64;
    // The place is between 0 and the number of colours.
    // The dark end itself belongs to the last pair of colours.
    let before = (at.floor() as usize).min(last - 1);
    let share = at - before as f64;
    let (one, other) = (COLORS[before], COLORS[before + 1]);
    // Between two bytes is a byte.
    let mix = |a: u8, b: u8| (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8;
    (
        mix(one.0, other.0),
        mix(one.1, other.1),
        mix(one.2, other.2),
    )
}

/// Relative luminance, 0 to 1, as WCAG defines it.
fn luminance((red, green, blue): Color) -> f64 {
    let linear = |channel: u8| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.040_45 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// The text colour that stands out from the one at a place of the scale.
fn on(at: f64) -> Color {
    // WCAG's contrast with black equals that with white where (L + 0.05)² = 1.05 · 0.05.
    if luminance(color(at)) > 0.18 {
        DARK
    } else {
        WHITE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_darkens_all_the_way_so_that_it_survives_black_and_white() {
        let places = (0..=100_u32).map(|step| luminance(color(f64::from(step) / 100.0)));
        let places: Vec<f64> = places.collect();
        assert!(
            places.windows(2).all(|pair| pair[0] > pair[1]),
            "{places:?}"
        );
        assert_eq!(color(-3.0), color(0.0));
        assert_eq!(color(7.0), color(1.0));
    }

    #[test]
    fn numbers_stand_out_from_every_colour() {
        for step in 0..=100_u32 {
            let at = f64::from(step) / 100.0;
            let (ground, text) = (luminance(color(at)), luminance(on(at)));
            let contrast = (ground.max(text) + 0.05) / (ground.min(text) + 0.05);
            assert!(contrast >= 4.2, "{at}: {contrast}");
        }
    }
}
