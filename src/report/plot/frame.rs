//! The frame of a panel: thin axes on four sides, ticks inward, labels outside.

use super::canvas::{Anchor, At, Canvas, Stroke};
use super::scale::{Axis, Tick};
use super::text;
use crate::report::style::{INK, LABEL, SMALL, THIN};

const MAJOR: f64 = 3.2;
const MINOR: f64 = 1.7;
/// Distance from an axis to its tick labels, pt.
const PAD: f64 = 3.0;
/// How far labels below may stick out of the frame where another panel may stand beside it, pt.
const OUT: f64 = 3.0;
/// How far a label may stand from its tick, as a share of half its width.
const ASIDE: f64 = 0.5;
/// The least distance between two labels, pt.
const BETWEEN: f64 = 3.0;
/// Height of a label, with less room above and below than lines have, pt.
const LINE: f64 = SMALL - BETWEEN + 1.0;
/// Height below the frame for tick labels and the axis' name, pt.
pub(super) const BELOW: f64 = 25.0;

/// The rectangle that holds the data, pt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Left end of the room for labels.
    pub edge: f64,
    /// Left border.
    pub left: f64,
    /// Upper border.
    pub top: f64,
    /// Right border.
    pub right: f64,
    /// Lower border.
    pub bottom: f64,
}

/// Which sides of a panel are labelled: not those that share the labels of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The vertical axis, or the rows.
    pub left: bool,
    /// The horizontal axis, or the columns.
    pub below: bool,
}

impl Frame {
    /// The place at shares `x` (from the left) and `y` (from below).
    pub(crate) fn at(&self, x: f64, y: f64) -> At {
        (
            self.left + x * (self.right - self.left),
            self.bottom - y * (self.bottom - self.top),
        )
    }

    /// The place in the frame that is nearest to `at`.
    pub(crate) fn nearest(&self, at: At) -> At {
        (
            at.0.clamp(self.left, self.right),
            at.1.clamp(self.top, self.bottom),
        )
    }

    /// The pieces of a line that are not below the frame.
    pub(crate) fn above_bottom(&self, line: &[At]) -> Vec<Vec<At>> {
        let mut pieces: Vec<Vec<At>> = vec![Vec::new()];
        let mut before: Option<At> = None;
        for &at in line {
            let inside = at.1 <= self.bottom;
            if let Some(before) = before
                && inside != (before.1 <= self.bottom)
            {
                // Cut where it crosses the border, so that a curve does not end short of it.
                let share = (self.bottom - before.1) / (at.1 - before.1);
                let border = (before.0 + share * (at.0 - before.0), self.bottom);
                match pieces.last_mut() {
                    Some(piece) if !inside => {
                        piece.push(border);
                        pieces.push(Vec::new());
                    }
                    _ => pieces.push(vec![border]),
                }
            }
            if inside && let Some(piece) = pieces.last_mut() {
                piece.push(at);
            }
            before = Some(at);
        }
        pieces.retain(|piece| piece.len() > 1);
        pieces
    }

    /// Draws the four sides, with a gap in the lower and in the left one where those axes are
    /// broken.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x: &Axis, y: Option<&Axis>) {
        let stroke = Stroke::solid(INK, THIN);
        let sides = [
            ((0.0, 0.0), (1.0, 0.0), Some(x)),
            ((0.0, 0.0), (0.0, 1.0), y),
            ((0.0, 1.0), (1.0, 1.0), None),
            ((1.0, 0.0), (1.0, 1.0), None),
        ];
        for (from, to, axis) in sides {
            let (start, end) = (self.at(from.0, from.1), self.at(to.0, to.1));
            let Some(gap) = axis.and_then(Axis::break_at) else {
                canvas.line(&[start, end], stroke);
                continue;
            };
            // Half the gap, along the side; the strokes at its ends lean across.
            let (dx, dy) = ((to.0 - from.0) * 1.5, (from.1 - to.1) * 1.5);
            let middle = self.at(gap * to.0, gap * to.1);
            let before = (middle.0 - dx, middle.1 - dy);
            let after = (middle.0 + dx, middle.1 + dy);
            canvas.line(&[start, before], stroke);
            canvas.line(&[after, end], stroke);
            let lean = if dx > 0.0 { (1.2, -2.6) } else { (2.6, -1.2) };
            for (x, y) in [before, after] {
                let ends = [(x - lean.0, y - lean.1), (x + lean.0, y + lean.1)];
                canvas.line(&ends, stroke);
            }
        }
    }

    /// Ticks of the horizontal axis and, if they are `shown`, their labels and its name.
    pub(crate) fn horizontal(&self, canvas: &mut Canvas, axis: &Axis, shown: bool) {
        let ticks = axis.ticks();
        for tick in &ticks {
            let x = self.at(tick.at, 0.0).0;
            let reach = length(tick);
            let stroke = Stroke::solid(INK, THIN);
            canvas.line(&[(x, self.bottom), (x, self.bottom - reach)], stroke);
            canvas.line(&[(x, self.top), (x, self.top + reach)], stroke);
        }
        if !shown {
            return;
        }
        let width = |label: &str| text::width(label, SMALL);
        let ends = (self.left - OUT, self.right + OUT);
        for (label, x) in placed(&ticks, |at| self.at(at, 0.0).0, width, ends) {
            canvas.text(label, (x, self.bottom + PAD + 0.5), SMALL, Anchor::Top);
        }
        let middle = f64::midpoint(self.left, self.right);
        let room = self.right - self.left + 2.0 * OUT;
        canvas.text(
            &title(axis, room),
            (middle, self.bottom + 14.0),
            LABEL,
            Anchor::Top,
        );
    }

    /// Ticks of the vertical axis and, if they are `shown`, their labels and its name.
    pub(crate) fn vertical(&self, canvas: &mut Canvas, axis: &Axis, shown: bool) {
        let ticks = axis.ticks();
        for tick in &ticks {
            let y = self.at(0.0, tick.at).1;
            let reach = length(tick);
            let stroke = Stroke::solid(INK, THIN);
            canvas.line(&[(self.left, y), (self.left + reach, y)], stroke);
            canvas.line(&[(self.right, y), (self.right - reach, y)], stroke);
        }
        if !shown {
            return;
        }
        let ends = (self.top - OUT, self.bottom + OUT);
        for (label, y) in placed(&ticks, |at| self.at(0.0, at).1, |_| LINE, ends) {
            canvas.text(label, (self.left - PAD, y), SMALL, Anchor::Right);
        }
        let at = (self.edge + 5.5, f64::midpoint(self.top, self.bottom));
        // Above a frame are a few points more, and below it.
        let room = self.bottom - self.top + 2.0 * OUT;
        canvas.text_upwards(&title(axis, room), at, LABEL, Anchor::Middle);
    }
}

