//! Text as outlines of the embedded font, so that a figure looks the same on every machine, with
//! fonts or without.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, GlyphId, OutlineCurve, Point, PxScale, ScaleFont};
use tiny_skia::{Path, PathBuilder};

/// The condensed face leaves room for data in a narrow column.
static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(dejavu::sans_condensed::regular())
        .expect("the embedded font is part of the program and is parsed by every figure test")
});

/// Height of capitals over the type size in the embedded font.
// DejaVu's are 1,493 of 2,048 units high.
pub(super) const CAPITALS: f64 = 0.729;

/// One glyph of a line of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    id: GlyphId,
    /// Left end on the baseline, from the start of the line.
    pub x: f64,
}

/// The glyphs of `text` at type size `size`, and the width of the line; in the unit of `size`.
pub(super) fn layout(text: &str, size: f64) -> (Vec<Placed>, f64) {
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
pub(super) fn width(text: &str, size: f64) -> f64 {
    layout(text, size).1
}

/// `text`, or as much of its start and end as fits into `room` around an ellipsis, in the unit of
/// `size`: what labels of one figure differ in may stand in either.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    for kept in (0..letters.len()).rev() {
        // Letter by letter: kerning makes widths depend on what stands beside what.
        let (start, end) = (kept - kept / 3, letters.len() - kept / 3);
        let short = letters[..start].iter().chain(&['…']).chain(&letters[end..]);
        let short: String = short.collect();
        if kept == 0 || width(&short, size) <= room {
            return short;
        }
    }
    String::new()
}

impl Placed {
    /// What tells its outline from others of the font.
    pub(crate) const fn number(&self) -> u16 {
        self.id.0
    }
}

/// Type size over the units that [`outline`] has.
pub(super) fn unit(size: f64) -> f64 {
    f64::from(FONT.as_scaled(scale(size)).v_scale_factor())
}

/// The outline of the glyph of this number, in the font's own units, up being positive; none of a
/// blank.
pub(super) fn outline(number: u16) -> Option<Path> {
    let mut path = PathBuilder::new();
    let mut here: Option<Point> = None;
    for curve in FONT.outline(GlyphId(number))?.curves {
        let (OutlineCurve::Line(start, end)
        | OutlineCurve::Quad(start, _, end)
        | OutlineCurve::Cubic(start, _, _, end)) = curve;
        // Where a curve does not go on from the last one, another contour begins.
        if here != Some(start) {
            // Before the first contour there is nothing to close, and nothing is written.
            path.close();
            path.move_to(start.x, start.y);
        }
        match curve {
            OutlineCurve::Line(..) => path.line_to(end.x, end.y),
            OutlineCurve::Quad(_, over, _) => path.quad_to(over.x, over.y, end.x, end.y),
            OutlineCurve::Cubic(_, a, b, _) => path.cubic_to(a.x, a.y, b.x, b.y, end.x, end.y),
        }
        here = Some(end);
    }
    path.close();
    path.finish()
}

/// Type size (the em square) to the font library's scale (ascent to descent).
fn scale(size: f64) -> PxScale {
    let em = f64::from(FONT.units_per_em().unwrap_or(2048.0));
    // Type sizes are small numbers.
    PxScale::from((size * f64::from(FONT.height_unscaled()) / em) as f32)
}

#[cfg(test)]
mod tests {
    use tiny_skia::PathSegment;

    use super::*;

    #[test]
    fn width_grows_with_text_and_size() {
        let one = width("full", 7.0);
        assert!((width("full", 14.0) - 2.0 * one).abs() < 1e-3);
        assert!(width("fullfull", 7.0) > 1.9 * one);
        assert!((2.0 * 7.0..7.0 * 4.0).contains(&width("mmmm", 7.0)));
    }

    #[test]
    fn text_that_is_too_long_keeps_start_and_end_and_fits() {
        assert_eq!(fit("full", 7.0, 50.0), "full");
        let short = fit("workers=64 fixed(ratio=128)", 7.0, 50.0);
        assert!(
            short.contains('…') && short.starts_with("work") && short.ends_with("8)"),
            "{short}"
        );
        assert_eq!(fit("full", 7.0, 1.0), "…");
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
        let begins = |piece: &PathSegment| matches!(piece, PathSegment::MoveTo(_));
        let letter = outline_of(&glyphs[0]).unwrap();
        assert_eq!(letter.segments().filter(begins).count(), 2);
        assert!(outline_of(&glyphs[1]).is_none(), "a space");
    }
}
