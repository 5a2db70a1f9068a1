//! What is drawn on a page, in points, before it becomes a file.

use tiny_skia::{Path, PathBuilder};

use super::text;
use crate::report::looks::Marker;
use crate::report::style::{Color, INK};

/// A place on the page, pt from its upper left corner.
pub(super) type At = (f64, f64);

/// A stroke: colour, width in pt, dash pattern in pt (empty: solid).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    /// Colour.
    pub color: Color,
    /// Width, pt.
    pub width: f64,
    /// Pt on and pt off in turn; empty for a solid line.
    pub dash: &'static [f64],
}

impl Stroke {
    /// A solid line.
    pub(crate) const fn solid(color: Color, width: f64) -> Self {
        Self {
            color,
            width,
            dash: &[],
        }
    }
}

/// How lines to compare with are drawn.
pub(super) const GUIDE: Stroke = Stroke {
    color: (0x55, 0x55, 0x55),
    width: 0.7,
    dash: &[2.5, 1.5],
};

/// Which part of a line of text stands at its place; up and down its capitals count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The middle of its left end.
    Left,
    /// The middle of its right end.
    Right,
    /// The middle.
    Middle,
    /// The middle of its upper edge.
    Top,
}

/// A line of text.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its glyphs.
    pub glyphs: Vec<text::Placed>,
    /// Type size, pt.
    pub size: f64,
    /// Its colour.
    pub color: Color,
    /// Where it begins, on the baseline.
    pub start: At,
    /// Whether it reads upwards.
    pub upwards: bool,
}

/// One thing on the page.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// An area, in this colour and opacity.
    Fill(Path, Color, f64),
    /// A line.
    Stroke(Path, Stroke),
    /// A rectangle: those that touch leave no seam between them.
    Bar(Path, Color),
    /// Text.
    Text(Line),
}

// Corners of markers, in halves of their size from the middle.
const SQUARE: [At; 4] = [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)];
const DIAMOND: [At; 4] = [(0.0, -1.2), (1.0, 0.0), (0.0, 1.2), (-1.0, 0.0)];
const TRIANGLE: [At; 3] = [(-1.05, 0.8), (1.05, 0.8), (0.0, -1.1)];
const INVERTED: [At; 3] = [(-1.05, -0.8), (1.05, -0.8), (0.0, 1.1)];
const LEFT: [At; 3] = [(0.8, -1.05), (0.8, 1.05), (-1.1, 0.0)];
const RIGHT: [At; 3] = [(-0.8, -1.05), (-0.8, 1.05), (1.1, 0.0)];

/// A page: what is on it, from the back to the front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canvas {
    /// The shapes.
    pub shapes: Vec<Shape>,
}

