//! Drawing in points on a plotters drawing area of any resolution.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontTransform, IntoFont, RGBAColor, ShapeStyle, TextStyle};

use super::backend::Glyphs;
use crate::report::looks::Marker;
use crate::report::style::{Color, INK};

/// A place on the page, pt from its upper left corner.
pub type At = (f64, f64);

/// The drawing error of backend `B`.
pub type Failure<B> = DrawingAreaErrorKind<<B as plotters::backend::DrawingBackend>::ErrorType>;

/// A stroke: colour, width in pt, dash pattern in pt (empty: solid).
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Colour.
    pub color: Color,
    /// Width, pt.
    pub width: f64,
    /// Pt on and pt off in turn; empty for a solid line.
    pub dash: &'static [f64],
}

impl Stroke {
    /// A solid line.
    pub const fn solid(color: Color, width: f64) -> Self {
        Self {
            color,
            width,
            dash: &[],
        }
    }
}

// Corners of markers, in halves of their size from the middle.
const SQUARE: [At; 4] = [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)];
const DIAMOND: [At; 4] = [(0.0, -1.2), (1.0, 0.0), (0.0, 1.2), (-1.0, 0.0)];
const TRIANGLE: [At; 3] = [(-1.05, 0.8), (1.05, 0.8), (0.0, -1.1)];
const INVERTED: [At; 3] = [(-1.05, -0.8), (1.05, -0.8), (0.0, 1.1)];

/// A page measured in points.
pub struct Canvas<'a, B: Glyphs> {
    area: &'a DrawingArea<B, Shift>,
    scale: f64,
}

impl<'a, B: Glyphs> Canvas<'a, B> {
    /// A page of `scale` backend units to the point.
    pub fn new(area: &'a DrawingArea<B, Shift>, scale: f64) -> Self {
        Self { area, scale }
    }

    /// The backend's grid point next to a place; pages are far smaller than `i32`.
    #[allow(clippy::cast_possible_truncation)]
    fn grid(&self, (x, y): At) -> (i32, i32) {
        (
            (x * self.scale).round() as i32,
            (y * self.scale).round() as i32,
        )
    }