/// The axis' name with its unit or scale, or without the latter where there is no room.
fn title(axis: &Axis, room: f64) -> String {
    let label = axis.label();
    if text::width(&label, LABEL) <= room {
        return label;
    }
    text::fit(&axis.short_label(), LABEL, room)
}

/// The labels of an axis that are written, and where their middles stand: those of the lowest rank
/// first, and the others as far as they do not touch one. A tick without its label remains.
fn placed(
    ticks: &[Tick],
    place: impl Fn(f64) -> f64,
    width: impl Fn(&str) -> f64,
    (low, high): (f64, f64),
) -> Vec<(&str, f64)> {
    let labelled = ticks
        .iter()
        .filter_map(|tick| Some((tick, tick.text.as_deref()?)));
    let mut labels: Vec<(bool, u8, &str, f64, f64)> = labelled
        .map(|(tick, label)| {
            let (at, half) = (place(tick.at), width(label) / 2.0);
            // The outer labels stay by their panel, a little beside their ticks if need be.
            let middle = at.min(high - half).max(low + half);
            (
                (middle - at).abs() > ASIDE * half,
                tick.rank,
                label,
                middle,
                half,
            )
        })
        .collect();
    labels.sort_by_key(|&(aside, rank, ..)| (aside, rank));
    let mut placed: Vec<(&str, f64, f64)> = Vec::new();
    for (aside, _, label, middle, half) in labels {
        let touches =
            |&(_, other, its): &(&str, f64, f64)| (other - middle).abs() < its + half + BETWEEN;
        // Beside another tick a label misleads, which is better than none.
        if !(placed.iter().any(touches) || aside && placed.len() > 1) {
            placed.push((label, middle, half));
        }
    }
    placed
        .into_iter()
        .map(|(label, middle, _)| (label, middle))
        .collect()
}

fn length(tick: &Tick) -> f64 {
    if tick.text.is_some() { MAJOR } else { MINOR }
}

/// Width left of the frame that a vertical axis needs, pt.
pub(super) fn beside(axis: &Axis) -> f64 {
    let ticks = axis.ticks();
    let labels = ticks.iter().filter_map(|tick| tick.text.as_deref());
    13.5 + PAD
        + labels
            .map(|label| text::width(label, SMALL))
            .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_labels_without_room_the_rounder_are_written_and_none_far_from_its_tick() {
        let tick = |at: f64, text: &str, rank| Tick {
            at,
            text: Some(text.into()),
            rank,
        };
        let ticks = [
            tick(0.45, "900 MB", 2),
            tick(0.5, "1 GB", 0),
            tick(0.8, "2 GB", 1),
            tick(0.99, "3 GB", 2),
        ];
        let written = |ends| {
            let placed = placed(&ticks, |at| 100.0 * at, |_| 20.0, ends);
            let labels = placed.into_iter().map(|(label, _)| label.to_owned());
            labels.collect::<Vec<String>>()
        };
        assert_eq!(written((0.0, 110.0)), ["1 GB", "2 GB"]);
        assert_eq!(written((0.0, 150.0)), ["1 GB", "2 GB"]);
        assert_eq!(written((0.0, 30.0)).len(), 1);
    }

    #[test]
    fn a_line_that_dips_below_the_frame_is_cut_where_it_leaves_and_comes_back() {
        let frame = Frame {
            edge: 0.0,
            left: 0.0,
            top: 0.0,
            right: 10.0,
            bottom: 10.0,
        };
        let line = [(0.0, 8.0), (2.0, 12.0), (4.0, 8.0), (6.0, 6.0)];
        let expected = vec![
            vec![(0.0, 8.0), (1.0, 10.0)],
            vec![(3.0, 10.0), (4.0, 8.0), (6.0, 6.0)],
        ];
        assert_eq!(frame.above_bottom(&line), expected);
        assert!(frame.above_bottom(&[(0.0, 11.0), (1.0, 12.0)]).is_empty());
    }
}