/// Straight lines from corner to corner, in points; nothing where they have no length.
fn path(points: &[At], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (place, &(x, y)) in points.iter().enumerate() {
        if place == 0 {
            path.move_to(x as f32, y as f32);
        } else {
            path.line_to(x as f32, y as f32);
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}

impl Canvas {
    /// A line through `points`.
    pub(crate) fn line(&mut self, points: &[At], stroke: Stroke) {
        let path = path(points, false);
        self.shapes
            .extend(path.map(|path| Shape::Stroke(path, stroke)));
    }

    /// A filled area; `alpha` 1 hides what is below.
    pub(crate) fn fill(&mut self, points: &[At], color: Color, alpha: f64) {
        let path = path(points, true);
        self.shapes
            .extend(path.map(|path| Shape::Fill(path, color, alpha)));
    }

    /// A filled rectangle between two corners, with diagonal strokes if `hatched`.
    pub(crate) fn bar(&mut self, from: At, to: At, color: Color, hatched: bool) {
        let corners = [from, (to.0, from.1), to, (from.0, to.1)];
        let path = path(&corners, true);
        self.shapes.extend(path.map(|path| Shape::Bar(path, color)));
        if !hatched {
            return;
        }
        let height = to.1 - from.1;
        // Strokes end a hair inside, where their own width does not show beyond the edge.
        let (from, to) = ((from.0 + 0.2, from.1 + 0.2), (to.0 - 0.2, to.1 - 0.2));
        // Strokes lean, so the first ones begin left of the rectangle.
        let mut start = from.0 - height + 1.0;
        while start < to.0 {
            // The stroke from (start, bottom) up to (start + height, top), cut to the rectangle.
            let (left, right) = (start.max(from.0), (start + height).min(to.0));
            if right > left {
                let y = |x: f64| to.1 - (x - start);
                let ends = [(left, y(left)), (right, y(right))];
                self.line(&ends, Stroke::solid(INK, 0.3));
            }
            start += 2.4;
        }
    }

    /// A line of text.
    pub(crate) fn text(&mut self, text: &str, at: At, size: f64, anchor: Anchor) {
        self.set(text, at, (size, INK), anchor, false);
    }

    /// A line of text on a coloured ground, centred at `at`.
    pub(crate) fn text_on(&mut self, text: &str, at: At, size: f64, color: Color) {
        self.set(text, at, (size, color), Anchor::Middle, false);
    }

    /// A line of text that reads upwards.
    pub(crate) fn text_upwards(&mut self, text: &str, at: At, size: f64, anchor: Anchor) {
        self.set(text, at, (size, INK), anchor, true);
    }

    fn set(
        &mut self,
        text: &str,
        (x, y): At,
        (size, color): (f64, Color),
        anchor: Anchor,
        upwards: bool,
    ) {
        let (glyphs, width) = text::layout(text, size);
        let capitals = text::CAPITALS * size;
        let (along, down) = match anchor {
            Anchor::Left => (0.0, capitals / 2.0),
            Anchor::Right => (-width, capitals / 2.0),
            Anchor::Middle => (-width / 2.0, capitals / 2.0),
            Anchor::Top => (-width / 2.0, capitals),
        };
        let start = if upwards {
            (x + down, y - along)
        } else {
            (x + along, y + down)
        };
        self.shapes.push(Shape::Text(Line {
            glyphs,
            size,
            color,
            start,
            upwards,
        }));
    }

    /// A marker of about `size` pt across.
    pub(crate) fn marker(&mut self, (x, y): At, size: f64, color: Color, marker: Marker) {
        let r = size / 2.0;
        let corners = |points: &[At]| -> Vec<At> {
            let points = points.iter();
            points.map(|(dx, dy)| (x + dx * r, y + dy * r)).collect()
        };
        // A polygon: at this size its corners cannot be seen, and markers of all shapes are drawn
        // alike.
        let disc: Vec<At> = (0..24_u32)
            .map(|step| (f64::from(step) * std::f64::consts::TAU / 24.0).sin_cos())
            .collect();
        let star: Vec<At> = (0..10_u32)
            .map(|step| {
                let reach = if step % 2 == 0 { 1.3 } else { 0.55 };
                let (dx, dy) = (f64::from(step) * std::f64::consts::TAU / 10.0).sin_cos();
                (reach * dx, -reach * dy)
            })
            .collect();
        let points: &[At] = match marker {
            Marker::Circle | Marker::Ring => &disc,
            Marker::Square | Marker::HollowSquare => &SQUARE,
            Marker::Diamond | Marker::HollowDiamond => &DIAMOND,
            Marker::Triangle | Marker::HollowTriangle => &TRIANGLE,
            Marker::Inverted | Marker::HollowInverted => &INVERTED,
            Marker::Left | Marker::HollowLeft => &LEFT,
            Marker::Right | Marker::HollowRight => &RIGHT,
            Marker::Star | Marker::HollowStar => &star,
            Marker::Cross | Marker::Plus => {
                let arms = if marker == Marker::Cross {
                    [[(-0.9, -0.9), (0.9, 0.9)], [(-0.9, 0.9), (0.9, -0.9)]]
                } else {
                    [[(-1.1, 0.0), (1.1, 0.0)], [(0.0, -1.1), (0.0, 1.1)]]
                };
                for arm in arms {
                    self.line(&corners(&arm), Stroke::solid(color, size / 4.0));
                }
                return;
            }
        };
        let points = corners(points);
        if !marker.is_hollow() {
            return self.fill(&points, color, 1.0);
        }
        // White inside, so that an outline is told from a curve that passes through it.
        self.fill(&points, (0xFF, 0xFF, 0xFF), 1.0);
        let outline = Stroke::solid(color, size / 5.0);
        let path = path(&points, true);
        self.shapes
            .extend(path.map(|path| Shape::Stroke(path, outline)));
    }
}