    /// Line widths are small and positive.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn style(&self, color: RGBAColor, width: f64) -> ShapeStyle {
        let stroke_width = (width * self.scale).round().max(1.0) as u32;
        ShapeStyle {
            color,
            filled: false,
            stroke_width,
        }
    }

    /// A line through `points`, in dashes if the stroke has them.
    pub fn line(&self, points: &[At], stroke: Stroke) -> Result<(), Failure<B>> {
        let style = self.style(rgba(stroke.color, 1.0), stroke.width);
        for piece in dashes(points, stroke.dash) {
            let path: Vec<_> = piece.into_iter().map(|point| self.grid(point)).collect();
            self.area.draw(&PathElement::new(path, style))?;
        }
        Ok(())
    }

    /// A filled area; `alpha` 1 hides what is below.
    pub fn fill(&self, points: &[At], color: Color, alpha: f64) -> Result<(), Failure<B>> {
        let path: Vec<_> = points.iter().map(|point| self.grid(*point)).collect();
        self.area.draw(&Polygon::new(path, rgba(color, alpha)))
    }

    /// A filled rectangle between two corners, with diagonal strokes if `hatched`.
    pub fn bar(&self, from: At, to: At, color: Color, hatched: bool) -> Result<(), Failure<B>> {
        let mut style = self.style(rgba(color, 1.0), 1.0);
        style.filled = true;
        self.area
            .draw(&Rectangle::new([self.grid(from), self.grid(to)], style))?;
        if !hatched {
            return Ok(());
        }
        let height = to.1 - from.1;
        // Strokes end a hair inside, where their own width does not show beyond the edge.
        let (from, to) = ((from.0 + 0.2, from.1 + 0.2), (to.0 - 0.2, to.1 - 0.2));
        let mut start = from.0 - height + 1.0;
        while start < to.0 {
            // The stroke from (start, bottom) up to (start + height, top), cut to the rectangle.
            let (left, right) = (start.max(from.0), (start + height).min(to.0));
            if right > left {
                let y = |x: f64| to.1 - (x - start);
                self.line(
                    &[(left, y(left)), (right, y(right))],
                    Stroke::solid(INK, 0.3),
                )?;
            }
            start += 2.4;
        }
        Ok(())
    }

    /// A line of text; `at` is what `anchor` says it is of the line's capitals.
    pub fn text(
        &self,
        text: &str,
        at: At,
        size: f64,
        anchor: (HPos, VPos),
    ) -> Result<(), Failure<B>> {
        self.set(text, at, (size, INK), anchor, FontTransform::None)
    }

    /// A line of text on a coloured ground, centred at `at`.
    pub fn text_on(&self, text: &str, at: At, size: f64, color: Color) -> Result<(), Failure<B>> {
        let centre = (HPos::Center, VPos::Center);
        self.set(text, at, (size, color), centre, FontTransform::None)
    }

    /// A line of text that reads upwards; `start` is where it begins, centres or ends.
    pub fn text_upwards(
        &self,
        text: &str,
        at: At,
        size: f64,
        start: HPos,
    ) -> Result<(), Failure<B>> {
        let anchor = (start, VPos::Center);
        self.set(text, at, (size, INK), anchor, FontTransform::Rotate270)
    }

    fn set(
        &self,
        text: &str,
        at: At,
        (size, color): (f64, Color),
        (horizontal, vertical): (HPos, VPos),
        transform: FontTransform,
    ) -> Result<(), Failure<B>> {
        // The family is a formality: the backends draw their own outlines.
        let font = ("sans-serif", size * self.scale)
            .into_font()
            .transform(transform);
        let color = rgba(color, 1.0);
        let style = TextStyle::from(font)
            .color(&color)
            .pos(Pos::new(horizontal, vertical));
        self.area.draw(&Text::new(text, self.grid(at), style))
    }

    /// A marker of about `size` pt across.
    pub fn marker(
        &self,
        (x, y): At,
        size: f64,
        color: Color,
        marker: Marker,
    ) -> Result<(), Failure<B>> {
        let r = size / 2.0;
        let corners = |points: &[(f64, f64)]| -> Vec<At> {
            points
                .iter()
                .map(|(dx, dy)| (x + dx * r, y + dy * r))
                .collect()
        };
        let cross = |arms: [[(f64, f64); 2]; 2]| {
            arms.iter()
                .try_for_each(|arm| self.line(&corners(arm), Stroke::solid(color, size / 4.0)))
        };
        let full = |points: &[(f64, f64)]| self.fill(&corners(points), color, 1.0);
        // White inside, so that an outline is told from a curve that passes through it. Side by side: as one line, plotters
        // would cut its corners.
        let hollow = |points: &[(f64, f64)]| {
            let outline = corners(points);
            self.fill(&outline, (0xFF, 0xFF, 0xFF), 1.0)?;
            let next = outline.iter().cycle().skip(1);
            (outline.iter().zip(next)).try_for_each(|(from, to)| {
                self.line(&[*from, *to], Stroke::solid(color, size / 5.0))
            })
        };
        let disc: Vec<(f64, f64)> = (0..24_u32)
            .map(|step| (f64::from(step) * std::f64::consts::TAU / 24.0).sin_cos())
            .collect();
        match marker {
            Marker::Circle => full(&disc),
            Marker::Square => full(&SQUARE),
            Marker::Diamond => full(&DIAMOND),
            Marker::Triangle => full(&TRIANGLE),
            Marker::Inverted => full(&INVERTED),
            Marker::Ring => hollow(&disc),
            Marker::HollowSquare => hollow(&SQUARE),
            Marker::HollowDiamond => hollow(&DIAMOND),
            Marker::HollowTriangle => hollow(&TRIANGLE),
            Marker::HollowInverted => hollow(&INVERTED),
            Marker::Cross => cross([[(-0.9, -0.9), (0.9, 0.9)], [(-0.9, 0.9), (0.9, -0.9)]]),
            Marker::Plus => cross([[(-1.1, 0.0), (1.1, 0.0)], [(0.0, -1.1), (0.0, 1.1)]]),
        }
    }
}

fn rgba((red, green, blue): Color, alpha: f64) -> RGBAColor {
    RGBAColor(red, green, blue, alpha)
}

/// Cuts a line into its dashes; a solid line is one piece.
fn dashes(points: &[At], pattern: &[f64]) -> Vec<Vec<At>> {
    if pattern.is_empty() || points.len() < 2 {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut piece = vec![points[0]];
    let (mut phase, mut left) = (0, pattern[0]);
    for ends in points.windows(2) {
        let (from, to) = (ends[0], ends[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let share = done / length;
            let cut = (
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            );
            // Even phases are drawn, odd ones left out.
            if phase % 2 == 0 {
                piece.push(cut);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![cut];
            }
            phase = (phase + 1) % pattern.len();
            left = pattern[phase];
        }
        left -= length - done;
        if phase % 2 == 0 {
            piece.push(to);
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_the_line_in_the_pattern_also_around_corners() {
        let line = [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)];
        let pieces = dashes(&line, &[2.0, 1.0]);
        let expected = vec![
            vec![(0.0, 0.0), (2.0, 0.0)],
            vec![(3.0, 0.0), (3.0, 2.0)],
            vec![(3.0, 3.0), (3.0, 4.0)],
        ];
        let length = |piece: &Vec<At>| {
            piece
                .windows(2)
                .map(|p| (p[1].0 - p[0].0).hypot(p[1].1 - p[0].1))
                .sum::<f64>()
        };
        assert_eq!(pieces.len(), expected.len(), "{pieces:?}");
        for (piece, expected) in pieces.iter().zip(&expected) {
            assert!((length(piece) - length(expected)).abs() < 1e-9, "{piece:?}");
            assert_eq!(piece.last(), expected.last());
        }
    }

    #[test]
    fn a_solid_line_is_one_piece() {
        assert_eq!(dashes(&[(0.0, 0.0), (1.0, 1.0)], &[]).len(), 1);
    }
}
