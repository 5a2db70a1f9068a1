//! Legends: above the plot, without a frame, in as many columns as fit.

use super::canvas::{Anchor, Canvas, GUIDE, Stroke};
use super::text;
use crate::report::looks::Look;
use crate::report::style::{CURVE, Fill, SMALL};

/// Height of one row, pt.
const ROW: f64 = 9.5;
/// Width of the sample, and its distance to the text, pt.
const SAMPLE: f64 = 18.0;
const GAP: f64 = 3.0;
/// Distance between columns, pt.
const BETWEEN: f64 = 9.0;
/// Free space at both ends of a row together, pt.
const MARGIN: f64 = 4.0;

/// What stands beside a legend's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sample {
    /// A piece of a curve, or only its marker.
    Curve {
        /// Its look.
        look: Look,
        /// Whether points are joined by a line.
        joined: bool,
    },
    /// A filled box.
    Fill(Fill),
    /// A line to compare with.
    Guide,
}

/// Sample and text of every entry.
pub(super) type Entries = Vec<(Sample, String)>;

/// Room for a label, pt; longer ones are cut.
fn longest(width: f64) -> f64 {
    width - SAMPLE - GAP - MARGIN
}

/// The entries' columns on a page of `width` pt with the width of each, pt; entries fill row after
/// row.
fn columns(entries: &Entries, width: f64) -> Vec<f64> {
    let widths: Vec<f64> = entries
        .iter()
        .map(|(_, label)| SAMPLE + GAP + text::width(label, SMALL).min(longest(width)))
        .collect();
    let with = |count: usize| -> Vec<f64> {
        (0..count)
            .map(|column| {
                widths
                    .iter()
                    .skip(column)
                    .step_by(count)
                    .copied()
                    .fold(0.0, f64::max)
            })
            .collect()
    };
    let page =
        |columns: &[f64]| columns.iter().map(|column| column + BETWEEN).sum::<f64>() - BETWEEN;
    let fitting = (1..=entries.len())
        .rev()
        .find(|count| page(&with(*count)) <= width - MARGIN)
        // Where not even one column fits, labels are cut.
        .unwrap_or(1);
    // As even as possible: eight entries in rows of four, not of five and three.
    let rows = entries.len().div_ceil(fitting).max(1);
    let even = with(entries.len().div_ceil(rows).max(1));
    if page(&even) <= width - MARGIN {
        even
    } else {
        with(fitting)
    }
}

/// Height the legend takes on a page of `width` pt, pt.
pub(super) fn height(entries: &Entries, width: f64) -> f64 {
    if entries.is_empty() {
        return 0.0;
    }
    entries.len().div_ceil(columns(entries, width).len()) as f64 * ROW + 2.0
}

/// Draws the legend at the top of a page of `width` pt, centred.
pub(super) fn draw(canvas: &mut Canvas, entries: &Entries, width: f64) {
    let columns = columns(entries, width);
    let count = columns.len();
    let page = columns.iter().map(|column| column + BETWEEN).sum::<f64>() - BETWEEN;
    for (index, (sample, label)) in entries.iter().enumerate() {
        let before = columns[..index % count]
            .iter()
            .map(|column| column + BETWEEN)
            .sum::<f64>();
        let x = (width - page) / 2.0 + before;
        let y = ((index / count) as f64 + 0.5) * ROW;
        match sample {
            Sample::Curve { look, joined } => {
                if *joined {
                    let stroke = Stroke {
                        color: look.color,
                        width: CURVE,
                        dash: look.dash,
                    };
                    canvas.line(&[(x, y), (x + SAMPLE, y)], stroke);
                }
                canvas.marker((x + SAMPLE / 2.0, y), 4.0, look.color, look.marker);
            }
            Sample::Guide => canvas.line(&[(x, y), (x + SAMPLE, y)], GUIDE),
            Sample::Fill(fill) => {
                let box_left = x + SAMPLE - 11.0;
                canvas.bar(
                    (box_left, y - 2.8),
                    (x + SAMPLE, y + 2.8),
                    fill.color,
                    fill.hatched,
                );
            }
        }
        let label = text::fit(label, SMALL, longest(width));
        canvas.text(&label, (x + SAMPLE + GAP, y), SMALL, Anchor::Left);
    }
}
