//! Text as outlines of the embedded font, so that a figure looks the same on every machine, with fonts or
//! without.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, GlyphId, OutlineCurve, Point, PxScale, ScaleFont};

/// A place, right and up.
type At = (f64, f64);

/// The condensed face leaves room for data in a narrow column.
static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(dejavu::sans_condensed::regular())
        .expect("the embedded font is part of the program and is parsed by every figure test")
});

/// Height of capitals over the type size in the embedded font.
pub const CAPITALS: f64 = 0.729;

/// One glyph of a line of text.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    id: GlyphId,
    /// Left end on the baseline, from the start of the line.
    pub x: f64,
}

/// The glyphs of `text` at type size `size`, and the width of the line; in the unit of `size`.
pub fn layout(text: &str, size: f64) -> (Vec<Placed>, f64) {
    let font = FONT.as_scaled(scale(size));
    let mut x = 0.0;
    let mut before: Option<GlyphId> = None;
    let mut glyphs = Vec::new();
    for id in text.chars().map(|character| font.glyph_id(character)) {
        if let Some(before) = before {
            x += f64::from(font.kern(before, id));
        }
        glyphs.push(Placed { id, x });
        x += f64::from(font.h_advance(id));
        before = Some(id);
    }
    (glyphs, x)
}

/// Width of `text` at type size `size`, in the unit of `size`.
pub fn width(text: &str, size: f64) -> f64 {
    layout(text, size).1
}

/// `text`, or as much of its start as fits into `room` with an ellipsis; in the unit of `size`.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    loop {
        kept.pop();
        let short: String = kept.iter().chain(&['…']).collect();
        if kept.is_empty() || width(&short, size) <= room {
            return short;
        }
    }
}

impl Placed {
    /// What tells its outline from others of the font.
    pub const fn number(&self) -> u16 {
        self.id.0
    }
}

/// Type size over the units that [`outline`] has.
pub fn unit(size: f64) -> f64 {
    f64::from(FONT.as_scaled(scale(size)).v_scale_factor())
}

/// A piece of an outline, from where the last one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Piece {
    /// Begins a contour.
    Move(At),
    /// A straight line.
    Line(At),
    /// A curve with one control point.
    Quad(At, At),
    /// A curve with two control points.
    Cubic(At, At, At),
}

/// The outline of the glyph of this number, in the font's own units, up being positive; empty for a blank.
pub fn outline(number: u16) -> Vec<Piece> {
    let at = |point: &Point| (f64::from(point.x), f64::from(point.y));
    let mut pieces = Vec::new();
    let mut here: Option<Point> = None;
    for curve in FONT
        .outline(GlyphId(number))
        .iter()
        .flat_map(|all| &all.curves)
    {
        let (start, piece, end) = match curve {
            OutlineCurve::Line(a, b) => (a, Piece::Line(at(b)), b),
            OutlineCurve::Quad(a, c, b) => (a, Piece::Quad(at(c), at(b)), b),
            OutlineCurve::Cubic(a, c, d, b) => (a, Piece::Cubic(at(c), at(d), at(b)), b),
        };
        if here != Some(*start) {
            pieces.push(Piece::Move(at(start)));
        }
        pieces.push(piece);
        here = Some(*end);
    }
    pieces
}

/// Type size (the em square) to the font library's scale (ascent to descent).
fn scale(size: f64) -> PxScale {
    let em = f64::from(FONT.units_per_em().unwrap_or(2048.0));
    // Type sizes are small numbers.
    #[allow(clippy::cast_possible_truncation)]
    PxScale::from((size * f64::from(FONT.height_unscaled()) / em) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_grows_with_text_and_size() {
        let one = width("full", 7.0);
        assert!((width("full", 14.0) - 2.0 * one).abs() < 1e-3);
        assert!(width("fullfull", 7.0) > 1.9 * one);
        assert!((2.0 * 7.0..7.0 * 4.0).contains(&width("mmmm", 7.0)));
    }

    #[test]
    fn text_that_is_too_long_ends_in_an_ellipsis_and_fits() {
        assert_eq!(fit("full", 7.0, 50.0), "full");
        let short = fit("workers=64 fixed(ratio=128)", 7.0, 50.0);
        assert!(
            short.ends_with('…') && short.starts_with("workers"),
            "{short}"
        );
        assert!(width(&short, 7.0) <= 50.0);
    }

    #[test]
    fn every_sign_that_reports_use_has_a_glyph() {
        for sign in "±×µ−–…≤≥·\u{2009}σθ".chars() {
            assert_ne!(FONT.glyph_id(sign), GlyphId(0), "{sign:?}");
        }
    }

    #[test]
    fn a_letter_with_a_hole_has_two_contours() {
        let (glyphs, _) = layout("o ", 100.0);
        let outline_of = |glyph: &Placed| outline(glyph.number());
        let begins = |piece: &&Piece| matches!(piece, Piece::Move(_));
        assert_eq!(outline_of(&glyphs[0]).iter().filter(begins).count(), 2);
        assert!(outline_of(&glyphs[1]).is_empty(), "a space");
    }
}
